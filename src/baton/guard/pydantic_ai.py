"""Guards in agents of Pydantic AI, as a capability.

    desk = Agent(model, name="desk", tools=[ask_lab], capabilities=[GuardCapability(guard)])

Each agent gets its own, and needs a distinct name.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import ApprovalRequired
from pydantic_ai.capabilities import AbstractCapability

from baton.providers.frameworks.running_agents import prompt_of, receiver_of

from .decide_event import Decision
from .framework_calls import begin_run, call_later, tell
from .runtime import Ask, Guard, Place

__all__ = ["GuardCapability"]


class GuardCapability(AbstractCapability[Any]):
    """Asks a guard before tools run, before agents start, and before their answers are read.

    Args:
        guard: the guard.
        approvals: if a rule says `ask`, the call waits for an approval; for agents with
            ``DeferredToolRequests`` in their ``output_type``.
    """

    def __init__(self, guard: Guard, *, approvals: bool = False) -> None:
        self._guard = guard
        self._approvals = approvals
        self._places: dict[str, Place] = {}

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        """Check whether the agent may start.

        Raises:
            RefusedError: it may not. The tool that would start it returns the reason.
        """
        name = ctx.agent.name if ctx.agent is not None and ctx.agent.name else "agent"
        place = begin_run(self._guard, name, ctx.prompt, shared=bool(ctx.messages))
        self._places[ctx.run_id] = place
        try:
            return await handler()
        finally:
            del self._places[ctx.run_id]
            self._guard.stop(place)

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        """Report the model's usage."""
        del request_context
        used, place = response.usage, self._places.get(ctx.run_id)
        if place is not None:
            cached = used.cache_read_tokens or 0
            tell(
                self._guard,
                place,
                input_tokens=used.input_tokens - cached,
                output_tokens=used.output_tokens,
                cached=cached,
                model=response.model_name,
            )
        return response

    async def wrap_tool_execute(
        self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        """Call a tool if that is allowed; else the model reads the reason."""
        del tool_def
        place = self._places.get(ctx.run_id)
        if place is None:
            return await handler(args)
        to = receiver_of(_function(ctx, call.tool_name), args, _agent_name)
        return await call_later(
            self._guard,
            place,
            call.tool_name,
            args,
            lambda: handler(args),
            to=to,
            prompt=None if to is None else prompt_of(args, to),
            ask=self._ask_for(ctx),
        )

    def _ask_for(self, ctx: Any) -> Ask | None:
        if not self._approvals:
            return None

        def ask(decision: Decision) -> bool:
            if ctx.tool_call_approved:
                return True
            raise ApprovalRequired({"guard": decision.reason})

        return ask


def _function(ctx: Any, name: str) -> Any:
    """Return the function of a tool; ``None`` if it has none, or is not a local function."""
    tools = ctx.tool_manager.tools if ctx.tool_manager is not None else None
    tool = tools.get(name) if tools else None
    held = getattr(getattr(tool, "toolset", None), "tools", None)
    own = held.get(name) if isinstance(held, dict) else None
    return getattr(own, "function", None)


def _agent_name(value: Any) -> str | None:
    from pydantic_ai.agent import AbstractAgent

    return value.name if isinstance(value, AbstractAgent) else None
