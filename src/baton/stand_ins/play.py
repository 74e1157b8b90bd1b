"""One play of a case: every call of a tool or an agent goes through here, and may be answered.

    with playing(case) as play:
        ...                       # the program runs; its framework asks `current()` for each call
    play.mark(trace)              # what was made up is marked in the record

A program may run tools in its own threads, without the context of the case. While a single case is
in play they belong to it; with several cases that is unknown, and nothing is run.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple

import msgspec

from baton.model import BatonError, Case, ProviderError, Trace
from baton.model.stand_ins import StandIn, StandIns

from .answer_faults import after, instead, seconds_of
from .answer_sources import MOCKED, Answer, NoAnswer, Recordings, fixture_for, from_schema

_SIBLINGS = 0.05
"""Seconds to wait for other calls of the same model response: some frameworks make them in
parallel, and a fan-out to three agents is one decision.
"""
_NOT_SET = ("", "dummy_key")
"""The value of an environment variable for missing credentials."""


class StandInError(Exception):
    """The error of a tool from its stand-in; ``answer`` is the stand-in's answer."""

    def __init__(self, text: str, answer: Answer | None = None) -> None:
        super().__init__(text)
        self.answer = answer

    @property
    def was_told(self) -> bool:
        """Whether it is an error message for the model (recorded, or a refusal); no exception."""
        answer = self.answer
        return answer is not None and (answer.refused or (answer.by or "").startswith("replay"))


class Request(NamedTuple):
    """A call: of a tool with its arguments, or of an agent with its prompt.

    ``agent`` is the caller, if known. ``schema`` is the JSON Schema of a result, if the tool states
    one. For an agent, ``dispatch`` is the kind of dispatch, and ``tool`` the tool that calls it,
    with its ``arguments``. For a tool, ``to`` is the agent that it hands work to.
    """

    name: str
    input: Any = None
    agent: str | None = None
    kind: Literal["tool", "agent"] = "tool"
    id: str | None = None
    schema: dict[str, Any] | None = None
    dispatch: Literal["delegate", "transfer", "sequence"] = "delegate"
    tool: str | None = None
    to: str | None = None
    arguments: Any = None


class Decided(asyncio.CancelledError):
    """Ends a play at the case's dispatch; frameworks clean up as when cancelled."""


class Answered(NamedTuple):
    """The answer to a call, and its source (``by``)."""

    request: Request
    answer: Answer
    by: str


class Earlier(NamedTuple):
    """An earlier call of the same play, and its result."""

    name: str
    input: Any
    result: Any
    error: str | None


class LlmQuestion(NamedTuple):
    """A call for an LLM to answer, with its prompt data.

    ``schema`` is the JSON Schema of a result, ``about`` describes the world, ``earlier`` are the
    calls of the play so far.
    """

    request: Request
    schema: dict[str, Any] | None
    about: str | None
    earlier: Sequence[Earlier]


Imagine = Callable[[LlmQuestion], Awaitable[Answer]]
"""Lets an LLM answer a call; raises BatonError if it gives no answer."""


class PreparedAnswer(NamedTuple):
    """The n-th call, and its answer, or ``None`` for the real tool."""

    request: Request
    number: int
    answer: Answer | None
    seconds: float = 0.0
    by_llm: bool = False


class Play:
    """The stand-ins of one play of a case, and their answers.

    Attributes:
        requests: all calls, in order.
        answers: all answers, in order.
        refused: refused calls: they have no answer, and may not run.
        stops: whether play ends at the first dispatch.
        decided: whether it ended there.
    """

    def __init__(
        self,
        stand_ins: StandIns | None = None,
        *,
        stops: bool = False,
        imagining: Imagining | None = None,
    ) -> None:
        self.stand_ins = stand_ins or StandIns()
        self.requests: list[Request] = []
        self.answers: list[Answered] = []
        self.refused: list[str] = []
        self.stops = stops
        self.decided = False
        self._recordings = Recordings(self.stand_ins.recorded)
        self._counts: dict[tuple[str, str], int] = {}
        self._last: dict[tuple[str, str], Any] = {}
        self._imagining = imagining
        self._earlier: list[Earlier] = []
        # Programs run tools in parallel threads: each call takes its own number and answer.
        self._taking = threading.Lock()

    @property
    def is_idle(self) -> bool:
        """Whether there are no stand-ins: every call runs normally."""
        return not self.stops and self.stand_ins == StandIns()

    def stands_in_for(self, agent: str) -> bool:
        """Tell whether an agent has a stand-in, or the play ends there.

        Faults count: they change the answer of the real agent.
        """
        request = Request(agent, kind="agent")
        spec = self._spec(request)
        return self.stops or not self.runs(request) or (spec is not None and bool(spec.faults))

    def runs(self, request: Request) -> bool:
        """Tell whether a call runs normally, without a stand-in; faults may change its answer."""
        return self._mode(request, self._spec(request)) in (None, "live")

    def refuse_elsewhere(self, request: Request, where: str) -> None:
        """Refuse a tool that a stand-in cannot answer because it runs ``where``, unless it may run.

        Raises:
            ProviderError: a stand-in would have to answer for it.
        """
        spec = self._spec(request)
        if not self.runs(request) or (spec is not None and spec.faults):
            raise self._refuse(request, f"it runs {where}, where no stand-in can answer", "")

    async def tool(self, request: Request, run: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of a call, from a stand-in or from ``run``.

        Raises:
            StandInError: the stand-in says that the tool ends in an error.
            ProviderError: the call has no answer, and the tool may not run.
            Decided: the call is the dispatch at which the play ends.
        """
        prepared = await self.before(request)
        answer = prepared.answer
        return self.after(prepared, Answer(await run(), by=None) if answer is None else answer)

    async def before(self, request: Request) -> PreparedAnswer:
        """Return the answer to a call, for a framework that runs its tools itself.

        If ``answer`` is ``None``, the framework runs the tool, and passes the result to
        :meth:`after`; else it returns the answer.

        Raises:
            ProviderError: the call has no answer, and the tool may not run.
            Decided: the call is the dispatch at which the play ends.
        """
        self.requests.append(request)
        if self.stops and request.kind == "agent":
            if (earlier := self._made_before(request)) is not None:
                return PreparedAnswer(request, 1, earlier)
            await asyncio.sleep(_SIBLINGS)
            self.decided = True
            raise Decided
        prepared = self._decide(request)
        if prepared.seconds:
            await asyncio.sleep(prepared.seconds)
        if prepared.by_llm:
            imagining = self._imagines(request)
            with self._refusing(request):
                answer = await imagining.imagine(self._question(request))
            return prepared._replace(answer=answer)
        return prepared

    def after(self, prepared: PreparedAnswer, answer: Answer) -> Any:
        """Return the result of a call after faults; raises StandInError."""
        return self._ended(prepared.request, prepared, answer)

    def tool_now(self, request: Request, run: Callable[[], Any]) -> Any:
        """Like :meth:`tool`, for synchronous programs; raises the same."""
        self.requests.append(request)
        if self.stops and request.kind == "agent":
            if (earlier := self._made_before(request)) is not None:
                return self._ended(request, PreparedAnswer(request, 1, earlier), earlier)
            time.sleep(_SIBLINGS)
            self.decided = True
            raise Decided
        decided = self._decide(request)
        if decided.seconds:
            time.sleep(decided.seconds)
        if decided.by_llm:
            imagining = self._imagines(request)
            with self._refusing(request):
                answer = imagining.wait_for(self._question(request))
            return self._ended(request, decided, answer)
        if decided.answer is None:
            return self._ended(request, decided, Answer(run(), by=None))
        return self._ended(request, decided, decided.answer)

    def _imagines(self, request: Request) -> Imagining:
        if self._imagining is None:
            raise self._refuse(request, "an LLM should answer for it, but none is available here")
        return self._imagining

    @contextmanager
    def _refusing(self, request: Request) -> Iterator[None]:
        try:
            yield
        except BatonError as error:
            raise self._refuse(
                request, f"the LLM that is to answer gave no answer: {error}"
            ) from None

    def _question(self, request: Request) -> LlmQuestion:
        spec = self._spec(request)
        schema = (spec and spec.schema) or request.schema
        return LlmQuestion(request, schema, self.stand_ins.about, tuple(self._earlier))

    def check(self, trace: Trace | None = None) -> None:
        """Raise ProviderError if a call was refused: the case was not played as intended."""
        if self.refused:
            raise ProviderError("; ".join(dict.fromkeys(self.refused)), trace)

    def mark(self, trace: Trace) -> None:
        """Mark in the record which calls and dispatches were answered by a stand-in.

        Calls are found by their id, else by name, caller and arguments, in order. Those that are
        not found are named in ``attributes["stand-ins not in the record"]``.
        """
        from .mark_answers import mark

        mark(trace, self.answers)

    def _made_before(self, request: Request) -> Answer | None:
        with self._taking:
            return self._recordings.made_before(request.name, request.input)

    def _decide(self, request: Request) -> PreparedAnswer:
        """Decide a call; raises ProviderError if it is refused."""
        with self._taking:
            return self._take(request)

    def _take(self, request: Request) -> PreparedAnswer:
        spec = self._spec(request)
        key = (request.kind, request.name)
        number = self._counts[key] = self._counts.get(key, 0) + 1
        faults = spec.faults if spec is not None else []
        seconds = seconds_of(faults, number)
        refused = instead(faults, number, request.name)
        if refused is not None:
            return PreparedAnswer(request, number, refused, seconds)
        mode = self._mode(request, spec)
        if mode is None or mode == "live":
            return PreparedAnswer(request, number, None, seconds)
        try:
            written = fixture_for(spec.answers if spec else [], request.input, number)
            if written is None and mode == "llm":
                return PreparedAnswer(request, number, None, seconds, by_llm=True)
            answer = written or self._answer(request, mode, spec)
            return PreparedAnswer(request, number, answer, seconds + answer.seconds)
        except NoAnswer as reason:
            unmatched = (spec and spec.on_unmatched) or self.stand_ins.on_unmatched or "error"
            if unmatched == "live":
                return PreparedAnswer(request, number, None, seconds)
            schema = (spec and spec.schema) or request.schema
            if unmatched == "schema" and schema is not None:
                return PreparedAnswer(
                    request, number, Answer(from_schema(schema), by="schema"), seconds
                )
            raise self._refuse(request, str(reason)) from None

    def _answer(self, request: Request, mode: str, spec: StandIn | None) -> Answer:
        """Return the answer of a mode; raises NoAnswer."""
        if mode == "fixture":
            raise NoAnswer("none of the written answers is for these arguments")
        if mode == "schema":
            schema = (spec and spec.schema) or request.schema
            if schema is None:
                raise NoAnswer("it states no JSON Schema of its result: give one as `schema`")
            return Answer(from_schema(schema), by="schema")
        if mode == "mock":
            return Answer(dict(MOCKED), by="mock")
        try:
            return self._recordings.answer(request.kind, request.name, request.agent, request.input)
        except NoAnswer:
            if request.to is None:
                raise
            # In the record, the call of such a tool is a dispatch.
            return self._recordings.answer("agent", request.to, None, request.input)

    def _spec(self, request: Request) -> StandIn | None:
        if request.kind == "agent":
            return self.stand_ins.agents.get(request.name)
        caller = self.stand_ins.agents.get(request.agent or "")
        own = caller.tools if caller is not None else {}
        tools = self.stand_ins.tools
        return own.get(request.name) or tools.get(request.name) or own.get("*") or tools.get("*")

    def _mode(self, request: Request, spec: StandIn | None) -> str | None:
        """Return the mode; agents are live unless something answers for them."""
        if request.kind == "tool" and request.name in self.stand_ins.live:
            return "live"
        mode = spec.mode if spec is not None else None
        if mode is None and spec is not None and spec.answers:
            mode = "fixture"
        if mode is None and request.kind == "tool":
            mode = self.stand_ins.mode
        key = (spec.key if spec is not None else None) or self.stand_ins.key
        if mode == "mock" and key is not None:
            return "mock" if os.environ.get(key, "") in _NOT_SET else "live"
        return mode

    def _ended(self, request: Request, decided: PreparedAnswer, answer: Answer) -> Any:
        """Apply faults to an answer, record it if it was made up, and return or raise it."""
        spec = self._spec(request)
        key = (request.kind, request.name)
        faults = spec.faults if spec is not None else []
        before = self._last.get(key, msgspec.UNSET)
        changed = after(faults, decided.number, answer, before)
        if answer.error is None and not answer.refused:
            self._last[key] = answer.result
        if changed.by is not None:
            self.answers.append(Answered(request, changed, changed.by))
        if request.kind == "tool" and self._imagining is not None:
            self._earlier.append(
                Earlier(request.name, request.input, changed.result, changed.error)
            )
        if changed.timed_out:
            raise TimeoutError(changed.error)
        if changed.error is not None:
            raise StandInError(changed.error, changed)
        return changed.result

    def _refuse(
        self, request: Request, why: str, answered: str = ", `tools:` may answer for it"
    ) -> ProviderError:
        what = "agent" if request.kind == "agent" else "tool"
        way = (
            f"`live: [{request.name}]` of `stand_ins:` runs it, or `--live-tools {request.name}`"
            f"{answered}"
            if request.kind == "tool"
            else "`stand_ins:` may answer for it"
        )
        text = f"the {what} `{request.name}` was not run: {why}; {way}"
        self.refused.append(text)
        return ProviderError(text)


class Imagining:
    """Lets an LLM answer for tools; ``close`` closes what was opened in an event loop."""

    def __init__(self, imagine: Imagine, close: Callable[[], Awaitable[None]]) -> None:
        self.imagine = imagine
        self._close = close
        self._loop = asyncio.get_running_loop()

    def wait_for(self, question: LlmQuestion) -> Answer:
        """Return the answer, for a synchronous function."""
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is not self._loop:
            return self.begin(question).result()
        # The loop itself waits here: the call runs in a separate loop.
        with ThreadPoolExecutor(1) as aside:
            return aside.submit(asyncio.run, self._aside(question)).result()

    def begin(self, question: LlmQuestion) -> Future[Answer]:
        """Request an answer from another thread, which may wait for it."""
        return asyncio.run_coroutine_threadsafe(self._ask(question), self._loop)

    async def _ask(self, question: LlmQuestion) -> Answer:
        return await self.imagine(question)

    async def _aside(self, question: LlmQuestion) -> Answer:
        try:
            return await self.imagine(question)
        finally:
            await self._close()


_IMAGINING: ContextVar[Imagining | None] = ContextVar("baton_imagining", default=None)


@contextmanager
def imagining(imagine: Imagine, close: Callable[[], Awaitable[None]]) -> Iterator[None]:
    """Let an LLM answer if stand-ins say so, in plays that start inside the block.

    ``close`` closes what ``imagine`` opened in an event loop.
    """
    token = _IMAGINING.set(Imagining(imagine, close))
    try:
        yield
    finally:
        _IMAGINING.reset(token)


def who_imagines() -> Imagining | None:
    """Return the current `Imagining`; ``None`` if there is none."""
    return _IMAGINING.get()


_PLAY: ContextVar[Play | None] = ContextVar("baton_play", default=None)
_IN_PLAY: list[Play] = []


def play_of(case: Case) -> Play:
    """Return a new play of a case."""
    stops = case.dispatch is not None and case.dispatch.form == "decision"
    return Play(case.stand_ins, stops=stops, imagining=who_imagines())


@contextmanager
def playing(case: Case) -> Iterator[Play]:
    """Play a case with its stand-ins until the block ends."""
    play = play_of(case)
    token = _PLAY.set(play)
    _IN_PLAY.append(play)
    try:
        yield play
    finally:
        # By identity: two plays without stand-ins are equal, but not the same.
        _IN_PLAY[:] = [each for each in _IN_PLAY if each is not play]
        _PLAY.reset(token)


def current() -> Play | None:
    """Return the play of a call; ``None`` if none has stand-ins.

    Raises:
        ProviderError: several cases are in play, and the call has the context of none.
    """
    play = _PLAY.get()
    if play is not None:
        return play
    if len(_IN_PLAY) == 1:
        return _IN_PLAY[0]
    if all(each.is_idle for each in _IN_PLAY):
        return None
    raise ProviderError(
        "a call came from a thread without the context of its case while several cases are in "
        "play: use `--concurrency 1`, `workers: process`, or `contextvars.copy_context().run`"
    )
