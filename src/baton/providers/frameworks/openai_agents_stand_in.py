"""Stand-ins for the tools and agents of OpenAI's Agents SDK.

The SDK has hooks that observe a call, but none that can answer it. So three of its functions are
replaced: those that call a function tool, hand over, and run an agent. Tools that OpenAI or the SDK
itself runs are refused if they are offered to a model.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, get_type_hints

import msgspec

from baton.model import Message, ProviderError
from baton.stand_ins import Play, Request, StandInError, current

from .framework import is_a
from .running_agents import answered, at_work, content, handed_on, is_listed, realtime, receiver_of

_SEAMS = (
    ("agents.run_internal.tool_execution", "_invoke_function_tool_with_metadata"),
    ("agents.run_internal.turn_resolution", "execute_handoffs"),
    ("agents.tool", "maybe_invoke_function_tool_failure_error_function"),
    ("agents.tool", "_FunctionToolInvocationResult"),
    ("agents.tool", "_consume_function_tool_default_failure"),
    ("agents.run", "AgentRunner"),
    ("agents.run", "DEFAULT_AGENT_RUNNER"),
)
"""Undocumented parts of the SDK that the replacements need."""
_GIVEN = {
    "_invoke_function_tool_with_metadata": {"function_tool", "context", "arguments"},
    "execute_handoffs": {"run_handoffs", "original_input", "public_agent"},
}
"""The parameters that two of these must accept by name."""
_HARMLESS = ("ToolSearchTool", "ProgrammaticToolCallingTool")
"""Tools that only find or call other tools. The other tools are answered themselves."""


class _Stopped(Exception):  # noqa: N818 - says what happened
    """Ends a run at the dispatch that the case is about.

    A cancellation would not end it: the SDK reports a cancelled tool to the model, and continues.
    """


@functools.cache
def switch_on() -> None:
    """Make every run from now on ask the stand-ins of the case that is played, if any.

    Raises:
        ProviderError: this version of the SDK works differently.
    """
    lacking = [f"{module}.{name}" for module, name in _SEAMS if not _has(module, name)]
    if lacking:
        raise ProviderError(
            "stand-ins cannot answer for the tools of this version of `agents`, so nothing was "
            f"run: it lacks {', '.join(lacking)}; 0.24 is known to work"
        )
    agents = sys.modules["agents"]
    execution = sys.modules["agents.run_internal.tool_execution"]
    resolution = sys.modules["agents.run_internal.turn_resolution"]
    runner = sys.modules["agents.run"].AgentRunner
    execution._invoke_function_tool_with_metadata = _calling(  # type: ignore[attr-defined]
        execution._invoke_function_tool_with_metadata
    )
    resolution.execute_handoffs = _handing_over(  # type: ignore[attr-defined]
        resolution.execute_handoffs, runner.run
    )
    agents.AgentBase.get_all_tools = _offering(agents.AgentBase.get_all_tools)
    runner.run_streamed = _running(runner.run_streamed, runner.run, is_async=False)
    runner.run = _running(runner.run, runner.run, is_async=True)


async def go_on(agent: Any, messages: Sequence[Message]) -> Any:
    """Run an agent after earlier messages; raises CancelledError at the dispatch ending a play."""
    try:
        return await sys.modules["agents"].Runner.run(agent, _items(messages))
    except Exception as error:
        play = current()
        if play is not None and play.decided:
            raise asyncio.CancelledError from error
        raise


def name_of(value: Any) -> str | None:
    """Return the name of an agent; ``None`` for anything else."""
    return value.name if is_a(value, "agents", "AgentBase") else None


def _has(module: str, name: str) -> bool:
    value = getattr(sys.modules.get(module), name, None)
    names = _GIVEN.get(name, set())
    return value is not None and (not names or names <= inspect.signature(value).parameters.keys())


def _active() -> Play | None:
    play = current()
    return None if play is None or play.is_idle else play


def _calling(original: Any) -> Any:
    """Replace the function that calls function tools. Tools of MCP servers are among them."""

    @functools.wraps(original)
    async def invoke(*, function_tool: Any, context: Any, arguments: str) -> Any:
        play = _active()
        call = functools.partial(
            original, function_tool=function_tool, context=context, arguments=arguments
        )
        if play is None:
            return await call()
        request = Request(
            function_tool.name,
            _decoded(arguments),
            name_of(getattr(context, "agent", None)),
            id=context.tool_call_id,
            schema=function_tool.output_json_schema,
        )
        try:
            return await _answer(play, request, function_tool, call)
        except asyncio.CancelledError:
            if play.decided:
                raise _Stopped from None
            raise
        except (StandInError, TimeoutError) as error:
            tools = sys.modules["agents.tool"]
            message = await tools.maybe_invoke_function_tool_failure_error_function(
                function_tool=function_tool, context=context, error=error
            )
            if message is None:
                raise
            is_own = tools._consume_function_tool_default_failure(context)
            return tools._FunctionToolInvocationResult(message, is_sdk_generated_error=is_own)

    return invoke


async def _answer(
    play: Play, request: Request, function_tool: Any, call: Callable[[], Awaitable[Any]]
) -> Any:
    ran: list[Any] = []

    async def run() -> Any:
        with at_work(request.agent or "", request.name, request.id):
            ran.append(await call())
        return ran[-1].output

    agent = name_of(getattr(function_tool, "_agent_instance", None))
    if agent is not None and (play.stops or not is_listed(play, request)):
        if play.stops:  # otherwise the agent's run asks, and leaves its own record
            prompt = request.input.get("input") if isinstance(request.input, dict) else None
            prompt = request.input if prompt is None else prompt
            sent = request._replace(
                name=agent, input=prompt, kind="agent", tool=request.name, arguments=request.input
            )
            await play.tool(sent, run)
        await run()
        return ran[-1]
    function = getattr(function_tool, "__wrapped__", None)
    if request.schema is None and function is not None:
        request = request._replace(schema=_returned_by(function))
    answer = await answered(play, request, receiver_of(function, request.input, name_of), run)
    if ran and ran[-1].output is answer:
        return ran[-1]
    return sys.modules["agents.tool"]._FunctionToolInvocationResult(answer)


@functools.lru_cache(maxsize=1000)
def _returned_by(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Return the JSON Schema of a function's return annotation; ``None`` if it has none."""
    try:
        stated = get_type_hints(inspect.unwrap(function)).get("return")
        if stated in (None, Any, type(None)):
            return None
        schema: dict[str, Any] = sys.modules["pydantic"].TypeAdapter(stated).json_schema()
    except Exception:  # noqa: BLE001 - a program's type hints can contain anything
        return None
    return schema


def _handing_over(original: Any, run: Any) -> Any:
    """Replace the function that hands over: an agent with a stand-in gets a model that answers."""

    @functools.wraps(original)
    async def hand_over(*, run_handoffs: Sequence[Any], **named: Any) -> Any:
        play, first = _active(), run_handoffs[0]
        to = first.handoff.agent_name
        if play is None or not play.stands_in_for(to):
            return await original(run_handoffs=run_handoffs, **named)
        history = named["original_input"]
        # In a hand-over without arguments, the receiver gets the user's message.
        arguments = _decoded(first.tool_call.arguments)
        prompt = arguments or (None if play.stops else _last_said(history))
        request = Request(
            to,
            prompt,
            named["public_agent"].name,
            kind="agent",
            id=first.tool_call.call_id,
            dispatch="transfer",
            tool=first.handoff.tool_name,
            arguments=arguments,
        )
        if play.stops:
            try:
                await play.tool(request, _never)
            except asyncio.CancelledError:
                raise _Stopped from None
        target = first.handoff._agent_ref
        agent = target() if target is not None else None
        if agent is None:
            raise ProviderError(
                f"the agent `{to}` cannot be replaced: its hand-off gives only its name"
            )
        runner = sys.modules["agents.run"].DEFAULT_AGENT_RUNNER
        stand_in = _stand_in_of(
            agent, play, request, functools.partial(run, runner, agent, history)
        )

        async def invoke(_context: Any, _arguments: str) -> Any:
            return stand_in

        handoff = _copy_of(first.handoff, on_invoke_handoff=invoke)
        handed = [_copy_of(first, handoff=handoff), *run_handoffs[1:]]
        return await original(run_handoffs=handed, **named)

    return hand_over


def _running(original: Any, run: Any, *, is_async: bool) -> Any:
    """Replace the function that runs an agent, so that stand-ins can answer for a receiver."""

    def played(self: Any, agent: Any, given: Any) -> Any:
        play = _active()
        name = name_of(agent)
        if play is None or name is None:
            return agent
        request = handed_on(play, name, _last_said(given))
        if request is None:
            return agent
        return _stand_in_of(agent, play, request, functools.partial(run, self, agent, given))

    if is_async:

        @functools.wraps(original)
        async def awaited(self: Any, starting_agent: Any, input: Any, **named: Any) -> Any:
            agent = played(self, starting_agent, input)
            with at_work(agent.name):
                return await original(self, agent, input, **named)

        return awaited

    @functools.wraps(original)
    def streamed(self: Any, starting_agent: Any, input: Any, **named: Any) -> Any:
        agent = played(self, starting_agent, input)
        with at_work(agent.name):
            return original(self, agent, input, **named)

    return streamed


def _offering(original: Any) -> Any:
    """Replace the function that lists an agent's tools, to refuse those that run elsewhere."""

    @functools.wraps(original)
    async def get_all_tools(self: Any, run_context: Any) -> Any:
        play = _active()
        if play is not None and is_a(self, "agents", "RealtimeAgent"):
            raise ProviderError(realtime(self.name))
        if play is not None and getattr(self, "prompt", None) is not None:
            request = Request("prompt", agent=self.name)
            play.refuse_elsewhere(request, "with the tools that OpenAI may keep for it")
        tools = await original(self, run_context)
        for tool in tools if play is not None else ():
            kind = type(tool).__name__
            is_known = is_a(tool, "agents", "FunctionTool") or kind in _HARMLESS
            if play is not None and not is_known:
                name = str(getattr(tool, "name", None) or getattr(tool, "type", kind))
                play.refuse_elsewhere(Request(name, agent=self.name), f"as `{kind}` of the SDK")
        return tools

    return get_all_tools


def _stand_in_of(
    agent: Any, play: Play, request: Request, run: Callable[[], Awaitable[Any]]
) -> Any:
    """Return an agent with the same name and output, whose model returns the stand-in's answer."""

    async def live() -> Any:
        return (await run()).final_output

    async def answer() -> str:
        value = await play.tool(request, live)
        if isinstance(value, str):
            return value
        return msgspec.json.encode(value, enc_hook=_as_data).decode("utf-8", "replace")

    return agent.clone(
        model=_model_type()(answer),
        model_settings=sys.modules["agents"].ModelSettings(),
        tools=[],
        mcp_servers=[],
        handoffs=[],
        input_guardrails=[],
        output_guardrails=[],
        prompt=None,
    )


@functools.cache
def _model_type() -> Any:
    agents, responses = sys.modules["agents"], sys.modules["openai.types.responses"]

    class StandIn(agents.Model):  # type: ignore[misc, name-defined]  # it is loaded by the program
        """A model that always gives the same answer."""

        def __init__(self, answer: Callable[[], Awaitable[str]]) -> None:
            self._answer = answer

        async def get_response(self, *_: Any, **__: Any) -> Any:
            return agents.ModelResponse(
                output=[await self._message()], usage=agents.Usage(), response_id=None
            )

        async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            response = responses.Response(
                id="baton",
                created_at=0,
                model="stand-in",
                object="response",
                output=[await self._message()],
                parallel_tool_calls=False,
                tool_choice="none",
                tools=[],
            )
            yield responses.ResponseCompletedEvent(
                type="response.completed", response=response, sequence_number=0
            )

        async def _message(self) -> Any:
            text = responses.ResponseOutputText(
                text=await self._answer(), type="output_text", annotations=[]
            )
            return responses.ResponseOutputMessage(
                id="baton", type="message", role="assistant", status="completed", content=[text]
            )

    return StandIn


def _items(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Convert messages to input of the SDK; calls get new ids."""
    items: list[dict[str, Any]] = []
    for place, message in enumerate(messages, 1):
        if message.text or message.role == "user":
            role = "user" if message.role == "user" else "assistant"
            items.append({"role": role, "content": message.text or ""})
        made = [(f"call_{place}_{n}", each) for n, each in enumerate(message.calls, 1)]
        for id_, call in made:
            arguments = call.arguments if isinstance(call.arguments, str) else _text(call.arguments)
            called = {"type": "function_call", "call_id": id_, "name": call.name}
            items.append({**called, "arguments": arguments})
        for id_, call in made:
            result = call.error if call.error and call.result is None else content(call.result)
            output = result if isinstance(result, str) else _text(result)
            items.append({"type": "function_call_output", "call_id": id_, "output": output})
    return items


def _text(value: Any) -> str:
    return msgspec.json.encode({} if value is None else value, enc_hook=repr).decode()


def _decoded(arguments: str) -> Any:
    """Return the arguments of a call, or their text if it is not JSON."""
    try:
        return msgspec.json.decode(arguments or "{}")
    except msgspec.MsgspecError:
        return arguments


def _last_said(messages: Any) -> Any:
    """Return the user's last message in the input of a run."""
    if isinstance(messages, str) or not isinstance(messages, list):
        return messages if isinstance(messages, str) else None
    questions = [each for each in messages if isinstance(each, dict) and each.get("role") == "user"]
    text = questions[-1].get("content") if questions else None
    if not isinstance(text, list):
        return text
    parts = [each.get("text") for each in text if isinstance(each, dict)]
    return "\n".join(each for each in parts if isinstance(each, str))


def _as_data(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else repr(value)


def _copy_of(value: Any, **changed: Any) -> Any:
    """Copy an SDK object with some fields changed."""
    copied = copy.copy(value)
    for name, each in changed.items():
        setattr(copied, name, each)
    return copied


async def _never() -> None:
    raise AssertionError("a play that stops runs nothing")
