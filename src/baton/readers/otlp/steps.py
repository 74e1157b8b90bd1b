"""The steps of a run: what its model requests said and called, and the tools that ran."""

from __future__ import annotations

from collections.abc import Callable

from baton.model import Content, Said, Step, ToolCall

from .builder import Act, Ledger
from .delegates import decision
from .dialects.handover import by_name
from .messages import Answer, Call, Message
from .node import Mode, Node
from .runs import Work
from .values import same_name


def write_steps(work: Work, nodes: list[Node], new_id: Callable[..., str]) -> list[Act]:
    """Write what the run said and called into its steps; return its acts in order.

    Where no model request tells what it answered, the agent's own account does: before the tools
    that ran when it holds the calls of them, else as the last word.
    """
    writer = _Writer(work, new_id)
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
    for node in models[-1:] if any(act.came_to_nothing for act in writer.acts) else ():
        writer.is_told(node.heard_messages())
    for node in reversed(models):
        if all(act.node is not None or act.answer is not None for act in writer.acts):
            break
        writer.is_told(node.heard_messages())
    work.run.steps = writer.steps
    return writer.settled()


class _Writer:
    def __init__(self, work: Work, new_id: Callable[..., str]) -> None:
        self.steps: list[Step] = []
        self._ledger = Ledger()
        self._work = work
        self._new_id = new_id
        self._batch = 0

    @property
    def acts(self) -> list[Act]:
        """What the run called and handed over, in order."""
        return self._ledger.acts

    def speaks(self, node: Node) -> None:
        """Take what a model, or an agent as a whole, answered."""
        self._batch += 1
        for message in node.spoken_messages():
            self._batch += node.kind == "agent"
            if message.role == "assistant":
                self._say(message, node)
            for call in message.calls:
                if call.id is None or not self._ledger.is_written(call.id):
                    self._call(call, node.span.ended)
            self.is_told([message])

    def is_told(self, messages: list[Message]) -> None:
        """Take the answers to calls out of what a model was given."""
        for message in messages:
            self.answered(message.answers)

    def answered(self, answers: list[Answer]) -> None:
        """Give each answer to the call that it is for."""
        for answer in answers:
            act = self._ledger.asked_for(answer)
            if act is not None:
                act.answer = answer

    def runs(self, node: Node) -> None:
        """Take the span of a tool or hand-off, for a call that a model wrote or by itself."""
        handoff = node.kind == "handoff"
        act = self._handed_over(node) if handoff else self._ledger.carried_out(node)
        if act is None and not handoff:
            act = self._ledger.put_off(node)
        if act is None:
            act = Act()
            if not handoff:
                act.step = ToolCall(id="", name=node.name or "")
                self.steps.append(act.step)
            self._ledger.add(act)
        if handoff:
            act.handoff = node
        else:
            self._ledger.run(act, node)

    def settled(self) -> list[Act]:
        """Fill the steps of all acts from what is known of them."""
        told = (*self._work.owned, *self._work.nodes)
        offered = {name for node in told for name in node.offered or ()}
        for act in self.acts:
            _settle(act)
            step = act.step
            alien = step is not None and offered and step.name not in offered
            if step is not None and alien and (self._not_run(act) or _failed_as_written(act)):
                _refuse(step, act.result)
            if act.step is not None:
                node = act.node
                wanted = act.call.id if act.call is not None else None
                wanted = wanted or (node.call or node.span.span_id if node is not None else None)
                act.step.id = self._new_id("call", wanted)
        return self._without_answers()

    def _not_run(self, act: Act) -> bool:
        """Tell a call that no tool or hand-off carried out though the run went on from it."""
        if act.node is not None or act.handoff is not None:
            return False
        if act.answer is not None:
            return not act.answer.hosted
        return act.mode is None and act.batch is not None and act.batch < self._batch

    def _without_answers(self) -> list[Act]:
        """Make what it is of a call by which the model gave its structured answer."""
        tools = frozenset(name for node in self._work.owned for name in node.answers_by)
        outputs = [node.output.data for node in self._work.nodes if node.output is not None]
        places = {id(step): place for place, step in enumerate(self.steps)}
        kept: list[Act] = []
        for act in self.acts:
            step = act.step
            if step is None or step.status != "unanswered" or act.mode is not None:
                kept.append(act)
            elif step.name in tools or (step.arguments and step.arguments in outputs):
                said = Said(id=step.id, content=Content(data=step.arguments), at=step.at)
                self.steps[places[id(step)]] = said
            else:
                kept.append(act)
        return kept

    def _say(self, message: Message, node: Node) -> None:
        at = node.span.ended
        if message.thought is not None:
            content = Content(text=message.thought)
            step = Said(id=self._new_id("said"), content=content, thought=True, at=at)
            self.steps.append(step)
        if message.content:
            self.steps.append(Said(id=self._new_id("said"), content=message.content, at=at))

    def _call(self, call: Call, at: float | None) -> None:
        step = ToolCall(id="", name=call.name, at=at)
        self.steps.append(step)
        self._ledger.add(Act(step=step, call=call, batch=self._batch))

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


def _aim(act: Act) -> tuple[Mode | None, str | None]:
    """Tell what an act hands over, and to whom."""
    if act.handoff is not None and act.handoff.target is not None:
        return act.handoff.mode, act.handoff.target
    mode, target = (act.node.mode, act.node.target) if act.node is not None else (None, None)
    if act.call is not None and (mode is None or target is None):
        by_call = by_name(act.call.name, act.call.arguments)
        mode, target = mode or by_call[0], target or by_call[1]
    return mode or (act.handoff.mode if act.handoff is not None else None), target


def _failed_as_written(act: Act) -> bool:
    """Tell a call of the model that failed, and hands nothing over."""
    return act.mode is None and act.call is not None and act.failed


def _refuse(step: ToolCall, answer: Content | None) -> None:
    step.status, step.refused_by = "refused", "runtime"
    step.error = step.error or (answer.plain() if answer is not None else None)
    step.result = None


def _decided(act: Act, step: ToolCall) -> None:
    """Note what a person decided on the call."""
    answer = act.result.text if act.result is not None else None
    told = decision(act.error or answer or "")
    if told is not None:
        step.status, step.error, step.result = told, act.error or answer, None
        step.refused_by = "user" if told == "refused" else None


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
    _decided(act, step)
    ran = act.node
    unread = ran is None or (ran.result is None and ran.arguments is None)
    step.unknown = ["arguments"] if step.arguments is None else []
    if step.result is None and unread and not act.failed and step.status == "ok":
        step.unknown.append("result")
