"""The evaluators that run if nothing names any: with cases, by what these state, and without.

``baton.config.choose_evaluators`` chooses between these and those that a config or a command names.
"""

from __future__ import annotations

DEFAULT_EVALUATORS = ("agent_chain",)
"""What ``baton score`` uses with cases. What else these state is named in a note."""

STATED = (
    ("agents", "agent_chain"),
    ("dispatches", "dispatch_routing"),
    ("tools", "tool_calls"),
    ("response", "response"),
    ("response_contains", "response"),
    ("response_not_contains", "response"),
    ("structured", "structured_output"),
    ("interactions", "interactions"),
    ("final_state", "state_equals"),
)
"""The statements of a case, each with the evaluator that checks it. ``baton eval`` chooses by them,
as playing a case costs money, and all that it states should be checked."""

# `duplicate_work` and `result_contradicted` need no case, either. But a caller may ask twice on
# purpose, or state another value: they run if they are named, and in `baton blame`, which looks for
# all faults. docs/accuracy.md has the false alarms of each.
PROVEN_BY_RECORD = (
    "dispatch_target_known",
    "dispatch_scope",
    "dispatch_completed",
    "context_carried",
    "result_used",
    "handoff_loops",
    "claims_supported",
    "announced_dispatch",
)
"""Without cases: they use the record alone. All are optional, as a run without a dispatch has
nothing to score for most of them."""
