"""What a question about a dispatch or run is answered with."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.model import Evidence


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something proven: a fault, or with ``warning`` what may be one.

    ``kind`` is a word for it (``tool_outside_scope``), ``says`` one sentence, ``evidence`` the
    steps that prove it. ``share`` is how much of what was asked for is right, 0 to 1.
    """

    kind: str
    says: str
    evidence: list[Evidence]
    share: float = 0.0
    warning: bool = False
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class Clear(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing wrong was found; ``says`` what was looked at."""

    says: str
    share: float = 1.0
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class Untold(msgspec.Struct, frozen=True, kw_only=True):
    """The record does not tell; ``says`` what is missing and what would supply it."""

    says: str


TOO_LONG = (
    "the conversation has too many hand-offs and steps to hold each against all others: record it "
    "as several traces"
)
"""Why something is untold once the work that one trace may take is used up."""
Answer = list[Finding] | Clear | Untold
"""Findings (at least one), nothing wrong, or not to be known."""
