"""Plays cases with a program in this process, and makes traces from its spans."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from opentelemetry import trace as api
from opentelemetry.context import Context

from baton.model import (
    REPEATED,
    SCHEMA_VERSION,
    Case,
    Content,
    Dropped,
    ExpectedTurn,
    ProviderError,
    Source,
    Trace,
    Turn,
    integrity_problems,
)
from baton.model.views import sum_usage
from baton.providers.answer_turns import Stated, stated_turn
from baton.providers.base_provider import (
    CaseCancelled,
    Hooks,
    PromptsOptions,
    Surroundings,
    refuse_unplayable,
    stood_in,
)
from baton.providers.frameworks.program import Program
from baton.providers.instrument.collector import Collected, Play, tracing
from baton.providers.instrument.instrumentors import activate, switch_on_built_in
from baton.providers.instrument.worker_protocol import Setup, TextsAndTools
from baton.providers.prompt_delivery import Prompts
from baton.providers.user_functions import NO_SESSION, worded
from baton.readers import Catalog
from baton.readers.otlp.reader import read_spans
from baton.readers.otlp.span import Span


class PlayedTurn(msgspec.Struct, kw_only=True):
    """A message that was sent; ``stated`` is what the program returned, ``error`` why it failed."""

    input: Content | None
    started: float
    ended: float | None = None
    stated: Stated | None = None
    error: str | None = None


class ProgramSetup(NamedTuple):
    """How a program was set up, for the attributes of each trace.

    ``instrumentors`` and ``built_in`` grow when the program imports a framework.
    """

    location: str
    agents: Catalog
    instrumentors: list[str]
    built_in: list[str]


def trace_of(case: Case, played: list[PlayedTurn], seen: Collected, setup: ProgramSetup) -> Trace:
    """Make the trace of a case.

    Raises:
        ProviderError: the spans cannot be read as one conversation of these turns.
    """
    trace = _read(case, played, seen, setup)
    read_turns = _by_turn(trace.turns, played)
    trace.turns = [
        _turn(number, turn, each, trace)
        for number, (turn, each) in enumerate(zip(read_turns, played, strict=True), 1)
    ]
    trace.id = trace.case = case.id
    framework = trace.source.framework
    trace.source = Source(format="python", framework=framework, location=setup.location)
    if trace.usage is None:
        trace.usage = sum_usage([each.stated.usage if each.stated else None for each in played])
        _settle(trace.unknown, "usage", is_known=trace.usage is not None)
    last = played[-1].stated if played else None
    if last is not None and last.turn.state is not None and trace.state is None:
        trace.state = last.turn.state
        _settle(trace.unknown, "state", is_known=True)
    trace.dropped += [Dropped(what=what, count=n) for what, n in sorted(seen.lost.items())]
    notes = {
        "instrumentors": setup.instrumentors,
        "instrumentation built in": setup.built_in,
        "spans that had not ended": sorted(seen.open),
    }
    trace.attributes |= {name: list(value) for name, value in notes.items() if value}
    if problems := integrity_problems(trace):
        raise ProviderError(f"the spans contradict each other: {problems[0]}", trace)
    return trace


def unanswered(trace: Trace, played: list[PlayedTurn]) -> str | None:
    """Return a message about a turn without an answer from the program or its spans, if any."""
    for number, (turn, each) in enumerate(zip(trace.turns, played, strict=True), 1):
        if turn.output is None and turn.status == "completed" and each.stated is None:
            return f"turn {number}: the function returned nothing, and its spans have no answer"
    return None


def session_of(case: Case) -> str:
    """Return the session that all spans of a case are in."""
    return case.session.id or case.id


def _read(case: Case, played: list[PlayedTurn], seen: Collected, setup: ProgramSetup) -> Trace:
    if len(seen.spans) <= len(played):
        return _nothing_seen(setup)  # only the spans of the turns exist
    _hold_together(seen.spans, session_of(case))
    _keep_apart(seen.spans, played)
    traces = read_spans(seen.spans, seen.logs, setup.agents)
    if len(traces) > 1:
        raise ProviderError(f"the spans of the case have {len(traces)} conversations, not 1")
    return traces[0] if traces else _nothing_seen(setup)


def _hold_together(spans: list[Span], session: str) -> None:
    """Give all root spans the same session, because they belong to one case."""
    ids = {(span.trace_id, span.span_id) for span in spans}
    for span in spans:
        if span.parent_id is None or (span.trace_id, span.parent_id) not in ids:
            span.attributes["session.id"] = session


def _keep_apart(spans: list[Span], played: list[PlayedTurn]) -> None:
    """Remove links between turns, which would merge them into one turn."""
    starts: dict[str, float] = {}
    for span in spans:
        at = span.started or 0.0
        starts[span.trace_id] = min(at, starts.get(span.trace_id, at))
    turn = {trace_id: _place(at, played) for trace_id, at in starts.items()}
    for span in spans:
        if span.links:
            here = turn[span.trace_id]
            span.links = [link for link in span.links if turn.get(link.trace_id, here) == here]


def _nothing_seen(setup: ProgramSetup) -> Trace:
    """Return a trace without turns, for a program without any span of an agent."""
    return Trace(
        schema_version=SCHEMA_VERSION,
        id="",
        source=Source(format="python"),
        turns=[],
        agents=dict(setup.agents),
        unknown=["run.context", "state", "turn.state", "usage"],
    )


def _by_turn(turns: list[Turn], played: list[PlayedTurn]) -> list[Turn | None]:
    """Return the turn from spans for each message; messages are sent one after the other."""
    by_place: list[Turn | None] = [None] * len(played)
    for turn in turns:
        place = _place(turn.started or 0.0, played)
        if by_place[place] is not None:
            raise ProviderError(
                f"turn {place + 1}: its spans have several conversations at the same time"
            )
        by_place[place] = turn
    return by_place


def _place(at: float, played: list[PlayedTurn]) -> int:
    """Return the position of the last message that was sent before a time."""
    return max(sum(each.started <= at for each in played) - 1, 0)


def _turn(number: int, read: Turn | None, played: PlayedTurn, trace: Trace) -> Turn:
    stated = played.stated.turn if played.stated is not None else None
    if read is not None and read.runs:
        turn = read
        if stated is not None and (stated.runs or stated.dispatches):
            # The program also described its agents, but its spans are more accurate.
            count = len(stated.runs) + len(stated.dispatches)
            trace.dropped.append(Dropped(what=REPEATED, count=count))
    else:
        turn = stated or Turn(id="", unknown=["output", "runs", "dispatches"])
        trace.dropped += played.stated.dropped if played.stated is not None else ()
    turn.id = f"turn{number}"
    turn.input = played.input
    if stated is not None and stated.state is not None:
        turn.state = stated.state
    if stated is not None and stated.output is not None:
        turn.output = stated.output
        if turn.status in ("failed", "incomplete"):
            # The program answered, even if one of its agents failed.
            turn.status, turn.error = "completed", None
    for field in ("input", "output"):
        if getattr(turn, field) is not None:
            _settle(turn.unknown, field, is_known=True)
    turn.started, turn.ended = played.started, played.ended
    error = played.error or (stated.error if stated is not None else None)
    if error is not None:
        turn.status, turn.error = "failed", error
    elif played.ended is None:
        turn.status = "incomplete"
    return turn


def _settle(unknown: list[str], name: str, *, is_known: bool) -> None:
    if is_known and name in unknown:
        unknown.remove(name)
    elif not is_known and name not in unknown:
        unknown.append(name)


_SETTLE = 0.5
"""Seconds that spans have to end after the program has answered."""
_SHOWN = 5
"""Names of spans that a note lists; the others are counted."""


class Player:
    """A program that is loaded and instrumented."""

    def __init__(self, setup: Setup) -> None:
        """Instrument, load, and listen; raises InputError."""
        self.tracing = tracing()
        self.setup = ProgramSetup(setup.target, setup.agents, [], [])
        activate(setup.instrumentors, self.setup.instrumentors.append)
        folder = Path(setup.folder)
        switch_on_built_in(self.setup.built_in.append)
        prompt_options = PromptsOptions(
            type="python", prompts=setup.prompts, prompts_to=setup.prompts_to
        )
        prompts = Prompts(prompt_options, Surroundings(folder, texts=setup.texts))
        prompts.begin(setup.texts)
        self.program = Program(setup.target, folder, setup.texts, prompts)
        self.target = self.program.target
        self.hooks = Hooks(setup.hooks, folder)
        # Listen to providers that were created while the program was loaded.
        self.tracing.install()

    async def tell(self) -> TextsAndTools:
        """Return which texts may be changed."""
        return TextsAndTools(self.program.components(), sorted(self.program.tools()))

    def start(self, case: Case) -> CaseInPlay:
        """Start a case; raises ProviderError when it cannot be played."""
        refuse_unplayable(case, stand_ins=True)
        if self.target.whole_case and len(case.turns) > 1:
            raise ProviderError(
                "one call for several turns cannot be instrumented: let the function take a "
                "message, not the case"
            )
        if any(turn.new_session for turn in case.turns[1:]) and not self.target.takes_session:
            raise ProviderError(NO_SESSION)
        self.tracing.install()
        return CaseInPlay(self, case)


class CaseInPlay:
    """A case that is being played; :meth:`seen` may be called from any thread."""

    def __init__(self, player: Player, case: Case) -> None:
        self._player, self._case = player, case
        self._played: list[PlayedTurn] = []
        self._collector = player.tracing.collector
        self._play = self._collector.begin(case.id)
        self._aside = Play(f"hooks of {case.id}")

    async def run(self) -> Trace:
        """Play it to its end.

        Raises:
            ProviderError: it could not be played, or its spans are not complete.
            CaseCancelled: it was interrupted; with the trace so far.
        """
        try:
            with self._player.program.playing(self._case) as play:
                return await stood_in(self._case, play, self._play_all())
        except CaseCancelled:
            raise
        except asyncio.CancelledError as cancelled:
            raise CaseCancelled(self.seen()) from cancelled
        finally:
            self._collector.end(self._play)
            self._collector.end(self._aside)

    async def _play_all(self) -> Trace:
        problem = await self._turns()
        await self._settle()
        return self._whole(problem)

    def seen(self) -> Trace | None:
        """Return the trace so far, if the spans can be read."""
        if not self._played:
            return None
        try:
            return self._trace(self._collector.collect(self._play))
        except ProviderError as error:
            return error.trace

    def _whole(self, problem: ProviderError | None) -> Trace:
        """Return the trace; raises ProviderError for its problems."""
        seen = self._collector.collect(self._play)
        problems = [None if problem is None else str(problem), _extra_keys(seen)]
        trace: Trace | None = None
        try:
            if self._played:
                trace = self._trace(seen)
                problems.append(unanswered(trace, self._played))
        except ProviderError as error:
            problems.append(str(error))
            trace = error.trace
        reason = "; ".join(each for each in problems if each)
        if reason or trace is None:
            raise ProviderError(reason, trace) from problem
        return trace

    def _trace(self, seen: Collected) -> Trace:
        return trace_of(self._case, self._played, seen, self._player.setup)

    async def _turns(self) -> ProviderError | None:
        """Send all messages; return why it ended early."""
        case, hooks = self._case, self._player.hooks
        try:
            with self._root("baton.hook", self._aside):
                state = await hooks.state(case)
        except ProviderError as error:
            return error
        session = copy.deepcopy(state)
        for number, expected in enumerate(case.turns, 1):
            if number > 1 and expected.new_session:
                session = copy.deepcopy(state)
            try:
                await self._turn(number, expected, session)
                if hooks.follows_turns:
                    trace = self._trace(self._collector.collect(self._play))
                    with self._root("baton.hook", self._aside):
                        await hooks.after_turn(case, trace.turns[-1])
            except ProviderError as error:
                problem = ProviderError(f"turn {number}: {error}")
                problem.__cause__ = error
                return problem
        return None

    async def _turn(self, number: int, expected: ExpectedTurn, session: dict[str, Any]) -> None:
        turn = PlayedTurn(input=expected.input, started=time.time())
        self._played.append(turn)
        target, case = self._player.target, self._case
        try:
            with self._root("baton.turn", self._play):
                first = case if target.whole_case else expected.input.plain()
                answer = await self._player.program.answer(first, case, session)
        except ProviderError as error:
            turn.error = str(error)
            raise
        except Exception as error:
            turn.error = f"the function raised {worded(error)}"
            raise ProviderError(turn.error) from error
        finally:
            turn.ended = time.time()
        if isinstance(answer, Trace):
            raise ProviderError("the function returned a Trace: here the trace comes from spans")
        if answer is not None:
            turn.stated = stated_turn(answer, f"turn{number}")
            if turn.stated.turn.error is not None:
                raise ProviderError(turn.stated.turn.error)

    @contextmanager
    def _root(self, name: str, owner: Play) -> Iterator[None]:
        """Start a new trace, whose first span is the parent of all others."""
        attributes = {"baton.case": self._case.id, "session.id": session_of(self._case)}
        tracer = self._player.tracing.tracer
        span = tracer.start_span(name, context=Context(), attributes=attributes)
        self._collector.own(span.get_span_context().trace_id, owner)
        try:
            with api.use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        finally:
            span.end()

    async def _settle(self) -> None:
        """Wait a moment for spans that end in the background."""
        until = time.monotonic() + _SETTLE
        while self._collector.is_open(self._play) and time.monotonic() < until:
            await asyncio.sleep(0.01)


def _extra_keys(seen: Collected) -> str | None:
    if not seen.homeless:
        return None
    names = sorted(set(seen.homeless))
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" * (len(names) > _SHOWN))
    return (
        f"{len(seen.homeless)} span(s) belong to no case: {shown}; start them in the context of "
        "the call, or link them to a span that is"
    )


class Inline:
    """Plays cases in this process; they share what the program stores in its modules."""

    def __init__(self, setup: Setup) -> None:
        """Load the program; raises InputError."""
        self._player = Player(setup)

    async def open(self) -> None:
        """Do nothing: the program is loaded."""

    async def prepare(self) -> None:
        """Do nothing, as above."""

    async def close(self) -> None:
        """Do nothing: what the program set up stays."""

    async def tell(self) -> TextsAndTools:
        """Return which texts may be changed."""
        return await self._player.tell()

    async def play(self, case: Case) -> Trace:
        """Play a case; raises ProviderError, and CaseCancelled with the trace so far."""
        return await self._player.start(case).run()
