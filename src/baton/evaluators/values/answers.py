"""The structured answer of a turn."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.formats.nesting import decode_json
from baton.model import Content, ExpectedTurn, Trace, Turn, known

NOTHING: Any = msgspec.UNSET


def data_of(answer: Content | None) -> Any:
    """Return the data of an answer, or its text when all of it is one JSON object.

    ``NOTHING`` where there is neither: JSON inside prose is no structured answer.
    """
    if answer is None:
        return NOTHING
    if answer.data is not None:
        return answer.data
    found = json_of(answer.text)
    return found if isinstance(found, dict) else NOTHING


def json_of(text: str | None) -> Any:
    """Return what a text is as JSON; ``NOTHING`` when it is none."""
    try:
        return NOTHING if text is None else decode_json(text)
    except msgspec.DecodeError:
        return NOTHING


def stated_object(expected: ExpectedTurn) -> dict[str, Any] | None:
    """Return the fields that a turn states, also where its response is an object as text."""
    if expected.structured is not None:
        return expected.structured
    found = data_of(expected.response)
    return found if isinstance(found, dict) else None


def tells_data(trace: Trace, turn: Turn) -> bool:
    """Tell whether structured output would be there, had there been any."""
    return known(trace, turn, "output.data")
