"""Content of GenAI spans, by where it is: attributes, a details event, an event per message."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from baton.model import AgentCard, Content, Usage
from baton.readers.otlp.attribute_values import (
    content,
    first,
    numbered,
    parsed,
    shown,
    text,
    usage,
    whole,
)
from baton.readers.otlp.messages import Message, read_message, read_messages
from baton.readers.otlp.span import Event, Span
from baton.readers.tool_definitions import tool_names

_DETAILS = "gen_ai.client.inference.operation.details"
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
# The convention's name first, then the names in its drafts.
_IN = (_INPUT, "gen_ai.input_messages", "input_messages")
_OUT = (_OUTPUT, "gen_ai.output_messages", "output_messages")
# The oldest carrier: each message is a separate event (or log record) whose name has the role.
_HEARD = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"
STRANDS_CALL = "tool.parameters"
"""What older versions of Strands write about a tool call, with ``tool.name`` and ``tool.id``."""
_NOTHING = '""'
"""An empty text, written out as JSON."""
# pydantic-ai and Logfire: one list of all messages so far, the answer last. So input and output are
# one value, split at the last answer.
_ALL = ("pydantic_ai.all_messages", "all_messages_events", "events")


# An answer, or a conversation, that OpenAI keeps: `resp_68a1...` and `conv_68a1...`, with about 48
# hexadecimal digits. Programs give their own conversations ids such as `conv_17`.
_KEPT = re.compile(r"resp_|conv_[0-9a-f]{32}")


def goes_on(attributes: Mapping[str, Any]) -> bool:
    """Return whether a request continues a conversation whose messages its service keeps.

    Microsoft's Agent Framework names it. The request then has only the new messages.
    """
    id_ = attributes.get("gen_ai.conversation.id")
    return isinstance(id_, str) and _KEPT.match(id_) is not None


def messages(span: Span) -> tuple[Any, Any]:
    """Return the raw input and output, from the first place that has any."""
    attributes = span.attributes
    heard, spoken = attributes.get(_INPUT), attributes.get(_OUTPUT)
    if heard is not None and spoken is not None:
        return heard, spoken
    heard = first(attributes, *_IN) if heard is None else heard
    spoken = first(attributes, *_OUT) if spoken is None else spoken
    for event in span.events:
        if event.name == _DETAILS:
            carrier = _carrier(event)
            heard = first(carrier, *_IN) if heard is None else heard
            spoken = first(carrier, *_OUT) if spoken is None else spoken
    # Places are searched from the most specific to the least specific, and the first one with
    # content counts. Some spans have several (ADK with content switched on, LangSmith), with the
    # same content.
    if heard is None and spoken is None:
        return _by_message(span)
    return heard, spoken


def _by_message(span: Span) -> tuple[Any, Any]:
    attributes = span.attributes
    events = [event for event in span.events if event.name in _HEARD or event.name == _CHOICE]
    if events:
        return _from_events(events)
    log = first(attributes, *_ALL)
    if log is not None:
        return (lambda: _split(log)[0]), (lambda: _split(log)[1])
    if "gcp.vertex.agent.llm_request" in attributes:
        request = attributes["gcp.vertex.agent.llm_request"]
        response = attributes.get("gcp.vertex.agent.llm_response")
        return (lambda: _gemini(request)), (lambda: _gemini(response))
    if "gen_ai.prompt" in attributes or "gen_ai.completion" in attributes:
        return attributes.get("gen_ai.prompt"), attributes.get("gen_ai.completion")
    # `input.value` is also a name of OpenInference, where it may contain anything. It is the
    # content of this span only if the span has traceAI's kind.
    if "gen_ai.span.kind" in attributes:
        return attributes.get("input.value"), attributes.get("output.value")
    return _indexed(attributes, "gen_ai.prompt."), _indexed(attributes, "gen_ai.completion.")


def _from_events(events: list[Event]) -> tuple[Callable[[], list[Message]], Any]:
    def heard() -> list[Message]:
        read = (
            _event_message(event, _HEARD[event.name]) for event in events if event.name in _HEARD
        )
        return [message for messages in read for message in messages]

    def spoken() -> list[Message]:
        read = (_event_message(event, "assistant") for event in events if event.name == _CHOICE)
        return [message for messages in read for message in messages]

    return heard, spoken


def _event_message(event: Event, role: str) -> list[Message]:
    """Read an event that is one message, from its body or its attributes."""
    carrier = _carrier(event)
    said = first(carrier, "message", "content")
    if isinstance(said, dict) and "role" not in said:
        said = {"role": role, **said}
    messages = read_messages(said, role)
    if "tool_calls" in carrier or (role == "tool" and messages and not messages[0].answers):
        message = read_message({"role": role, **carrier, "content": said}, role)
        messages = [message] if message is not None else messages
    for message in messages:
        message.role = role if message.role == "user" else message.role
        if role in ("assistant", "user"):
            message.name = message.name or text(carrier.get("name"))
    return messages


def _carrier(event: Event) -> Mapping[str, Any]:
    """Return the content of an event: its structured body, else its attributes."""
    body = parsed(event.body)
    return {**event.attributes, **body} if isinstance(body, dict) else event.attributes


def _split(log: Any) -> tuple[list[Message], list[Message]]:
    """Split one list of all messages at the last answer of the model."""
    messages = read_messages(log)
    last = max(
        (at for at, one in enumerate(messages) if one.role == "assistant"), default=len(messages)
    )
    # Logfire writes each call of an answer as a separate message. If an earlier call was answered,
    # its answer is between them.
    while (
        0 < last < len(messages)
        and messages[last - 1].role == "assistant"
        and messages[last - 1].calls
    ):
        last -= 1
    return messages[:last], messages[last:]


def _gemini(raw: Any) -> list[Message]:
    """Read a request or response of Gemini as ADK writes it."""
    value = parsed(raw)
    if not isinstance(value, dict):
        return []
    contents = value.get("contents", value.get("content"))
    return read_messages(contents) if contents else []


def _indexed(attributes: Mapping[str, Any], prefix: str) -> Any:
    """Collect the older ``gen_ai.prompt.0.role`` attributes into messages."""
    if f"{prefix}0.role" not in attributes and f"{prefix}0.content" not in attributes:
        return None
    return [_row(row) for row in numbered(attributes, prefix)]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    message = {key: value for key, value in row.items() if not key.startswith("tool_calls.")}
    if message.get("content") == _NOTHING:
        del message["content"]
    if message.get("role") == "unknown":
        del message["role"]
    calls = numbered(row, "tool_calls.")
    return {**message, "tool_calls": calls} if calls else message


def instructions(span: Span) -> Any:
    """Return the raw system instructions."""
    stated = span.attributes.get("gen_ai.system_instructions")
    if stated is None:
        stated = first(span.attributes, "gen_ai.system.instructions", "system_prompt")
    if stated is None and span.events:
        stated = next(
            (
                first(_carrier(event), "gen_ai.system_instructions", "content")
                for event in span.events
                if event.name == "gen_ai.system.message"
                or (event.name == _DETAILS and "gen_ai.system_instructions" in event.attributes)
            ),
            None,
        )
    return stated


def definitions(span: Span) -> Any:
    """Return the raw definitions of the offered tools."""
    attributes = span.attributes
    offered = attributes.get("gen_ai.tool.definitions")
    if offered is None:
        offered = attributes.get("gen_ai.request.tools")
    if offered is not None:
        return offered
    for event in span.events:
        if event.name == _DETAILS and "gen_ai.tool.definitions" in event.attributes:
            return event.attributes["gen_ai.tool.definitions"]
    if "llm.request.functions.0.name" in attributes:
        return _functions(attributes)
    for key, inner in (
        ("model_request_parameters", "function_tools"),
        ("gcp.vertex.agent.llm_request", "config"),
    ):
        value = parsed(attributes[key]) if key in attributes else None
        if isinstance(value, dict) and inner in value:
            offered = value[inner]
            return offered.get("tools") if isinstance(offered, dict) else offered
    return None


def _functions(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Collect the older ``llm.request.functions.0.name`` attributes."""
    prefix = "llm.request.functions."
    functions: list[dict[str, Any]] = []
    while (name := attributes.get(f"{prefix}{len(functions)}.name")) is not None:
        parameters = attributes.get(f"{prefix}{len(functions)}.parameters")
        functions.append({"name": name, "parameters": parameters})
    return functions


def defined_tools(attributes: Mapping[str, Any]) -> Any:
    """Return the definitions of tools in the span of an agent."""
    return first(attributes, "gen_ai.agent.tools", "gen_ai.tool.definitions")


def card(span: Span) -> AgentCard:
    """Return what the span of an agent says about its definition."""
    attributes = span.attributes
    return AgentCard(
        description=text(attributes.get("gen_ai.agent.description")),
        tools=tool_names(defined_tools(attributes)),
        model=text(attributes.get("gen_ai.request.model")),
    )


def tool(span: Span) -> tuple[Any, Content | None]:
    """Return arguments and result of a tool call."""
    attributes = span.attributes
    arguments = attributes.get("gen_ai.tool.call.arguments")
    result = attributes.get("gen_ai.tool.call.result")
    if arguments is not None and result is not None and arguments != "{}":
        return shown(arguments), content(result)
    arguments = first(
        attributes,
        "gen_ai.tool.call.arguments",
        "gcp.vertex.agent.tool_call_args",
        "tool_arguments",
        "gen_ai.tool.arguments",
        STRANDS_CALL,
        "gen_ai.tool.input",
        "input.value",
    )
    result = first(
        attributes,
        "gen_ai.tool.call.result",
        "gcp.vertex.agent.tool_response",
        "tool_response",
        "gen_ai.tool.result",
        "gen_ai.tool.message",
        "gen_ai.tool.output",
        "output.value",
        "tool.result",
    )
    # ADK writes `{}` for both if content is not recorded. A tool that takes nothing and returns
    # nothing looks the same; unknown is the safer reading.
    if arguments == "{}" and result == "{}" and "gcp.vertex.agent.tool_response" in attributes:
        return None, None
    for event in span.events:
        if arguments is None and event.name == "gen_ai.tool.message":
            arguments = _carrier(event).get("content")
        elif result is None and event.name == _CHOICE:
            result = _carrier(event).get("message")
        elif event.name == _DETAILS:
            arguments, result = _details(event, arguments, result)
    return shown(arguments), content(result)


def _details(event: Event, arguments: Any, result: Any) -> tuple[Any, Any]:
    carrier = _carrier(event)
    for message in read_messages(first(carrier, *_IN)) if arguments is None else ():
        arguments = message.calls[0].arguments if message.calls else arguments
        match arguments:
            case [{"content": dict() as packed}]:  # Strands 1.11 and 1.12
                arguments = packed
    for message in read_messages(first(carrier, *_OUT)) if result is None else ():
        answer = message.answers[0].result if message.answers else None
        result = answer.plain() if answer is not None else result
    return arguments, result


_GEMINI = ("prompt", "tool_use_prompt", "candidates", "cached_content", "thoughts", "total")


def usage_of_gemini(response: Any) -> Usage | None:
    """Read the counts in a Gemini response; ``None`` if it has none."""
    counts = response.get("usage_metadata") if isinstance(response, Mapping) else None
    if not isinstance(counts, Mapping):
        return None
    count = {kind: whole(counts.get(f"{kind}_token_count")) for kind in _GEMINI}
    prompt, tools = count["prompt"], count["tool_use_prompt"]
    return usage(
        input=prompt if tools is None else (prompt or 0) + tools,
        output=count["candidates"],
        total=count["total"],
        read=count["cached_content"],
        thinking=count["thoughts"],
    )
