"""OpenTelemetry's own GenAI conventions, old and new, and what frameworks add to them.

Google ADK, Strands, pydantic-ai, Microsoft Agent Framework and AutoGen write these themselves.
"""

from __future__ import annotations

import re

from baton.model import Usage
from baton.readers.otlp.node import Node
from baton.readers.otlp.span import ERROR, Event, Span
from baton.readers.otlp.tokens import usage_of, usage_of_gemini
from baton.readers.otlp.values import amount, content, first, parsed, text

from . import genai_content as carried
from .base import Dialect
from .handover import hand_over, tool_names

_AGENTS = frozenset({"invoke_agent"})
_MODELS = frozenset({"chat", "generate_content", "response"})
_COMPLETION = "completion"
_KINDS = {"AGENT": "invoke_agent", "LLM": "chat", "TOOL": "execute_tool"}
_WORKFLOWS = frozenset({"invoke_workflow", "invoke_swarm", "invoke_graph"})
_FRAMEWORKS = {
    "gcp.vertex.agent": "google-adk",
    "strands.telemetry.tracer": "strands",
    "pydantic-ai": "pydantic-ai",
    "agent_framework": "microsoft-agent-framework",
    "autogen-core": "autogen",
    "opentelemetry.instrumentation.openai_agents": "openai-agents",
}
_HANDOFFS = frozenset({"handoff", "agent_handoff"})
_PLUMBING = frozenset({"execute_event_loop_cycle", "invoke_node", "goto", "unknown"})
_CALLS = frozenset({"tool_calls", "tool_call", "tool_use", "function_call"})
_COSTS = ("operation.cost", "gen_ai.cost.total", "gen_ai.usage.cost")
_MAF = "agent_framework"
_MERGED = "(merged"
_WORD = re.compile(r"\w+")
_STRANDS = "strands-agents"
_MODEL_INVOKE = "Model invoke"
_AGENT_RUN = re.compile(r"agent_run \[(.+)\]")


def claims(span: Span) -> bool:
    """Tell a span of these conventions."""
    attributes = span.attributes
    return (
        "gen_ai.operation.name" in attributes
        or "gen_ai.system" in attributes
        or "gen_ai.request.model" in attributes
        or "gen_ai.agent.name" in attributes
        or "gen_ai.tool.name" in attributes
        or "gen_ai.span.kind" in attributes
        or span.scope in _FRAMEWORKS
        or _named_agent(span.name) is not None
        or carried.STRANDS_CALL in attributes
        or "event_loop.cycle_id" in attributes
    )


def read(span: Span) -> Node:
    """Read one span."""
    operation = text(span.attributes.get("gen_ai.operation.name")) or _operation(span)
    if span.scope == _MAF and operation is None:
        node = _of_workflow(span)
    elif operation in _HANDOFFS:
        node = _handoff(span)
    elif operation in _AGENTS:
        node = read_agent(span)
    elif operation in _MODELS or (operation is not None and _COMPLETION in operation):
        node = read_model(span)
    elif operation == "execute_tool":
        node = read_tool(span)
    elif operation in _WORKFLOWS:
        node = _workflow(span, operation)
    elif operation == "create_agent":
        node = Node(span=span, kind="none", card=carried.card(span))
        node.name = text(span.attributes.get("gen_ai.agent.name"))
    else:
        known = operation is None or operation in _PLUMBING
        lost = None if known else f"spans of operation `{operation}`"
        node = Node(span=span, kind="none", name=span.name, lost=lost)
    node.framework = _FRAMEWORKS.get(span.scope)
    if span.attributes.get("gen_ai.system") == _STRANDS:
        node.framework = "strands"
    return node


def _operation(span: Span) -> str | None:
    """Tell what a span does that does not say so, as older versions did not."""
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
        return None if "agent_name" in attributes else "chat"
    if "gen_ai.agent.name" in attributes or "agent_name" in attributes:
        return "invoke_agent"
    if _named_agent(span.name) is not None:
        return "invoke_agent"
    return "chat" if span.name == "call_llm" and span.status == ERROR else None


def read_agent(span: Span) -> Node:
    """Read the span of one agent's work."""
    attributes = span.attributes
    node = Node(span=span, kind="agent")
    node.name = text(first(attributes, "gen_ai.agent.name", "agent_name"))
    node.name = node.name or _named_agent(span.name)
    node.run = text(attributes.get("gen_ai.agent.call.id"))
    if attributes.get("gen_ai.caller.type", "agent") == "agent":
        node.called_by = text(attributes.get("gen_ai.caller.name"))
    node.model = _model(span)
    node.totals = usage_of(attributes, "gen_ai.usage.") or usage_of(
        attributes, "gen_ai.aggregated_usage."
    )
    node.heard, node.spoken = carried.messages(span)
    node.output = content(attributes.get("final_result"))
    node.instructions = carried.instructions(span)
    node.card = carried.card(span)
    node.offered = node.card.tools if isinstance(node.card.tools, list) else None
    fail(node)
    return node


def read_model(span: Span) -> Node:
    """Read the span of one model request."""
    attributes = span.attributes
    node = Node(span=span, kind="model", model=_model(span))
    node.agent = text(first(attributes, "gen_ai.agent.name", "agent_name"))
    node.run = text(attributes.get("gen_ai.agent.call.id"))
    node.heard, node.spoken = carried.messages(span)
    node.usage = _usage(span)
    node.instructions = carried.instructions(span)
    node.offered = tool_names(carried.definitions(span))
    node.answers_by = carried.answer_tools(span)
    node.calls = not _CALLS.isdisjoint(_reasons(span))
    fail(node)
    return node


def read_tool(span: Span) -> Node:
    """Read the span of one tool call."""
    attributes = span.attributes
    name = text(first(attributes, "gen_ai.tool.name", "tool.name")) or _named_tool(span.name)
    if name is None or name.startswith(_MERGED):
        return Node(span=span, kind="none")
    node = Node(span=span, kind="tool", name=name)
    node.agent = text(first(attributes, "gen_ai.agent.name", "agent_name"))
    node.run = text(attributes.get("gen_ai.agent.call.id"))
    node.call = text(first(attributes, "gen_ai.tool.call.id", "tool.id"))
    node.arguments, node.result = carried.tool(span)
    fail(node)
    if first(attributes, "gen_ai.tool.status", "tool.status") == "error":
        node.failed = True
    carried.adk_error(node)
    hand_over(node, text(attributes.get("gen_ai.tool.type")), attributes)
    return node


def _named_agent(name: str) -> str | None:
    """Take an agent's name from the name of its span, where older ADKs write it alone."""
    found = _AGENT_RUN.fullmatch(name)
    return found.group(1) if found else None


def _named_tool(name: str) -> str | None:
    prefix, _, rest = name.partition(" ")
    return rest if prefix == "execute_tool" and rest else None


def _usage(span: Span) -> Usage | None:
    """Return what a request spent; older ADKs give the total as the output beside its counts."""
    attributes = span.attributes
    found = (
        usage_of_gemini(parsed(attributes.get("gcp.vertex.agent.llm_response")))
        or usage_of(attributes, "gen_ai.usage.")
        or usage_of(attributes, "llm.usage.")
    )
    cost = amount(first(attributes, *_COSTS))
    if found is not None and cost is not None:
        found.cost_usd, found.cost_from = cost, "source"
    return found


def _workflow(span: Span, operation: str) -> Node:
    node = Node(span=span, kind="workflow")
    named = text(span.attributes.get("gen_ai.workflow.name"))
    node.name = named or operation.removeprefix("invoke_")
    node.heard, node.spoken = carried.messages(span)
    fail(node)
    return node


def _handoff(span: Span) -> Node:
    attributes = span.attributes
    node = Node(span=span, kind="handoff", mode="transfer")
    node.agent = text(first(attributes, "gen_ai.handoff.from_agent", "gen_ai.agent.name"))
    node.target = text(attributes.get("gen_ai.handoff.to_agent"))
    fail(node)
    return node


def _of_workflow(span: Span) -> Node:
    """Read a span of Microsoft's workflows: only a message to one executor hands work over."""
    attributes = span.attributes
    if span.name == "workflow.run":
        return Node(span=span, kind="workflow", name=text(attributes.get("workflow.name")))
    node = Node(span=span, kind="none", name=text(attributes.get("executor.id")))
    if attributes.get("message.type") == "AgentExecutorRequest":
        node.target = text(attributes.get("message.destination_executor_id"))
    if node.target is not None:
        node.kind, node.mode = "handoff", "transfer"
    return node


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Tell by the executor around a message who hands work over with it."""
    for node in nodes:
        if node.kind != "handoff" or node.span.scope != _MAF:
            continue
        executor = node.parent
        if executor is not None and any(child.kind == "agent" for child in executor.children):
            node.agent = executor.name
        else:
            node.kind = "none"
    return []


def _reasons(span: Span) -> list[str]:
    """Return why the model stopped: a list, or the text that one was made of."""
    told = span.attributes.get("gen_ai.response.finish_reasons")
    if isinstance(told, str):
        return _WORD.findall(told)
    return [reason for reason in told if isinstance(reason, str)] if isinstance(told, list) else []


def _model(span: Span) -> str | None:
    return text(
        first(span.attributes, "gen_ai.response.model", "gen_ai.request.model", "model_name")
    )


def fail(node: Node) -> None:
    """Note that a span failed: by its status, as exception events stand on successes too."""
    if node.span.status == ERROR:
        node.failed, node.error = True, error_text(node.span)


def error_text(span: Span) -> str | None:
    """Return what a span that failed says of it."""
    if span.message:
        return span.message
    for event in span.events:
        if event.name == "exception":
            said = first(event.attributes, "exception.message", "exception.type")
            if said:
                return str(said)
    return text(span.attributes.get("error.type"))


DIALECT = Dialect(
    name="genai",
    rank=90,
    claims=claims,
    read=read,
    resolve=resolve,
    prefixes=("gen_ai.", "llm.", "agent."),
    conversations=("gen_ai.conversation.id", "gcp.vertex.agent.session_id"),
)
