"""Make the steps of a run: the answers and calls of its model requests, and the tools that ran."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from itertools import islice, pairwise, takewhile
from math import inf, nextafter
from typing import Any, Literal

import msgspec

from baton.model import Content, Said, Step, ToolCall

from .attribute_values import HIDDEN, name_key, same_name
from .dialects import DIALECTS, framework_of
from .handover_calls import by_name
from .messages import Answer, Call, Message
from .runs import RunSpans
from .span_content import AgentSpan, HandoffSpan, MessageSpan, Mode, ModelSpan, Node, ToolSpan
from .tree import MILLISECOND, in_milliseconds

_REFUSED = tuple(text for dialect in DIALECTS for text in dialect.refusals)
_FAILED = tuple(text for dialect in DIALECTS for text in dialect.failures)
_ASKED = tuple(text for dialect in DIALECTS for text in dialect.questions)
# Calls can be nested, so without a limit the time would grow with the square of their number.
_MOST_BELOW = 50
"""The maximum number of spans below a call among which an agent is looked for."""


def is_pending(answer: str) -> bool:
    """Return whether the text that answers a call only says that a person has to decide first."""
    return answer.startswith(_ASKED)


class Action(msgspec.Struct, eq=False):
    """A tool call of a run, or a hand-off without one.

    ``call`` is the call that the model wrote, ``node`` is the span of the tool that ran and
    ``tool`` its reading, ``handoff`` is the span of a hand-off, and ``answer`` is the result that
    the model received later. ``earlier`` are spans of attempts that ended with a question to a
    person, which the span ``node`` repeats. ``number`` counts the actions of a run. ``batch``
    numbers the model answer with the call: calls in one answer were issued together.
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
    earlier: list[Node] = msgspec.field(default_factory=list)

    @property
    def arguments(self) -> Any:
        """The arguments, from the span or, if the span has no object, from the model."""
        ran = self.tool.arguments if self.tool is not None else None
        written = self.call.arguments if self.call is not None else None
        return written if ran is None or (isinstance(written, dict) and ran != written) else ran

    @property
    def came_to_nothing(self) -> bool:
        """Whether a model's call was carried out, but neither returned anything nor failed.

        A tool that a person has to allow first returns nothing, or in Google ADK this as an error.
        """
        ran = self.tool
        if ran is None or self.call is None or ran.arguments is None:
            return False
        if ran.result is None and not ran.failed:
            return True
        return is_pending(ran.error or (ran.result.plain() if ran.result is not None else ""))

    @property
    def failed(self) -> bool:
        """Whether it is recorded as failed."""
        answer = self.answer
        if answer is not None and answer.failed and answer.at is None:
            return True
        if self.tool is not None and self.tool.failed:
            return True
        result = self.result
        return result is not None and result.text is not None and result.text.endswith(_FAILED)

    @property
    def late(self) -> Answer | None:
        """The answer of work that the call launched, which came after the call was answered."""
        return self.answer if self.answer is not None and self.answer.at is not None else None

    @property
    def result(self) -> Content | None:
        """The result, from the span or from the model's later input."""
        if self.tool is not None and self.tool.result is not None:
            return self.tool.result
        if self.answer is None or self.answer.at is not None:
            return None
        return self.answer.result

    @property
    def error(self) -> str | None:
        """The error message, if the action failed."""
        if not self.failed:
            return None
        own = self.tool.error if self.tool is not None else None
        result = self.result
        return own or (result.plain() if result is not None else None)

    @property
    def started(self) -> float | None:
        """When it was carried out, or otherwise written; in seconds since the epoch."""
        for node in (*self.earlier, self.node, self.handoff_node):
            if node is not None and node.span.started is not None:
                return node.span.started
        return self.step.at if self.step is not None else None

    @property
    def ended(self) -> float | None:
        """When it returned; ``None`` if only the model's answer records it."""
        node = self.node or self.handoff_node
        return node.span.ended if node is not None else None


def _repeats(tool: ToolSpan, first: ToolSpan) -> bool:
    """Return whether the span of a tool repeats an attempt with the same arguments.

    LangChain's spans hold the id of a call only if the tool has answered.
    """
    same = first.call == tool.call or (first.waits and None in (first.call, tool.call))
    return same and first.arguments == tool.arguments


def _is_own_id(tool: ToolSpan) -> bool:
    """Return whether the framework itself gave a call its id, which is never given again.

    If the spans are without content, only this shows that a confirmed call is the one that waited.
    """
    own = framework_of(tool.framework).call_ids
    return own is not None and tool.call is not None and tool.call.startswith(own)


_Queue = deque[Action] | list[Action]


class _Actions:
    """The actions of a run, indexed by id and by name.

    An action is removed from its list when it is settled, so the lists stay short.
    """

    def __init__(self) -> None:
        self.all: list[Action] = []
        self._written: set[str] = set()
        # Few actions share an id, and an empty queue takes ten times the memory of a list.
        self._by_id: defaultdict[str, list[Action]] = defaultdict(list)
        self._to_run: defaultdict[str, list[Action]] = defaultdict(list)
        self._put_off: dict[str, list[Action]] = {}
        # Most sources give every call an id, so names are indexed when one is first looked up.
        self._names: _Names | None = None
        self._have_ids = True

    def add(self, action: Action) -> None:
        """Add an action. If a model wrote its call, the call is already known."""
        action.number = len(self.all)
        self.all.append(action)
        call = action.call
        if call is None:
            return
        if self._names is not None:
            self._names.add(action, call)
        if call.id is None:
            self._have_ids = False
        else:
            self._written.add(call.id)
            self._by_id[call.id].append(action)
            self._to_run[call.id].append(action)

    def is_written(self, id_: str) -> bool:
        """Return whether a model wrote a call with this id."""
        return id_ in self._written

    def run(self, action: Action, node: Node, tool: ToolSpan) -> None:
        """Record that the span of a tool carries out an action."""
        again = action.node is not None
        if action.node is not None:
            action.earlier.append(action.node)
        action.node, action.tool = node, tool
        if self._names is not None and action.call is not None and not again:
            self._names.ran(action, action.call)
        if not again and (action.came_to_nothing or _is_own_id(tool)):
            self._put_off.setdefault(name_key(tool.name or ""), []).append(action)
        if tool.call is not None:
            self._by_id[tool.call].append(action)

    def any_put_off(self) -> bool:
        """Return whether a call may have come to nothing: without it, no action has."""
        return bool(self._put_off)

    def put_off(self, tool: ToolSpan) -> Action | None:
        """Return the call that this span repeats because the first attempt had no effect.

        This happens if a person has to allow the call: its first span ends with the question.
        """
        waiting = self._put_off.get(name_key(tool.name or ""), [])
        for action in waiting:
            if action.tool is not None and _repeats(tool, action.tool):
                waiting.remove(action)
                return action
        return None

    def asked_for(self, answer: Answer) -> Action | None:
        """Return the first open action that an answer is for: by id, else by name."""
        if answer.id is None:
            return _first(self._named().called.get(answer.name or ""), _is_answered)
        by_id = _first(self._by_id.get(answer.id), _is_answered)
        if self._have_ids:
            return by_id
        by_name = _first(self._named().without_id.get(answer.name or ""), _is_answered_or_has_id)
        if by_id is None or by_name is None:
            return by_id or by_name
        return min(by_id, by_name, key=lambda action: action.number)

    def carried_out(self, tool: ToolSpan) -> Action | None:
        """Return the call that the span of a tool carries out: by id, else by name and arguments.

        ADK assigns its own ids even if the model already gave ids, so an unknown id proves nothing.
        But a call that has an id and different arguments is another call.
        """
        if tool.call is not None:
            action = _first(self._to_run.get(tool.call), _is_run)
            if action is not None:
                return action
        alike = self._named().to_run.get(name_key(tool.name or ""))
        if not alike:
            return None
        for action in alike:
            if action.call is not None and action.call.arguments == tool.arguments:
                return action
        if tool.call is None or tool.arguments is None:
            return alike[0]
        return next((a for a in alike if a.call is not None and a.call.id is None), None)

    def _named(self) -> _Names:
        if self._names is None:
            self._names = _Names()
            for action in self.all:
                if action.call is not None:
                    self._names.add(action, action.call)
        return self._names


class _Names:
    """The calls that models wrote, by name: ``called`` all of them, ``without_id`` those without.

    ``to_run`` are those without a span so far, by names that are spelt alike.
    """

    def __init__(self) -> None:
        self.called: defaultdict[str, deque[Action]] = defaultdict(deque)
        self.without_id: defaultdict[str, deque[Action]] = defaultdict(deque)
        self.to_run: defaultdict[str, list[Action]] = defaultdict(list)

    def add(self, action: Action, call: Call) -> None:
        """Add a call."""
        self.called[call.name].append(action)
        if call.id is None:
            self.without_id[call.name].append(action)
        if action.node is None:
            self.to_run[name_key(call.name)].append(action)

    def ran(self, action: Action, call: Call) -> None:
        """Remove a call from those that have not run."""
        self.to_run[name_key(call.name)].remove(action)


def _first(actions: _Queue | None, done: Callable[[Action], bool]) -> Action | None:
    """Return the first action that is not done, and remove the done ones from the list."""
    while actions and done(actions[0]):
        del actions[0]
    return actions[0] if actions else None


def _is_answered(action: Action) -> bool:
    return action.answer is not None


def _is_answered_or_has_id(action: Action) -> bool:
    return action.answer is not None or (action.tool is not None and bool(action.tool.call))


def _is_known(action: Action) -> bool:
    """Return whether the answer to a call is known, or may be by the span of the tool.

    Without content in that span, only the model's next input has it: older versions of Semantic
    Kernel export log records of models, and nothing like that of tools. The answer of an agent is
    known from its own span.
    """
    node, tool = action.node, action.tool
    if action.answer is not None or node is None or tool is None:
        return action.answer is not None or node is not None
    told = tool.arguments is not None or tool.result is not None or tool.failed
    return told or _ran_agent(node)


def _ran_agent(node: Node) -> bool:
    return any(type(below.says) is AgentSpan for below in islice(_below(node), _MOST_BELOW))


def _below(node: Node) -> Iterator[Node]:
    open_ = list(node.children)
    while open_:
        node = open_.pop()
        yield node
        open_ += node.children


def _is_run(action: Action) -> bool:
    return action.node is not None


def write_steps(run: RunSpans, nodes: list[Node], new_id: Callable[..., str]) -> list[Action]:
    """Write what the run said and called into its steps; return its actions in order.

    If no model request records its answer, the agent's own span supplies it. It comes before the
    tools that ran if it holds their calls; otherwise it is the last statement.
    """
    writer = _Writer(run, new_id)
    models = [(node, says) for node in nodes if type(says := node.says) is ModelSpan]
    for (_, says), (_, after) in pairwise(models):
        if says.spoken is None and not says.failed:
            _take_answer(says, after)
    accounts: list[tuple[Node, AgentSpan]] = []
    if not any(says.spoken_messages() for _, says in models):
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
    if models and writer.actions.any_put_off() and any(a.came_to_nothing for a in actions):
        writer.is_told(models[-1][1].heard_messages())
    for _, model in reversed(models):
        if all(map(_is_known, actions)):
            break
        writer.is_told(model.heard_messages())
    run.run.steps = writer.steps
    return writer.settled()


def _take_answer(says: ModelSpan, after: ModelSpan) -> None:
    """Take the answer of a request from the next request, which repeats the conversation so far.

    Traceloop records no answers of chat-completions models of OpenAI Agents.
    """
    # Each request repeats the earlier ones. Their messages are not kept, as they fill the memory.
    if isinstance(says.heard, str) and isinstance(after.heard, str):
        if len(after.heard) <= len(says.heard):
            return
    heard, then = says.read_heard(), after.read_heard()
    if heard and len(then) > len(heard) and then[: len(heard)] == heard:
        answer = list(takewhile(lambda message: message.role == "assistant", then[len(heard) :]))
        if answer:
            says.spoken, says._spoken = answer, answer


class _Writer:
    def __init__(self, run: RunSpans, new_id: Callable[..., str]) -> None:
        self.steps: list[Step] = []
        self.actions = _Actions()
        self._run = run
        self._new_id = new_id
        self._batch = 0
        self._ran = -inf

    def speaks(self, node: Node, says: AgentSpan | ModelSpan | MessageSpan) -> None:
        """Process the answer of a model, or of an agent as a whole."""
        self._batch += 1
        is_account = type(says) is AgentSpan
        at = self._answered_at(node)
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
                    batch = None if message.mixed else self._batch
                    self.actions.add(Action(step=step, call=call, batch=batch))
            self.answered(message.answers)

    def _answered_at(self, node: Node) -> float | None:
        """Return when a request or agent answered: after the tools that ran before it.

        JavaScript counts starts in whole milliseconds and ends in fractions of them: a request of
        .002 to .002083 can follow a tool that ended at .002184.
        """
        began, at = node.span.started, node.span.ended
        if at is None or began is None or at > self._ran or self._ran - began >= MILLISECOND:
            return at
        return nextafter(self._ran, inf) if in_milliseconds(began) else at

    def is_told(self, messages: list[Message]) -> None:
        """Process the answers to calls in a model's input."""
        for message in messages:
            self.answered(message.answers)

    def answered(self, answers: list[Answer]) -> None:
        """Assign each answer to its call."""
        for answer in answers:
            action = self.actions.asked_for(answer)
            if action is not None:
                action.answer = answer

    def runs(self, node: Node, tool: ToolSpan) -> None:
        """Process the span of a tool, for a call that a model wrote or as a call of its own."""
        action = self.actions.carried_out(tool) or self.actions.put_off(tool)
        if action is None:
            action = Action(step=ToolCall(id="", name=tool.name or ""))
            self.steps.append(action.step)  # type: ignore[arg-type]
            self.actions.add(action)
        self.actions.run(action, node, tool)
        self._ran = max(self._ran, node.span.ended or -inf)

    def hands_off(self, node: Node, handoff: HandoffSpan) -> None:
        """Process the span of a hand-off, for the call that made it or on its own."""
        action = self._handed_over(handoff)
        if action is None:
            action = Action()
            self.actions.add(action)
        action.handoff_node, action.handoff = node, handoff

    def settled(self) -> list[Action]:
        """Fill in the steps of all actions from the collected data."""
        run = self._run
        offered: set[str] = set()
        to_approve = {id_ for agent in run.agents for id_ in agent.to_approve}
        for node in (*run.owned, *run.nodes):
            says = node.says
            if (type(says) is ModelSpan or type(says) is AgentSpan) and says.offered:
                offered.update(says.offered)
        for action in self.actions.all:
            _settle(action)
            step = action.step
            if step is None:
                continue
            if action.call is not None and action.call.id in to_approve:
                self._rejected(action, step)
            if offered and step.name not in offered:
                # The call is of a tool that was not offered, and it did not run: it was refused.
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
        self._speak_before_calls()
        return self._without_answers()

    def _speak_before_calls(self) -> None:
        """Let no text come later than the calls that follow it.

        The span of a request can stay open while its tools run, as in Google ADK and Mastra.
        """
        called: float | None = None
        for step in reversed(self.steps):
            if type(step) is ToolCall:
                if step.at is not None and (called is None or step.at < called):
                    called = step.at
            elif type(step) is Said:
                if step.at is not None and called is not None and called < step.at:
                    step.at = called
                called = None

    def _rejected(self, action: Action, step: ToolCall) -> None:
        """Mark a call as refused that a person had to approve, and that was answered without a run.

        pydantic-ai answers with the text of the person, or of the program: "No refunds.".
        """
        if action.node is None and action.answer is not None and step.status == "ok":
            answer = action.result
            step.status, step.refused_by = "refused", "user"
            step.error, step.result = answer.plain() if answer is not None else None, None

    def _not_run(self, action: Action) -> bool:
        """Return whether no tool or hand-off carried out a call, although the run continued."""
        if action.node is not None or action.handoff is not None:
            return False
        if action.answer is not None:
            return not action.answer.hosted
        return action.mode is None and action.batch is not None and action.batch < self._batch

    def _without_answers(self) -> list[Action]:
        """Convert a call that holds the model's structured answer to an answer.

        With Pydantic AI, a model calls ``final_result`` with its answer, and no tool runs. The call
        is recognised by its name, or by arguments that equal the agent's output.
        """
        tools = frozenset(name for model in self._run.models for name in model.answers_by)
        if not tools and all(
            a.step is None or a.step.status != "unanswered" for a in self.actions.all
        ):
            return self.actions.all
        outputs = [agent.output.data for agent in self._run.agents if agent.output is not None]
        hidden: set[int] = set()
        places = {id(step): place for place, step in enumerate(self.steps)}
        kept: list[Action] = []
        for action in self.actions.all:
            step = action.step
            if step is None or not self._is_answer(action, step, tools, outputs):
                kept.append(action)
            elif step.arguments is None:
                hidden.add(id(step))
            else:
                said = Said(id=step.id, content=Content(data=step.arguments), at=step.at)
                self.steps[places[id(step)]] = said
        if hidden:
            self.steps[:] = [step for step in self.steps if id(step) not in hidden]
            self._run.run.unknown.append("steps.said")
        return kept

    def _is_answer(
        self, action: Action, step: ToolCall, tools: frozenset[str], outputs: list[Any]
    ) -> bool:
        if action.mode is not None or action.node is not None:
            return False
        if step.name in tools:  # answered only if the model is asked again, for a better answer
            return True
        return step.status == "unanswered" and bool(step.arguments and step.arguments in outputs)

    def _handed_over(self, handoff: HandoffSpan) -> Action | None:
        """Find the call that a hand-off span carries out: by target, else the only one left."""
        left = [a for a in self.actions.all if a.handoff is None and a.step is not None]
        fitting = [action for action in left if _may_carry_out(handoff, action)]
        if fitting:
            # A call in an earlier answer had no effect; otherwise the model would not have been
            # called again. Of several calls in one answer, the first one is carried out.
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
    """Return how an action passes work on, and to which agent."""
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
    written, step.at, ended = step.at, action.started, action.ended
    if written is not None and step.at is not None and 0 < written - step.at < MILLISECOND:
        if in_milliseconds(step.at):  # the clock of JavaScript: see `_answered_at`
            step.at, ended = written, ended if ended is None else max(written, ended)
    step.ended = ended if step.at is None or ended is None or ended >= step.at else None
    step.error = action.error if failed else None
    step.result = None if failed or step.refused_by is not None else result
    if failed and action.target is None and isinstance(step.arguments, dict):
        # `transfer_to_agent({})`, with an error as its answer: the call names no agent.
        action.mode = None if action.mode == "transfer" else action.mode
    if step.refused_by is None and failed:
        step.status = "failed"
    elif step.refused_by is None and action.answer is None:
        node = action.node or action.handoff_node
        still_running = action.node is not None and action.node.span.ended is None
        if node is None or still_running:
            step.status = "unanswered"
        elif tool is not None and tool.waits and result is None:
            step.status = "waiting"
        elif tool is not None and node is not None and not tool.tells_failure:
            # The outcome of an agent is known from its own span.
            step.status = "ok" if _ran_agent(node) else "unknown"
    answer = result.text if result is not None else None
    decision = _decision(step.error or answer or "")
    if action.answer is not None and action.answer.refused:
        decision = "refused"
    if decision is not None:
        step.status, step.error, step.result = decision, step.error or answer, None
        step.refused_by = "user" if decision == "refused" else None
    if step.arguments is None:
        step.unknown = ["arguments"]
    has_result = tool is not None and tool.arguments is not None and tool.tells_result
    unread = tool is None or (tool.result is None and not (has_result and _is_open(action.node)))
    if step.result is None and unread and not failed and step.status in ("ok", "unknown"):
        step.unknown.append("result")


def _is_open(node: Node | None) -> bool:
    """Return whether no value of a tool's span is hidden: a missing result means that none came."""
    values = node.span.attributes.values() if node is not None else ()
    return not any(type(value) is str and value in HIDDEN for value in values)


def _decision(answer: str) -> Literal["refused", "waiting"] | None:
    """Return a person's decision on a call, from its answer; ``None`` if no person was asked."""
    if answer.startswith(_REFUSED):
        return "refused"
    return "waiting" if is_pending(answer) else None
