"""Langfuse: observations of its SDK, and those that its handler makes of LangChain's runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.model import Usage
from baton.readers.otlp.attribute_values import (
    amount,
    content,
    first,
    parsed,
    shown,
    text,
    usage,
    whole,
)
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.span import Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    PlainSpan,
    Reading,
    ToolSpan,
    fail,
)
from baton.readers.tool_definitions import targets_of, tool_names

from . import langchain
from .dialect import Dialect, with_attribute

_PREFIX = "langfuse.observation."
KIND = _PREFIX + "type"
_METADATA = _PREFIX + "metadata."
_THREAD = _METADATA + "thread_id"
_OF_LANGCHAIN = frozenset(
    f"{_METADATA}{name}"
    for name in ("langgraph_node", "lc_agent_name", "ls_integration", "is_langchain_root")
)
"""Metadata of LangChain's runs. A program can also use Langfuse's SDK beside them."""


def read(span: Span) -> Reading:
    """Read one observation."""
    attributes = span.attributes
    kind = str(attributes[KIND]).lower()
    given, made = attributes.get(_PREFIX + "input"), attributes.get(_PREFIX + "output")
    says: Reading
    if kind == "agent":
        heard = _arguments(given, only=True)
        says = AgentSpan(
            name=span.name,
            heard=heard,
            spoken=made,
            output=content(made),
            is_function=_OF_LANGCHAIN.isdisjoint(attributes),
        )
    elif kind == "generation":
        model = text(first(attributes, _PREFIX + "model.name", "gen_ai.request.model"))
        heard, tools = _without_tools(given)
        says = ModelSpan(model=model, heard=heard, spoken=made, usage=_usage(attributes))
        if tools:
            says.offered, says.reaches = tool_names(tools), targets_of(tools)
    elif kind == "tool":
        arguments = _arguments(given, only=False)
        says = ToolSpan(name=span.name, arguments=arguments, result=content(made))
        hand_over(says, None, attributes)
    else:
        is_own = _OF_LANGCHAIN.isdisjoint(attributes)
        says = PlainSpan(name=span.name, heard=_arguments(given, only=True), is_own=is_own)
    says.framework = "langfuse"
    fail(says, span)
    # The program can set a level even if no exception was raised and the status is OK.
    if attributes.get(_PREFIX + "level") == "ERROR":
        says.failed = True
        says.error = says.error or text(attributes.get(_PREFIX + "status_message"))
    if not _OF_LANGCHAIN.isdisjoint(attributes):
        says = langchain.refine(says, span)
    return says


def _without_tools(given: Any) -> tuple[Any, list[Any]]:
    """Return the messages of a request, and the tools that it offered.

    The handler of LangChain adds the definition of each tool to the messages, with the role `tool`.
    """
    messages = parsed(given)
    if not isinstance(messages, list):
        return given, []
    tools = [m["content"] for m in messages if _defines(m)]
    return ([m for m in messages if not _defines(m)], tools) if tools else (given, [])


def _defines(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") != "tool":
        return False
    tool = message.get("content")
    return isinstance(tool, dict) and tool.get("type") == "function" and "function" in tool


def session(attributes: Mapping[str, Any]) -> str | None:
    """Return the thread of a graph, unless the program named a session."""
    if "langfuse.session.id" in attributes or _OF_LANGCHAIN.isdisjoint(attributes):
        return None
    thread = langchain.unquoted(attributes.get(_THREAD))
    return str(thread) if isinstance(thread, str | int) else None


def _arguments(raw: Any, *, only: bool) -> Any:
    """Unwrap what the decorator records about a function: its positional and named arguments.

    ``only``: a single argument is returned by itself.
    """
    value = shown(raw)
    if not isinstance(value, dict) or set(value) != {"args", "kwargs"}:
        return value
    places, names = value["args"] or [], value["kwargs"] or {}
    if not isinstance(places, list) or not isinstance(names, dict):
        return value
    if only and len(places) + len(names) == 1:
        return places[0] if places else next(iter(names.values()))
    if not places:
        return names
    return {**{str(at): one for at, one in enumerate(places)}, **names} if names else places


def _usage(attributes: Mapping[str, Any]) -> Usage | None:
    details, cost = (
        parsed(attributes.get(_PREFIX + name)) for name in ("usage_details", "cost_details")
    )
    figures = details if isinstance(details, dict) else {}
    costs = cost if isinstance(cost, dict) else {}
    if not figures and not costs:
        return None
    return usage(
        input=whole(first(figures, "input", "prompt_tokens", "input_tokens")),
        output=whole(first(figures, "output", "completion_tokens", "output_tokens")),
        total=whole(first(figures, "total", "total_tokens")),
        read=whole(first(figures, "cache_read_input_tokens", "input_cached_tokens")),
        write=whole(figures.get("cache_creation_input_tokens")),
        cost=amount(costs.get("total")),
    )


DIALECT = Dialect(
    name="langfuse",
    rank=60,
    claims=with_attribute(KIND),
    read=read,
    sessions=("langfuse.session.id",),
    session={_THREAD: session},
)
