"""What a span held that no rule read."""

from __future__ import annotations

from collections.abc import Iterator

from .node import Node


def unread(node: Node) -> Iterator[str]:
    """Yield what of a span is lost, in words."""
    yield from ()
