"""Guards in programs of Google ADK, as a plug-in.

    runner = InMemoryRunner(app=App(name="desk", root_agent=desk, plugins=[GuardPlugin(guard)]))

One plug-in covers all agents of a runner, and those that ``AgentTool`` runs.
"""

from __future__ import annotations

from typing import Any

import msgspec
from google.adk.agents import BaseAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from baton.model import RefusedError
from baton.providers.frameworks.running_agents import prompt_of

from .decide_event import Decision
from .framework_calls import Call, begin_call, begin_run, current_call, end_call, tell
from .runtime import Guard, Place

__all__ = ["GuardPlugin"]

_WORKFLOWS = (SequentialAgent, ParallelAgent, LoopAgent)
"""Workflow agents call no model and say nothing; the program counts as the starter of their
sub-agents.
"""
_TRANSFER = "transfer_to_agent"


class GuardPlugin(BasePlugin):  # type: ignore[misc]
    """Asks a guard before tools run, before agents start, and before their answers are read.

    A refused call returns ``{"error": reason}`` to the model. If a rule says `ask` and the guard
    has no `ask` function, the call waits for ADK's confirmation.
    """

    def __init__(self, guard: Guard, name: str = "baton_guard") -> None:
        super().__init__(name=name)
        self._guard = guard
        self._trees: dict[str, Place] = {}
        self._agents: dict[tuple[str, str], Place] = {}
        self._calls: dict[tuple[str, str], Call] = {}

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Start a tree, or continue the one that this run belongs to."""
        id_ = invocation_context.invocation_id
        call, granted = current_call(self._guard), None
        if call is None:
            request = _text(invocation_context.user_content)
            self._trees[id_] = self._guard.place or self._guard.begin(None, request)
        elif isinstance(invocation_context.agent, _WORKFLOWS):
            # If a workflow is a tool, it is the agent that the caller knows.
            granted, call.granted = call.granted, None
        if granted is not None:
            self._trees[id_] = msgspec.structs.replace(
                granted, agent=None, runs=[granted.agent or ""]
            )

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Forget a run."""
        self._forget(invocation_context.invocation_id)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """Forget a run that failed."""
        del error
        self._forget(invocation_context.invocation_id)

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: Any
    ) -> types.Content | None:
        """Check whether an agent may start; if not, its answer is the reason."""
        if isinstance(agent, _WORKFLOWS):
            return None
        id_ = callback_context.invocation_id
        try:
            tree = self._trees.get(id_)
            if tree is None:
                place = begin_run(self._guard, agent.name, _text(callback_context.user_content))
            else:
                # Without contents it reads only the last message.
                shared = getattr(agent, "include_contents", "default") == "default"
                place = self._guard.start(agent.name, by=tree, shared=shared)
        except RefusedError as refused:
            return types.Content(role="model", parts=[types.Part(text=str(refused))])
        self._agents[id_, agent.name] = place
        return None

    async def after_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> None:
        """Record that an agent has finished."""
        place = self._agents.get((callback_context.invocation_id, agent.name))
        if place is not None:
            self._guard.stop(place)

    async def after_model_callback(
        self, *, callback_context: Any, llm_response: LlmResponse
    ) -> None:
        """Report the model's usage."""
        used = llm_response.usage_metadata
        place = self._agents.get((callback_context.invocation_id, callback_context.agent_name))
        if place is not None and used is not None and not llm_response.partial:
            cached = used.cached_content_token_count or 0
            tell(
                self._guard,
                place,
                input_tokens=(used.prompt_token_count or 0) - cached,
                output_tokens=(used.candidates_token_count or 0) + (used.thoughts_token_count or 0),
                cached=cached,
                model=llm_response.model_version,
            )

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        """Check whether a tool may be called, or a dispatch may be made."""
        place = self._agents.get((tool_context.invocation_id, tool_context.agent_name))
        if place is None:
            return None

        def ask(decision: Decision) -> bool:
            confirmation = tool_context.tool_confirmation
            if confirmation is not None:
                return bool(confirmation.confirmed)
            tool_context.request_confirmation(hint=decision.reason)
            tool_context.actions.skip_summarization = True
            return False

        try:
            if tool.name == _TRANSFER:
                to = str(tool_args.get("agent_name"))
                self._guard.granted[place.tree, to] = self._guard.start(
                    to, by=place, transfer=True, ask=ask
                )
                return None
            agent = getattr(tool, "agent", None)
            receiver = agent.name if isinstance(agent, BaseAgent) else None
            call = begin_call(
                self._guard,
                place,
                tool.name,
                tool_args,
                to=receiver,
                prompt=None if receiver is None else prompt_of(tool_args, receiver),
                ask=ask,
            )
        except RefusedError as refused:
            return {"error": str(refused)}
        self._calls[tool_context.invocation_id, tool_context.function_call_id] = call
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> Any:
        """Return what the caller may read of an agent's answer."""
        del tool, tool_args
        call = self._calls.pop((tool_context.invocation_id, tool_context.function_call_id), None)
        if call is None:
            return None
        try:
            read = await self._guard.later(call.read, result)
        except RefusedError as refused:
            read = {"error": str(refused)}
        finally:
            end_call(call)
        return None if read is result else read

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, error: Exception
    ) -> dict[str, Any] | None:
        """Return the reason if an agent inside a function was refused."""
        del tool, tool_args
        call = self._calls.pop((tool_context.invocation_id, tool_context.function_call_id), None)
        if call is not None:
            end_call(call)
        return {"error": str(error)} if isinstance(error, RefusedError) else None

    def _forget(self, id_: str) -> None:
        self._trees.pop(id_, None)
        self._agents = {key: each for key, each in self._agents.items() if key[0] != id_}
        self._calls = {key: each for key, each in self._calls.items() if key[0] != id_}


def _text(content: Any) -> str | None:
    parts = content.parts if content is not None else None
    return "\n".join(part.text for part in parts or () if part.text) or None
