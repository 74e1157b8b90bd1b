"""Guards in agents of Strands, as hooks.

    desk = Agent(name="desk", tools=[lab.as_tool()], hooks=[GuardHooks(guard)])

Each agent gets its own, and needs a distinct name. Open ``guard.run(request=...)`` around a swarm
or a graph.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from strands.hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeToolCallEvent,
    HookProvider,
    HookRegistry,
)

from baton.model import RefusedError
from baton.providers.frameworks.running_agents import prompt_of, receiver_of

from .decide_event import Decision
from .framework_calls import Call, begin_call, begin_run, end_call, tell
from .runtime import Guard, Place

__all__ = ["GuardHooks"]


class GuardHooks(HookProvider):  # type: ignore[misc]
    """Asks a guard before tools run, before agents start, and before their answers are read.

    If a rule says `ask` and the guard has no `ask` function, the agent is interrupted; the answer
    ``True`` lets the call pass.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._runs: WeakKeyDictionary[Any, Place] = WeakKeyDictionary()
        self._calls: WeakKeyDictionary[Any, dict[str, Call]] = WeakKeyDictionary()

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """Register the hooks of one agent."""
        registry.add_callback(BeforeInvocationEvent, self._start)
        registry.add_callback(AfterInvocationEvent, self._stop)
        registry.add_callback(AfterModelCallEvent, self._tell)
        registry.add_callback(BeforeToolCallEvent, self._call)
        registry.add_callback(AfterToolCallEvent, self._read)

    def _start(self, event: BeforeInvocationEvent) -> None:
        messages = event.messages or []
        texts = [
            block["text"]
            for message in messages[-1:]
            for block in message.get("content", [])
            if "text" in block
        ]
        if not texts and event.agent in self._runs:  # it continues after an interrupt
            return
        try:
            place = begin_run(self._guard, event.agent.name, "\n".join(texts) or None)
        except RefusedError as refused:
            event.cancel = str(refused)
            return
        self._runs[event.agent] = place

    def _stop(self, event: AfterInvocationEvent) -> None:
        if event.result is not None and event.result.stop_reason == "interrupt":
            return
        place = self._runs.pop(event.agent, None)
        if place is not None:
            self._guard.stop(place)

    def _tell(self, event: AfterModelCallEvent) -> None:
        place = self._runs.get(event.agent)
        message: Any = event.stop_response.message if event.stop_response else {}
        used = message.get("metadata", {}).get("usage")
        if place is not None and used:
            tell(
                self._guard,
                place,
                input_tokens=used["inputTokens"],
                output_tokens=used["outputTokens"],
                cached=used.get("cacheReadInputTokens"),
                model=event.agent.model.get_config().get("model_id"),
            )

    def _call(self, event: BeforeToolCallEvent) -> None:
        place = self._runs.get(event.agent)
        if place is None:
            return
        use = event.tool_use
        name, arguments = use["name"], use["input"]

        def ask(decision: Decision) -> bool:
            return event.interrupt(f"guard:{name}", reason=decision.reason) is True

        function = getattr(event.selected_tool, "_tool_func", None)
        try:
            if getattr(function, "__module__", None) == "strands.multiagent.swarm":
                # `handoff_to_agent` transfers control when this agent has finished.
                to = str(arguments.get("agent_name"))
                self._guard.granted[place.tree, to] = self._guard.start(
                    to, by=place, transfer=True, ask=ask
                )
                return
            agent = getattr(event.selected_tool, "agent", None)
            receiver = _agent_name(agent) or receiver_of(function, arguments, _agent_name)
            prompt = None if receiver is None else prompt_of(arguments, receiver)
            call = begin_call(
                self._guard, place, name, arguments, to=receiver, prompt=prompt, ask=ask
            )
        except RefusedError as refused:
            event.cancel_tool = str(refused)
            return
        self._calls.setdefault(event.agent, {})[use["toolUseId"]] = call

    async def _read(self, event: AfterToolCallEvent) -> None:
        call = self._calls.get(event.agent, {}).pop(event.tool_use["toolUseId"], None)
        if call is None:
            return
        try:
            content: Any = await self._guard.later(call.read_blocks, event.result["content"])
        except RefusedError as refused:
            content = [{"text": str(refused)}]
        finally:
            end_call(call)
        if content is not event.result["content"]:
            event.result = {**event.result, "content": content}


def _agent_name(value: Any) -> str | None:
    from strands.agent.base import AgentBase

    return getattr(value, "name", None) if isinstance(value, AgentBase) else None
