"""Traceloop's OpenLLMetry: kinds and entities around GenAI spans."""

from __future__ import annotations

from heapq import heappop, heappush
from operator import attrgetter

from baton.readers.otlp.attribute_values import content, first, parsed, shown, text
from baton.readers.otlp.dialects import genai, langchain
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    fail,
)

from .dialect import Dialect

KIND = "traceloop.span.kind"
_DECORATORS = "traceloop.tracer"
"""The scope of functions of the program that are marked as tasks and workflows."""
_LANGCHAIN = "opentelemetry.instrumentation.langchain"
_AGNO = "instrumentation.agno"
_LLAMA_INDEX = "instrumentation.llamaindex"
_RESULT = "gen_ai.tool.call.result"


def claims(span: Span) -> bool:
    """Return whether a span follows this convention."""
    return (
        KIND in span.attributes or "llm.request.type" in span.attributes or span.scope == _LANGCHAIN
    )


def read(span: Span) -> Reading:
    """Read one span."""
    kind = text(span.attributes.get(KIND))
    operation = text(span.attributes.get("gen_ai.operation.name"))
    says: Reading
    if span.scope == _LANGCHAIN:
        says = _langchain(span, kind, operation)
    # A span with Traceloop's kind and the convention's operation is read by the operation, which
    # has more data. Workflows and tasks inherit an operation that is not their own.
    elif operation is not None and kind not in ("workflow", "task"):
        says = genai.read(span)
    elif operation == "chat" and _LLAMA_INDEX in span.scope:
        says = genai.read_model(span)
    elif kind == "agent":
        says = genai.read_agent(span)
        says.name = says.name or _entity(span)
        says.heard = span.attributes.get("traceloop.entity.input")
        says.spoken = span.attributes.get("traceloop.entity.output")
    elif kind == "tool":
        says = _tool(span)
    elif kind == "handoff":  # of OpenAI Agents, before version 0.53 without an operation
        says = genai.read_handoff(span)
    elif kind is None:
        says = genai.read_model(span)
    else:
        says = PlainSpan(name=_entity(span), is_own=span.scope == _DECORATORS)
    if _LLAMA_INDEX in span.scope:
        says.framework = "llama-index"
    elif _AGNO in span.scope:
        says.framework = "agno"
    if "openai_agents" in span.scope:
        says.framework = "openai-agents"
        if type(says) is ToolSpan and says.mode is None and not says.failed:
            # The SDK converts any result to a text. Without a text, a person has to approve the
            # call first.
            says.waits = says.arguments is not None and _RESULT not in span.attributes
    return says


def _langchain(span: Span, kind: str | None, operation: str | None) -> Reading:
    """Read a span of LangChain: an agent has an empty span, and another one for its chain."""
    says: Reading
    if kind == "tool":
        says = _tool(span)
    elif operation == "chat" or "llm.request.type" in span.attributes:
        says = genai.read_model(span)
    elif operation == "create_agent":
        says = genai.read(span)
    elif kind is None:
        return PlainSpan(name=_entity(span))
    else:
        says = PlainSpan(name=_entity(span))
    fail(says, span)
    return langchain.refine(says, span)


def _entity(span: Span) -> str:
    named = text(first(span.attributes, "traceloop.entity.name", "traceloop.workflow.name"))
    return named or span.name.rpartition(".")[0] or span.name


def _tool(span: Span) -> ToolSpan:
    arguments = parsed(span.attributes.get("traceloop.entity.input"))
    if isinstance(arguments, dict) and "inputs" in arguments:
        arguments = arguments["inputs"]
    result = parsed(span.attributes.get("traceloop.entity.output"))
    if isinstance(result, dict) and "output" in result:
        result = result["output"]
    says = ToolSpan(name=_entity(span), arguments=shown(arguments), result=content(result))
    fail(says, span)
    hand_over(says, None, span.attributes)
    return says


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Put agents of OpenAI's SDK below the tool that runs them, if that waits for a person.

    Their spans are siblings of their caller's. The caller is started again when the person has
    answered, and the agent in its tool would seem to have got control in between. If several tools
    run at the time, it is not certain which one runs the agent.
    """
    ours = [node for node in nodes if _is_openais(node)]
    if not any(node.says.waits for node in ours):
        return []
    running: list[tuple[float, int]] = []
    ours.sort(key=attrgetter("started"))
    for number, node in enumerate(ours):
        while running and running[0][0] < node.started:
            heappop(running)
        if type(node.says) is ToolSpan:
            heappush(running, (node.ended, number))
        elif len(running) == 1 and running[0][0] >= node.ended:
            tool = ours[running[0][1]]
            if tool.says.waits and node.parent is not None and node.parent is not tool:
                node.parent.children.remove(node)
                node.parent = tool
                tool.children.append(node)
    return []


def _is_openais(node: Node) -> bool:
    says = node.says
    is_either = type(says) is AgentSpan or type(says) is ToolSpan
    return is_either and says.framework == "openai-agents" and KIND in node.span.attributes


DIALECT = Dialect(
    name="traceloop",
    rank=50,
    claims=claims,
    read=read,
    resolve=resolve,
    tokens=genai.TOKENS,
    costs=genai.COSTS,
    prefixes=("traceloop.entity.", "llm."),
    results={"traceloop.entity.output": ""},
    sessions=(
        "traceloop.association.properties.session_id",
        "traceloop.association.properties.thread_id",
    ),
)
