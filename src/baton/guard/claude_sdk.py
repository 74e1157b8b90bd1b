"""Guards in programs of the Claude Agent SDK, as hooks of its options.

    options = ClaudeAgentOptions(hooks=guard_hooks(guard))

What they decide is what the hooks of Claude Code decide, see :mod:`baton.guard.claude`.
"""

from __future__ import annotations

from typing import Any

from claude_agent_sdk import HookMatcher

from .claude import EVENTS, answer_of
from .runtime import Guard

__all__ = ["guard_hooks"]


def guard_hooks(guard: Guard) -> dict[Any, list[HookMatcher]]:
    """Return hooks that ask a guard before tools and sub-agents run, and before answers are read.

    Where a rule says `ask`, and the guard has no `ask` of its own, Claude Code asks by its
    permissions (``can_use_tool``). What fails in a hook blocks.
    """

    async def hook(told: Any, _call: Any, _context: Any) -> Any:
        return answer_of(guard, told) or {}

    return {
        event: [HookMatcher(matcher=matcher, hooks=[hook], on_failure="block")]
        for event, matcher in EVENTS.items()
    }
