"""What smolagents adds to the convention of its spans.

An agent answers by calling the tool ``final_answer``: that is its answer and no tool call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from baton.readers.otlp.attribute_values import content, parsed, text
from baton.readers.otlp.messages import Call, Message
from baton.readers.otlp.span import Span
from baton.readers.otlp.span_content import AgentSpan, ModelSpan, Reading, ToolSpan, as_plain
from baton.readers.tool_definitions import tool_names

from .base import Dialect

_ANSWER = "final_answer"
_RUN = ".run"
# An agent that is called by another gets its task in a long prompt ("You're a helpful agent named
# ..."), between these marks.
_TASK = re.compile(r"\n---\nTask:\n(.*?)\n---\n", re.DOTALL)
# The span is called `ToolCallingAgent.run` if the agent has no name of its own.
_CLASSES = frozenset({"ToolCallingAgent", "CodeAgent", "MultiStepAgent"})


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
        answered = ModelSpan(spoken=says.spoken)
        says.spoken = lambda: [_said(message) for message in answered.spoken_messages()]
    return says


def _agent(says: AgentSpan, attributes: Mapping[str, Any]) -> None:
    name = (says.name or "").removesuffix(_RUN)
    says.name = None if name in _CLASSES else name or None
    given = parsed(attributes.get("input.value"))
    if isinstance(given, Mapping) and "task" in given:
        says.heard = given["task"]
        task = _TASK.search(str(given["task"]))
        says.task = content(task.group(1)) if task is not None else None
    says.output = content(attributes.get("output.value"))
    names = tool_names(attributes.get("smolagents.tools_names"))
    if names is not None:
        says.offered = _without_answer([*names, *_managed(attributes)])
    if says.card is not None:
        says.card.tools = says.offered


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
    return {**arguments, **kwargs} if isinstance(kwargs, Mapping) else arguments


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


DIALECT = Dialect(name="smolagents", refine=refine)
