"""What an agent of a session said and called, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from baton.formats.strands import Item, Span, seconds
from baton.model import Content, GotBack, HandedOff, Said, Step, ToolCall
from baton.readers.ids import Ids

from .spans import Tree, times


class Call(NamedTuple):
    """A tool call, the span of it, and the model's answer that asked for it."""

    step: ToolCall
    span: Span | None
    asked_in: Span | None


class Steps:
    """The steps of one agent, built from its model calls and tool calls."""

    def __init__(self, tree: Tree, agent: Span | None, ids: Ids) -> None:
        self.calls: list[Call] = []
        self._ids = ids
        self._steps: list[tuple[float, float, Step]] = []
        self._by_span: dict[int, ToolCall] = {}
        self._places: dict[str, tuple[float, float]] = {}
        models, tools = tree.models(agent), tree.tools(agent)
        self.told = bool(models)
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

    def ordered(self) -> list[Step]:
        """Return the steps by their time."""
        return [step for _, _, step in sorted(self._steps, key=lambda entry: entry[:2])]

    def call_in(self, span: Span | None) -> ToolCall | None:
        """Return the call that was made in a span."""
        return self._by_span.get(id(span))

    def hand_off(
        self, call: ToolCall | None, dispatch: str, at: float | None, back: float | None
    ) -> None:
        """Add the steps of a dispatch; ``back`` is when its answer came, if one did."""
        handed = HandedOff(id=self._ids.new("hand"), dispatch=dispatch, at=at)
        time, order = self._places.get(call.id if call else "", (at or 0.0, len(self._steps)))
        self._steps.append((time, order + 0.5, handed))
        if back is not None:
            self._add(back, GotBack(id=self._ids.new("back"), dispatch=dispatch, at=back))

    def _add(self, time: float, step: Step) -> None:
        self._places[step.id] = time, len(self._steps)
        self._steps.append((time, len(self._steps), step))

    def _say(self, model: Span) -> Iterator[Item]:
        """Take what is new in a model call, the last of its messages; yield its calls."""
        last = model.messages[-1] if model.messages else None
        if last is None or last.role != "assistant":
            return
        at = seconds(model.span_info.end_time)
        for item in last.content:
            if item.name is not None:
                yield item
            elif item.text:
                said = Said(id=self._ids.new("say"), content=Content(text=item.text), at=at)
                self._add(at, said)

    def _call(self, span: Span | None, item: Item | None, asked_in: Span | None) -> None:
        made = span.tool_call if span is not None else None
        asked = made or item
        if asked is None:
            return
        step = ToolCall(
            id=self._ids.new("call", asked.tool_call_id),
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
        self.calls.append(Call(step, span, asked_in))
        self._add(time, step)


def _answers(models: list[Span]) -> dict[str, Item]:
    """Return what models were told of their calls, by the calls' ids."""
    return {
        item.tool_call_id: item
        for model in models
        for message in model.messages
        for item in message.content
        if item.content_type == "tool_result" and item.tool_call_id is not None
    }


def _settle(step: ToolCall, content: str | None, error: str | None) -> None:
    """Write down an answer; the word `error` says that the content is the error."""
    if error is None:
        step.status = "ok"
        step.result = Content(text=content) if content is not None else None
    else:
        step.status = "failed"
        step.error = content if error == "error" and content else error
