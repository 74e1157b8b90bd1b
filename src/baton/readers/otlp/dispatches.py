"""Find how work passed between the runs of a turn, and what shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

import msgspec

from baton.model import AgentCard, Content, Dispatch, HandedOff, ToolCall, Turn
from baton.model.trace import DispatchKind, DispatchStatus
from baton.readers.builder import Timeline, TraceBuilder, allow_tools, not_before, without

from .attribute_values import name_key, parsed, plain_name, same_name
from .dialects import DIALECTS
from .handover_calls import asks_all, prompt_of, receiver_in
from .runs import RunSpans
from .span_content import AgentSpan, ModelSpan, Node, Overlaps, Timed, ToolSpan, WorkflowSpan
from .steps import Action
from .tree import in_milliseconds
from .wire.trace_store import conversation_of

# How frameworks answer a transfer that they do not carry out: "Error: transfer_to_king is not a
# valid tool", "Agent 'cashier' not found in swarm", "Unknown tool: transfer_to_billing". Answers of
# transfers that were carried out are "Transferred to billing" or `{"assistant": "billing"}`.
_REFUSAL = re.compile(
    r"(?i)^\W*(?:[a-z]\w*)?(?:error|exception|unknown|invalid|failed|denied|refused|ignor)"
    r"|\bnot (?:a valid|valid|found|exist|available|allowed|permitted|carried)|\bno such\b"
    r"|\b(?:cannot|could not|unable to|does not|do not)\b|\bignor(?:ed|ing)\b|\brejected\b"
)
# How a tool says that its agent failed: "Sorry, billing is unavailable", "The expert timed out". If
# an answer says neither this nor the error, another attempt may have given it (`_tells_failure`).
_FAILURE = re.compile(
    r"(?i)\b(?:fail|error|exception|crash|unavailable|sorry|unfortunate|went wrong|timed? ?out"
    r"|try again|gave up|is down|no (?:answer|response|reply|result)|(?:could|did|can)n['’]?t)"
)
_ERROR = 40
"""Number of characters of an error that an answer has to repeat: a tool may shorten it."""
# AutoGen's teams return control to the user by a hand-off to an agent of this name.
_PEOPLE = frozenset({"user", "human"})
"""Names by which a transfer gives control to a person."""
_TICK = 0.001
"""Number of seconds by which two clocks on one machine can appear to disagree."""
# If 200 nodes of a graph run in parallel and each leads to 200 others, there are 40,000 edges.
# Without a limit, memory and time would grow with the square of the number of runs.
_MOST_JOINS = 50_000
"""The maximum number of edges that lead into joins in one turn.

The number of edges grows with the square of the number of runs.
"""
# Many calls can ask the same. Only the first ones are looked at, so that the time stays bounded.
_MOST_ALIKE = 50
"""The maximum number of calls with one prompt that are looked at for one run."""

_RESULTS = {name: empty for dialect in DIALECTS for name, empty in dialect.results.items()}
"""Attributes with the result of a tool, and their value for an empty text."""

ActionsByRun = dict[int, list[Action]]
"""The actions of each run, by the ``id()`` of its spans."""


@dataclass(slots=True, eq=False)
class _Transfer:
    """A transfer and what made it.

    ``stated`` is true if the source names the receiver; ``key`` is the key of that name.
    """

    dispatch: Dispatch
    sender: RunSpans
    action: Action
    stated: bool
    key: str
    answered: bool = False


@dataclass(slots=True, eq=False)
class _Place:
    """Runs with the same parent: those that the next run can follow, and their transfers.

    ``arrived`` holds transfers by the id of the run that they led to. Of 100,000 agents that work
    at the same time, the next one must not look at each to find that it has not ended. So they are
    ``working``, by their number, until a run starts after the first of ``ends``.
    """

    frontier: list[tuple[int, RunSpans]] = field(default_factory=list)
    working: dict[int, RunSpans] = field(default_factory=dict)
    ends: list[tuple[float, int]] = field(default_factory=list)
    pending: list[_Transfer] = field(default_factory=list)
    arrived: dict[str, _Transfer] = field(default_factory=dict)

    def ends_at(self, number: int, run: RunSpans) -> None:
        """Note the end of a run; of several, the earliest counts."""
        heappush(self.ends, (run.ended, number))

    def advance(self, run: RunSpans) -> None:
        """Add to the frontier the runs that may have ended when this one starts."""
        size = len(self.frontier)
        while self.ends and self.ends[0][0] - run.started < _TICK:
            number = heappop(self.ends)[1]
            if number in self.working:
                self.frontier.append((number, self.working.pop(number)))
        if len(self.frontier) > size:
            self.frontier.sort(key=itemgetter(0))


def link(turn: Turn, runs: list[RunSpans], actions: ActionsByRun, builder: TraceBuilder) -> None:
    """Make all dispatches between the runs of a turn. The runs are in start order."""
    linker = _Linker(turn, runs, actions, builder)
    for run in runs:
        linker.arrive(run)
        linker.send(run)
    linker.settle_lost()
    linker.write_steps()
    _group(turn, runs, actions, builder)
    linker.group_fanned()
    _order(turn)


def _order(turn: Turn) -> None:
    """Sort dispatches by time, and those of one run in the order in which the run made them.

    A refused call can only have the time of the model's request, which is earlier than the calls of
    the same answer that were carried out. For example, with "transfer to tech, then to billing",
    only the first transfer has its own span.
    """
    times = {dispatch.id: dispatch.started or 0.0 for dispatch in turn.dispatches}
    places = dict.fromkeys(times, 0)
    for run in turn.runs:
        latest = 0.0
        for place, step in enumerate(run.steps):
            if isinstance(step, HandedOff) and step.dispatch in times:
                latest = max(latest, times[step.dispatch])
                times[step.dispatch], places[step.dispatch] = latest, place
    turn.dispatches.sort(key=lambda dispatch: (times[dispatch.id], places[dispatch.id]))


def _group(turn: Turn, runs: list[RunSpans], actions: ActionsByRun, builder: TraceBuilder) -> None:
    """Number dispatches that were issued together.

    Delegates belong together if one model answer requested them. If no source records what the
    model requested, they belong together if they ran at the same time. Sequences belong together
    if several runs follow one run.
    """
    by_id = {dispatch.id: dispatch for dispatch in turn.dispatches}
    together: dict[tuple[object, ...], list[Dispatch]] = {}
    for number, run in enumerate(runs):
        by_time: list[Dispatch] = []
        for action in actions[id(run)]:
            id_ = action.step.dispatch if action.step is not None else None
            if id_ is None or by_id[id_].kind != "delegate":
                continue
            asked_in = action.tool.request if action.tool is not None else None
            if action.batch is not None or asked_in is not None:
                together.setdefault((number, action.batch, asked_in), []).append(by_id[id_])
            elif by_id[id_].mode == "foreground":
                by_time.append(by_id[id_])
        for dispatches in _at_once(by_time):
            together[(number, dispatches[0].id)] = dispatches
    builder.number_together(turn, *together.values())
    builder.number_sequences(turn)


def _at_once(dispatches: list[Dispatch]) -> Iterator[list[Dispatch]]:
    """Yield the dispatches that overlap: their caller waited for several at the same time."""
    timed = [d for d in dispatches if d.started is not None and d.ended is not None]
    timed.sort(key=lambda dispatch: dispatch.started or 0.0)
    until, cluster = 0.0, list[Dispatch]()
    for dispatch in timed:
        if cluster and (dispatch.started or 0.0) >= until:
            yield cluster
            cluster = []
        until = max(until, dispatch.ended or 0.0) if cluster else dispatch.ended or 0.0
        cluster.append(dispatch)
    if cluster:
        yield cluster


class _Linker:
    def __init__(
        self, turn: Turn, runs: list[RunSpans], actions: ActionsByRun, builder: TraceBuilder
    ) -> None:
        self._turn = turn
        self._builder = builder
        self._actions = actions
        self._timelines: dict[str, Timeline] = {}
        self._places: dict[int, _Place] = {}
        self._delegates: dict[int, Dispatch] = {}
        self._senders: dict[str, RunSpans] = {}
        self._fanned: dict[str, list[Dispatch]] = {}
        self._begun: dict[str, list[RunSpans]] = {}
        self._joins = 0
        self._numbers = {id(run): number for number, run in enumerate(runs)}
        self._owners = {id(node): run for run in runs for node in run.nodes}
        self._by_span = {id(agent): run for run in runs for agent in run.agents}
        self._below = _runs_below(runs, actions, self._owners)
        # The runs below the agent of a run, but not below one of its calls.
        self._inside: dict[int, list[RunSpans]] = {}
        for run in runs:
            owner = self._owners.get(id(run.outer)) if run.caller is None else None
            if owner is not None:
                self._inside.setdefault(id(owner), []).append(run)

    def arrive(self, run: RunSpans) -> None:
        """Find what started a run."""
        place = self._place(run)
        before = _just_before(place, run)
        if not self._transferred(place, run, before) and not self._nested(run, before):
            before = self._joined(run) or before
            if not self._stated_inputs(run) and before:
                self._followed(place, run, before)
        place = self._place(run)
        place.working[self._numbers[id(run)]] = run
        place.ends_at(self._numbers[id(run)], run)
        self._begun.setdefault(name_key(run.agent), []).append(run)

    def send(self, run: RunSpans) -> None:
        """Add the dispatches that a run's actions make."""
        claimed: set[int] = set()
        agent_tools: dict[str, str] = {}
        for action in self._actions[id(run)]:
            step = action.step
            below = self._below.get(id(action.node)) if action.node is not None else None
            if below and step is not None and plain_name(below[0].agent) in plain_name(step.name):
                agent_tools[step.name] = below[0].agent
        for action in self._actions[id(run)]:
            step = action.step
            if step is not None and step.dispatch is not None:
                continue  # already made, when a run arrived whose clock is ahead
            nodes = (*action.earlier, *((action.node,) if action.node is not None else ()))
            children = [child for node in nodes for child in self._below.get(id(node), ())]
            if children and (action.mode != "transfer" or _waits(run, action)):
                # Of several attempts, the last one answers.
                last = self._below.get(id(action.node)) if action.earlier else None
                answerer = _answerer(last or children)
                dispatch = self._delegate(run, action, answerer)
                if dispatch.status == "unknown" and _answered_by_another(dispatch, children):
                    dispatch.status, dispatch.error = "failed", answerer.run.error
                    dispatch.result = None
            elif action.mode == "transfer":
                self._transfer(run, action, action.target)
            elif action.node is None and self._inside_answers(run, action, claimed):
                continue  # made when the run that answers it arrives; that run is below no call
            elif action.mode == "delegate" and (
                action.target is not None or (action.tool is not None and action.tool.sure)
            ):
                self._delegate(run, action, None)
            elif step is not None and action.failed and step.name in agent_tools:
                # Another call of this tool reached the agent. Strands refuses a second one at the
                # same time: "Agent 'pilot' is already processing a request".
                action.target = agent_tools[step.name]
                self._delegate(run, action, None).basis = "structure"
            elif step is not None and (
                step.name in self._builder.catalog or _is_agent(run, step.name)
            ):
                if step.name != run.agent:  # a tool with the name of an agent is an agent
                    action.target = step.name
                    self._delegate(run, action, None)

    def _inside_answers(self, run: RunSpans, action: Action, claimed: set[int]) -> bool:
        """Claim the run inside this one that answers a call without a span; each answers one."""
        for child in self._inside.get(id(run), ()):
            refused = action.failed and child.run.status == "completed"
            if id(child) not in claimed and not refused and _meant(action, child):
                claimed.add(id(child))
                return True
        return False

    def settle_lost(self) -> None:
        """Set the status of the transfers that did not arrive."""
        arrived = {
            (id(transfer.sender), transfer.action.batch)
            for place in self._places.values()
            for transfer in place.arrived.values()
            if transfer.action.batch is not None
        }
        for place in self._places.values():
            for transfer in place.pending:
                passed_over = (id(transfer.sender), transfer.action.batch) in arrived
                _settle_lost(transfer, passed_over)

    def write_steps(self) -> None:
        """Write hand-offs and answers into the steps of the runs, now that they are final."""
        for run in self._turn.runs:
            if run.id in self._timelines:
                run.steps = self._timelines[run.id].steps()

    def group_fanned(self) -> None:
        """Number dispatches that one call made to several agents as issued together."""
        fresh = [each for each in self._fanned.values() if each[0].group is None]
        for dispatches in self._fanned.values():
            for dispatch in dispatches:
                dispatch.group = dispatches[0].group
            self._part_answers(dispatches)
        self._builder.number_together(self._turn, *fresh)

    def _part_answers(self, dispatches: list[Dispatch]) -> None:
        """Give each agent of one call its own answer, if the call returned all of them together.

        Agno sends a task to all members of a team: "Agent Tax: 19 percent.Agent Law: Beta is fine."
        """
        made, others = dispatches[0], dispatches[1:]
        run = next((run for run in self._turn.runs if run.id in made.runs), None)
        if made.result is None or run is None:
            return
        together = made.result.plain()
        answers = [a.plain() for a in (run.output, *(each.result for each in others)) if a]
        # One that changed the words of its agents, or has only one of them, answers by itself.
        if together in answers or not all(answer in together for answer in answers):
            return
        if not any(each.result for each in others):
            return
        sender = next((each for each in self._turn.runs if each.id == made.from_run), None)
        steps = sender.steps if sender is not None else ()
        call = next((s for s in steps if isinstance(s, ToolCall) and s.id == made.call), None)
        if call is not None:
            call.result = made.result
        made.result = run.output
        if run.output is None and "output" in run.unknown:
            made.unknown.append("result")

    # Making dispatches

    def _dispatch(
        self,
        kind: DispatchKind,
        sender: RunSpans,
        to: str,
        at: float | None,
        action: Action | None = None,
    ) -> Dispatch:
        """Add a dispatch; one that an action makes gets its step in the sender's run."""
        call = action.step if action is not None else None
        dispatch = self._builder.dispatch(self._turn, kind, sender.run, to, at, call)
        if action is not None:
            self._timeline(sender).hand_off(self._builder.handed_off(dispatch), call)
        return dispatch

    def _follow(self, kind: DispatchKind, sender: RunSpans, run: RunSpans) -> Dispatch:
        """Add a dispatch for a run that starts because another one has ended."""
        dispatch = self._dispatch(kind, sender, run.agent, sender.run.ended)
        dispatch.ended = not_before(dispatch.started, run.run.started)
        self._builder.start(dispatch, run.run)
        return dispatch

    def _got_back(self, owner: RunSpans, dispatch: Dispatch) -> None:
        """Note where in the sender's run the answer arrived."""
        self._timeline(owner).got_back(self._builder.got_back(dispatch, dispatch.ended))

    def _timeline(self, run: RunSpans) -> Timeline:
        timeline = self._timelines.get(run.run.id)
        if timeline is None:
            timeline = self._timelines[run.run.id] = Timeline(run.run.steps)
        return timeline

    def _place(self, run: RunSpans) -> _Place:
        place = self._places.get(id(run.place))
        if place is None:
            place = self._places[id(run.place)] = _Place()
        return place

    # Delegates: an agent answers a call.

    def _delegate(self, run: RunSpans, action: Action, child: RunSpans | None) -> Dispatch:
        """Make the dispatch of a call that an agent answers; ``child`` is its run, where seen."""
        to = child.agent if child is not None else action.target or "unknown"
        dispatch = self._dispatch("delegate", run, to, action.started, action)
        dispatch.basis = "stated" if action.target is not None else "structure"
        # Traceloop has no spans of CrewAI's tools, so a crew can be directly below its caller.
        if child is not None and child.run.inside and _is_called_workflow(child.first):
            dispatch.to_agent, dispatch.to_kind = child.run.inside[0], "workflow"
        elif (child is not None and not child.named) or (child is None and action.target is None):
            dispatch.unknown.append("to_agent")
        self._answer(dispatch, action, child)
        _describe(dispatch, action)
        given = child.run.input if child is not None else None
        if dispatch.context and given is not None and _same_data(given, action.arguments):
            # The agent has a schema for its input, and was given all arguments as one object.
            dispatch.prompt, dispatch.context = Content(data=action.arguments), {}
        if dispatch.prompt is None:
            # The call passes on something other than text. The agent's input shows what it was.
            if child is not None and child.run.input is not None:
                dispatch.prompt = child.run.input
                dispatch.unknown = without(dispatch.unknown, "prompt")
            elif dispatch.context:
                dispatch.prompt, dispatch.context = Content(data=dispatch.context), {}
        if child is None and dispatch.status != "refused":
            if action.node is None and action.answer is None:
                # A model wrote it, and nothing shows that it was carried out.
                dispatch.unknown.append("runs")
            else:
                self._builder.unseen_run(self._turn, dispatch)
        open_ = dispatch.status in ("unanswered", "unknown", "waiting")
        if not open_ or dispatch.result is not None:
            self._got_back(run, dispatch)
        for node in (*action.earlier, *((action.node,) if action.node is not None else ())):
            self._delegates[id(node)] = dispatch
            self._senders[dispatch.id] = run
        return dispatch

    def _answer(self, dispatch: Dispatch, action: Action, child: RunSpans | None) -> None:
        """Record the result of a delegate. A tool can turn a failure of its agent into text."""
        late, own = action.late, child.run if child is not None else None
        launched = action.tool is not None and action.tool.launched
        if late is not None or launched or _outlived(action, child):
            # The call only launched it: the answer came later, or is not recorded.
            dispatch.mode, dispatch.status = "background", "unknown"
            if late is None:
                dispatch.unknown.append("result")
            elif late.failed:
                error = late.result.plain() if late.result is not None else None
                self._builder.answer(dispatch, "failed", late.at, error=error)
            else:
                self._builder.answer(dispatch, "completed", late.at, result=late.result)
            return
        ended = own.ended if own is not None and action.node is None else action.ended
        step = action.step
        if step is not None and step.status == "waiting":
            dispatch.status = "waiting"
            return
        if own is not None and ended is not None and step is not None:
            if step.status == "unanswered":  # no span records the call, but its agent has ended
                step.status = "failed" if own.status == "failed" else "ok"
        if action.failed:
            status: DispatchStatus = "failed" if own is not None else "refused"
            self._builder.answer(dispatch, status, ended, error=action.error)
        elif ended is not None or action.answer is not None:
            # An empty answer counts: what the agent said before it did not reach the caller.
            result = action.result
            missing = result is None and not _returned_nothing(action)
            if own is not None and (missing or _same_text(result, own.output)):
                result = own.output
            if own is not None and own.status == "failed":
                if result is None or _tells_failure(result, own.error):
                    self._builder.answer(dispatch, "failed", ended, result=result, error=own.error)
                else:
                    self._builder.answer(dispatch, "unknown", ended, result=result)
                return
            self._builder.answer(dispatch, "completed", ended, result=result)
            hidden = action.step is None or "result" in action.step.unknown
            if result is None and (hidden or (own is not None and "output" in own.unknown)):
                dispatch.unknown.append("result")

    def _delegate_without_call(self, owner: RunSpans, run: RunSpans) -> Dispatch:
        """Record that a run called another one, although no tool call for it is recorded."""
        dispatch = self._dispatch("delegate", owner, run.agent, run.run.started, Action())
        says = run.first.says
        agent = says if type(says) is AgentSpan else AgentSpan()
        dispatch.basis = "stated" if same_name(agent.called_by, owner.agent) else "structure"
        dispatch.prompt = agent.task or run.run.input
        if dispatch.prompt is None:
            dispatch.unknown.append("prompt")
        ended = run.run.ended
        if run.run.status == "failed":
            self._builder.answer(dispatch, "failed", ended, error=run.run.error)
        else:
            self._builder.answer(dispatch, "completed", ended, result=run.run.output)
            dispatch.unknown += ["result"] if dispatch.result is None else []
        self._builder.start(dispatch, run.run)
        self._got_back(owner, dispatch)
        return dispatch

    def _nested(self, run: RunSpans, before: list[RunSpans]) -> bool:
        """Add the dispatch for a run that is nested below a call or below another run."""
        if run.caller is not None:
            dispatch = self._delegates.get(id(run.caller))
            says = run.caller.says
            to_all = type(says) is ToolSpan and asks_all(says.name or "")
            # Nothing goes on after a failure: the caller's tool tries again, or asks another agent.
            again = bool(before) and all(other.run.status == "failed" for other in before)
            if dispatch is None or (before and not to_all and not again):
                return False
            sender = self._senders[dispatch.id]
            if _is_another(dispatch, run) or (to_all and dispatch.runs):
                beside = self._delegate_without_call(sender, run)
                if not again:
                    self._fanned.setdefault(dispatch.id, [dispatch]).append(beside)
            else:
                self._builder.start(dispatch, run.run)
            return True
        owner = self._owners.get(id(run.outer))
        if owner is None:
            # The last run that started of the agent that this run names as its caller.
            says = run.first.says
            owner = next(self._named(says.called_by if type(says) is AgentSpan else None), None)
        if owner is None:
            return False
        workflow = run.first.in_workflow
        if workflow is not None and before and run.first.in_agent is not None:
            if all(other.first.in_workflow is workflow for other in before):
                return False  # the caller started the workflow, which goes on by itself
        # The caller's model may have written a call of this agent that has no span.
        written = [
            action
            for action in self._actions[id(owner)]
            if action.node is None
            and action.step is not None
            and not action.step.dispatch
            and not (action.failed and run.run.status == "completed")
            and _meant(action, run)
        ]
        # Calls of one agent that run in parallel can start in any order.
        asked = (action for action in written if len(written) > 1 and _was_given(action, run))
        action = next(asked, written[0] if written else None)
        if action is None:
            self._delegate_without_call(owner, run)
        else:
            self._builder.start(self._delegate(owner, action, run), run.run)
        return True

    # Transfers: control passes, and can come back.

    def _transfer(self, run: RunSpans, action: Action, target: str | None) -> _Transfer:
        dispatch = self._dispatch("transfer", run, target or "unknown", action.started, action)
        dispatch.basis = "stated" if target is not None else "structure"
        if target is None:
            dispatch.unknown.append("to_agent")
        silent = bool(run.models) and run.models[-1].spoken is None
        if action.step is None and action.handoff is not None and silent:
            dispatch.unknown.append("call")  # a model's answer would have it
        if action.tool is not None and action.tool.target_kind is not None:
            dispatch.to_kind = action.tool.target_kind
        _describe(dispatch, action)
        key = name_key(dispatch.to_agent)
        transfer = _Transfer(dispatch, run, action, target is not None, key)
        if action.failed:
            dispatch.status, dispatch.error = "refused", action.error
            dispatch.ended = not_before(action.started, action.ended)
        else:
            self._place(run).pending.append(transfer)
        return transfer

    def _transferred(self, place: _Place, run: RunSpans, before: list[RunSpans]) -> bool:
        """Record the arrival of a transfer that is on its way to this run."""
        aimed = [t for t in self._on_their_way(place, run) if _aims_at(t, run, before)]
        for first in aimed:
            transfer = _last_asked(first, aimed)
            dispatch = transfer.dispatch
            known = same_name(dispatch.to_agent, run.agent) or _is_node(run, dispatch)
            if transfer.stated and not known:
                dispatch.to_kind = "workflow"
            else:
                dispatch.to_agent = run.agent
            self._arrived(transfer, run)
            return True
        return False

    def _on_their_way(self, place: _Place, run: RunSpans) -> Iterator[_Transfer]:
        """Yield the transfers that can reach a run, from its own place or the enclosing run."""
        if place.pending:
            _rename_targets(place.pending, run)
            names = {name_key(n) for n in (run.agent, run.run.node, *run.run.inside) if n}
            yield from [t for t in place.pending if not t.stated or t.key in names]
        owner = self._owners.get(id(run.outer))
        if owner is not None:
            yield from [t for t in self._place(owner).pending if t.sender is owner]

    def _arrived(self, transfer: _Transfer, run: RunSpans) -> None:
        dispatch, step = transfer.dispatch, transfer.action.step
        dispatch.unknown = without(dispatch.unknown, "to_agent")
        dispatch.ended = not_before(dispatch.started, run.run.started)
        if step is not None and step.status == "unanswered":
            step.status = "ok"
        self._builder.start(dispatch, run.run)
        self._place(transfer.sender).pending.remove(transfer)
        sender = transfer.sender
        if self._owners.get(id(run.outer)) is sender and _step_aside(sender, run):
            # ADK nests a workflow that got control in its sender. All of its agents step aside.
            workflow = _workflow_of(run, dispatch.to_agent)
            for other in self._inside.get(id(sender), ()) if workflow is not None else ():
                if _workflow_of(other, dispatch.to_agent) is workflow:
                    other.caller, other.outer = sender.caller, sender.outer
            self._place(transfer.sender).ends_at(
                self._numbers[id(transfer.sender)], transfer.sender
            )
        self._place(run).arrived[run.run.id] = transfer

    # Runs that follow without a call.

    def _stated_inputs(self, run: RunSpans) -> bool:
        """Link a run to those whose answers it states as its input; false if it states nothing.

        A run can also state that there were none. A graph node is identified by the name of its
        agent, or by the answer that it gave.
        """
        says = run.first.says
        if type(says) is not AgentSpan or says.follows is None:
            return False
        begun = [
            other
            for runs in self._begun.values()
            for other in runs
            if other.place is run.place and other.ended <= run.started + _TICK
        ]
        begun.sort(key=lambda other: other.started)
        last = {id(other): _said_last(other) for other in begun}
        stated = says.follows({text for text in last.values() if text})
        if stated is None:
            return False
        linked = 0
        for node, answers in stated.items():
            named = [o for o in begun if same_name(o.agent, node) or same_name(o.run.node, node)]
            answered = [other for other in begun if last[id(other)] in answers]
            both = [other for other in named if last[id(other)] in answers]
            if not both:
                # A later visit to the node, whose run is known by the name of its agent alone.
                agents = {other.agent for other in named}
                both = [other for other in answered if other.agent in agents]
            sender = next(reversed(both or named or answered), None)
            if sender is None:
                continue
            linked += 1
            if sender.run.node is None and sender.first.in_workflow is run.first.in_workflow:
                sender.run.node = node
            self._follow("sequence", sender, run).basis = "stated"
        return linked > 0 or not stated

    def _joined(self, run: RunSpans) -> list[RunSpans]:
        """Return the runs that the source names as those that a run waited for.

        Time alone misses some: of three copies of a node that run side by side, one can end before
        another starts.
        """
        says = run.first.says
        joins = says.joins if type(says) is AgentSpan else ()
        ran = [other for span in joins if (other := self._by_span.get(id(span))) is not None]
        return [other for other in dict.fromkeys(ran) if _ended_before(other, run)]

    def _followed(self, place: _Place, run: RunSpans, before: list[RunSpans]) -> None:
        """Record why a run follows others: a hand-over, a return, or the program's next step."""
        if len(before) == 1 and self._handed_over_unnamed(before[0], run):
            return
        self._joins += len(before) if len(before) > 1 else 0
        if self._joins > _MOST_JOINS and len(before) > 1:
            run.run.unknown.append("started_by")
            before = [max(before, key=lambda other: other.ended)]
        open_ = _open_transfer(place, run, before)
        if open_ is not None and not _starts_anew(run, open_, before):
            open_.answered = True
            # The receiver goes on with what it was given: its own answer returns to whoever gave it
            # control. In LangGraph, a supervisor below another one gets control back several times.
            given = place.arrived.get(open_.sender.run.id)
            if given is not None:
                place.arrived[run.run.id] = given
            for other in before:
                dispatch = self._follow("return", other, run)
                dispatch.basis, dispatch.answers = "structure", open_.dispatch.id
                dispatch.result = other.run.output
                if dispatch.result is None and "output" in other.run.unknown:
                    dispatch.unknown.append("result")
            return
        # The last finished run of the agent that this run names as its predecessor.
        says = run.first.says
        after = self._named(says.after if type(says) is AgentSpan else None)
        stated = next((o for o in after if o.ended <= run.started and o.place is run.place), None)
        if stated is not None and stated not in before:
            before = [stated]
        joins = type(says) is AgentSpan and bool(says.joins)
        passing_on = [other for other in before if not joins and _passed_on(other, run)]
        for other in passing_on or before:
            dispatch = self._follow("sequence", other, run)
            dispatch.basis = "structure" if passing_on else "order"
            if other is stated or joins:
                dispatch.basis = "stated"

    def _handed_over_unnamed(self, before: RunSpans, run: RunSpans) -> bool:
        """Treat a run's last call as a hand-over if nothing ran it or if it names the next run."""
        last_step = self._timeline(before).last()
        action = _last_action(before, self._actions[id(before)], last_step)
        if action is None or run.run.agent == before.run.agent:
            return False
        if any(agent.output is not None for agent in before.agents):
            return False  # it ended with an answer, and the request that gave it is not recorded
        if action.step is not None and action.step.status != "unanswered":
            if not _mentions(action, run):
                return False
        transfer = self._transfer(before, action, run.agent)
        transfer.dispatch.basis = "structure"
        self._arrived(transfer, run)
        return True

    def _named(self, name: str | None) -> Iterator[RunSpans]:
        yield from reversed(self._begun.get(name_key(name), []) if name is not None else [])


def _runs_below(
    runs: list[RunSpans], actions: ActionsByRun, owners: dict[int, RunSpans]
) -> dict[int, list[RunSpans]]:
    """Return the runs below each call, including those that only time and name place there."""
    kept = {key: node for run in runs for key, node in run.kept.items()}
    adopters = _adopters(runs, actions, owners)
    written = _WrittenCalls(runs, actions)
    below: dict[int, list[RunSpans]] = {}
    for run in runs:
        caller = run.caller or adopters.get(id(run))
        if caller is None and id(run.outer) not in owners:
            writer = written.writer_of(run)
            run.outer = writer.first if writer is not None else run.outer
        if caller is not None:
            run.caller = kept.get(id(caller), caller)
            below.setdefault(id(run.caller), []).append(run)
    return below


class _WrittenCalls:
    """The calls that models wrote and that have no span, by what they ask.

    Traceloop ends the span of a tool of OpenAI's SDK only if its result is a text. If an agent with
    an ``output_type`` is used as a tool, the call's span is lost, and its agent runs beside its
    caller.
    """

    def __init__(self, runs: list[RunSpans], actions: ActionsByRun) -> None:
        self._found: dict[tuple[int, str], list[tuple[RunSpans, Action]]] = {}
        for run in runs if len(runs) > 1 else ():
            for action in actions[id(run)]:
                spanless = (
                    action.node is None and action.handoff is None and action.call is not None
                )
                if spanless and action.mode != "transfer":
                    for key in _asks(action.arguments):
                        self._found.setdefault((id(run.place), key), []).append((run, action))

    def writer_of(self, run: RunSpans) -> RunSpans | None:
        """Return the run around this one that wrote a call with exactly its input."""
        given = run.run.input
        if given is None or not self._found:
            return None
        data = parsed(given.text) if given.data is None else given.data
        key = _canonical(data) if isinstance(data, dict) else (given.text or "").strip()
        writers = self._found.get((id(run.place), key), []) if key else []
        for place, (writer, action) in enumerate(writers[:_MOST_ALIKE]):
            asked = action.started
            if writer is not run and writer.started <= run.started and run.ended <= writer.ended:
                if action.failed and run.run.status == "completed":
                    continue  # it was answered with an error, and the agent worked
                if asked is None or asked <= run.started + _TICK:
                    del writers[place]
                    return writer
        return None


def _asks(arguments: Any) -> Iterator[str]:
    """Yield what a call asks: its prompt, and all its arguments as one object."""
    prompt = prompt_of(arguments)[0] if arguments is not None else None
    if prompt is not None and prompt.text:
        yield prompt.text.strip()
    if isinstance(arguments, dict) and arguments:
        yield _canonical(arguments)


def _canonical(data: Any) -> str:
    return msgspec.json.encode(data, order="sorted").decode()


def _adopters(
    runs: list[RunSpans], actions: ActionsByRun, owners: dict[int, RunSpans]
) -> dict[int, Node]:
    """Find the nearest call for each run that only time, and a name or text, place below a call."""
    adopters: dict[int, Node] = {}
    loose = [run for run in runs if run.caller is None]
    # A call lasts at least as long as the run below it, and most calls are shorter than any run.
    shortest = min((run.ended - run.started for run in loose), default=0.0)
    called: dict[int, tuple[RunSpans, Action]] = {}
    calls: dict[int, Overlaps] = {}
    for owner in runs if len(runs) > 1 else ():
        for action in actions[id(owner)]:
            node = action.node
            if node is not None and action.mode != "transfer":
                if node.ended - node.started >= shortest:
                    called[id(node)] = owner, action
                    calls.setdefault(id(owner.place), Overlaps()).add(node)
    taken: set[int] = set()
    for run in loose:
        beside = calls.get(id(run.place))
        fitting: list[tuple[bool, bool, bool, bool, int]] = []
        nodes: list[Node] = []
        for node in beside.around(run) if beside is not None else ():
            owner, action = called[id(node)]
            if owner is not run and _around(node, run) and _meant(action, run):
                # Calls of one agent that run in parallel differ only in what they ask. Calls of
                # several agents can ask all of them the same.
                alike, named = _asked_alike(action, run), _is_for(action, run)
                answered = _same_text(action.result, run.run.output)
                free = id(node) not in taken
                fitting.append((alike, named, answered, free, len(nodes)))
                nodes.append(node)
        if nodes:
            node = adopters[id(run)] = nodes[max(fitting)[-1]]
            taken.add(id(node))
        outer = owners.get(id(run.outer))
        waiting = [
            (action, node)
            for action in (actions[id(outer)] if outer is not None else ())
            if (node := action.node) is not None
            and action.mode != "transfer"
            and _around(node, run)
        ]
        meant = [one for one in waiting if len(waiting) == 1 or _meant(one[0], run)]
        if meant:
            # A name can be in that of another tool: `art` in `ask_start`. The text decides.
            same = [one for one in meant if _asked_alike(one[0], run)]
            adopters[id(run)] = (same or meant)[-1][1]
    return adopters


def _around(node: Node, run: RunSpans) -> bool:
    return node.started <= run.started and run.ended <= node.ended


def _just_before(place: _Place, run: RunSpans) -> list[RunSpans]:
    """Return the runs that ended last before this one started. Nothing follows earlier runs."""
    place.advance(run)
    ended = [o for _, o in place.frontier if _ended_before(o, run) and not _still_inside(o, run)]
    if not ended:
        return ended
    latest = max(other.started for other in ended)
    gone = {id(other) for other in ended if other.ended <= latest}
    if gone:
        place.frontier = [one for one in place.frontier if id(one[1]) not in gone]
    return [other for other in ended if id(other) not in gone]


def _ended_before(other: Timed, run: RunSpans) -> bool:
    """Return whether a run or span had ended when a run started.

    JavaScript counts starts in whole milliseconds and ends in fractions of them: an agent that
    ended at .022045 can be followed by one that starts at .022.
    """
    late = other.ended - run.started
    if late <= 0 or late >= _TICK or other.started >= run.started:
        return late <= 0
    return in_milliseconds(run.started) and not in_milliseconds(other.ended)


def _still_inside(other: RunSpans, run: RunSpans) -> bool:
    """Return whether a workflow that only contains the other run goes on as this run starts.

    If two sequences run in parallel, the second agent of one can start when the first agent of the
    other has ended. It does not follow that agent, because the other sequence has not ended.
    """
    at = other.first.in_workflow
    if at is run.first.in_workflow:
        return False
    around: set[int] = set()
    mine = run.first.in_workflow
    while mine is not None:
        around.add(id(mine))
        mine = mine.in_workflow
    while at is not None and id(at) not in around:
        if not _ended_before(at, run):
            return True
        at = at.in_workflow
    return False


def _starts_anew(run: RunSpans, transfer: _Transfer, before: list[RunSpans]) -> bool:
    """Return whether a run does not continue the work that its agent passed on earlier.

    A program can run its agents several times in one trace: "pay A", which the front desk passes to
    billing, and then "pay B" for the front desk again. A run that continues has the messages of
    the conversation so far, or at least the answer of those that had control.
    """
    ids = [conversation_of(each.first.span.attributes) for each in (run, transfer.sender)]
    if None not in ids and ids[0] != ids[1]:
        return True
    heard = run.models[0].heard_messages() if run.models else []
    asked = [message for message in heard if message.role != "system"]
    alone = len(asked) == 1 and asked[0].role == "user" and not asked[0].answers
    if not alone or asked[0].hidden or asked[0].content is None:
        return False
    return all(_said_last(other) for other in before) and not any(
        _passed_on(other, run) for other in before
    )


def _workflow_of(run: RunSpans, name: str) -> Node | None:
    """Return the workflow of this name around a run."""
    node = run.first.in_workflow
    while node is not None and not (
        type(node.says) is WorkflowSpan and same_name(node.says.name, name)
    ):
        node = node.in_workflow
    return node


def _step_aside(sender: RunSpans, run: RunSpans) -> bool:
    """Let a run follow the run that it is nested in, if control does not come back to that one."""
    if any(node.started >= run.ended for node in sender.owned):
        return False
    run.caller, run.outer = sender.caller, sender.outer
    sender.ended = run.started
    sender.run.ended = not_before(sender.run.started, run.run.started)
    if sender.run.status == "failed" and sender.run.error == run.run.error:
        sender.run.status, sender.run.error = "completed", None
    return True


def _last_asked(first: _Transfer, aimed: list[_Transfer]) -> _Transfer:
    """Return the transfer that arrives, out of several from one run to one agent.

    A transfer that an earlier model answer requested had no effect; otherwise the model would not
    have been called again. Of several in one answer, the first one is carried out. A span of the
    hand-off proves which one it was.
    """
    alike = [t for t in aimed if t.sender is first.sender and t.key == first.key]
    proven = [t for t in alike if t.action.handoff is not None]
    last = max(transfer.action.batch or 0 for transfer in alike)
    return next(iter(proven or [t for t in alike if (t.action.batch or 0) == last]))


def _aims_at(transfer: _Transfer, run: RunSpans, before: list[RunSpans]) -> bool:
    made, target = transfer.dispatch.started, transfer.dispatch.to_agent
    if made is not None and run.run.started is not None and made > run.run.started + _TICK:
        return False
    if transfer.sender is run:
        return False
    if not transfer.stated:
        return transfer.sender in before or not before
    if same_name(target, run.agent) or _is_node(run, transfer.dispatch):
        return True
    return any(same_name(target, name) for name in run.run.inside)


def _rename_targets(pending: list[_Transfer], run: RunSpans) -> None:
    """Take the target of a transfer from the answer to its call, which the receiver was given.

    A hand-over tool may have any name, and some instrumentations have no span of the hand-off.
    """
    named: set[str | None] = set()
    for message in run.models[0].heard_messages() if run.models else ():
        for answer in message.answers:
            receiver = receiver_in(answer.result) if answer.result is not None else None
            if same_name(receiver, run.agent):
                named.add(answer.id)
    for transfer in pending if named else ():
        call = transfer.action.call
        if call is None or call.id is None or call.id not in named:
            continue
        if transfer.action.handoff is None and not same_name(transfer.dispatch.to_agent, run.agent):
            transfer.stated, transfer.dispatch.basis = True, "stated"
            transfer.dispatch.to_agent = run.agent
            transfer.key = name_key(run.agent)


def _open_transfer(place: _Place, run: RunSpans, before: list[RunSpans]) -> _Transfer | None:
    """Find the transfer by which this run's agent gave control to those that had it last."""
    transfers: list[_Transfer] = []
    for other in before:
        met: set[str] = set()
        at: str | None = other.run.id
        while at in place.arrived and at not in met:
            met.add(at)
            transfer = place.arrived[at]
            at = transfer.dispatch.from_run
            if not transfer.answered and same_name(transfer.sender.agent, run.agent):
                transfers.append(transfer)
                break
    return max(transfers, key=lambda transfer: transfer.dispatch.ended or 0.0, default=None)


def _settle_lost(transfer: _Transfer, passed_over: bool) -> None:
    """Set the status of a transfer that did not arrive or lost to another one in its message."""
    dispatch, action = transfer.dispatch, transfer.action
    person = plain_name(dispatch.to_agent) in _PEOPLE and transfer.stated
    if person or dispatch.to_kind == "human":
        dispatch.to_kind, dispatch.status = "human", "completed"
        return
    answer = action.result.plain() if action.result is not None else None
    only_written = action.node is None and action.handoff is None
    if action.handoff is not None and action.handoff.failed:
        dispatch.status, dispatch.error = "failed", action.handoff.error
    elif only_written and passed_over:
        dispatch.status, dispatch.error = "refused", answer
        if action.step is not None:
            action.step.status, action.step.refused_by = "refused", "runtime"
    elif only_written and action.answer is not None:
        went_on = transfer.sender.went_on_after(dispatch.started, transfer=True)
        if went_on or action.answer.failed or _REFUSAL.search(answer or ""):
            dispatch.status, dispatch.error = "refused", answer
        else:  # the tool has returned, and its span is missing
            dispatch.status = "unknown"


def _waits(run: RunSpans, action: Action) -> bool:
    """Return whether a run continues after a call that seems to give control away."""
    node = action.node
    if node is None or action.tool is None or action.tool.sure:
        return False
    return any(other is not node and other.started >= node.ended for other in run.owned)


def _answerer(children: list[RunSpans]) -> RunSpans:
    """Return which run below a call gave its answer: the first, or its successful repetition.

    A tool can run its agent again after a failure, with another prompt: "Answer in JSON, please."
    """
    first = children[0]
    if first.run.status != "failed":
        return first
    again = (c for c in children if same_name(c.agent, first.agent) and c.run.status == "completed")
    return next(again, first)


def _answered_by_another(dispatch: Dispatch, children: list[RunSpans]) -> bool:
    """Return whether a tool asked another agent after the first one failed, and took its answer."""
    others = (c.run for c in children if not same_name(c.agent, dispatch.to_agent))
    return any(_same_text(dispatch.result, other.output) for other in others)


def _tells_failure(result: Content, error: str | None) -> bool:
    """Return whether the answer to a call says that its agent failed.

    If it says anything else, the answer may be that of another attempt whose spans were lost, or of
    the tool itself: "INV-7 is paid." after "RuntimeError: database is down".
    """
    said = result.plain()
    if error is not None and (error.partition(": ")[2] or error).strip()[:_ERROR] in said:
        return True
    return _REFUSAL.search(said) is not None or _FAILURE.search(said) is not None


def _returned_nothing(action: Action) -> bool:
    """Return whether the span of a tool states an empty result.

    A tool can keep what its agent said, for example in the state of the program.
    """
    attributes = action.node.span.attributes if action.node is not None else {}
    return any(attributes.get(name) == empty for name, empty in _RESULTS.items())


def _meant(action: Action, run: RunSpans) -> bool:
    """Return whether a call is for this agent, by name or by the text that the agent was given.

    A tool ``ask_billing_agent`` is for the agent ``billing``. A tool with an unrelated name is for
    the agent if its prompt, or all its arguments, are exactly the input of the agent.
    """
    if action.mode == "delegate" and action.target is not None:
        return same_name(action.target, run.agent)
    return _is_for(action, run) or _asked_alike(action, run)


def _is_for(action: Action, run: RunSpans) -> bool:
    name = plain_name(action.step.name) if action.step is not None else ""
    return run.named and plain_name(run.agent) in name


def _asked_alike(action: Action, run: RunSpans) -> bool:
    """Return whether the prompt of a call, or all its arguments, are the input of an agent."""
    given = run.run.input
    prompt = prompt_of(action.arguments)[0] if action.arguments is not None else None
    if given is None:
        return False
    alike = bool(prompt and prompt.text and prompt.text == given.text)
    # The input of an agent with typed parameters is all arguments, as JSON.
    return alike or (isinstance(action.arguments, dict) and _same_data(given, action.arguments))


def _is_called_workflow(node: Node) -> bool:
    """Return whether a call started the workflow around an agent, or a tool around it."""
    return node.in_tool is not None or (node.in_workflow is not None and node.in_agent is not None)


def _was_given(action: Action, run: RunSpans) -> bool:
    """Return whether an agent was given the prompt of a call, perhaps among other texts.

    CrewAI puts it into a template: "Current Task: Find the rate of NOK. This is the ...".
    """
    prompt = prompt_of(action.arguments)[0] if action.arguments is not None else None
    return prompt is not None and bool(prompt.text) and prompt.plain() in run.given()


def _mentions(action: Action, run: RunSpans) -> bool:
    """Return whether a call mentions this agent in its name, arguments or result."""
    name = plain_name(run.agent)
    arguments = action.arguments
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    words = [action.step.name if action.step is not None else "", *(str(v) for v in values)]
    words.append(action.result.plain() if action.result is not None else "")
    return bool(name) and any(name in plain_name(word) for word in words)


def _passed_on(before: RunSpans, run: RunSpans) -> bool:
    """Return whether the answer of one run was the input of another."""
    text = _said_last(before)
    return text is not None and text != "" and text in run.given()


def _is_agent(run: RunSpans, tool: str) -> bool:
    """Return whether an agent states that a tool is another agent of this name."""
    return any(agent.reaches.get(tool) == [tool] for agent in run.agents)


def _is_node(run: RunSpans, dispatch: Dispatch) -> bool:
    """Return whether a dispatch names the graph node for the agent of this run."""
    return run.run.node is not None and same_name(run.run.node, dispatch.to_agent)


def _said_last(run: RunSpans) -> str | None:
    said = run.run.output
    return said.text.strip() if said is not None and said.text else None


def _same_text(one: Content | None, other: Content | None) -> bool:
    """Return whether two contents have the same text, apart from surrounding whitespace."""
    if one is None or other is None or one.text is None or other.text is None:
        return False
    return one.text.strip() == other.text.strip()


def _same_data(given: Content, arguments: Any) -> bool:
    """Return whether a text or data holds the same JSON as the arguments of a call."""
    data = parsed(given.text) if given.data is None else given.data
    return bool(arguments) and data == arguments


def _is_another(dispatch: Dispatch, run: RunSpans) -> bool:
    """Return whether a run below a dispatch's call belongs to an agent other than the receiver.

    A tool can call several agents at once: Agno's `delegate_task_to_members` calls all members of a
    team. A workflow below a call counts as one receiver, no matter what runs in it.
    """
    if dispatch.to_kind != "agent" or "to_agent" in dispatch.unknown or run.run.inside:
        return False
    return run.named and not same_name(dispatch.to_agent, run.agent)


def _last_action(run: RunSpans, actions: list[Action], last_step: object) -> Action | None:
    """Return the call that a run ends with, even if only the model request records it."""
    called = [action for action in actions if action.step is not None]
    last = called[-1] if called else None
    done = run.owned[-1].says if run.owned else None
    asked = type(done) is ModelSpan and done.calls
    if last is None or (asked and last.node is not None):
        return Action() if asked else None
    handed = last.mode is not None or (last.step is not None and last.step.dispatch is not None)
    ends = last.step is last_step and not handed and not last.failed
    return last if ends else None


def _describe(dispatch: Dispatch, action: Action) -> None:
    """Copy the prompt of a call to its dispatch, but not the answer."""
    if action.handoff is not None and action.handoff.prompt is not None:
        dispatch.prompt = action.handoff.prompt
    elif action.arguments is None:
        dispatch.unknown.append("prompt")
    else:
        dispatch.prompt, dispatch.description, dispatch.context = prompt_of(action.arguments)
    if dispatch.description is None and action.tool is not None:
        dispatch.description = action.tool.description
    if action.step is not None:
        if dispatch.mode != "background":
            action.step.result = action.step.error = None
        action.step.unknown = without(action.step.unknown, "result")


def _outlived(action: Action, child: RunSpans | None) -> bool:
    """Return whether an agent did something after its call had been answered.

    A call that returned the agent's answer has waited for it, even if the clocks disagree: a
    program can be suspended for some milliseconds between two clock readings.
    """
    if child is None or action.node is None or action.ended is None:
        return False
    if action.result is not None and _same_text(action.result, child.run.output):
        return False
    done = (node.span.ended for node in child.owned if node.span.ended is not None)
    return max(done, default=action.ended) > action.ended + _TICK


def offer_tools(turn: Turn, cards: Mapping[str, AgentCard], actions: ActionsByRun) -> None:
    """Fill in which tools dispatches allow: from the call, the agent's span, or the tools offered.

    Values from the user's definitions are already set and stay.
    """
    runs = {run.id: run for run in turn.runs}
    allowed = {
        action.step.dispatch: action.tool.allowed
        for made in actions.values()
        for action in made
        if action.tool is not None and action.tool.allowed is not None and action.step is not None
    }
    for dispatch in turn.dispatches:
        if dispatch.tools_source is not None:
            continue
        if dispatch.id in allowed:
            allow_tools(dispatch, allowed[dispatch.id], "request")
            continue
        card = cards.get(dispatch.to_agent)
        offered = (runs[id_].tools_offered for id_ in dispatch.runs)
        if card is not None and card.tools is not None:
            allow_tools(dispatch, card.tools, "definition")
        elif (tools := next(offered, None)) is not None:
            allow_tools(dispatch, list(tools), "offered")
