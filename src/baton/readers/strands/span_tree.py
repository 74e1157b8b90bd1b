"""Read the spans of one invocation as a tree: their agents, with names, statements and calls."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from baton.formats.strands import AGENT, MODEL, TOOL, Item, Span, SpanTrace, seconds
from baton.model import Content, Said, Step, ToolCall
from baton.readers.builder import TraceBuilder


class Starter(NamedTuple):
    """The context of an agent: the call that it works for, and the agent that made the call."""

    tool: Span | None
    agent: Span | None


class Tree:
    """The spans of a trace by their start; ``unread`` are those without a place in the tree."""

    def __init__(self, trace: SpanTrace) -> None:
        spans = sorted(trace.spans, key=lambda span: seconds(span.span_info.start_time))
        self._by_id = {s.span_info.span_id: s for s in spans if s.span_info.span_id is not None}
        self._around: dict[int, Span | None] = {}
        self._owners: dict[int, Span | None] = {}
        self._tools: dict[int, list[Span]] = {}
        self._models: dict[int, list[Span]] = {}
        self.agents = [span for span in spans if span.span_type == AGENT]
        self.unread: list[Span] = []
        self._open()
        for span in spans:
            kept = self._models if span.span_type == MODEL else self._tools
            if span.span_type == MODEL or _is_call(span):
                self._own(span, kept)
            elif span.span_type != AGENT:
                self.unread.append(span)

    def tools(self, agent: Span | None) -> list[Span]:
        """Return the tool calls of an agent; use ``None`` if there are no agents at all."""
        return self._tools.get(id(agent), [])

    def models(self, agent: Span | None) -> list[Span]:
        """Return the model calls of an agent; use ``None`` if there are no agents at all."""
        return self._models.get(id(agent), [])

    def starter(self, agent: Span) -> Starter:
        """Return what an agent works for; empty if the program started the agent."""
        around = self._nearest(agent)
        if around is None or around.span_type == AGENT:
            return Starter(None, around)
        owner = self._owner(around)
        return Starter(around, owner if owner is not agent else None)

    def siblings(self) -> Iterator[tuple[Starter, list[Span]]]:
        """Yield the agents that work for the same call, agent or program, in start order."""
        groups: dict[tuple[int, int], tuple[Starter, list[Span]]] = {}
        for agent in self.agents:
            starter = self.starter(agent)
            key = id(starter.tool), id(starter.agent)
            groups.setdefault(key, (starter, []))[1].append(agent)
        yield from groups.values()

    def _open(self) -> None:
        """Make an agent that no other one started the first, even if clocks disagree."""
        if not self.agents:
            return
        first = self.agents[0]
        opener = next((a for a in self.agents if self.starter(a).agent is None), first)
        self._around[id(opener)] = None  # parents in a cycle start nothing
        self.agents = [opener, *(agent for agent in self.agents if agent is not opener)]

    def _own(self, span: Span, kept: dict[int, list[Span]]) -> None:
        owner = self._owner(span)
        if owner is None and self.agents:
            self.unread.append(span)
        else:
            kept.setdefault(id(owner), []).append(span)

    def _owner(self, span: Span) -> Span | None:
        """Return the running agent in a span; a lone agent is running in all spans."""
        path: list[Span] = []
        seen: set[int] = set()
        at: Span | None = span
        owner: Span | None = None
        while at is not None and id(at) not in seen:
            if id(at) in self._owners:
                owner = self._owners[id(at)]
                break
            seen.add(id(at))
            path.append(at)
            stated = self._by_id.get(at.agent_span_id) if at.agent_span_id else None
            at = stated if stated is not None and stated.span_type == AGENT else self._nearest(at)
            if at is not None and at.span_type == AGENT:
                owner = at
                break
        if owner is None and len(self.agents) == 1:
            owner = self.agents[0]
        for each in path:
            self._owners[id(each)] = owner
        return owner

    def _nearest(self, span: Span) -> Span | None:
        """Return the enclosing agent or tool call of a span, cached for all spans on the way."""
        path: list[Span] = []
        seen: set[int] = set()
        at: Span | None = span
        nearest: Span | None = None
        while at is not None and id(at) not in seen:
            if id(at) in self._around:
                nearest = self._around[id(at)]
                break
            seen.add(id(at))
            path.append(at)
            id_ = at.span_info.parent_span_id
            at = self._by_id.get(id_) if id_ is not None else None
            if at is not None and id(at) not in seen and (at.span_type == AGENT or _is_call(at)):
                nearest = at
                break
        for each in path:
            self._around[id(each)] = nearest
        return nearest


def times(span: Span) -> tuple[float, float | None]:
    """Return start and end in seconds since the epoch; no end if the clock went backwards."""
    start, end = seconds(span.span_info.start_time), seconds(span.span_info.end_time)
    return start, end if end >= start else None


def _is_call(span: Span) -> bool:
    return span.span_type == TOOL and span.tool_call is not None


class Call(NamedTuple):
    """A tool call, its span, and the model answer that requested it."""

    step: ToolCall
    span: Span | None
    asked_in: Span | None


class Calls:
    """The statements and calls of one agent, from its model calls and tool calls.

    ``steps`` are ordered by time; ``has_models`` states that model calls record their answers.
    """

    def __init__(self, tree: Tree, agent: Span | None, builder: TraceBuilder) -> None:
        self.all: list[Call] = []
        self._new_id = builder.new_id
        self._timed: list[tuple[float, int, Step]] = []
        self._by_span: dict[int, ToolCall] = {}
        models, tools = tree.models(agent), tree.tools(agent)
        self.has_models = bool(models)
        self._answers = _answers(models)
        open_calls = {tool.tool_call.tool_call_id: tool for tool in tools if tool.tool_call}
        taken: set[int] = set()
        for model in models:
            for item in self._say(model):
                span = open_calls.pop(item.tool_call_id, None) if item.tool_call_id else None
                taken.add(id(span))
                self._call(span, item, model)
        for tool in tools:
            if id(tool) not in taken:
                self._call(tool, None, None)
        self.steps = [step for _, _, step in sorted(self._timed, key=lambda entry: entry[:2])]

    def made_in(self, span: Span | None) -> ToolCall | None:
        """Return the call that was made in a span."""
        return self._by_span.get(id(span))

    def _add(self, time: float, step: Step) -> None:
        self._timed.append((time, len(self._timed), step))

    def _say(self, model: Span) -> Iterator[Item]:
        """Process the new part of a model call, its last message; yield its calls."""
        last = model.messages[-1] if model.messages else None
        if last is None or last.role != "assistant":
            return
        at = seconds(model.span_info.end_time)
        for item in last.content:
            if item.name is not None:
                yield item
            elif item.text:
                said = Said(id=self._new_id("say"), content=Content(text=item.text), at=at)
                self._add(at, said)

    def _call(self, span: Span | None, item: Item | None, asked_in: Span | None) -> None:
        made = span.tool_call if span is not None else None
        asked = made or item
        if asked is None:
            return
        step = ToolCall(
            id=self._new_id("call", asked.tool_call_id),
            name=asked.name or "",
            arguments=asked.arguments,
        )
        time = seconds(asked_in.span_info.end_time) if asked_in is not None else 0.0
        if span is not None:
            step.at, step.ended = times(span)
            time = step.at
        step.unknown += [name for name in ("at", "ended") if getattr(step, name) is None]
        answer = self._answers.get(asked.tool_call_id or "")
        if span is not None and span.tool_result is not None:
            _settle(step, span.tool_result.content, span.tool_result.error)
        elif answer is not None:
            _settle(step, answer.content, answer.error)
        else:
            step.status = "unanswered"
        if span is not None:
            self._by_span[id(span)] = step
        self.all.append(Call(step, span, asked_in))
        self._add(time, step)


def _answers(models: list[Span]) -> dict[str, Item]:
    """Return the results of calls that models received, by the ids of the calls."""
    return {
        item.tool_call_id: item
        for model in models
        for message in model.messages
        for item in message.content
        if item.content_type == "tool_result" and item.tool_call_id is not None
    }


def _settle(step: ToolCall, content: str | None, error: str | None) -> None:
    """Record an answer; if the error is the word `error`, the content is the error message."""
    if error is None:
        step.status = "ok"
        step.result = Content(text=content) if content is not None else None
    else:
        step.status = "failed"
        step.error = content if error == "error" and content else error


def answer_content(agent: Span) -> Content | None:
    """Return the answer of an agent in a session, without the line break at the end."""
    return Content(text=agent.agent_response.removesuffix("\n")) if agent.agent_response else None


def blocks_content(blocks: Any) -> Content | None:
    """Return the texts of content blocks, one per line as Strands prints them; else ``None``."""
    if not isinstance(blocks, list):
        return None
    texts = [text for block in blocks for text in _texts(block)]
    return Content(text="\n".join(texts)) if texts else None


def _texts(block: Any) -> list[str]:
    if not isinstance(block, dict):
        return []
    if isinstance(block.get("text"), str):
        return [block["text"]]
    cited = block.get("citationsContent")
    inner = cited.get("content") if isinstance(cited, dict) else None
    return [text for each in inner for text in _texts(each)] if isinstance(inner, list) else []


HAND_OFF = "handoff_to_agent"
# A swarm gives each agent one long text with these headings. The user's request and the sender's
# message are extracted from it.
_START, _MESSAGE, _TASK = "Context:\n", "Handoff Message: ", "User Request: "
_BEFORE = "\n\nPrevious agents who worked on this: "
_NEXT = (
    _BEFORE,
    "\n\nShared knowledge from previous agents:\n",
    "\n\nOther agents available for collaboration:\n",
    "\n\nYou have access to swarm coordination tools",
)


class SwarmPrompt(NamedTuple):
    """The parts of a swarm's text."""

    task: str
    message: str | None
    before: list[str]


def swarm_prompt(prompt: str | None) -> SwarmPrompt | None:
    """Split a swarm's prompt into its parts; ``None`` for any other prompt."""
    if prompt is None or not prompt.startswith(_START):
        return None
    rest, message = prompt.removeprefix(_START), None
    if rest.startswith(_MESSAGE):
        message, _, rest = rest.removeprefix(_MESSAGE).partition(f"\n\n{_TASK}")
    elif rest.startswith(_TASK):
        rest = rest.removeprefix(_TASK)
    else:
        return None
    ends = [at for mark in _NEXT if (at := rest.find(mark)) >= 0]
    if not ends:
        return None
    task, rest = rest[: min(ends)], rest[min(ends) :]
    before = rest.removeprefix(_BEFORE).partition("\n")[0] if rest.startswith(_BEFORE) else ""
    return SwarmPrompt(task, message, before.split(" → ") if before else [])


class Handed(NamedTuple):
    """The contents of a call to the hand-off tool."""

    to: str
    message: str | None
    context: dict[str, Any]


def handed(arguments: Any) -> Handed | None:
    """Read the arguments of a hand-off; ``None`` if they name no agent."""
    if not isinstance(arguments, dict) or not isinstance(arguments.get("agent_name"), str):
        return None
    message, context = arguments.get("message"), arguments.get("context")
    return Handed(
        arguments["agent_name"],
        message if isinstance(message, str) else None,
        context if isinstance(context, dict) else {},
    )


# A model that knows other frameworks may call tools with their names: `transfer_to_billing`.
_NAMED = re.compile(r"(?:transfer|hand_?off)_to_(?!agent\b)(\w+)", re.IGNORECASE)
# Strands' answer to a call of a tool that the agent does not have.
_NO_TOOL = "Unknown tool: "


def hand_over(step: ToolCall) -> Handed | None:
    """Return what a call hands over; ``None`` for any other call.

    A call of a non-existent tool for a hand-over to one agent counts as a refused hand-over.
    """
    if step.name == HAND_OFF:
        return handed(step.arguments)
    named = _NAMED.fullmatch(step.name)
    if named is None or not (step.error or "").startswith(_NO_TOOL):
        return None
    return handed({"message": None, **(step.arguments or {}), "agent_name": named.group(1)})


class Names:
    """Finds the name of each agent, from metadata that some tools add or from its swarm."""

    def __init__(self, tree: Tree) -> None:
        self._names: dict[int, str] = {}
        for agent in tree.agents:
            for span in (agent, *tree.models(agent)):
                name = (span.metadata or {}).get("agent_name")
                if isinstance(name, str) and name:
                    self._names.setdefault(id(agent), name)
        self.arrivals: dict[int, Span] = {}
        """The hand-off calls that were seen to arrive, by the agents they started."""
        for _, agents in tree.siblings():
            self._read_swarm(tree, agents)

    def of(self, agent: Span | None) -> str | None:
        """Return the name of an agent; ``None`` if it is unknown."""
        return self._names.get(id(agent))

    def _read_swarm(self, tree: Tree, agents: list[Span]) -> None:
        """Follow the hand-offs: the text for a receiver repeats the message and the path."""
        for before, agent in itertools.pairwise(agents):
            prompt = swarm_prompt(agent.user_prompt)
            call = _arrived(tree, before, prompt)
            if call is None or call.tool_call is None or prompt is None:
                continue
            self.arrivals[id(agent)] = call
            asked = handed(call.tool_call.arguments)
            if asked is not None:
                self._names.setdefault(id(agent), asked.to)
        for number, agent in enumerate(agents):
            prompt = swarm_prompt(agent.user_prompt)
            if prompt is not None and len(prompt.before) == number:
                for earlier, name in zip(agents, prompt.before, strict=False):
                    self._names.setdefault(id(earlier), name)


def _arrived(tree: Tree, before: Span, prompt: SwarmPrompt | None) -> Span | None:
    """Return an agent's last call whose hand-over matches the prompt of the next agent."""
    if prompt is None:
        return None
    for call in reversed(tree.tools(before)):
        if call.tool_call is None or call.tool_call.name != HAND_OFF:
            continue
        if call.tool_result is not None and call.tool_result.error is not None:
            continue
        asked = handed(call.tool_call.arguments)
        if asked is not None and asked.message == prompt.message:
            return call
    return None
