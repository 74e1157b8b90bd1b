"""Which case a trace belongs to."""

from __future__ import annotations

from typing import NamedTuple

from baton.model import Dataset, Trace


class Match(NamedTuple):
    """The place of a trace's case; or, without one, why there is none."""

    position: int | None
    problem: str | None = None


def find_case(trace: Trace, dataset: Dataset) -> Match:
    """Find the case of a trace: by its case id, its own id, else its first user message."""
    by = ""
    for case_id in (trace.case, trace.id):
        places = dataset.by_id(case_id) if case_id else []
        if places:
            by = f"the id `{case_id}`"
            break
    else:
        places, by = _by_first_input(trace, dataset)
    if len(places) == 1:
        return Match(places[0])
    name = name_of(trace.id, trace.source.location)
    if not places:
        return Match(None, f"no case for {name}: {by}")
    names = ", ".join(f"`{dataset.cases[place].id}`" for place in places[:5])
    return Match(None, f"{len(places)} cases for {name}: {names} share {by}")


def name_of(trace_id: str, location: str | None) -> str:
    """Name a trace by its id and where it was read from."""
    return f"trace `{trace_id}`" + (f" ({location})" if location else "")


def _by_first_input(trace: Trace, dataset: Dataset) -> tuple[list[int], str]:
    first = trace.turns[0].input if trace.turns else None
    if first is None or not first.plain():
        return [], "none has its id, and it does not hold the user's first message"
    places = dataset.by_input(first.plain())
    quoted = first.plain() if len(first.plain()) <= 60 else f"{first.plain()[:57]}..."
    if places:
        return places, f"the first message “{quoted}”"
    said = f"none has its id or its first message “{quoted}”"
    later = dataset.by_later_session(first.plain())
    if later is not None:
        said += (
            f"; it holds a later session of `{dataset.ids[later]}`, and a case is scored from one "
            "trace that has all its turns"
        )
    return [], said
