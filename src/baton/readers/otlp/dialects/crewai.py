"""What CrewAI adds to the convention of its spans.

Older versions of its instrumentation name the methods that run instead of agents and tools, and
write the arguments as Python prints them.
"""

from __future__ import annotations

import re
from ast import literal_eval
from typing import Any

from baton.readers.otlp.messages import Message
from baton.readers.otlp.readings import (
    AgentSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    as_plain,
    as_workflow,
)
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.values import content, parsed, text

from .base import Dialect
from .handover import hand_over

_NAME = "crewai"
# `Crew.kickoff` starts the agents; it makes no request itself.
_KICKOFF = ".kickoff"
# What its instrumentation wraps: one method for a task, which represents the agent of the task, and
# one for the use of a tool.
_TASK, _USE = "Task._execute_core", "ToolUsage._use"
# CrewAI gives errors to the model as text and continues. The second one reports wrong arguments,
# the third one that a coworker raised.
_REFUSED = (
    "Error executing tool",
    "I encountered an error while trying to use the tool.",
    "Error executing task with agent '",
)
_ROLE = re.compile(r"\brole='([^']+)'")
_ARGUMENTS = re.compile(r"\barguments=(\{.*\})$", re.DOTALL)


def refine(says: Reading, span: Span) -> Reading:
    """Recognise a crew among chains, and a tool's error that CrewAI writes as its result."""
    if type(says) is PlainSpan and span.name.endswith(_KICKOFF):
        return as_workflow(says, "crew")
    if type(says) is ToolSpan:
        said = says.result.text if says.result is not None else None
        if said is not None and said.strip().startswith(_REFUSED):
            says.failed, says.error, says.result = True, said.strip(), None
        if span.name == _USE:
            says.arguments = _printed(says.arguments)
            hand_over(says, None, span.attributes)
    elif type(says) is AgentSpan and span.name == _TASK:
        _task(says, span)
    return says


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Set the input of agents to their task, and count repeated attempts of a tool once.

    Each further attempt is below the one before, so they are processed from below.
    """
    for node in reversed(nodes):
        says, outer = node.says, node.parent
        if type(says) is AgentSpan and says.framework == _NAME and node.span.name != _TASK:
            _ask(node, says)
            _answer(node, says)
        if outer is None or type(says) is not ToolSpan or node.span.name != _USE:
            continue
        before = outer.says
        if outer.span.name == _USE and type(before) is ToolSpan:
            # After an error, CrewAI calls the method again from within itself, up to three times:
            # one call of the model, several spans.
            if (says.name, says.arguments) == (before.name, before.arguments):
                says.framework = _NAME
                node.says = as_plain(says)
    return []


def _ask(node: Node, says: AgentSpan) -> None:
    """Replace the arguments of the method that ran an agent by the agent's task.

    The arguments contain the agent itself, with its address in memory, and the answers of earlier
    tasks. The text of the task is on the span of the crew.
    """
    written = node.span.attributes.get("input.value")
    given = parsed(written)
    is_call = isinstance(given, dict) and "agent" in given
    if is_call:
        says.heard = None
    wanted, above = node.span.attributes.get("task_id"), node.parent
    while above is not None:
        tasks = parsed(above.span.attributes.get("crew_tasks"))
        for task in tasks if isinstance(tasks, list) else ():
            if isinstance(task, dict) and task.get("id") == wanted:
                description = text(task.get("description"))
                if is_call:
                    asked = [description, text(given.get("context"))]
                    says.input = content("\n\n".join(part for part in asked if part) or None)
                elif isinstance(written, str) and description:
                    # Its events have the task as the model gets it: the description, a paragraph by
                    # CrewAI about the form of the answer, and the answers of earlier tasks. All
                    # questions are known only if there are no earlier tasks.
                    form = text(task.get("expected_output")) or ""
                    _, found, rest = written.partition(f"{description}\n\n")
                    if found and form in rest and "\n\n" not in rest.partition(form)[2].strip():
                        says.input = content(description)
                return
        above = above.parent


def _answer(node: Node, says: AgentSpan) -> None:
    """Read the answer from the result of the task, whose messages newer versions end before it."""
    made = parsed(node.span.attributes.get("output.value"))
    if not isinstance(made, dict) or "description" not in made:
        return
    said = content(made.get("raw"))
    if said is not None and all(m.role != "assistant" for m in says.spoken_messages()):
        says.spoken, says._spoken = (lambda: [Message(role="assistant", content=said)]), None


def _task(says: AgentSpan, span: Span) -> None:
    """Read the agent, its input and its answer from the result of its task."""
    made = parsed(span.attributes.get("output.value"))
    result = made if isinstance(made, dict) else {}
    asked = parsed(span.attributes.get("input.value"))
    agent = text(asked.get("agent")) if isinstance(asked, dict) else None
    role = _ROLE.search(agent) if agent is not None else None
    says.name = text(result.get("agent")) or (role.group(1) if role else None)
    says.input, says.output = content(result.get("description")), content(result.get("raw"))
    says.heard = says.spoken = None


def _printed(given: Any) -> Any:
    """Return the arguments of a call from the form in which CrewAI prints them."""
    calling = given.get("calling") if isinstance(given, dict) else None
    found = _ARGUMENTS.search(calling) if isinstance(calling, str) else None
    if found is None:
        return None
    try:
        return literal_eval(found.group(1))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


DIALECT = Dialect(name=_NAME, refine=refine, resolve=resolve)
