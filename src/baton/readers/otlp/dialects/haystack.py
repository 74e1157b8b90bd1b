"""Haystack's own spans: of pipelines, components and agents, by ``opentelemetry-haystack``.

An agent has no name of its own. In a pipeline it has the name of its component, as a tool the name
of the tool: callers have no other name for it.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping
from typing import Any

from baton.model import Content
from baton.readers.otlp.attribute_values import (
    content,
    parsed,
    printed_objects,
    shown,
    text,
    usage_of,
)
from baton.readers.otlp.handover_calls import hand_over, prompt_of
from baton.readers.otlp.messages import Call, Message, read_messages
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    MessageSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    WorkflowSpan,
    fail,
)
from baton.readers.tool_definitions import targets_of, tool_names

from .dialect import Dialect

_PREFIX = "haystack."
_COMPONENT = "haystack.component."
_STEP = "haystack.agent.step."
_FRAMEWORK = "haystack"
# Version 2 runs a model and tools as components of an agent, version 3 as its steps.
_INVOKER = "ToolInvoker"
_AS_PRINTED = ("{'role': 'assistant'", "{'last_message': {", "{'messages': [{")
_ERROR = "haystack.tool.error"
# Before version 3.4, only these words say that a tool failed: "Failed to invoke Tool `find_trains`
# with parameters {'city': 'Bonn'}. Error: no such city", "Tool `add` has no sync `function`".
_FAILED = re.compile(r"(?:Failed to invoke )?Tool `(?P<name>[^`]+)` (?:with parameters|has no) ")
# Contents of messages, by their classes.
_BLOCKS = {
    "ToolCall": "tool_call",
    "ToolCallResult": "tool_call_result",
    "ReasoningContent": "reasoning",
    "ImageContent": "image",
    "FileContent": "file",
}


def claims(span: Span) -> bool:
    """Return whether a span is from Haystack.

    MLflow names the span of a component by its class.
    """
    return span.name.startswith(_PREFIX) or _COMPONENT + "name" in span.attributes


def read(span: Span) -> Reading:
    """Read one span."""
    attributes = span.attributes
    says: Reading
    if span.name == "haystack.agent.run":
        says = _agent(attributes)
    elif span.name == "haystack.agent.step.llm":
        says = _model(attributes, _STEP + "llm.")
    elif span.name == "haystack.agent.step.tool":
        says = _tool(attributes)
    elif span.name == "haystack.pipeline.run":
        says = WorkflowSpan(name="pipeline")
        says.heard = _first_messages(_value(attributes, "haystack.pipeline.input_data"))
    elif span.name == "haystack.component.run" or _COMPONENT + "name" in attributes:
        says = _component(attributes)
    else:
        says = PlainSpan(name=span.name)
    says.framework = _FRAMEWORK
    fail(says, span)
    return says


def _agent(attributes: Mapping[str, Any]) -> AgentSpan:
    tools = _definitions(_value(attributes, "haystack.agent.tools"))
    says = AgentSpan(offered=tool_names(tools), reaches=targets_of(tools))
    given = _value(attributes, "haystack.agent.input")
    if isinstance(given, Mapping):
        says.heard = given.get("messages")
    made = _value(attributes, "haystack.agent.output")
    if isinstance(made, Mapping):
        said = [m for m in read_messages(made.get("messages"), "user") if m.role == "assistant"]
        last = said[-1] if said else None
        says.output = last.content if last is not None and not last.calls else None
    return says


def _model(attributes: Mapping[str, Any], prefix: str) -> ModelSpan:
    given, made = _value(attributes, prefix + "input"), _value(attributes, prefix + "output")
    says = ModelSpan()
    if isinstance(given, Mapping):
        messages = given.get("messages")
        if messages is not None:
            says.heard = lambda: _with_plain_answers(read_messages(messages, "user"))
        tools = _definitions(given.get("tools"))
        says.offered, says.reaches = tool_names(tools), targets_of(tools)
    replies = made.get("replies") if isinstance(made, Mapping) else None
    if isinstance(replies, list):
        says.spoken = replies
        for reply in replies:
            meta = reply.get("meta") if isinstance(reply, Mapping) else None
            if isinstance(meta, Mapping):
                says.model = text(meta.get("model"))
                counts = meta.get("usage")
                says.usage = usage_of(counts, "") if isinstance(counts, Mapping) else None
    return says


def _with_plain_answers(messages: list[Message]) -> list[Message]:
    """Replace each answer of a tool that is an agent's whole message by what the agent said.

    ``ComponentTool`` passes on the last message of an agent as JSON: ``{"role": "assistant",
    "meta": {"model": ...}, "content": [{"text": "ICE 571 at 09:12"}]}``.
    """
    for message in messages:
        for answer in message.answers:
            told = _printed(answer.result.plain()) if answer.result is not None else None
            if isinstance(told, Mapping) and "last_message" in told:
                told = told["last_message"]  # of an agent in a pipeline, or of its whole state
            if isinstance(told, Mapping) and told.get("role") == "assistant" and "content" in told:
                said = read_messages([told], "assistant")
                answer.result = said[-1].content if said else answer.result
    return messages


def _value(attributes: Mapping[str, Any], key: str) -> Any:
    """Return a value from JSON, or from the text that Python prints for it.

    Haystack prints a value if a part of it cannot be written as JSON, such as a function:
    ``streaming_callback=print_streaming_chunk``.
    """
    value = parsed(attributes.get(key))
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    found = printed_objects(value, _object)
    return value if found is None else found


def _object(kind: str, fields: dict[str, Any]) -> Any:
    """Return an object as its class serialises it: ``ChatMessage(_role='user', ...)``."""
    if kind == "ChatMessage":
        return {name.removeprefix("_"): value for name, value in fields.items()}
    if kind == "ToolCallResult" and isinstance(origin := fields.get("origin"), Mapping):
        fields["origin"] = origin.get("tool_call")
    return {_BLOCKS[kind]: fields} if kind in _BLOCKS else fields


def _printed(value: str) -> Any:
    """Return an object from JSON, or from the form in which Python prints it, as in version 2."""
    if not value.startswith(_AS_PRINTED):
        return parsed(value)
    try:
        return literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _definitions(tools: Any) -> Any:
    """Return tools as definitions: each is serialised as a class and its data.

    If one cannot be serialised, such as a function without a name, all of them are printed as
    Python prints objects. One that Python prints without its fields is ``None``: then they are
    unknown.
    """
    if not isinstance(tools, list) or None in tools:
        return None
    return [
        tool.get("data") if isinstance(tool, Mapping) and "data" in tool else tool for tool in tools
    ]


def _tool(attributes: Mapping[str, Any]) -> ToolSpan:
    made = _value(attributes, _STEP + "tool.output")
    error = text(made.get("error")) if isinstance(made, Mapping) else None
    told = _FAILED.match(error) if error is not None and set(made) == {"error"} else None
    name = text(attributes.get("haystack.tool.name"))
    says = ToolSpan(
        name=name,
        arguments=shown(attributes.get(_STEP + "tool.input")),
        failed=attributes.get(_ERROR) is True or (told is not None and told["name"] == name),
        # Before version 3.4, only the output says that a tool failed. Nothing tells the version.
        tells_failure=_STEP + "tool.output" in attributes or _ERROR in attributes,
    )
    if says.failed:
        says.error = error
    else:
        last = made.get("last_message") if isinstance(made, Mapping) else None
        # An agent returns its whole state. The model is told its last message.
        said = read_messages(last, "assistant") if isinstance(last, Mapping) else []
        says.result = said[-1].content if said else content(made)
    hand_over(says, None, {})
    return says


def _component(attributes: Mapping[str, Any]) -> Reading:
    name, kind = text(attributes.get(_COMPONENT + "name")), attributes.get(_COMPONENT + "type")
    made = _value(attributes, _COMPONENT + "output")
    if kind == _INVOKER:
        return _invoked(made, attributes)
    # Recognised by its output, because classes of generators can have any name.
    if "Generator" in str(kind) or (isinstance(made, Mapping) and "replies" in made):
        return _model(attributes, _COMPONENT)
    return PlainSpan(name=name)


def _invoked(made: Any, attributes: Mapping[str, Any]) -> Reading:
    """Read the calls of one answer, which version 2 executes in one component.

    One call is a tool that ran; for several, it is unknown when each of them ran. If a tool raised
    and the invoker too, there are no answers, only the calls.
    """
    if made is None:
        return _tried(attributes)
    tool_messages = made.get("tool_messages") if isinstance(made, Mapping) else None
    messages = read_messages(tool_messages, "tool") if isinstance(tool_messages, list) else []
    answers = [answer for message in _with_plain_answers(messages) for answer in message.answers]
    if len(answers) != 1:
        return MessageSpan(heard=lambda: messages) if messages else PlainSpan()
    (answer,) = answers
    says = ToolSpan(name=answer.name, call=answer.id, failed=answer.failed)
    says.arguments = (
        _origin(tool_messages).get("arguments") if isinstance(tool_messages, list) else None
    )
    if answer.failed:
        says.error = answer.result.plain() if answer.result is not None else None
    else:
        says.result = answer.result
    hand_over(says, None, {})
    return says


def _tried(attributes: Mapping[str, Any]) -> Reading:
    calls = _calls(attributes)
    if len(calls) != 1:
        return MessageSpan() if calls else PlainSpan()
    (call,) = calls
    says = ToolSpan(name=call.name, call=call.id, arguments=call.arguments)
    hand_over(says, None, {})
    return says


def _calls(attributes: Mapping[str, Any]) -> list[Call]:
    """Return what an invoker was told to call."""
    given = _value(attributes, _COMPONENT + "input")
    messages = given.get("messages") if isinstance(given, Mapping) else None
    asked = read_messages(messages, "assistant") if isinstance(messages, list) else []
    return [call for message in asked[-1:] for call in message.calls]


def _origin(tool_messages: list[Any]) -> Mapping[str, Any]:
    """Return the call that the first of the messages answers."""
    for message in tool_messages:
        blocks = message.get("content") if isinstance(message, Mapping) else None
        for block in blocks if isinstance(blocks, list) else ():
            result = block.get("tool_call_result") if isinstance(block, Mapping) else None
            origin = result.get("origin") if isinstance(result, Mapping) else None
            if isinstance(origin, Mapping):
                return origin
    return {}


def _first_messages(given: Any) -> Any:
    """Return the question to a pipeline: the messages, or else the only text, for a component."""
    if not isinstance(given, Mapping):
        return None
    inputs = [each for each in given.values() if isinstance(each, Mapping)]
    for each in inputs:
        if isinstance(each.get("messages"), list):
            return each["messages"]
    texts = [value for each in inputs for value in each.values() if text(value)]
    return texts[0] if len(set(texts)) == 1 else None


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Give each agent the name of its component or tool, and each pipeline that of its tool."""
    for node in nodes:
        says, around = node.says, node.parent
        if type(says) is WorkflowSpan and claims(node.span) and around is not None:
            if type(around.says) is ToolSpan:
                says.name = around.says.name or says.name
        if type(says) is not AgentSpan or not claims(node.span) or around is None:
            continue
        component = type(around.says) is PlainSpan and claims(around.span)
        if component or type(around.says) is ToolSpan:
            says.name = says.name or around.says.name  # type: ignore[union-attr]
        elif type(around.says) is MessageSpan:
            says.name = says.name or _called(around.span, says.asked())
    return []


def _called(invoker: Span, asked: Content | None) -> str | None:
    """Return the tool that passed on an agent's question, as a text or as a list of messages."""
    if asked is None:
        return None
    for call in _calls(invoker.attributes):
        arguments = call.arguments
        prompt = prompt_of(arguments)[0] if isinstance(arguments, Mapping) else None
        if prompt is not None and prompt.plain() == asked.plain():
            return call.name
    return None


DIALECT = Dialect(
    # Before MLflow, which keeps Haystack's attributes and adds its own.
    name="haystack",
    rank=14,
    claims=claims,
    read=read,
    resolve=resolve,
    prefixes=(_PREFIX,),
)
