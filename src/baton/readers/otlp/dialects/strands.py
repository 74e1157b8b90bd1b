"""Strands' additions to OpenTelemetry's conventions."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import partial

from baton.readers.otlp.attribute_values import parsed
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import AgentSpan, Node, Reading, ToolSpan, WorkflowSpan

from .dialect import Dialect, Framework

_NAME = "strands"
_GRAPH = "invoke_graph"
_INTERRUPT = "interrupt"
# A graph gives each node the answers of earlier nodes as parts of its message: "Inputs from
# previous nodes:", "From market:", "  - Agent: 58000 people live there.". A node and its agent can
# have different names.
# OpenInference's processor puts a space between the parts, and Baton a line break.
_INPUTS = re.compile(r"\nInputs from previous nodes: ?\n")
_TASK = "Original Task:"
_FROM = re.compile(r"(?:^|\n)From ([^\n]+?):[ \n](?=  - )")
_ANSWER = re.compile(r"\s*  - [^\n:]+: \s*")
_LINE_END = re.compile(r"[^\S\n]*(?:\n|\Z)")
_NEXT = re.compile(r"\n(?:From [^\n]+:[ \n])?  - [^\n:]+: ")


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Set the function that finds which nodes of a graph an agent follows, and what waits."""
    interrupted: set[int] = set()
    for node in nodes:
        says, around = node.says, node.parent
        if type(says) is AgentSpan and says.framework == _NAME and _is_interrupted(node.span):
            interrupted.add(id(node))
            # Its answer is the list of interrupts, for the program.
            says.output, says.spoken, says.waits = None, list, True
        if id(around) in interrupted and type(says) is not AgentSpan:
            interrupted.add(id(node))  # parents come first
            if type(says) is ToolSpan and says.result is None and not says.failed:
                says.waits = True
        if type(says) is AgentSpan and says.framework == _NAME:
            in_graph = (
                around is not None
                and type(around.says) is WorkflowSpan
                and around.span.attributes.get("gen_ai.operation.name", around.span.name) == _GRAPH
            )
            graph = around.says if around is not None and in_graph else None
            says.follows = partial(_answers_before, says, graph)
    return []


def _is_interrupted(span: Span) -> bool:
    """Return whether an agent ended with a question to a person, by the reason why it stopped."""
    for event in span.events:
        if event.attributes.get("finish_reason") == _INTERRUPT:
            return True
        output = event.attributes.get("gen_ai.output.messages")
        if isinstance(output, str) and _INTERRUPT in output:
            messages = parsed(output)
            last = messages[-1] if isinstance(messages, list) and messages else None
            if isinstance(last, dict) and last.get("finish_reason") == _INTERRUPT:
                return True
    return False


def _answers_before(
    says: AgentSpan, graph: Reading | None, said: Collection[str]
) -> dict[str, list[str]] | None:
    """Return the answers that an agent was given, by node; ``None`` if its message has none.

    The agents at the start of a graph get only the task. ``said`` are answers of earlier agents.
    Each is matched as a whole, because an answer can quote such a message ("From legal:").
    ``graph`` is the graph of the agent, if it is in one.
    """
    asked = says.asked()
    if asked is None or not asked.text:
        return None
    rest = _after_task(asked.text, graph)
    inputs = _INPUTS.search(rest)
    if inputs is None:
        return {} if graph is not None else None
    rest = rest[inputs.end() :]
    by_node: dict[str, list[str]] = {}
    at = 0
    while (title := _FROM.search(rest, at)) is not None:
        answers, at = by_node.setdefault(title[1], []), title.end()
        while (label := _ANSWER.match(rest, at)) is not None:
            at = label.end()
            whole = max((a for a in said if _begins(rest, a, at)), key=len, default="")
            if not whole:
                after = _NEXT.search(rest, at)
                whole = rest[at : after.start() if after is not None else len(rest)]
            at += len(whole)
            if whole.strip():
                answers.append(whole.strip())
    return by_node


def _after_task(asked: str, graph: Reading | None) -> str:
    """Return what a message has after the task of the graph.

    The task of a graph that is a node of another graph has the answers of the outer nodes: they are
    the inputs of its first agents, whose message is only the task, and not those of later ones.
    """
    given = graph.asked() if type(graph) is WorkflowSpan else None
    task = (given.text or "").strip() if given is not None else ""
    before, separator, after = asked.partition(task) if task else ("", "", "")
    return after if separator and after.strip() and before.strip() in ("", _TASK) else asked


def _begins(answers: str, answer: str, at: int) -> bool:
    """Return whether an answer is at this position, up to the end of its line."""
    return answers.startswith(answer, at) and _LINE_END.match(answers, at + len(answer)) is not None


DIALECT = Dialect(
    name=_NAME,
    resolve=resolve,
    scopes=("strands.telemetry.tracer",),
    framework=Framework(speaks_after_transfer=True),
)
