"""What spans held that no rule reads."""

from __future__ import annotations

from .dialects import DIALECTS
from .node import Node

_FOREIGN = tuple(prefix for dialect in DIALECTS for prefix in dialect.prefixes)
_LABELS = frozenset(
    key for dialect in DIALECTS for key in (*dialect.sessions, *dialect.conversations)
)
"""Attributes that only say which conversation a span belongs to: no content is lost with them."""


def unread(node: Node) -> str | None:
    """Say what of a span is lost; ``None`` when it is read, or is known to be plumbing."""
    if node.lost is not None or node.kind != "none":
        return node.lost
    if node.framework is None and node.name is None and node.card is None:
        keys = node.span.attributes.keys() - _LABELS
        if any(key.startswith(_FOREIGN) for key in keys):
            return f"spans of `{node.span.scope or node.span.name}` that follow no known convention"
    return None
