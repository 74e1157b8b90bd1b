"""Steps of runs in the order of the work, each in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from .trace import AgentRun, GotBack, HandedOff, Said, Step, ToolCall, Trace
from .views import TraceIndex, indexed


class Place(NamedTuple):
    """A step, or a run, in the order of the work."""

    order: int
    run: AgentRun
    step: Step | None


def places_of(trace: Trace) -> dict[str, Place]:
    """Number runs and steps in the order of the work: a run's steps inside its call."""
    places: dict[str, Place] = {}
    with indexed(trace) as index:
        for first in index.runs.values():
            # A stack instead of recursion: recordings may be deeper than Python's limit.
            due: list[Iterator[AgentRun]] = [iter([first])]
            while due:
                run = next(due[-1], None)
                if run is None:
                    due.pop()
                elif run.id not in places:
                    due.append(_walk(index, run, places))
    return places


def _walk(index: TraceIndex, run: AgentRun, places: dict[str, Place]) -> Iterator[AgentRun]:
    """Number a run and its steps; yields, between these, the runs that a step started."""
    places[run.id] = Place(len(places), run, None)
    for step in run.steps:
        places[step.id] = Place(len(places), run, step)
        if isinstance(step, HandedOff) and step.dispatch in index.dispatches:
            yield from index.chosen(set(index.dispatches[step.dispatch].runs))


class Shown(NamedTuple):
    """A step as one line: its agent, and what was said, called or handed over.

    ``kind`` is ``said``, ``thought``, ``call``, ``back`` or the kind of a dispatch; ``name`` is the
    tool, or the agent that the step went to.
    """

    agent: str
    run: AgentRun
    kind: str
    name: str
    text: str


def shown_steps(trace: Trace) -> dict[str, Shown]:
    """Return the lines by step id, in order."""
    results = {
        made.id: made.result for turn in trace.turns for made in turn.dispatches if made.result
    }
    prompts = {made.id: made for turn in trace.turns for made in turn.dispatches}
    shown: dict[str, Shown] = {}
    for id_, place in places_of(trace).items():
        step = place.step
        if isinstance(step, Said):
            kind, name = ("thought" if step.thought else "said"), ""
            text = f"{kind}: {step.content.plain()}"
        elif isinstance(step, ToolCall):
            # A call that makes a dispatch is shown by its `HandedOff`.
            if step.dispatch is not None:
                continue
            kind, name = "call", step.name
            result = step.result.plain() if step.result is not None else step.error or step.status
            arguments = msgspec.json.encode(step.arguments).decode("utf-8", "replace")
            text = f"called {step.name}({arguments}) and got: {result}"
        elif isinstance(step, HandedOff):
            made = prompts.get(step.dispatch)
            prompt = made.prompt.plain() if made is not None and made.prompt is not None else ""
            kind = made.kind if made is not None else "delegate"
            name = made.to_agent if made is not None else "?"
            text = f"handed to {name}: {prompt}"
        elif isinstance(step, GotBack):
            back = results.get(step.dispatch)
            kind, name = "back", prompts[step.dispatch].to_agent if step.dispatch in prompts else ""
            text = f"got back: {back.plain() if back is not None else ''}"
        else:
            continue
        shown[id_] = Shown(place.run.agent, place.run, kind, name, " ".join(text.split()))
    return shown
