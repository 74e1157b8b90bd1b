"""Which facts of a run its trace holds, and holds right."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from baton.model import AgentRun, Content, Dispatch, ToolCall, Trace, known
from baton.model.views import round_trip

from .happened import HandOff, Happened


class Seen(NamedTuple):
    """A run as it was read; ``pairs`` are the dispatches that happened with what was read."""

    traces: Sequence[Trace]
    run: Happened
    pairs: list[tuple[HandOff, tuple[Trace, Dispatch] | None]]
    extra: int


def facts(traces: Sequence[Trace], run: Happened) -> dict[str, bool | None]:
    """Tell of each fact whether it is known and right; ``None`` if it did not occur."""
    seen = _seen(traces, run)
    return {name: tells(seen) for name, tells in FACTS.items()}


def _seen(traces: Sequence[Trace], run: Happened) -> Seen:
    left = [(t, d) for t in traces for turn in t.turns for d in turn.dispatches]
    pairs: list[tuple[HandOff, tuple[Trace, Dispatch] | None]] = []
    for hand_off in run.hand_offs or ():
        wanted = (hand_off.sender, hand_off.receiver, hand_off.kind)
        same = [p for p in left if (p[1].from_agent, p[1].to_agent, p[1].kind) == wanted]
        found = next((p for p in same if _plain(p[1].prompt) == _json(hand_off.prompt)), None)
        found = found or next(iter(same), None)
        if found is not None:
            left.remove(found)
        pairs.append((hand_off, found))
    return Seen(traces, run, pairs, len(left))


def _chain(seen: Seen) -> bool | None:
    if seen.run.chain is None:
        return None
    names = [run.agent if known(trace, run, "agent") else None for trace, run in _runs(seen.traces)]
    if seen.run.parallel:
        return sorted(map(str, names)) == sorted(seen.run.chain)
    return names == seen.run.chain


def _kind(seen: Seen) -> bool | None:
    if not seen.run.hand_offs and not (seen.run.hand_offs is not None and seen.extra):
        return None
    return seen.extra == 0 and all(found is not None for _, found in seen.pairs)


def _prompt(seen: Seen) -> bool | None:
    return _all(
        found is not None
        and known(*found, "prompt")
        and _plain(found[1].prompt) == _json(hand_off.prompt)
        for hand_off, found in seen.pairs
        if hand_off.prompt is not None
    )


def _result(seen: Seen) -> bool | None:
    return _all(
        found is not None
        and known(*found, "result")
        and _plain(found[1].result) == _json(hand_off.result)
        for hand_off, found in _answered(seen)
    )


def _next_step(seen: Seen) -> bool | None:
    return _all(
        found is not None and _went_on(*found)
        for hand_off, found in _answered(seen)
        if hand_off.result not in seen.run.answers
    )


def _answered(seen: Seen) -> Iterator[tuple[HandOff, tuple[Trace, Dispatch] | None]]:
    for hand_off, found in seen.pairs:
        if hand_off.result is not None and hand_off.kind in ("delegate", "return"):
            yield hand_off, found


def _went_on(trace: Trace, dispatch: Dispatch) -> bool:
    """Tell whether what the caller did with the answer is there, with what it said."""
    if dispatch.kind == "return":
        callers = [run for _, run in _runs([trace]) if run.id in dispatch.runs]
        after = [step for run in callers for step in run.steps]
    else:
        after = round_trip(trace, dispatch).after
        ids = {step.id for step in after}
        callers = [run for _, run in _runs([trace]) if ids & {step.id for step in run.steps}]
    return bool(after) and all(known(trace, run, "steps") for run in callers)


def _tools_allowed(seen: Seen) -> bool | None:
    return _all(
        found is not None and _allowed(*found) == sorted(hand_off.tools)
        for hand_off, found in seen.pairs
        if hand_off.tools
    )


def _allowed(trace: Trace, dispatch: Dispatch) -> list[str] | None:
    if isinstance(dispatch.tools_allowed, list):
        return sorted(dispatch.tools_allowed)
    for _, run in _runs([trace]):
        if run.id in dispatch.runs and known(trace, run, "tools_offered"):
            return None if run.tools_offered is None else sorted(run.tools_offered)
    return None


def _tools_called(seen: Seen) -> bool | None:
    if not seen.run.calls:
        return None
    runs = list(_runs(seen.traces))
    calls = [
        (run.agent, step.name, step.status == "ok")
        for _, run in runs
        for step in run.steps
        if isinstance(step, ToolCall) and step.dispatch is None
    ]
    return sorted(calls) == sorted(seen.run.calls)


def _tokens(seen: Seen) -> bool | None:
    if seen.run.tokens is None:
        return None
    spent = [trace.usage for trace in seen.traces]
    ways: set[tuple[int, int]] = set()
    for cached in (False, True):  # truths tell of input tokens with cached ones or without
        more = [(u.cache_read_tokens or 0) + (u.cache_write_tokens or 0) if u else 0 for u in spent]
        read = sum((u.input_tokens or 0) if u else 0 for u in spent)
        ways.add(
            (read + sum(more) * cached, sum((u.output_tokens or 0) if u else 0 for u in spent))
        )
    return all(u is not None and u.complete for u in spent) and seen.run.tokens in ways


def _cost(seen: Seen) -> bool | None:
    if seen.run.cost is None:
        return None
    spent = [trace.usage.cost_usd if trace.usage else None for trace in seen.traces]
    told = [cost for cost in spent if cost is not None]
    return len(told) == len(spent) and abs(sum(told) - seen.run.cost) < 1e-6


FACTS: dict[str, Callable[[Seen], bool | None]] = {
    "chain": _chain,
    "kind": _kind,
    "prompt": _prompt,
    "tools allowed": _tools_allowed,
    "tools called": _tools_called,
    "result": _result,
    "next step": _next_step,
    "tokens": _tokens,
    "cost": _cost,
}


def held(traces: Sequence[Trace]) -> set[str]:
    """Name those facts that every run has, told by its truth or not, and that a trace holds."""
    dispatches = [(t, d) for t in traces for turn in t.turns for d in turn.dispatches]
    found = {"tools allowed": any(_allowed(*each) is not None for each in dispatches)}
    found["cost"] = any(trace.usage and trace.usage.cost_usd is not None for trace in traces)
    return {name for name, holds in found.items() if holds}


ALWAYS_THERE = ("tools allowed", "cost")


def _all(each: Iterator[bool]) -> bool | None:
    told = list(each)
    return all(told) if told else None


def _runs(traces: Sequence[Trace]) -> Iterator[tuple[Trace, AgentRun]]:
    for trace in traces:
        for turn in trace.turns:
            for run in turn.runs:
                yield trace, run


def _plain(content: Content | None) -> Any:
    return None if content is None else _json(content.plain())


def _json(value: Any) -> Any:
    """Return a text that is JSON as data: whether it was read as such is no difference."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
