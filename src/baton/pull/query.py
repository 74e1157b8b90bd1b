"""Which traces to fetch."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from baton.model import InputError


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to fetch: all traces of a time range, or those that are named.

    ``since`` is inclusive, ``until`` exclusive. ``traces`` are ids; named traces are fetched
    whatever the time range says. ``session`` leaves only the traces of one session.
    """

    since: datetime | None = None
    until: datetime | None = None
    traces: tuple[str, ...] = ()
    session: str | None = None


def moment(text: str, option: str) -> datetime:
    """Read a date or time in ISO 8601; UTC unless it names an offset.

    Raises:
        InputError: it is neither.
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        example = "2026-01-31T09:00 or 2026-01-31T09:00+02:00"
        raise InputError(f"{option} is no date or time: `{text}`; write {example}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def iso(when: datetime | None) -> str | None:
    """Write a time as the stores read it: UTC, in milliseconds, with `Z`."""
    if when is None:
        return None
    text = when.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
