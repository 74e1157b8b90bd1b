"""Tries a rubric before it is saved: a judge answers it for some dispatches, from a queue.

A trial is a row. A worker asks a few questions at a time, so that the trial shows its progress and
continues after a restart. `trials:` in `server.yaml` limits the cost of trials, like that of rules.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from sqlalchemy import insert, select, update

from baton.datasets.labels import Label
from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric_files import names_of
from baton.evaluators.judging.verdicts import label_in
from baton.judges.judge import LlmJudge, make_judge
from baton.judges.judge_settings import JudgeSettings
from baton.judges.llm_client import LlmClient
from baton.judges.retries import Connect
from baton.model import EvalContext, InputError, Problem, Score, Trace, suggestion
from baton.model.prices import Prices
from baton.runner.calibration_report import calibration_report
from baton.runner.judged_subjects import Chosen, JudgedThing, chosen, of_scores
from baton.runner.loop import run_anywhere
from baton.session.server_rows import Trial, TrialAnswer

from . import queries
from .bodies import BodyGone
from .conversations import record_of
from .database import EVERY_PROJECT
from .judging import ReadRecord, spend, spent
from .paging import at_of
from .queues import change_taken
from .review import Key, labels_of_dispatches
from .rubrics import known_rubrics, rubric_of_text
from .schema import conversation, label, rubric_trial, score
from .settings import Settings
from .store import Store

MOST = 100
"""Maximum number of things in a trial."""
_AT_ONCE = 8
"""Number of questions before the answers are stored."""
_LEASE = 300.0
"""Seconds for which a trial is reserved for the worker that asks its next questions. If the worker
dies, another one asks them again after this time."""
_BUDGET = "trials of rubrics"
"""The name for the cost of trials, in the table with the cost of rules."""


class TrialRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What to try, and on what.

    ``text`` is the rubric, ``judge`` the name of one in `judges:` (by default the only one). ``on``
    is ``labelled`` for the latest things that people labelled by the rubric ``labels`` (by default
    that of the text), or ``chosen`` for the newest that match ``filter``, or for ``things``: pairs
    of the number of a conversation and an id in it. At most ``most`` things are tried.
    """

    text: str
    judge: str | None = None
    on: Literal["labelled", "chosen"] = "labelled"
    labels: str | None = None
    filter: str | None = None
    things: Annotated[list[tuple[int, str]], msgspec.Meta(max_length=MOST)] = []
    most: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = 20


class _Kept(msgspec.Struct, kw_only=True):
    """A trial as stored: the request, and the things that were selected."""

    text: str
    judge: str
    labels: str
    things: list[Key]


def start_trial(
    store: Store,
    project: int,
    by: str,
    request: TrialRequest,
    settings: Settings,
    now: float | None = None,
) -> int:
    """Add a trial to the queue, and return its number.

    Raises:
        InputError: the rubric has errors, there is no such judge, or nothing to try it on.
    """
    rubric = rubric_of_text(request.text)
    evaluator = Judged(rubric)
    judges = settings.judge_settings
    name = request.judge or (next(iter(judges)) if len(judges) == 1 else None)
    if name is None or name not in judges:
        problem = f"there is no judge `{name}`" if name else "name a judge"
        hint = suggestion(name or "", judges) if judges else "server.yaml names none in `judges:`"
        raise InputError(Problem(path="judge", message=f"{problem}; {hint}"))
    labels = request.labels or rubric.name
    things = _things(store, project, evaluator, request, labels, settings)[: request.most]
    if not things:
        what = f"no label by `{labels}`" if request.on == "labelled" else "no dispatch is chosen"
        raise InputError(f"there is nothing to try the rubric on: {what}")
    now = time.time() if now is None else now
    kept = _Kept(text=request.text, judge=name, labels=labels, things=things)
    row = {
        "project": project,
        "created": now,
        "by": by,
        "request": msgspec.json.encode(kept).decode(),
        "state": "waiting",
        "due": now,
        "answers": "[]",
        "cost_usd": 0.0,
    }
    with store.write() as connection:
        number = connection.execute(insert(rubric_trial).values(row)).inserted_primary_key
    assert number is not None  # noqa: S101 - the table counts up
    return int(number[0])


def _things(
    store: Store,
    project: int,
    evaluator: Judged,
    request: TrialRequest,
    labels: str,
    settings: Settings,
) -> list[Key]:
    if request.on == "labelled":
        names = _names_of_labels(store, project, labels, settings)
        query = (
            select(label.c.conversation, label.c.subject)
            .where(label.c.project == project, label.c.rubric.in_(names))
            .order_by(label.c.id.desc())
        )
        with store.read() as connection:
            # Several people label a thing, and some change their mind: up to 20 labels for each.
            rows = connection.execute(query.limit(20 * MOST)).all()
        return list(dict.fromkeys((row.conversation, row.subject) for row in rows))
    if request.things:
        return request.things
    if evaluator.rubric.unit == "dispatch":
        chosen_by = queries.dispatch_filter(request.filter)
        page = queries.dispatches(store, project, chosen_by, limit=10 * request.most)
        kinds = evaluator.rubric.kinds or ["transfer", "delegate", "sequence"]
        return [
            (row.conversation_id, row.id)
            for row in page.items
            if row.kind in kinds and row.basis != "order"
        ]
    some = queries.conversations(
        store, project, queries.conversation_filter(request.filter), limit=request.most
    )
    things: list[Key] = []
    for each in some.items:
        try:
            record = record_of(store, project, each.id)
        except (BodyGone, KeyError):
            continue
        things += [(each.id, one.id) for one in evaluator.subjects(record, None, EvalContext())]
    return things


def _names_of_labels(store: Store, project: int, name: str, settings: Settings) -> list[str]:
    """Return all names that labels of a rubric may have."""
    projects = {number: each for each, number in store.projects().items()}
    for evaluator in known_rubrics(settings, projects[project]).values():
        names = names_of(evaluator.shape)
        if name in names:
            return names
    return [name]


def stop_trial(store: Store, project: int, number: int, now: float | None = None) -> None:
    """Stop a trial, and keep its answers; a finished trial is not changed."""
    change = update(rubric_trial).where(
        rubric_trial.c.project == project,
        rubric_trial.c.id == number,
        rubric_trial.c.state.in_(("waiting", "running")),
    )
    with store.write() as connection:
        connection.execute(
            change.values(state="stopped", ended=time.time() if now is None else now)
        )


def trial_of(store: Store, project: int, number: int) -> Trial:
    """Return the current state of a trial, compared with the labels of people.

    Raises:
        KeyError: the project has no trial with this number.
    """
    query = select(rubric_trial).where(
        rubric_trial.c.project == project, rubric_trial.c.id == number
    )
    with store.read() as connection:
        row = connection.execute(query).mappings().first()
        if row is None:
            raise KeyError(number)
        kept = msgspec.json.decode(row["request"], type=_Kept)
        evaluator = Judged(rubric_of_text(kept.text))
        shape = msgspec.structs.replace(evaluator.shape, aliases=[kept.labels])
        answers = msgspec.json.decode(row["answers"], type=list[TrialAnswer])
        about = {each.conversation_id for each in answers}
        labels = labels_of_dispatches(connection, project, Judged(shape), about)
        before = _before(connection, project, evaluator.type, answers)
    changed = 0
    for each in answers:
        key = (each.conversation_id, each.subject)
        each.people = {by: one.value for by, one in labels.get(key, {}).items()}
        each.before = before.get(key)
        answer = each.label or each.status
        changed += each.before is not None and each.trouble is None and answer != each.before
    at = at_of(row["created"])
    assert at is not None  # noqa: S101 - by our clock
    trial = Trial(
        id=number,
        rubric=evaluator.type,
        version=evaluator.version,
        judge=kept.judge,
        by=row["by"],
        created=at,
        state=row["state"],
        asked=len(kept.things),
        answers=answers,
        cost_usd=row["cost_usd"],
        error=row["error"],
        changed=changed,
    )
    _compare(trial, evaluator)
    return trial


def text_of_trial(store: Store, project: int, number: int) -> str:
    """Return the rubric that is tried, as it was sent; raises KeyError if there is no trial."""
    query = select(rubric_trial.c.request).where(
        rubric_trial.c.project == project, rubric_trial.c.id == number
    )
    with store.read() as connection:
        request = connection.execute(query).scalar()
    if request is None:
        raise KeyError(number)
    return msgspec.json.decode(request, type=_Kept).text


def _compare(trial: Trial, evaluator: Judged) -> None:
    """Compare the verdicts with people's labels."""
    labels = [
        Label(trace=each.trace, subject=each.subject, rubric=trial.rubric, value=value, by=by)
        for each in trial.answers
        for by, value in each.people.items()
    ]
    things = [
        JudgedThing(
            trace=each.trace,
            case=each.trace,
            subject=each.subject,
            agent=each.agent,
            position=1,
            version=each.version,
            status=each.status,
            label=each.label,
            value=each.value,
            model=each.model,
            trouble=each.trouble,
        )
        for each in trial.answers
    ]
    if not labels or not any(each.model for each in trial.answers):
        return
    try:
        report = calibration_report(evaluator, labels, things)
    except InputError as error:
        trial.incomparable = error.problems[0].message
        return
    if report.judges:
        trial.quality = report.judges[0].quality


def _before(
    connection: Any, project: int, type_: str, answers: Sequence[TrialAnswer]
) -> dict[Key, str]:
    """Return the last label (or verdict) of the saved rubric, by thing."""
    ids = sorted({each.conversation_id for each in answers})
    query = (
        select(score.c.conversation, score.c.subject, score.c.status, score.c.details)
        .join(conversation, conversation.c.id == score.c.conversation)
        .where(
            score.c.project == project,
            conversation.c.project == project,
            score.c.conversation.in_(ids),
            score.c.version == conversation.c.version,
            score.c.replaced_by.is_(None),
            score.c.type == type_,
            score.c.status.in_(("passed", "failed")),
        )
        .order_by(score.c.id)
    )
    before: dict[Key, str] = {}
    for row in connection.execute(query):
        answer = label_in(row.details) or row.status
        for subject in msgspec.json.decode(row.subject, type=list[str])[:1]:
            before[row.conversation, subject] = answer
    return before


class _Taken(NamedTuple):
    id: int
    project: int
    kept: _Kept
    answers: list[TrialAnswer]
    due: float


def work_on_trials(
    store: Store,
    settings: Settings,
    now: float,
    *,
    read: ReadRecord = record_of,
    cache: Path | None = None,
    connect: Connect = LlmClient,
) -> bool:
    """Ask the next questions of a due trial; return whether there was one."""
    taken = _take(store, now)
    if taken is None:
        return False
    try:
        answers, cost, why = _ask(store, settings, taken, now, read, cache, connect)
    except InputError as error:
        change_taken(store, rubric_trial, taken, state="failed", error=str(error), ended=now)
        return True
    every = [*taken.answers, *answers]
    ended = why is not None or len(every) >= len(taken.kept.things)
    state = "running" if not ended else "done" if why is None else "failed"
    change_taken(
        store,
        rubric_trial,
        taken,
        state=state,
        due=now,
        answers=msgspec.json.encode(every).decode(),
        cost_usd=rubric_trial.c.cost_usd + cost,
        error=why,
        ended=now if ended else None,
    )
    return True


def _take(store: Store, now: float) -> _Taken | None:
    query = (
        select(rubric_trial)
        .where(rubric_trial.c.state.in_(("waiting", "running")), rubric_trial.c.due <= now)
        .order_by(rubric_trial.c.due)
        .limit(1)
    )
    with store.read() as connection:
        row = connection.execute(query, execution_options=EVERY_PROJECT).mappings().first()
    if row is None:
        return None
    taken = _Taken(
        row["id"],
        row["project"],
        msgspec.json.decode(row["request"], type=_Kept),
        msgspec.json.decode(row["answers"], type=list[TrialAnswer]),
        row["due"],
    )
    until = now + _LEASE
    return (
        taken._replace(due=until)
        if change_taken(store, rubric_trial, taken, state="running", due=until)
        else None
    )


def _ask(
    store: Store,
    settings: Settings,
    taken: _Taken,
    now: float,
    read: ReadRecord,
    cache: Path | None,
    connect: Connect,
) -> tuple[list[TrialAnswer], float, str | None]:
    """Ask the next questions; return the answers, their cost, and why the trial ends, if so."""
    evaluator = Judged(rubric_of_text(taken.kept.text))
    judge_settings = settings.judge_settings.get(taken.kept.judge)
    if judge_settings is None:
        raise InputError(f"`judges:` no longer has `{taken.kept.judge}`")
    budget = settings.trials
    left = left_of_budget(store, taken.project, settings, now)
    used_up = (
        f"trials have used up their budget of ${budget.cost_usd:g} per {budget.per}: try again in "
        f"the next {budget.per}, or raise `trials:` in server.yaml"
    )
    if left <= 0:
        return [], 0.0, used_up
    judge = judge_within(judge_settings, left, cache, connect, settings.prices)
    begin = len(taken.answers)
    some = taken.kept.things[begin : begin + _AT_ONCE]
    answers: list[TrialAnswer] = []

    async def ask() -> None:
        async with judge:
            for number, group in groupby(sorted(some), key=lambda key: key[0]):
                subjects = [subject for _, subject in group]
                try:
                    record = read(store, taken.project, number)
                except (BodyGone, KeyError):
                    answers.extend(
                        _no_answer(number, "", one, "its record was deleted") for one in subjects
                    )
                    continue
                keys = {(record.id, subject) for subject in subjects}
                answers.extend(await _answers(chosen(evaluator, keys), record, number, judge))
                known = {each.subject for each in answers if each.conversation_id == number}
                answers.extend(
                    _no_answer(number, record.id, one, "the rubric does not apply to it")
                    for one in subjects
                    if one not in known
                )

    try:
        run_anywhere(ask())
    finally:
        charge(store, taken.project, settings, judge.spent, now)
    order = {key: place for place, key in enumerate(some)}
    answers.sort(key=lambda one: order.get((one.conversation_id, one.subject), 0))
    over = any(each.trouble == "budget" for each in answers)
    return answers, judge.spent, used_up if over else None


def left_of_budget(store: Store, project: int, settings: Settings, now: float) -> float:
    """Return how many USD of `trials:` are left to a project in this period; maybe none."""
    return settings.trials.cost_usd - spent(store, project, _BUDGET, settings.trials, now)


def charge(store: Store, project: int, settings: Settings, cost: float, now: float) -> None:
    """Take a cost in USD off the budget of `trials:`."""
    if cost > 0:
        spend(store, project, _BUDGET, settings.trials, cost, now)


def judge_within(
    settings: JudgeSettings,
    left: float,
    cache: Path | None,
    connect: Connect,
    prices: Prices | None,
) -> LlmJudge:
    """Return a judge that stops at the cost ``left``, if its price is known."""
    try:
        return make_judge(
            settings,
            cache=cache,
            max_cost=min(left, settings.max_cost or left),
            prices=prices,
            connect=connect,
        )
    except InputError:
        # A model without a price, such as a self-hosted one, has no limit of cost, only the limit
        # of things. Other errors are raised again here.
        return make_judge(settings, cache=cache, connect=connect)


async def _answers(
    evaluator: Chosen, record: Trace, number: int, judge: LlmJudge
) -> list[TrialAnswer]:
    scores = await evaluator.evaluate(record, None, EvalContext(judge=judge))
    by_subject: dict[str, Score] = {each.subject[0]: each for each in scores if each.subject}
    return [
        TrialAnswer(
            conversation_id=number,
            trace=record.id,
            subject=thing.subject,
            agent=thing.agent,
            status=thing.status,
            label=thing.label,
            value=thing.value,
            reason=by_subject[thing.subject].reason or "",
            quote=next((one.quote or "" for one in by_subject[thing.subject].evidence), ""),
            model=thing.model,
            version=thing.version,
            trouble=thing.trouble,
        )
        for thing in of_scores(record, record.id, scores, {})
    ]


def _no_answer(number: int, trace: str, subject: str, why: str) -> TrialAnswer:
    return TrialAnswer(
        conversation_id=number,
        trace=trace,
        subject=subject,
        agent=None,
        status="skipped",
        trouble=why,
    )
