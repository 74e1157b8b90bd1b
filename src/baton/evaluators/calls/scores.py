"""The score of a turn in each mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from baton.model import ExpectedToolCall

from .compare import CallRules, Made
from .fitting import best_pairs, equal_pairs, fitting_bits, fitting_kinds
from .order import Pair, all_in_order, longest_common

Mode = Literal[
    "exact", "in_order", "any_order", "partial", "precision", "recall", "f1", "single_tool"
]
ORDERED = frozenset({"exact", "in_order", "partial"})


def pair_calls(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], mode: Mode, rules: CallRules
) -> list[Pair]:
    """Pair expected with actual calls: as many as can be, in order where the mode heeds it."""

    def same(one: int, other: int) -> bool:
        return rules.same(wanted[one], made[other])

    if mode in ORDERED:
        found = all_in_order(len(wanted), len(made), same)
        if found is not None:
            return found
    else:
        pairs = equal_pairs(wanted, made, rules)
        if len(pairs) == min(len(wanted), len(made)):
            return pairs
    kinds = fitting_kinds(wanted, made, rules)
    if mode in ORDERED:
        return longest_common(len(wanted), fitting_bits(kinds, len(made)))
    return best_pairs(kinds)


def turn_score(mode: Mode, paired: int, wanted: int, made: int) -> float:
    """Score a turn, 0 to 1, from how many calls were paired, expected and made.

    ``exact``: 1 if all were paired and there were no others. ``in_order``, ``any_order`` and
    ``single_tool``: 1 if all expected ones were paired. ``partial`` and ``recall``: paired /
    expected; ``precision``: paired / made; ``f1``: 2 * paired / (expected + made), which is
    the harmonic mean of both. Where the divisor is 0, 1 if nothing was missed.
    """
    if mode == "exact":
        return float(paired == wanted == made)
    if mode in ("partial", "recall"):
        return paired / wanted if wanted else 1.0
    if mode == "precision":
        return paired / made if made else float(wanted == 0)
    if mode == "f1":
        return 2 * paired / (wanted + made) if wanted + made else 1.0
    return float(paired == wanted)
