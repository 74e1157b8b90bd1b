"""What CrewAI writes into spans beyond the convention they are written in."""

from __future__ import annotations

from baton.readers.otlp.node import Node

_KICKOFF = ".kickoff"
_REFUSED = "Error executing tool"


def refine(node: Node) -> None:
    """Tell a crew from a chain, and a tool's error that CrewAI writes as its result."""
    said = node.result.text if node.result is not None else None
    if node.kind == "none" and node.span.name.endswith(_KICKOFF):
        node.kind, node.name = "workflow", "crew"
    elif node.kind == "tool" and said is not None and said.strip().startswith(_REFUSED):
        node.failed, node.error, node.result = True, said.strip(), None
