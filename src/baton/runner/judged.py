"""What a judge said of single things, from scores just made or those of a stored evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from baton.analysis.effects import Votes
from baton.analysis.judges import Key
from baton.model import InputError, Problem, Score, Status, Trace
from baton.store import StoredEvaluation, score_row

_DETAILS = ("label", "agent", "votes", "spread", "settled_by", "judge_error")


class Shown(NamedTuple):
    """The place of a thing in its trace, from 1, and how many characters a judge is shown of it."""

    position: int
    length: int | None


class JudgedThing(msgspec.Struct, frozen=True, kw_only=True):
    """One score of a rubric, about one thing in one trace.

    ``model`` is ``None`` when no judge answered: findings settled it, or something went wrong
    (``trouble``). ``asked`` is the model that was asked first, where that is known. ``agent`` is
    who the thing was given to. ``position`` counts from 1 in its trace, ``length`` the characters
    that were judged.
    """

    trace: str
    case: str
    subject: str
    agent: str | None
    position: int
    version: str
    status: Status = "skipped"
    label: str | None = None
    value: float | None = None
    model: str | None = None
    settled: bool = False
    trouble: str | None = None
    votes: Votes | None = None
    asked: str | None = None
    length: int | None = None

    @property
    def key(self) -> Key:
        """The ids of the trace and of the thing."""
        return self.trace, self.subject

    @property
    def passed(self) -> bool | None:
        """Whether it passed; ``None`` without a verdict."""
        return {"passed": True, "failed": False}.get(self.status)


def of_scores(
    trace: Trace, case_id: str, scores: Iterable[Score], shown: Mapping[str, Shown]
) -> list[JudgedThing]:
    """Return what the scores of one trace say, those about nothing left out."""
    return list(_things(trace.id, case_id, [score_row(score) for score in scores], shown))


def of_evaluation(
    evaluation: StoredEvaluation,
    rubric: str,
    shown: Mapping[str, Mapping[str, Shown]] | None = None,
) -> list[JudgedThing]:
    """Return what the scores of a rubric say in a stored evaluation.

    ``shown`` has, by the id of the trace, what a judge was shown of each thing.
    """
    found: list[JudgedThing] = []
    for row, body in evaluation.entries():
        trace = trace_id(body)
        if trace is not None:
            rows = [score for score in body["scores"] if score["type"] == rubric]
            found += _things(trace, row.case_id, rows, (shown or {}).get(trace, {}))
    return found


def judged_types(evaluation: StoredEvaluation) -> list[str]:
    """Return the rubrics that an evaluation was judged by, in the order they come."""
    found: dict[str, None] = {}
    for _, body in evaluation.entries():
        for score in body["scores"]:
            if "judge" in score or "settled_by" in score["details"]:
                found[score["type"]] = None
    return list(found)


def trace_id(body: Mapping[str, Any]) -> str | None:
    """Return the id of the trace that a body holds or points at."""
    held = body.get("trace") or body.get("recorded")
    return None if held is None else str(held["id"])


def _things(
    trace: str, case: str, rows: Sequence[Mapping[str, Any]], shown: Mapping[str, Shown]
) -> Iterator[JudgedThing]:
    singles = [_checked(single) for row in rows for single in _singles(row)]
    for position, row in enumerate((row for row in singles if row.get("subject")), 1):
        yield _thing(trace, case, row, shown.get(row["subject"][0], Shown(position, None)))


class _Details(msgspec.Struct):
    label: str | None = None
    to: str | None = None
    agent: str | None = None
    votes: dict[str, int] | None = None
    spread: float = 0.0
    judge_error: str | None = None


class _JudgedBy(msgspec.Struct):
    model: str


class _Single(msgspec.Struct):
    status: Status
    version: str
    score: float | None
    details: _Details
    subject: list[str] = msgspec.field(default_factory=list)
    judge: _JudgedBy | None = None


def _checked(single: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a score of a rubric; raises InputError for one that a folder of others made up."""
    try:
        msgspec.convert(single, _Single)
    except msgspec.ValidationError as error:
        message = f"a score of `{single.get('evaluator_type')}` is damaged: {error}"
        raise InputError(Problem(message=message, damaged=True)) from None
    return single


def _singles(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a score, or the several that it sums up."""
    units = row["details"].get("units")
    if not isinstance(units, list) or not all(isinstance(unit, dict) for unit in units):
        yield row
        return
    for unit in units:
        details = {key: unit[key] for key in _DETAILS if key in unit}
        yield {**row, **unit, "score": unit.get("value"), "details": details}


def _thing(trace: str, case: str, row: Mapping[str, Any], shown: Shown) -> JudgedThing:
    details, subject, judge = row["details"], row["subject"][0], row.get("judge")
    settled = "settled_by" in details
    counts = details.get("votes")
    return JudgedThing(
        trace=trace,
        case=case,
        subject=subject,
        agent=details.get("to") or details.get("agent"),
        position=shown.position,
        status=row["status"],
        label=details.get("label"),
        value=row["score"],
        model=None if judge is None or settled else judge["model"],
        version=row["version"],
        settled=settled,
        trouble=_trouble(row),
        votes=None if not counts else Votes(counts=counts, spread=details.get("spread", 0.0)),
        length=shown.length,
    )


def _trouble(row: Mapping[str, Any]) -> str | None:
    """Say in a word or two why there is no verdict."""
    if row["status"] == "error":
        return str(row["details"].get("judge_error") or "error")
    without_label = row["status"] == "skipped" and row["details"].get("label") is None
    return "skipped" if without_label else None
