"""What smolagents' spans say beyond the convention they are written in.

An agent answers by calling the tool ``final_answer``: that is its answer and no tool call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from baton.readers.otlp.messages import Call, Message
from baton.readers.otlp.node import Node
from baton.readers.otlp.values import content, parsed, text

from .handover import tool_names

_ANSWER = "final_answer"
_RUN = ".run"
_TASK = re.compile(r"\n---\nTask:\n(.*?)\n---\n", re.DOTALL)
_CLASSES = frozenset({"ToolCallingAgent", "CodeAgent", "MultiStepAgent"})


def refine(node: Node) -> None:
    """Read the names, tasks, arguments and answers as smolagents writes them."""
    if node.kind == "agent":
        _agent(node)
    elif node.kind == "tool":
        node.arguments = _arguments(node.arguments, node.span.attributes.get("tool.parameters"))
        if node.name == _ANSWER:
            node.kind = "none"
    elif node.kind == "model":
        node.offered = _without_answer(node.offered)
        answered = Node(span=node.span, kind="model", spoken=node.spoken)
        node.spoken = lambda: [_said(message) for message in answered.spoken_messages()]


def _agent(node: Node) -> None:
    attributes = node.span.attributes
    name = (node.name or "").removesuffix(_RUN)
    node.name = None if name in _CLASSES else name or None
    given = parsed(attributes.get("input.value"))
    if isinstance(given, Mapping) and "task" in given:
        node.heard = given["task"]
        task = _TASK.search(str(given["task"]))
        node.prompt = content(task.group(1)) if task is not None else None
    node.output = content(attributes.get("output.value"))
    names = tool_names(attributes.get("smolagents.tools_names"))
    if names is not None:
        node.offered = _without_answer([*names, *_managed(attributes)])
    if node.card is not None:
        node.card.tools = node.offered


def _managed(attributes: Mapping[str, Any]) -> list[str]:
    """Return the agents that this one may call."""
    found: list[str] = []
    for number in count():
        name = text(attributes.get(f"smolagents.managed_agents.{number}.name"))
        if name is None:
            return found
        found.append(name)
    return found


def _arguments(value: Any, parameters: Any) -> Any:
    """Take a call's own arguments out of those of the function that made it."""
    if not isinstance(value, Mapping) or "sanitize_inputs_outputs" not in value:
        return value
    names = parsed(parameters)
    places = value.get("args") or []
    told = dict(zip(names if isinstance(names, Mapping) else (), places, strict=False))
    kwargs = value.get("kwargs")
    return {**told, **kwargs} if isinstance(kwargs, Mapping) else told


def _without_answer(names: list[str] | None) -> list[str] | None:
    return None if names is None else [name for name in names if name != _ANSWER]


def _said(message: Message) -> Message:
    """Make what it is of the call by which a model answers."""
    answer = next((call for call in message.calls if call.name == _ANSWER), None)
    if answer is not None:
        message.calls = [call for call in message.calls if call is not answer]
        message.content = _answer(answer) or message.content
    return message


def _answer(call: Call) -> Any:
    told = call.arguments
    return content(told["answer"] if isinstance(told, Mapping) and "answer" in told else told)
