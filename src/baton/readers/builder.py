"""The builder that all readers use: ids, turns, runs, dispatches and their steps.

A reader adds objects in the order of its source: a turn, a run, a call that makes a dispatch, the
run that it started, its answer. The builder ensures the invariants for all sources: ids are unique
in the trace, both ends of a link name each other, depths follow from the links, and times are in
order.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from baton.model import (
    TARGETS,
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Turn,
)
from baton.model.trace import DispatchKind, DispatchStatus, RunStatus, TurnStatus

from .catalog import Catalog

MAIN = "main"
"""The name of the agent that opens a turn, if it has none."""
_TOOLS = ("tools_allowed", "tools_source")


class Ids:
    """Creates ids that are unique in the trace."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._taken: set[str] = set()

    def new(self, kind: str, wanted: str | None = None) -> str:
        """Return the source's own id if it is free, else one made of ``kind`` and a number."""
        if wanted and wanted not in self._taken:
            id_ = wanted
        else:
            number = self._counts.get(kind, 0) + 1
            while (id_ := f"{kind}{number}") in self._taken:
                number += 1
            self._counts[kind] = number
        self._taken.add(id_)
        return id_


def not_before(started: float | None, at: float | None) -> float | None:
    """Return the time something ended; ``None`` when the source puts that before its start.

    The clocks of two machines disagree, and ADK writes the answer to a paused call with an
    earlier time than the call.
    """
    return None if started is not None and at is not None and at < started else at


def without(names: list[str], *settled: str) -> list[str]:
    """Return the names of unknown fields, without those that are known now."""
    return [name for name in names if name not in settled]


def allow_tools(dispatch: Dispatch, tools: Any, source: Any) -> None:
    """Record which tools a dispatch allows, and how that is known."""
    dispatch.tools_allowed, dispatch.tools_source = tools, source
    dispatch.unknown = without(dispatch.unknown, *_TOOLS)


def ends_early(steps: Iterable[Step], on_its_way: Dispatch | None = None) -> str | None:
    """Return the proof that a recording ends before its turn; ``None`` if there is none.

    More was expected after an unanswered call, and after a transfer that is ``on_its_way``.
    """
    for step in steps:
        if type(step) is ToolCall and step.status == "unanswered":
            return f"the recording ends before `{step.name}` is answered"
    if on_its_way is not None:
        return f"the recording ends before `{on_its_way.to_agent}` starts to work"
    return None


# Errors for an agent that does not exist: "Agent billing not found in the agent tree" of ADK.
# "billing: connection refused" also names the agent, which probably exists.
_NO_AGENT = (
    r"(?i)not found|no such|unknown|not exist|cannot find|could not find|invalid|not a valid"
)


# The same if the source does not name the intended agent.
_NO_SUCH_AGENT = r"(?i)\bagent\b[^.\n]{0,80}(?:not found|not exist)|no such agent"


def _says_there_is_none(error: str, dispatch: Dispatch) -> bool:
    if "to_agent" in dispatch.unknown:
        return re.search(_NO_SUCH_AGENT, error) is not None
    # By its name, or by the name of the tool for it: "Tool not found: transfer_to_billing".
    name = rf"(?<!\w)(?:transfer_to_|handoff_to_)?{re.escape(dispatch.to_agent)}(?!\w)"
    named = re.search(name, error)
    return named is not None and re.search(_NO_AGENT, error) is not None


class TraceBuilder:
    """Builds the turns of one trace.

    ``catalog`` has the user's definitions of agents, with the tools that a dispatch allows;
    ``None`` if the reader handles them itself. ``handed_off`` and ``got_back`` are prefixes of the
    generated ids of these steps.
    """

    def __init__(
        self,
        catalog: Catalog | None = None,
        *,
        handed_off: str = "step",
        got_back: str = "step",
    ) -> None:
        self.turns: list[Turn] = []
        self.catalog = catalog or {}
        self._has_definitions = catalog is not None
        self._handed_off, self._got_back = handed_off, got_back
        self._runs: dict[str, AgentRun] = {}
        self._dispatches: dict[str, Dispatch] = {}
        self._unseen: dict[str, AgentRun] = {}
        self._targets: dict[str, dict[str, list[str]]] = {}
        self.new_id = Ids().new

    def turn(self, wanted_id: str | None = None, **known: Any) -> Turn:
        """Open a turn; ``known`` are fields of it."""
        turn = Turn(id=self.new_id("turn", wanted_id), **known)
        self.turns.append(turn)
        return turn

    def run(self, turn: Turn, agent: str, wanted_id: str | None = None, **known: Any) -> AgentRun:
        """Add a run to a turn; ``known`` are fields of it."""
        run = AgentRun(id=self.new_id("run", wanted_id), agent=agent, **known)
        turn.runs.append(run)
        self._runs[run.id] = run
        return run

    def dispatch(
        self,
        turn: Turn,
        kind: DispatchKind,
        sender: AgentRun | None,
        to_agent: str,
        at: float | None,
        call: ToolCall | None = None,
    ) -> Dispatch:
        """Add an unanswered dispatch; without a sender, the program or the user made it.

        If a call makes it, both are linked.
        """
        dispatch = Dispatch(
            id=self.new_id("dispatch"),
            kind=kind,
            from_run=sender.id if sender is not None else None,
            from_agent=sender.agent if sender is not None else None,
            to_agent=to_agent,
            status="unanswered",
            started=at,
        )
        if call is not None:
            dispatch.call, call.dispatch = call.id, dispatch.id
        if self._has_definitions:
            card = self.catalog.get(to_agent)
            if card is not None and card.tools is not None:
                allow_tools(dispatch, card.tools, "definition")
            else:
                dispatch.unknown += _TOOLS
        turn.dispatches.append(dispatch)
        self._dispatches[dispatch.id] = dispatch
        return dispatch

    def start(self, dispatch: Dispatch, run: AgentRun) -> None:
        """Record that a dispatch started a run; a run where several branches join has several.

        Only a delegate waits for an answer: any other dispatch is then completed.
        """
        dispatch.runs.append(run.id)
        run.started_by.append(dispatch.id)
        if dispatch.kind != "delegate":
            dispatch.status, dispatch.error = "completed", None

    def unseen_run(self, turn: Turn, dispatch: Dispatch, given: Content | None = None) -> AgentRun:
        """Add the run of an agent that is only known from its call and answer.

        It ends like its dispatch, even if the answer is recorded later. ``given`` is its input.
        """
        missing = [] if given is not None else ["input"]
        run = self.run(
            turn,
            dispatch.to_agent,
            input=given,
            started=dispatch.started,
            unknown=[*missing, "context", "steps", "tools_offered", "model", "usage"],
        )
        self.start(dispatch, run)
        self._unseen[dispatch.id] = run
        _end_as(run, dispatch)
        return run

    def answer(
        self,
        dispatch: Dispatch,
        status: DispatchStatus,
        at: float | None,
        *,
        result: Content | None = None,
        error: str | None = None,
    ) -> None:
        """Record how a dispatch ended, and with which answer or error."""
        dispatch.status, dispatch.result, dispatch.error = status, result, error
        dispatch.ended = not_before(dispatch.started, at)
        unseen = self._unseen.get(dispatch.id)
        if unseen is not None:
            _end_as(unseen, dispatch)

    def end_turn(
        self,
        turn: Turn,
        status: TurnStatus,
        error: str | None = None,
        *,
        last: AgentRun | None = None,
        waiting: Iterable[AgentRun] = (),
    ) -> None:
        """End a turn, and set the status of everything without an answer.

        - *Completed*: the program continued without the answers, so they stay ``unanswered``.
        - *Failed*: a transfer that reached nobody failed by what made its sender fail, else by what
          made the turn fail; it is refused if that says that there is no such agent. The agent of a
          delegate may have been at work, so that one stays ``unanswered``.
        - *Waiting* for a person: so do the open calls of the runs that are ``waiting``, and the
          dispatches that these make.
        - *Incomplete*: the answers may have come later, so they stay ``unanswered``; how ``last``
          ended, the run that the recording ends in, is unknown.
        """
        turn.status, turn.error = status, error
        waiting_calls: set[str] = set()
        for run in waiting:
            run.status = "waiting"
            for step in run.steps:
                if type(step) is ToolCall:
                    if status == "waiting" and step.status == "unanswered":
                        step.status = "waiting"
                    if step.status == "waiting":
                        waiting_calls.add(step.id)
        if status == "incomplete" and last is not None and last.status == "completed":
            last.status = "unknown"
        for dispatch in turn.dispatches:
            if dispatch.status != "unanswered":
                continue
            if dispatch.call in waiting_calls:
                dispatch.status = "waiting"
            elif dispatch.kind == "transfer":
                sender = self._runs.get(dispatch.from_run or "")
                why = error if status == "failed" else None
                if sender is not None and sender.status == "failed":
                    why = sender.error
                if why:
                    refused = _says_there_is_none(why, dispatch)
                    dispatch.status, dispatch.error = "refused" if refused else "failed", why

    def handed_off(self, dispatch: Dispatch) -> HandedOff:
        """Return the step of the sender that hands work over."""
        id_ = self.new_id(self._handed_off)
        return HandedOff(id=id_, dispatch=dispatch.id, at=dispatch.started)

    def got_back(self, dispatch: Dispatch, at: float | None) -> GotBack:
        """Return the step in which the answer reaches the waiting run."""
        return GotBack(id=self.new_id(self._got_back), dispatch=dispatch.id, at=at)

    def may_reach(self, agent: str, targets: Mapping[str, list[str]]) -> None:
        """Record which agents an agent's tools can hand work to, by the definitions of the tools.

        Definitions may change from request to request: an agent that one of them lists exists.
        """
        for tool, names in targets.items():
            known = self._targets.setdefault(agent, {})
            before = known.setdefault(tool, names)
            if before is not names and before != names:  # most requests repeat the same one
                known[tool] = list(dict.fromkeys([*before, *names]))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the trace that were recorded so far."""
        return {TARGETS: self._targets} if self._targets else {}

    def next_group(self, turn: Turn) -> int:
        """Return a new number for dispatches that are issued together."""
        return max((dispatch.group or 0 for dispatch in turn.dispatches), default=0) + 1

    def number_together(self, turn: Turn, *together: list[Dispatch]) -> None:
        """Number lists of dispatches that were issued together; one alone is no group."""
        groups = [dispatches for dispatches in together if len(dispatches) > 1]
        # All groups at once: finding the next number takes a look at each dispatch of the turn.
        for number, dispatches in enumerate(groups, self.next_group(turn) if groups else 1):
            for dispatch in dispatches:
                dispatch.group = number

    def number_sequences(self, turn: Turn) -> None:
        """Number the sequences that lead from one run to several: the program started them all."""
        together: dict[str, list[Dispatch]] = {}
        for dispatch in turn.dispatches:
            if dispatch.kind == "sequence" and dispatch.from_run is not None:
                together.setdefault(dispatch.from_run, []).append(dispatch)
        self.number_together(turn, *together.values())

    def finish(self) -> list[Turn]:
        """Set the depth of every dispatch, and return the turns.

        Depth counts delegates from the turn's first agent outwards: 1 for its own delegate, 2
        for a delegate of that agent. A transfer, sequence or return keeps the depth.
        """
        depths: dict[str, int] = {}
        for dispatch in self._dispatches.values():
            path: list[Dispatch] = []
            at: Dispatch | None = dispatch
            while at is not None and at.id not in depths:
                depths[at.id] = 0  # a circle of broken links ends where it was entered
                path.append(at)
                sender = self._runs.get(at.from_run or "")
                at = (
                    self._dispatches[sender.started_by[0]] if sender and sender.started_by else None
                )
            depth = depths[at.id] if at is not None else 0
            for each in reversed(path):
                depth += each.kind == "delegate"
                depths[each.id] = each.depth = depth
        return self.turns


_RUN_STATUS: dict[DispatchStatus, RunStatus] = {"completed": "completed", "failed": "failed"}


def _end_as(run: AgentRun, dispatch: Dispatch) -> None:
    run.status = _RUN_STATUS.get(dispatch.status, "unknown")
    run.output, run.error, run.ended = dispatch.result, dispatch.error, dispatch.ended


def _answered_after(step: Step, sent: HandedOff) -> bool:
    """Return whether an answer arrived later than another agent was set to work."""
    at, then = step.at, sent.at
    return type(step) is GotBack and at is not None and then is not None and at > then


class Timeline:
    """The steps of a run while it is read: hand-offs and answers are inserted at their places.

    Texts and calls stay unchanged, and steps between them are stored separately until ``steps``
    merges all. A place is the number of a text or call, from 1, after which something is inserted;
    0 is the start.
    """

    def __init__(self, written: list[Step]) -> None:
        self._written = written
        self._after: list[list[Step]] = [[] for _ in range(len(written) + 1)]
        self._places = {id(step): place for place, step in enumerate(written, 1)}
        self._handed_off_at: dict[str, int] = {}
        self._said: list[int] = []
        self._latest: list[float] = []
        latest = float("-inf")
        for index, step in enumerate(written):
            if step.at is not None and step.at > latest:
                latest = step.at
            if type(step) is Said:
                self._said.append(index)
            self._latest.append(latest)

    def last(self) -> Step | None:
        """Return the last step so far."""
        after = self._after[-1]
        return after[-1] if after else self._written[-1] if self._written else None

    def hand_off(self, step: HandedOff, call: ToolCall | None) -> None:
        """Insert a hand-off right after its call, else by its time."""
        if call is None:
            place = self._place_of(step.at)
            after = self._after[place]
            # One call can set several agents to work: the second starts before the first has ended.
            later = (at for at, each in enumerate(after) if _answered_after(each, step))
            after.insert(next(later, len(after)), step)
        else:
            place = self._places[id(call)]
            self._after[place].insert(0, step)
        self._handed_off_at[step.dispatch] = place

    def got_back(self, step: GotBack) -> None:
        """Insert an answer by its time, at the latest before the next text; never too early.

        With a clock that is behind, an answer may seem to be before its hand-off: then it follows
        it.
        """
        sent = self._handed_off_at[step.dispatch]
        if step.at is not None:
            place = self._place_of(step.at)
        else:
            later = bisect_left(self._said, sent)
            place = self._said[later] if later < len(self._said) else len(self._written)
        after = self._after[max(place, sent)]
        if place >= sent:
            after.append(step)
            return
        own = next(
            place
            for place, each in enumerate(after)
            if type(each) is HandedOff and each.dispatch == step.dispatch
        )
        after.insert(own + 1, step)

    def steps(self) -> list[Step]:
        """Return all steps in order."""
        steps = list(self._after[0])
        for step, after in zip(self._written, self._after[1:], strict=True):
            steps.append(step)
            steps += after
        return steps

    def _place_of(self, at: float | None) -> int:
        return len(self._written) if at is None else bisect_right(self._latest, at)
