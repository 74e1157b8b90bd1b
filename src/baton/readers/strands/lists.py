"""Trajectories and interactions that are lists: tools called, nodes visited, what they said."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from baton.formats.strands import Interaction
from baton.model import AgentRun, Content, Dropped, Said, ToolCall, Turn
from baton.readers.ids import Ids

MAIN = "main"
_NOT_TOLD = ["inside", "input", "tools_offered", "model", "usage", "started", "ended"]


class Listed(NamedTuple):
    """A turn, and what was in the lists and has no place in it."""

    turn: Turn
    dropped: list[Dropped]


def list_turn(
    trajectory: list[Any] | None, interactions: list[Interaction] | None, ids: Ids
) -> Listed:
    """Read what a task returned of its own; how agents followed each other is not told."""
    turn = Turn(id=ids.new("turn"), unknown=["dispatches"])
    lost: Counter[str] = Counter()
    named = [each for each in interactions or () if each.node_name]
    lost["an interaction without the name of a node"] += len(interactions or ()) - len(named)
    lost["a dependency of an interaction: it does not tell what kind of hand-off it was"] += sum(
        len(each.dependencies or ()) for each in named
    )
    steps = trajectory or []
    nodes = {each.node_name for each in named}
    if steps and all(isinstance(step, str) and step in nodes for step in steps):
        turn.runs = _visits(steps, named, ids)
    elif named:
        turn.runs = [_run(each.node_name or MAIN, each, ids) for each in named]
        if _comes_back(named):
            turn.unknown.append("runs")
        _add_calls(turn, steps, lost, ids)
    elif trajectory is not None:
        turn.runs = [_run(MAIN, None, ids)]
        turn.runs[0].unknown += ["agent", "output"]
        _add_calls(turn, steps, lost, ids)
    else:
        turn.unknown.append("runs")
    return Listed(turn, [Dropped(what=what, count=n) for what, n in lost.items() if n])


def _visits(names: list[str], named: list[Interaction], ids: Ids) -> list[AgentRun]:
    """Make a run of each visit; what a node said is told of its last one."""
    last = {name: place for place, name in enumerate(names)}
    told = {each.node_name: each for each in named}
    return [
        _run(name, told[name] if last[name] == place else None, ids)
        for place, name in enumerate(names)
    ]


def _run(name: str, told: Interaction | None, ids: Ids) -> AgentRun:
    run = AgentRun(id=ids.new("run"), agent=name, unknown=[*_NOT_TOLD, "steps"])
    messages = told.messages if told is not None else None
    said = [messages] if isinstance(messages, str) else messages or []
    texts = [text for text in said if isinstance(text, str)]
    run.steps += [Said(id=ids.new("say"), content=Content(text=text)) for text in texts]
    run.output = Content(text=texts[0]) if len(texts) == 1 else None
    if run.output is None and name != MAIN:
        run.unknown.append("output")
    return run


def _comes_back(named: list[Interaction]) -> bool:
    """Tell whether a node follows one that stands after it: it was visited more than once."""
    seen: set[Any] = set()
    for each in named:
        if any(name not in seen for name in each.dependencies or () if isinstance(name, str)):
            return True
        seen.add(each.node_name)
    return False


def _add_calls(turn: Turn, steps: list[Any], lost: Counter[str], ids: Ids) -> None:
    """Give the calls to the only run there is; those of several agents belong to nobody."""
    calls = [call for step in steps if (call := _call(step, ids)) is not None]
    lost["a step of a trajectory that names no tool"] += len(steps) - len(calls)
    if len(turn.runs) != 1:
        lost["a tool call whose agent is not told"] += len(calls)
        return
    (run,) = turn.runs
    run.steps[:0] = calls
    more = sum(_more(step) for step in steps)
    lost["an earlier call of a tool: only the last one is told"] += more
    if not more and len(calls) == len(steps):
        run.unknown[run.unknown.index("steps")] = "steps.said"


def _call(step: Any, ids: Ids) -> ToolCall | None:
    if isinstance(step, str):
        return ToolCall(
            id=ids.new("call"), name=step, status="unknown", unknown=["arguments", "result"]
        )
    if not isinstance(step, dict) or not isinstance(step.get("name"), str):
        return None
    call = ToolCall(id=ids.new("call"), name=step["name"], arguments=step.get("input"))
    call.unknown += [] if "input" in step else ["arguments"]
    result, wrong = step.get("tool_result"), step.get("is_error")
    if wrong is True:
        call.status, call.error = "failed", None if result is None else str(result)
        return call
    call.status = "ok" if wrong is False else "unknown"
    if result is None:
        call.unknown.append("result")
    else:
        call.result = Content(text=result) if isinstance(result, str) else Content(data=result)
    return call


def _more(step: Any) -> int:
    """Return how many calls a step stands for, beyond the one it tells of."""
    count = step.get("call_count") if isinstance(step, dict) else None
    return max(0, count - 1) if isinstance(count, int) else 0
