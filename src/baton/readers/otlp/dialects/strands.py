"""Strands: what its spans say beyond OpenTelemetry's conventions."""

from __future__ import annotations

import re
from functools import partial

from baton.readers.otlp.readings import AgentSpan, Node, WorkflowSpan
from baton.readers.otlp.span import Event

from .base import Dialect

_NAME = "strands"
_GRAPH = "invoke_graph"
# A graph gives each node the answers of those before it, as pieces of its message: "Inputs from
# previous nodes:", "From market:", "  - Agent: 58000 people live there.". Nodes may be called other
# than the agents in them.
_INPUTS = "\nInputs from previous nodes:\n"
_FROM = re.compile(r"(?:^|\n)From ([^\n]+):\n(?=  - )")
_ANSWER = re.compile(r"(?:^|\n)  - [^\n:]+: ")


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Note how to tell which nodes of a graph an agent follows."""
    for node in nodes:
        says, around = node.says, node.parent
        if type(says) is AgentSpan and says.framework == _NAME:
            in_graph = (
                around is not None
                and type(around.says) is WorkflowSpan
                and around.span.attributes.get("gen_ai.operation.name", around.span.name) == _GRAPH
            )
            says.follows = partial(_answers_before, says, in_graph)
    return []


def _answers_before(says: AgentSpan, in_graph: bool) -> dict[str, list[str]] | None:
    """Return what an agent was given, by node; ``None`` where its message does not tell.

    The agents at the start of a graph are given the task alone.
    """
    asked = says.asked()
    if asked is None or not asked.text:
        return None
    _, inputs, told = asked.text.partition(_INPUTS)
    if not inputs:
        return {} if in_graph else None
    parts = _FROM.split(told)
    return {
        name: [answer.strip() for answer in _ANSWER.split(said) if answer.strip()]
        for name, said in zip(parts[1::2], parts[2::2], strict=True)
    }


DIALECT = Dialect(name=_NAME, resolve=resolve)
