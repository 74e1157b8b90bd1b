"""What a span or log record says of the conversation it belongs to."""

from __future__ import annotations

from typing import Any

SESSION_KEYS = (
    "session.id",
    "langfuse.session.id",
    "agentevals.session_name",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "langsmith.metadata.session_id",
    "langsmith.metadata.thread_id",
    "langsmith.metadata.conversation_id",
)
CONVERSATION_KEYS = (
    "gen_ai.conversation.id",
    "claude_agent.session_id",
    "gcp.vertex.agent.session_id",
)


def session_of(attributes: dict[str, Any], resource: dict[str, Any]) -> str | None:
    """Return the session that is named outright; what a span says goes before its resource."""
    return (
        _first(attributes, SESSION_KEYS)
        or _first(resource, SESSION_KEYS)
        or _langsmith_session(attributes)
    )


def conversation_of(attributes: dict[str, Any]) -> str | None:
    """Return the conversation id. Sub-agents may carry one of their own."""
    return _first(attributes, CONVERSATION_KEYS)


def _langsmith_session(attributes: dict[str, Any]) -> str | None:
    """Return LangSmith's session, unless it is named: then it is a project, and no session."""
    if "langsmith.trace.session_name" in attributes:
        return None
    return _first(attributes, ("langsmith.trace.session_id",))


def _first(attributes: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        if key in attributes:
            value = attributes[key]
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
                return str(value)
    return None
