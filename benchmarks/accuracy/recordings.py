"""The good traces that faults are seeded into: real runs that ship in this repository."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from baton.model import AgentCard, Dispatch, InputError, ToolCall, Trace, known
from baton.readers import load_traces
from baton.testing.faults import copied

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = {
    "OpenTelemetry": ROOT / "tests/data/otel",
    "Claude": ROOT / "tests/data/claude",
    "Strands": ROOT / "tests/data/strands",
    "ADK": ROOT / "examples/adk/recordings",
}
HALVES = ("tune", "report")
# Of megabytes of lists; the loader in Python takes ten times as long, where the other one is not.
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Good(NamedTuple):
    """A trace in which nothing is wrong, where it is from, and which half it belongs to."""

    source: str
    name: str
    half: str
    trace: Trace


@cache
def entries(path: Path) -> list[Any]:
    """Read a list, once for all kinds of faults that it is for; nobody changes what it holds."""
    listed: list[Any] = yaml.load(path.read_text("utf-8"), _LOADER)  # noqa: S506 - a safe one
    return listed


@cache
def recordings() -> tuple[Good, ...]:
    """Load the recordings of runs that went well; scenarios of one program are in one half."""
    unfit = entries(HERE / "unfit.yaml")
    found = []
    for source, folder in SOURCES.items():
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "truth.json"):
            name = path.relative_to(folder).as_posix()
            if any(part in name for part in unfit):
                continue
            half = half_of(f"{path.parent.as_posix()[len(ROOT.as_posix()) :]}/{_scenario(path)}")
            found += [
                Good(source, name, half, trace) for trace in _traces(path) if _went_well(trace)
            ]
    return tuple(found)


def half_of(name: str) -> str:
    """Put a name into one of the two halves, the same one always."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


def _scenario(path: Path) -> str:
    return path.name.split(".")[0].split("_")[0]


def _traces(path: Path) -> Iterator[Trace]:
    try:
        traces = load_traces(path)
    except InputError:  # no recording of agents
        return
    for trace in traces:
        trace.source.location = None
        yield trace


def _went_well(trace: Trace) -> bool:
    """Tell whether a run came to its end, with nothing failed on the way."""
    dispatches = [d for turn in trace.turns for d in turn.dispatches if d.kind != "return"]
    calls = [
        step
        for turn in trace.turns
        for run in turn.runs
        for step in run.steps
        if isinstance(step, ToolCall)
    ]
    return (
        any(d.basis != "order" for d in dispatches)
        and all(turn.status == "completed" and turn.error is None for turn in trace.turns)
        and all(d.status in ("completed", "unknown") for d in dispatches)
        and all(call.status in ("ok", "unknown") for call in calls)
    )


def with_subsets(trace: Trace) -> Trace:
    """State for each dispatch the tools that its agents used: what a definition would say."""
    made = copied(trace)
    for turn in made.turns:
        for dispatch in turn.dispatches:
            runs = [run for run in turn.runs if run.id in dispatch.runs]
            stated = dispatch.tools_source not in (None, "offered")
            if not stated and runs and all(known(trace, run, "steps.tool_call") for run in runs):
                _define(dispatch, [s for run in runs for s in run.steps if isinstance(s, ToolCall)])
    return made


def with_definitions(trace: Trace) -> Trace:
    """Describe every agent of a system, as definitions do, and one that had nothing to do."""
    made = copied(trace)
    named = {run.agent for turn in made.turns for run in turn.runs} | set(made.agents)
    named |= {dispatch.to_agent for turn in made.turns for dispatch in turn.dispatches}
    for name in (*sorted(named), "idle_helper"):
        card = made.agents.setdefault(name, AgentCard())
        card.description = card.description or "An agent of this system."
    return made


def _define(dispatch: Dispatch, calls: list[ToolCall]) -> None:
    dispatch.tools_allowed = sorted({call.name for call in calls} | {"Read"})
    dispatch.tools_source = "definition"
    dispatch.unknown = [
        name for name in dispatch.unknown if name not in ("tools_allowed", "tools_source")
    ]
