"""What CrewAI writes into spans beyond the convention they are written in."""

from __future__ import annotations

from baton.readers.otlp.node import Node
from baton.readers.otlp.values import parsed, text

_KICKOFF = ".kickoff"
_REFUSED = "Error executing tool"


def refine(node: Node) -> None:
    """Tell a crew from a chain, and a tool's error that CrewAI writes as its result."""
    said = node.result.text if node.result is not None else None
    if node.kind == "none" and node.span.name.endswith(_KICKOFF):
        node.kind, node.name, node.heard = "workflow", "crew", _task(node)
    elif node.kind == "tool" and said is not None and said.strip().startswith(_REFUSED):
        node.failed, node.error, node.result = True, said.strip(), None


def _task(node: Node) -> str | None:
    """Return the text of the only task of a crew, or of its first."""
    tasks = parsed(node.span.attributes.get("crew_tasks"))
    first = tasks[0] if isinstance(tasks, list) and tasks else None
    return text(first.get("description")) if isinstance(first, dict) else None
