"""Whether a turn came to an end at all."""

from __future__ import annotations

from baton.model.trace import Turn


def broken(turn: Turn) -> str | None:
    """Say what kept a turn from its end; ``None`` when nothing did.

    A turn that waits for a person, or that ended without an answer, is not broken.
    """
    if turn.status != "failed" and turn.error is None:
        return None
    how = "failed" if turn.status == "failed" else "broke off"
    return f"{how}: {turn.error or 'the source does not tell why'}"
