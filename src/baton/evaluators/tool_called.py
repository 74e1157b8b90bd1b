"""``tool_called``: whether a tool was called, how often, and by whom.

Known to Strands as ``ToolCalled``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import msgspec

from baton.model import AgentRun, Case, EvalContext, Evidence, Score, Trace, Unit, known
from baton.model.views import PlacedCall, placed_calls, run_names
from baton.plugins import FROM_CASES

from .base import OptionedEvaluator, not_played_or_broken

Count = Annotated[int, msgspec.Meta(ge=0)]


class ToolCalledOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options; ``agent`` counts the calls of one agent only. No call at all: ``max_calls: 0``."""

    tool: Annotated[str, FROM_CASES]
    agent: Annotated[str | None, FROM_CASES] = None
    min_calls: Count | None = None
    max_calls: Count | None = None

    def __post_init__(self) -> None:
        if not self.tool:
            raise ValueError("`tool` is empty, which says nothing")
        if self.max_calls is not None and self.least > self.max_calls:
            raise ValueError("`max_calls` is less than `min_calls`")

    @property
    def least(self) -> int:
        """How many calls there have to be: one, unless the options say otherwise."""
        if self.min_calls is not None:
            return self.min_calls
        return 1 if self.max_calls is None else 0


class ToolCalled(OptionedEvaluator[ToolCalledOptions]):
    """Counts the calls of a tool in all turns, those that hand work over among them."""

    type = "tool_called"
    version = "1"
    unit: ClassVar[Unit] = "trace"
    options_type = ToolCalledOptions

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Give one score for the trace: 1 or 0. A call that failed or was refused counts.

        ``error`` when a turn broke or was not played; ``skipped`` when calls that were not
        recorded could change the verdict.
        """
        trouble = not_played_or_broken(trace, case)
        if trouble is not None:
            return [self.unscored("error", trouble)]
        options = self.options
        calls = list(self._calls(trace, context))
        over = options.max_calls is not None and len(calls) > options.max_calls
        open_ = len(calls) < options.least or options.max_calls is not None
        if not over and open_ and (untold := self._untold(trace, context)) is not None:
            return [self.unscored("skipped", untold)]
        met = not over and len(calls) >= options.least
        details = {**self.option_details(), "calls": [_row(placed) for placed in calls]}
        proof = [Evidence(ids=[placed.call.id]) for placed in calls] if over else []
        return [self.scored(float(met), self._said(len(calls)), details, proof)]

    def _calls(self, trace: Trace, context: EvalContext) -> Iterator[PlacedCall]:
        for turn in trace.turns:
            for placed in placed_calls(turn.runs, dispatches="include"):
                if placed.call.name == self.options.tool and self._is_ours(
                    trace, placed.run, context
                ):
                    yield placed

    def _is_ours(self, trace: Trace, run: AgentRun, context: EvalContext) -> bool:
        agent = self.options.agent
        if agent is None:
            return True
        names = run_names(trace, run) if known(trace, run, "agent") else []
        return agent in [context.agent_names.get(name, name) for name in names]

    def _untold(self, trace: Trace, context: EvalContext) -> str | None:
        """Say what of the calls was not recorded."""
        for number, turn in enumerate(trace.turns, 1):
            if not known(trace, turn, "runs"):
                return f"turn {number}: not all agents that ran were recorded"
            for run in turn.runs:
                if self._may_have_called(trace, run, context):
                    return f"turn {number}: not all tool calls of `{run.agent}` were recorded"
        return None

    def _may_have_called(self, trace: Trace, run: AgentRun, context: EvalContext) -> bool:
        nameless = self.options.agent is not None and not known(trace, run, "agent")
        if not nameless and not self._is_ours(trace, run, context):
            return False
        named = (call.call.name for call in placed_calls([run], dispatches="include"))
        return not known(trace, run, "steps.tool_call") or (nameless and self.options.tool in named)

    def _said(self, count: int) -> str:
        options = self.options
        by = f" by `{options.agent}`" if options.agent else ""
        times = "once" if count == 1 else f"{count} times" if count else "never"
        wanted = f"at least {options.least}" if options.least else ""
        if options.max_calls is not None:
            wanted += f"{', ' if wanted else ''}at most {options.max_calls}"
        return f"`{options.tool}` was called {times}{by}; expected {wanted}"


def _row(placed: PlacedCall) -> dict[str, Any]:
    return {"call": placed.call.id, "agent": placed.run.agent, "status": placed.call.status}
