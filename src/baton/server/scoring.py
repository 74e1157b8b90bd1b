"""Live scoring by rules: at once where no judge is needed, else from a queue.

A trace is scored as any recorded one (:mod:`baton.runner.scoring`). Judged evaluators run twice: at
once with a judge that answers nothing, which gives the scores that the record alone settles, and
from the queue with the real judge, for the rest.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from baton.model import (
    CaseResult,
    Judge,
    JudgeError,
    JudgeRequest,
    JudgeResponse,
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

    ``unsettled`` is what these are asked about: evaluators, with subjects as rows have them.
    """

    rows: list[Row]
    waiting: list[str]
    unsettled: Sequence[tuple[str, str]] = ()


class Chosen(NamedTuple):
    """What a rule scores of a trace; ``sampled`` is false where only failures of others are."""

    rule: Rule
    subjects: list[Subject]
    sampled: bool


class _Later:
    """A placeholder for a judge that is asked later; records whether it was asked."""

    model = ""
    samples = 1
    asked = False

    def __init__(self, top: _Later | None = None) -> None:
        self._top = top or self

    def with_options(self, override: Mapping[str, Any]) -> Self:  # noqa: ARG002
        """Return what notes a question here."""
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
    """Score a trace by rules, as far as no judge is needed.

    A rule scores what is in its sample, and beyond that what another rule failed. ``rules`` are
    those for its project and tags, ``now`` is the time of the scores.
    """
    now = time.time() if now is None else now
    sampled = _score_all(trace, chosen_of(trace, rules, where, ()), where, redaction, now)
    beyond = beyond_samples(trace, rules, where, sampled.rows, now=now, redaction=redaction)
    return Scored(sampled.rows + beyond.rows, sampled.waiting + beyond.waiting)


def score_rule(
    trace: Trace, rule: Rule, where: Origin, failed: Sequence[Row], *, now: float
) -> Scored | None:
    """Score a trace that was redacted before by one rule, as far as no judge is needed.

    ``failed`` is what other rules failed of it: beyond its sample a rule scores that. ``None``
    stands for a trace that the rule leaves out for its sample, or as it is open.
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
    """Score what rules do not have in their samples, as other rules failed it."""
    failed = [row for row in rows if row["status"] == "failed"]
    if not failed or all(rule.samples(trace.id) for rule in rules):
        return Scored([], [])
    return _score_all(trace, chosen_of(trace, rules, where, failed), where, redaction, now)


def chosen_of(
    trace: Trace, rules: Sequence[Rule], where: Origin, failed: Sequence[Row]
) -> list[Chosen]:
    """Choose what each rule scores: its sample, or with ``failed`` what is beyond that."""
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

    A score about a whole trace or turn says nothing of a dispatch in it.
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
                # What needs a judge is an error of this one, also in a panel or a mean.
                left = [each for each in scores if each.status == "error"]
                unsettled += [(each.evaluator, _json(each.subject)) for each in left]
                scores = [each for each in scores if each.status != "error"]
                if one.rule.name not in waiting:
                    waiting.append(one.rule.name)
            rows += rows_of(trace, one, scores, where, now)
    return Scored(rows, waiting, unsettled)


async def scores_of(
    trace: Trace, part: Part, ids: frozenset[str], judge: Judge, redaction: Redaction = ON
) -> list[Score]:
    """Return the scores of a part of a rule that are about some objects of a trace."""
    plan = _plan_for(part, ids, judge, redaction)
    result = start_scoring(plan, trace, None, 0)
    if not isinstance(result, CaseResult):
        result = await result.finish()
    return _wanted(plan, result, ids)


def _plan_for(part: Part, ids: frozenset[str], judge: Judge | None, redaction: Redaction) -> Plan:
    context = msgspec.structs.replace(part.plan.context, judge=judge, only=ids)
    return msgspec.structs.replace(part.plan, context=context, redaction=redaction)


def _wanted(plan: Plan, result: CaseResult, ids: frozenset[str]) -> list[Score]:
    """Return the scores that are about some objects.

    What is about nothing at all ("there is not a dispatch") is left out, errors and scores of the
    whole trace apart; of optional evaluators also what they skip of that.
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
    """Whose the thing is that a score is about."""

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


def _places(trace: Trace) -> dict[str, _Place]:
    """Say whose runs, tool calls and dispatches are, by id.

    A call that hands work over belongs to the dispatch; any other one to the agent that makes it.
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
    """Return the kind of fault that the record proves, if it does; a warning is none."""
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
    """Return a name as the rows of runs and dispatches have it."""
    return None if name is None else narrow(name)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
