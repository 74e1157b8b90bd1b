"""traceAI's spans of the Claude Agent SDK: flat, as written, and nested, as documented.

Flat: all calls and texts are below the conversation, including those of sub-agents. Only the time
shows whose they are, and token counts are 0. Nested: each sub-agent has a span with its tools,
tokens and cost, and its texts and calls are below it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from math import inf

import msgspec

from baton.model import Content, Usage
from baton.model.views import sum_usage, token_count
from baton.readers.claude.wire import answer_content
from baton.readers.otlp.attribute_values import (
    amount,
    content,
    first,
    plain_name,
    shown,
    text,
    usage_of,
)
from baton.readers.otlp.messages import Call, Message
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    MessageSpan,
    Node,
    Overlaps,
    PlainSpan,
    Reading,
    ToolSpan,
    as_plain,
    node_of,
)
from baton.readers.tool_definitions import tool_names

from .dialect import Dialect, with_attribute

KIND = "claude_agent.span_kind"
_TOOL = "claude_agent.tool."
_SUB = "claude_agent.subagent."
_SAID = "claude_agent.message.content"
_COST = "claude_agent.cost.total_usd"
_USED = "gen_ai.usage."
_STATED_PARENT = "claude_agent.parent_tool_use_id"
# The same tool of the Claude Agent SDK, before and after it was renamed.
_DISPATCH = frozenset({"Agent", "Task"})
# The sub-agent that Claude Code starts if the call names none.
_DEFAULT = "general-purpose"
_LAUNCHED = "async_launched"
# What a text shows in place of each call: `[Tool: Read]`, on a line of its own.
_CALL = re.compile(r"^\[Tool: ([^\]\n]+)\]$", re.MULTILINE)
# Seconds between the turns of one answer: 0.0002 in recordings, where a request takes at least
# 0.07, even to a scripted model. A call may begin some milliseconds before its turn is written.
_TOGETHER = 0.005
_NO_OWNER = "calls whose agent the source does not record"

claims = with_attribute(KIND)


def _kind(span: Span) -> str:
    """Return the kind of a span in lower case; some documents have it in capitals."""
    return str(span.attributes.get(KIND, "")).lower()


def read(span: Span) -> Reading:
    """Read one span."""
    attributes = span.attributes
    kind = _kind(span)
    says: Reading
    if kind == "conversation":
        says = AgentSpan(
            heard=shown(attributes.get("claude_agent.prompt")),
            spoken=attributes.get("output"),
            model=text(attributes.get("claude_agent.model")),
            instructions=attributes.get("claude_agent.system_prompt"),
        )
    elif kind == "assistant_turn" and _SAID in attributes:
        says = PlainSpan(lost="texts whose agent the source does not record")
    elif kind in ("tool_execution", "subagent", "mcp_tool"):
        says = _tool(span)
    else:
        says = PlainSpan()
    says.framework = "claude-agent-sdk"
    return says


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Return whether a conversation span waits for background agents of the previous one."""
    launched = any(_LAUNCHED in str(span.attributes.get(_TOOL + "output", "")) for span in before)
    prompts = {_prompt(before), _prompt(spans)}
    return launched and len(prompts) == 1 and None not in prompts


def _prompt(spans: list[Span]) -> str | None:
    prompts = (text(span.attributes.get("claude_agent.prompt")) for span in spans if claims(span))
    return next((prompt for prompt in prompts if prompt is not None), None)


def _tool(span: Span) -> ToolSpan:
    attributes = span.attributes
    kind = _kind(span)
    # The span of a sub-agent has the name of its type, and its tool is always the same.
    named = "Agent" if kind == "subagent" else span.name.partition(".")[2]
    says = ToolSpan(
        name=text(attributes.get(_TOOL + "name")) or named or span.name,
        call=text(attributes.get(_TOOL + "use_id")),
        arguments=shown(attributes.get(_TOOL + "input")),
        result=content(first(attributes, _TOOL + "output", _SUB + "result")),
        failed=attributes.get(_TOOL + "is_error") is True,
    )
    server = text(attributes.get("claude_agent.mcp.server_name"))
    if server is not None and not (says.name or "").startswith("mcp__"):
        says.name = f"mcp__{server}__{says.name}"
    says.error = text(attributes.get(_TOOL + "error_message")) if says.failed else None
    asked = says.arguments if isinstance(says.arguments, dict) else {}
    target = text(first(attributes, _SUB + "type")) or text(asked.get("subagent_type"))
    if says.name in _DISPATCH or target is not None:
        says.mode, says.target = "delegate", target or _DEFAULT
        says.allowed = tool_names(attributes.get(_SUB + "tools"))
        says.description = text(attributes.get(_SUB + "description"))
        # The answer of a sub-agent is in the object that its call returns.
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
    """Find the agent of each call and text: by its parent, else by time."""
    own = [node for node in nodes if claims(node.span)]
    dispatches = [node for node in own if type(s := node.says) is ToolSpan and s.mode == "delegate"]
    turns = [node for node in own if _kind(node.span) == "assistant_turn"]
    nested = any(_below_dispatch(node) for node in own)
    if not nested:
        _resume(own)
        _place_by_time(own, turns)
    own_turns = not dispatches or any(_below_dispatch(node) for node in turns)
    for node in own:
        if type(node.says) is AgentSpan:
            node.says.totals = _tokens(node, turns if own_turns else [])
    if own_turns:
        for node in turns:
            node.says = _said(node)
        for node in own:
            if type(node.says) is AgentSpan and any(_speaks(child) for child in node.children):
                # Its turns have all of its texts; the last one is its answer.
                node.says.output = _last_text(node) or content(node.span.attributes.get("output"))
                node.says.spoken = list
                node.says.model = node.says.model or _model(node)
    if nested:
        for node in dispatches:
            _employ(node)
    if nested or not dispatches:
        _spend(own, dispatches)
    return []


def _resume(own: list[Node]) -> None:
    """Record which conversation spans continue after an agent in the background has answered.

    They have the prompt of the previous span, in which the agent was launched.
    """
    launched: set[str] = set()
    for node in sorted(own, key=lambda node: node.started):
        prompt = _prompt([node.span])
        if type(node.says) is AgentSpan and prompt is not None:
            node.says.resumes = prompt in launched
            if any(type(s := call.says) is ToolSpan and s.launched for call in node.children):
                launched.add(prompt)


def _below_dispatch(node: Node) -> bool:
    says = node.parent.says if node.parent is not None else None
    return type(says) is ToolSpan and says.mode == "delegate"


def _speaks(node: Node) -> bool:
    return type(node.says) is MessageSpan


def _said(node: Node) -> Reading:
    """Read the text of a turn, and the calls that it names.

    A call that the runtime refused occurs only in this text.
    """
    said = node.span.attributes.get(_SAID)
    if not isinstance(said, str):
        return node.says
    message = Message(
        role="assistant",
        content=content(_CALL.sub("", said).strip() or None),
        calls=[Call(name=name) for name in _CALL.findall(said)],
    )
    return MessageSpan(spoken=partial(_one, message), framework=node.says.framework)


def _one(message: Message) -> list[Message]:
    return [message]


def _last_text(node: Node) -> Content | None:
    turns = [child.says for child in node.children if type(child.says) is MessageSpan]
    return turns[-1].spoken_messages()[-1].content if turns else None


def _employ(node: Node) -> None:
    """Insert the agent of a dispatch below it, with its usage and its steps."""
    says, attributes = node.says, node.span.attributes
    if type(says) is not ToolSpan:
        return
    totals = _tokens(node, node.children)
    cost = amount(attributes.get(_COST))
    if totals is not None and cost is not None:
        totals.cost_usd, totals.cost_from = cost, "source"
    if totals is None and not node.children:
        return
    speaks = any(_speaks(child) for child in node.children)
    agent = AgentSpan(
        name=says.target,
        framework=says.framework,
        output=None if says.failed or says.launched else says.result,
        spoken=list if speaks else None,
        model=text(attributes.get("claude_agent.model")) or _model(node),
        totals=totals,
    )
    agent.input = content((says.arguments or {}).get("prompt"))
    span = msgspec.structs.replace(node.span, span_id=f"{node.span.span_id}/agent", attributes={})
    below = node_of(span, agent, node)
    below.children, node.children = node.children, [below]
    for child in below.children:
        child.parent = below


def _tokens(node: Node, turns: Iterable[Node]) -> Usage | None:
    """Return the tokens of an agent: from its span, else from its turns among ``turns``.

    A count of 0 means nothing: traceAI writes it if it did not find the tokens.
    """
    counted = usage_of(node.span.attributes, _USED)
    if counted is not None and token_count(counted):
        return counted
    each = [
        usage_of(turn.span.attributes, _USED)
        for turn in turns
        if turn.parent is node and _kind(turn.span) == "assistant_turn"
    ]
    known = [usage for usage in each if usage is not None and token_count(usage)]
    total = sum_usage(known) if known else None
    if total is not None:
        total.complete = len(known) == len(each)
    return total


def _spend(own: list[Node], dispatches: list[Node]) -> None:
    """Set the main agent's own cost: the cost of the session without that of sub-agents.

    The span of a sub-agent has its own cost, without the sub-agents that it started. The cost of
    the session grows from turn to turn.
    """
    for node in own:
        says, total = node.says, amount(node.span.attributes.get(_COST))
        if type(says) is not AgentSpan or total is None:
            continue
        costs = [amount(sub.span.attributes.get(_COST)) for sub in dispatches]
        if None not in costs and sum(filter(None, costs)) <= total:
            own_cost = round(total - sum(filter(None, costs)), 10)
            says.totals = says.totals or Usage(complete=False)
            says.totals.cost_usd, says.totals.cost_from = own_cost, "source"
            says.session_cost = total


def _model(node: Node) -> str | None:
    models = (text(child.span.attributes.get("claude_agent.model")) for child in node.children)
    return next(filter(None, models), None)


def _place_by_time(own: list[Node], turns: list[Node]) -> None:
    """Move calls below the dispatch during which they were made, if there is only one."""
    tools = [(node, says) for node in own if type(says := node.says) is ToolSpan]
    at_work = Overlaps(node for node, says in tools if says.mode == "delegate")
    launched = min((node.ended for node, says in tools if says.launched), default=inf)
    by_call = {says.call: node for node, says in tools if says.call is not None}
    answers = _Answers(turns, tools)
    for node, says in tools:
        if node.parent is None or type(node.parent.says) is not AgentSpan:
            continue
        stated = by_call.get(text(node.span.attributes.get(_STATED_PARENT)) or "")
        around = [stated] if stated is not None and stated is not node else [
            other
            for other in at_work.around(node)
            if other is not node
            and other.started <= node.started
            and node.ended <= other.ended
            and _may_call(other, node, turns)
        ]  # fmt: skip
        # After a background agent has started, its calls and those of the main agent are siblings.
        # Assigning them by time would be a guess. The same applies if two sub-agents work at the
        # same time, unless one is nested in the other: then the inner one is at work.
        unsure = len(around) > 1 and not _nested(around)
        if stated is None and says.mode != "delegate" and not unsure:
            beside = [answers.made_with(other, node, says.name or "") for other in around]
            around = [o for o, known in zip(around, beside, strict=True) if known is not True]
            unsure = None in beside
        if unsure or (not around and launched <= node.started):
            node.says = as_plain(says, _NO_OWNER)
        if len(around) == 1 or (around and _nested(around)):
            inner = max(around, key=lambda other: other.started)
            node.parent.children.remove(node)
            node.parent = inner
            inner.children.append(node)


def _may_call(other: Node, node: Node, turns: list[Node]) -> bool:
    """Return whether the agent of a dispatch may have made a call during its time.

    A dispatch within the time of another one is nested in it, or was issued together with it and
    ended first. It is nested only if a model spoke between the two starts, because an agent speaks
    before it calls anything. Two of the same type were issued together, because agents do not call
    themselves.
    """
    outer, inner = other.says, node.says
    if type(outer) is not ToolSpan or type(inner) is not ToolSpan or inner.mode != "delegate":
        return True
    spoke = any(other.started < turn.started <= node.started for turn in turns)
    return spoke and outer.target != inner.target


class _Answers:
    """Recognises calls of the agent that made a dispatch, made while its sub-agent was at work.

    Claude runs the calls of one answer in parallel, so a `Read` issued with `Agent` happens during
    the time of the sub-agent. Each block of an answer has a separate turn that shows its call
    (`[Tool: Read]`), with nothing between these turns. Before a turn of the sub-agent there is a
    request.
    """

    def __init__(self, turns: list[Node], tools: list[tuple[Node, ToolSpan]]) -> None:
        self._turns = sorted(turns, key=lambda turn: turn.started)
        self._starts = [turn.started for turn in self._turns]
        said = [turn.span.attributes.get(_SAID) for turn in self._turns]
        self._shown = [
            [plain_name(name) for name in _CALL.findall(each)] if isinstance(each, str) else []
            for each in said
        ]
        self._places: dict[str, list[int]] = {}
        for place, names in enumerate(self._shown):
            for name in names:
                self._places.setdefault(name, []).append(place)
        self._dispatching = sorted(
            {place for name in _DISPATCH for place in self._places.get(plain_name(name), ())}
        )
        self._begun: dict[str, list[float]] = {}
        for node, says in sorted(tools, key=lambda tool: tool[0].started):
            self._begun.setdefault(plain_name(says.name or ""), []).append(node.started)
        follows = [later.started - turn.ended <= _TOGETHER for turn, later in pairwise(self._turns)]
        self._firsts = [place for place in range(len(said)) if not (place and follows[place - 1])]

    def made_with(self, dispatch: Node, node: Node, name: str) -> bool | None:
        """Return whether a call was issued together with a dispatch; ``None`` if unknown."""
        spoken = bisect_right(self._starts, dispatch.started + _TOGETHER)
        place = bisect_left(self._dispatching, spoken) - 1
        if place < 0:
            return False  # it is unknown who spoke
        # The turns of the answer that made the dispatch, and the first one after it.
        ends = bisect_right(self._firsts, self._dispatching[place])
        first = self._firsts[ends - 1]
        after = self._firsts[ends] if ends < len(self._firsts) else len(self._turns)
        if after == len(self._turns) or self._starts[after] > node.started + _TOGETHER:
            return True  # the sub-agent has not spoken yet, so it cannot have called anything
        name = plain_name(name)
        issued = sum(shown.count(name) for shown in self._shown[first:after])
        if not issued:
            return False
        begun = self._begun.get(name, [])
        earlier = bisect_left(begun, self._starts[first] - _TOGETHER)
        places = self._places[name]
        later = bisect_left(places, after)
        shown_at = self._starts[places[later]] if later < len(places) else inf
        if shown_at > node.started + _TOGETHER:
            return True if bisect_left(begun, node.started) - earlier < issued else None
        return False if bisect_left(begun, shown_at - _TOGETHER) - earlier >= issued else None


def _nested(around: list[Node]) -> bool:
    """Return whether each dispatch is inside the one before; otherwise they ran in parallel."""
    ordered = sorted(around, key=lambda node: node.started)
    return all(
        inner.ended <= outer.ended and inner.parent is outer for outer, inner in pairwise(ordered)
    )


DIALECT = Dialect(
    name="traceai",
    rank=20,
    claims=claims,
    read=read,
    resolve=resolve,
    goes_on=goes_on,
    conversations=("claude_agent.session_id",),
)
