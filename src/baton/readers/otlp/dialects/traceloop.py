"""Traceloop's OpenLLMetry: kinds and entities around GenAI spans."""

from __future__ import annotations

from baton.readers.otlp.dialects import genai, langchain
from baton.readers.otlp.node import Node
from baton.readers.otlp.span import Span
from baton.readers.otlp.values import content, first, parsed, shown, text

from .base import Dialect
from .handover import hand_over

KIND = "traceloop.span.kind"
_LANGCHAIN = "opentelemetry.instrumentation.langchain"


def claims(span: Span) -> bool:
    """Tell a span of this convention."""
    return (
        KIND in span.attributes or "llm.request.type" in span.attributes or span.scope == _LANGCHAIN
    )


def read(span: Span) -> Node:
    """Read one span."""
    kind = text(span.attributes.get(KIND))
    operation = text(span.attributes.get("gen_ai.operation.name"))
    if span.scope == _LANGCHAIN:
        node = _langchain(span, kind, operation)
    elif operation is not None and kind not in ("workflow", "task"):
        node = genai.read(span)
    elif kind == "agent":
        node = _agent(span)
    elif kind == "tool":
        node = _tool(span)
    elif kind is None:
        node = genai.read_model(span)
    else:
        node = Node(span=span, kind="none", name=_entity(span))
    if "openai_agents" in span.scope:
        node.framework = "openai-agents"
    return node


def _langchain(span: Span, kind: str | None, operation: str | None) -> Node:
    """Read a span of LangChain: agent spans stand beside the chains they are, without content."""
    if kind == "tool":
        node = _tool(span)
    elif operation == "chat" or "llm.request.type" in span.attributes:
        node = genai.read_model(span)
    else:
        node = Node(span=span, kind="none", name=_entity(span))
        if operation == "create_agent":
            node = genai.read(span)
        elif kind is None:
            return node
    genai.fail(node)
    langchain.refine(node)
    return node


def _entity(span: Span) -> str:
    named = text(first(span.attributes, "traceloop.entity.name", "traceloop.workflow.name"))
    return named or span.name.rpartition(".")[0] or span.name


def _agent(span: Span) -> Node:
    node = genai.read_agent(span)
    node.name = node.name or _entity(span)
    node.heard = first(span.attributes, "traceloop.entity.input")
    node.spoken = first(span.attributes, "traceloop.entity.output")
    return node


def _tool(span: Span) -> Node:
    node = Node(span=span, kind="tool", name=_entity(span))
    arguments = parsed(span.attributes.get("traceloop.entity.input"))
    if isinstance(arguments, dict) and "inputs" in arguments:
        arguments = arguments["inputs"]
    node.arguments = shown(arguments)
    result = parsed(span.attributes.get("traceloop.entity.output"))
    if isinstance(result, dict) and "output" in result:
        result = result["output"]
    node.result = content(result)
    genai.fail(node)
    hand_over(node, None, span.attributes)
    return node


DIALECT = Dialect(
    name="traceloop",
    rank=50,
    claims=claims,
    read=read,
    prefixes=("traceloop.entity.", "llm."),
    sessions=(
        "traceloop.association.properties.session_id",
        "traceloop.association.properties.thread_id",
    ),
)
