"""What smolagents adds to the convention of its spans.

An agent answers by calling the tool ``final_answer``: that is its answer and no tool call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from baton.model import Usage
from baton.readers.otlp.attribute_values import content, parsed, printed_value, text
from baton.readers.otlp.messages import Call, Message
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    Reading,
    ToolSpan,
    as_plain,
)
from baton.readers.tool_definitions import tool_names

from .dialect import Dialect

_ANSWER = "final_answer"
_FRAMEWORK = "smolagents"
_RUN = ".run"
# The parameters of the function that calls a tool. The tool's own arguments are among them.
_OF_CALLS = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})
# An agent that is called by another gets its task in a long prompt ("You're a helpful agent named
# ..."), between these marks.
_TASK = re.compile(r"\n---\nTask:\n(.*?)\n---\n", re.DOTALL)
_NAMED = re.compile(r"You're a helpful agent named '([^'\n]+)'\.")
# The span is called `ToolCallingAgent.run` if the agent has no name of its own.
_CLASSES = frozenset({"ToolCallingAgent", "CodeAgent", "MultiStepAgent"})
# OpenInference joins everything that a streamed run yields, as Python prints it, and calls this the
# output: `ToolCall(name='botanist', ...)ActionStep(step_number=1, ...)FinalAnswerStep(output='4')`.
_YIELDED = re.compile(
    r"(?:ToolCall|ToolOutput|ActionOutput|ActionStep|PlanningStep|ChatMessageStreamDelta"
    r"|FinalAnswerStep)\("
)
# All that older versions record of a streamed run.
_UNREAD = "<generator object "
_FINAL = re.compile(r"FinalAnswerStep\((?:output|final_answer)=")


def refine(says: Reading, span: Span) -> Reading:
    """Read the names, tasks, arguments and answers as smolagents writes them."""
    if type(says) is AgentSpan:
        _agent(says, span.attributes)
    elif type(says) is ToolSpan:
        says.arguments = _arguments(says.arguments, span.attributes.get("tool.parameters"))
        if says.name == _ANSWER:
            return as_plain(says)
    elif type(says) is ModelSpan:
        says.offered = _without_answer(says.offered)
        says.heard = _asked_of_function(span.attributes) or says.heard
        answered = ModelSpan(spoken=says.spoken)
        says.spoken = lambda: [_said(message) for message in answered.spoken_messages()]
    return says


def _agent(says: AgentSpan, attributes: Mapping[str, Any]) -> None:
    name = (says.name or "").removesuffix(_RUN)
    says.name = None if name in _CLASSES else name or None
    given = parsed(attributes.get("input.value"))
    if isinstance(given, Mapping):
        asked = given["task"] if "task" in given else _first_place(given)
        if asked is not None:
            says.heard = asked
            task = _TASK.search(str(asked))
            says.task = content(task.group(1)) if task is not None else None
            # traceAI's spans never have the name: only the prompt tells it.
            named = _NAMED.match(str(asked)) if task is not None else None
            says.name = named.group(1) if says.name is None and named is not None else says.name
        # The counts are those of the agent since it was last reset.
        if given.get("reset", True) is not True:
            says.totals = Usage(complete=False)
    answer = attributes.get("output.value")
    if isinstance(answer, str) and answer.startswith(_UNREAD):
        answer = says.spoken = None
    elif isinstance(answer, str) and _YIELDED.match(answer):
        answer = says.spoken = _final(answer)
    says.output = content(answer)
    names = tool_names(attributes.get("smolagents.tools_names"))
    managed = _managed(attributes)
    says.reaches = {name: [name] for name in managed}
    if names is not None:
        says.offered = _without_answer([*names, *managed])
    if says.card is not None:
        says.card.tools = says.offered


def _final(yielded: str) -> Any:
    """Return the answer among everything that a streamed run yielded, which is its end."""
    found = [match.end() for match in _FINAL.finditer(yielded)]
    if not found or not yielded.endswith(")"):
        return None
    printed = yielded[found[-1] : -1]
    return printed_value(printed, otherwise=printed)


def _named_by(request: ModelSpan) -> str | None:
    """Return the agent whose name its caller's prompt tells it."""
    asked = request.asked()
    named = _NAMED.search(asked.text or "") if asked is not None else None
    return named.group(1) if named is not None else None


def _asked_of_function(attributes: Mapping[str, Any]) -> list[Any] | None:
    """Return the messages of a request, which older versions record only as a first argument.

    `{"args": [[{"role": "system", "content": ...}, {"role": "user", ...}]]}`
    """
    if "llm.input_messages.0.message.role" in attributes:
        return None
    given = parsed(attributes.get("input.value"))
    messages = _first_place(given) if isinstance(given, Mapping) else None
    return messages if isinstance(messages, list) else None


def _first_place(given: Mapping[str, Any]) -> Any:
    """Return the first argument of a function whose arguments have no names."""
    places = given.get("args")
    return places[0] if isinstance(places, list) and places else None


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Name the agents of requests that have lost their agent, and check counts of tokens.

    Runs of one agent that overlap each have the counts of all of them.
    """
    for node in nodes:
        # The span of an agent that raises is never ended, so that it is not exported.
        if type(node.says) is ModelSpan and node.says.framework == _FRAMEWORK:
            step = node.parent or node
            if step.is_torn:
                node.says.agent = _named_by(node.says)
    latest: dict[str | None, Node] = {}
    for node in sorted(nodes, key=lambda node: node.started):
        says = node.says
        if type(says) is not AgentSpan or says.framework != _FRAMEWORK:
            continue
        before = latest.get(says.name)
        if before is not None and type(before.says) is AgentSpan and before.ended > node.started:
            before.says.totals = says.totals = Usage(complete=False)
        if before is None or before.ended <= node.ended:
            latest[says.name] = node
    return []


def _managed(attributes: Mapping[str, Any]) -> list[str]:
    """Return the agents that this one may call."""
    names: list[str] = []
    for number in count():
        name = text(attributes.get(f"smolagents.managed_agents.{number}.name"))
        if name is None:
            return names
        names.append(name)
    return names


def _arguments(value: Any, parameters: Any) -> Any:
    """Extract a call's own arguments from those of the function that made it."""
    if not isinstance(value, Mapping) or "sanitize_inputs_outputs" not in value:
        return value
    names = parsed(parameters)
    places = value.get("args") or []
    arguments = dict(zip(names if isinstance(names, Mapping) else (), places, strict=False))
    kwargs = value.get("kwargs")
    if not isinstance(kwargs, Mapping):  # traceAI writes them beside the others
        kwargs = {name: given for name, given in value.items() if name not in _OF_CALLS}
    return {**arguments, **kwargs}


def _without_answer(names: list[str] | None) -> list[str] | None:
    return None if names is None else [name for name in names if name != _ANSWER]


def _said(message: Message) -> Message:
    """Convert the call by which a model answers to an answer."""
    answer = next((call for call in message.calls if call.name == _ANSWER), None)
    if answer is not None:
        message.calls = [call for call in message.calls if call is not answer]
        message.content = _answer(answer) or message.content
    return message


def _answer(call: Call) -> Any:
    arguments = call.arguments
    return content(
        arguments["answer"]
        if isinstance(arguments, Mapping) and "answer" in arguments
        else arguments
    )


DIALECT = Dialect(name=_FRAMEWORK, refine=refine, resolve=resolve)
