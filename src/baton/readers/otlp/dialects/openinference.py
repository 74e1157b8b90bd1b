"""OpenInference: OpenAI Agents, LangChain and LangGraph, CrewAI and many others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.model import AgentCard
from baton.readers.otlp.attribute_values import (
    amount,
    content,
    first,
    numbered,
    parsed,
    shown,
    text,
    usage,
    whole,
)
from baton.readers.otlp.dialects import langchain
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.messages import Message, read_message, read_messages
from baton.readers.otlp.span import Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    HandoffSpan,
    ModelSpan,
    PlainSpan,
    Reading,
    ToolSpan,
    fail,
)
from baton.readers.tool_definitions import targets_of, tool_names

from . import microsoft
from .dialect import Dialect
from .genai import named_by

KIND = "openinference.span.kind"
# Kinds that do not concern agents: a step of a program, and a template.
_CHAINS = frozenset({"CHAIN", "PROMPT"})
# OpenAI Agents' instrumentation: a TOOL span called `handoff to Billing`, without `tool.name`.
_HANDOFF = "handoff to "
_ANSWERED = "llm.output_messages."
# Any raw response with tool calls contains one of these words. A text search is cheap, and most
# answers have no call and need not be decoded a second time.
_CALLING = ("tool_call", "tool_use", "function_call")
_RESPONSE = ('{"id":"resp_', '{"id": "resp_')
_CONTINUED = (
    '"previous_response_id":"', '"previous_response_id": "',
    '"conversation":{"id"', '"conversation": {"id"',
)  # fmt: skip
# Who made a span: `openinference.instrumentation.langchain`, or our own handler.
_JAVASCRIPT = "@arizeai/openinference-instrumentation-"
_SCOPES = ("openinference.instrumentation.", "baton.instrumentation.", _JAVASCRIPT)
# Instrumentations whose name differs from the framework's. LangGraph has no instrumentation itself.
_OPENAI = "openai-agents"
_FRAMEWORKS = {
    "autogen_agentchat": "autogen",
    "langchain": "langgraph",
    "openai_agents": _OPENAI,
}


def claims(span: Span) -> bool:
    """Return whether a span was written in this convention, and not only translated into it.

    Processors such as those for pydantic-ai, Strands and Microsoft's Agent Framework add these
    attributes to spans that the framework wrote in OpenTelemetry's convention. A translation has
    less data: it has no agent name, and only one of two answers in a message.
    """
    return KIND in span.attributes and not _translated(span)


def _beside(span: Span) -> bool:
    return KIND in span.attributes and _translated(span)


def _translated(span: Span) -> bool:
    # OpenInference can write both conventions (`OPENINFERENCE_ENABLE_GENAI_SEMCONV`): there the
    # scope says that its own came first.
    attributes = span.attributes
    native = "gen_ai.operation.name" in attributes or "mastra.span.type" in attributes
    native = native or span.scope == microsoft.SCOPE
    return native and not span.scope.startswith(_SCOPES)


def read(span: Span) -> Reading:
    """Read one span."""
    attributes = span.attributes
    # The processor for the Vercel AI SDK leaves the kind of other spans empty.
    kind = str(first(attributes, KIND) or "CHAIN").upper()
    says: Reading
    if kind == "LLM":
        tools = _definitions(attributes)
        says = ModelSpan(
            model=text(first(attributes, "llm.response.model_name", "llm.model_name")),
            agent=text(attributes.get("agent.name")),
            heard=_messages(attributes, "input"),
            spoken=_messages(attributes, "output"),
            offered=tool_names(tools) if tools else None,
            reaches=targets_of(tools) if tools else {},
            usage=_usage(attributes),
            context_lost=_continues(attributes),
        )
        fail(says, span)
    elif kind == "TOOL":
        says = _tool(span)
    elif kind == "AGENT":
        named = text(first(attributes, "agent.name", "gen_ai.agent.name"))
        named = named or named_by(span.name)
        named = named or text(first(attributes, "graph.node.id", "graph.node.name"))
        tools = parsed(attributes.get("agent.tools"))
        says = AgentSpan(
            name=named or span.name,
            after=text(attributes.get("graph.node.parent_id")),
            heard=attributes.get("input.value"),
            spoken=attributes.get("output.value"),
            reaches=targets_of(tools),
            card=AgentCard(
                description=text(attributes.get("agent.description")), tools=tool_names(tools)
            ),
            totals=_usage(attributes),
        )
        fail(says, span)
    elif kind in _CHAINS:
        # Other scopes are tracers of programs, which mark their own functions: `@tracer.chain`.
        is_own = bool(span.scope) and not (span.scope.startswith(_SCOPES) or _translated(span))
        says = PlainSpan(name=span.name, is_own=is_own)
        if _translated(span):
            says.heard, says.spoken = (_messages(attributes, side) for side in ("input", "output"))
        fail(says, span)
    else:
        says = PlainSpan(lost=f"spans of kind {kind}")
    name = span.scope
    for scope in _SCOPES:
        name = name.removeprefix(scope)
    name = name.partition(".")[0]
    says.framework = _FRAMEWORKS.get(name, name.replace("_", "-") or None)
    if type(says) is ToolSpan and says.framework == _OPENAI and not says.failed:
        # An empty result is written as "". If nothing is written, the tool has not run: a person
        # has to approve the call first.
        says.waits = says.arguments is not None and "output.value" not in attributes
    if says.framework == "langgraph" or langchain.is_from(span):
        says = langchain.refine(says, span)
    return says


def _continues(attributes: Mapping[str, Any]) -> bool:
    """Return whether a request to OpenAI continues messages that OpenAI keeps.

    It then has only the new messages. The answer, which the parameters repeat, names the one before
    or the conversation.
    """
    return any(
        isinstance(raw := attributes.get(name), str)
        and raw.startswith(_RESPONSE)
        and any(stated in raw for stated in _CONTINUED)
        for name in ("llm.invocation_parameters", "output.value")
    )


def _tool(span: Span) -> Reading:
    attributes = span.attributes
    name = text(attributes.get("tool.name"))
    nameless = name is None and span.name.lower().partition(" ")[0] == "handoff"
    if nameless or (name and name == _HANDOFF.replace(" ", "_") + span.name[len(_HANDOFF) :]):
        # OpenAI Agents: a tool without a name, with the names of both agents as in and output. In
        # JavaScript these are `{"from_agent": ...}` and `{"to_agent": ...}`.
        sender, target = (
            text(each.get(key) if isinstance(each, dict) else each)
            for each, key in (
                (shown(attributes.get("input.value")), "from_agent"),
                (shown(attributes.get("output.value")), "to_agent"),
            )
        )
        handoff = HandoffSpan(
            agent=sender,
            target=target or span.name[len(_HANDOFF) :] or None,
        )
        fail(handoff, span)
        return handoff
    says = ToolSpan(
        name=name or span.name,
        agent=text(attributes.get("agent.name")),
        call=text(first(attributes, "tool.id", "tool_call.id", "tool.call_id")),
        arguments=shown(attributes.get("input.value")),
        result=content(attributes.get("output.value")),
    )
    fail(says, span)
    hand_over(says, None, attributes)
    return says


def _messages(attributes: Mapping[str, Any], side: str) -> Any:
    """Return the messages of one side: flattened attributes, else the raw value."""
    prefix = f"llm.{side}_messages."
    if f"{prefix}0.message.role" in attributes or f"{prefix}0.message.content" in attributes:
        return lambda: _unflattened(attributes, prefix, attributes.get(f"{side}.value"))
    value = attributes.get(f"{side}.value")
    role = "user" if side == "input" else "assistant"
    return None if value is None else (lambda: read_messages(value, role))


def _unflattened(attributes: Mapping[str, Any], prefix: str, raw: Any) -> list[Message]:
    """Read flattened messages; missing arguments of calls are taken from the raw value, if any.

    Older versions flatten only the calls that the model's own client supports.
    """
    messages = _rows(attributes, prefix)
    if prefix == _ANSWERED and _may_call(raw) and not any(message.calls for message in messages):
        whole_messages = read_messages(raw, "assistant")
        return whole_messages if any(message.calls for message in whole_messages) else messages
    bare = [call for message in messages for call in message.calls if call.arguments is None]
    whole_calls = [c for message in read_messages(raw) for c in message.calls] if bare else []
    for call in bare:
        same = (other.arguments for other in whole_calls if other.id == call.id)
        # OpenInference can leave out empty arguments, so a call without arguments has `{}`.
        call.arguments = next(same, None) or {}
    return messages


def _may_call(raw: Any) -> bool:
    return isinstance(raw, str) and any(word in raw for word in _CALLING)


def _rows(attributes: Mapping[str, Any], prefix: str) -> list[Message]:
    messages = (
        _row({key.removeprefix("message."): value for key, value in row.items()})
        for row in numbered(attributes, prefix)
    )
    return [message for message in messages if message is not None]


_LISTS = ("tool_calls.", "contents.")


def _row(row: Mapping[str, Any]) -> Message | None:
    """Read one flattened message."""
    message: dict[str, Any] = {"role": row.get("role", "user")}
    message |= {key: value for key, value in row.items() if not key.startswith(_LISTS)}
    calls, blocks = (numbered(row, prefix) for prefix in _LISTS)
    if calls:
        message["tool_calls"] = [
            {name.rpartition(".")[2]: value for name, value in call.items()} for call in calls
        ]
    elif "function_call_name" in row:
        call = {
            "name": row["function_call_name"],
            "arguments": row.get("function_call_arguments_json"),
        }
        message["tool_calls"] = [call]
    if blocks and "content" not in message:
        message["content"] = [
            _block({name.removeprefix("message_content."): value for name, value in block.items()})
            for block in blocks
        ]
    return read_message(message)


def _block(block: dict[str, Any]) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "image":
        return {"type": "image", "uri": block.get("image.image.url")}
    return block


def _definitions(attributes: Mapping[str, Any]) -> Any:
    schemas: Any = []
    while True:
        prefix = f"llm.tools.{len(schemas)}.tool."
        schema, name = attributes.get(prefix + "json_schema"), attributes.get(prefix + "name")
        if schema is None and name is None:
            break
        # If the name is a separate attribute, the schema can be that of the arguments alone.
        schemas.append(schema if name is None else {"name": name, "parameters": schema})
    # Instrumentations of some providers record tools only in the request parameters.
    if not schemas:
        asked = parsed(attributes.get("llm.invocation_parameters"))
        schemas = asked.get("tools") if isinstance(asked, dict) else None
    return schemas or None


def _usage(attributes: Mapping[str, Any]) -> Any:
    prefix = "llm.token_count."
    prompt, answer = attributes.get(prefix + "prompt"), attributes.get(prefix + "completion")
    cost = amount(attributes.get("llm.cost.total"))
    if prompt is None and answer is None and cost is None:
        return None
    return usage(
        input=whole(prompt),
        output=whole(answer),
        read=whole(attributes.get(prefix + "prompt_details.cache_read")),
        write=whole(attributes.get(prefix + "prompt_details.cache_write")),
        thinking=whole(attributes.get(prefix + "completion_details.reasoning")),
        total=whole(attributes.get(prefix + "total")),
        cost=cost,
    )


DIALECT = Dialect(
    name="openinference",
    rank=40,
    claims=claims,
    read=read,
    beside=_beside,
    prefixes=("openinference.", "llm."),
    results={"output.value": ""},
)
