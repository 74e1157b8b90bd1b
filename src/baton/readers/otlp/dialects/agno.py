"""What Agno writes into spans beyond the convention they are written in."""

from __future__ import annotations

import re

from baton.readers.otlp.node import Node

_NO_MEMBER = re.compile(r"Member with ID \S+ not found\b")


def refine(node: Node) -> None:
    """Tell a delegation to nobody, which Agno answers with words alone."""
    said = node.result.text if node.result is not None else None
    if node.mode == "delegate" and said is not None and _NO_MEMBER.match(said):
        node.failed, node.error, node.result = True, said, None
