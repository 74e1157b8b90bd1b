"""Views of the flat record as plain functions: chain, tree, dispatch view, usage."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeVar

from baton.model.limits import FINDING_TEXT, FINDING_WORK

from .trace import (
    GUARD,
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
    Turn,
    Usage,
    known,
)

Made = TypeVar("Made")


def agent_chain(
    trace: Trace,
    turn: Turn,
    *,
    renames: Mapping[str, str] | None = None,
    wanted: Collection[str] = (),
) -> list[str]:
    """Return the agents of a turn's runs in start order; a repeated visit is listed again.

    A run is listed by its agent's name, mapped by ``renames``. If that name is not ``wanted`` but
    its node name or an alias of the agent is, that one is used. Runs whose agent the source did not
    name are left out (``AgentRun.unknown`` has ``agent``).
    """
    renames = renames or {}
    chain = []
    for run in turn.runs:
        if known(trace, run, "agent"):
            names = run_names(trace, run)
            if renames:
                names = [renames.get(name, name) for name in names]
            name = names[0]
            if len(names) > 1:
                name = next((each for each in names if each in wanted), name)
            chain.append(name)
    return chain


def run_names(trace: Trace, run: AgentRun) -> list[str]:
    """Return every name of this run's agent: its own first, then node and aliases."""
    card = trace.agents.get(run.agent)
    if run.node is None and card is None:
        return [run.agent]
    names = [run.agent, *([run.node] if run.node else []), *(card.aliases if card else [])]
    return list(dict.fromkeys(names))


Batch = tuple[int | None, str | None, str]


class TooMuchTextError(Exception):
    """A trace has more text than the limit."""


class TraceIndex:
    """An index of runs, dispatches and answers in a trace, computed on first use.

    Without it, each view of a dispatch scans the whole trace: 4,500 dispatches in one trace took
    minutes. ``texts`` caches a finding's data for each dispatch, by its id.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.texts: dict[str, list[str]] = {}
        self._made: dict[str, Any] = {}
        self._work = FINDING_WORK.value
        self._text = FINDING_TEXT.value
        self._read: set[str] = set()
        self.around: tuple[str, _Around] | None = None

    def spend(self, pieces: int) -> bool:
        """Use up work from a trace's budget; false when it is exhausted."""
        self._work -= pieces
        return self._work >= 0

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """Return a finding's data for the whole trace, computed on first use."""
        if name not in self._made:
            self._made[name] = make()
        made: Made = self._made[name]
        return made

    def charge(self, text: str) -> None:
        """Use up a trace's budget for reading a text; the same text counts once.

        Raises:
            TooMuchTextError: there is too much text in the trace.
        """
        if text not in self._read:
            self._text -= len(text)
            if self._text < 0:
                raise TooMuchTextError
            self._read.add(text)

    @cached_property
    def runs(self) -> dict[str, AgentRun]:
        """All runs by id, in start order."""
        return {run.id: run for turn in self.trace.turns for run in turn.runs}

    @cached_property
    def dispatches(self) -> dict[str, Dispatch]:
        """All dispatches by id."""
        return {d.id: d for turn in self.trace.turns for d in turn.dispatches}

    @cached_property
    def turn_of(self) -> dict[str, Turn]:
        """The turn of each dispatch."""
        return {d.id: turn for turn in self.trace.turns for d in turn.dispatches}

    @cached_property
    def place_of(self) -> dict[str, int]:
        """The place of each dispatch among those of its turn."""
        return {d.id: at for turn in self.trace.turns for at, d in enumerate(turn.dispatches)}

    @cached_property
    def batches(self) -> dict[tuple[str, Batch], list[Dispatch]]:
        """The dispatches of a turn that were issued together."""
        by_batch: dict[tuple[str, Batch], list[Dispatch]] = {}
        for turn in self.trace.turns:
            for d in turn.dispatches:
                by_batch.setdefault((turn.id, batch_of(d)), []).append(d)
        return by_batch

    @cached_property
    def moves(self) -> dict[str, list[str]]:
        """The runs that a run passed control to, without delegates."""
        by_run: dict[str, list[str]] = {}
        for d in self.dispatches.values():
            if d.from_run and d.kind != "delegate":
                by_run.setdefault(d.from_run, []).extend(d.runs)
        return by_run

    @cached_property
    def answers(self) -> dict[str, Dispatch]:
        """The first return that answers each dispatch."""
        by_dispatch: dict[str, Dispatch] = {}
        for d in self.dispatches.values():
            if d.answers is not None:
                by_dispatch.setdefault(d.answers, d)
        return by_dispatch

    @cached_property
    def got_back(self) -> dict[str, list[str]]:
        """The runs that got the answer to each dispatch."""
        by_dispatch: dict[str, list[str]] = {}
        for run in self.runs.values():
            for step in run.steps:
                if isinstance(step, GotBack):
                    by_dispatch.setdefault(step.dispatch, []).append(run.id)
        return by_dispatch

    @cached_property
    def steps_about(self) -> dict[str, list[tuple[str, int]]]:
        """The steps of each dispatch: the run that made them, and their place in it."""
        by_dispatch: dict[str, list[tuple[str, int]]] = {}
        for run in self.runs.values():
            for at, step in enumerate(run.steps):
                if not isinstance(step, Said) and step.dispatch is not None:
                    by_dispatch.setdefault(step.dispatch, []).append((run.id, at))
        return by_dispatch

    @cached_property
    def handed_back(self) -> dict[tuple[str, str], list[Dispatch]]:
        """The transfers that a run made to an agent, by the run's id and the agent's name."""
        by_pair: dict[tuple[str, str], list[Dispatch]] = {}
        for d in self.dispatches.values():
            if d.kind == "transfer" and d.runs and d.from_run is not None:
                by_pair.setdefault((d.from_run, d.to_agent), []).append(d)
        return by_pair

    @cached_property
    def sent_by(self) -> dict[tuple[str, str | None], list[Dispatch]]:
        """The dispatches of a turn by the agent that made them, in the order they were made."""
        by_sender: dict[tuple[str, str | None], list[Dispatch]] = {}
        for turn in self.trace.turns:
            for d in turn.dispatches:
                by_sender.setdefault((turn.id, d.from_agent), []).append(d)
        return by_sender

    @cached_property
    def made_by(self) -> dict[str, list[Dispatch]]:
        """The dispatches that a run made, by its id, in the order they were made."""
        by_run: dict[str, list[Dispatch]] = {}
        for d in self.dispatches.values():
            if d.from_run is not None:
                by_run.setdefault(d.from_run, []).append(d)
        return by_run

    @cached_property
    def runs_of(self) -> Counter[str]:
        """The number of runs of each agent."""
        return Counter(run.agent for run in self.runs.values())

    @cached_property
    def sayings(self) -> dict[str, Content | Step]:
        """The texts of references in ``AgentRun.context``, by id."""
        by_id: dict[str, Content | Step] = {}
        for turn in self.trace.turns:
            if turn.input is not None:
                by_id[turn.id] = turn.input
            for run in turn.runs:
                if run.output is not None:
                    by_id[run.id] = run.output
                by_id.update((step.id, step) for step in run.steps)
        return by_id

    @cached_property
    def names(self) -> list[str]:
        """All names of the agents that ran, without duplicates."""
        runs = self.runs.values()
        return list(dict.fromkeys(name for run in runs for name in run_names(self.trace, run)))

    @cached_property
    def known_names(self) -> list[str]:
        """The names of agents in the source, without duplicates."""
        runs = [run for run in self.runs.values() if known(self.trace, run, "agent")]
        return list(dict.fromkeys(name for run in runs for name in run_names(self.trace, run)))

    @cached_property
    def order(self) -> dict[str, int]:
        """The place of each run in start order."""
        return {id_: at for at, id_ in enumerate(self.runs)}

    def chosen(self, ids: set[str]) -> list[AgentRun]:
        """Return the runs with these ids, in start order; unknown ids are ignored."""
        known = [id_ for id_ in ids if id_ in self.runs]
        return [self.runs[id_] for id_ in sorted(known, key=self.order.__getitem__)]


def batch_of(dispatch: Dispatch) -> Batch:
    """Return a key that is equal for dispatches that were issued together."""
    return dispatch.group, dispatch.from_run, dispatch.mode


_ACTIVE: ContextVar[TraceIndex | None] = ContextVar("baton_trace_index", default=None)


@contextmanager
def indexed(trace: Trace) -> Iterator[TraceIndex]:
    """Keep one index of a trace, which must not change inside the block."""
    active = _ACTIVE.get()
    if active is not None and active.trace is trace:
        yield active
        return
    token = _ACTIVE.set(TraceIndex(trace))
    try:
        yield index_of(trace)
    finally:
        _ACTIVE.reset(token)


def charge(text: str) -> None:
    """Count a text that is read, if the trace's index is kept.

    Raises:
        TooMuchTextError: there is too much text in that trace.
    """
    active = _ACTIVE.get()
    if active is not None:
        active.charge(text)


def charge_work(pieces: int) -> None:
    """Use up work from the budget of the trace whose index is kept, if there is one.

    Raises:
        TooMuchTextError: the budget is used up.
    """
    active = _ACTIVE.get()
    if active is not None and not active.spend(pieces):
        raise TooMuchTextError


def index_kept() -> TraceIndex | None:
    """Return the current index, if there is one."""
    return _ACTIVE.get()


def index_of(trace: Trace) -> TraceIndex:
    """Return the kept index of a trace, or a new one."""
    active = _ACTIVE.get()
    return active if active is not None and active.trace is trace else TraceIndex(trace)


class DispatchView(NamedTuple):
    """A dispatch in its place; ``before`` and ``after`` are steps of the run that made it."""

    before: list[Step]
    dispatch: Dispatch
    runs: list[AgentRun]
    after: list[Step]


def dispatch_view(trace: Trace, dispatch: Dispatch) -> DispatchView:
    """Return the view of one dispatch from the run that made it.

    ``before`` leaves out what belongs to dispatches issued together with this one. ``after``
    starts after the last ``GotBack`` of that group, so that parallel work is judged when all
    answers are back, and background work on what follows its real answer. It continues in later
    turns if the answer arrives there. Until its own answer arrives, ``after`` of a delegate is
    empty; for a transfer it starts at the ``HandedOff``.
    """
    around = _around(trace, dispatch)
    own = around.places([dispatch.id])
    start = _start(around.steps, own)
    if any(isinstance(around.steps[at], GotBack) for at in own):
        first = around.answered
    else:
        first = len(around.steps) if dispatch.kind == "delegate" else start + 1
    return DispatchView(
        before=around.others[: around.others_before(start)],
        dispatch=dispatch,
        runs=child_runs(trace, dispatch),
        after=around.others[around.others_before(first) :],
    )


class _Around:
    """The steps around dispatches that were issued together.

    ``steps`` are those of the sending run, then those of later runs that got an answer; ``others``
    are the ones that belong to none of the dispatches. ``answered`` is the place after the last
    answer.
    """

    def __init__(self, index: TraceIndex, ids: Collection[str], sender: str | None) -> None:
        self._about = index.steps_about
        runs = {run for id_ in ids for run in index.got_back.get(id_, ())}
        if sender is not None:
            runs.add(sender)
        self.steps: list[Step] = []
        self._begins: dict[str, int] = {}
        for run in index.chosen(runs):
            self._begins[run.id] = len(self.steps)
            self.steps += run.steps
        self._together = self.places(ids)
        self.answered = 1 + max(
            (at for at in self._together if isinstance(self.steps[at], GotBack)), default=-1
        )
        self.others: list[Step] = []
        first = 0
        for at in self._together:
            self.others += self.steps[first:at]
            first = at + 1
        self.others += self.steps[first:]

    def others_before(self, place: int) -> int:
        """Count the steps before a place that belong to none of the dispatches."""
        return place - bisect_left(self._together, place)

    def places(self, ids: Iterable[str]) -> list[int]:
        """Return the places of the steps that belong to some of the dispatches."""
        steps = (each for id_ in ids for each in self._about.get(id_, ()))
        return sorted(self._begins[run] + at for run, at in steps if run in self._begins)


def _around(trace: Trace, dispatch: Dispatch) -> _Around:
    """Return the steps around a dispatch, made once for dispatches that were issued together.

    A batch of a thousand would be gone through a thousand times. One result is kept, as evaluators
    go from dispatch to dispatch: those of all batches would take memory with the square of their
    number.
    """
    group, index = group_of(trace, dispatch), index_of(trace)
    key = group[0].id  # a dispatch is in one group
    if index.around is None or index.around[0] != key:
        index.around = key, _Around(index, [d.id for d in group], dispatch.from_run)
    return index.around[1]


def group_of(trace: Trace, dispatch: Dispatch) -> list[Dispatch]:
    """Return the dispatches that were issued together with this one, itself included.

    Raises:
        ValueError: the trace has no dispatch with this id.
    """
    index = index_of(trace)
    turn = index.turn_of.get(dispatch.id)
    if turn is None:
        raise ValueError(f"trace {trace.id} has no dispatch {dispatch.id}")
    return [dispatch] if dispatch.group is None else index.batches[turn.id, batch_of(dispatch)]


def overlap(one: Dispatch, other: Dispatch) -> bool:
    """Return whether the times of two dispatches prove that they were parallel.

    ``False`` proves nothing: times may be unknown, and parallel work may be done one by one.
    """
    if one.started is None or one.ended is None or other.started is None or other.ended is None:
        return False
    return one.started < other.ended and other.started < one.ended


def child_runs(trace: Trace, dispatch: Dispatch) -> list[AgentRun]:
    """Return the runs that a dispatch started, in start order.

    For a delegate these include runs that its agent passed control to, as they work on the same
    answer, but not what they delegate in turn.
    """
    wanted = set(dispatch.runs)
    if dispatch.kind == "delegate":
        moves = index_of(trace).moves
        due = [run for id_ in dispatch.runs for run in moves.get(id_, ())]
        while due:
            run = due.pop()
            if run not in wanted:
                wanted.add(run)
                due += moves.get(run, ())
    return index_of(trace).chosen(wanted)


def _start(steps: Sequence[Step], own: Sequence[int]) -> int:
    """Return the index of the dispatch: at the ``HandedOff``, else the call, else the end."""
    for kind in (HandedOff, ToolCall):
        for at in own:
            if isinstance(steps[at], kind):
                return at
    return len(steps)


def comes_back(step: Step, group: set[str]) -> bool:
    """Tell whether a step gets the answer of one of the dispatches in ``group``, by their ids."""
    return isinstance(step, GotBack) and step.dispatch in group


_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?::[ \t].*)?$", re.MULTILINE)


def in_short(error: str, limit: int = 200) -> str:
    """Fold an error into one line of at most ``limit`` characters, and leave out tracebacks.

    The text before a traceback is kept; if there is none, the exception at its end.
    """
    message, traceback, frames = error.partition(_TRACEBACK)
    if traceback and not message.strip():
        raised = _RAISED.findall(frames)
        message = raised[-1] if raised else error
    line = " ".join(message.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


# Characters of the error of a broken turn in a reason: the first lines of a traceback, or a whole
# message of an API.
_ERROR_LETTERS = 400


def broken(turn: Turn) -> str | None:
    """Return why a turn did not complete; ``None`` if it did.

    A turn that waits for a person, or that ended without an answer, is not broken.
    """
    if turn.status != "failed" and turn.error is None:
        return None
    began = turn.status != "failed" and turn.runs
    how = "broke off" if began else "failed"
    why = in_short(turn.error or "", _ERROR_LETTERS) or "the source does not state why"
    return f"{how}: {why}"


class RoundTrip(NamedTuple):
    """``result`` is ``None`` if there is no answer; ``after`` is what the caller did next."""

    dispatch: Dispatch
    runs: list[AgentRun]
    result: Content | None
    after: list[Step]


def round_trip(trace: Trace, dispatch: Dispatch) -> RoundTrip:
    """Follow a dispatch until the caller has acted on its result.

    Delegates and transfers that come back look alike: for a transfer the result is that of
    the ``return`` which answers it, and ``after`` the steps of the run which that return
    started. An agent that transfers back in the same turn also returns; the result is its
    message with that transfer, if any.
    """
    view = dispatch_view(trace, dispatch)
    back = index_of(trace).answers.get(dispatch.id)
    if back is None and dispatch.kind == "transfer":
        # The transfer by which the receiver gave control back to its sender.
        index = index_of(trace)
        turn = index.turn_of.get(dispatch.id)
        if turn is not None and dispatch.from_agent is not None:
            made = (index.handed_back.get((run, dispatch.from_agent), ()) for run in dispatch.runs)
            here, sent = index.place_of[dispatch.id], (d for row in made for d in row)
            later = [d for d in sent if index.turn_of[d.id] is turn and index.place_of[d.id] > here]
            back = min(later, key=lambda d: index.place_of[d.id], default=None)
    if back is None:
        return RoundTrip(dispatch, view.runs, dispatch.result, view.after)
    after = [step for run in child_runs(trace, back) for step in run.steps]
    result = back.prompt if back.kind == "transfer" else back.result
    return RoundTrip(dispatch, view.runs, dispatch.result if result is None else result, after)


PlacedCall = tuple[AgentRun, ToolCall]
"""A call, after the run that made it."""


def tool_calls(
    within: Turn | AgentRun, *, dispatches: Literal["include", "exclude"]
) -> list[ToolCall]:
    """Return the calls in time order (in order of runs if times are not recorded).

    Calls of one run keep the order of its steps: a model that wrote "ask_north" and then
    "ask_south" in one answer called them in this order, whichever thread started first.

    ``dispatches`` has no default on purpose: whether a dispatch counts as a tool call
    changes every figure built on this list.
    """
    runs = within.runs if isinstance(within, Turn) else [within]
    return [call for _, call in placed_calls(runs, dispatches=dispatches)]


def placed_calls(
    runs: Iterable[AgentRun], *, dispatches: Literal["include", "exclude"]
) -> list[PlacedCall]:
    """Return the calls of some runs, each with its run, in the order of :func:`tool_calls`."""
    every = dispatches == "include"
    placed: list[PlacedCall] = []
    times: list[float] = []
    timed = True
    for run in runs:
        latest = 0.0
        for step in run.steps:
            if type(step) is ToolCall and (every or step.dispatch is None):
                placed.append((run, step))
                if step.at is None:
                    timed = False
                elif step.at > latest:
                    latest = step.at
                times.append(latest)
    if timed and any(after < before for before, after in pairwise(times)):
        order = sorted(range(len(placed)), key=times.__getitem__)
        placed = [placed[place] for place in order]
    return placed


def possible_agents(trace: Trace, turn: Turn) -> set[str]:
    """Return the names of calls of which the source does not record whether an agent answered.

    Sessions of ADK look alike for a tool and for an agent that is a tool.
    """
    return {
        call.name
        for _, call in placed_calls(turn.runs, dispatches="exclude")
        if call.unknown and not known(trace, call, "dispatch")
    }


class TreeNode(NamedTuple):
    """A run, the dispatches that started it, and the runs it delegated to."""

    run: AgentRun
    started_by: list[Dispatch]
    children: list[TreeNode]


def turn_tree(trace: Trace, turn: Turn) -> list[TreeNode]:
    """Return the runs of a turn as trees: delegates below their caller, others beside their sender.

    A delegate that passes control on stays below its caller, together with the agents it passed it
    to. Each level is in start order. A run whose sender is not an agent, or is in an earlier turn,
    is at the top.
    """
    dispatches = {d.id: d for t in trace.turns for d in t.dispatches}
    top: list[TreeNode] = []
    nodes: dict[str, TreeNode] = {}
    level: dict[str, list[TreeNode]] = {}
    for run in turn.runs:
        node = TreeNode(run, [dispatches[i] for i in run.started_by if i in dispatches], [])
        level[run.id] = next(_levels(node.started_by, nodes, level), top)
        level[run.id].append(node)
        nodes[run.id] = node
    return top


def _levels(
    started_by: list[Dispatch], nodes: dict[str, TreeNode], level: dict[str, list[TreeNode]]
) -> Iterator[list[TreeNode]]:
    """Yield the possible places of a run, the best first; senders start before it."""
    senders = [(d, d.from_run) for d in started_by if d.from_run in nodes]
    yield from (nodes[id_].children for d, id_ in senders if id_ and d.kind == "delegate")
    yield from (level[id_] for d, id_ in senders if id_)


_COUNTS = (
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "requests",
    "failed_requests",
)
_counts_of = attrgetter(*_COUNTS)
TOKENS = _COUNTS[:4]
_tokens_of = attrgetter(*TOKENS)


def token_count(usage: Usage | None) -> int | None:
    """Return all input and output tokens; ``None`` if the source records none."""
    if usage is None:
        return None
    counts = [count for count in _tokens_of(usage) if count is not None]
    return sum(counts) if counts else None


def sum_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """Add up the usage of runs; a run without any makes the total a lower bound.

    The cost is summed when every run has one.
    """
    reported = [usage for usage in usages if usage is not None]
    if not reported:
        return None
    if len(usages) == 1:  # the case of most dispatches, and ten times as fast
        only = copy(reported[0])
        if only.cost_usd is None:
            only.cost_from = None
        return only
    whole = [usage.complete for usage in reported]
    total = Usage(complete=len(reported) == len(usages) and False not in whole)
    for name, column in zip(_COUNTS, zip(*map(_counts_of, reported), strict=True), strict=True):
        if None not in column:
            setattr(total, name, sum(column))
        elif column.count(None) < len(column):
            setattr(total, name, sum(filter(None, column)))
    costs = [usage.cost_usd for usage in reported if usage.cost_usd is not None]
    if len(costs) == len(usages):
        total.cost_usd = sum(costs)
        origins = {usage.cost_from for usage in reported}
        total.cost_from = origins.pop() if len(origins) == 1 else "prices"
    return total


class DispatchUsage(NamedTuple):
    """``own`` is the usage of the runs it started, ``with_children`` includes those below them.

    ``None`` if nothing was started, or no run has a usage.
    """

    own: Usage | None
    with_children: Usage | None


def dispatch_usage(trace: Trace, dispatch: Dispatch) -> DispatchUsage:
    """Add up the usage of a dispatch; a run without any makes a total a lower bound.

    A message that continues an agent is a separate dispatch, and its usage counts there.
    """
    return DispatchUsage(
        _sum(child_runs(trace, dispatch)), _sum(dispatched_runs(trace, [dispatch]))
    )


def dispatched_runs(trace: Trace, dispatches: Sequence[Dispatch]) -> list[AgentRun]:
    """Return the runs that some dispatches started, and all below them, without duplicates.

    An agent that a delegate (or a workflow) passes control to works on the same answer, and is
    included. An agent that got control and passes it on, or back, starts nothing below it.
    """
    wanted = _started_runs(_made_by(trace), dispatches)
    return [run for turn in trace.turns for run in turn.runs if run.id in wanted]


def dispatch_costs(trace: Trace) -> dict[str, float]:
    """Return the cost of each dispatch in USD with everything below it, if fully known."""
    costs = {
        run.id: run.usage.cost_usd if run.usage is not None and run.usage.complete else None
        for turn in trace.turns
        for run in turn.runs
    }
    if not any(costs.values()):
        return {}
    made = _made_by(trace)
    totals: dict[str, float] = {}
    for turn in trace.turns:
        for dispatch in turn.dispatches:
            runs = _started_runs(made, [dispatch])
            known = [cost for id_ in sorted(runs) if (cost := costs.get(id_)) is not None]
            if runs and len(known) == len(runs):
                totals[dispatch.id] = sum(known)
    return totals


def _made_by(trace: Trace) -> dict[str | None, list[Dispatch]]:
    made: dict[str | None, list[Dispatch]] = {}
    for turn in trace.turns:
        for dispatch in turn.dispatches:
            made.setdefault(dispatch.from_run, []).append(dispatch)
    return made


def _started_runs(
    made: Mapping[str | None, Sequence[Dispatch]], dispatches: Sequence[Dispatch]
) -> set[str]:
    """Return the ids of the runs that dispatches started, and of all below them."""
    seen: set[tuple[str, bool]] = set()
    due = [
        (id_, dispatch.kind == "delegate" or dispatch.to_kind == "workflow")
        for dispatch in dispatches
        for id_ in dispatch.runs
    ]
    while due:
        run, inside = due.pop()
        if (run, inside) in seen:
            continue
        seen.add((run, inside))
        for below in made.get(run, ()):
            if inside or below.kind == "delegate":
                due += [(id_, True) for id_ in below.runs]
    return {run for run, _ in seen}


def _sum(runs: list[AgentRun]) -> Usage | None:
    return sum_usage([run.usage for run in runs])


__all__ = [
    "DispatchUsage",
    "DispatchView",
    "PlacedCall",
    "RoundTrip",
    "TooMuchTextError",
    "TraceIndex",
    "TreeNode",
    "agent_chain",
    "broken",
    "charge",
    "dispatch_costs",
    "dispatch_usage",
    "dispatch_view",
    "dispatched_runs",
    "in_short",
    "index_of",
    "indexed",
    "placed_calls",
    "possible_agents",
    "round_trip",
    "run_names",
    "sum_usage",
    "tool_calls",
    "turn_tree",
]


def decisions_of(trace: Trace) -> list[dict[str, Any]]:
    """Return a guard's decisions except plain passes, see :data:`baton.model.trace.GUARD`."""
    held = trace.attributes.get(GUARD)
    return [each for each in held if isinstance(each, dict)] if isinstance(held, list) else []
