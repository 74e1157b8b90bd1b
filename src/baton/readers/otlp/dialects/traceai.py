"""traceAI's spans of the Claude Agent SDK.

All calls lie flat below the conversation, a sub-agent's too, and nothing but the time tells whose
they are; texts of sub-agents cannot be told from those of the main agent, and token counts are 0.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

from baton.readers.claude.wire import answer_content
from baton.readers.otlp.readings import (
    AgentSpan,
    Node,
    Overlaps,
    PlainSpan,
    Reading,
    ToolSpan,
    as_plain,
)
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.values import content, first, shown, text

from .base import Dialect, with_attribute

KIND = "claude_agent.span_kind"
_TOOL = "claude_agent.tool."
_SUB = "claude_agent.subagent."
# One tool of the Claude Agent SDK, before and after it was renamed.
_DISPATCH = frozenset({"Agent", "Task"})
# The sub-agent that Claude Code starts if none is named.
_DEFAULT = "general-purpose"
_LAUNCHED = "async_launched"

claims = with_attribute(KIND)


def read(span: Span) -> Reading:
    """Read one span."""
    attributes = span.attributes
    kind = attributes[KIND]
    says: Reading
    if kind == "conversation":
        says = AgentSpan(
            heard=shown(attributes.get("claude_agent.prompt")),
            spoken=attributes.get("output"),
            model=text(attributes.get("claude_agent.model")),
        )
    elif kind == "assistant_turn" and "claude_agent.message.content" in attributes:
        says = PlainSpan(lost="texts of which the source does not tell whose they are")
    elif kind in ("tool_execution", "subagent", "mcp_tool"):
        says = _tool(span)
    else:
        says = PlainSpan()
    says.framework = "claude-agent-sdk"
    return says


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Tell a conversation span that waits for background agents of the one before."""
    launched = any(_LAUNCHED in str(span.attributes.get(_TOOL + "output", "")) for span in before)
    prompts = {_prompt(before), _prompt(spans)}
    return launched and len(prompts) == 1 and None not in prompts


def _prompt(spans: list[Span]) -> str | None:
    prompts = (text(span.attributes.get("claude_agent.prompt")) for span in spans if claims(span))
    return next((prompt for prompt in prompts if prompt is not None), None)


def _tool(span: Span) -> ToolSpan:
    attributes = span.attributes
    says = ToolSpan(
        name=text(attributes.get(_TOOL + "name")) or span.name.rpartition(".")[2],
        call=text(attributes.get(_TOOL + "use_id")),
        arguments=shown(attributes.get(_TOOL + "input")),
        result=content(first(attributes, _TOOL + "output", _SUB + "result")),
        failed=attributes.get(_TOOL + "is_error") is True,
    )
    says.error = text(attributes.get(_TOOL + "error_message")) if says.failed else None
    asked = says.arguments if isinstance(says.arguments, dict) else {}
    target = text(first(attributes, _SUB + "type")) or text(asked.get("subagent_type"))
    if says.name in _DISPATCH or target is not None:
        says.mode, says.target = "delegate", target or _DEFAULT
        # The answer of a sub-agent stands in the object that its call returns.
        made = says.result.data if says.result is not None else None
        if isinstance(made, dict) and made.get("status") == _LAUNCHED:
            says.launched = True
        elif isinstance(made, dict) and "content" in made:
            says.result = answer_content(None, made)
        prompt = text(attributes.get(_SUB + "prompt"))
        if not asked and prompt is not None:
            says.arguments = {"prompt": prompt}
    return says


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Put calls below the one dispatch during which they were made, where there is just one."""
    tools = [
        (node, says) for node in nodes if claims(node.span) and type(says := node.says) is ToolSpan
    ]
    at_work = Overlaps(node for node, says in tools if says.mode == "delegate")
    launched = min((node.ended for node, says in tools if says.launched), default=inf)
    for node, says in tools:
        if node.parent is None or type(node.parent.says) is not AgentSpan:
            continue
        around = [
            other
            for other in at_work.around(node)
            if other is not node and other.started <= node.started and node.ended <= other.ended
        ]
        # From the start of a background agent on, its calls and those of the main agent lie side by
        # side. Assigning them by time would be a guess.
        if not around and launched <= node.started:
            lost = "calls of which the source does not tell whose they are"
            node.says = as_plain(says, lost)
        # Two sub-agents at work at once: a call within both times may be either one's, so it stays
        # where it is. If one lies within the other, the inner one is at work.
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
