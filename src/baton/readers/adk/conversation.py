"""Events of an ADK conversation as a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from baton.formats.adk_events import Event
from baton.model import SCHEMA_VERSION, Dropped, Source, Trace, Turn
from baton.model.views import sum_usage
from baton.readers.catalog import Catalog

from .draft import Session
from .turn import is_plumbing, read_turn
from .wire import Wire

_NEVER_TOLD = ["run.tools_offered", "run.inside", "turn.state"]


def read_conversation(
    wire: Wire,
    *,
    id_: str,
    source: Source,
    catalog: Catalog,
    case: str | None = None,
    state: dict[str, Any] | None = None,
    untold: Sequence[str] = (),
) -> Trace:
    """Turn events, in the order they came, into a trace.

    ADK's own order is kept: times are not sorted by, for a paused call is answered with an
    earlier one. Partial chunks are left out, as the whole text follows them.
    ``untold`` names what else this source does not record.
    """
    whole, dropped = _whole_events(wire.events)
    session = Session(catalog)
    turns: list[Turn] = []
    groups = _by_invocation(whole)
    for number, (invocation, events) in enumerate(groups, 1):
        torn = wire.torn and number == len(groups)
        turns.append(read_turn(session, invocation or f"turn{number}", events, torn))
    trace = Trace(
        schema_version=SCHEMA_VERSION,
        id=id_,
        case=case,
        source=source,
        turns=turns,
        agents=catalog,
        state=state,
        usage=sum_usage([run.usage for turn in turns for run in turn.runs]),
        unknown=[*_NEVER_TOLD, *untold],
        dropped=[*wire.dropped, *dropped],
    )
    _name_unknown(trace, state is not None)
    return trace


def _whole_events(events: list[Event]) -> tuple[list[Event], list[Dropped]]:
    """Leave out partial chunks and repeated events; count chunks whose whole never came."""
    whole: list[Event] = []
    seen: dict[str, Event] = {}
    open_chunks: dict[tuple[str | None, str | None], list[Event]] = {}
    for event in events:
        key = (event.invocation_id, event.author)
        if event.partial:
            open_chunks.setdefault(key, []).append(event)
            continue
        open_chunks.pop(key, None)
        if event.id is None or seen.get(event.id) != event:
            whole.append(event)
        if event.id is not None:
            seen[event.id] = event
    lost = [event for chunks in open_chunks.values() for event in chunks]
    if not lost:
        return whole, []
    text = "".join((event.content.text() if event.content else None) or "" for event in lost)
    # A chunk still tells who was at work when the stream ended, and that it ended too early.
    whole += [msgspec.structs.replace(chunks[-1], content=None) for chunks in open_chunks.values()]
    what = "partial chunks without the whole they belong to"
    return whole, [Dropped(what=what, count=len(lost), example=text[:80] or None)]


def _by_invocation(events: list[Event]) -> list[tuple[str | None, list[Event]]]:
    """Group events by invocation; a server's error frame belongs to the one before it."""
    groups: dict[str | None, list[Event]] = {}
    last: str | None = None
    for event in events:
        if event.invocation_id is not None or event.author is not None:
            last = event.invocation_id
        groups.setdefault(last, []).append(event)
    return [
        (invocation, group)
        for invocation, group in groups.items()
        if any(event.author is None or not is_plumbing(event) for event in group)
    ]


def _name_unknown(trace: Trace, state_told: bool) -> None:
    """Name what this source did not record."""
    if not state_told:
        trace.unknown.append("state")
    for turn in trace.turns:
        if turn.input is None:
            # The first event comes when a model has answered: the turn began before that.
            turn.started = None
            turn.unknown += ["input", "started"]
        for run in turn.runs:
            if run.input is None:
                run.unknown.append("input")
            if run.usage is None and "usage" not in run.unknown:
                run.unknown.append("usage")
            if run.model is None and "model" not in run.unknown:
                run.unknown.append("model")
