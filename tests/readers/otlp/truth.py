"""Compares a trace with what is known to have happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from baton.model import Content, Dispatch, ToolCall, Trace, Turn

CAPTURES = Path(__file__).parents[2] / "data" / "otel"


def captures() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each recorded file with the scenario that was played."""
    for truth in sorted(CAPTURES.glob("*/truth.json")):
        for scenario in json.loads(truth.read_text())["scenarios"].values():
            for name in scenario["files"]:
                yield truth.parent / name, scenario


def differences(scenario: dict[str, Any], traces: list[Trace]) -> dict[str, str]:
    """Return by fact what differs; what a trace names as unknown differs from nothing."""
    if len(traces) != 1:
        return {"conversations": f"{len(traces)} traces"}
    found: dict[str, str] = {}
    trace, turns = traces[0], scenario.get("turns", [scenario])
    if len(turns) != len(trace.turns):
        return {"turns": f"{len(trace.turns)} turns, not {len(turns)}"}
    for wanted, turn in zip(turns, trace.turns, strict=True):
        found |= dict(_turn(wanted, turn))
    return found | dict(_spent(scenario, trace))


def _turn(wanted: dict[str, Any], turn: Turn) -> Iterator[tuple[str, str]]:
    chain = [run.agent for run in turn.runs]
    parallel = wanted.get("parallel_runs") or any(h.get("parallel") for h in wanted["handoffs"])
    if _ordered(chain, parallel) != _ordered(wanted["agent_run_chain"], parallel):
        yield "chain", f"{chain}, not {wanted['agent_run_chain']}"
    for fact, field in (("input", "input"), ("final_output", "output")):
        if fact in wanted and field not in turn.unknown:
            said = _plain(getattr(turn, field))
            if said != _json(wanted[fact]):
                yield field, f"{said!r}, not {wanted[fact]!r}"
    if wanted.get("status", turn.status) != turn.status:
        yield "turn_status", f"{turn.status}, not {wanted['status']}"
    yield from _hand_offs(wanted["handoffs"], turn)
    yield from _tools(wanted["domain_tools_called"], turn)
    for agent, names in (wanted.get("tools_available") or {}).items():
        for run in turn.runs:
            offered = run.tools_offered
            if run.agent == agent and offered is not None and sorted(offered) != sorted(names):
                yield "tools_offered", f"{agent}: {run.tools_offered}, not {names}"


def _hand_offs(wanted: list[dict[str, Any]], turn: Turn) -> Iterator[tuple[str, str]]:
    left = list(turn.dispatches)
    for hand_off in wanted:
        edge = (hand_off["from"], hand_off["to"], hand_off["kind"])
        dispatch = next((d for d in left if _edge(d) == edge), None)
        if dispatch is None:
            yield "hand_offs", f"no {edge} in {[_edge(d) for d in turn.dispatches]}"
            continue
        left.remove(dispatch)
        yield from _dispatch(hand_off, dispatch, turn)
    if left:
        yield "hand_offs", f"{[_edge(d) for d in left]} did not happen"


def _edge(dispatch: Dispatch) -> tuple[str | None, str, str]:
    return dispatch.from_agent, dispatch.to_agent, dispatch.kind


def _dispatch(wanted: dict[str, Any], dispatch: Dispatch, turn: Turn) -> Iterator[tuple[str, str]]:
    facts = ("prompt", "result") if dispatch.kind == "delegate" else ("prompt",)
    for fact in facts:
        said = _plain(getattr(dispatch, fact))
        failed = fact == "result" and wanted.get("status") == "failed"
        if fact not in dispatch.unknown and not failed and said != _json(wanted[fact]):
            yield fact, f"of {dispatch.to_agent}: {said!r}, not {wanted[fact]!r}"
    if wanted.get("status", dispatch.status) != dispatch.status:
        yield "status", f"of {dispatch.to_agent}: {dispatch.status}, not {wanted['status']}"
    steps = [step for run in turn.runs for step in run.steps if isinstance(step, ToolCall)]
    call = next((step.name for step in steps if step.id == dispatch.call), None)
    if call is not None and wanted.get("via_tool") not in (None, call):
        yield "via", f"{call}, not {wanted['via_tool']}"


def _tools(wanted: list[dict[str, Any]], turn: Turn) -> Iterator[tuple[str, str]]:
    calls = [
        (run.agent, step.name, step.arguments, step.status == "ok")
        for run in turn.runs
        for step in run.steps
        if isinstance(step, ToolCall) and step.dispatch is None
    ]
    asked = [(c["agent"], c["name"], c.get("args"), c.get("ok", True)) for c in wanted]
    for fact, part in (("tools", slice(0, 2)), ("tool_status", slice(0, 4, 3))):
        if sorted(map(repr, (c[part] for c in calls))) != sorted(repr(c[part]) for c in asked):
            yield fact, f"{[c[part] for c in calls]}, not {[c[part] for c in asked]}"
    told = sorted(repr(c[1:3]) for c in calls if c[2] is not None)
    if len(told) == len(asked) and told != sorted(repr(c[1:3]) for c in asked):
        yield "arguments", f"{told}"


def _spent(scenario: dict[str, Any], trace: Trace) -> Iterator[tuple[str, str]]:
    usage, wanted = trace.usage, scenario.get("tokens_total")
    if wanted and usage is not None and usage.input_tokens is not None:
        cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
        spent = {(usage.input_tokens + more, usage.output_tokens) for more in (0, cached)}
        if (wanted["input"], wanted["output"]) not in spent:
            yield "tokens", f"{sorted(spent, key=str)}, not {wanted}"
    elif wanted:
        yield "tokens", f"not told, not {wanted}"
    for agent, own in (scenario.get("tokens") or {}).items():
        runs = [r for turn in trace.turns for r in turn.runs if r.agent == agent and r.usage]
        written = sum(run.usage.output_tokens or 0 for run in runs if run.usage)
        if written != own["output"]:
            yield "tokens", f"of {agent}: {written}, not {own['output']}"


def _ordered(chain: list[str], parallel: Any) -> list[str]:
    return sorted(chain) if parallel else chain


def _plain(content: Content | None) -> Any:
    return None if content is None else _json(content.plain())


def _json(value: Any) -> Any:
    """Return a text that is JSON as data: whether it was read as such is no difference."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
    return value
