"""``python``: the user's function plays the cases."""

from __future__ import annotations

import asyncio
import copy
import os
import time
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import msgspec

from baton.model import (
    SCHEMA_VERSION,
    Case,
    InputError,
    Problem,
    ProviderError,
    Source,
    Trace,
    integrity_problems,
)
from baton.model.dataset import Need
from baton.model.views import sum_usage
from baton.plugins import is_installed
from baton.plugins.origin import install, requirement
from baton.plugins.user_code import load_object
from baton.safe_output import tracebacks_are_shown
from baton.stand_ins import current

from .answer_turns import Stated, stated_turn, with_recorded
from .base_provider import (
    CaseCancelled,
    ConfiguredProvider,
    PromptsOptions,
    Surroundings,
    refuse_unplayable,
    stood_in,
)
from .claude_dispatch_start import with_name
from .claude_recorder import Messages, hear_claude, heard_into
from .claude_recorder import trace_of as claude_trace
from .claude_stand_ins import without_stubs
from .frameworks.framework import classes_of
from .frameworks.program import Program, asked_of, is_framework_object, is_of_adk
from .instrument.worker_protocol import Setup, TextsAndTools, Workers
from .prompt_delivery import Prompts
from .recorder import RecordedTurn, record_turn
from .user_functions import NO_SESSION, NOT_JSON, as_json, worded


class PythonOptions(PromptsOptions, kw_only=True):
    """A function, as ``module:function``, which is searched for below the config's folder.

    It can also be an agent, graph, crew, team or App of a framework (``app:graph``). The function
    gets each message. If it has parameters of these names, it also gets ``session``, a dict that
    lasts as long as the session, and ``case``. It returns text, a dict or a trace. If ``case`` is
    its first parameter, it is called once per case.

    With ``workers: process``, it runs in a separate process for each case in play, so a function
    that crashes, ends or blocks its process spoils only that case. With ``instrument``, it runs
    under OpenTelemetry, and its spans record what its agents did. It then runs in such processes,
    unless ``workers`` is ``inline``. ``instrument: auto`` does this for an agent or graph of a
    framework if its instrumentation is installed, and leaves functions unchanged. ``instrumentors``
    names the instrumentors to switch on; ``auto`` means all that are installed.
    """

    type: Literal["python"]
    target: str
    instrument: bool | Literal["auto"] = False
    workers: Workers | None = None
    instrumentors: Literal["auto"] | list[str] | None = None


class Python(ConfiguredProvider[PythonOptions]):
    """Calls the function in this process. A function that is not async runs in its own thread.

    With ``instrument`` or ``workers: process``, a driver does all of this and runs the hooks. The
    same is true for changed texts: a program that is already loaded has read its texts, and other
    programs in this process must not get the changed ones. ``here`` states that this process is the
    one for the program.
    """

    summary = "a function of your own"
    options_type = PythonOptions

    def __init__(
        self, options: PythonOptions, around: Surroundings | None = None, *, here: bool = False
    ) -> None:
        self._driver: Driver | None = None
        changed = around.texts if around is not None and not here else {}
        if options.instrument == "auto":
            plain = msgspec.structs.replace(
                options,
                instrument=False,
                workers="process" if options.workers == "process" else None,
                instrumentors=None,
            )
            is_told, self.notice = _recorded_by_spans(options, around)
            options = msgspec.structs.replace(options, instrument=True) if is_told else plain
        if not options.instrument and options.workers != "process" and not changed:
            super().__init__(options, around)
            _refuse_idle(options)
            hear_claude()
            prompts = Prompts(options, self.around)
            prompts.check()
            prompts.begin(self.around.texts)  # a program can ask for its texts while it is loaded
            if is_of_adk(load_object(options.target, self.around.folder)):
                self._driver = _OfAdk(options, self.around)
            else:
                self._program = Program(
                    options.target, self.around.folder, self.around.texts, prompts
                )
            return
        _refuse_idle(options)
        # Hooks run in the program's process, because they can share its modules.
        super().__init__(msgspec.structs.replace(options, hooks=None), around)
        self.options = options
        setup = Setup(
            target=options.target,
            folder=str(self.around.folder),
            agents=self.around.agents,
            texts=dict(changed),
            prompts=options.prompts,
            prompts_to=options.prompts_to,
            hooks=options.hooks,
            instrumentors="auto" if options.instrumentors is None else options.instrumentors,
            plain=not options.instrument,
            tracebacks=tracebacks_are_shown(),
        )
        Prompts(options, self.around).check()
        self._driver = _driver(setup, "process" if changed else options.workers or "process")

    async def components(self) -> dict[str, str]:
        """Return the texts that can be changed."""
        return (await self._changeable()).texts

    def text_places(self, component: str) -> list[Path]:
        """Return the file that `prompts:` names, or the program's folder."""
        return super().text_places(component) or [self.around.folder]

    async def tools(self) -> set[str]:
        """Return the names of tools in definitions and in the program."""
        return {*await super().tools(), *(await self._changeable()).tools}

    async def _changeable(self) -> TextsAndTools:
        if self._driver is not None:
            return await self._driver.tell()
        return TextsAndTools(self._program.components(), sorted(self._program.tools()))

    def lacks(self, need: Need) -> str | None:
        """Return why cases with a need cannot be played; a function of cases handles any need."""
        if self._driver is None and self._program.target.whole_case:
            return None
        if (
            need == "new_session"
            and self._driver is None
            and not self._program.target.takes_session
        ):
            return NO_SESSION
        return super().lacks(need)

    async def __aenter__(self) -> Self:
        if self._driver is not None:
            await self._driver.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._driver is not None:
            await self._driver.close()

    async def prepare(self) -> None:
        """Get a process ready."""
        if self._driver is not None:
            await self._driver.prepare()

    async def __call__(self, case: Case) -> Trace:
        """Play a case; errors of the function are passed on, after a first turn with the trace."""
        if self._driver is not None:
            return await self._driver.play(case)
        with self._program.playing(case) as play:
            return await stood_in(case, play, self._play(case))

    async def _play(self, case: Case) -> Trace:
        state = await self.hooks.state(case)
        if self._program.target.whole_case and case.dispatch is None:
            return await self._play_whole(case, state)
        refuse_unplayable(case, stand_ins=True)
        return await self._play_turns(case, state)

    async def _play_whole(self, case: Case, state: dict[str, Any]) -> Trace:
        sent = time.time()
        message = case.turns[0].input.plain() if len(case.turns) == 1 else None
        heard: Messages = []
        with record_turn(message) as recorded, heard_into(heard):
            answer = await self._program.answer(case, case, copy.deepcopy(state))
        if isinstance(answer, Trace):
            trace = _checked(answer, case)
        elif len(case.turns) > 1:
            raise ProviderError(
                f"the function returned {type(answer).__name__} for a case of {len(case.turns)} "
                "turns: it has to return a Trace, or take a message first"
            )
        else:
            trace = self._finished(case, [self._turn(case, 0, answer, sent, recorded)], heard)
        for turn in trace.turns:
            await self.hooks.after_turn(case, turn)
        return trace

    async def _play_turns(self, case: Case, state: dict[str, Any]) -> Trace:
        played: list[Stated] = []
        heard: Messages = []
        try:
            with heard_into(heard):
                return await self._play_into(played, heard, case, state)
        except asyncio.CancelledError as cancelled:
            if not played:
                raise
            raise CaseCancelled(self._trace(case, played, heard)) from cancelled

    async def _play_into(
        self, played: list[Stated], heard: Messages, case: Case, state: dict[str, Any]
    ) -> Trace:
        session = copy.deepcopy(state)
        for index, expected in enumerate(case.turns):
            if index and expected.new_session:
                session = copy.deepcopy(state)
            sent = time.time()
            message = expected.input.plain()
            recorded = None
            try:
                with record_turn(message, id=f"turn{index + 1}") as recorded:
                    goes_on = Stated(recorded.turn, None)
                    so_far = partial(self._trace, case, [*played, goes_on], heard)
                    async with self.hooks.watching(so_far):
                        answer = await self._program.answer(message, case, session)
                if isinstance(answer, Trace) and len(case.turns) == 1:
                    trace = _checked(answer, case)
                    for turn in trace.turns:
                        await self.hooks.after_turn(case, turn)
                    return trace
                played.append(self._turn(case, index, answer, sent, recorded))
            except Exception as error:
                if recorded is not None and recorded.turn.runs and len(played) == index:
                    played.append(Stated(recorded.turn, None))  # the part that was played
                if not played:
                    raise
                problem = f"the function raised {worded(error)}"
                text = f"turn {index + 1}: {error if isinstance(error, ProviderError) else problem}"
                raise ProviderError(text, self._trace(case, played, heard)) from error
            trace = self._finished(case, played, heard)
            await self.hooks.after_turn(case, trace.turns[-1])
            await self.hooks.next_turn(case, partial(self._trace, case, played, heard))
        return self._finished(case, played, heard)

    def _turn(
        self, case: Case, index: int, answer: Any, sent: float, recorded: RecordedTurn
    ) -> Stated:
        if isinstance(answer, Trace):
            raise ProviderError(
                "the function returned a Trace for one message of several: make `case` its "
                "first parameter, to play them all"
            )
        stated = stated_turn(answer, f"turn{index + 1}")
        if recorded.turn.runs:
            stated = with_recorded(stated, recorded.turn)
        if stated.turn.input is None:
            stated.turn.input = case.turns[index].input if case.turns else None
        stated.turn.started, stated.turn.ended = sent, time.time()
        return stated

    def _finished(self, case: Case, played: list[Stated], heard: Messages) -> Trace:
        """Make the trace; raises ProviderError if the last turn failed."""
        trace = self._trace(case, played, heard)
        if played[-1].turn.error is not None:
            raise ProviderError(f"turn {len(played)}: {played[-1].turn.error}", trace)
        return trace

    def _trace(self, case: Case, played: list[Stated], heard: Messages) -> Trace:
        if not any(stated.turn.runs for stated in played):
            target, catalog = self.options.target, self.around.agents
            trace = claude_trace(heard, len(played), case.id, target, catalog)
            if trace is not None:
                trace = without_stubs(trace, current())
                if case.dispatch is not None:
                    trace = with_name(trace, asked_of(case)[0])
                return _with_answers(trace, case, played)
        usage = sum_usage([stated.usage for stated in played])
        state = played[-1].turn.state
        return Trace(
            schema_version=SCHEMA_VERSION,
            id=case.id,
            case=case.id,
            source=Source(format="python", location=self.options.target),
            turns=[stated.turn for stated in played],
            agents=self.around.agents,
            state=state,
            usage=usage,
            unknown=[
                "run.context",
                "turn.state",
                *([] if state is not None else ["state"]),
                *([] if usage else ["usage"]),
            ],
            dropped=[each for stated in played for each in stated.dropped],
        )


def _with_answers(trace: Trace, case: Case, played: list[Stated]) -> Trace:
    """Add the program's messages and answers to the recorded messages of Claude."""
    trace.id = trace.case = case.id
    for turn, stated in zip(trace.turns, played, strict=True):
        own = stated.turn
        turn.input, turn.started, turn.ended = own.input, own.started, own.ended
        if own.output is not None:
            turn.output, turn.status, turn.error = own.output, own.status, None
        if own.error is not None:
            turn.status, turn.error = own.status, own.error
        known = {"input", *(["output"] if turn.output is not None else [])}
        turn.unknown = [name for name in turn.unknown if name not in known]
    return trace


def _checked(trace: Trace, case: Case) -> Trace:
    """Return the trace as it will be stored, because a trace made by hand can hold anything."""
    try:
        stored = msgspec.json.decode(as_json(trace), type=Trace)
    except NOT_JSON as error:
        raise ProviderError(f"the trace that came back is malformed: {error}") from error
    problems = integrity_problems(stored)
    if problems:
        raise ProviderError(f"the trace that came back contradicts itself: {problems[0]}", stored)
    stored.case = case.id
    return stored


class Driver(Protocol):
    """Plays cases with an instrumented program."""

    async def open(self) -> None:
        """Get ready; raises InputError."""

    async def prepare(self) -> None:
        """Get ready for a call that follows at once."""

    async def close(self) -> None:
        """End everything that was started."""

    async def tell(self) -> TextsAndTools:
        """Return which texts can be changed; raises ProviderError."""

    async def play(self, case: Case) -> Trace:
        """Play a case; raises ProviderError, and CaseCancelled with the record so far."""


class _OfAdk:
    """Plays cases with an agent or App of Google ADK, whose events record what its agents do."""

    def __init__(self, options: PythonOptions, around: Surroundings) -> None:
        from .adk_local import AdkLocal
        from .adk_options import AdkLocalOptions

        local = AdkLocalOptions(type="adk_local", path=options.target, hooks=options.hooks)
        self._provider = AdkLocal(local, around)
        self._opening = asyncio.Lock()
        self._is_open = False

    async def open(self) -> None:
        """Do nothing: the agent is opened when a case is played."""

    async def prepare(self) -> None:
        async with self._opening:
            if not self._is_open:
                await self._provider.__aenter__()
                self._is_open = True

    async def close(self) -> None:
        if self._is_open:
            await self._provider.__aexit__(None, None, None)

    async def tell(self) -> TextsAndTools:
        await self.prepare()
        texts, tools = await self._provider.components(), await self._provider.tools()
        return TextsAndTools(texts, sorted(tools))

    async def play(self, case: Case) -> Trace:
        await self.prepare()
        return await self._provider(case)


def _driver(setup: Setup, workers: Workers) -> Driver:
    """Check what can be checked before anything runs.

    Raises:
        InputError: OpenTelemetry is not installed, or an instrumentor.
    """
    from .instrument.pool import Pool

    if setup.plain:
        return Pool(setup)
    if not is_installed("opentelemetry.sdk"):
        message = f"needs OpenTelemetry: {install(requirement('otel'))}"
        raise InputError(Problem(path="instrument", message=message))
    from .instrument.instrumentors import check_instrumentors

    try:
        check_instrumentors(setup.instrumentors)
    except InputError as error:
        raise InputError(Problem(path="instrumentors", message=str(error))) from None
    if workers == "inline":
        from .instrument.program_player import Inline

        return Inline(setup)
    return Pool(setup)


_UNSEEN = (
    "`{target}` is a function: what the agents that it calls do is known only if it returns that. "
    "`instrument: true` in a config records it; `baton init --agent {target}` writes one"
)


def _recorded_by_spans(
    options: PythonOptions, around: Surroundings | None
) -> tuple[bool, str | None]:
    """Return whether spans will record what an agent does, and what is missing if they cannot.

    A function can do anything and can itself return what its agents did. So only an object of a
    framework is recorded by spans without an explicit option.

    Raises:
        InputError: the target cannot be loaded.
    """
    from .instrument.frameworks import FRAMEWORKS, unrecorded

    around = around or Surroundings()
    Prompts(options, around).begin({})  # the target can ask for texts while it is loaded
    value = load_object(options.target, around.folder)
    if not is_framework_object(value):
        called = any(map(is_framework_object, getattr(value, "__globals__", {}).values()))
        # Its record may be complete, if it returns what the agents did; only its results show that.
        return False, _UNSEEN.format(target=options.target) if called else None
    packages = {package for package, _ in classes_of(value)}
    lacking = unrecorded(each for each in FRAMEWORKS if each.module in packages)
    wanted = [*dict.fromkeys(lacking.values())]
    if not is_installed("opentelemetry.sdk"):
        wanted.insert(0, requirement("otel"))
    if wanted:
        how = install(*wanted)
        return False, f"the work of the agents of `{options.target}` is not recorded: {how}"
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        message = f"the work of the agents of `{options.target}` is not recorded"
        return False, f"{message}: OTEL_SDK_DISABLED is set"
    return True, None


def _refuse_idle(options: PythonOptions) -> None:
    """Raise InputError for options that have an effect only with ``instrument``."""
    message = "is only for an instrumented program: add `instrument: true`"
    if options.workers == "inline" and not options.instrument:
        raise InputError(Problem(path="workers", message=message))
    if options.instrumentors is not None and not options.instrument:
        raise InputError(Problem(path="instrumentors", message=message))
