"""Work that goes to the wrong agent, or to one that does not exist."""

from __future__ import annotations

from random import Random

from baton.model import AgentCard, Said, Trace

from .seeded import Place, Seeded, call_of, pick, replace_text, without_below

STRANGERS = ("archive_clerk", "billing_agent", "night_porter", "stock_keeper", "weather_agent")


def wrong_target(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Send a dispatch to another agent of the system, who does the work in its own name."""
    place = pick(trace, random, lambda p: "to_agent" not in p.dispatch.unknown)
    if place is None:
        return None
    dispatch, old = place.dispatch, place.dispatch.to_agent
    agents = {run.agent for turn in trace.turns for run in turn.runs} | set(trace.agents)
    others = sorted(agents - {old, dispatch.from_agent or ""}) or sorted({*STRANGERS} - {old})
    new = random.choice(others)
    place.trace.agents.setdefault(new, AgentCard())
    _rename(place, new)
    for run in place.children:
        run.agent = new
        run.node = None if run.node in (None, old) else new
    for below in (d for turn in place.trace.turns for d in turn.dispatches):
        if below.from_run in dispatch.runs:
            below.from_agent = new
    says = f"`{old}` should have had the work, `{new}` got it"
    return place.trace, Seeded(kind="wrong_target", subject=[dispatch.id], says=says)


def unknown_target(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Misspell the receiver of a dispatch, so that nobody was set to work."""
    place = pick(
        trace,
        random,
        lambda p: (
            p.sender is not None
            and p.dispatch.kind in ("transfer", "delegate")
            and "to_agent" not in p.dispatch.unknown
            and len(p.dispatch.to_agent) > 3
            and bool(p.dispatch.runs)
        ),
    )
    if place is None or place.sender is None:
        return None
    dispatch, old = place.dispatch, place.dispatch.to_agent
    new = _misspelt(old, random)
    _rename(place, new)
    without_below(place.turn, dispatch)
    dispatch.result, dispatch.status = None, "refused"
    dispatch.error = f"there is no agent `{new}`"
    call = call_of(place)
    if call is not None:
        call.status, call.refused_by, call.result = "refused", "runtime", None
    if dispatch.kind == "transfer":
        last = [step for step in place.sender.steps if isinstance(step, Said)]
        place.turn.output = last[-1].content if last else None
    says = f"`{old}` is misspelt as `{new}`"
    return place.trace, Seeded(kind="unknown_target", subject=[dispatch.id], says=says)


def _rename(place: Place, new: str) -> None:
    old = place.dispatch.to_agent
    place.dispatch.to_agent = new
    call = call_of(place)
    if call is not None:
        call.arguments = replace_text(call.arguments, old, new)
        call.name = call.name.replace(old, new)


def _misspelt(name: str, random: Random) -> str:
    """Swap two letters, leave one out, or double one."""
    at = random.randrange(1, len(name) - 1)
    ways = [
        name[:at] + name[at + 1] + name[at] + name[at + 2 :],
        name[:at] + name[at + 1 :],
        name[:at] + name[at] + name[at:],
    ]
    changed = [way for way in ways if way != name]
    return random.choice(changed)
