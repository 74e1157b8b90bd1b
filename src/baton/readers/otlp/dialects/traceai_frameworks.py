"""traceAI's spans of LangChain, OpenAI Agents and others: OpenInference with other names.

traceAI's instrumentations started as copies of OpenInference's. What a span says is the same, and
most attributes have a name that begins with ``gen_ai.``.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.readers.otlp.span import Span
from baton.readers.otlp.span_content import Reading

from . import openinference
from .dialect import Dialect

_SCOPE = "traceai_"
# Since version 1 of fi-instrumentation, and before.
_KINDS = ("gen_ai.span.kind", "fi.span.kind")
_NAMES = {
    **dict.fromkeys(_KINDS, openinference.KIND),
    "gen_ai.agent.name": "agent.name",
    "gen_ai.cost.total": "llm.cost.total",
    "gen_ai.request.model": "llm.model_name",
    "gen_ai.request.parameters": "llm.invocation_parameters",
    "gen_ai.response.model": "llm.response.model_name",
    "gen_ai.tool.call.id": "tool.id",
    "gen_ai.tool.description": "tool.description",
    "gen_ai.tool.name": "tool.name",
    "gen_ai.tool.parameters": "tool.parameters",
    "gen_ai.usage.input_tokens": "llm.token_count.prompt",
    "gen_ai.usage.input_tokens.cache_read": "llm.token_count.prompt_details.cache_read",
    "gen_ai.usage.input_tokens.cache_write": "llm.token_count.prompt_details.cache_write",
    "gen_ai.usage.output_tokens": "llm.token_count.completion",
    "gen_ai.usage.output_tokens.reasoning": "llm.token_count.completion_details.reasoning",
    "gen_ai.usage.total_tokens": "llm.token_count.total",
}
# `gen_ai.input.messages.0.message.role`, `gen_ai.tool.definitions.0.tool.json_schema`.
_PREFIXES = {
    "gen_ai.input.messages.": "llm.input_messages.",
    "gen_ai.output.messages.": "llm.output_messages.",
    "gen_ai.tool.definitions.": "llm.tools.",
}


def claims(span: Span) -> bool:
    """Return whether a span is traceAI's, with a kind of OpenInference and no operation."""
    attributes = span.attributes
    named = any(kind in attributes for kind in _KINDS) and "gen_ai.operation.name" not in attributes
    return named and span.scope.startswith(_SCOPE)


def read(span: Span) -> Reading:
    """Read one span as OpenInference's. Later steps see its attributes by these names, too."""
    renamed: dict[str, Any] = {}
    for name, value in span.attributes.items():
        renamed[_NAMES.get(name) or _prefixed(name)] = value
    span.attributes.update(renamed)
    scope = "openinference.instrumentation." + span.scope.removeprefix(_SCOPE)
    return openinference.read(replace(span, attributes=renamed, scope=scope))


def _prefixed(name: str) -> str:
    for prefix, other in _PREFIXES.items():
        if name.startswith(prefix):
            return other + name.removeprefix(prefix)
    return name


DIALECT = Dialect(
    name="traceai-frameworks",
    rank=30,
    claims=claims,
    read=read,
    sessions=("session.id",),
    conversations=("gen_ai.conversation.id",),
)
