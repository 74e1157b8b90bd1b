"""What of an evaluation is worth a label, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from baton.analysis.judges import Key
from baton.evaluators.judged import Judged
from baton.evaluators.judging.evidence import FINDINGS, answers_of
from baton.evaluators.judging.subject import Subject
from baton.findings.finding import Answer, Clear, Finding, Untold
from baton.model import EvalContext, Trace

from .judged import JudgedThing

DISAGREE, SPLIT, REST = range(3)


class ToLabel(NamedTuple):
    """One thing to label; ``why`` it comes when it does is ``DISAGREE``, ``SPLIT`` or ``REST``."""

    subject: Subject
    why: int

    @property
    def key(self) -> Key:
        """The ids of the trace and of the thing."""
        return self.subject.trace.id, self.subject.id


def to_label(
    evaluator: Judged,
    traces: Iterable[Trace],
    context: EvalContext,
    things: Sequence[JudgedThing] = (),
) -> list[ToLabel]:
    """Return what a rubric is about in some traces: first where judge and findings disagree.

    Then come those on which the samples of the judge differ, then all others; each in the order
    of the evaluation.
    """
    verdicts = {thing.key: thing for thing in things}
    found = [
        ToLabel(subject, _why(subject, evaluator, verdicts))
        for trace in traces
        for subject in evaluator.subjects(trace, None, context)
    ]
    return sorted(found, key=lambda one: one.why)


def _why(subject: Subject, evaluator: Judged, verdicts: Mapping[Key, JudgedThing]) -> int:
    verdict = verdicts.get((subject.trace.id, subject.id))
    if verdict is None or verdict.settled or verdict.passed is None:
        return REST
    proven = _proven(subject, evaluator)
    if proven is not None and proven != verdict.passed:
        return DISAGREE
    split = verdict.votes is not None and len(verdict.votes.counts) > 1
    return SPLIT if split else REST


def _proven(subject: Subject, evaluator: Judged) -> bool | None:
    """Tell what the findings that the rubric names say: fine, not fine, or nothing."""
    if subject.dispatch is None:
        return None
    answers = list(answers_of(evaluator.rubric, subject).values()) or _all(subject)
    faults = [f for answer in answers for f in _findings(answer) if not f.warning]
    if faults:
        return False
    return True if any(isinstance(answer, Clear) for answer in answers) else None


def _all(subject: Subject) -> list[Answer]:
    """Ask all there is, for a rubric that names no findings."""
    if subject.turn is None or subject.dispatch is None:
        return []
    place = (subject.trace, subject.turn, subject.dispatch, subject.renames)
    return [find(*place) for find, _ in FINDINGS.values()]


def _findings(answer: Answer) -> list[Finding]:
    return [] if isinstance(answer, Clear | Untold) else answer
