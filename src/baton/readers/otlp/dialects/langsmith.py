"""LangSmith's OpenTelemetry export: runs of LangChain, LangGraph and of traced functions.

Each run is one span. ``langsmith.span.kind`` is its run type (llm, tool, chain, prompt, parser,
retriever, embedding), and ``gen_ai.prompt`` and ``gen_ai.completion`` hold its inputs and outputs
as JSON. The names of OpenTelemetry GenAI on the same spans are misleading: every run has an
operation name, and even a prompt template is a ``chat``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from baton.model import Usage
from baton.readers.otlp.attribute_values import (
    amount,
    content,
    first,
    parsed,
    printed_value,
    shown,
    text,
    usage,
    whole,
)
from baton.readers.otlp.dialects import genai, langchain
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.span import Event, Span, error_text
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    as_agent,
    fail,
)

from .dialect import Dialect

KIND = "langsmith.span.kind"
_SCOPE = "langsmith"
_NAME = "langsmith.trace.name"
_METADATA = "langsmith.metadata."
_MARK = _METADATA + "ls_agent_type"
_GIVEN, _MADE = "gen_ai.prompt", "gen_ai.completion"
_OPERATIONS = frozenset(
    {"chat", "execute_tool", "embeddings", "llm", "tool", "chain", "prompt", "parser", "retriever",
     "embedding"}
)  # fmt: skip
"""All values that LangSmith writes as ``gen_ai.operation.name``."""
_AGENTS = frozenset({"root", "subagent"})
"""The values that LangSmith's integrations write as ``ls_agent_type`` for runs of agents."""
_TRACEBACK = "Traceback (most recent call last)"
_PRINTED = re.compile(r"\w+\((.*?),?\)", re.DOTALL)
_PYTHON = ("{'", "{}")


def claims(span: Span) -> bool:
    """Return whether a span is a LangSmith run. Metadata prove nothing: other spans have them."""
    return KIND in span.attributes or span.scope == _SCOPE


def read(span: Span) -> Reading:
    """Read one run."""
    attributes = span.attributes
    operation = text(attributes.get("gen_ai.operation.name"))
    if span.scope != _SCOPE and operation is not None and operation not in _OPERATIONS:
        return genai.read(span)  # labelled for LangSmith by hand, such as an `invoke_agent`
    kind = str(attributes.get(KIND, "chain")).lower()
    carried = _carried(span)
    says: Reading
    if kind == "llm":
        says = _model(span, carried)
    elif kind == "tool":
        says = _tool(span, carried)
    elif kind == "agent":  # not a run type of its SDK, but used in spans made by hand
        says = AgentSpan(heard=carried.given, spoken=carried.made)
        says.name = text(attributes.get("gen_ai.agent.name")) or _named(span)
    else:
        says = PlainSpan(name=_named(span))
    fail(says, span)
    if span.scope == _SCOPE and any(event.name == "exception" for event in span.events):
        # A span whose start was exported first has the status OK, which OpenTelemetry never changes
        # to ERROR. Only runs that failed have an exception.
        says.failed, says.error = True, error_text(span)
    if says.failed:
        says.error = _error(says.error)
    if type(says) is not AgentSpan:
        says = langchain.refine(says, span, carried)
    target = text(carried.metadata.get("__handoff_destination"))
    if type(says) is ToolSpan and target is not None:
        says.mode, says.target = "transfer", says.target or target
    if says.graph is not None and not _is_langchain(carried.metadata):
        says.framework = "langsmith"
    return says


def _is_langchain(metadata: Mapping[str, Any]) -> bool:
    integration = str(metadata.get("ls_integration", ""))
    return integration.startswith("lang") or any(
        key.startswith(("langgraph_", "lc_")) for key in metadata
    )


def _named(span: Span) -> str:
    return text(span.attributes.get(_NAME)) or span.name


def _carried(span: Span) -> langchain.Carried:
    attributes = span.attributes
    metadata = {
        key.removeprefix(_METADATA): value
        for key, value in attributes.items()
        if key.startswith(_METADATA)
    }
    return langchain.Carried(metadata, *_content(span))


def _content(span: Span) -> tuple[Any, Any]:
    """Return inputs and outputs; both are an empty object if LangSmith hides them.

    A failed run has no outputs, and a tool may have no arguments: then an empty object on one side
    is the real value.
    """
    given, made = (parsed(span.attributes.get(key)) for key in (_GIVEN, _MADE))
    # With `LANGSMITH_HIDE_INPUTS` and `_OUTPUTS` both are `{}`. An empty output looks like a hidden
    # one. An empty input does not if the run failed, because then there is no output.
    if made == {}:
        made = None
        failed = any(event.name == "exception" for event in span.events)
        given = None if given == {} and not failed else given
    return given, made


def _model(span: Span, carried: langchain.Carried) -> ModelSpan:
    says = genai.read_model(span)
    if _GIVEN in span.attributes:
        says.heard = carried.given or None
    if _MADE in span.attributes:
        says.spoken = carried.made or None
    says.agent = says.agent or text(carried.metadata.get("lc_agent_name"))
    says.model = says.model or text(carried.metadata.get("ls_model_name"))
    says.usage = _usage(span.attributes, carried.metadata)
    return says


def _tool(span: Span, carried: langchain.Carried) -> ToolSpan:
    attributes, made = span.attributes, carried.made
    says = ToolSpan(
        name=text(attributes.get("gen_ai.tool.name")) or _named(span),
        call=text(first(attributes, "gen_ai.tool.call.id", _METADATA + "tool_call_id")),
        agent=text(carried.metadata.get("lc_agent_name")),
        arguments=_arguments(carried.given),
        result=content(made["output"] if isinstance(made, dict) and "output" in made else made),
    )
    hand_over(says, None, attributes)
    return says


def _arguments(given: Any) -> Any:
    """Return the arguments of a tool.

    Older versions of LangChain write them as Python prints them: ``{"input": "{'city':
    'Porto'}"}``.
    """
    printed = given.get("input") if isinstance(given, dict) and set(given) == {"input"} else None
    if isinstance(printed, str) and printed.startswith(_PYTHON):
        return printed_value(printed, otherwise=shown(given))
    return shown(given)


def _usage(attributes: Mapping[str, Any], metadata: Mapping[str, Any]) -> Usage | None:
    """Return the usage of a request: from its metadata, as the attributes only have sums.

    LangChain's input tokens include cached ones, its output tokens those of thinking.
    """
    counted = parsed(metadata.get("usage_metadata"))
    if not isinstance(counted, dict) or not {"input_tokens", "output_tokens"} & counted.keys():
        counted = {
            "input_tokens": attributes.get("gen_ai.usage.input_tokens"),
            "output_tokens": attributes.get("gen_ai.usage.output_tokens"),
        }
        for details in ("input_token_details", "output_token_details"):
            counted[details] = printed_value(
                attributes.get(f"gen_ai.usage.{details}"), otherwise=None
            )
    counts = {name: whole(counted.get(f"{name}_tokens")) for name in ("input", "output")}
    if counts["input"] is None and counts["output"] is None:
        return None
    cached = counted.get("input_token_details")
    cached = cached if isinstance(cached, dict) else {}
    return usage(
        **counts,
        total=(counts["input"] or 0) + (counts["output"] or 0),
        read=whole(cached.get("cache_read")),
        write=whole(cached.get("cache_creation")),
        cost=amount(counted.get("total_cost")),
    )


def _error(said: str | None) -> str | None:
    """Return the message of an exception from ``RuntimeError('message')Traceback (most ...``."""
    printed = (said or "").partition(_TRACEBACK)[0].strip()
    match = _PRINTED.fullmatch(printed)
    message = printed_value(match.group(1), otherwise=None) if match is not None else None
    return message if isinstance(message, str) and message else printed or said


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Mark chains as agents if LangSmith's integrations mark them so.

    Everything below inherits the mark. So only the outermost ``root`` is an agent, and a
    ``subagent`` only if there is none around it since the last tool call. A root is named after its
    trace (``claude.conversation``), which is not the name of an agent.
    """
    above: dict[int, frozenset[str]] = {}
    for node in nodes:
        says = node.says
        around = above.get(id(node.parent), frozenset())
        is_tool = type(says) is ToolSpan
        above[id(node)] = around - {"subagent"} if is_tool else around
        mark = text(node.span.attributes.get(_MARK))
        if mark not in _AGENTS or is_tool or not claims(node.span):
            continue
        above[id(node)] = around | {mark}
        if type(says) is not PlainSpan or says.graph is None or says.graph.path:
            continue
        if mark not in around:
            own = text(node.span.attributes.get(_METADATA + "lc_agent_name"))
            node.says = as_agent(says, own or (says.name if mark == "subagent" else None))
    return []


def session(attributes: Mapping[str, Any]) -> str | None:
    """Return LangSmith's session, unless it has a name: then it is a project, not a session."""
    id_ = attributes.get("langsmith.trace.session_id")
    # LangSmith calls a project a session. All runs of a project would then be one conversation.
    if isinstance(id_, bool) or "langsmith.trace.session_name" in attributes:
        return None
    return str(id_) if isinstance(id_, str | int) and str(id_) else None


DIALECT = Dialect(
    name="langsmith",
    rank=70,
    claims=claims,
    read=read,
    resolve=resolve,
    tokens=genai.TOKENS,
    costs=genai.COSTS,
    prefixes=("langsmith.",),
    sessions=tuple(_METADATA + key for key in ("session_id", "thread_id", "conversation_id")),
    session={"langsmith.trace.session_id": session},
)
