"""For your own tests: ``assert_passes``, ``verdict``, faults to seed, and a scripted LLM.

:mod:`baton.testing.build` makes a trace, case or score in one line.

Each injector takes a trace and a ``random.Random``. It returns a copy with one fault and a
description of the fault, or ``None`` if the trace has no place for it. It does not depend on
evaluators.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from baton.model import Trace
from baton.testing.faults import Seeded

from .assertion import assert_passes, verdict, verdicts
from .faults import (
    announced_not_made,
    changed_value,
    dead_child,
    dropped_constraint,
    duplicate_work,
    ignored_result,
    loop,
    repeated_work,
    tool_outside_subset,
    unknown_target,
    unsupported_claim,
    wrong_target,
)
from .llm import Api, LlmServer, Received, Reply, ScriptError, llm_server

Injector = Callable[[Trace, Random], tuple[Trace, Seeded] | None]

FAULTS: dict[str, Injector] = {
    "wrong_target": wrong_target,
    "unknown_target": unknown_target,
    "dropped_constraint": dropped_constraint,
    "tool_outside_subset": tool_outside_subset,
    "ignored_result": ignored_result,
    "repeated_work": repeated_work,
    "changed_value": changed_value,
    "duplicate_work": duplicate_work,
    "loop": loop,
    "dead_child": dead_child,
    "unsupported_claim": unsupported_claim,
    "announced_not_made": announced_not_made,
}
"""Every injector by the kind of fault it seeds."""

__all__ = [
    "FAULTS",
    "Api",
    "Injector",
    "LlmServer",
    "Received",
    "Reply",
    "ScriptError",
    "Seeded",
    "announced_not_made",
    "assert_passes",
    "changed_value",
    "dead_child",
    "dropped_constraint",
    "duplicate_work",
    "ignored_result",
    "llm_server",
    "loop",
    "repeated_work",
    "tool_outside_subset",
    "unknown_target",
    "unsupported_claim",
    "verdict",
    "verdicts",
    "wrong_target",
]
