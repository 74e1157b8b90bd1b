"""Work that is done with forbidden tools, over and over, or not at all."""

from __future__ import annotations

import copy
from random import Random

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Step,
    ToolCall,
    Trace,
    known,
)

from .seeded import Place, Seeded, call_of, pick

FOREIGN = ("Bash", "delete_record", "drop_table", "send_email", "transfer_funds", "WebFetch")
ERRORS = (
    "Error: 503 Service Unavailable",
    "Traceback (most recent call last): TimeoutError: the model did not answer",
    "API Error: 529 overloaded_error",
    "Error: tool execution failed: connection refused",
)
AGAIN = ("", " Please.", " Try again.", "!")


def tool_outside_subset(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Let a receiver call a tool that it was not given: one seen elsewhere, or a foreign one."""
    place = pick(trace, random, _limited)
    if place is None:
        return None
    allowed = place.dispatch.tools_allowed
    names = {name.split("(")[0] for name in allowed} if isinstance(allowed, list) else set()
    calls = (s for t in trace.turns for r in t.runs for s in r.steps if isinstance(s, ToolCall))
    seen = {call.name for call in calls if call.dispatch is None}
    open_ended = tuple(name.rstrip("*") for name in names if name.endswith("*"))
    foreign = [
        n for n in sorted(seen | {*FOREIGN}) if n not in names and not n.startswith(open_ended)
    ]
    if not foreign:
        return None
    run = place.children[0]
    name = random.choice(foreign)
    call = ToolCall(
        id=f"{place.dispatch.id}-outside", name=name, arguments={}, result=Content(text="done")
    )
    run.steps.insert(random.randrange(len(run.steps) + 1), call)
    says = f"`{run.agent}` called `{name}`, which it was not given"
    subject = [place.dispatch.id, run.id, call.id]
    return place.trace, Seeded(kind="tool_outside_subset", subject=subject, says=says)


def _limited(place: Place) -> bool:
    dispatch = place.dispatch
    stated = isinstance(dispatch.tools_allowed, list) and dispatch.tools_source != "offered"
    children = place.children
    return (
        stated
        and bool(children)
        and children[0].agent == dispatch.to_agent
        and known(place.trace, children[0], "steps.tool_call")
    )


def loop(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Make a dispatch three to five times more, in nearly the same words."""
    place = pick(trace, random, _repeatable)
    if place is None or place.sender is None:
        return None
    first, times = place.dispatch, random.randint(3, 5)
    at, steps = place.came_back + 1, []
    for number in range(1, times + 1):
        steps += _once_more(place, number, random.choice(AGAIN))
    place.sender.steps[at:at] = steps
    says = f"`{first.to_agent}` was asked the same {times + 1} times"
    made = [d.id for d in place.turn.dispatches if d.id.startswith(f"{first.id}-loop-")]
    return place.trace, Seeded(kind="loop", subject=[first.id, *made], says=says)


def _repeatable(place: Place) -> bool:
    dispatch = place.dispatch
    if dispatch.kind != "delegate" or dispatch.status != "completed" or place.came_back < 0:
        return False
    return (
        dispatch.prompt is not None
        and bool(dispatch.prompt.text)
        and call_of(place) is not None
        and _alone(place)
    )


def _alone(place: Place) -> bool:
    """Tell whether the receiver handed nothing on."""
    return not {d.from_run for d in place.turn.dispatches} & set(place.dispatch.runs)


def _once_more(place: Place, number: int, suffix: str) -> list[Step]:
    """Copy a dispatch with its call and runs; return the sender's new steps."""
    first, call = place.dispatch, call_of(place)
    if call is None:
        return []
    end = f"-loop-{number}"
    made: Dispatch = copy.deepcopy(first)
    made.id, made.call, made.group = f"{first.id}{end}", f"{call.id}{end}", None
    made.started = made.ended = None
    if made.prompt is not None and made.prompt.text is not None:
        made.prompt.text += suffix
    made.runs = [f"{id_}{end}" for id_ in first.runs]
    for run in place.children:
        place.turn.runs.append(_copied(run, end, made))
    place.turn.dispatches.append(made)
    again: ToolCall = copy.deepcopy(call)
    again.id, again.dispatch, again.at, again.ended = made.call, made.id, None, None
    return [
        again,
        HandedOff(id=f"{made.id}-handed", dispatch=made.id),
        GotBack(id=f"{made.id}-back", dispatch=made.id),
    ]


def _copied(run: AgentRun, end: str, made: Dispatch) -> AgentRun:
    again: AgentRun = copy.deepcopy(run)
    again.id, again.started_by = f"{run.id}{end}", [made.id]
    again.started = again.ended = None
    for step in again.steps:
        step.id, step.at = f"{step.id}{end}", None
    return again


def dead_child(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Let a receiver die at work: it failed, never answered, answered nothing or with an error."""
    place = pick(
        trace,
        random,
        lambda p: (
            p.dispatch.kind == "delegate"
            and p.dispatch.status == "completed"
            and bool(p.dispatch.result)
            and bool(p.children)
            and _alone(p)
        ),
    )
    if place is None:
        return None
    dispatch, run = place.dispatch, place.children[0]
    way = random.choice(("failed", "unanswered", "empty", "error_text"))
    run.output, run.steps = None, run.steps[: len(run.steps) // 2]
    dispatch.result, dispatch.error = None, None
    if way == "failed":
        run.status, dispatch.status = "failed", "failed"
        run.error = dispatch.error = random.choice(ERRORS)
    elif way == "unanswered":
        run.status, dispatch.status = "unknown", "unanswered"
        if place.sender is not None:
            steps = place.sender.steps
            place.sender.steps = [s for s in steps if not _is_back(s, dispatch)]
    elif way == "empty":
        dispatch.result = Content(text="")
    else:
        dispatch.result = run.output = Content(text=random.choice(ERRORS))
        run.unknown = [name for name in run.unknown if name != "output"]
    says = f"`{dispatch.to_agent}` came to no end: {way}"
    return place.trace, Seeded(kind="dead_child", subject=[dispatch.id, run.id], says=says)


def _is_back(step: Step, dispatch: Dispatch) -> bool:
    return isinstance(step, GotBack) and step.dispatch == dispatch.id
