"""The same message to the same agent, and the same tool call, again and again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from baton.model import AgentRun, Dispatch, Said, ToolCall, Trace, Turn, known

from .alike import deeds_of, outcome, request, share_words, telling_words
from .places import receivers_of

_COMPARED = 50
"""How many different earlier answers an answer is held against; the latest are most alike."""
_PASSES = re.compile(
    r"""\b(?:429|50[234]|busy|pending|queued|starting|in.progress|unavailable|overloaded
        |too\ many\ requests|rate.?limit\w*|tim(?:e|ed).?out|temporar\w+|(?:try|retry)\ \w*\ ?later
        |try\ again)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def same_dispatches(trace: Trace, turn: Turn, least: int) -> Iterator[tuple[list[Dispatch], bool]]:
    """Yield at least ``least`` hand-offs that ask the same of the same agent, one after another.

    The messages are equal but for small words, the sender does nothing else in between, and no
    later one brings anything new: its answer is much like an earlier one, or there is none, and
    what its receiver did was done before. The second value is false where contents that would
    tell were not recorded. Hand-offs issued together are no repetition.
    """
    made: dict[tuple[str, str], list[Dispatch]] = {}
    for dispatch in turn.dispatches:
        if dispatch.kind in ("delegate", "transfer") and dispatch.from_agent is not None:
            made.setdefault((dispatch.from_agent, dispatch.to_agent), []).append(dispatch)
    marks: dict[str | None, _Marks] = {}
    for (sender, _), sent in made.items():
        if sender not in marks:
            marks[sender] = _marks(turn, sender)
        for row in _rows(marks[sender], sent):
            if len(row) < least or (not telling_words(row[0].prompt) and _told(trace, row)):
                continue
            stale = list(_stale(trace, row))
            if False not in stale:
                yield row, _told(trace, row) and None not in stale


def same_calls(
    trace: Trace, run: AgentRun, least: int, ignored: Collection[str]
) -> Iterator[list[ToolCall]]:
    """Yield at least ``least`` equal calls with equal answers that a run made in a row.

    Who asks until the answer is another one waits for something, and goes round in no circle;
    what is busy, pending or out of reach may be asked twice as often.
    """
    row: list[ToolCall] = []
    for step in run.steps:
        if not isinstance(step, ToolCall):
            continue
        if row and not _same_call(trace, row[-1], step):
            if _too_many(row, least) and request(row[-1]) != request(step):
                yield row
            row = []
        if step.dispatch is None and step.name not in ignored:
            row.append(step)
    if _too_many(row, least):
        yield row


def _too_many(row: Sequence[ToolCall], least: int) -> bool:
    """Tell whether calls are a loop: of what may pass with time, twice as many are."""
    if not row:
        return False
    passing = _PASSES.search(" ".join(outcome(row[-1])[3:]))
    return len(row) >= (2 * least if passing else least)


def _rows(marks: _Marks, sent: Sequence[Dispatch]) -> Iterator[list[Dispatch]]:
    row: list[Dispatch] = []
    for dispatch in sent:
        if row and not (_same(row[-1], dispatch) and not _between(marks, row[-1], dispatch)):
            yield row
            row = []
        row.append(dispatch)
    yield row


def _told(trace: Trace, row: Sequence[Dispatch]) -> bool:
    return all(known(trace, dispatch, "prompt") for dispatch in row)


def _same(one: Dispatch, other: Dispatch) -> bool:
    together = one.group is not None and (one.group, one.from_run) == (other.group, other.from_run)
    same = telling_words(one.prompt) == telling_words(other.prompt)
    return same and one.context == other.context and not together


class _Marks(NamedTuple):
    """The dispatch, if any, that each step of an agent is about, words apart; where each is."""

    of: list[str | None]
    first: dict[str | None, int]
    last: dict[str | None, int]


def _marks(turn: Turn, agent: str) -> _Marks:
    runs = [run for run in turn.runs if run.agent == agent]
    of = [step.dispatch for run in runs for step in run.steps if not isinstance(step, Said)]
    first = {mark: at for at, mark in reversed(list(enumerate(of)))}
    return _Marks(of, first, {mark: at for at, mark in enumerate(of)})


def _between(marks: _Marks, one: Dispatch, other: Dispatch) -> bool:
    """Tell whether the sender did anything else between two of its hand-offs."""
    if one.id not in marks.last or other.id not in marks.first:
        return True
    row = range(marks.last[one.id], marks.first[other.id])
    return any(marks.of[at] not in (one.id, other.id) for at in row)


def _stale(trace: Trace, row: Sequence[Dispatch]) -> Iterator[bool | None]:
    """Tell of each but the first whether it brought nothing new; ``None`` if untold."""
    answers: dict[frozenset[str], None] = {}
    done: set[tuple[str, ...]] = set()
    told = answered = True
    for place, dispatch in enumerate(row):
        answered = answered and known(trace, dispatch, "result")
        words = frozenset(telling_words(dispatch.result))
        deeds = deeds_of(trace, receivers_of(trace, dispatch))
        if place:
            if dispatch.status in ("failed", "refused", "unanswered"):
                yield True
            elif dispatch.kind == "delegate" and not answered:
                yield None
            elif dispatch.kind == "delegate":
                yield words in answers or any(
                    share_words(words, earlier) for earlier in islice(reversed(answers), _COMPARED)
                )
            elif not deeds.pieces <= done:
                yield False
            else:
                yield True if told and deeds.told else None
        answers[words] = None
        done |= deeds.pieces
        told = told and deeds.told


def _same_call(trace: Trace, one: ToolCall, other: ToolCall) -> bool:
    fields = ("arguments", "result")
    told = all(known(trace, call, field) for call in (one, other) for field in fields)
    ended = all(call.status in ("ok", "failed", "refused") for call in (one, other))
    return told and ended and outcome(one) == outcome(other)
