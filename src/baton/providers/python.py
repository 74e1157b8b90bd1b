"""``python``: a function of the user's own plays the cases."""

from __future__ import annotations

import asyncio
import copy
import inspect
import time
from typing import Any, Literal

import msgspec

from baton.model import (
    SCHEMA_VERSION,
    Case,
    ProviderError,
    Source,
    Trace,
    integrity_problems,
)
from baton.model.views import sum_usage

from .base import (
    CaseCancelled,
    ConfiguredProvider,
    ProviderOptions,
    Surroundings,
    refuse_unplayable,
)
from .functions import call, is_async, load_function, worded
from .plain import NOT_JSON, as_json
from .stated import Stated, stated_turn


class PythonOptions(ProviderOptions, kw_only=True):
    """A function, as ``module:function``, looked for below the config's folder.

    It gets each message (and ``session``, a dict that lasts as long as the session, and ``case``,
    where it has parameters of these names), and returns text, a dict or a trace. With ``case``
    as its first parameter it is called once a case.
    """

    type: Literal["python"]
    target: str


class Python(ConfiguredProvider[PythonOptions]):
    """Calls the function; one that is not async runs in a thread of its own."""

    options_type = PythonOptions

    def __init__(self, options: PythonOptions, around: Surroundings | None = None) -> None:
        super().__init__(options, around)
        self._function = load_function(options.target, self.around.folder)
        names = _parameters(self._function)
        self._whole_case = names[:1] == ["case"]
        self._extras = [name for name in names[1:] if name in ("case", "session")]

    async def __call__(self, case: Case) -> Trace:
        """Play a case; what the function raises is passed on, from a later turn with the trace."""
        state = await self.hooks.state(case)
        if self._whole_case:
            return await self._play_whole(case, state)
        refuse_unplayable(case)
        return await self._play_turns(case, state)

    async def _play_whole(self, case: Case, state: dict[str, Any]) -> Trace:
        sent = time.time()
        answer = await self._call(case, case, copy.deepcopy(state))
        if isinstance(answer, Trace):
            trace = _checked(answer, case)
        elif len(case.turns) > 1:
            raise ProviderError(
                f"the function returned {type(answer).__name__} for a case of {len(case.turns)} "
                "turns: it has to return a Trace, or take a message first"
            )
        else:
            trace = self._finished(case, [self._turn(case, 0, answer, sent)])
        for turn in trace.turns:
            await self.hooks.after_turn(case, turn)
        return trace

    async def _play_turns(self, case: Case, state: dict[str, Any]) -> Trace:
        played: list[Stated] = []
        try:
            return await self._play_into(played, case, state)
        except asyncio.CancelledError as cancelled:
            if not played:
                raise
            raise CaseCancelled(self._trace(case, played)) from cancelled

    async def _play_into(self, played: list[Stated], case: Case, state: dict[str, Any]) -> Trace:
        session = copy.deepcopy(state)
        for index, expected in enumerate(case.turns):
            if index and expected.new_session:
                session = copy.deepcopy(state)
            sent = time.time()
            try:
                answer = await self._call(expected.input.plain(), case, session)
                if isinstance(answer, Trace) and len(case.turns) == 1:
                    trace = _checked(answer, case)
                    for turn in trace.turns:
                        await self.hooks.after_turn(case, turn)
                    return trace
                played.append(self._turn(case, index, answer, sent))
            except Exception as error:
                if not played:
                    raise
                raise ProviderError(_broke(index, error), self._trace(case, played)) from error
            self._finished(case, played)
            await self.hooks.after_turn(case, played[-1].turn)
        return self._finished(case, played)

    async def _call(self, first: object, case: Case, session: dict[str, Any]) -> Any:
        given = {"case": case, "session": session}
        extras = {name: given[name] for name in self._extras}
        function = self._function
        if not extras:
            return await call(function, first)
        if not is_async(function):
            return await call(lambda message: function(message, **extras), first)

        async def awaited(message: object) -> Any:
            return await function(message, **extras)

        return await call(awaited, first)

    def _turn(self, case: Case, index: int, answer: Any, sent: float) -> Stated:
        if isinstance(answer, Trace):
            raise ProviderError(
                "the function returned a Trace for one message of several: make `case` its "
                "first parameter, to play them all"
            )
        stated = stated_turn(answer, f"turn{index + 1}")
        stated.turn.input = case.turns[index].input if case.turns else None
        stated.turn.started, stated.turn.ended = sent, time.time()
        return stated

    def _finished(self, case: Case, played: list[Stated]) -> Trace:
        """Make the trace; raises ProviderError when the last turn broke."""
        trace = self._trace(case, played)
        if played[-1].turn.error is not None:
            raise ProviderError(f"turn {len(played)}: {played[-1].turn.error}", trace)
        return trace

    def _trace(self, case: Case, played: list[Stated]) -> Trace:
        usage = sum_usage([stated.usage for stated in played])
        return Trace(
            schema_version=SCHEMA_VERSION,
            id=case.id,
            case=case.id,
            source=Source(format="python", location=self.options.target),
            turns=[stated.turn for stated in played],
            agents=self.around.agents,
            usage=usage,
            unknown=["state", "turn.state", *([] if usage else ["usage"])],
        )


def _checked(trace: Trace, case: Case) -> Trace:
    """Return what came back as it will be stored; a trace made by hand may hold anything."""
    try:
        stored = msgspec.json.decode(as_json(trace), type=Trace)
    except NOT_JSON as error:
        raise ProviderError(f"the trace that came back is malformed: {error}") from error
    problems = integrity_problems(stored)
    if problems:
        raise ProviderError(f"the trace that came back contradicts itself: {problems[0]}", stored)
    stored.case = case.id
    return stored


def _broke(index: int, error: Exception) -> str:
    if isinstance(error, ProviderError):
        return f"turn {index + 1}: {error}"
    return f"turn {index + 1}: the function raised {worded(error)}"


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
