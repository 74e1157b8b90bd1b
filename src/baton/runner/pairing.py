"""Which case a trace belongs to."""

from __future__ import annotations

from typing import NamedTuple

from baton.model import Dataset, Trace
from baton.model.redact import ON, Redaction, is_redacted


class Match(NamedTuple):
    """The place of a trace's case; or, without one, why there is none."""

    position: int | None
    problem: str | None = None


def find_case(trace: Trace, dataset: Dataset, redaction: Redaction = ON) -> Match:
    """Find the case of a trace: by its case id, its own id, else its first user message.

    The message of a trace that was redacted before meets that of a case as it would be redacted.
    """
    by = ""
    for case_id in (trace.case, trace.id):
        places = dataset.by_id(case_id) if case_id else []
        if places:
            by = f"the id `{case_id}`"
            break
    else:
        places, by = _by_first_input(trace, dataset, redaction)
    if len(places) == 1:
        return Match(places[0])
    name = name_of(trace.id, trace.source.location)
    if not places:
        return Match(None, redaction.text(f"no case for {name}: {by}"))
    names = ", ".join(f"`{dataset.cases[place].id}`" for place in places[:5])
    return Match(None, redaction.text(f"{len(places)} cases for {name}: {names} share {by}"))


def name_of(trace_id: str, location: str | None) -> str:
    """Name a trace by its id and where it was read from."""
    return f"trace `{trace_id}`" + (f" ({location})" if location else "")


def _by_first_input(trace: Trace, dataset: Dataset, redaction: Redaction) -> tuple[list[int], str]:
    first = trace.turns[0].input if trace.turns else None
    if first is None or not first.plain():
        return [], "none has its id, and it does not hold the user's first message"
    message = first.plain()
    places = dataset.by_input(message)
    if not places and is_redacted(message):
        places = dataset.by_redacted_input(message, redaction.text)
    told = redaction.text(message)  # before it is shortened: half a key is not known as one
    quoted = told if len(told) <= 60 else f"{told[:57]}..."
    if places:
        return places, f"the first message “{quoted}”"
    said = f"none has its id or its first message “{quoted}”"
    later = dataset.by_later_session(message)
    if later is not None:
        said += (
            f"; it holds a later session of `{dataset.ids[later]}`, and a case is scored from one "
            "trace that has all its turns"
        )
    return [], said
