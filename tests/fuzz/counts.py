"""How many inputs a property is tried with."""

from __future__ import annotations

import os

SHARE = float(os.environ.get("BATON_FUZZ_SHARE", "0.05"))
"""The part of the full count: a twentieth in ``make test``, a tenth in CI, all of it in ``make torture``."""


def tries(full: int) -> int:
    """Return the part of `full` that is asked for; 20 at the least."""
    return max(20, round(full * SHARE))
