"""Scores conversations by rules: immediately if no judge is needed, else from a queue.

A trace is scored like any recorded one (:mod:`baton.runner.scoring`). Judged evaluators run twice:
first with a judge that answers nothing, which gives the scores that need only the record; then
from the queue with the real judge, for the rest.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from baton.model import (
    CaseResult,
    Evidence,
    Judge,
    JudgeError,
    JudgeRequest,
    JudgeResponse,
    JudgeUse,
    Score,
    Trace,
    known,
)
from baton.model.redact import OFF, ON, Redaction
from baton.model.subjects import NOWHERE, Origin, Subject, subjects
from baton.runner.loop import run_anywhere
from baton.runner.plan import Plan
from baton.runner.scoring import start_scoring

from .rows import narrow
from .rules import Part, Rule

Row = dict[str, Any]
"""A row of the table `score`, without project, conversation and version."""


class Scored(NamedTuple):
    """Rows of scores, and the names of the rules whose judges have to be asked.

    ``unsettled`` are the questions for them: pairs of an evaluator and a subject, as in rows.
    """

    rows: list[Row]
    waiting: list[str]
    unsettled: Sequence[tuple[str, str]] = ()


class Chosen(NamedTuple):
    """What a rule scores in a trace; ``sampled`` is false if it only scores others' failures."""

    rule: Rule
    subjects: list[Subject]
    sampled: bool


class _Later:
    """A placeholder for a judge that is called later; it records whether it was needed."""

    model = ""
    samples = 1
    asked = False

    def __init__(self, top: _Later | None = None) -> None:
        self._top = top or self

    def with_options(self, override: Mapping[str, Any]) -> Self:  # noqa: ARG002
        """Return a placeholder that records questions here."""
        return type(self)(self._top)

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:  # noqa: ARG002
        """Answer nothing; raises JudgeError."""
        self._top.asked = True
        raise JudgeError("uncached", "a judge is asked later")


def score(
    trace: Trace,
    rules: Sequence[Rule],
    where: Origin = NOWHERE,
    *,
    now: float | None = None,
    redaction: Redaction = ON,
) -> Scored:
    """Score a trace by rules, as far as possible without a judge.

    A rule scores the traces in its sample, and outside of it what another rule failed. ``rules``
    are those for the project and tags of the trace, ``now`` is the time of the scores.
    """
    now = time.time() if now is None else now
    sampled = _score_all(trace, chosen_of(trace, rules, where, ()), where, redaction, now)
    beyond = beyond_samples(trace, rules, where, sampled.rows, now=now, redaction=redaction)
    return Scored(sampled.rows + beyond.rows, sampled.waiting + beyond.waiting)


def score_rule(
    trace: Trace, rule: Rule, where: Origin, failed: Sequence[Row], *, now: float
) -> Scored | None:
    """Score a redacted trace by one rule, as far as possible without a judge.

    ``failed`` are the scores that other rules failed: outside of its sample, a rule only scores
    their subjects. Returns ``None`` if the trace is open or not in the sample.
    """
    sampled = rule.samples(trace.id)
    if (where.open and not rule.spec.open) or not (sampled or failed):
        return None
    chosen = chosen_of(trace, [rule], where, () if sampled else failed)
    return _score_all(trace, chosen, where, OFF, now)


def beyond_samples(
    trace: Trace,
    rules: Sequence[Rule],
    where: Origin,
    rows: Sequence[Row],
    *,
    now: float,
    redaction: Redaction = ON,
) -> Scored:
    """Score traces outside of rules' samples, where other rules failed."""
    failed = [row for row in rows if row["status"] == "failed"]
    if not failed or all(rule.samples(trace.id) for rule in rules):
        return Scored([], [])
    return _score_all(trace, chosen_of(trace, rules, where, failed), where, redaction, now)


def chosen_of(
    trace: Trace, rules: Sequence[Rule], where: Origin, failed: Sequence[Row]
) -> list[Chosen]:
    """Return what each rule scores: its sample, or with ``failed`` the failures outside of it."""
    chosen = []
    for rule in rules:
        sampled = rule.samples(trace.id)
        if (where.open and not rule.spec.open) or sampled == bool(failed):
            continue
        some = list(subjects(trace, rule.on, rule.where, where))
        if failed:
            by_others = [row for row in failed if row["rule"] != rule.name]
            some = [each for each in some if any(_concerns(each, row) for row in by_others)]
        if some:
            chosen.append(Chosen(rule, some, sampled))
    return chosen


def _concerns(subject: Subject, row: Row) -> bool:
    """Return whether a score is about a subject, or about something in it.

    A score about a whole trace or turn says nothing about a single dispatch in it.
    """
    about = msgspec.json.decode(row["subject"], type=list[str])
    return any(id_ in subject.ids for id_ in about) or (
        row["unit"] == "trace" and subject.on == "conversation"
    )


def _score_all(
    trace: Trace,
    chosen: Sequence[Chosen],
    where: Origin,
    redaction: Redaction,
    now: float,
) -> Scored:
    rows: list[Row] = []
    waiting: list[str] = []
    unsettled: list[tuple[str, str]] = []
    for one in chosen:
        for part in one.rule.parts:
            later = _Later() if part.judge is not None else None
            ids = frozenset().union(*(each.ids for each in one.subjects))
            plan = _plan_for(part, ids, later, redaction)
            result = start_scoring(plan, trace, None, 0)
            if not isinstance(result, CaseResult):
                result = run_anywhere(result.finish())
            scores = _wanted(plan, result, ids)
            if later is not None and later.asked:
                # If a judge is needed, the placeholder makes the score an error, also in a panel
                # or a mean.
                left = [each for each in scores if each.status == "error"]
                unsettled += [(each.evaluator, _json(each.subject)) for each in left]
                scores = [each for each in scores if each.status != "error"]
                if one.rule.name not in waiting:
                    waiting.append(one.rule.name)
            rows += rows_of(trace, one, scores, where, now)
    return Scored(rows, waiting, unsettled)


async def scores_of(trace: Trace, part: Part, ids: frozenset[str], judge: Judge) -> list[Score]:
    """Return a rule part's scores for some objects of a trace."""
    plan = _plan_for(part, ids, judge, ON)
    result = start_scoring(plan, trace, None, 0)
    if not isinstance(result, CaseResult):
        result = await result.finish()
    return _wanted(plan, result, ids)


def _plan_for(part: Part, ids: frozenset[str], judge: Judge | None, redaction: Redaction) -> Plan:
    context = msgspec.structs.replace(part.plan.context, judge=judge, only=ids)
    return msgspec.structs.replace(part.plan, context=context, redaction=redaction)


def _wanted(plan: Plan, result: CaseResult, ids: frozenset[str]) -> list[Score]:
    """Return the scores for some objects.

    Scores without an object ("there is no dispatch") are left out, except errors and scores of the
    whole trace; for optional evaluators, skipped scores of the whole trace are left out as well.
    """
    optional = {one.evaluator.name for one in plan.evaluators if one.optional}
    kept = []
    for each in result.scores:
        if each.subject:
            wanted = any(id_ in ids for id_ in each.subject)
        elif each.status == "skipped":
            wanted = each.unit == "trace" and each.evaluator not in optional
        else:
            wanted = each.unit == "trace" or each.status == "error"
        if wanted:
            kept.append(each)
    return kept


class _Place(NamedTuple):
    """The dispatch or agent that an object in a trace belongs to."""

    dispatch: str | None = None
    from_agent: str | None = None
    to_agent: str | None = None


def rows_of(
    trace: Trace, chosen: Chosen, scores: Sequence[Score], where: Origin, now: float
) -> list[Row]:
    """Return rows of the table `score`."""
    places = _places(trace) if scores else {}
    made_by = {name: how for part in chosen.rule.parts for name, how in part.made_by.items()}
    rows = []
    for each in scores:
        place = next((places[id_] for id_ in each.subject if id_ in places), _Place())
        judge = each.judge
        rows.append(
            {
                "rule": chosen.rule.name,
                "evaluator": each.evaluator,
                "type": each.type,
                "evaluator_version": each.version,
                "unit": each.unit,
                "subject": _json(each.subject),
                "dispatch": _narrow(place.dispatch),
                "from_agent": _narrow(place.from_agent),
                "to_agent": _narrow(place.to_agent),
                "agent_version": _narrow(where.versions.get(place.to_agent or "")),
                "status": each.status,
                "value": each.value,
                "threshold": each.threshold,
                "reason": each.reason.replace("\0", "\ufffd"),
                "finding": _finding(each),
                "details": _json(each.details),
                "evidence": _json(each.evidence),
                "judge": None if judge is None else _json(judge),
                "cost_usd": None if judge is None else judge.cost_usd,
                "sampled": chosen.sampled,
                "at": now,
                "made_by": made_by.get(each.evaluator),
            }
        )
    return rows


def score_of(row: Mapping[Any, Any]) -> Score:
    """Return the score that a row of `score` holds."""
    return Score(
        evaluator=row["evaluator"],
        type=row["type"],
        version=row["evaluator_version"],
        unit=row["unit"],
        subject=msgspec.json.decode(row["subject"]),
        status=row["status"],
        value=row["value"],
        threshold=row["threshold"],
        reason=row["reason"] or "",
        details=msgspec.json.decode(row["details"]),
        evidence=msgspec.json.decode(row["evidence"], type=list[Evidence]),
        judge=None if row["judge"] is None else msgspec.json.decode(row["judge"], type=JudgeUse),
    )


def _places(trace: Trace) -> dict[str, _Place]:
    """Return the owner of runs, tool calls and dispatches, by id.

    A call that makes a dispatch belongs to the dispatch; any other call to the calling agent.
    """
    places: dict[str, _Place] = {}
    for turn in trace.turns:
        for run in turn.runs:
            place = _Place(None, None, run.agent if known(trace, run, "agent") else None)
            places[run.id] = place
            places.update((step.id, place) for step in run.steps)
        for made in turn.dispatches:
            places[made.id] = _Place(made.id, made.from_agent, made.to_agent)
            if made.call is not None:
                places[made.call] = places[made.id]
    return places


def _finding(score: Score) -> str | None:
    """Return the kind of the proven fault, if there is one; warnings do not count."""
    if score.status != "failed":
        return None
    findings = score.details.get("findings")
    settled = score.details.get("settled_by")
    named = [*findings] if isinstance(findings, list) else []
    named.append(settled)
    for each in named:
        if isinstance(each, Mapping) and not each.get("warning"):
            kind = each.get("kind")
            return kind if isinstance(kind, str) else None
    return None


def _narrow(name: str | None) -> str | None:
    """Return a name as in the rows of runs and dispatches."""
    return None if name is None else narrow(name)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
