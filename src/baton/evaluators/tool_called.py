"""``tool_called``: whether a tool was called, how often, and by whom.

Strands calls it ``ToolCalled``.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from baton.model import AgentRun, EvalContext, Evidence, Score, Trace, known
from baton.model.views import PlacedCall, placed_calls, run_names
from baton.plugins import FROM_CASES, Alias

from .base_evaluator import Details, TraceEvaluator, Unscored, WholeTrace, describe

Count = Annotated[int, msgspec.Meta(ge=0)]


class MadeCall(Details, kw_only=True):
    """A call of the tool: its id, its caller, and its outcome."""

    call: str
    agent: str
    status: str


class ToolCalledDetails(Details, kw_only=True):
    """The calls of the tool that count, in time order."""

    calls: list[MadeCall]


class ToolCalled(TraceEvaluator, frozen=True, kw_only=True):
    """Counts the calls of a tool in all turns, including those that dispatch work."""

    type = "tool_called"
    summary = "whether a tool was called, how often, and by whom"
    details = ToolCalledDetails
    takes = "incomplete"
    doubt_decides = True
    aliases = (Alias("tool_called", "ToolCalled", renames={"tool_name": "tool"}),)

    tool: Annotated[str, FROM_CASES, describe("The tool to look for.")]
    agent: Annotated[
        str | None, FROM_CASES, describe("The agent whose calls count; all by default.")
    ] = None
    min_calls: Annotated[
        Count | None, describe("The least number of calls: 1, or 0 with `max_calls`.")
    ] = None
    max_calls: Annotated[
        Count | None, describe("The largest number of calls; `0`: none at all.")
    ] = None

    def check(self) -> None:
        """Check that a tool is named and that the limits leave room."""
        if not self.tool:
            raise ValueError("`tool` is empty, so it checks nothing")
        if self.max_calls is not None and _least(self.min_calls, self.max_calls) > self.max_calls:
            raise ValueError("`max_calls` is less than `min_calls`")

    @property
    def least(self) -> int:
        """The lowest number of calls required: one, unless the options set another number."""
        return _least(self.min_calls, self.max_calls)

    def score(self, whole: WholeTrace) -> Score | Unscored:
        """Return one score for the trace: 1 or 0. A call that failed or was refused counts.

        The score is ``error`` if a turn broke or was not played. It is ``skipped`` if calls that
        were not recorded could change the verdict.
        """
        trace, context = whole.trace, whole.context
        calls: list[PlacedCall] = []
        for turn in trace.turns:
            for run, call in placed_calls(turn.runs, dispatches="include"):
                if call.name == self.tool and self._is_ours(trace, run, context):
                    calls.append((run, call))
        over = self.max_calls is not None and len(calls) > self.max_calls
        open_ = len(calls) < self.least or self.max_calls is not None
        if not over and open_ and (not_recorded := self._not_recorded(trace, context)) is not None:
            return Unscored("skipped", not_recorded)
        met = not over and len(calls) >= self.least
        details = ToolCalledDetails(
            calls=[
                MadeCall(call=call.id, agent=run.agent, status=call.status) for run, call in calls
            ]
        )
        proof = [Evidence(ids=[call.id]) for _, call in calls] if over else []
        count = len(calls)
        by = f" by `{self.agent}`" if self.agent else ""
        times = "called once" if count == 1 else f"called {count} times"
        was = f"was {times}" if count else "was never called"
        wanted = f"at least {self.least}" if self.least else ""
        if self.max_calls is not None:
            wanted += f"{', ' if wanted else ''}at most {self.max_calls}"
        return self.scored(
            float(met), f"`{self.tool}` {was}{by}; expected {wanted}", details, proof
        )

    def _is_ours(self, trace: Trace, run: AgentRun, context: EvalContext) -> bool:
        agent = self.agent
        if agent is None:
            return True
        names = run_names(trace, run) if known(trace, run, "agent") else []
        return agent in [context.agent_names.get(name, name) for name in names]

    def _not_recorded(self, trace: Trace, context: EvalContext) -> str | None:
        """Return what was not recorded about the calls."""
        for number, turn in enumerate(trace.turns, 1):
            if not known(trace, turn, "runs"):
                return f"turn {number}: not all agents that ran were recorded"
            for run in turn.runs:
                nameless = self.agent is not None and not known(trace, run, "agent")
                if not nameless and not self._is_ours(trace, run, context):
                    may_have_called = False
                else:
                    named = (call.name for _, call in placed_calls([run], dispatches="include"))
                    may_have_called = not known(trace, run, "steps.tool_call") or (
                        nameless and self.tool in named
                    )
                if may_have_called:
                    return f"turn {number}: not all tool calls of `{run.agent}` were recorded"
        return None


def _least(min_calls: int | None, max_calls: int | None) -> int:
    if min_calls is not None:
        return min_calls
    return 1 if max_calls is None else 0
