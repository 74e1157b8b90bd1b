"""The same message to the same agent, and the same tool call, again and again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from baton.model import AgentRun, Dispatch, Said, ToolCall, Trace, Turn, known

from .alike import deeds_of, much_alike, outcome, request, telling_words
from .places import receivers_of

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
    for sent in made.values():
        for row in _rows(turn, sent):
            if len(row) < least or (not telling_words(row[0].prompt) and _told(trace, row)):
                continue
            stale = [_stale(trace, row[:place], row[place]) for place in range(1, len(row))]
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


def _rows(turn: Turn, sent: Sequence[Dispatch]) -> Iterator[list[Dispatch]]:
    row: list[Dispatch] = []
    for dispatch in sent:
        if row and not (_same(row[-1], dispatch) and not _between(turn, row[-1], dispatch)):
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


def _between(turn: Turn, one: Dispatch, other: Dispatch) -> bool:
    """Tell whether the sender did anything else between two of its hand-offs."""
    runs = [run for run in turn.runs if run.agent == one.from_agent]
    steps = [step for run in runs for step in run.steps if not isinstance(step, Said)]
    marks = [step.dispatch for step in steps]
    if one.id not in marks or other.id not in marks:
        return True
    last = len(marks) - 1 - marks[::-1].index(one.id)
    return any(mark not in (one.id, other.id) for mark in marks[last : marks.index(other.id)])


def _stale(trace: Trace, earlier: Sequence[Dispatch], later: Dispatch) -> bool | None:
    """Tell whether a hand-off brought nothing that earlier ones had not; ``None`` if untold."""
    if later.status in ("failed", "refused", "unanswered"):
        return True
    if later.kind == "delegate":
        if not all(known(trace, dispatch, "result") for dispatch in (*earlier, later)):
            return None
        return any(much_alike(later.result, dispatch.result) for dispatch in earlier)
    before = deeds_of(trace, [run for d in earlier for run in receivers_of(trace, d)])
    after = deeds_of(trace, receivers_of(trace, later))
    if not after.pieces <= before.pieces:
        return False
    return True if before.told and after.told else None


def _same_call(trace: Trace, one: ToolCall, other: ToolCall) -> bool:
    fields = ("arguments", "result")
    told = all(known(trace, call, field) for call in (one, other) for field in fields)
    ended = all(call.status in ("ok", "failed", "refused") for call in (one, other))
    return told and ended and outcome(one) == outcome(other)
