"""Where Strands runs tools and agents: each asks the play that is current.

Hooks and middleware of Strands belong to one agent each, and programs make agents while they run
(``Agent(...)`` in the function of a tool), so that two places are patched which all come through:

- ``_run_tool`` of the tool executors: every tool, also one that is called directly, of an MCP
  server, or in the background. It runs inside of the tool's span, so that the record has the call.
- ``Agent.stream_async``: every way to ask an agent comes here, also of swarms and graphs, but
  for the deprecated ``structured_output``, which is patched beside it. Agents of other classes, as
  the ``A2AAgent`` of another server, run their tools by themselves: they are answered for as a
  whole, or refused.

Without a play, or with one that has nothing to stand in for, each does what it did before.
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
from baton.providers.functions import NOT_JSON, as_json
from baton.stand_ins import Asked, Decided, Play, StandInError, current
from baton.stand_ins.answers import Answer

from .at_work import AtWork, dispatched, handed_on, is_listed, now, put, receiver_of
from .base import is_a
from .made import made_in

_MARK = "__baton__"


def install() -> None:
    """Patch Strands; once.

    Raises:
        ProviderError: this version has no such places.
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
    with suppress(ImportError):  # without `a2a`, which no program can then use
        import_module("strands.agent.a2a_agent")
    for each in _other_agents(sys.modules.get("strands.agent.base"), agent):
        if not hasattr(each.stream_async, _MARK):
            _patch_agents(each, _refuse_other)
            _patch_invoke(each)


def _other_agents(module: Any, agent: Any) -> Iterator[Any]:
    """Yield the classes of agents that are there by now, but for Strands' own."""
    classes = [module.AgentBase] if module is not None else []
    while classes:
        found = classes.pop().__subclasses__()
        classes += found
        for each in found:
            if not issubclass(each, agent) and not getattr(each, "_is_protocol", False):
                yield each


def agent_of(value: Any) -> str | None:
    """Return the name of an agent; ``None`` for anything else."""
    if is_a(value, "strands", "Agent") and isinstance(value.name, str):
        return value.name
    return None


def receiver(tool: Any, arguments: Any) -> str | None:
    """Return the agent that a tool hands work to, where the tool or its code says so."""
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
        if play is None or ctx.tool is None or _is_plumbing(ctx.tool):
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
            # Strands makes results of errors, and leaves a hole for a cancelled task: the agent
            # would continue. So it is told to end after these tools, as one of its tools may tell
            # it.
            ctx.agent.cancel(after_current_tools=True)
            yield _event(ctx, StandInError(str(error) or "the decision is made"))

    setattr(asking, _MARK, True)
    executor._run_tool = asking


async def _answered(
    ctx: Any, play: Play, run_tool: Any, args: Any, named: Any
) -> AsyncGenerator[Any, None]:
    """Yield the events of a tool, or of what answers in its place."""
    held = []
    try:
        for each in _asked(ctx, play):
            held.append(await play.before(each))
            answer = held[-1].answer
            if answer is not None:
                yield _event(ctx, play.after(held[-1], answer))
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
                yield _with_faults(ctx, play, held, event) if is_result else event
    finally:
        put(before)


def _is_plumbing(tool: Any) -> bool:
    """Tell tools by which Strands itself gets structured output: nothing of the program's runs."""
    return type(tool).__module__.startswith("strands.tools.structured_output")


def _asked(ctx: Any, play: Play) -> list[Asked]:
    """Return what the stand-ins are asked for a call, in order; nothing for one that may run."""
    use, tool = ctx.tool_use, ctx.tool
    arguments = _plain(use["input"])
    call = Asked(use["name"], arguments, _name(ctx), id=use.get("toolUseId"))
    function = getattr(tool, "_tool_func", None)
    if getattr(function, "__module__", None) == "strands.multiagent.swarm":
        # `handoff_to_agent`: it does nothing but say who is next.
        given = arguments if isinstance(arguments, dict) else {}
        to, told, how = str(given.get("agent_name")), given.get("message"), "transfer"
        moved = Asked(
            to, told, call.agent, "agent", call.id, None, how, call.name, arguments=given  # type: ignore[arg-type]
        )  # fmt: skip
        return [moved] if play.stops else []
    to_agent = receiver(tool, arguments)
    if is_a(tool, "strands", "_AgentAsTool") and not is_listed(play, call):
        given = arguments if isinstance(arguments, dict) else {"input": arguments}
        sent = Asked(
            to_agent or call.name, given.get("input"), call.agent, "agent", call.id,
            tool=call.name, arguments=given,
        )  # fmt: skip
        # One that really runs asks by itself, so that faults of it happen once.
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


def _with_faults(ctx: Any, play: Play, held: list[Any], event: Any) -> Any:
    """Return the event of a result, changed where faults say so."""
    result = event.tool_result
    if result.get("status") == "error" or not held:
        return event
    value = given = _value(result)
    try:
        for each in reversed(held):
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
    """Return an answer, or the error that the tool ends in, as the event of a tool's result."""
    kind = sys.modules["strands.types._events"].ToolResultEvent
    error = answer if isinstance(answer, Exception) else None
    if error is not None:
        told = isinstance(error, StandInError) and error.was_told
        content = [{"text": str(error) if told else f"Error: {error}"}]
    elif isinstance(answer, str):
        content = [{"text": answer}]
    else:  # as the decorator of tools does it
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
        asked = handed_on(play, _own_name(self), _text_of(prompt))
        held = None if asked is None else await play.before(asked)
        if held is not None and held.answer is not None:
            yield {"result": _result(play.after(held, held.answer), named)}
            return
        refuse(self, play)
        before = now()
        put(AtWork(_own_name(self)))
        try:
            async with aclosing(stream(self, prompt, **named)) as events:
                async for event in events:
                    yield _changed(event, play, held, named)
        finally:
            put(before)
        _stop(play)

    setattr(asking, _MARK, True)
    class_.stream_async = asking


def _own_name(agent: Any) -> str:
    """Return the name of an agent; one on a server has none before it is asked for its card."""
    return str(getattr(agent, "name", None) or type(agent).__name__)


def _patch_invoke(class_: Any) -> None:
    """Have an agent of another class be asked by the one way that is patched."""
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
        asked = handed_on(play, _own_name(self), _text_of(prompt))
        held = None if asked is None else await play.before(asked)
        if held is not None and held.answer is not None:
            return output_model.model_validate(play.after(held, held.answer))
        _refuse_hosted(self, play)
        return await structured(self, output_model, prompt)

    agent.structured_output_async = asking


def _changed(event: Any, play: Play, held: Any, named: dict[str, Any]) -> Any:
    """Return the event of an agent's result changed where faults say so, any other as it is."""
    if held is None or "result" not in event:
        return event
    said = str(event["result"]).strip()
    value = play.after(held, Answer(said, by=None))
    return event if value is said else {"result": _result(value, named)}


def _stop(play: Play) -> None:
    """End what continues after a decision, or after a call that had to be refused."""
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
    """Return what an agent is told as text, if it is text."""
    if isinstance(prompt, list):
        blocks = [b for m in prompt if isinstance(m, dict) for b in m.get("content", [m])]
        texts = [b["text"] for b in blocks if isinstance(b, dict) and "text" in b]
        return "\n".join(texts)
    return prompt if isinstance(prompt, str) else None


def _refuse_other(agent: Any, play: Play) -> None:
    """Refuse an agent whose tools run where no stand-in sees them."""
    name = _own_name(agent)
    play.refuse_elsewhere(Asked(name, agent=name), f"by itself, as `{type(agent).__name__}`")


def _refuse_hosted(agent: Any, play: Play) -> None:
    """Refuse tools that the provider of the model runs: no stand-in can come before them.

    OpenAI: ``params={"tools": [{"type": "web_search"}]}``; Anthropic: ``anthropic_tools``, and on
    Bedrock ``additional_request_fields``; Google: ``gemini_tools``.
    """
    config = agent.model.get_config()
    if not isinstance(config, dict):
        return
    given = [config, *(config.get(key) or {} for key in ("params", "additional_request_fields"))]
    listed = ("tools", "anthropic_tools", "gemini_tools")
    tools = [tool for each in given for key in listed for tool in each.get(key) or ()]
    for tool in tools:
        stated = tool if isinstance(tool, dict) else {}
        if stated.get("type") == "function":
            continue
        name = stated.get("name") or stated.get("type") or type(tool).__name__
        asked = Asked(str(name), agent=agent.name)
        play.refuse_elsewhere(asked, "where its model is")
