"""Stand-ins for the tools and agents of pydantic-ai, implemented as one of its capabilities.

Each agent run gets :class:`StandsIn` in addition to its own capabilities, in the same way in which
a program adds one: ``agent.run(..., capabilities=[...])``. This module is imported only after a
program has imported pydantic-ai.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import Agent, AgentRunResult, RunContext, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, ReinjectSystemPrompt
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from baton.model import Message, ProviderError
from baton.stand_ins import Play, Request, StandInError, current

from .running_agents import answered, at_work, begin, content, handed_on, realtime, receiver_of

_CALL: ContextVar[ToolCallPart | None] = ContextVar("baton_tool_call", default=None)
_OUTCOMES: dict[str, Any] = {"failed": "failed", "refused": "denied"}


@functools.cache
def switch_on() -> None:
    """Add the stand-ins of the case that is played, if any, to every agent run from now on.

    Raises:
        AttributeError: this version of pydantic-ai works differently.
    """
    original, opened = Agent.iter, Agent.realtime
    if "capabilities" not in inspect.signature(original).parameters:
        raise AttributeError("`Agent.iter` takes no `capabilities`")

    # All ways to run an agent call this method: run, run_sync, run_stream, run_stream_events. There
    # is no public way to add a capability to all agents of a process.
    @functools.wraps(original)
    def iter(self: Any, *args: Any, **named: Any) -> Any:
        play = current()
        if play is not None and not play.is_idle:
            named["capabilities"] = [*(named.get("capabilities") or ()), StandsIn(play=play)]
        return original(self, *args, **named)

    Agent.iter = iter  # type: ignore[method-assign]

    @functools.wraps(opened)
    def open_realtime(self: Any, *args: Any, **named: Any) -> Any:
        play = current()
        if play is not None and not play.is_idle:
            raise ProviderError(realtime(self.name or "agent"))
        return opened(self, *args, **named)

    Agent.realtime = open_realtime  # type: ignore[method-assign]


async def go_on(agent: Any, messages: Sequence[Message]) -> AgentRunResult[Any]:
    """Run an agent after earlier messages.

    The messages do not include its system prompt, and pydantic-ai adds the prompt only before a
    first message.
    """
    history = _history(messages)
    last = history[-1].parts[0] if history else None
    question = history.pop() if isinstance(last, UserPromptPart) else None
    prompt = question.parts[0].content if question is not None else None
    capabilities = [ReinjectSystemPrompt[Any]()]
    result: AgentRunResult[Any] = await agent.run(
        prompt, message_history=history or None, capabilities=capabilities
    )
    return result


def _history(messages: Sequence[Message]) -> list[Any]:
    """Convert messages to pydantic-ai messages; calls get new ids."""
    history: list[Any] = []
    for place, message in enumerate(messages, 1):
        if message.role == "user":
            history.append(ModelRequest([UserPromptPart(message.text or "")]))
            continue
        spoken: list[Any] = [TextPart(message.text)] if message.text else []
        came: list[Any] = []
        for number, call in enumerate(message.calls, 1):
            id_ = f"call_{place}_{number}"
            spoken.append(ToolCallPart(call.name, call.arguments, id_))
            is_bad = call.status in ("failed", "refused")
            result = call.error if is_bad and call.result is None else content(call.result)
            outcome = _OUTCOMES.get(call.status, "success")
            came.append(ToolReturnPart(call.name, result, id_, outcome=outcome))
        history.append(ModelResponse(spoken))
        if came:
            history.append(ModelRequest(came))
    return history


def name_of(value: Any) -> str | None:
    """Return the name of an agent; ``None`` for anything else."""
    return value.name if isinstance(value, Agent) else None


@dataclass
class StandsIn(AbstractCapability[Any]):
    """Lets the stand-ins of a case answer for the tools of a run, and for the run itself."""

    id: str | None = "baton.stand_ins"
    play: Play = field(kw_only=True)

    def get_ordering(self) -> CapabilityOrdering:
        """Be innermost, next to the tools, so that everything a program wraps around them runs."""
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Put stand-ins in front of all tools except output tools."""
        return _Answered(toolset, self.play)

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Answer a run in place of the agent, if another agent passes the work on."""
        agent = _agent(ctx)
        request = handed_on(self.play, agent, ctx.prompt)
        if request is None:
            begin(agent)
            return await handler()
        ran: list[tuple[Any, AgentRunResult[Any]]] = []

        async def run() -> Any:
            begin(agent)
            result = await handler()
            ran.append((result.output, result))
            return result.output

        answer = await self.play.tool(request, run)
        for output, result in ran:
            if answer is output:
                return result
        return AgentRunResult(output=_typed(answer, ctx))

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Refuse tools that the model provider runs, if they must not run."""
        for tool in request_context.model_request_parameters.native_tools:
            if tool.kind != "tool_search":  # finds tools of this process, and does nothing else
                request = Request(tool.kind, agent=_agent(ctx))
                self.play.refuse_elsewhere(request, "at the model's provider")
        return request_context

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],  # noqa: ARG002
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,  # noqa: ARG002
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Keep the call as the model made it, because tools receive it with defaults filled in."""
        token = _CALL.set(call)
        try:
            return await handler(args)
        finally:
            _CALL.reset(token)

    async def wrap_output_process(
        self,
        ctx: RunContext[Any],
        *,
        output_context: OutputContext,
        output: Any,
        handler: Callable[[Any], Awaitable[Any]],
    ) -> Any:
        """Ask the stand-ins for an output function: it can hand work on, or for example pay."""
        if not output_context.has_function or ctx.partial_output:
            return await handler(output)
        call = output_context.tool_call
        name = call.tool_name if call is not None else output_context.function_name or "output"
        arguments = call.args_as_dict() if call is not None else output
        request = Request(name, arguments, _agent(ctx), id=call.tool_call_id if call else None)
        function = _output_function(ctx, output_context.function_name)
        return await _answer(self.play, request, function, lambda: handler(output))


@dataclass
class _Answered(WrapperToolset[Any]):
    """The tools of a run, with stand-ins in front of them."""

    play: Play

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        call = _CALL.get()
        made = call is not None and call.tool_call_id == ctx.tool_call_id
        request = Request(
            name,
            call.args_as_dict() if made and call is not None else tool_args,
            _agent(ctx),
            id=ctx.tool_call_id,
            schema=tool.tool_def.return_schema,
        )

        async def run() -> Any:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)

        return await _answer(self.play, request, _function_of(tool), run)


async def _answer(
    play: Play, request: Request, function: Any, call: Callable[[], Awaitable[Any]]
) -> Any:
    """Return the answer of a tool, or of the agent that it hands work to.

    An error that a stand-in states is reported to the model.
    """
    ran: list[tuple[Any, Any]] = []

    async def run() -> Any:
        with at_work(request.agent or "", request.name, request.id):
            result = await call()
        plain = result.return_value if isinstance(result, ToolReturn) else result
        ran.append((plain, result))
        return plain

    receiver = receiver_of(function, request.input, name_of)
    try:
        answer = await answered(play, request, receiver, run)
    except (StandInError, TimeoutError) as error:
        if isinstance(error, StandInError) or not ran:
            raise ToolFailed(str(error)) from error
        raise
    return next((result for plain, result in ran if answer is plain), answer)


def _agent(ctx: RunContext[Any]) -> str:
    """Return the name of an agent. An agent without a name is ``agent``, as in its spans."""
    return (ctx.agent.name if ctx.agent is not None else None) or "agent"


def _function_of(tool: Any) -> Any:
    """Return the function of a tool; tools of combined toolsets wrap the original tool."""
    while (inner := getattr(tool, "source_tool", None)) is not None:
        tool = inner
    schema = getattr(getattr(tool, "call_func", None), "__self__", None)
    return getattr(schema, "function", None)


def _output_function(ctx: RunContext[Any], name: str | None) -> Any:
    """Find an output function by name among the output types of the agent."""
    stated = ctx.agent.output_type if ctx.agent is not None else None
    for each in stated if isinstance(stated, list | tuple) else [stated]:
        function = getattr(each, "output_function", getattr(each, "output", each))
        if inspect.isroutine(function) and function.__name__ == name:
            return function
    return None


def _typed(answer: Any, ctx: RunContext[Any]) -> Any:
    """Convert an answer to the agent's output type; return it unchanged if it does not fit.

    A fault can produce an answer of the wrong type on purpose, to show how the program handles it.
    """
    stated = ctx.agent.output_type if ctx.agent is not None else None
    if not isinstance(stated, type) or isinstance(answer, stated):
        return answer
    adapter: TypeAdapter[Any] = TypeAdapter(stated)
    try:
        return adapter.validate_python(answer)
    except ValidationError:
        try:
            return adapter.validate_json(answer) if isinstance(answer, str) else answer
        except ValidationError:
            return answer
