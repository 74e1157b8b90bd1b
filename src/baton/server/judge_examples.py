"""Examples for judges of live rules, from labels of a project that contradict its judges.

Labels and proven fixes are already rows, so nothing is stored twice: examples are made from them
when a judge is asked, and only for conversations that still exist. Deleted conversations are no
longer shown to a judge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from sqlalchemy import Connection, func, select

from baton.evaluators.judged import Judged
from baton.evaluators.judging.labelled_examples import LabelledExample, example_of
from baton.evaluators.judging.rubric_files import names_of
from baton.evaluators.judging.verdicts import label_in
from baton.evaluators.panel import Panel
from baton.model import EvalContext, Trace
from baton.model.redact import ON
from baton.runner.judged_subjects import terms_of
from baton.runner.plan import PlannedEvaluator
from baton.session.rubric_examples import shown_to_judge
from baton.stats.calibration import majority, people_class

from .bodies import BodyGone
from .issue_list import Progress
from .review import opinion_of
from .rules import Part
from .schema import conversation, issue_member, issue_progress, label, score
from .store import Store

_READ = 2_000
"""Maximum labels of a rubric to examine, the newest."""
_MOST = 300
"""Maximum examples, from the newest things: reading their records takes about a second."""
_FRESH = 600.0
"""Seconds after which examples are made again even without new labels: retention may have deleted
conversations."""


class _Thing(NamedTuple):
    """A thing that becomes an example: its place, and the verdicts of people and the judge."""

    conversation: int
    subject: str
    value: str | float
    judged: str | float | None
    note: str | None
    at: float | None
    by_fix: bool


class _Kept(NamedTuple):
    stamp: tuple[Any, ...]
    at: float
    items: list[LabelledExample]


_made: WeakKeyDictionary[Store, dict[tuple[int, str], _Kept]] = WeakKeyDictionary()


def with_examples(
    store: Store,
    project: int,
    part: Part,
    now: float,
    read: Callable[[Store, int, int], Trace],
) -> Part:
    """Return a part of a rule whose judged evaluators show examples, if their options ask for it.

    ``read`` returns the record of a conversation; see :data:`baton.server.judging.ReadRecord`.
    """
    if not any(_asking(one) for one in part.plan.evaluators):
        return part
    name = next(each for each, number in store.projects().items() if number == project)
    evaluators = []
    for one in part.plan.evaluators:
        asked = _asking(one)
        if asked is not None:
            items = _items(store, project, name, asked, now, read)
            made = one.evaluator.with_examples(items, name)  # type: ignore[attr-defined]
            one = msgspec.structs.replace(one, evaluator=made)  # noqa: PLW2901
        evaluators.append(one)
    plan = msgspec.structs.replace(part.plan, evaluators=tuple(evaluators))
    return msgspec.structs.replace(part, plan=plan)


def _asking(one: PlannedEvaluator) -> Judged | None:
    """Return the evaluator whose options ask for examples; of a panel one of its models."""
    evaluator = one.evaluator
    judged = evaluator.members[0] if isinstance(evaluator, Panel) else evaluator
    asks = isinstance(judged, Judged) and judged.options.examples is not None
    return judged if asks and isinstance(judged, Judged) else None


def _items(
    store: Store,
    project: int,
    name: str,
    evaluator: Judged,
    now: float,
    read: Callable[[Store, int, int], Trace],
) -> list[LabelledExample]:
    """Return the examples of a rubric in a project; made again if labels have changed."""
    rubrics = [*names_of(evaluator.shape), evaluator.name]
    with store.read() as connection:
        mine = (label.c.project == project) & label.c.rubric.in_(list(rubrics))
        labels = connection.execute(select(func.max(label.c.id), func.count()).where(mine)).one()
        fixes = select(func.count(), func.sum(func.length(issue_progress.c.progress)))
        progress = connection.execute(fixes.where(issue_progress.c.project == project)).one()
        stamp = (*labels, *progress)
        kept = _made.setdefault(store, {}).get((project, evaluator.name))
        if kept is not None and kept.stamp == stamp and 0 <= now - kept.at < _FRESH:
            return kept.items
        things = [
            *_against(connection, project, evaluator, rubrics),
            *_of_fixes(connection, project, evaluator),
        ]
    items = list(_examples(store, project, name, evaluator, things, read))
    _made[store][project, evaluator.name] = _Kept(stamp, now, items)
    return items


def _against(
    connection: Connection, project: int, evaluator: Judged, rubrics: Iterable[str]
) -> list[_Thing]:
    """Return things where most people disagree with the judge, by each person's last label."""
    query = (
        select(
            label.c.conversation,
            label.c.subject,
            label.c.by,
            label.c.value,
            label.c.note,
            label.c.at,
            score.c.subject.label("about"),
            score.c.status,
            score.c.value.label("number"),
            score.c.details,
        )
        .join(
            score,
            (score.c.conversation == label.c.conversation) & (score.c.project == label.c.project),
        )
        .where(
            label.c.project == project,
            label.c.rubric.in_(list(rubrics)),
            score.c.type == evaluator.type,
            score.c.status.in_(["passed", "failed"]),
            score.c.judge.is_not(None),
            score.c.replaced_by.is_(None),
        )
        .order_by(label.c.id.desc(), score.c.id.desc())
        .limit(_READ)
    )
    said: dict[tuple[int, str], dict[str, Any]] = defaultdict(dict)
    for row in connection.execute(query):
        if row.subject in msgspec.json.decode(row.about):
            said[row.conversation, row.subject].setdefault(row.by, row)
    terms = terms_of(evaluator)
    examples = []
    for (number, subject), by_person in said.items():
        rows = list(by_person.values())
        value = majority([row.value for row in rows])
        stated = None if value is None else opinion_of(msgspec.json.decode(value), terms)
        if value is None or stated is None:
            continue
        judged = label_in(rows[0].details)
        if stated.label in terms.labels and judged is not None:
            differs = stated.label != judged
        else:
            verdict = people_class(stated, "verdicts", terms)
            differs = verdict is not None and verdict != rows[0].status
        if differs:
            agreeing = [row for row in rows if row.value == value]
            notes = "; ".join(row.note for row in agreeing if row.note)
            examples.append(
                _Thing(
                    number,
                    subject,
                    stated.label if stated.label is not None else stated.score or 0.0,
                    judged if judged is not None else rows[0].number,
                    notes or None,
                    agreeing[0].at,
                    by_fix=False,
                )
            )
    return examples[:_MOST]


def _of_fixes(connection: Connection, project: int, evaluator: Judged) -> list[_Thing]:
    """Return a rubric's failures in issues with a proven fix: these verdicts were right."""
    query = select(issue_progress.c.issue, issue_progress.c.progress)
    proven = []
    for issue, progress in connection.execute(query.where(issue_progress.c.project == project)):
        fix = msgspec.json.decode(progress, type=Progress).fix
        if fix is not None and fix.state == "proven":
            proven.append(issue)
    if not proven:
        return []
    failed = (
        select(score.c.conversation, score.c.dispatch, score.c.value, score.c.details, score.c.at)
        .join(
            issue_member,
            (issue_member.c.project == score.c.project)
            & (issue_member.c.conversation == score.c.conversation)
            & (issue_member.c.place == score.c.dispatch),
        )
        .where(
            score.c.project == project,
            issue_member.c.issue.in_(proven),
            score.c.type == evaluator.type,
            score.c.status == "failed",
            score.c.judge.is_not(None),
            score.c.replaced_by.is_(None),
        )
        .order_by(score.c.id.desc())
        .limit(_MOST)
    )
    examples = []
    for row in connection.execute(failed):
        value = label_in(row.details) or row.value
        if value is not None:
            examples.append(
                _Thing(row.conversation, row.dispatch, value, value, None, row.at, by_fix=True)
            )
    return examples


def _examples(
    store: Store,
    project: int,
    name: str,
    evaluator: Judged,
    things: Iterable[_Thing],
    read: Callable[[Store, int, int], Trace],
) -> Iterable[LabelledExample]:
    by_conversation: dict[int, dict[str, _Thing]] = defaultdict(dict)
    for each in things:  # labels take precedence over fixes
        by_conversation[each.conversation].setdefault(each.subject, each)
    with store.read() as connection:
        query = select(conversation.c.id).where(
            conversation.c.project == project, conversation.c.id.in_(list(by_conversation))
        )
        there = set(connection.scalars(query))
    for number in sorted(there):
        try:
            trace = ON.trace(read(store, project, number))
        except (BodyGone, KeyError):
            continue
        wanted = by_conversation[number]
        for subject in evaluator.subjects(trace, None, EvalContext()):
            thing = wanted.get(subject.id) or (
                wanted.get(trace.id) if subject.unit == "trace" else None
            )
            question = None if thing is None else shown_to_judge(evaluator, subject)
            if thing is not None and question is not None:
                yield example_of(
                    question.sections,
                    rubric=evaluator.type,
                    conversation=trace.id,
                    subject=subject.id,
                    project=name,
                    value=thing.value,
                    judged=thing.judged,
                    note=thing.note,
                    origin="proven fix" if thing.by_fix else "label",
                    at=None
                    if thing.at is None
                    else datetime.fromtimestamp(thing.at, UTC).isoformat(),
                )
