"""Times of the record on the wire: seconds to nanoseconds, and what of them a span cannot hold."""

from __future__ import annotations

from collections.abc import Sequence

from baton.readers.otlp.own.fields import UNTIMED
from baton.readers.otlp.own.values import Attributes
from baton.readers.otlp.wire.scalars import nanos as seconds

_MOST = 2**63 - 1
Named = tuple[str, float | None]
"""A time of the record under the name of its field."""


def nanos(at: float) -> int:
    """Return the nearest nanosecond that OTLP can write; reading it gives the same double."""
    numerator, denominator = at.as_integer_ratio()
    whole = (2 * numerator * 10**9 + denominator) // (2 * denominator)
    return min(max(whole, 0), _MOST)


def span_times(times: Sequence[Named], fallback: float) -> tuple[float, float, Attributes]:
    """Return start and end of a span, and in attributes what they do not tell of the record.

    A span has to have both: what the record does not know is named, and ``fallback`` stands for
    the start.
    """
    known = [at for _, at in times]
    start = fallback if known[0] is None else known[0]
    end = start if known[-1] is None else max(known[-1], start)
    return start, end, _exceptions(times, (start, end))


def event_time(times: Sequence[Named], fallback: float) -> tuple[float, Attributes]:
    """Return the time of an event, and in attributes what it does not tell of the record."""
    at = fallback if times[0][1] is None else times[0][1]
    return at, _exceptions(times, (at,))


def _exceptions(times: Sequence[Named], written: Sequence[float]) -> Attributes:
    found: Attributes = {}
    untimed = [name for name, at in times if at is None]
    if untimed:
        found[UNTIMED] = untimed
    for (name, at), told in zip(times, written, strict=False):
        if at is not None and seconds(nanos(told)) != at:
            found[f"baton.{name}"] = at
    return found
