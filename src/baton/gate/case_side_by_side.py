"""One case in two evaluations: its verdicts, and both runs step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

import msgspec

from baton.model import (
    Content,
    HandedOff,
    InputError,
    Said,
    Score,
    Status,
    Trace,
    Turn,
    counted,
    nearest,
)
from baton.model.score import WORST_FIRST
from baton.model.step_lines import places_of, shown_steps
from baton.store import IndexRow, StoredEvaluation

_MOST_PAIRS = 4_000_000
"""Pairs of steps that are aligned, as the time grows with their number. Two runs of more than 2,000
entirely different steps are listed one after the other.
"""

Change = Literal["same", "other", "gone", "new"]
"""``gone`` and ``new`` are steps of one run alone; ``other`` is a step with another text."""


class CaseStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a run in one line; ``agent`` is ``None`` for the user.

    ``kind`` is ``user``, ``said``, ``thought``, ``call``, ``back``, ``answer`` or the kind of a
    dispatch, and ``name`` the tool or the agent that it went to.
    """

    id: str
    agent: str | None
    kind: str
    name: str
    text: str


class CaseSide(msgspec.Struct, kw_only=True):
    """The case in one evaluation: the repeat that is compared, and the verdicts of all.

    ``why`` is the reason if there is no recorded run.
    """

    evaluation: str
    repeat: int
    status: Status
    repeats: list[Status]
    scores: list[Score]
    why: str | None = None


class AlignedStep(msgspec.Struct, kw_only=True):
    """One step of both runs, or of one of them."""

    before: CaseStep | None
    after: CaseStep | None

    @property
    def change(self) -> Change:
        """Return what happened to the step."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        return "same" if self.before.text == self.after.text else "other"


class ComparedCase(msgspec.Struct, kw_only=True):
    """A case in two evaluations; a side is ``None`` if the evaluation does not have the case.

    ``steps`` is ``None`` if there are not two recorded runs, so that they cannot be compared.
    """

    case: str
    before: CaseSide | None
    after: CaseSide | None
    steps: list[AlignedStep] | None

    @property
    def first_difference(self) -> int | None:
        """Return the place in ``steps`` of the first difference.

        A step that only one run took comes before any step with another text, as a model words
        most answers differently each time.
        """
        changes = [step.change for step in self.steps or ()]
        # A new call of `refund` at step 9 says more than a greeting with other words at step 2.
        for wanted in ({"gone", "new"}, {"other"}):
            place = next((n for n, change in enumerate(changes) if change in wanted), None)
            if place is not None:
                return place
        return None


def compare_case(
    before: StoredEvaluation,
    after: StoredEvaluation,
    case: str,
    *,
    before_repeat: int | None = None,
    after_repeat: int | None = None,
) -> ComparedCase:
    """Compare one case; without a repeat (counted from 0), the worst one of each evaluation.

    Raises:
        InputError: neither evaluation has the case, or one does not have the repeat.
    """
    old = [row for row in before.rows() if row.case_id == case]
    new = [row for row in after.rows() if row.case_id == case]
    if not old and not new:
        known = {row.case_id: None for side in (after, before) for row in side.rows()}
        close = nearest(case, list(known))
        hint = f"; did you mean `{close[0]}`?" if close else ""
        raise InputError(f"neither evaluation has a case `{case}`{hint}")
    side_before, trace_before = _side(before, old, before_repeat)
    side_after, trace_after = _side(after, new, after_repeat)
    steps: list[AlignedStep] | None = None
    if trace_before is not None and trace_after is not None:
        steps = align(steps_of(trace_before), steps_of(trace_after))
    return ComparedCase(case=case, before=side_before, after=side_after, steps=steps)


def _side(
    stored: StoredEvaluation, rows: list[IndexRow], repeat: int | None
) -> tuple[CaseSide | None, Trace | None]:
    if not rows:
        return None, None
    # Of five repeats with one failure, the failed one shows what went wrong. Equally bad repeats
    # are alike, so the first one is taken, which is the same one each time.
    row = min(rows, key=lambda each: (WORST_FIRST[each.status], each.repeat))
    if repeat is not None:
        chosen = next((each for each in rows if each.repeat == repeat), None)
        if chosen is None:
            raise InputError(
                f"{stored.header.id} has {counted(len(rows), 'repeat')} of the case, and no repeat "
                f"{repeat + 1}"
            )
        row = chosen
    result, recorded = stored.result_with_trace(row)
    side = CaseSide(
        evaluation=stored.header.id,
        repeat=row.repeat,
        status=row.status,
        repeats=[each.status for each in rows],
        scores=result.scores,
        why=None if recorded.trace is not None else recorded.why or "nothing was recorded",
    )
    return side, recorded.trace


def steps_of(trace: Trace) -> list[CaseStep]:
    """Return the steps in the order of the work; those of a child follow its dispatch."""
    return list(_steps(trace))


def _steps(trace: Trace) -> Iterator[CaseStep]:
    shown = shown_steps(trace)
    turns = {run.id: turn for turn in trace.turns for run in turn.runs}
    # A sequence has no step that hands over: its dispatch is shown where the next agent starts, or
    # at the start of the turn if it started no run.
    arrivals = _arrivals(trace)
    started: dict[str, Turn] = {}
    for id_, place in places_of(trace).items():
        turn = turns[place.run.id]
        if turn.id not in started:
            yield from _answer(next(reversed(started.values()), None))
            started[turn.id] = turn
            yield CaseStep(id=turn.id, agent=None, kind="user", name="", text=_line(turn.input))
            yield from arrivals.get(turn.id, ())
        if place.step is None:
            yield from arrivals.get(id_, ())
        elif id_ in shown:
            step = shown[id_]
            yield CaseStep(id=id_, agent=step.agent, kind=step.kind, name=step.name, text=step.text)
    yield from _answer(next(reversed(started.values()), None))


def _answer(turn: Turn | None) -> Iterator[CaseStep]:
    """Yield the answer of a turn, unless one of its steps says it.

    A Python function or an endpoint that returns only its answer has no steps.
    """
    if turn is None or turn.output is None:
        return
    text = _line(turn.output)
    steps = (step for run in turn.runs for step in run.steps)
    if not any(
        isinstance(step, Said) and not step.thought and _line(step.content) == text
        for step in steps
    ):
        agent = turn.runs[-1].agent if turn.runs else None
        yield CaseStep(id=turn.id, agent=agent, kind="answer", name="", text=f"answered: {text}")


def _arrivals(trace: Trace) -> dict[str, list[CaseStep]]:
    """Return the dispatches that no step made, by the run that they started, else by the turn.

    The program itself starts the agents of a sequence, for example.
    """
    arrivals: dict[str, list[CaseStep]] = {}
    for turn in trace.turns:
        steps = (step for run in turn.runs for step in run.steps)
        of_steps = {step.dispatch for step in steps if isinstance(step, HandedOff)}
        for made in turn.dispatches:
            if made.id not in of_steps:
                step = CaseStep(
                    id=made.id,
                    agent=made.from_agent,
                    kind=made.kind,
                    name=made.to_agent,
                    text=f"handed to {made.to_agent}: {_line(made.prompt)}",
                )
                arrivals.setdefault(made.runs[0] if made.runs else turn.id, []).append(step)
    return arrivals


def _line(content: Content | None) -> str:
    return "" if content is None else " ".join(content.plain().split())


def _key(step: CaseStep) -> tuple[str | None, str, str]:
    # Without the text: a model words "I will check that" differently each time, and it is still the
    # same step. So two calls of `search` are a pair whatever they search for.
    return step.agent, step.kind, step.name


def align(before: Sequence[CaseStep], after: Sequence[CaseStep]) -> list[AlignedStep]:
    """Pair the steps that both runs took: equal agent, kind and name, in the same order."""
    old, new = [_key(step) for step in before], [_key(step) for step in after]
    # Most runs of a case start and end alike, which needs no search: only the middle is aligned.
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    matches: Iterable[tuple[int, int, int]] = ()
    if len(middle_old) * len(middle_new) <= _MOST_PAIRS:
        # `autojunk` ignores what occurs often among 200 or more, such as the calls of a loop.
        matches = SequenceMatcher(
            None, middle_old, middle_new, autojunk=False
        ).get_matching_blocks()
    blocks = [(0, 0, start)]
    blocks += [(start + a, start + b, size) for a, b, size in matches]
    blocks.append((len(old) - end, len(new) - end, end))
    aligned: list[AlignedStep] = []
    left = right = 0
    for a, b, size in blocks:
        aligned += [AlignedStep(before=step, after=None) for step in before[left:a]]
        aligned += [AlignedStep(before=None, after=step) for step in after[right:b]]
        pairs = zip(before[a : a + size], after[b : b + size], strict=True)
        aligned += [AlignedStep(before=one, after=other) for one, other in pairs]
        left, right = a + size, b + size
    return aligned
