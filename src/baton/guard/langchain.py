"""Guards in agents of LangChain and LangGraph, as a middleware.

    desk = create_agent(model, tools, name="desk", middleware=[GuardMiddleware(guard)])

Each agent gets one. Open ``guard.run(request=...)`` around code that runs several agents in turn,
such as a graph whose nodes are agents.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NotRequired

import msgspec
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr, hook_config
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.config import get_config
from langgraph.types import Command, interrupt

from baton.model import RefusedError
from baton.providers.frameworks.running_agents import prompt_of, receiver_of

from .decide_event import Decision
from .framework_calls import Call, begin_run, calling, tell
from .runtime import Guard, Place

__all__ = ["GuardMiddleware"]


class _State(AgentState[Any]):  # type: ignore[misc]
    baton_guard: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]  # type: ignore[valid-type]


class GuardMiddleware(AgentMiddleware[_State, Any, Any]):  # type: ignore[misc]
    """Asks a guard before tools run, before agents start, and before their answers are read.

    Args:
        guard: the guard.
        agent: the agent's name, if ``create_agent`` was given none.
    """

    state_schema = _State

    def __init__(self, guard: Guard, agent: str | None = None) -> None:
        super().__init__()
        self._guard = guard
        self._agent = agent

    @hook_config(can_jump_to=["end"])  # type: ignore[untyped-decorator]
    def before_agent(self, state: _State, runtime: Any) -> dict[str, Any]:  # noqa: ARG002
        """Check whether the agent may start; if not, its answer is the reason."""
        named = get_config().get("metadata", {}).get("lc_agent_name")
        agent = str(self._agent or named or "agent")
        messages = state["messages"]
        try:
            request = _text(messages[-1]) if messages else None
            place = begin_run(self._guard, agent, request, shared=len(messages) > 1)
        except RefusedError as refused:
            return {"messages": [AIMessage(str(refused))], "jump_to": "end"}
        return {"baton_guard": msgspec.to_builtins(place)}

    @hook_config(can_jump_to=["end"])  # type: ignore[untyped-decorator]
    async def abefore_agent(self, state: _State, runtime: Any) -> dict[str, Any]:
        """Like :meth:`before_agent`."""
        done: dict[str, Any] = self.before_agent(state, runtime)
        return done

    def after_model(self, state: _State, runtime: Any) -> None:  # noqa: ARG002
        """Report the model's usage."""
        message = state["messages"][-1]
        used = getattr(message, "usage_metadata", None)
        place = _place(state)
        if used and place is not None:
            cached = used.get("input_token_details", {}).get("cache_read", 0)
            tell(
                self._guard,
                place,
                input_tokens=used["input_tokens"] - cached,
                output_tokens=used["output_tokens"],
                cached=cached,
                model=message.response_metadata.get("model_name"),
            )

    async def aafter_model(self, state: _State, runtime: Any) -> None:
        """Like :meth:`after_model`."""
        self.after_model(state, runtime)

    def after_agent(self, state: _State, runtime: Any) -> None:  # noqa: ARG002
        """Record that the agent has finished."""
        place = _place(state)
        if place is not None:
            self._guard.stop(place)

    async def aafter_agent(self, state: _State, runtime: Any) -> None:
        """Like :meth:`after_agent`."""
        self.after_agent(state, runtime)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call a tool if that is allowed; else the model reads the reason."""
        place = _place(request.state)
        if place is None:
            return handler(request)
        try:
            with calling(self._guard, place, **_called_tool(request)) as call:
                return self._read(call, request, handler(request))
        except RefusedError as refused:
            return _refused(request, refused)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Like :meth:`wrap_tool_call`."""
        place = _place(request.state)
        if place is None:
            return await handler(request)
        try:
            with calling(self._guard, place, **_called_tool(request)) as call:
                answer = await handler(request)
                return await self._guard.later(self._read, call, request, answer)
        except RefusedError as refused:
            return _refused(request, refused)

    def _read(self, call: Call, request: Any, result: Any) -> Any:
        if isinstance(result, ToolMessage):
            return _with_content(result, call.read_blocks(result.content))
        if isinstance(result, Command):
            # A command that transfers control names the next node.
            for to in _names(result.goto):
                self._guard.granted[call.by.tree, to] = self._guard.start(
                    to, by=call.by, transfer=True
                )
            return _read_update(call, request, result)
        return result


def _place(state: Any) -> Place | None:
    held = state.get("baton_guard") if isinstance(state, dict) else None
    return None if held is None else msgspec.convert(held, Place)


def _called_tool(request: Any) -> dict[str, Any]:
    """Return the tool call, and its receiving agent if the tool's function shows it."""
    name, arguments = request.tool_call["name"], request.tool_call["args"]
    tool = request.tool
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    to = receiver_of(function, arguments, _agent_name)

    def ask(decision: Decision) -> bool:
        return interrupt({"guard": decision.reason, "tool": name, "arguments": arguments}) is True

    prompt = None if to is None else prompt_of(arguments, to)
    return {"name": name, "arguments": arguments, "to": to, "prompt": prompt, "ask": ask}


def _agent_name(value: Any) -> str | None:
    """Return the name of an agent that ``create_agent`` made; ``None`` for anything else."""
    config = getattr(value, "config", None)
    metadata = config.get("metadata") if isinstance(config, dict) else None
    name = metadata.get("lc_agent_name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


def _text(message: Any) -> str:
    return str(message.text if isinstance(message, BaseMessage) else message)


def _with_content(message: ToolMessage, content: Any) -> ToolMessage:
    if content == message.content:
        return message
    # An artifact is extra data for the program; it may contain the replaced text.
    return message.model_copy(update={"content": content, "artifact": None})


def _refused(request: Any, refused: RefusedError) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(str(refused), tool_call_id=call["id"], name=call["name"], status="error")


def _names(goto: Any) -> list[str]:
    listed = goto if isinstance(goto, list | tuple) else [goto]
    names = [each if isinstance(each, str) else getattr(each, "node", None) for each in listed]
    return [name for name in names if name]


def _read_update(call: Call, request: Any, command: Command[Any]) -> Command[Any]:
    """Return a command with messages that the caller may read; a tool may return a command."""
    update = command.update
    if not isinstance(update, dict) or not update.get("messages") or not call.started:
        return command
    try:
        read = [
            _with_content(each, call.read_blocks(each.content))
            if isinstance(each, ToolMessage)
            else each
            for each in update["messages"]
        ]
    except RefusedError as refused:
        return Command(update={"messages": [_refused(request, refused)]})
    return Command(
        graph=command.graph,
        update={**update, "messages": read},
        resume=command.resume,
        goto=command.goto,
    )
