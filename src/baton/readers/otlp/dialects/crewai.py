"""What CrewAI writes into spans beyond the convention they are written in.

Older versions of its instrumentation name the methods that run instead of agents and tools, and
write their arguments down as Python prints them.
"""

from __future__ import annotations

import re
from ast import literal_eval
from typing import Any

from baton.readers.otlp.node import Node
from baton.readers.otlp.values import content, parsed, text

from .handover import hand_over

_KICKOFF = ".kickoff"
_TASK, _USE = "Task._execute_core", "ToolUsage._use"
_REFUSED = ("Error executing tool", "I encountered an error while trying to use the tool.")
_ROLE = re.compile(r"\brole='([^']+)'")
_ARGUMENTS = re.compile(r"\barguments=(\{.*\})$", re.DOTALL)


def refine(node: Node) -> None:
    """Tell a crew from a chain, and a tool's error that CrewAI writes as its result."""
    said = node.result.text if node.result is not None else None
    if node.kind == "none" and node.span.name.endswith(_KICKOFF):
        node.kind, node.name = "workflow", "crew"
    elif node.kind == "tool" and said is not None and said.strip().startswith(_REFUSED):
        node.failed, node.error, node.result = True, said.strip(), None
    if node.kind == "agent" and node.span.name == _TASK:
        _task(node)
    elif node.kind == "tool" and node.span.name == _USE:
        node.arguments = _printed(node.arguments)
        hand_over(node, None, node.span.attributes)


def resolve(nodes: list[Node]) -> None:
    """Let agents have been asked their task, and a tool that was tried again count once.

    Each further try stands below the one before.
    """
    for node in nodes:
        if node.kind == "agent" and node.framework == "crewai" and node.span.name != _TASK:
            _ask(node)
        outer = node.parent
        if outer is None or node.kind != "tool" or outer.span.name != _USE:
            continue
        if node.span.name == _USE and (node.name, node.arguments) == (outer.name, outer.arguments):
            node.kind, node.framework = "none", "crewai"


def _ask(node: Node) -> None:
    """Put the task of an agent in the place of the arguments of the method that ran it.

    They hold the agent itself, with its place in memory, and what earlier tasks answered; what
    the task says stands on the crew.
    """
    given = parsed(node.span.attributes.get("input.value"))
    if not isinstance(given, dict) or "agent" not in given:
        return
    node.heard = None
    wanted, above = node.span.attributes.get("task_id"), node.parent
    while above is not None:
        tasks = parsed(above.span.attributes.get("crew_tasks"))
        for task in tasks if isinstance(tasks, list) else ():
            if isinstance(task, dict) and task.get("id") == wanted:
                asked = [text(task.get("description")), text(given.get("context"))]
                node.input = content("\n\n".join(part for part in asked if part) or None)
                return
        above = above.parent


def _task(node: Node) -> None:
    """Take the agent, what it was asked and its answer out of the result of its task."""
    told = parsed(node.span.attributes.get("output.value"))
    result = told if isinstance(told, dict) else {}
    asked = parsed(node.span.attributes.get("input.value"))
    agent = text(asked.get("agent")) if isinstance(asked, dict) else None
    role = _ROLE.search(agent) if agent is not None else None
    node.name = text(result.get("agent")) or (role.group(1) if role else None)
    node.input, node.output = content(result.get("description")), content(result.get("raw"))
    node.heard = node.spoken = None


def _printed(given: Any) -> Any:
    """Return the arguments of a call, of which CrewAI's own printed form is given."""
    calling = given.get("calling") if isinstance(given, dict) else None
    found = _ARGUMENTS.search(calling) if isinstance(calling, str) else None
    if found is None:
        return None
    try:
        return literal_eval(found.group(1))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
