"""The steps of a run: what its model requests said and called, and the tools that ran."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from baton.model import Content, Said, Step, ToolCall

from .dialects.handover import by_name
from .messages import Answer, Call, Message
from .readings import AgentSpan, HandoffSpan, MessageSpan, Mode, ModelSpan, Node, ToolSpan
from .runs import RunSpans
from .values import name_key, same_name

_REFUSED = (
    "Tool execution was not approved.",
    "The tool call was denied.",
    "Error: Tool call invocation was rejected by user.",
    "This tool call is rejected.",
    "User rejected the tool call for `",
)
"""What frameworks have a model told when a person has said no to its call."""
_ASKED = ("This tool call requires confirmation, please approve or reject.",)
"""The same while nobody has decided."""


class Action(msgspec.Struct, eq=False):
    """A tool call of a run, or a hand-off without one.

    ``call`` is what its model wrote, ``node`` the span of the tool that ran and ``tool`` what it
    says, ``handoff`` the span of a hand-off, ``answer`` what the model was told later. ``number``
    counts the actions of a run. ``batch`` numbers the answer with the call: calls of one answer of
    a model were issued together.
    """

    step: ToolCall | None = None
    call: Call | None = None
    node: Node | None = None
    tool: ToolSpan | None = None
    handoff_node: Node | None = None
    handoff: HandoffSpan | None = None
    answer: Answer | None = None
    number: int = 0
    batch: int | None = None
    mode: Mode | None = None
    target: str | None = None

    @property
    def arguments(self) -> Any:
        """What it was given, from the span or, if that has no object, from the model."""
        ran = self.tool.arguments if self.tool is not None else None
        written = self.call.arguments if self.call is not None else None
        return written if ran is None or (isinstance(written, dict) and ran != written) else ran

    @property
    def came_to_nothing(self) -> bool:
        """Whether a model's call was carried out, and neither gave anything back nor failed."""
        ran = self.tool
        if ran is None or self.call is None or ran.arguments is None:
            return False
        return ran.result is None and not ran.failed

    @property
    def failed(self) -> bool:
        """Whether it is recorded as failed."""
        answer = self.answer
        if answer is not None and answer.failed and answer.at is None:
            return True
        return self.tool is not None and self.tool.failed

    @property
    def late(self) -> Answer | None:
        """The answer that came after the call had been answered, of what it launched."""
        return self.answer if self.answer is not None and self.answer.at is not None else None

    @property
    def result(self) -> Content | None:
        """What came back, from the span or from what the model was told."""
        if self.tool is not None and self.tool.result is not None:
            return self.tool.result
        if self.answer is None or self.answer.at is not None:
            return None
        return self.answer.result

    @property
    def error(self) -> str | None:
        """What is said of a failure."""
        if not self.failed:
            return None
        own = self.tool.error if self.tool is not None else None
        result = self.result
        return own or (result.plain() if result is not None else None)

    @property
    def started(self) -> float | None:
        """When it was carried out, or else written; seconds since the epoch."""
        for node in (self.node, self.handoff_node):
            if node is not None and node.span.started is not None:
                return node.span.started
        return self.step.at if self.step is not None else None

    @property
    def ended(self) -> float | None:
        """When it came back; ``None`` if only the model's words tell of it."""
        node = self.node or self.handoff_node
        return node.span.ended if node is not None else None


_Queue = deque[Action] | list[Action]


class _Actions:
    """The actions of a run, found by id and by name.

    What is looked up leaves its list for good when it is settled, so that none is long.
    """

    def __init__(self) -> None:
        self.all: list[Action] = []
        self._written: set[str] = set()
        # Few actions have one id, and an empty queue takes ten times the room of a list.
        self._by_id: defaultdict[str, list[Action]] = defaultdict(list)
        self._to_run: defaultdict[str, list[Action]] = defaultdict(list)
        self._by_name: defaultdict[str, deque[Action]] = defaultdict(deque)
        self._without_id: defaultdict[str, deque[Action]] = defaultdict(deque)
        self._alike: defaultdict[str, list[Action]] = defaultdict(list)
        self._put_off: dict[str, list[Action]] = {}

    def add(self, action: Action) -> None:
        """Add an action; its call, when a model wrote one, is known by now."""
        action.number = len(self.all)
        self.all.append(action)
        call = action.call
        if call is None:
            return
        self._by_name[call.name].append(action)
        self._alike[name_key(call.name)].append(action)
        if call.id is None:
            self._without_id[call.name].append(action)
        else:
            self._written.add(call.id)
            self._by_id[call.id].append(action)
            self._to_run[call.id].append(action)

    def is_written(self, id_: str) -> bool:
        """Tell whether a model wrote a call of this id."""
        return id_ in self._written

    def run(self, action: Action, node: Node, tool: ToolSpan) -> None:
        """Record that the span of a tool carries an action out."""
        again = action.node is not None
        action.node, action.tool = node, tool
        if action.call is not None and not again:
            key = name_key(action.call.name)
            self._alike[key].remove(action)
            if action.came_to_nothing:
                self._put_off.setdefault(key, []).append(action)
        if tool.call is not None:
            self._by_id[tool.call].append(action)

    def put_off(self, tool: ToolSpan) -> Action | None:
        """Return the call that this span carries out again, as it came to nothing the first time.

        So it is when a person has to allow the call: its first span ends with the question.
        """
        waiting = self._put_off.get(name_key(tool.name or ""), [])
        for action in waiting:
            first = action.tool
            if first is not None and (first.call, first.arguments) == (tool.call, tool.arguments):
                waiting.remove(action)
                return action
        return None

    def asked_for(self, answer: Answer) -> Action | None:
        """Return the first action without an answer that this one is for: by id, else by name."""
        name = answer.name or ""
        if answer.id is None:
            return _first(self._by_name.get(name), _is_answered)
        by_id = _first(self._by_id.get(answer.id), _is_answered)
        by_name = _first(self._without_id.get(name), _is_answered_or_has_id)
        if by_id is None or by_name is None:
            return by_id or by_name
        return min(by_id, by_name, key=lambda action: action.number)

    def carried_out(self, tool: ToolSpan) -> Action | None:
        """Return the call that the span of a tool carries out: by id, else by name and arguments.

        ADK gives calls ids of its own where the model gave some too, so an unknown id proves
        nothing; but a call that has an id and other arguments is another one.
        """
        if tool.call is not None:
            action = _first(self._to_run.get(tool.call), _is_run)
            if action is not None:
                return action
        alike = self._alike.get(name_key(tool.name or ""))
        if not alike:
            return None
        for action in alike:
            if action.call is not None and action.call.arguments == tool.arguments:
                return action
        if tool.call is None or tool.arguments is None:
            return alike[0]
        return next((a for a in alike if a.call is not None and a.call.id is None), None)


def _first(actions: _Queue | None, done: Callable[[Action], bool]) -> Action | None:
    """Return the first that is left to do; those that are done leave the list."""
    while actions and done(actions[0]):
        del actions[0]
    return actions[0] if actions else None


def _is_answered(action: Action) -> bool:
    return action.answer is not None


def _is_answered_or_has_id(action: Action) -> bool:
    return action.answer is not None or (action.tool is not None and bool(action.tool.call))


def _is_run(action: Action) -> bool:
    return action.node is not None


def write_steps(run: RunSpans, nodes: list[Node], new_id: Callable[..., str]) -> list[Action]:
    """Write what the run said and called into its steps; return its actions in order.

    Where no model request tells what it answered, the agent's own account does: before the tools
    that ran when it holds the calls of them, else as the last word.
    """
    writer = _Writer(run, new_id)
    models = [(node, says) for node in nodes if type(says := node.says) is ModelSpan]
    accounts: list[tuple[Node, AgentSpan]] = []
    if all(says.spoken is None for _, says in models):
        accounts = [(n, says) for n in run.nodes if type(says := n.says) is AgentSpan]
    has_calls = any(message.calls for _, says in accounts for message in says.spoken_messages())
    if has_calls:
        for node, account in accounts:
            writer.speaks(node, account)
    for node in nodes:
        says = node.says
        if type(says) is ModelSpan:
            writer.speaks(node, says)
        elif type(says) is ToolSpan:
            writer.runs(node, says)
        elif type(says) is HandoffSpan:
            writer.hands_off(node, says)
        elif type(says) is MessageSpan and says.heard is not None:
            writer.is_told(says.heard_messages())
        elif type(says) is MessageSpan:
            writer.speaks(node, says)
    if not has_calls:
        for node, account in accounts:
            writer.speaks(node, account)
    for agent in run.agents:
        writer.answered(agent.late)
    actions = writer.actions.all
    if models and any(action.came_to_nothing for action in actions):
        writer.is_told(models[-1][1].heard_messages())
    for _, model in reversed(models):
        if all(action.node is not None or action.answer is not None for action in actions):
            break
        writer.is_told(model.heard_messages())
    run.run.steps = writer.steps
    return writer.settled()


class _Writer:
    def __init__(self, run: RunSpans, new_id: Callable[..., str]) -> None:
        self.steps: list[Step] = []
        self.actions = _Actions()
        self._run = run
        self._new_id = new_id
        self._batch = 0

    def speaks(self, node: Node, says: AgentSpan | ModelSpan | MessageSpan) -> None:
        """Take what a model, or an agent as a whole, answered."""
        self._batch += 1
        is_account = type(says) is AgentSpan
        at = node.span.ended
        for message in says.spoken_messages():
            self._batch += is_account
            if message.role == "assistant":
                if message.thought is not None:
                    content = Content(text=message.thought)
                    said = Said(id=self._new_id("said"), content=content, thought=True, at=at)
                    self.steps.append(said)
                if message.content:
                    said = Said(id=self._new_id("said"), content=message.content, at=at)
                    self.steps.append(said)
            for call in message.calls:
                if call.id is None or not self.actions.is_written(call.id):
                    step = ToolCall(id="", name=call.name, at=at)
                    self.steps.append(step)
                    self.actions.add(Action(step=step, call=call, batch=self._batch))
            self.answered(message.answers)

    def is_told(self, messages: list[Message]) -> None:
        """Take the answers to calls out of what a model was given."""
        for message in messages:
            self.answered(message.answers)

    def answered(self, answers: list[Answer]) -> None:
        """Give each answer to the call that it is for."""
        for answer in answers:
            action = self.actions.asked_for(answer)
            if action is not None:
                action.answer = answer

    def runs(self, node: Node, tool: ToolSpan) -> None:
        """Take the span of a tool, for a call that a model wrote or by itself."""
        action = self.actions.carried_out(tool) or self.actions.put_off(tool)
        if action is None:
            action = Action(step=ToolCall(id="", name=tool.name or ""))
            self.steps.append(action.step)  # type: ignore[arg-type]
            self.actions.add(action)
        self.actions.run(action, node, tool)

    def hands_off(self, node: Node, handoff: HandoffSpan) -> None:
        """Take the span of a hand-off, for the call that made it or by itself."""
        action = self._handed_over(handoff)
        if action is None:
            action = Action()
            self.actions.add(action)
        action.handoff_node, action.handoff = node, handoff

    def settled(self) -> list[Action]:
        """Fill the steps of all actions from what is known of them."""
        run = self._run
        offered: set[str] = set()
        for node in (*run.owned, *run.nodes):
            says = node.says
            if (type(says) is ModelSpan or type(says) is AgentSpan) and says.offered:
                offered.update(says.offered)
        for action in self.actions.all:
            _settle(action)
            step = action.step
            if step is None:
                continue
            if offered and step.name not in offered:
                # A call of a tool that nothing offered, which did not run: the runtime refused it.
                as_written = action.mode is None and action.call is not None and action.failed
                if as_written or self._not_run(action):
                    answer = action.result
                    step.status, step.refused_by = "refused", "runtime"
                    step.error = step.error or (answer.plain() if answer is not None else None)
                    step.result = None
            wanted = action.call.id if action.call is not None else None
            if not wanted and action.node is not None and action.tool is not None:
                wanted = action.tool.call or action.node.span.span_id
            step.id = self._new_id("call", wanted)
        return self._without_answers()

    def _not_run(self, action: Action) -> bool:
        """Tell a call that no tool or hand-off carried out though the run continued from it."""
        if action.node is not None or action.handoff is not None:
            return False
        if action.answer is not None:
            return not action.answer.hosted
        return action.mode is None and action.batch is not None and action.batch < self._batch

    def _without_answers(self) -> list[Action]:
        """Make what it is of a call by which the model gave its structured answer.

        Pydantic AI has a model call ``final_result`` with it, which no tool runs: the call is
        known by its name, or by arguments that are the agent's output.
        """
        if all(a.step is None or a.step.status != "unanswered" for a in self.actions.all):
            return self.actions.all
        tools = frozenset(name for model in self._run.models for name in model.answers_by)
        outputs = [agent.output.data for agent in self._run.agents if agent.output is not None]
        places = {id(step): place for place, step in enumerate(self.steps)}
        kept: list[Action] = []
        for action in self.actions.all:
            step = action.step
            if step is None or step.status != "unanswered" or action.mode is not None:
                kept.append(action)
            elif step.name in tools or (step.arguments and step.arguments in outputs):
                said = Said(id=step.id, content=Content(data=step.arguments), at=step.at)
                self.steps[places[id(step)]] = said
            else:
                kept.append(action)
        return kept

    def _handed_over(self, handoff: HandoffSpan) -> Action | None:
        """Find the call that a hand-off span carries out: by its target, else the one left."""
        left = [a for a in self.actions.all if a.handoff is None and a.step is not None]
        fitting = [action for action in left if _may_carry_out(handoff, action)]
        if fitting:
            # One that an earlier answer asked for came to nothing, or no model would have been
            # asked again; of several in one answer the first one is carried out.
            last = max(action.batch or 0 for action in fitting)
            return next(action for action in fitting if (action.batch or 0) == last)
        for action in left:
            if handoff.result is not None and action.result == handoff.result:
                return action
        spare = [action for action in left if action.node is None]
        return spare[-1] if spare else None


def _may_carry_out(handoff: HandoffSpan, action: Action) -> bool:
    mode, target = _aim(action)
    aimed = handoff.target is None or target is None or same_name(target, handoff.target)
    return mode == "transfer" and aimed


def _aim(action: Action) -> tuple[Mode | None, str | None]:
    """Tell what an action hands over, and to whom."""
    if action.handoff is not None and action.handoff.target is not None:
        return "transfer", action.handoff.target
    tool = action.tool
    mode, target = (tool.mode, tool.target) if tool is not None else (None, None)
    if action.call is not None and (mode is None or target is None):
        by_call = by_name(action.call.name, action.call.arguments)
        mode, target = mode or by_call[0], target or by_call[1]
    return mode or ("transfer" if action.handoff is not None else None), target


def _settle(action: Action) -> None:
    action.mode, action.target = _aim(action)
    step, tool = action.step, action.tool
    if step is None:
        return
    if tool is not None and tool.refused_by is not None:
        step.status, step.refused_by = "refused", tool.refused_by
    failed, result = action.failed, action.result
    step.arguments = action.arguments
    step.at = action.started
    ended = action.ended
    step.ended = ended if step.at is None or ended is None or ended >= step.at else None
    step.error = action.error if failed else None
    step.result = None if failed or step.refused_by is not None else result
    if step.refused_by is None and failed:
        step.status = "failed"
    elif step.refused_by is None and action.answer is None:
        node = action.node or action.handoff_node
        still_running = action.node is not None and action.node.span.ended is None
        if node is None or still_running:
            step.status = "unanswered"
    answer = result.text if result is not None else None
    decision = _decision(step.error or answer or "")
    if decision is not None:
        step.status, step.error, step.result = decision, step.error or answer, None
        step.refused_by = "user" if decision == "refused" else None
    if step.arguments is None:
        step.unknown = ["arguments"]
    unread = tool is None or (tool.result is None and tool.arguments is None)
    if step.result is None and unread and not failed and step.status == "ok":
        step.unknown.append("result")


def _decision(answer: str) -> Literal["refused", "waiting"] | None:
    """Tell what a person decided on a call by the answer to it; ``None`` when nobody was asked."""
    if answer.startswith(_REFUSED):
        return "refused"
    return "waiting" if answer.startswith(_ASKED) else None
