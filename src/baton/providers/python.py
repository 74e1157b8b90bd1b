"""``python``: a function of the user's own plays the cases."""

from __future__ import annotations

import inspect
import time
from typing import Any, Literal

import msgspec

from baton.model import SCHEMA_VERSION, Case, ProviderError, Source, Trace, Turn, integrity_problems
from baton.model.views import sum_usage

from .base import ConfiguredProvider, ProviderOptions, Surroundings, refuse_unplayable
from .functions import call, is_async, load_function
from .stated import stated_turn


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
        """Play a case; what the function raises is passed on."""
        state = await self.hooks.state(case)
        if self._whole_case:
            return await self._play_whole(case)
        refuse_unplayable(case)
        return await self._play_turns(case, state)

    async def _play_whole(self, case: Case) -> Trace:
        sent = time.time()
        answer = await call(self._function, case)
        if isinstance(answer, Trace):
            return _checked(answer, case)
        if len(case.turns) > 1:
            raise ProviderError(
                f"the function returned {type(answer).__name__} for a case of {len(case.turns)} "
                "turns: it has to return a Trace, or take a message first"
            )
        return self._finished(case, [self._turn(case, 0, answer, sent)])

    async def _play_turns(self, case: Case, state: dict[str, Any]) -> Trace:
        session = dict(state)
        turns: list[Turn] = []
        for index, expected in enumerate(case.turns):
            if index and expected.new_session:
                session = dict(state)
            given = {"case": case, "session": session}
            extras = {name: given[name] for name in self._extras}
            sent = time.time()
            answer = await call(self._with(extras), expected.input.plain())
            if isinstance(answer, Trace):
                if len(case.turns) == 1:
                    return _checked(answer, case)
                raise ProviderError(
                    "the function returned a Trace for one message of several: make `case` its "
                    "first parameter, to play them all"
                )
            turns.append(self._turn(case, index, answer, sent))
            self._finished(case, turns)
            await self.hooks.after_turn(case, turns[-1])
        return self._finished(case, turns)

    def _with(self, extras: dict[str, Any]) -> Any:
        if not extras:
            return self._function
        function = self._function
        if is_async(function):

            async def awaited(message: str) -> Any:
                return await function(message, **extras)

            return awaited
        return lambda message: function(message, **extras)

    def _turn(self, case: Case, index: int, answer: Any, sent: float) -> Turn:
        turn = stated_turn(answer, f"turn{index + 1}")
        turn.input = case.turns[index].input if case.turns else None
        turn.started, turn.ended = sent, time.time()
        return turn

    def _finished(self, case: Case, turns: list[Turn]) -> Trace:
        """Make the trace; raises ProviderError when the last turn broke."""
        usage = sum_usage([run.usage for turn in turns for run in turn.runs])
        trace = Trace(
            schema_version=SCHEMA_VERSION,
            id=case.id,
            case=case.id,
            source=Source(format="python", location=self.options.target),
            turns=turns,
            agents=self.around.agents,
            usage=usage,
            unknown=["state", "turn.state", *([] if usage else ["usage"])],
        )
        if turns[-1].error is not None:
            raise ProviderError(f"turn {len(turns)}: {turns[-1].error}", trace)
        return trace


def _checked(trace: Trace, case: Case) -> Trace:
    problems = integrity_problems(trace)
    if problems:
        raise ProviderError(f"the trace that came back contradicts itself: {problems[0]}", trace)
    return msgspec.structs.replace(trace, case=case.id)


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
