"""Guards in agents of OpenAI's Agents SDK.

    desk = guarded(guard, Agent(name="desk", tools=[lab.as_tool("ask_lab", "Ask the lab.")]))
    await Runner.run(desk, message)

Agents that it hands off to, or has as tools, are guarded with it. Tools that OpenAI itself runs
(web search, code) cannot be checked before they run.
"""

from __future__ import annotations

import copy
import json
from collections import OrderedDict
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from agents import Agent, AgentHooks, FunctionTool, Handoff, handoff

from baton.model import RefusedError
from baton.providers.frameworks.running_agents import prompt_of, receiver_of

from .framework_calls import Call, begin_run, call_later, current_call, tell
from .runtime import Guard, Place

__all__ = ["guarded"]

_KEPT = 10_000
"""The most runs whose agents are remembered: no hook reports the end of an aborted run."""
AnyAgent = TypeVar("AnyAgent", bound=Agent[Any])


def guarded(guard: Guard, agent: AnyAgent) -> AnyAgent:
    """Make an agent and all its receivers ask a guard; returns the agent.

    For a refused tool, hand-off or answer the model gets the reason. If a rule says `ask`, the
    guard's own `ask` is called.
    """
    _Guarded(guard).take(agent)
    return agent


class _Run(NamedTuple):
    """A run, with its key, and the places of its agents."""

    usage: Any
    call: Call | None
    places: dict[str, Place]


class _Guarded:
    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._seen: dict[int, Any] = {}
        self._runs: OrderedDict[tuple[int, int], _Run] = OrderedDict()

    def take(self, agent: Any) -> None:
        """Add hooks to an agent, and to the agents that it knows."""
        if id(agent) in self._seen or not isinstance(agent, Agent):
            return
        self._seen[id(agent)] = agent
        agent.hooks = _Hooks(self, agent.hooks)
        offered = agent.get_all_tools

        async def get_all_tools(run_context: Any) -> list[Any]:
            return [self._tool(each) for each in await offered(run_context)]

        # Tools of MCP servers are only known when a model is called.
        agent.get_all_tools = get_all_tools
        for tool in agent.tools:
            self.take(getattr(tool, "_agent_instance", None))
        agent.handoffs = [self._handoff(agent, each) for each in agent.handoffs]

    def place(self, context: Any, agent: Any) -> Place | None:
        """Return the place of an agent of a run."""
        run = self._runs.get(self._key(context))
        return None if run is None else run.places.get(agent.name)

    def enter(self, context: Any, agent: Any) -> None:
        """Check whether an agent may start; a transfer has been checked already."""
        key = self._key(context)
        run = self._runs.setdefault(key, _Run(context.usage, current_call(self.guard), {}))
        if agent.name not in run.places:
            request = context.turn_input
            shared = isinstance(request, list) and len(request) > 1
            run.places[agent.name] = begin_run(
                self.guard, agent.name, _prompt_of(request), shared=shared
            )
        while len(self._runs) > _KEPT:
            self._runs.popitem(last=False)

    def leave(self, context: Any) -> None:
        """Record that a run has ended."""
        run = self._runs.pop(self._key(context), None)
        for place in run.places.values() if run is not None else ():
            self.guard.stop(place)

    def _key(self, context: Any) -> tuple[int, int]:
        # All contexts of a run share its usage, and so does the run of an agent as a tool, which is
        # inside another call.
        return id(context.usage), id(current_call(self.guard))

    def _tool(self, tool: Any) -> Any:
        if not isinstance(tool, FunctionTool):
            return tool
        run = tool.on_invoke_tool
        function = getattr(tool, "__wrapped__", None)
        agent = getattr(tool, "_agent_instance", None)

        async def invoke(context: Any, arguments: str) -> Any:
            by = self.place(context, context.agent) if context.agent is not None else None
            if by is None:
                return await run(context, arguments)
            call_arguments = _decoded(arguments)
            to = (
                agent.name
                if agent is not None
                else receiver_of(function, call_arguments, _agent_name)
            )
            return await call_later(
                self.guard,
                by,
                tool.name,
                call_arguments,
                lambda: run(context, arguments),
                to=to,
                prompt=None if to is None else prompt_of(call_arguments, to),
            )

        changed = copy.copy(tool)
        changed.on_invoke_tool = invoke
        return changed

    def _handoff(self, owner: Any, given: Any) -> Any:
        if isinstance(given, Agent):
            self.take(given)
        made: Handoff[Any, Any] = handoff(given) if isinstance(given, Agent) else given
        self.take(made._agent_ref() if made._agent_ref is not None else None)
        changed = copy.copy(made)

        async def invoke(context: Any, arguments: str) -> Any:
            _REFUSED.set(None)
            by = self.place(context, owner)
            if by is None:
                return await made.on_invoke_handoff(context, arguments)
            try:
                place = self.guard.start(
                    made.agent_name, by=by, transfer=True, shared=made.input_filter is None
                )
            except RefusedError as refused:
                _REFUSED.set(str(refused))
                return owner
            agent = await made.on_invoke_handoff(context, arguments)
            self._runs[self._key(context)].places[agent.name] = place
            return agent

        def transfer_message(agent: Any) -> str:
            return _REFUSED.get() or made.get_transfer_message(agent)

        def filtered(data: Any) -> Any:
            return data if _REFUSED.get() or made.input_filter is None else made.input_filter(data)

        changed.on_invoke_handoff = invoke
        changed.get_transfer_message = transfer_message
        if made.input_filter is not None:
            changed.input_filter = filtered
        return changed


_REFUSED: ContextVar[str | None] = ContextVar("baton_guard_refused", default=None)
"""Why a hand-off was refused. The sender then keeps control: it is handed control by itself, and
reads the reason in place of the name of the next agent.
"""


class _Hooks(AgentHooks[Any]):  # type: ignore[misc]
    """Receives agent starts and model usage, in addition to the agent's own hooks."""

    def __init__(self, guarded: _Guarded, own: Any) -> None:
        self._guarded = guarded
        self._own = own

    async def on_start(self, context: Any, agent: Any) -> None:
        self._guarded.enter(context, agent)
        if self._own is not None:
            await self._own.on_start(context, agent)

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        self._guarded.leave(context)
        if self._own is not None:
            await self._own.on_end(context, agent, output)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        place, used = self._guarded.place(context, agent), response.usage
        if place is not None and used.requests:
            details = used.input_tokens_details
            cached = (details.cached_tokens or 0) if details is not None else 0
            model = agent.model if isinstance(agent.model, str) else None
            tell(
                self._guarded.guard,
                place,
                input_tokens=used.input_tokens - cached,
                output_tokens=used.output_tokens,
                cached=cached,
                model=model or getattr(agent.model, "model", None),
            )
        if self._own is not None:
            await self._own.on_llm_end(context, agent, response)

    async def on_llm_start(self, *args: Any, **named: Any) -> None:
        if self._own is not None:
            await self._own.on_llm_start(*args, **named)

    async def on_handoff(self, *args: Any, **named: Any) -> None:
        if self._own is not None:
            await self._own.on_handoff(*args, **named)

    async def on_tool_start(self, *args: Any, **named: Any) -> None:
        if self._own is not None:
            await self._own.on_tool_start(*args, **named)

    async def on_tool_end(self, *args: Any, **named: Any) -> None:
        if self._own is not None:
            await self._own.on_tool_end(*args, **named)


def _prompt_of(items: Any) -> str | None:
    """Return an agent's prompt: the last text of its input."""
    last = items[-1] if isinstance(items, list) and items else items
    content = last.get("content") if isinstance(last, dict) else last
    if isinstance(content, list):
        texts = [part["text"] for part in content if isinstance(part, dict) and "text" in part]
        return "\n".join(texts) or None
    return content if isinstance(content, str) else None


def _decoded(arguments: str) -> Any:
    try:
        return json.loads(arguments) if arguments else {}
    except ValueError:
        return arguments


def _agent_name(value: Any) -> str | None:
    return value.name if isinstance(value, Agent) else None
