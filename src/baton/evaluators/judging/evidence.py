"""Findings about a dispatch: evidence for a judge, or the answer if they settle the question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from baton.findings.finding import Answer, Clear, Finding, NotRecorded
from baton.model import Dispatch, Trace, Turn

from .material import Piece, line, piece
from .rubric import Rubric
from .subject import Subject

Find = Callable[[Trace, Turn, Dispatch, Mapping[str, str]], Answer]

# Each finding is imported on first use. They compile hundreds of patterns, which would take a third
# of the startup time of `baton eval`.


def _target_known(trace: Trace, turn: Turn, made: Dispatch, names: Mapping[str, str]) -> Answer:
    from baton.findings.dispatch_target_known import target_known

    return target_known(trace, turn, made, names)


def _scope(trace: Trace, turn: Turn, made: Dispatch, names: Mapping[str, str]) -> Answer:
    from baton.findings.dispatch_scope import scope

    return scope(trace, turn, made, names)


def _completed(trace: Trace, turn: Turn, made: Dispatch, names: Mapping[str, str]) -> Answer:
    from baton.findings.dispatch_completed import completed

    return completed(trace, turn, made, names)


def _result_used(trace: Trace, turn: Turn, made: Dispatch, _: Mapping[str, str]) -> Answer:
    from baton.findings.result_used import result_used

    return result_used(trace, turn, made)


def _context_carried(trace: Trace, turn: Turn, made: Dispatch, _: Mapping[str, str]) -> Answer:
    from baton.findings.context_carried import context_carried

    return context_carried(trace, turn, made)


def _claims(trace: Trace, turn: Turn, made: Dispatch, names: Mapping[str, str]) -> Answer:
    from baton.findings.claims_supported import claims_of_receivers

    return claims_of_receivers(trace, turn, made, names)


FINDINGS: dict[str, tuple[Find, frozenset[str]]] = {
    "target_known": (
        _target_known,
        frozenset({"unknown_target", "misspelt_target", "refused_target"}),
    ),
    "scope": (_scope, frozenset({"tool_executed", "tool_attempted", "unknown_tool"})),
    "completed": (
        _completed,
        frozenset(
            {
                "failed", "killed", "refused", "unanswered", "empty_answer", "error_answer",
                "receiver_failed",
            }
        ),
    ),
    "result_used": (
        _result_used,
        frozenset({"ignored", "regenerated"}),
    ),
    "context_carried": (
        _context_carried,
        frozenset({"not_received", "dropped", "dropped_constraint", "output_not_carried"}),
    ),
    "claims": (_claims, frozenset({"unsupported_claim", "contradicted_claim"})),
}  # fmt: skip
"""The questions to a record by name, and the kinds of findings that each can give."""


class Settled(NamedTuple):
    """A finding that answers the question, and its label."""

    label: str
    source: str
    finding: Finding


def answers_of(rubric: Rubric, subject: Subject) -> dict[str, Answer]:
    """Return the record's answers to a rubric's questions about a dispatch, by finding name."""
    if subject.dispatch is None or subject.turn is None:
        return {}
    place = (subject.trace, subject.turn, subject.dispatch, subject.renames)
    return {name: FINDINGS[name][0](*place) for name in rubric.findings}


def settled_by(rubric: Rubric, answers: Mapping[str, Answer]) -> Settled | None:
    """Return the finding that settles the question, or the worst one. Warnings never settle it."""
    settled = [
        Settled(labels[finding.kind], name, finding)
        for name, labels in rubric.findings.items()
        for finding in _findings(answers.get(name))
        if finding.kind in labels and not finding.warning
    ]
    sign = 1 if rubric.direction == "higher" else -1
    return min(
        settled, key=lambda one: sign * (rubric.answer.score_of(one.label) or 0), default=None
    )


def evidence_pieces(answers: Mapping[str, Answer]) -> list[Piece]:
    """Describe the faults that the record proves, and those that it rules out."""
    pieces = []
    for name, answer in answers.items():
        if isinstance(answer, Clear):
            pieces.append(piece((), line(f"{name}: nothing wrong: {answer.says}")))
        for finding in _findings(answer):
            what = "perhaps wrong" if finding.warning else "wrong"
            ids = tuple(id_ for each in finding.evidence for id_ in each.ids)
            pieces.append(piece(ids, line(f"{name}: {what} ({finding.kind}): {finding.says}")))
    return pieces


def _findings(answer: Answer | None) -> list[Finding]:
    return [] if answer is None or isinstance(answer, Clear | NotRecorded) else answer
