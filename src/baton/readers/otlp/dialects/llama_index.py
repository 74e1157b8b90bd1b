"""LlamaIndex's agent workflows: agents have no spans, only steps that name their agent.

A workflow of several agents sets one up before each of its steps; what follows belongs to that
agent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from baton.readers.otlp.readings import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    as_agent,
    as_plain,
    as_workflow,
    node_of,
)
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.values import content, parsed

from .base import Dialect

_FRAMEWORK = "llama-index"
# Kind LLM, but it only builds the request; the request itself is the next span.
_NOT_ASKING = "._prepare_chat_with_tools"
# Steps of the workflow. They are siblings below one span, whichever agent they are for.
_STEP, _SETUP = ".run_agent_step", ".setup_agent"
# With one agent, the span has the name of its class (`FunctionAgent.run`), and is the agent.
_SEVERAL = "AgentWorkflow."
_CURRENT = re.compile(r"\bcurrent_agent_name='([^']*)'")


def refine(says: Reading, span: Span) -> Reading:
    """Read arguments and results of tools; sort out what only looks like a request."""
    if type(says) is ModelSpan and span.name.endswith(_NOT_ASKING):
        return as_plain(says)
    if type(says) is not ToolSpan:
        return says
    given = says.arguments
    if isinstance(given, Mapping) and "kwargs" in given and set(given) <= {"args", "kwargs"}:
        named = given["kwargs"] if isinstance(given["kwargs"], Mapping) else {}
        says.arguments = {key: value for key, value in named.items() if key != "ctx"}
    made = says.result.data if says.result is not None else None
    if isinstance(made, Mapping) and "raw_output" in made:
        says.result = content(made.get("blocks")) or content(parsed(made["raw_output"]))
        if made.get("is_error") is True:
            says.failed, says.error = True, says.result.plain() if says.result else None
    return says


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Make agents from runs of one agent, and from the steps of each in a run of several agents."""
    for node in nodes:
        if node.says.framework == _FRAMEWORK and type(node.says) is PlainSpan:
            if any(child.span.name.endswith(_STEP) for child in node.children):
                _make_agents(node)
    return []


def _make_agents(around: Node) -> None:
    if not around.span.name.startswith(_SEVERAL):
        name = next(filter(None, map(_named, around.children)), None)
        around.says = as_agent(around.says, name)
        return
    around.says = as_workflow(around.says, None)
    groups: list[list[Node]] = [[]]
    current: str | None = None
    for child in around.children:
        name = _named(child) if child.span.name.endswith(_SETUP) else current
        if name != current if current is not None else name is None and _left(groups[-1], child):
            groups.append([])
        current = name
        groups[-1].append(child)
    around.children = [_agent(around, group, number) for number, group in enumerate(groups)]


def _left(steps: list[Node], child: Node) -> bool:
    """Return whether an unnamed agent has handed over before the next one is set up."""
    tools = (tool.says for step in steps for tool in step.children)
    return child.span.name.endswith(_SETUP) and any(
        type(tool) is ToolSpan and tool.mode == "transfer" for tool in tools
    )


def _agent(around: Node, steps: list[Node], number: int) -> Node:
    """Insert an agent between a workflow and the agent's steps."""
    ends = [step.span.ended for step in steps]
    span = msgspec.structs.replace(
        around.span,
        span_id=f"{around.span.span_id}/agent{number}",
        parent_id=around.span.span_id,
        started=steps[0].span.started,
        ended=None if None in ends else max(end for end in ends if end is not None),
        attributes={},
        events=[],
        status=0,
    )
    setups = (step for step in steps if step.span.name.endswith(_SETUP))
    name = next(filter(None, map(_named, setups)), None)
    agent = node_of(span, AgentSpan(name=name, framework=_FRAMEWORK), around)
    agent.children = steps
    for step in steps:
        step.parent = agent
    return agent


def _named(step: Node) -> str | None:
    """Return the agent that a step's event names, in its input or output."""
    for key in ("input.value", "output.value"):
        found = _CURRENT.findall(str(step.span.attributes.get(key, "")))
        if found:
            return str(found[-1])
    return None


DIALECT = Dialect(name=_FRAMEWORK, refine=refine, resolve=resolve)
