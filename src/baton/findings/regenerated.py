"""Which tool calls of a child its caller made again."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from baton.model import ToolCall, Trace, known
from baton.model.views import RoundTrip

from .facts import plain_text, read


class Repeated(NamedTuple):
    """``all`` calls that the child made; ids of the caller's calls that repeat half of them.

    ``repeated`` is empty when fewer than half were, or the child's calls were not recorded.
    """

    all: int
    repeated: list[str]


def repeated_calls(trace: Trace, trip: RoundTrip) -> Repeated:
    """Find calls with the same name and arguments on both sides of an answer.

    Reading what is changed afterwards is no repetition: a call that a later one of another
    tool has an identifier or path in common with.
    """
    if not all(known(trace, run, "steps.tool_call") for run in trip.runs):
        return Repeated(0, [])
    made = [s for run in trip.runs for s in run.steps if isinstance(s, ToolCall)]
    child = {_same(call) for call in made if call.dispatch is None}
    after = [s for s in trip.after if isinstance(s, ToolCall) and s.dispatch is None]
    again: dict[bytes, str] = {}
    for i, call in enumerate(after):
        if _same(call) in child and not _prepares(call, after[i + 1 :]):
            again.setdefault(_same(call), call.id)
    enough = bool(again) and 2 * len(again) >= len(child)
    return Repeated(len(child), list(again.values()) if enough else [])


def _same(call: ToolCall) -> bytes:
    return msgspec.json.encode((call.name, call.arguments), order="deterministic")


def _prepares(call: ToolCall, later: list[ToolCall]) -> bool:
    target = _targets(call)
    return any(other.name != call.name and target & _targets(other) for other in later)


def _targets(call: ToolCall) -> frozenset[str]:
    facts = read(plain_text(call.arguments)).facts
    return frozenset(key for f in facts if f.kind in ("path", "identifier") for key in f.keys)
