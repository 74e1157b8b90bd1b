"""The steps of a run: what its model requests said and called, and the tools that ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baton.model import Content, Said, Step, ToolCall
from baton.readers.ids import Ids

from .dialects.handover import by_name
from .messages import Answer, Call, Message
from .names import same_name
from .node import Mode, Node
from .runs import Work


@dataclass(slots=True, eq=False)
class Act:
    """A tool call of a run, or a hand-off without one.

    ``call`` is what its model wrote, ``node`` the span of the tool that ran, ``handoff`` that of
    a hand-off, ``answer`` what the model was told later. ``batch`` numbers the answer with the
    call: calls of one answer of a model were issued together.
    """

    step: ToolCall | None = None
    call: Call | None = None
    node: Node | None = None
    handoff: Node | None = None
    answer: Answer | None = None
    batch: int | None = None
    mode: Mode | None = None
    target: str | None = None

    @property
    def arguments(self) -> Any:
        """What it was given, from the span or, where that has no object, from the model."""
        ran = self.node.arguments if self.node is not None else None
        written = self.call.arguments if self.call is not None else None
        return written if ran is None or (isinstance(written, dict) and ran != written) else ran

    @property
    def failed(self) -> bool:
        """Whether it is recorded as failed."""
        told = self.answer is not None and self.answer.failed and self.answer.at is None
        return told or (self.node is not None and self.node.failed)

    @property
    def late(self) -> Answer | None:
        """The answer that came after the call had been answered, of what it launched."""
        told = self.answer
        return told if told is not None and told.at is not None else None

    @property
    def result(self) -> Content | None:
        """What came back, from the span or from what the model was told."""
        if self.node is not None and self.node.result is not None:
            return self.node.result
        if self.late is not None:
            return None
        return self.answer.result if self.answer is not None else None

    @property
    def error(self) -> str | None:
        """What is said of a failure."""
        if not self.failed:
            return None
        own = self.node.error if self.node is not None else None
        told = self.result.plain() if self.result is not None else None
        return own or told

    @property
    def started(self) -> float | None:
        """When it was carried out, or else written; seconds since the epoch."""
        for node in (self.node, self.handoff):
            if node is not None and node.span.started is not None:
                return node.span.started
        return self.step.at if self.step is not None else None

    @property
    def ended(self) -> float | None:
        """When it came back; ``None`` where only the model's words tell of it."""
        node = self.node or self.handoff
        return node.span.ended if node is not None else None


def write_steps(work: Work, nodes: list[Node], ids: Ids) -> list[Act]:
    """Write what the run said and called into its steps; return its acts in order.

    Where no model request tells what it answered, the agent's own account does: before the tools
    that ran when it holds the calls of them, else as the last word.
    """
    writer = _Writer(work, ids)
    models = [node for node in nodes if node.kind == "model"]
    whole = [] if any(node.spoken is not None for node in models) else work.nodes
    tells = any(message.calls for node in whole for message in node.spoken_messages())
    for node in whole if tells else ():
        writer.speaks(node)
    for node in nodes:
        if node.kind in ("model", "words"):
            writer.speaks(node)
        elif node.kind == "answers":
            writer.is_told(node.heard_messages())
        else:
            writer.runs(node)
    for node in () if tells else whole:
        writer.speaks(node)
    for node in work.nodes:
        writer.answered(node.told)
    for node in reversed(models):
        if all(act.node is not None or act.answer is not None for act in writer.acts):
            break
        writer.is_told(node.heard_messages())
    work.run.steps = writer.steps
    return writer.settled()


class _Writer:
    def __init__(self, work: Work, ids: Ids) -> None:
        self.steps: list[Step] = []
        self.acts: list[Act] = []
        self._work = work
        self._ids = ids
        self._batch = 0

    def speaks(self, node: Node) -> None:
        """Take what a model, or an agent as a whole, answered."""
        self._batch += 1
        for message in node.spoken_messages():
            self._batch += node.kind == "agent"
            if message.role == "assistant":
                self._say(message, node)
            for call in message.calls:
                if call.id is None or all(
                    a.call is None or a.call.id != call.id for a in self.acts
                ):
                    self._call(call, node.span.ended)
            self.is_told([message])

    def is_told(self, messages: list[Message]) -> None:
        """Take the answers to calls out of what a model was given."""
        for message in messages:
            self.answered(message.answers)

    def answered(self, answers: list[Answer]) -> None:
        """Give each answer to the call that it is for."""
        for answer in answers:
            for act in self.acts:
                if act.answer is None and _fits(answer, act):
                    act.answer = answer
                    break

    def runs(self, node: Node) -> None:
        """Take the span of a tool or hand-off, for a call that a model wrote or by itself."""
        handoff = node.kind == "handoff"
        act = self._handed_over(node) if handoff else self._called(node)
        if act is None:
            act = Act()
            if not handoff:
                act.step = ToolCall(id="", name=node.name or "")
                self.steps.append(act.step)
            self.acts.append(act)
        if handoff:
            act.handoff = node
        else:
            act.node = node

    def settled(self) -> list[Act]:
        """Fill the steps of all acts from what is known of them."""
        told = (*self._work.owned, *self._work.nodes)
        offered = {name for node in told for name in node.offered or ()}
        for act in self.acts:
            _settle(act)
            if _not_run(act) and offered and act.step is not None and act.step.name not in offered:
                _refuse(act.step, act.result)
            if act.step is not None:
                node = act.node
                wanted = act.call.id if act.call is not None else None
                wanted = wanted or (node.call or node.span.span_id if node is not None else None)
                act.step.id = self._ids.new("call", wanted)
        return self._without_answers()

    def _without_answers(self) -> list[Act]:
        """Make what it is of a call by which the model gave its structured answer."""
        tools = frozenset(name for node in self._work.owned for name in node.answers_by)
        outputs = [node.output.data for node in self._work.nodes if node.output is not None]
        kept: list[Act] = []
        for act in self.acts:
            step = act.step
            if step is None or step.status != "unanswered" or act.mode is not None:
                kept.append(act)
            elif step.name in tools or (step.arguments and step.arguments in outputs):
                said = Said(id=step.id, content=Content(data=step.arguments), at=step.at)
                self.steps[self.steps.index(step)] = said
            else:
                kept.append(act)
        return kept

    def _say(self, message: Message, node: Node) -> None:
        at = node.span.ended
        if message.thought is not None:
            content = Content(text=message.thought)
            step = Said(id=self._ids.new("said"), content=content, thought=True, at=at)
            self.steps.append(step)
        if message.content:
            self.steps.append(Said(id=self._ids.new("said"), content=message.content, at=at))

    def _call(self, call: Call, at: float | None) -> None:
        step = ToolCall(id="", name=call.name, at=at)
        self.steps.append(step)
        self.acts.append(Act(step=step, call=call, batch=self._batch))

    def _called(self, node: Node) -> Act | None:
        """Find the call that a tool span carries out: by id, else by name and arguments.

        ADK gives calls ids of its own where the model gave some too.
        """
        left = [(act, act.call) for act in self.acts if act.node is None and act.call is not None]
        if node.call is not None:
            for act, call in left:
                if call.id == node.call:
                    return act
        alike = [(act, call) for act, call in left if same_name(call.name, node.name)]
        for act, call in alike:
            if call.arguments == node.arguments:
                return act
        loose = [act for act, call in alike if None in (call.id, node.call, node.arguments)]
        return loose[0] if loose else None

    def _handed_over(self, node: Node) -> Act | None:
        """Find the call that a hand-off span carries out: by its target, else the one left."""
        left = [act for act in self.acts if act.handoff is None and act.step is not None]
        for act in left:
            mode, target = _aim(act)
            aimed = node.target is None or target is None or same_name(target, node.target)
            if mode == "transfer" and aimed:
                return act
        for act in left:
            if node.result is not None and act.result == node.result:
                return act
        spare = [act for act in left if act.node is None]
        return spare[-1] if spare else None


def _fits(answer: Answer, act: Act) -> bool:
    ids = [act.call.id if act.call is not None else None]
    ids.append(act.node.call if act.node is not None else None)
    if answer.id is not None and any(ids):
        return answer.id in ids
    return act.call is not None and answer.name is not None and answer.name == act.call.name


def _aim(act: Act) -> tuple[Mode | None, str | None]:
    """Tell what an act hands over, and to whom."""
    if act.handoff is not None and act.handoff.target is not None:
        return act.handoff.mode, act.handoff.target
    mode, target = (act.node.mode, act.node.target) if act.node is not None else (None, None)
    if act.call is not None and (mode is None or target is None):
        by_call = by_name(act.call.name, act.call.arguments)
        mode, target = mode or by_call[0], target or by_call[1]
    return mode or (act.handoff.mode if act.handoff is not None else None), target


def _not_run(act: Act) -> bool:
    """Tell a call that was answered though no tool or hand-off ran."""
    return act.node is None and act.handoff is None and act.answer is not None


def _refuse(step: ToolCall, answer: Content | None) -> None:
    step.status, step.refused_by = "refused", "runtime"
    step.error = step.error or (answer.plain() if answer is not None else None)
    step.result = None


def _settle(act: Act) -> None:
    act.mode, act.target = _aim(act)
    step = act.step
    if step is None:
        return
    if act.node is not None and act.node.refused_by is not None:
        step.status, step.refused_by = "refused", act.node.refused_by
    step.arguments = act.arguments
    step.at = act.started
    ended = act.ended
    step.ended = ended if step.at is None or ended is None or ended >= step.at else None
    step.error = act.error
    step.result = None if act.failed else act.result
    if step.refused_by is not None:
        step.result = None
    elif act.failed:
        step.status = "failed"
    elif (act.answer is None and (act.node or act.handoff) is None) or (
        act.answer is None and act.node is not None and act.node.span.ended is None
    ):
        step.status = "unanswered"
    ran = act.node
    unread = ran is None or (ran.result is None and ran.arguments is None)
    step.unknown = ["arguments"] if step.arguments is None else []
    if step.result is None and unread and not act.failed and step.status == "ok":
        step.unknown.append("result")
