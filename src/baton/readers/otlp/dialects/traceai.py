"""traceAI's spans of the Claude Agent SDK.

All calls lie flat below the conversation, a sub-agent's too, and nothing but the time tells whose
they are; texts of sub-agents cannot be told from those of the main agent, and token counts are 0.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

from baton.readers.claude.wire import answer_content
from baton.readers.otlp.node import Node, Overlaps
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.values import content, first, shown, text

from .base import Dialect

KIND = "claude_agent.span_kind"
_TOOL = "claude_agent.tool."
_SUB = "claude_agent.subagent."
_DISPATCH = frozenset({"Agent", "Task"})
_DEFAULT = "general-purpose"
_LAUNCHED = "async_launched"


def claims(span: Span) -> bool:
    """Tell a span of this convention."""
    return KIND in span.attributes


def read(span: Span) -> Node:
    """Read one span."""
    attributes = span.attributes
    kind = attributes[KIND]
    node = Node(span=span, kind="none", framework="claude-agent-sdk")
    if kind == "conversation":
        node.kind = "agent"
        node.heard = shown(attributes.get("claude_agent.prompt"))
        node.spoken = attributes.get("output")
        node.model = text(attributes.get("claude_agent.model"))
    elif kind == "assistant_turn" and "claude_agent.message.content" in attributes:
        node.lost = "texts of which the source does not tell whose they are"
    elif kind in ("tool_execution", "subagent", "mcp_tool"):
        _tool(node)
    return node


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Tell a conversation span that waits for background agents of the one before."""
    launched = any(_LAUNCHED in str(span.attributes.get(_TOOL + "output", "")) for span in before)
    prompts = {_prompt(before), _prompt(spans)}
    return launched and len(prompts) == 1 and None not in prompts


def _prompt(spans: list[Span]) -> str | None:
    told = (text(span.attributes.get("claude_agent.prompt")) for span in spans if claims(span))
    return next((prompt for prompt in told if prompt is not None), None)


def _tool(node: Node) -> None:
    attributes = node.span.attributes
    node.kind = "tool"
    node.name = text(attributes.get(_TOOL + "name")) or node.span.name.rpartition(".")[2]
    node.call = text(attributes.get(_TOOL + "use_id"))
    node.arguments = shown(attributes.get(_TOOL + "input"))
    node.result = content(first(attributes, _TOOL + "output", _SUB + "result"))
    node.failed = attributes.get(_TOOL + "is_error") is True
    node.error = text(attributes.get(_TOOL + "error_message")) if node.failed else None
    asked = node.arguments if isinstance(node.arguments, dict) else {}
    target = text(first(attributes, _SUB + "type")) or text(asked.get("subagent_type"))
    if node.name in _DISPATCH or target is not None:
        node.mode, node.target = "delegate", target or _DEFAULT
        _answer(node)
        prompt = text(attributes.get(_SUB + "prompt"))
        if not asked and prompt is not None:
            node.arguments = {"prompt": prompt}


def _answer(node: Node) -> None:
    """Take the answer of a sub-agent out of the object that its call returns."""
    told = node.result.data if node.result is not None else None
    if not isinstance(told, dict):
        return
    if told.get("status") == _LAUNCHED:
        node.launched = True
    elif "content" in told:
        node.result = answer_content(None, told)


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Put calls below the one dispatch during which they were made, where there is just one."""
    dispatches = [node for node in nodes if claims(node.span) and node.mode == "delegate"]
    at_work = Overlaps(dispatches)
    launched = min((node.ended for node in dispatches if node.launched), default=inf)
    for node in nodes:
        if not claims(node.span) or node.kind != "tool" or node.parent is None:
            continue
        if node.parent.kind != "agent":
            continue
        around = [
            other
            for other in at_work.around(node)
            if other is not node and other.started <= node.started and node.ended <= other.ended
        ]
        if not around and launched <= node.started:
            node.kind, node.lost = "none", "calls of which the source does not tell whose they are"
        if len(around) == 1 or (around and _nested(around)):
            inner = max(around, key=lambda other: other.started)
            node.parent.children.remove(node)
            node.parent = inner
            inner.children.append(node)
    return []


def _nested(around: list[Node]) -> bool:
    """Tell dispatches each inside the one before from those that ran side by side."""
    ordered = sorted(around, key=lambda node: node.started)
    return all(inner.ended <= outer.ended for outer, inner in pairwise(ordered))


DIALECT = Dialect(
    name="traceai",
    rank=20,
    claims=claims,
    read=read,
    resolve=resolve,
    goes_on=goes_on,
    conversations=("claude_agent.session_id",),
)
