"""The evaluators. Each has a module, named after its type.

Every evaluator can be imported from here by its class name. It takes its options as keywords::

    from baton.evaluators import AgentChain

    baton.score(traces, dataset, evaluators=[AgentChain(sequence_match_type="exact")])

``Judged`` is the class of all rubrics, and takes the name or file of one first::

    baton.score(traces, evaluators=[Judged("correctness", threshold=0.7)], judge="openai:gpt-5")

The class names of other tools are here, too, with the options of those tools. What they make
reports under the name that was asked for, or under ``name``::

    from baton.evaluators import CustomLLMJudge, SubAgentEvaluator, TaskCompletion

    CustomLLMJudge(name="DispatchCorrectness", rubric="...", input_mapping={...})

The evaluator's module is loaded on first use.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

from .registry import ClassName, all_evaluators, evaluator_entries

if TYPE_CHECKING:  # only for editors and type checkers; `make schemas` writes this list
    from .adk_custom_metric import AdkCustomMetric as AdkCustomMetric
    from .agent_chain import AgentChain as AgentChain
    from .announced_dispatch import AnnouncedDispatch as AnnouncedDispatch
    from .claims_supported import ClaimsSupported as ClaimsSupported
    from .contains import Contains as Contains
    from .context_carried import ContextCarried as ContextCarried
    from .cost import Cost as Cost
    from .dispatch_completed import DispatchCompleted as DispatchCompleted
    from .dispatch_limits import DispatchLimits as DispatchLimits
    from .dispatch_routing import DispatchRouting as DispatchRouting
    from .dispatch_scope import DispatchScope as DispatchScope
    from .dispatch_target_known import DispatchTargetKnown as DispatchTargetKnown
    from .duplicate_work import DuplicateWork as DuplicateWork
    from .equals import Equals as Equals
    from .guard_decisions import GuardDecisions as GuardDecisions
    from .handoff_loops import HandoffLoops as HandoffLoops
    from .interactions import Interactions as Interactions
    from .intermediate_responses import IntermediateResponses as IntermediateResponses
    from .judged import Judged as Judged
    from .latency import Latency as Latency
    from .panel import Panel as Panel
    from .response import Response as Response
    from .response_match import ResponseMatch as ResponseMatch
    from .result_contradicted import ResultContradicted as ResultContradicted
    from .result_used import ResultUsed as ResultUsed
    from .starts_with import StartsWith as StartsWith
    from .state_equals import StateEquals as StateEquals
    from .structured_output import StructuredOutput as StructuredOutput
    from .tokens import Tokens as Tokens
    from .tool_called import ToolCalled as ToolCalled
    from .tool_calls import ToolCalls as ToolCalls
    from .tool_trajectory_avg_score import ToolTrajectoryAvgScore as ToolTrajectoryAvgScore


def __getattr__(name: str) -> Any:
    module = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    if name[:1].isupper():
        try:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
        except ModuleNotFoundError:
            pass
        if any(name in entry.names for entry in all_evaluators()):
            return ClassName(name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def __dir__() -> list[str]:
    classes = (entry.target.__name__ for entry in evaluator_entries())
    others = (name for entry in all_evaluators() for name in entry.names if name[:1].isupper())
    return sorted({*globals(), "Judged", *classes, *others})
