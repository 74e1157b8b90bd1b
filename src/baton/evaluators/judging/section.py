"""What a judge is shown, input by input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .texts import Kind, Piece


class Section(NamedTuple):
    """One input as the judge sees it: its name, heading and text; or why it is not known.

    A ``list`` has the things to label one by one, and room of its own.
    """

    name: str
    title: str
    text: str
    pieces: Sequence[Piece] = ()
    missing: bool = False
    is_list: bool = False


class LeftOut(NamedTuple):
    """What of a section a judge was not shown: of which step, of what kind, how many characters."""

    section: str
    ids: tuple[str, ...]
    kind: Kind
    chars: int


def said_of(left_out: Sequence[LeftOut]) -> str:
    """Say how many characters of which inputs are left out, and of which steps the most."""
    inputs = ", ".join(f"`{name}`" for name in dict.fromkeys(one.section for one in left_out))
    steps = sorted((one for one in left_out if one.ids), key=lambda one: -one.chars)[:3]
    most = ", ".join(f"{one.chars:,} of the {one.kind} of `{one.ids[0]}`" for one in steps)
    total = f"{sum(one.chars for one in left_out):,} characters of {inputs}"
    return total + (f" ({most}{', ...' if len(left_out) > len(steps) else ''})" if most else "")
