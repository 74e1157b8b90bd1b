"""Plays cases with a program in this process, and reads its spans."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opentelemetry import trace as api
from opentelemetry.context import Context

from baton.model import Case, ExpectedTurn, ProviderError, Trace
from baton.plugins.user_code import load_function
from baton.providers.answer_turns import stated_turn
from baton.providers.base import CaseCancelled, Hooks, refuse_unplayable
from baton.providers.functions import NO_SESSION, Target, worded

from .collector import Collected, Play
from .install import tracing
from .instrumentors import activate, built_in_off, switch_on
from .record import PlayedTurn, ProgramSetup, session_of, trace_of, unanswered
from .wire import Setup

_SETTLE = 0.5
"""Seconds that spans have to end once the program has answered."""
_SHOWN = 5


class Player:
    """A program that is loaded and instrumented."""

    def __init__(self, setup: Setup) -> None:
        """Instrument, load, and listen; raises InputError."""
        self.tracing = tracing()
        self.setup = ProgramSetup(setup.target, setup.agents, activate(setup.instrumentors), [])
        folder = Path(setup.folder)
        self.target = Target(load_function(setup.target, folder))
        self.hooks = Hooks(setup.hooks, folder)
        self._listen()

    def start(self, case: Case) -> CaseInPlay:
        """Begin a case; raises ProviderError when it cannot be played."""
        refuse_unplayable(case)
        if self.target.whole_case and len(case.turns) > 1:
            raise ProviderError(
                "one call for several turns cannot be instrumented: take a message, not the case"
            )
        if any(turn.new_session for turn in case.turns[1:]) and not self.target.takes_session:
            raise ProviderError(NO_SESSION)
        self._listen()
        return CaseInPlay(self, case)

    def _listen(self) -> None:
        """Hear what was made or imported since the last time."""
        self.tracing.install()
        off = built_in_off()
        switch_on(off)
        self.setup.built_in.extend(name for name in off if name not in self.setup.built_in)


class CaseInPlay:
    """One playing of a case; :meth:`seen` may be asked from any thread."""

    def __init__(self, player: Player, case: Case) -> None:
        self._player, self._case = player, case
        self._played: list[PlayedTurn] = []
        self._collector = player.tracing.collector
        self._play = self._collector.begin(case.id)
        self._aside = Play(f"hooks of {case.id}")

    async def run(self) -> Trace:
        """Play it to its end.

        Raises:
            ProviderError: it could not be played, or its spans are not whole.
            CaseCancelled: it was interrupted; with what was seen until then.
        """
        try:
            problem = await self._turns()
            await self._settle()
            return self._whole(problem)
        except asyncio.CancelledError as cancelled:
            raise CaseCancelled(self.seen()) from cancelled
        finally:
            self._collector.end(self._play)
            self._collector.end(self._aside)

    def seen(self) -> Trace | None:
        """Return what there is until now, if anything can be made of it."""
        if not self._played:
            return None
        try:
            return self._trace(self._collector.collect(self._play))
        except ProviderError as error:
            return error.trace

    def _whole(self, problem: str | None) -> Trace:
        """Return the trace, or raise for all that is wrong with it."""
        seen = self._collector.collect(self._play)
        problems = [problem, _extra_keys(seen), _late()]
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
            raise ProviderError(reason, trace)
        return trace

    def _trace(self, seen: Collected) -> Trace:
        return trace_of(self._case, self._played, seen, self._player.setup)

    async def _turns(self) -> str | None:
        """Send all messages; return why it ended early."""
        case, hooks = self._case, self._player.hooks
        try:
            with self._root("baton.hook", self._aside):
                state = await hooks.state(case)
        except ProviderError as error:
            return str(error)
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
                return f"turn {number}: {error}"
        return None

    async def _turn(self, number: int, expected: ExpectedTurn, session: dict[str, Any]) -> None:
        turn = PlayedTurn(input=expected.input, started=time.time())
        self._played.append(turn)
        target, case = self._player.target, self._case
        try:
            with self._root("baton.turn", self._play):
                first = case if target.whole_case else expected.input.plain()
                answer = await target.call(first, case, session)
        except Exception as error:
            turn.error = f"the function raised {worded(error)}"
            raise ProviderError(turn.error) from error
        finally:
            turn.ended = time.time()
        if isinstance(answer, Trace):
            raise ProviderError("the function returned a Trace: its spans are the trace here")
        if answer is not None:
            turn.stated = stated_turn(answer, f"turn{number}")
            if turn.stated.turn.error is not None:
                raise ProviderError(turn.stated.turn.error)

    @contextmanager
    def _root(self, name: str, owner: Play) -> Iterator[None]:
        """Start a trace of its own, below whose first span all others come to stand."""
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
        """Give spans a moment to end that do so in the background."""
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


def _late() -> str | None:
    """Tell of a framework that ran without its instrumentation."""
    off = built_in_off()
    if not off:
        return None
    return (
        f"`{off[0]}` was first imported during the case, too late for its spans: import it before"
    )


class Inline:
    """Plays cases here; what the program keeps in its modules is shared by all of them."""

    def __init__(self, setup: Setup) -> None:
        """Load the program; raises InputError."""
        self._player = Player(setup)

    async def open(self) -> None:
        """Do nothing: the program is loaded."""

    async def prepare(self) -> None:
        """Do nothing, as above."""

    async def close(self) -> None:
        """Do nothing: what the program set up stays."""

    async def play(self, case: Case) -> Trace:
        """Play a case; raises ProviderError, and CaseCancelled with what was seen."""
        return await self._player.start(case).run()
