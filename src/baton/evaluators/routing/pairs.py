"""Which dispatch of a turn stands for which expected one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from baton.evaluators.texts.matchers import Reading
from baton.model import ExpectedDispatch, Trace, Turn

from .assignment import best_assignment
from .parts import Part, parts_of
from .sent import Sent

# A pair weighs more than any agreement of parts in all the others, and that more than order.
_PAIR = 10**16
_PART = 10**8
_FAR = 10**4

Look = Callable[[ExpectedDispatch, Sent], list[Part]]
Doubt = Callable[[ExpectedDispatch], str | None]


class Met(NamedTuple):
    """An expected dispatch and the one that went to its agent."""

    expected: ExpectedDispatch
    sent: Sent
    parts: list[Part]


class Wrong(NamedTuple):
    """An expected dispatch and the one that went to another agent in its stead."""

    expected: ExpectedDispatch
    sent: Sent


class Pairs(NamedTuple):
    """What became of the expected dispatches of a turn, and the ones that nobody expected."""

    met: list[Met]
    wrong: list[Wrong]
    unmet: list[ExpectedDispatch]
    unsure: list[tuple[ExpectedDispatch, str]]
    surplus: list[Sent]


def pair_up(
    expected: Sequence[ExpectedDispatch], sent: Sequence[Sent], look: Look, doubt: Doubt
) -> Pairs:
    """Pair one to one: as many to the right agent as can be, with the most parts right.

    Where equal, the order of both sides is kept. What is left on both sides is paired as a
    wrong target, but for an expected one that may have been made all the same: ``doubt`` says
    why.
    """
    found = best_assignment(_gains(expected, sent, look, right=True))
    met = [
        Met(one, sent[column], look(one, sent[column]))
        for one, column in zip(expected, found, strict=True)
        if column is not None
    ]
    taken = set(found)
    rest = [each for column, each in enumerate(sent) if column not in taken]
    left = [one for one, column in zip(expected, found, strict=True) if column is None]
    doubts = [doubt(one) for one in left]
    unsure = [(one, why) for one, why in zip(left, doubts, strict=True) if why is not None]
    open_ = [one for one, why in zip(left, doubts, strict=True) if why is None]
    stead = best_assignment(_gains(open_, rest, look, right=False))
    wrong = [
        Wrong(one, rest[column])
        for one, column in zip(open_, stead, strict=True)
        if column is not None
    ]
    unmet = [one for one, column in zip(open_, stead, strict=True) if column is None]
    used = set(stead)
    again = {name for one in met for name in one.sent.names}
    surplus = [
        each
        for column, each in enumerate(rest)
        if column not in used and each.counted and not _retried(each, again)
    ]
    return Pairs(met, wrong, unmet, unsure, surplus)


def looker(trace: Trace, turn: Turn, reading: Reading) -> Look:
    """Return what compares the parts of a pair, each pair once."""
    seen: dict[tuple[int, str], list[Part]] = {}

    def look(expected: ExpectedDispatch, sent: Sent) -> list[Part]:
        key = id(expected), sent.dispatch.id
        if key not in seen:
            seen[key] = parts_of(trace, turn, expected, sent.dispatch, reading)
        return seen[key]

    return look


def goes_to(expected: ExpectedDispatch, sent: Sent) -> bool:
    """Tell whether a dispatch went to the expected agent.

    A return is one that control took by itself: the sources tell some transfers back as one.
    """
    either = expected.kind is None or "return" not in (expected.kind, sent.dispatch.kind)
    return expected.to in sent.names and (either or expected.kind == sent.dispatch.kind)


def _gains(
    expected: Sequence[ExpectedDispatch], sent: Sequence[Sent], look: Look, *, right: bool
) -> list[list[int]]:
    return [
        [_gain(one, each, look, abs(i - j), right=right) for j, each in enumerate(sent)]
        for i, one in enumerate(expected)
    ]


def _gain(expected: ExpectedDispatch, sent: Sent, look: Look, far: int, *, right: bool) -> int:
    together = goes_to(expected, sent) if right else _may_stand_for(expected, sent)
    if not together:
        return 0
    parts = look(expected, sent)
    told = [part.share for part in parts if part.share is not None]
    share = (1 + sum(told)) / (1 + len(parts))
    # What went through is told before what did not.
    through = sent.counted + (sent.counted and not _failed(sent))
    return _PAIR + (2000 * through + int(1000 * share)) * _PART - min(far, _FAR)


def _may_stand_for(expected: ExpectedDispatch, sent: Sent) -> bool:
    kind = sent.dispatch.kind
    refused = sent.dispatch.status == "refused" and kind != "return"
    return sent.counted or refused or (kind == expected.kind and kind in ("sequence", "return"))


def _retried(sent: Sent, met: set[str]) -> bool:
    """Tell a dispatch that failed and was made again."""
    return _failed(sent) and not met.isdisjoint(sent.names)


def _failed(sent: Sent) -> bool:
    return sent.dispatch.status in ("failed", "unanswered")
