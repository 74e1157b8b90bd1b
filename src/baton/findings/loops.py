"""Whether agents go round in circles: the same hand-offs, or the same calls, over and over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from baton.model import AgentRun, Dispatch, Evidence, ToolCall, Trace, Turn

from .cycles import cycles, idle, period_of
from .finding import Answer, Clear, Finding, Untold
from .repeats import same_calls, same_dispatches

_NO_NAMES: Mapping[str, str] = {}


class LoopLimits(NamedTuple):
    """From how many repetitions on something is a loop; ``ignore_tools`` may be called again."""

    rounds: int = 3
    dispatches: int = 3
    calls: int = 3
    ignore_tools: frozenset[str] = frozenset()


_DEFAULT = LoopLimits()


def loops(
    trace: Trace,
    turn: Turn,
    limits: LoopLimits = _DEFAULT,
    renames: Mapping[str, str] = _NO_NAMES,
) -> Answer:
    """Look for loops in one turn.

    - ``hand_off_cycle``: control goes round the same agents ``rounds`` times in a row, and after
      the first round nobody does or says anything new (:func:`baton.findings.cycles.cycles`). A
      graph that was built to loop makes no such hand-offs.
    - ``repeated_dispatch``: an agent asks another ``dispatches`` times for the same, and gets
      nothing new (:func:`baton.findings.repeats.same_dispatches`).
    - ``repeated_call``: a run makes the same call with the same answer ``calls`` times in a row.
    """
    found: list[Finding] = []
    doubts: list[str] = []
    for cycle in cycles(turn, limits.rounds):
        state = idle(trace, turn, cycle)
        names = [renames.get(d.to_agent, d.to_agent) for d in cycle]
        if state:
            found.append(_cycle_found(turn, cycle, names))
        elif state is None:
            doubts.append(f"`{names[0]}` gets control over and over")
    for row, proven in same_dispatches(trace, turn, limits.dispatches):
        name = renames.get(row[0].to_agent, row[0].to_agent)
        if proven:
            found.append(_dispatch_found(row, name))
        else:
            doubts.append(f"`{name}` is asked over and over")
    for run in turn.runs:
        for calls in same_calls(trace, run, limits.calls, limits.ignore_tools):
            found.append(_call_found(run, calls, renames.get(run.agent, run.agent)))
    if found:
        return found
    if doubts:
        return Untold(says=f"{doubts[0]}; record prompts and answers to tell whether it is a loop")
    return Clear(says="no loop")


def _cycle_found(turn: Turn, cycle: Sequence[Dispatch], names: Sequence[str]) -> Finding:
    period = period_of(cycle)
    rounds = len(cycle) // period
    way = " → ".join(f"`{name}`" for name in [names[period - 1], *names[:period]])
    runs = [id_ for d in cycle for id_ in d.runs]
    return Finding(
        kind="hand_off_cycle",
        says=f"{way}: {rounds} times round, and nothing new after the first",
        evidence=[Evidence(ids=[turn.id, *(d.id for d in cycle), *runs])],
        details={"agents": list(names[:period]), "rounds": rounds},
    )


def _dispatch_found(row: Sequence[Dispatch], name: str) -> Finding:
    ids = [id_ for d in row for id_ in (d.id, d.call) if id_ is not None]
    quote = row[0].prompt.plain()[:200] if row[0].prompt is not None else None
    return Finding(
        kind="repeated_dispatch",
        says=f"`{name}` was asked for the same {len(row)} times, and brought nothing new",
        evidence=[Evidence(ids=ids, quote=quote)],
        details={"to": name, "times": len(row)},
    )


def _call_found(run: AgentRun, calls: Sequence[ToolCall], name: str) -> Finding:
    tool = calls[0].name
    return Finding(
        kind="repeated_call",
        says=f"`{name}` called `{tool}` {len(calls)} times in a row with the same arguments, "
        "and got the same answer",
        evidence=[Evidence(ids=[run.id, *(call.id for call in calls)])],
        details={"agent": name, "tool": tool, "times": len(calls)},
    )
