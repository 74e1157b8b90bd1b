"""LlamaIndex's agent workflows: agents have no spans, only steps that name their agent.

A workflow of several agents sets one up before each of its steps; what follows belongs to that
agent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from baton.readers.otlp.attribute_values import content, parsed, shown, text
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    as_agent,
    as_plain,
    as_workflow,
    fail,
    node_of,
)
from baton.readers.tool_definitions import targets_of, tool_names

from .base import Dialect
from .handover import hand_over

_FRAMEWORK = "llama-index"
# Kind LLM, but it only builds the request; the request itself is the next span.
_NOT_ASKING = "._prepare_chat_with_tools"
# Steps of the workflow. They are siblings below one span, whichever agent they are for.
_STEP, _SETUP = ".run_agent_step", ".setup_agent"
# With one agent, the span has the name of its class (`FunctionAgent.run`), and is the agent.
_SEVERAL = "AgentWorkflow."
_GIVEN, _MADE = "traceloop.entity.input", "traceloop.entity.output"
_CURRENT = re.compile(r"\bcurrent_agent_name='([^']*)'")


def refine(says: Reading, span: Span) -> Reading:
    """Read arguments and results of tools; sort out what only looks like a request."""
    if type(says) is PlainSpan and "tool.name" in span.attributes:
        return _tool(span)
    if type(says) is ModelSpan and _MADE in span.attributes:
        _complete(says, span)
    elif type(says) is ModelSpan and span.name.endswith(_NOT_ASKING):
        return as_plain(says)
    if type(says) is not ToolSpan:
        return says
    given = says.arguments
    if isinstance(given, Mapping) and "kwargs" in given and set(given) <= {"args", "kwargs"}:
        named = given["kwargs"] if isinstance(given["kwargs"], Mapping) else {}
        says.arguments = {key: value for key, value in named.items() if key != "ctx"}
    _answer(says, says.result.data if says.result is not None else None)
    return says


def _answer(says: ToolSpan, made: Any) -> None:
    """Read LlamaIndex's envelope of a result."""
    if isinstance(made, Mapping) and "raw_output" in made:
        says.result = content(made.get("blocks")) or content(parsed(made["raw_output"]))
        if made.get("is_error") is True:
            says.failed, says.error = True, says.result.plain() if says.result else None


def _tool(span: Span) -> ToolSpan:
    """Read a step of Traceloop that calls a tool: all its spans have the kind of a task."""
    made = parsed(span.attributes.get(_MADE))
    made = made if isinstance(made, Mapping) else {}
    says = ToolSpan(
        name=text(span.attributes["tool.name"]),
        framework=_FRAMEWORK,
        call=text(made.get("tool_id")),
        arguments=shown(span.attributes.get("tool.arguments")),
    )
    fail(says, span)
    _answer(says, made.get("tool_output"))
    hand_over(says, None, span.attributes)
    return says


def _complete(says: ModelSpan, span: Span) -> None:
    """Take a request's tools and the calls of its answer from Traceloop's own attributes.

    OpenTelemetry's attributes, which it writes beside them, have neither.
    """
    given, made = parsed(span.attributes.get(_GIVEN)), parsed(span.attributes[_MADE])
    spoken = _message(made.get("message")) if isinstance(made, Mapping) else None
    if spoken is not None:
        says.spoken = [spoken]
    options = given.get("kwargs") if isinstance(given, Mapping) else None
    if isinstance(options, Mapping) and isinstance(options.get("tools"), list):
        says.offered = tool_names(options["tools"])
        says.reaches = targets_of(options["tools"])


def _message(written: Any) -> dict[str, Any] | None:
    """Return LlamaIndex's message of a model in OpenTelemetry's form."""
    if not isinstance(written, Mapping) or not isinstance(written.get("blocks"), list):
        return None
    parts: list[dict[str, Any]] = []
    for block in written["blocks"]:
        if isinstance(block, Mapping) and block.get("block_type") == "tool_call":
            name, given = block.get("tool_name"), parsed(block.get("tool_kwargs"))
            id_ = block.get("tool_call_id")
            parts.append({"type": "tool_call", "id": id_, "name": name, "arguments": given})
        elif isinstance(block, Mapping) and block.get("block_type") == "text":
            parts.append({"type": "text", "content": block.get("text")})
    return {"role": "assistant", "parts": parts}


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Make agents from runs of one agent, and from the steps of each in a run of several agents."""
    for node in nodes:
        if node.says.framework != _FRAMEWORK:
            continue
        if type(node.says) is ModelSpan and any(map(_asks, node.children)):
            # `OpenAILike.achat` calls the method of its base class, which has a span of its own.
            node.says = as_plain(node.says)
        elif type(node.says) is PlainSpan and any(map(_is_step, node.children)):
            _make_agents(node)
    return []


def _asks(node: Node) -> bool:
    return type(node.says) is ModelSpan and node.says.framework == _FRAMEWORK


def _is_step(node: Node) -> bool:
    return node.span.name.endswith(_STEP) or (
        _MADE in node.span.attributes and _named(node) is not None
    )


def _is_setup(node: Node) -> bool:
    """Return whether a step starts an agent: its output has the agent's input and name."""
    made = node.span.attributes.get(_MADE)
    if isinstance(made, str):
        return made.startswith('{"input"')
    return node.span.name.endswith(_SETUP)


def _make_agents(around: Node) -> None:
    if not around.span.name.startswith(_SEVERAL):
        name = next(filter(None, map(_named, around.children)), None)
        around.says = as_agent(around.says, name)
        return
    around.says = as_workflow(around.says, None)
    groups: list[list[Node]] = [[]]
    current: str | None = None
    for child in around.children:
        name = _named(child) if _is_setup(child) else current
        if name != current if current is not None else name is None and _left(groups[-1], child):
            groups.append([])
        current = name
        groups[-1].append(child)
    around.children = [_agent(around, group, number) for number, group in enumerate(groups)]


def _left(steps: list[Node], child: Node) -> bool:
    """Return whether an unnamed agent has handed over before the next one is set up."""
    tools = (tool.says for step in steps for tool in step.children)
    return _is_setup(child) and any(
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
    setups = (step for step in steps if _is_setup(step))
    name = next(filter(None, map(_named, setups)), None)
    agent = node_of(span, AgentSpan(name=name, framework=_FRAMEWORK), around)
    agent.children = steps
    for step in steps:
        step.parent = agent
    return agent


def _named(step: Node) -> str | None:
    """Return the agent that a step's event names, in its input or output."""
    made = parsed(step.span.attributes.get(_MADE))
    if isinstance(made, Mapping):
        return text(made.get("current_agent_name"))
    for key in ("input.value", "output.value"):
        names = _CURRENT.findall(str(step.span.attributes.get(key, "")))
        if names:
            return str(names[-1])
    return None


DIALECT = Dialect(name=_FRAMEWORK, refine=refine, resolve=resolve)
