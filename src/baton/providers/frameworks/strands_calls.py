"""Patch the places where Strands runs tools and agents, to ask the current play.

Each hook or middleware of Strands belongs to one agent, and programs make agents while they run
(``Agent(...)`` in the function of a tool). So two places are patched that all calls go through:

- ``_run_tool`` of the tool executors: every tool call goes through it, also for tools that are
  called directly, that belong to an MCP server, or that run in the background. It runs inside the
  tool's span, so the record has the call.
- ``Agent.stream_async``: every way to call an agent goes through it, also in swarms and graphs. The
  exception is the deprecated ``structured_output``, which is patched separately. Agents of other
  classes, such as ``A2AAgent`` for another server, run their tools themselves: they are answered
  for as a whole, or refused.

Without a play, or with a play that has no stand-ins, each behaves as before.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, suppress
from importlib import import_module
from typing import Any

import msgspec

from baton.model import ProviderError
from baton.providers.user_functions import NOT_JSON, as_json
from baton.stand_ins import Decided, Play, Request, StandInError, current
from baton.stand_ins.answer_sources import Answer

from .framework import is_a
from .running_agents import AtWork, dispatched, handed_on, is_listed, now, put, receiver_of
from .tool_source import made_in

_MARK = "__baton__"


def install() -> None:
    """Patch Strands, once.

    Raises:
        ProviderError: this version does not have the places to patch.
    """
    executor = sys.modules.get("strands.tools.executors._executor")
    agent = sys.modules["strands"].Agent
    needed = [
        (executor, "_run_tool"),
        (agent, "stream_async"),
        (agent, "cancel"),
        (sys.modules.get("strands.types._events"), "ToolResultEvent"),
        (sys.modules.get("strands.agent.agent_result"), "AgentResult"),
        (sys.modules.get("strands.telemetry.metrics"), "EventLoopMetrics"),
    ]
    for holder, name in needed:
        if not callable(getattr(holder, name, None)):
            raise ProviderError(
                f"stand-ins cannot answer for tools here: the installed Strands has no `{name}`, "
                "so nothing was run; 1.62 is known to work"
            )
    if not hasattr(agent.stream_async, _MARK):
        _patch_tools(executor)
        _patch_agents(agent, _refuse_hosted)
        if hasattr(agent, "structured_output_async"):
            _patch_structured(agent)
    with suppress(ImportError):  # `a2a` is not installed, so no program can use it
        import_module("strands.agent.a2a_agent")
    for each in _other_agents(sys.modules.get("strands.agent.base"), agent):
        if not hasattr(each.stream_async, _MARK):
            _patch_agents(each, _refuse_other)
            _patch_invoke(each)


def _other_agents(module: Any, agent: Any) -> Iterator[Any]:
    """Yield the agent classes that are loaded by now, except Strands' own."""
    classes = [module.AgentBase] if module is not None else []
    while classes:
        subclasses = classes.pop().__subclasses__()
        classes += subclasses
        for each in subclasses:
            if not issubclass(each, agent) and not getattr(each, "_is_protocol", False):
                yield each


def agent_of(value: Any) -> str | None:
    """Return the name of an agent; ``None`` for anything else."""
    if is_a(value, "strands", "Agent") and isinstance(value.name, str):
        return value.name
    return None


def receiver(tool: Any, arguments: Any) -> str | None:
    """Return the agent that a tool hands work to, if the tool or its code shows one."""
    if is_a(tool, "strands", "_AgentAsTool"):
        return agent_of(tool.agent)
    function = getattr(tool, "_tool_func", None)
    if function is None:
        return None
    return receiver_of(function, arguments, agent_of) or made_in(function, ("Agent",))


def _play() -> Play | None:
    play = current()
    return None if play is None or play.is_idle else play


def _patch_tools(executor: Any) -> None:
    run_tool = executor._run_tool

    @functools.wraps(run_tool)
    async def asking(ctx: Any, *args: Any, **named: Any) -> AsyncIterator[Any]:
        play = _play()
        if play is None or ctx.tool is None or _is_structured_output_tool(ctx.tool):
            async with aclosing(run_tool(ctx, *args, **named)) as events:
                async for event in events:
                    yield event
            return
        try:
            async with aclosing(_answered(ctx, play, run_tool, args, named)) as events:
                async for event in events:
                    yield event
        except (asyncio.CancelledError, ProviderError) as error:
            if not (play.decided or play.refused):
                raise
            # Strands turns errors into results and skips the result of a cancelled task, so the
            # agent would continue. So the agent is told to stop after these tools, in the same way
            # in which one of its tools can stop it.
            ctx.agent.cancel(after_current_tools=True)
            yield _event(ctx, StandInError(str(error) or "the decision is made"))

    setattr(asking, _MARK, True)
    executor._run_tool = asking


async def _answered(
    ctx: Any, play: Play, run_tool: Any, args: Any, named: Any
) -> AsyncGenerator[Any, None]:
    """Yield the events of a tool, or of the stand-in that answers in its place."""
    prepared = []
    try:
        for each in _requests_of(ctx, play):
            prepared.append(await play.before(each))
            answer = prepared[-1].answer
            if answer is not None:
                yield _event(ctx, play.after(prepared[-1], answer))
                return
    except (StandInError, TimeoutError) as error:
        yield _event(ctx, error)
        return
    before = now()
    put(AtWork(_name(ctx), ctx.tool_use["name"], ctx.tool_use.get("toolUseId")))
    try:
        async with aclosing(run_tool(ctx, *args, **named)) as events:
            async for event in events:
                is_result = hasattr(event, "tool_result")
                yield _with_faults(ctx, play, prepared, event) if is_result else event
    finally:
        put(before)


def _is_structured_output_tool(tool: Any) -> bool:
    """Return whether Strands itself uses a tool for structured output: it runs no program code."""
    return type(tool).__module__.startswith("strands.tools.structured_output")


def _requests_of(ctx: Any, play: Play) -> list[Request]:
    """Return what the stand-ins are asked for a call, in order; nothing for a call that may run."""
    use, tool = ctx.tool_use, ctx.tool
    arguments = _plain(use["input"])
    call = Request(use["name"], arguments, _name(ctx), id=use.get("toolUseId"))
    function = getattr(tool, "_tool_func", None)
    if getattr(function, "__module__", None) == "strands.multiagent.swarm":
        # `handoff_to_agent` only names the next agent.
        values = arguments if isinstance(arguments, dict) else {}
        to, message, how = str(values.get("agent_name")), values.get("message"), "transfer"
        moved = Request(
            to, message, call.agent, "agent", call.id, None, how, call.name, arguments=values  # type: ignore[arg-type]
        )  # fmt: skip
        return [moved] if play.stops else []
    to_agent = receiver(tool, arguments)
    if is_a(tool, "strands", "_AgentAsTool") and not is_listed(play, call):
        values = arguments if isinstance(arguments, dict) else {"input": arguments}
        sent = Request(
            to_agent or call.name, values.get("input"), call.agent, "agent", call.id,
            tool=call.name, arguments=values,
        )  # fmt: skip
        # An agent that really runs asks the stand-ins itself, so its faults happen only once.
        return [sent] if play.stops or not play.runs(sent) else []
    call = call._replace(to=to_agent)
    handed = dispatched(play, call, to_agent)
    return [call] if handed is None else [handed, call]


def _name(ctx: Any) -> str:
    return str(getattr(ctx.agent, "name", ""))


def _plain(value: Any) -> Any:
    try:
        return msgspec.json.decode(as_json(value))
    except NOT_JSON:
        return str(value)


def _with_faults(ctx: Any, play: Play, prepared: list[Any], event: Any) -> Any:
    """Return the event of a result, changed if faults apply."""
    result = event.tool_result
    if result.get("status") == "error" or not prepared:
        return event
    value = given = _value(result)
    try:
        for each in reversed(prepared):
            value = play.after(each, Answer(value, by=None))
    except (StandInError, TimeoutError) as error:
        return _event(ctx, error)
    return event if value is given else _event(ctx, value)


def _value(result: Any) -> Any:
    """Return the content of a result: its text, its data, or all of its parts."""
    parts = result.get("content") or []
    if len(parts) == 1 and len(parts[0]) == 1:
        return parts[0].get("text", parts[0].get("json", parts))
    return parts


def _event(ctx: Any, answer: Any) -> Any:
    """Return the event of a tool's result for an answer, or for the error that the tool ends in."""
    kind = sys.modules["strands.types._events"].ToolResultEvent
    error = answer if isinstance(answer, Exception) else None
    if error is not None:
        is_message = isinstance(error, StandInError) and error.was_told
        content = [{"text": str(error) if is_message else f"Error: {error}"}]
    elif isinstance(answer, str):
        content = [{"text": answer}]
    else:  # as the tool decorator does
        content = [{"text": msgspec.json.encode(answer).decode()}]
    result = {
        "toolUseId": str(ctx.tool_use.get("toolUseId")),
        "status": "success" if error is None else "error",
        "content": content,
    }
    return kind(result, exception=error)


def _patch_agents(class_: Any, refuse: Callable[[Any, Play], None]) -> None:
    stream = class_.stream_async

    @functools.wraps(stream)
    async def asking(self: Any, prompt: Any = None, **named: Any) -> AsyncIterator[Any]:
        play = _play()
        if play is None:
            async with aclosing(stream(self, prompt, **named)) as events:
                async for event in events:
                    yield event
            return
        _stop(play)
        request = handed_on(play, _own_name(self), _text_of(prompt))
        prepared = None if request is None else await play.before(request)
        if prepared is not None and prepared.answer is not None:
            yield {"result": _result(play.after(prepared, prepared.answer), named)}
            return
        refuse(self, play)
        before = now()
        put(AtWork(_own_name(self)))
        try:
            async with aclosing(stream(self, prompt, **named)) as events:
                async for event in events:
                    yield _changed(event, play, prepared, named)
        finally:
            put(before)
        _stop(play)

    setattr(asking, _MARK, True)
    class_.stream_async = asking


def _own_name(agent: Any) -> str:
    """Return the name of an agent. A remote agent has none until its card is requested."""
    return str(getattr(agent, "name", None) or type(agent).__name__)


def _patch_invoke(class_: Any) -> None:
    """Route calls of an agent of another class through the one method that is patched."""
    invoke = class_.invoke_async

    @functools.wraps(invoke)
    async def asking(self: Any, prompt: Any = None, **named: Any) -> Any:
        if _play() is None:
            return await invoke(self, prompt, **named)
        result = None
        async with aclosing(self.stream_async(prompt, **named)) as events:
            async for event in events:
                result = event.get("result", result)
        return result

    class_.invoke_async = asking


def _patch_structured(agent: Any) -> None:
    structured = agent.structured_output_async

    @functools.wraps(structured)
    async def asking(self: Any, output_model: Any, prompt: Any = None) -> Any:
        play = _play()
        if play is None:
            return await structured(self, output_model, prompt)
        _stop(play)
        request = handed_on(play, _own_name(self), _text_of(prompt))
        prepared = None if request is None else await play.before(request)
        if prepared is not None and prepared.answer is not None:
            return output_model.model_validate(play.after(prepared, prepared.answer))
        _refuse_hosted(self, play)
        return await structured(self, output_model, prompt)

    agent.structured_output_async = asking


def _changed(event: Any, play: Play, prepared: Any, named: dict[str, Any]) -> Any:
    """Change the event of an agent's result if faults apply; return any other event unchanged."""
    if prepared is None or "result" not in event:
        return event
    text = str(event["result"]).strip()
    value = play.after(prepared, Answer(text, by=None))
    return event if value is text else {"result": _result(value, named)}


def _stop(play: Play) -> None:
    """Stop an agent that continues after a decision, or after a call that had to be refused."""
    if play.decided:
        raise Decided
    play.check()


def _result(answer: Any, named: dict[str, Any]) -> Any:
    """Return a stand-in's answer as the result of an agent."""
    text = answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
    model = named.get("structured_output_model")
    return sys.modules["strands.agent.agent_result"].AgentResult(
        stop_reason="end_turn",
        message={"role": "assistant", "content": [{"text": text}]},
        metrics=sys.modules["strands.telemetry.metrics"].EventLoopMetrics(),
        state={},
        structured_output=model.model_validate(answer)
        if model is not None and isinstance(answer, dict)
        else None,
    )


def _text_of(prompt: Any) -> Any:
    """Return an agent's prompt as text, if it is text."""
    if isinstance(prompt, list):
        blocks = [b for m in prompt if isinstance(m, dict) for b in m.get("content", [m])]
        texts = [b["text"] for b in blocks if isinstance(b, dict) and "text" in b]
        return "\n".join(texts)
    return prompt if isinstance(prompt, str) else None


def _refuse_other(agent: Any, play: Play) -> None:
    """Refuse an agent whose tools run outside this process, where no stand-in sees them."""
    name = _own_name(agent)
    play.refuse_elsewhere(Request(name, agent=name), f"by itself, as `{type(agent).__name__}`")


def _refuse_hosted(agent: Any, play: Play) -> None:
    """Refuse tools that the model provider runs, because no stand-in can come before them.

    OpenAI: ``params={"tools": [{"type": "web_search"}]}``; Anthropic: ``anthropic_tools``, and on
    Bedrock ``additional_request_fields``; Google: ``gemini_tools``.
    """
    config = agent.model.get_config()
    if not isinstance(config, dict):
        return
    settings = [config, *(config.get(key) or {} for key in ("params", "additional_request_fields"))]
    listed = ("tools", "anthropic_tools", "gemini_tools")
    tools = [tool for each in settings for key in listed for tool in each.get(key) or ()]
    for tool in tools:
        stated = tool if isinstance(tool, dict) else {}
        if stated.get("type") == "function":
            continue
        name = stated.get("name") or stated.get("type") or type(tool).__name__
        request = Request(str(name), agent=agent.name)
        play.refuse_elsewhere(request, "where its model is")
