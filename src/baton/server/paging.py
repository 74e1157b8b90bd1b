"""Pages of rows, the cursors between them, and rows as types."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from sqlalchemy import RowMapping

from baton.model import InputError

T = TypeVar("T")
MOST = 500
"""The maximum number of rows per page."""


_JSON = frozenset(("agents", "subject", "details", "evidence", "judge"))
_TIMES = frozenset(("started", "ended", "seen", "read", "at"))


def row_as(type_: type[T], row: Mapping[Any, Any]) -> T:
    """Return a row as a struct: JSON decoded, times as such."""
    values = {}
    for name in type_.__struct_fields__:  # type: ignore[attr-defined]
        value = row[name]
        if value is not None and name in _JSON:
            value = msgspec.json.decode(value)
        elif name in _TIMES:
            value = at_of(value)
        values[name] = value
    return type_(**values)


def at_of(seconds: float | None) -> datetime | None:
    """Return a time; one that no calendar has, as spans may tell, is ``None``."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def cursor_of(rows: Sequence[RowMapping], limit: int) -> str | None:
    """Return where the next page starts, if there are more rows than ``limit``.

    Rows have what they are ordered by as ``order_0``, ``order_1`` and so on.
    """
    if len(rows) <= limit:
        return None
    last = rows[limit - 1]
    return cursor_after([last[name] for name in last if name.startswith("order_")])


def cursor_after(after: Sequence[Any]) -> str:
    """Return the cursor that continues after a row."""
    return base64.urlsafe_b64encode(msgspec.json.encode(after)).decode().rstrip("=")


def read_cursor(cursor: str | None, shape: Any) -> list[Any] | None:
    """Return the row that a cursor continues after.

    Raises:
        InputError: it is not one of such a list.
    """
    if cursor is None:
        return None
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        values = msgspec.json.decode(packed, type=shape)
    except (ValueError, msgspec.DecodeError):
        raise InputError(
            "`cursor` does not belong to this list: use `next` of the previous page"
        ) from None
    return list(values)
