"""Logfire's own instrumentation of OpenAI Agents (``logfire.instrument_openai_agents``).

Its spans are those of the SDK's tracing, distinguished by their message templates. The content of
the SDK's objects is in attributes with the SDK's names. Other spans of Logfire follow
OpenTelemetry's conventions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.readers.otlp.attribute_values import content, parsed, shown, text
from baton.readers.otlp.handover_calls import hand_over
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

from .dialect import Dialect
from .genai import TOKENS, read_model

SCOPE = "logfire.openai_agents"
_TEMPLATE = "logfire.msg_template"
# The beginnings of the templates. The name of a span is its template, unless a program changes it.
_AGENT, _TOOL, _HANDOFF = "Agent run: ", "Function: ", "Handoff: "
_REQUESTS = ("Responses API", "Chat completion")


def claims(span: Span) -> bool:
    """Return whether a span is from this instrumentation."""
    return span.scope == SCOPE


def read(span: Span) -> Reading:
    """Read one span; turns of agents, tasks and guardrails have no content of their own."""
    values = span.attributes
    template = text(values.get(_TEMPLATE)) or span.name
    says: Reading
    if template.startswith(_AGENT):
        says = AgentSpan(name=text(values.get("name")))
    elif template.startswith(_TOOL):
        says = ToolSpan(
            name=text(values.get("name")),
            arguments=shown(values.get("input")),
            result=content(values.get("output")),
        )
        hand_over(says, None, values)
        if values.get("output") == "null":
            # The SDK converts any result to a text. Without a text, a person has to approve the
            # call.
            says.result, says.waits = None, True
    elif template.startswith(_HANDOFF):
        says = HandoffSpan(
            agent=text(values.get("from_agent")), target=text(values.get("to_agent"))
        )
    elif template.startswith(_REQUESTS):
        says = _request(span)
    else:
        says = PlainSpan(name=text(values.get("name")))
    says.framework = "openai-agents"
    fail(says, span)
    _explain(says, values)
    if says.failed:
        says.waits = False
    return says


def _request(span: Span) -> ModelSpan:
    """Read a request to the Responses API, or to a chat model.

    ``events`` has the question and the answer in one list, and each call of an answer is a separate
    message. Only the SDK's own objects show where the answer begins.
    """
    values = span.attributes
    says = read_model(span)
    response = parsed(values.get("response"))
    if isinstance(response, dict):
        says.spoken = response.get("output")
        says.heard = values.get("raw_input", says.heard)
        says.instructions = says.instructions or response.get("instructions")
        tools = response.get("tools")
        if isinstance(tools, list):
            says.offered, says.reaches = tool_names(tools), targets_of(tools)
    elif "events" not in values:
        says.heard, says.spoken = values.get("input"), values.get("output")
        if says.spoken == "null":  # None: the request failed, or was cancelled
            says.spoken = None
    return says


def _explain(says: Reading, values: Mapping[str, Any]) -> None:
    """Record an error that the SDK states, with its details."""
    error = parsed(values.get("error"))
    if not isinstance(error, dict):
        return
    data = error.get("data")
    cause = text(data.get("error")) if isinstance(data, dict) else None
    says.failed, says.error = True, cause or text(error.get("message")) or says.error


def conversation(attributes: Mapping[str, Any]) -> str | None:
    """Return the group that the program set for a trace of the SDK."""
    group = text(attributes.get("group_id"))
    # Logfire writes None as `null`.
    return group if "agent_trace_id" in attributes and group != "null" else None


DIALECT = Dialect(
    name="logfire",
    rank=35,
    claims=claims,
    read=read,
    tokens=TOKENS,
    session={"group_id": conversation},
)
