"""Ids of spans: the same for the same record, whenever and wherever it is exported."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from baton.model import Trace

_ENCODE = msgspec.json.Encoder(order="deterministic").encode


def trace_id(trace: Trace) -> str:
    """Return 32 hex digits made of the id of a record and what happened in it.

    Where it was read, which case it met and what is known of its agents do not count.
    """
    return sha256(_ENCODE([trace.id, trace.turns])).hexdigest()[:32]


def span_id(trace: str, kind: str, id_: str) -> str:
    """Return 16 hex digits for one object of the record whose trace id is ``trace``."""
    return sha256(_ENCODE([trace, kind, id_])).hexdigest()[:16]
