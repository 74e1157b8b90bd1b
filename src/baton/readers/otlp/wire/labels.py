"""What a span or log record says of the conversation it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.readers.otlp.dialects import DIALECTS

SESSION_KEYS = (
    "session.id",
    *(key for dialect in DIALECTS for key in dialect.sessions),
    "agentevals.session_name",
)
CONVERSATION_KEYS = (
    # OpenTelemetry's own name comes first: others may stand beside it on the same span.
    "gen_ai.conversation.id",
    *(key for dialect in DIALECTS for key in dialect.conversations),
)

_SESSION_READERS = tuple(dialect.session for dialect in DIALECTS if dialect.session is not None)


def session_of(attributes: dict[str, Any], resource: dict[str, Any]) -> str | None:
    """Return the session that is named outright; what a span says goes before its resource."""
    named = _first(attributes, SESSION_KEYS) or _first(resource, SESSION_KEYS)
    if named is not None:
        return named
    return next((told for read in _SESSION_READERS if (told := read(attributes))), None)


def conversation_of(attributes: dict[str, Any]) -> str | None:
    """Return the conversation id. Sub-agents may carry one of their own."""
    return _first(attributes, CONVERSATION_KEYS)


def _first(attributes: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        if key in attributes:
            value = attributes[key]
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
                return str(value)
    return None
