"""Whether a turn came to an end at all."""

from __future__ import annotations

from baton.model.trace import Turn

from .in_short import in_short

_LONGEST = 400


def broken(turn: Turn) -> str | None:
    """Say what kept a turn from its end; ``None`` when nothing did.

    A turn that waits for a person, or that ended without an answer, is not broken.
    """
    if turn.status != "failed" and turn.error is None:
        return None
    began = turn.status != "failed" and turn.runs
    how = "broke off" if began else "failed"
    why = in_short(turn.error or "", _LONGEST) or "the source does not tell why"
    return f"{how}: {why}"
