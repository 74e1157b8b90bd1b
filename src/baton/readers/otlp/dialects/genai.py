"""OpenTelemetry's own GenAI conventions, old and new, and what frameworks add to them.

Google ADK, Strands, pydantic-ai, Microsoft Agent Framework and AutoGen write these themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from baton.readers.otlp.attribute_values import (
    content,
    first,
    parsed,
    text,
)
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.messages import ASKS_A_PERSON
from baton.readers.otlp.span import ERROR, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    HandoffSpan,
    ModelSpan,
    PlainSpan,
    Reading,
    ToolSpan,
    WorkflowSpan,
    fail,
)
from baton.readers.tool_definitions import targets_of, tool_names

from . import genai_content as carried
from . import microsoft, pydantic_ai
from .dialect import Dialect

# `text_completion`, and `completion` in older versions.
_COMPLETION = "completion"
# traceAI and others write only `gen_ai.span.kind`, with values of OpenInference.
_KINDS = {"AGENT": "invoke_agent", "LLM": "chat", "TOOL": "execute_tool"}
# Operations whose content is always in other spans, too: a cycle of Strands' loop, a node of its
# graph, LangGraph's move to a node, and a kind that its writer did not know. Any other unknown
# operation is reported as lost.
_BOOKKEEPING = frozenset({"execute_event_loop_cycle", "invoke_node", "goto", "unknown"})
# How providers say that the model stopped to call tools: OpenAI, the convention, Anthropic, and
# older OpenAI.
_CALLS = frozenset({"tool_calls", "tool_call", "tool_use", "function_call"})
TOKENS = ("gen_ai.usage.", "llm.usage.", "gen_ai.aggregated_usage.")
"""Prefixes of the names of counts: of the convention, Traceloop, and pydantic-ai's agents."""
# The convention has no cost. These are pydantic-ai's, traceAI's and OpenLIT's.
COSTS = ("operation.cost", "gen_ai.cost.total", "gen_ai.usage.cost")
"""Attributes with the cost of a request."""
# ADK sums up parallel calls in a span called `(merged tools)`, and also writes a span for each
# call. With both, the calls would count twice.
_MERGED = "(merged"
# ADK writes this as the id of a call whose tool raised. It would be the id of all such calls.
_NO_ID = "<not specified>"
_WORD = re.compile(r"\w+")
_STRANDS = "strands-agents"
# Old versions of Strands have no operation name; this name distinguishes their spans.
_MODEL_INVOKE = "Model invoke"
# Old versions of ADK: the agent's name is only in `agent_run [billing]`.
_AGENT_RUN = re.compile(r"agent_run \[(.+)\]")


# ADK 1.0 has two spans for a call: `tool_call [pay]`, which holds what the tool did, and
# `tool_response [pay]`, whose content is also in the next request.
_TOOL_CALL = re.compile(r"tool_call \[(.+)\]")
_TOOL_RESPONSE = "tool_response ["


def claims(span: Span) -> bool:
    """Return whether a span follows these conventions."""
    attributes = span.attributes
    return (
        "gen_ai.operation.name" in attributes
        or "gen_ai.system" in attributes
        or "gen_ai.request.model" in attributes
        or "gen_ai.agent.name" in attributes
        or "gen_ai.tool.name" in attributes
        or "gen_ai.span.kind" in attributes
        or _named_agent(span.name) is not None
        or _TOOL_CALL.fullmatch(span.name) is not None
        or carried.STRANDS_CALL in attributes
        or "event_loop.cycle_id" in attributes
    )


def read(span: Span) -> Reading:
    """Read one span."""
    attributes = span.attributes
    operation = attributes.get("gen_ai.operation.name")
    if type(operation) is not str or not operation:
        operation = _operation(span)
    reads = _READ.get(operation) if operation is not None else None
    says: Reading
    if reads is not None:
        says = reads(span)
    elif operation is not None and _COMPLETION in operation:
        says = read_model(span)
    elif operation is None and span.scope == microsoft.SCOPE:
        says = microsoft.read(span)
    else:
        known = operation is None or operation in _BOOKKEEPING
        says = PlainSpan(
            name=span.name, lost=None if known else f"spans of operation `{operation}`"
        )
    if attributes.get("gen_ai.system") == _STRANDS:
        says.framework = "strands"
    return says


def _operation(span: Span) -> str | None:
    """Return the operation of a span; older versions do not state it in an attribute."""
    attributes = span.attributes
    kind = attributes.get("gen_ai.span.kind")
    if kind is not None:
        return _KINDS.get(str(kind).upper())
    if "gen_ai.tool.name" in attributes or _named_tool(span.name) is not None:
        return "execute_tool"
    if carried.STRANDS_CALL in attributes:
        return "execute_tool"
    if attributes.get("gen_ai.system") == _STRANDS and "gen_ai.agent.name" in attributes:
        return "chat" if span.name == _MODEL_INVOKE else "invoke_agent"
    if "gcp.vertex.agent.llm_request" in attributes or "gen_ai.request.model" in attributes:
        no_request = "agent_name" in attributes or span.name.startswith(_TOOL_RESPONSE)
        return None if no_request else "chat"
    if "gen_ai.agent.name" in attributes or "agent_name" in attributes:
        return "invoke_agent"
    if _named_agent(span.name) is not None:
        return "invoke_agent"
    # ADK's `call_llm` has a child `generate_content` with the same usage, so reading both would
    # count tokens twice. If the call failed there is no child, and the span is the only sign of the
    # request.
    return "chat" if span.name == "call_llm" and span.status == ERROR else None


def read_agent(span: Span) -> AgentSpan:
    """Read the span of one agent's work."""
    attributes = span.attributes
    says = AgentSpan(
        name=_agent(attributes) or _named_agent(span.name) or named_by(span.name),
        run=text(attributes.get("gen_ai.agent.call.id")),
        model=_model(attributes),
        output=content(attributes.get("final_result")),
        instructions=carried.instructions(span),
        card=carried.card(span),
    )
    if says.output is not None and pydantic_ai.is_deferred(says.output.data):
        says.to_approve = pydantic_ai.to_approve(says.output.data)
        says.output, says.waits = None, True
    said = attributes.get("gen_ai.output.messages")
    # Looked for as text first, as decoding every message would be slow.
    if span.scope == microsoft.SCOPE and isinstance(said, str) and ASKS_A_PERSON in said:
        says.waits = microsoft.asks_a_person(parsed(said))
    if attributes.get("gen_ai.caller.type", "agent") == "agent":
        says.called_by = text(attributes.get("gen_ai.caller.name"))
    says.heard, says.spoken = carried.messages(span)
    says.context_lost = carried.goes_on(attributes)
    if says.card is not None and isinstance(says.card.tools, list):
        says.offered = says.card.tools
        says.reaches = targets_of(carried.defined_tools(attributes))
    fail(says, span)
    return says


def read_model(span: Span) -> ModelSpan:
    """Read the span of one model request."""
    attributes = span.attributes
    heard, spoken = carried.messages(span)
    tools = carried.definitions(span)
    says = ModelSpan(
        agent=_agent(attributes),
        model=_model(attributes),
        heard=heard,
        spoken=spoken,
        instructions=carried.instructions(span),
        offered=tool_names(tools),
        context_lost=carried.goes_on(attributes),
    )
    if says.offered:
        says.reaches = targets_of(tools)
    if "gcp.vertex.agent.llm_response" in attributes:
        # With these counts, older versions of ADK report the total as the output.
        says.usage = carried.usage_of_gemini(parsed(attributes["gcp.vertex.agent.llm_response"]))
    if "model_request_parameters" in attributes:
        says.answers_by = pydantic_ai.answer_tools(attributes["model_request_parameters"])
    if "gen_ai.response.finish_reasons" in attributes:
        says.calls = not _CALLS.isdisjoint(_reasons(attributes["gen_ai.response.finish_reasons"]))
    fail(says, span)
    return says


def read_tool(span: Span) -> ToolSpan | PlainSpan:
    """Read the span of one tool call."""
    attributes = span.attributes
    named = attributes.get("gen_ai.tool.name")
    named = attributes.get("tool.name") if named is None else named
    name = text(named) or _named_tool(span.name)
    if name is None or name.startswith(_MERGED):
        return PlainSpan()
    id_ = text(attributes.get("gen_ai.tool.call.id")) or text(attributes.get("tool.id"))
    says = ToolSpan(
        name=name,
        agent=_agent(attributes),
        call=id_ if id_ != _NO_ID else None,
    )
    says.arguments, says.result = carried.tool(span)
    if _TOOL_CALL.fullmatch(span.name) is not None:
        says.arguments = None  # as the call has them; the result is only in the next request
    fail(says, span)
    if says.error == pydantic_ai.NO_REASON and says.result is not None:
        says.error = None
    if (attributes.get("gen_ai.tool.status") or attributes.get("tool.status")) == "error":
        says.failed = True
    hand_over(says, text(attributes.get("gen_ai.tool.type")), attributes)
    return says


def read_handoff(span: Span) -> HandoffSpan:
    """Read the span of control that passes from one agent to another."""
    attributes = span.attributes
    says = HandoffSpan(
        agent=text(first(attributes, "gen_ai.handoff.from_agent", "gen_ai.agent.name")),
        target=text(attributes.get("gen_ai.handoff.to_agent")),
    )
    fail(says, span)
    return says


def _read_workflow(span: Span) -> WorkflowSpan:
    named = text(span.attributes.get("gen_ai.workflow.name"))
    operation = span.attributes["gen_ai.operation.name"]
    says = WorkflowSpan(name=named or operation.removeprefix("invoke_"))
    says.heard, says.spoken = carried.messages(span)
    fail(says, span)
    return says


def _read_definition(span: Span) -> PlainSpan:
    name = text(span.attributes.get("gen_ai.agent.name"))
    return PlainSpan(name=name, agent=AgentSpan(card=carried.card(span)))


# Readers by the value of `gen_ai.operation.name`, in which all of these frameworks write what a
# span does.
_READ: dict[str, Callable[[Span], Reading]] = {
    "invoke_agent": read_agent,
    # `chat` and `generate_content` belong to the convention; `response` is OpenAI's name for a
    # request to its Responses API.
    "chat": read_model,
    "generate_content": read_model,
    "response": read_model,
    "execute_tool": read_tool,
    # These are not in the convention: `handoff` is Traceloop's for OpenAI Agents, with its own
    # attributes for both agents.
    "handoff": read_handoff,
    "agent_handoff": read_handoff,
    # `invoke_workflow` belongs to the convention (ADK writes it), the others are Strands' own. They
    # start agents, but are not agents themselves.
    "invoke_workflow": _read_workflow,
    "invoke_swarm": _read_workflow,
    "invoke_graph": _read_workflow,
    "create_agent": _read_definition,
}


def _agent(attributes: Mapping[str, Any]) -> str | None:
    name = attributes.get("gen_ai.agent.name")
    return text(attributes.get("agent_name") if name is None else name)


def _named_agent(name: str) -> str | None:
    """Return an agent's name from the name of its span, its only place in older versions of ADK."""
    match = _AGENT_RUN.fullmatch(name)
    return match.group(1) if match else None


def named_by(span_name: str) -> str | None:
    """Return an agent's name from a span name of the convention: ``invoke_agent billing``."""
    prefix, _, rest = span_name.partition(" ")
    return rest.strip() or None if prefix == "invoke_agent" else None


def _named_tool(name: str) -> str | None:
    old = _TOOL_CALL.fullmatch(name)
    if old is not None:
        return old.group(1)
    prefix, _, rest = name.partition(" ")
    return rest if prefix == "execute_tool" and rest else None


def _reasons(reasons: Any) -> list[str]:
    """Return why the model stopped: a list, or the text from which a list was made."""
    if isinstance(reasons, str):
        return _WORD.findall(reasons)
    return (
        [reason for reason in reasons if isinstance(reason, str)]
        if isinstance(reasons, list)
        else []
    )


def _model(attributes: Mapping[str, Any]) -> str | None:
    model = attributes.get("gen_ai.response.model")
    if model is None:
        model = first(attributes, "gen_ai.request.model", "model_name")
    return text(model)


DIALECT = Dialect(
    name="genai",
    rank=90,
    claims=claims,
    read=read,
    tokens=TOKENS,
    costs=COSTS,
    prefixes=("gen_ai.", "llm.", "agent."),
    results={"gen_ai.tool.call.result": "", "tool_response": ""},
    sessions=("agentevals.session_name",),
    answers=("gen_ai.response.id",),
    conversations=("gen_ai.conversation.id", "gcp.vertex.agent.session_id"),
)
