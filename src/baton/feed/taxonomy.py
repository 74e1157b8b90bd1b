"""Names of what fails: 30 subtypes in 5 categories, by the step of a dispatch that broke.

The categories are choosing, asking, working, using, and infrastructure. Each of Baton's findings
and evaluators belongs to one subtype. ``mast`` are the failure modes of MAST ("Why Do Multi-Agent
LLM Systems Fail?", arXiv 2503.13657) that say the same; MAST has none for most faults of
dispatches.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

Category = Literal["choosing", "asking", "working", "using", "running"]
CATEGORIES: dict[Category, str] = {
    "choosing": "which agent gets the work, and whether any should",
    "asking": "what the receiver gets",
    "working": "what the receiver does with it",
    "using": "how the sender uses the result",
    "running": "what happens around all of it",
}


class Subtype(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault.

    Attributes:
        name: its name.
        category: the step that broke.
        title: the title of its issues.
        means: one sentence.
        mast: failure modes of MAST.
        kinds: its kinds of findings.
        evaluators: evaluators whose failures belong to it if no finding is more specific.
    """

    name: str
    category: Category
    title: str
    means: str
    mast: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    evaluators: tuple[str, ...] = ()


def _of(
    category: Category,
    name: str,
    title: str,
    means: str,
    mast: str = "",
    kinds: str = "",
    evaluators: str = "",
) -> Subtype:
    return Subtype(
        name=name,
        category=category,
        title=title,
        means=means,
        mast=tuple(mast.split()),
        kinds=tuple(kinds.split()),
        evaluators=tuple(evaluators.split()),
    )


SUBTYPES: tuple[Subtype, ...] = (
    _of(
        "choosing",
        "wrong_target",
        "Wrong agent",
        "The work went to the wrong agent: another one is responsible for it.",
        kinds="wrong_target wrong_kind",
        evaluators="dispatch_routing agent_chain dispatch_correctness interactions",
    ),
    _of(
        "choosing",
        "unknown_target",
        "Unknown agent",
        "The work was meant for an agent that does not exist.",
        kinds="unknown_target misspelt_target",
        evaluators="dispatch_target_known",
    ),
    _of(
        "choosing",
        "refused_target",
        "Dispatch refused",
        "The framework or a policy did not let the sender reach that agent.",
        kinds="refused_target refused",
    ),
    _of(
        "choosing",
        "needless_dispatch",
        "Needless dispatch",
        "Work was handed over that the sender should have done itself, or that was not requested.",
        mast="FM-2.3",
        kinds="over_delegation",
    ),
    _of(
        "choosing",
        "missing_dispatch",
        "Missing dispatch",
        "The sender did the work of another agent itself, or left it undone.",
        mast="FM-1.2",
        kinds="under_delegation",
    ),
    _of(
        "choosing",
        "announced_not_made",
        "Announced, not made",
        "An agent announced that it hands the work over, but made no dispatch.",
        mast="FM-2.6",
        kinds="announced_not_made",
        evaluators="announced_dispatch",
    ),
    _of(
        "asking",
        "dropped_fact",
        "Fact dropped",
        "The receiver did not get a fact of the request.",
        mast="FM-1.4 FM-2.4",
        kinds="dropped prompt_lacks",
        evaluators="context_carried",
    ),
    _of(
        "asking",
        "dropped_constraint",
        "Limit dropped",
        "The receiver did not get a limit or a condition of the request.",
        mast="FM-1.4 FM-2.4",
        kinds="dropped_constraint",
    ),
    _of(
        "asking",
        "not_received",
        "Prompt not received",
        "The sender's prompt, or a finding of an earlier agent, did not reach the receiver.",
        mast="FM-1.4 FM-2.1",
        kinds="not_received output_not_carried",
    ),
    _of(
        "asking",
        "too_much_context",
        "Too much context",
        "The receiver was given far more than it needs.",
    ),
    _of(
        "asking",
        "unclear_task",
        "Unclear task",
        "The prompt does not say what to do.",
        mast="FM-2.2",
    ),
    _of(
        "asking",
        "wrong_tools_given",
        "Wrong tools given",
        "The receiver was given tools that do not fit its task.",
        kinds="wrong_tools",
    ),
    _of(
        "working",
        "tool_outside_scope",
        "Tool outside of the scope",
        "The receiver used, or tried, a tool that it may not use.",
        mast="FM-1.2",
        kinds="tool_executed tool_attempted",
        evaluators="dispatch_scope scope_fidelity",
    ),
    _of(
        "working",
        "unknown_tool",
        "Unknown tool",
        "An agent called a tool that it does not have.",
        kinds="unknown_tool",
    ),
    _of(
        "working",
        "wrong_call",
        "Wrong tool call",
        "A tool was called with the wrong arguments, or the wrong tool, or none.",
        mast="FM-1.1",
        evaluators="tool_calls tool_called tool_trajectory_avg_score trajectory",
    ),
    _of(
        "working",
        "dead_child",
        "Receiver failed",
        "The receiver failed, was stopped, or never answered.",
        mast="FM-3.1",
        kinds="failed killed unanswered receiver_failed",
        evaluators="dispatch_completed",
    ),
    _of(
        "working",
        "empty_answer",
        "Empty answer",
        "The receiver returned nothing, or an error as its answer.",
        mast="FM-3.1",
        kinds="empty_answer error_answer",
    ),
    _of(
        "working",
        "task_not_done",
        "Task not done",
        "The receiver did something other than its task, or only a part of it.",
        mast="FM-1.1 FM-2.3 FM-3.1",
        evaluators="task_completion",
    ),
    _of(
        "using",
        "ignored_result",
        "Result ignored",
        "The sender continued as if nothing had come back.",
        mast="FM-2.5",
        kinds="ignored",
        evaluators="result_used result_integration",
    ),
    _of(
        "using",
        "regenerated",
        "Work done again",
        "The sender did the work of the receiver again.",
        mast="FM-1.3 FM-2.5",
        kinds="regenerated",
    ),
    _of(
        "using",
        "contradicted_result",
        "Result contradicted",
        "The sender contradicts the result, without a reason.",
        mast="FM-2.5 FM-2.6",
        kinds="contradicted limit_broken",
        evaluators="result_contradicted",
    ),
    _of(
        "using",
        "claim_without_evidence",
        "Claim without evidence",
        "An answer claims something that no step shows: an action or a finding.",
        mast="FM-3.2 FM-3.3",
        kinds="unsupported_claim contradicted_claim",
        evaluators="claims_supported",
    ),
    _of(
        "using",
        "hidden_failure",
        "Failure not reported",
        "Something failed below, and the answer does not say so.",
        mast="FM-2.4 FM-3.2",
        kinds="hidden_failure",
    ),
    _of(
        "using",
        "wrong_answer",
        "Wrong answer",
        "The answer is not the expected one.",
        mast="FM-3.3",
        evaluators="response response_match contains equals starts_with structured_output",
    ),
    _of(
        "running",
        "loop",
        "Going round in circles",
        "Agents hand the same work to one another, or repeat a call, with nothing new.",
        mast="FM-1.3 FM-1.5",
        kinds="hand_off_cycle repeated_dispatch repeated_call",
        evaluators="handoff_loops",
    ),
    _of(
        "running",
        "repeated_work",
        "Work done twice",
        "Two agents did the same work, or one repeated work that its sender had the results of.",
        mast="FM-1.3",
        kinds="duplicate_work repeats_caller",
        evaluators="duplicate_work",
    ),
    _of(
        "running",
        "over_limit",
        "Over a limit",
        "A run took more dispatches, tokens, money or time than it may.",
        evaluators="dispatch_limits cost latency tokens",
    ),
    _of(
        "running",
        "infrastructure",
        "Infrastructure",
        "A model, a tool's server or the network failed for many agents at once.",
    ),
    _of(
        "running",
        "unsafe",
        "Unsafe or private content",
        "An answer contains secrets, personal data or harmful content.",
        evaluators="pii toxicity",
    ),
    _of(
        "running",
        "other",
        "Other failure",
        "A fault that fits none of the other subtypes.",
    ),
)
OTHER = SUBTYPES[-1]


@cache
def _index() -> tuple[dict[str, Subtype], dict[str, Subtype]]:
    kinds = {kind: each for each in SUBTYPES for kind in each.kinds}
    return kinds, {name: each for each in SUBTYPES for name in each.evaluators}


def subtype_of(fault: str) -> Subtype:
    """Return the subtype of a fault: by the kind of a finding, or the type of an evaluator."""
    kinds, evaluators = _index()
    return kinds.get(fault) or evaluators.get(fault) or OTHER


def subtype_named(name: str) -> Subtype | None:
    """Return a subtype by its name."""
    return next((each for each in SUBTYPES if each.name == name), None)
