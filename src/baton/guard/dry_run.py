"""The dry run: what a policy would have decided about recordings; and cases of a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from baton.formats.document import Document
from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    InputError,
    Problem,
    ToolCall,
    Trace,
    Turn,
    known,
    suggestion,
)
from baton.model.views import (
    dispatched_runs,
    group_of,
    index_of,
    indexed,
    sum_usage,
    token_count,
    tool_calls,
)

from .decide_event import Decision, Event, Handed, Seen, decide
from .policy import Action, Moment, Policy
from .state import Store


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that a recorded event breaks: its place, and the message to the caller."""

    trace: str
    turn: str
    on: Moment
    id: str
    sender: str | None
    to: str
    rule: str
    action: Action
    reason: str


class DryRun(msgspec.Struct, kw_only=True):
    """The result of a policy for recordings.

    ``events`` counts decided events by their moment. ``left_out`` counts events below a blocked
    dispatch, which would not have happened. ``untold`` counts for each rule the events without the
    data it needs, ``failed`` has the first error of each rule.
    """

    version: str
    traces: int = 0
    events: dict[str, int] = msgspec.field(default_factory=dict)
    held: list[Held] = msgspec.field(default_factory=list)
    left_out: int = 0
    untold: dict[str, int] = msgspec.field(default_factory=dict)
    failed: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def blocked(self) -> list[Held]:
        """What would not have passed, or only with a person's approval."""
        return [each for each in self.held if each.action in ("block", "ask")]


def dry_run(policy: Policy, traces: Iterable[Trace]) -> DryRun:
    """Decide all events of recordings; each turn is its own tree.

    Events below a blocked dispatch are not decided, since they would not have happened.
    """
    result = DryRun(version=policy.version)
    for trace in traces:
        result.traces += 1
        for turn in trace.turns:
            for event, decision in _decided(policy, trace, turn, result):
                result.events[event.on] = result.events.get(event.on, 0) + 1
                for rule in decision.untold:
                    result.untold[rule] = result.untold.get(rule, 0) + 1
                result.failed = {**decision.failed, **result.failed}
                result.held += [
                    Held(
                        trace=trace.id,
                        turn=turn.id,
                        on=event.on,
                        id=event.id,
                        sender=event.sender,
                        to=event.to,
                        rule=each.rule,
                        action=each.action,
                        reason=each.reason,
                    )
                    for each in decision.broken
                ]
    return result


def _decided(
    policy: Policy, trace: Trace, turn: Turn, result: DryRun
) -> Iterator[tuple[Event, Decision]]:
    store = Store()
    if turn.started is not None:
        store.begin(turn.id, turn.started)
    dispatches = {each.id: each for each in turn.dispatches}
    gone: set[str] = set()
    for event in events_of(trace, turn):
        if event.parent in gone or (event.on == "output" and event.id in gone):
            result.left_out += 1
            continue
        if event.on == "output" and not _is_read(dispatches[event.id]):
            store.end(turn.id, event.id)
            continue
        decision = store.decide(policy, event)
        yield event, decision
        if event.on == "dispatch" and not decision.allowed:
            gone.add(event.id)
            gone |= {run.id for run in dispatched_runs(trace, [dispatches[event.id]])}
        if event.on == "output":
            store.end(turn.id, event.id)
            for run in index_of(trace).chosen(set(dispatches[event.id].runs)):
                if run.usage is not None:
                    store.use(turn.id, tokens=token_count(run.usage), cost_usd=run.usage.cost_usd)
    store.close()


def _is_read(dispatch: Dispatch) -> bool:
    """Tell whether there is an answer that the caller reads.

    A transferred agent answers another reader, and a failed dispatch has no answer.
    """
    if dispatch.result is not None:
        return True
    return dispatch.kind == "delegate" and dispatch.status in ("completed", "unknown")


def events_of(trace: Trace, turn: Turn) -> list[Event]:
    """Return the events of a turn, in the order of time as far as recorded.

    Without times a run's steps follow each other, and a dispatch has its answer before the next
    one is made, unless they were issued together.
    """
    with indexed(trace):
        events = list(_Walk(trace, turn).events())
    used = sum_usage([run.usage for run in turn.runs])
    if used is not None and used.complete:
        # The usage up to one moment is rarely recorded; the total is enough for a limit that it
        # never reached.
        most = {"most_tokens": token_count(used), "most_cost_usd": used.cost_usd}
        events = [msgspec.structs.replace(each, **most) for each in events]
    times = [each.at for each in events]
    if all(at is not None for at in times):
        events.sort(key=lambda each: each.at or 0.0)
    return events


class _Walk:
    """Walks through the runs of a turn, each below the dispatch that started it."""

    def __init__(self, trace: Trace, turn: Turn) -> None:
        self._trace, self._turn = trace, turn
        self._dispatches = {each.id: each for each in turn.dispatches if each.kind != "return"}
        self._runs = {run.id: run for run in turn.runs}
        self._names = tuple(
            sorted(
                {name for name, card in trace.agents.items() if card.kind == "agent"}
                | {run.agent for each in trace.turns for run in each.runs}
                | {d.to_agent for each in trace.turns for d in each.dispatches}
            )
        )
        self._sent: set[str] = set()
        self._answered: set[str] = set()

    def events(self) -> Iterator[Event]:
        walked: set[str] = set()
        # A stack instead of recursion: recordings may be deeper than Python's own.
        stack = [self._all()]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, Event):
                yield item
            elif item.id not in walked:
                walked.add(item.id)
                stack.append(self._run(item))

    def _all(self) -> Iterator[Event | AgentRun]:
        for run in self._turn.runs:
            for id_ in run.started_by:
                yield from self._send(id_)
            yield run
        for id_ in self._dispatches:
            yield from self._send(id_)
        for id_ in self._dispatches:
            yield from self._answer(id_)

    def _run(self, run: AgentRun) -> Iterator[Event | AgentRun]:
        sent: list[str] = []
        for step in run.steps:
            if isinstance(step, GotBack):
                yield from self._answer(step.dispatch)
            elif isinstance(step, HandedOff) or (isinstance(step, ToolCall) and step.dispatch):
                sent.append(step.dispatch or "")
                yield from self._send(step.dispatch or "")
            elif isinstance(step, ToolCall):
                yield self._tool(run, step)
        for id_ in sent:
            yield from self._answer(id_)

    def _send(self, id_: str) -> Iterator[Event | AgentRun]:
        dispatch = self._dispatches.get(id_)
        if dispatch is None or id_ in self._sent:
            return
        together = [each for each in group_of(self._trace, dispatch) if each.kind != "return"]
        for each in together:
            if each.id not in self._sent:
                self._sent.add(each.id)
                yield self._event("dispatch", each, each.started)
        for each in together:
            for run in each.runs:
                if run in self._runs:
                    yield self._runs[run]

    def _answer(self, id_: str) -> Iterator[Event]:
        dispatch = self._dispatches.get(id_)
        if dispatch is not None and id_ in self._sent and id_ not in self._answered:
            self._answered.add(id_)
            yield self._event("output", dispatch, dispatch.ended)

    def _event(self, on: Literal["dispatch", "output"], d: Dispatch, at: float | None) -> Event:
        trace, caller = self._trace, self._runs.get(d.from_run or "")
        fields = {
            "sender": known(trace, d, "from_agent"),
            "to": known(trace, d, "to_agent"),
            "depth": known(trace, d, "depth"),
            "prompt": known(trace, d, "prompt"),
            "parent": known(trace, d, "from_run"),
            "dispatches": known(trace, self._turn, "dispatches"),
            "output": known(trace, d, "result"),
            "running": known(trace, d, "group") or d.started is not None,
        }
        run = self._receiver(d) if on == "output" else None
        fields["calls"] = on != "output" or run is not None
        request = self._turn.input if caller is None else caller.input
        has_request = request is not None or caller is None or known(trace, caller, "input")
        if request is None and (caller is None or not caller.started_by):
            request = self._turn.input
            has_request = request is not None or known(trace, self._turn, "input")
        return Event(
            on=on,
            tree=self._turn.id,
            id=d.id,
            sender=d.from_agent,
            to=d.to_agent,
            parent=d.from_run or "",
            depth=d.depth,
            request=_text(request),
            prompt=_text(d.prompt),
            output=_text(d.result) if on == "output" else None,
            at=at,
            calls=tuple(tool_calls(run, dispatches="exclude")) if run is not None else (),
            handed=tuple(self._handed(run)) if run is not None else (),
            agents=self._names if on == "output" else (),
            unknown=tuple(name for name, is_known in fields.items() if not is_known)
            + (() if has_request else ("request",)),
        )

    def _receiver(self, dispatch: Dispatch) -> AgentRun | None:
        """Return the answering run; ``None`` if other runs contributed to the answer."""
        runs = [self._runs[id_] for id_ in dispatch.runs if id_ in self._runs]
        if len(runs) != 1 or not known(self._trace, runs[0], "steps.tool_call"):
            return None
        return runs[0]

    def _handed(self, run: AgentRun) -> Iterator[Handed]:
        """Yield the dispatches of a run, each with the number of calls before its result."""
        for step in run.steps:
            if isinstance(step, HandedOff) and step.dispatch in self._dispatches:
                handed = self._dispatches[step.dispatch]
                back = (
                    at
                    for at, each in enumerate(run.steps)
                    if isinstance(each, GotBack) and each.dispatch == handed.id
                )
                before = run.steps[: next(back, len(run.steps))]
                yield Handed(
                    to=handed.to_agent,
                    prompt=_text(handed.prompt),
                    result=_text(handed.result),
                    after=sum(isinstance(e, ToolCall) and e.dispatch is None for e in before),
                )

    def _tool(self, run: AgentRun, call: ToolCall) -> Event:
        started = [self._dispatches[id_] for id_ in run.started_by if id_ in self._dispatches]
        by = started[0] if started else None
        unknown = [] if known(self._trace, run, "agent") else ["to"]
        if not known(self._trace, call, "arguments"):
            unknown.append("arguments")
        return Event(
            on="tool",
            tree=self._turn.id,
            id=call.id,
            sender=by.from_agent if by else None,
            to=run.agent,
            parent=run.id,
            depth=by.depth if by else 0,
            tool=call.name,
            arguments=call.arguments,
            at=call.at,
            unknown=tuple(unknown),
        )


def _text(content: Content | None) -> str | None:
    return None if content is None else content.plain()


class _Sent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename={"sender": "from"}):
    """The event of a case. For a tool, ``to`` is the agent that calls it."""

    sender: str | None = None
    to: str = ""
    depth: int = 1
    request: str | None = None
    prompt: str | None = None
    tool: str | None = None
    arguments: Any = None
    output: str | None = None


class GuardCase(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A case of a policy: one event, the state before it, and the expected decision.

    Exactly one of ``dispatch``, ``tool`` and ``output`` is given. ``seen`` are the tree's counts
    before it. ``expect`` is an action, or ``allow`` if no rule is broken; ``rule`` names the
    deciding rule, ``reads`` is what the caller may read of an answer.
    """

    name: str
    expect: Literal["allow", "block", "ask", "redact", "warn", "observe"]
    rule: str | None = None
    reads: str | None = None
    dispatch: _Sent | None = None
    tool: _Sent | None = None
    output: _Sent | None = None
    seen: Seen = Seen()


class _Cases(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    cases: list[GuardCase]


class CaseOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The decision in a case; ``problem`` says what differs, ``None`` = as expected."""

    name: str
    decision: Decision
    problem: str | None = None


def read_cases(document: Document, policy: Policy) -> list[GuardCase]:
    """Read cases of a policy.

    Raises:
        InputError: every problem, with its line and a similar name; also a rule that the policy
            does not have.
    """
    rules = [rule.name for rule in policy.rules]
    cases = document.convert(document.value(), _Cases).cases
    problems: list[Problem] = []
    for place, case in enumerate(cases):
        moments = [name for name in _MOMENTS if getattr(case, name) is not None]
        if len(moments) != 1:
            message = "a case has exactly one of `dispatch`, `tool` and `output`"
            problems.append(document.problem_at(("cases", place), message))
        if case.rule is not None and case.rule not in rules:
            hint = suggestion(case.rule, rules)
            message = f"the policy has no rule `{case.rule[:60]}`" + (f"; {hint}" if hint else "")
            problems.append(document.problem_at(("cases", place, "rule"), message))
        if case.rule is not None and case.expect == "allow":
            message = "with `expect: allow` no rule is broken: leave `rule` out"
            problems.append(document.problem_at(("cases", place, "rule"), message))
    if not cases:
        problems.append(document.problem("there are no cases"))
    if problems:
        raise InputError(problems)
    return cases


def try_case(policy: Policy, case: GuardCase) -> CaseOutcome:
    """Decide the event of a case, and compare with the expected decision."""
    on = next(name for name in _MOMENTS if getattr(case, name) is not None)
    event = Event(on=on, tree="case", **msgspec.structs.asdict(getattr(case, on)))
    decision = decide(policy, case.seen, event)
    problem = None
    actual = decision.action or "allow"
    if decision.failed:
        rule, why = next(iter(decision.failed.items()))
        problem = f"`{rule}` failed: {why}"
    elif actual != case.expect:
        why = f": {decision.reason}" if decision.reason else ""
        problem = f"expected {case.expect}, got {actual}{why}"
    elif case.rule is not None and decision.rule != case.rule:
        problem = f"expected rule `{case.rule}`, got `{decision.rule}`"
    elif case.reads is not None and decision.output != case.reads:
        problem = f"expected the caller to read {case.reads!r}, got {decision.output!r}"
    return CaseOutcome(name=case.name, decision=decision, problem=problem)


_MOMENTS: tuple[Moment, ...] = ("dispatch", "tool", "output")
