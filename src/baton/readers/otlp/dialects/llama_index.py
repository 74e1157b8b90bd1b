"""LlamaIndex's agent workflows: agents have no spans, only steps that name their agent.

A workflow of several agents sets one up before each of its steps; what follows belongs to that
agent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from typing import Any

import msgspec

from baton.readers.otlp.attribute_values import content, first, parsed, shown, text
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.messages import Call, Message
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

from .dialect import Dialect

_FRAMEWORK = "llama-index"
# Kind LLM, but it only builds the request; the request itself is the next span.
_NOT_ASKING = "._prepare_chat_with_tools"
# How a workflow answers a hand-off to an agent that it does not have, and to one that the agent may
# not hand over to: "Agent king not found. Please select a valid agent to hand off to. ...".
_REFUSED = re.compile(
    r"Agent .+ (?:not found|cannot hand ?off to .+)\. Please select a valid agent\b"
)
# An agent whose model only writes texts (`ReActAgent`) has a span of what each of them means.
_PARSER = "ReActOutputParser."
_STRUCTURED = "StructuredLLM."
# Steps of the workflow. They are siblings below one span, whichever agent they are for.
_STEP, _SETUP = ".run_agent_step", ".setup_agent"
# With one agent, the span has the name of its class (`FunctionAgent.run`), and is the agent.
_SEVERAL = "AgentWorkflow."
_KIND = "traceloop.span.kind"
# Input and output as JSON, by Traceloop and by MLflow.
_GIVEN = ("traceloop.entity.input", "mlflow.spanInputs")
_MADE = ("traceloop.entity.output", "mlflow.spanOutputs")
# Names that only LlamaIndex has, for instrumentations that do not state the framework.
_OWN = re.compile(
    r"\.(?:init_run|setup_agent|run_agent_step|parse_agent_output|call_tool|aggregate_tool_results"
    r"|_prepare_chat_with_tools)$|^FunctionTool\.a?call$"
)
_CURRENT = re.compile(r"\bcurrent_agent_name='([^']*)'")


def wrote(span: Span) -> bool:
    """Return whether a span is one of LlamaIndex's, by its name."""
    return _OWN.search(span.name) is not None


def _made(span: Span) -> Any:
    return parsed(first(span.attributes, *_MADE))


def refine(says: Reading, span: Span) -> Reading:
    """Read arguments and results of tools; sort out what only looks like a request."""
    if type(says) is PlainSpan and "tool.name" in span.attributes:
        return _tool(span)
    if type(says) is ModelSpan and span.name.endswith(_NOT_ASKING):
        return as_plain(says)
    if type(says) is ModelSpan and first(span.attributes, *_MADE) is not None:
        _complete(says, span)
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
        said = says.result.plain() if says.result else None
        if made.get("is_error") is True or (said is not None and _REFUSED.match(said)):
            says.failed, says.error = True, said


def _tool(span: Span) -> ToolSpan:
    """Read a step of Traceloop that calls a tool: all its spans have the kind of a task."""
    made = _made(span)
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
    """Take a request's tools and the calls of its answer from LlamaIndex's input and output.

    OpenTelemetry's attributes, which Traceloop writes beside them, have neither.
    """
    given, made = parsed(first(span.attributes, *_GIVEN)), _made(span)
    spoken = _message(made.get("message")) if isinstance(made, Mapping) else None
    if spoken is not None:
        says.spoken = [spoken]
    messages = given.get("messages") if isinstance(given, Mapping) else None
    if isinstance(messages, list) and any(map(_message, messages)):
        says.heard = [told for each in messages if (told := _message(each)) is not None]
    options = given.get("kwargs") if isinstance(given, Mapping) else None
    if isinstance(options, Mapping) and isinstance(options.get("tools"), list):
        says.offered = tool_names(options["tools"])
        says.reaches = targets_of(options["tools"])


def _message(written: Any) -> dict[str, Any] | None:
    """Return a message of LlamaIndex in OpenTelemetry's form."""
    if not isinstance(written, Mapping) or not isinstance(written.get("blocks"), list):
        return None
    role, more = text(written.get("role")) or "assistant", written.get("additional_kwargs")
    parts: list[dict[str, Any]] = []
    if role == "tool":
        id_ = more.get("tool_call_id") if isinstance(more, Mapping) else None
        said = content(written["blocks"])
        answer = said.plain() if said is not None else ""
        return {
            "role": role,
            "parts": [{"type": "tool_call_response", "id": id_, "response": answer}],
        }
    for block in written["blocks"]:
        if isinstance(block, Mapping) and block.get("block_type") == "tool_call":
            name, given = block.get("tool_name"), parsed(block.get("tool_kwargs"))
            id_ = block.get("tool_call_id")
            parts.append({"type": "tool_call", "id": id_, "name": name, "arguments": given})
        elif isinstance(block, Mapping) and block.get("block_type") == "text":
            parts.append({"type": "text", "content": block.get("text")})
    return {"role": role, "parts": parts}


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Make agents from runs of one agent, and from the steps of each in a run of several agents."""
    _lengthen(nodes)
    formed: set[int] = set()
    for node in nodes:
        if node.span.name.startswith(_PARSER):
            _take_apart(node)
        elif node.span.name.startswith(_STRUCTURED) and id(node) not in formed:
            formed |= _answer_in_form(node)
    for node in nodes:
        if any(_is_step(c) and c.says.framework == _FRAMEWORK for c in node.children):
            node.says.framework = _FRAMEWORK
        if node.says.framework != _FRAMEWORK:
            continue
        if type(node.says) is ModelSpan and node.says.spoken is None:
            _answered_later(node, node.says)
        if type(node.says) is ModelSpan and any(map(_asks, node.children)):
            # `OpenAILike.achat` calls the method of its base class, which has a span of its own.
            node.says = as_plain(node.says)
        elif isinstance(node.says, PlainSpan | AgentSpan) and any(map(_is_step, node.children)):
            _make_agents(node)
    return []


def _take_apart(parser: Node) -> None:
    """Replace the text of a model by its thought and its call or answer, as LlamaIndex parsed it.

    For example, "Thought: I can answer. Answer: Train at 09:12." answers "Train at 09:12.".
    """
    attributes = parser.span.attributes
    found = parsed(first(attributes, "output.value", *_MADE))
    if parser.parent is None or not isinstance(found, Mapping):
        return
    before = [node for node in parser.parent.children if node.started <= parser.started]
    asked = next(filter(None, map(_innermost_request, reversed(before))), None)
    if asked is None:
        return
    message = Message(role="assistant", thought=text(found.get("thought")))
    name = text(found.get("action"))
    if name is not None:
        message.calls = [Call(name=name, arguments=shown(found.get("action_input")))]
    else:
        message.content = content(found.get("response"))
    asked.spoken = asked._spoken = [message]


def _innermost_request(node: Node) -> ModelSpan | None:
    """Return the request of a span: a method of a model's base class has a span of its own."""
    found: ModelSpan | None = None
    below = [node]
    for inner in below:
        below += inner.children
        found = inner.says if type(inner.says) is ModelSpan else found
    return found


def _answer_in_form(node: Node) -> set[int]:
    """Read a request for structured output: the call that gives the answer its form is no tool's.

    Spans below are the same request, and a call of a function `Offer` for the class `Offer`.
    Returns the ``id()`` of each of them.
    """
    below = list(node.children)
    for inner in below:
        below += inner.children
        if type(inner.says) is ToolSpan:
            inner.says = as_plain(inner.says)
        elif type(inner.says) is ModelSpan and type(node.says) is ModelSpan:
            inner.says.spoken, inner.says._spoken = node.says.spoken, None
    return {id(inner) for inner in below}


def _answered_later(node: Node, says: ModelSpan) -> None:
    """Read an answer that was streamed from the step around the request."""
    made = _made(node.parent.span) if node.parent is not None else None
    answer = _message(made.get("response")) if isinstance(made, Mapping) else None
    if answer is not None:
        says.spoken, says._spoken = [answer], None


def _lengthen(nodes: list[Node]) -> None:
    """Correct the ends of Traceloop's spans to those of the spans below them.

    If a model streams its answer, all spans around the request end with the first words. The agent
    goes on: a call would seem to have returned before its agent answered. A call has waited for
    what is below if that span, which ends too early as well, had ended before the call's.
    """
    recorded = {id(node): node.ended for node in nodes}
    for node in reversed(nodes):
        if node.says.framework != _FRAMEWORK or _KIND not in node.span.attributes:
            continue
        steps = any(map(_is_step, node.children))
        ends = [c.ended for c in node.children if steps or recorded[id(c)] <= recorded[id(node)]]
        if max(ends, default=0.0) > node.ended:
            node.ended = max(ends)
            node.span = msgspec.structs.replace(
                node.span, ended=node.ended if node.ended < inf else None
            )


def _asks(node: Node) -> bool:
    return type(node.says) is ModelSpan and node.says.framework == _FRAMEWORK


def _is_step(node: Node) -> bool:
    return node.span.name.endswith(_STEP) or (
        first(node.span.attributes, *_MADE) is not None and _named(node) is not None
    )


def _is_setup(node: Node) -> bool:
    """Return whether a step starts an agent: its output has the agent's input and name."""
    made = first(node.span.attributes, *_MADE)
    if isinstance(made, str):
        return made.startswith('{"input"')
    return node.span.name.endswith(_SETUP)


def _make_agents(around: Node) -> None:
    # Traceloop calls the span of a workflow inside a tool `run.task`, whatever it runs.
    spans = (around.span, *(child.span for child in around.children))
    if not any(span.name.startswith(_SEVERAL) for span in spans):
        name = next(filter(None, map(_named, around.children)), None)
        around.says = agent = as_agent(around.says, name)
        _tell(agent, around.children)
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
    says = AgentSpan(name=name, framework=_FRAMEWORK)
    _tell(says, steps)
    agent = node_of(span, says, around)
    agent.children = steps
    for step in steps:
        step.parent = agent
    return agent


def _tell(agent: AgentSpan, steps: list[Node]) -> None:
    """Read what an agent was given and answered from its steps, if no requests are recorded.

    Traceloop leaves the requests to the instrumentation of the model's client, which a program may
    not have.
    """
    if any(type(child.says) is ModelSpan for step in steps for child in step.children):
        return
    made = [_made(step.span) for step in steps]
    given = [each["input"] for each in made if isinstance(each, Mapping) and "input" in each]
    # The first step has what the agent is asked, the second one also its instructions.
    messages = given[min(1, len(given) - 1)] if given else None
    if isinstance(messages, list):
        agent.heard = [told for each in messages if (told := _message(each)) is not None]
    ends = [each["result"] for each in made if isinstance(each, Mapping) and "result" in each]
    response = ends[-1].get("response") if ends and isinstance(ends[-1], Mapping) else None
    answer = _message(response)
    if answer is not None:
        agent.spoken = [answer]


def _named(step: Node) -> str | None:
    """Return the agent that a step's event names, in its input or output."""
    made = _made(step.span)
    if isinstance(made, Mapping):
        return text(made.get("current_agent_name"))
    for key in ("input.value", "output.value"):
        names = _CURRENT.findall(str(step.span.attributes.get(key, "")))
        if names:
            return str(names[-1])
    return None


DIALECT = Dialect(name=_FRAMEWORK, refine=refine, resolve=resolve)
