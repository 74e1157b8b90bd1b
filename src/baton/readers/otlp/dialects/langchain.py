"""What LangChain and LangGraph write into spans beyond the convention they are written in."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping
from typing import Any, NamedTuple

from baton.readers.otlp.messages import read_messages
from baton.readers.otlp.node import GraphPlace, Node
from baton.readers.otlp.span import Span
from baton.readers.otlp.values import content, first, parsed, text

_SEND = re.compile(r"Send\(node='([^']*)'")
_GOTO = re.compile(r"\bgoto=\[?(?:Send\(node=)?'([^']+)'")
_PRINTED = re.compile(r"""content=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?= )""", re.DOTALL)
_CALL_ID = re.compile(r" tool_call_id='([^']*)'")
_PROPERTY = "traceloop.association.properties."
_ASKS = ("GraphInterrupt", "NodeInterrupt")
_MOVES = ("ParentCommand", "GraphBubbleUp", *_ASKS)


class Carried(NamedTuple):
    """What a span says of a LangChain run, raw: metadata, what it was given, what it made."""

    metadata: Mapping[str, Any]
    given: Any
    made: Any


def refine(node: Node, carried: Carried | None = None) -> None:
    """Read LangChain's own metadata and serialised values.

    ``carried`` holds them where the convention of the span has names of its own for them.
    """
    carried = carried or _carried(node.span)
    node.framework = "langgraph"
    node.graph = _place(carried.metadata)
    node.waits = moved(node.span, _ASKS)
    if node.failed and moved(node.span):
        node.failed, node.error = False, None
    if node.kind == "tool":
        _tool(node, carried.made)
    elif node.kind in ("agent", "none"):
        node.kind = "none"
        _run(node, carried.given, carried.made)
    elif node.kind == "model":
        node.model = None if node.model == "unknown" else node.model


def is_from(span: Span) -> bool:
    """Tell a span of LangGraph that lost its scope: a store may not keep it."""
    metadata = span.attributes.get("metadata")
    return isinstance(metadata, str) and (
        '"langgraph_' in metadata or '"lc_agent_name"' in metadata
    )


def _carried(span: Span) -> Carried:
    attributes = span.attributes
    given = first(attributes, "input.value", "traceloop.entity.input")
    made = first(attributes, "output.value", "traceloop.entity.output")
    return Carried(_metadata(span), given, made)


def _metadata(span: Span) -> Mapping[str, Any]:
    metadata = parsed(span.attributes.get("metadata"))
    if isinstance(metadata, dict):
        return metadata
    properties = {
        key.removeprefix(_PROPERTY): value
        for key, value in span.attributes.items()
        if key.startswith(_PROPERTY)
    }
    given = span.attributes.get("traceloop.entity.input")
    if not properties and isinstance(given, str) and '"langgraph_' in given:
        told = parsed(given)
        inner = told.get("metadata") if isinstance(told, dict) else None
        return inner if isinstance(inner, dict) else {}
    return properties


def _place(told: Mapping[str, Any]) -> GraphPlace:
    """Read where in which graph a span stands: ``node:id|inner node:id``."""
    path = text(first(told, "langgraph_checkpoint_ns", "checkpoint_ns")) or ""
    steps = [step for step in path.split("|") if step]
    return GraphPlace(
        path=tuple(step.partition(":")[0] for step in steps),
        agent=text(told.get("lc_agent_name")),
        integration=text(told.get("ls_integration")),
    )


def moved(span: Span, how: tuple[str, ...] = _MOVES) -> bool:
    """Tell the exception by which LangGraph leaves a graph on purpose from a failure.

    LangSmith records it as a bare ``Exception`` whose message is ``ParentCommand(Command(...``.
    """
    for event in span.events:
        if event.name == "exception":
            type_ = str(event.attributes.get("exception.type", "")).rpartition(".")[2]
            if type_ == "Exception":
                type_ = str(event.attributes.get("exception.message", "")).partition("(")[0]
            if type_ in how:
                return True
    return False


def _run(node: Node, given: Any, made: Any) -> None:
    """Tell what a graph added from what it has at its end: all messages, those given it too."""
    node.heard = None if given is None else (lambda: read_messages(_asked(_inner(given, "inputs"))))
    node.spoken = None if made is None else (lambda: _added(node, _inner(made, "outputs")))


def _asked(state: Any) -> Any:
    """Return what a graph is asked: its messages, or the only text in a state without any."""
    if not isinstance(state, dict) or "messages" in state:
        return state
    texts = [value for value in state.values() if text(value)]
    return texts[0] if len(texts) == 1 else state


def _inner(value: Any, key: str) -> Any:
    value = parsed(value)
    return value[key] if isinstance(value, dict) and key in value else value


def _added(node: Node, made: Any) -> list[Any]:
    if not isinstance(made, dict) or not isinstance(made.get("messages"), list):
        return []
    return list(read_messages(made["messages"])[len(node.heard_messages()) :])


def _tool(node: Node, made: Any) -> None:
    """Take the result out of a serialised ToolMessage, or the target out of a Command."""
    node.arguments = _arguments(node.arguments)
    value = _inner(made, "output")
    if isinstance(value, dict) and "goto" in value and "update" in value:
        target = _goto(value["goto"])
        if target is not None:
            node.mode, node.target = "transfer", target
        value = value["update"]
    elif isinstance(value, str):
        value = _printed(node, value)
    answers = [a for message in read_messages(value) for a in message.answers]
    answer = answers[-1] if answers else None
    if answer is not None:
        node.call = node.call or answer.id
        node.result = answer.result
        if answer.failed:
            node.failed, node.error = True, answer.result.plain() if answer.result else None
    elif value is not None:
        node.result = content(value)


def _printed(node: Node, value: str) -> Any:
    """Read what older versions wrote down as Python prints it: a Command or a ToolMessage."""
    if value.startswith("Command("):
        goto = _GOTO.findall(value)
        if goto:
            node.mode, node.target = "transfer", goto[-1]
        return None
    said = _PRINTED.match(value)
    call = _CALL_ID.search(value, said.end()) if said is not None else None
    if said is None or call is None:
        return value
    status = "error" if " status='error'" in value[call.end() :] else None
    told = {"role": "tool", "tool_call_id": call.group(1), "status": status}
    return {**told, "content": _literal(said.group(1))}


def _literal(printed: str) -> Any:
    """Return the plain value that Python printed so, else the text."""
    try:
        return literal_eval(printed)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return printed


def _arguments(value: Any) -> Any:
    """Unwrap arguments that stand among other things."""
    if isinstance(value, str) and value.startswith("{'"):
        return _literal(value)
    if isinstance(value, dict) and "input_str" in value:
        value = parsed(first(value, "inputs", "input_str"))
    if isinstance(value, dict):
        return {name: given for name, given in value.items() if not _is_state(given)}
    return value


def _is_state(given: Any) -> bool:
    """Tell the state of a graph, which no model wrote: the tool has it injected."""
    return isinstance(given, dict) and isinstance(given.get("messages"), list)


def _goto(value: Any) -> str | None:
    """Return the node that a Command goes to: a name, or a Send to one."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        return text(value.get("node"))
    told = text(value)
    sent = _SEND.match(told) if told is not None else None
    return sent.group(1) if sent is not None else told
