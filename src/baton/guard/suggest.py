"""A policy made from recordings: limits that good runs keep, with the edges and tools they use."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from baton.model import Trace, Turn, counted
from baton.model.views import sum_usage, token_count, tool_calls

from .dry_run import events_of
from .policy import DEEPEST
from .state import task_key

SHARE = 0.999
"""The share of good requests that keep each limit."""
_LIMITS = {
    "max_depth": "depth",
    "max_dispatches": "dispatches of a request",
    "max_per_parent": "dispatches of one run",
    "max_fan_out": "dispatches without an answer, of one run",
    "max_same_task": "the same task for the same agent",
    "max_tokens": "tokens, cached ones included",
    "max_cost_usd": "US dollars",
    "max_seconds": "seconds",
}


class _Seen:
    """The figures of good requests, and who did what."""

    def __init__(self) -> None:
        self.good = self.others = 0
        self.figures: dict[str, list[float]] = defaultdict(list)
        self.edges: dict[str, set[str]] = defaultdict(set)
        self.tools: dict[str, set[str]] = defaultdict(set)

    def add(self, trace: Trace, turn: Turn) -> None:
        """Add one request, if it went well."""
        fine = {"completed", "waiting"}
        if turn.status != "completed" or not all(d.status in fine for d in turn.dispatches):
            self.others += 1
            return
        self.good += 1
        parents: Counter[str] = Counter()
        running: Counter[str] = Counter()
        tasks: Counter[bytes] = Counter()
        deepest = widest = 0
        # A refused or failed call is not a reason to allow the tool.
        worked = {
            each.id
            for each in tool_calls(turn, dispatches="exclude")
            if each.status in ("ok", "unknown")
        }
        for event in events_of(trace, turn):
            if event.on == "dispatch":
                parents[event.parent] += 1
                running[event.parent] += 1
                widest = max(widest, running[event.parent])
                deepest = max(deepest, event.depth)
                if event.prompt is not None:
                    tasks[task_key(event)] += 1
                if event.sender is not None and not {"sender", "to"} & set(event.unknown):
                    self.edges[event.sender].add(event.to)
            elif event.on == "output":
                running[event.parent] -= 1
            elif event.id in worked and event.sender is not None and "to" not in event.unknown:
                self.tools[event.to].add(event.tool or "")
        limits: dict[str, float | None] = {
            "max_depth": deepest,
            "max_dispatches": parents.total(),
            "max_per_parent": max(parents.values(), default=0),
            "max_fan_out": widest,
            "max_same_task": max(tasks.values(), default=None),
        }
        usage = sum_usage([run.usage for run in turn.runs])
        if usage is not None and usage.complete:
            limits |= {"max_tokens": token_count(usage), "max_cost_usd": usage.cost_usd}
        if turn.started is not None and turn.ended is not None:
            limits["max_seconds"] = turn.ended - turn.started
        for name, value in limits.items():
            if value is not None:
                self.figures[name].append(value)


def suggest(traces: Iterable[Trace]) -> str:
    """Return a policy as YAML with comments, made from the requests that went well.

    Names in it come from the recordings: read it before it is used.
    """
    seen = _Seen()
    for trace in traces:
        for turn in trace.turns:
            seen.add(trace, turn)
    left_out = f" {counted(seen.others, 'other')} failed and were left out." if seen.others else ""
    lines = [
        "# A starting point, made from recordings: read it, and loosen what is only due to chance.",
        f"# Limits hold for {SHARE:.1%} of {counted(seen.good, 'good request')}.{left_out}",
        'version: "1"',
        "on_error: closed  # `open` lets pass what a rule could not decide",
        "rules:",
    ]
    for name, words in _LIMITS.items():
        values = sorted(seen.figures.get(name, ()))
        if not values:
            lines.append(f"  # no {name}: the recordings do not state it ({words})")
            continue
        # The least figure that this share keeps; with an interpolated one, good runs would break
        # the rule.
        limit = values[math.ceil(SHARE * len(values)) - 1]
        shown = f"{math.ceil(limit * 100) / 100:g}" if name == "max_cost_usd" else _whole(limit)
        # A limit of 0 would refuse the very first dispatch.
        shown = str(min(int(shown), DEEPEST)) if name == "max_depth" else shown
        if float(shown) <= 0:
            lines.append(f"  # no {name}: good requests had none")
            continue
        lines.append(
            f"  - {name}: {shown}  # {words}: {round(values[-1], 3):g} at most in "
            f"{counted(len(values), 'request')}"
        )
    if seen.edges:
        lines += ["  - allowed_edges:  # edges seen; all others are refused"]
        lines += [
            f"      {json.dumps(sender)}: {json.dumps(sorted(receivers))}"
            for sender, receivers in sorted(seen.edges.items())
        ]
        lines += ["    action: warn  # `block` once the list is complete"]
    names: set[str] = set()
    for agent, tools in sorted(seen.tools.items()):
        name = f"tools_of_{re.sub('[^a-z0-9]+', '_', agent.casefold()).strip('_')[:40]}"
        while name in names:
            name = f"{name}_2"
        names.add(name)
        lines += [
            f"  - name: {name}",
            f"    allowed_tools: {json.dumps(sorted(tools))}  # seen",
            f"    for: {{to: {json.dumps([agent])}}}",
            "    action: warn",
        ]
    lines += [
        "  - output: {any: [{secrets: [secrets]}]}",
        "    action: redact",
    ]
    return "\n".join(lines) + "\n"


def _whole(number: float) -> str:
    return str(math.ceil(number))
