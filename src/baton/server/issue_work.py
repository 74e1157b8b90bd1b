"""Automatic work on issues: investigations, and states from the results of their cases.

An investigation uses the default judge, within the limits of `trials:`. An issue with cases is
fixed when all of them passed in several consecutive evaluations of this server, and has regressed
when one fails.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Table, insert, select, update

from baton.feed import issue_progress as feed
from baton.feed.fixes import texts_in
from baton.feed.investigate import MEMBERS, STEPS, investigate
from baton.feed.issue_states import Mark
from baton.feed.issues import Member
from baton.feed.lookup import InvestigationData
from baton.feed.promote import Run, input_of, marks_by_cases
from baton.judges.llm_client import LlmClient
from baton.judges.retries import Connect
from baton.model import InputError, JudgeError, Status, Trace
from baton.runner.loop import run_anywhere
from baton.session.server_rows import IssueWork
from baton.store import rows_of

from .access import Caller
from .bodies import BodyGone
from .conversations import record_of
from .database import EVERY_PROJECT, Unavailable
from .issue_list import Progress, keep_progress, one_issue
from .issues import clean
from .jobs import usual_judge
from .paging import at_of
from .queues import change_taken
from .schema import conversation, dispatch, issue, issue_event, issue_progress, issue_work, job
from .settings import Settings
from .span_chunks import crash
from .store import Store
from .trials import charge, judge_within, left_of_budget

LOG = logging.getLogger("baton.server")
_TWINS = 300
"""Maximum passing conversations of the same receiver to search for the same input."""
_LOOKED_THROUGH, _EARLIER = 500, 20
"""Maximum other issues, the newest ones, to examine and to offer to an investigation."""
_LEASE = 600.0
"""Seconds for which an investigation is reserved for the worker that does it: up to 30 questions,
one after the other. If the worker dies, another one starts it again after this time."""
_ORDER: tuple[Status, ...] = ("failed", "error", "skipped", "passed")


def ask_to_investigate(store: Store, caller: Caller, key: str, settings: Settings) -> None:
    """Have a worker investigate an issue, unless that already waits or runs.

    Raises:
        NoIssue: there is no such issue.
        InputError: no usable judge is configured.
    """
    if usual_judge(settings) is None:
        raise InputError("an investigation asks a model: name one in `judges:` of server.yaml")
    ask_once(store, issue_work, caller, key)


def ask_once(store: Store, table: Table, caller: Caller, key: str, **more: str) -> None:
    """Add a row to the work on an issue, unless one already waits or runs.

    Raises:
        NoIssue: there is no such issue.
    """
    one_issue(store, caller.project, key, members=0)
    with store.write() as connection:
        which = (issue.c.project == caller.project) & (issue.c.key == key)
        # Locked, so that two simultaneous clicks count once.
        id_ = connection.execute(select(issue.c.id).where(which).with_for_update()).scalar_one()
        there = select(table.c.id).where(
            table.c.project == caller.project,
            table.c.issue == id_,
            table.c.state.in_(("waiting", "running")),
        )
        if connection.execute(there).first() is None:
            row = {"project": caller.project, "issue": id_, "by": clean(caller.name),
                   "created": time.time(), "state": "waiting", "due": 0.0, **more}  # fmt: skip
            connection.execute(insert(table).values(row))


def work_of(store: Store, project: int, key: str, table: Table = issue_work) -> IssueWork | None:
    """Return the last requested investigation or proof; ``None`` without one."""
    query = (
        select(table)
        .join(issue, (issue.c.id == table.c.issue) & (issue.c.project == project))
        .where(table.c.project == project, issue.c.key == key)
        .order_by(table.c.id.desc())
        .limit(1)
    )
    with store.read() as connection:
        row = connection.execute(query).mappings().first()
    if row is None:
        return None
    return IssueWork(
        state=row["state"],
        by=row["by"],
        created=at_of(row["created"]),
        error=row["error"],
        agent=row.get("agent"),
        task=row.get("task"),
    )


class _Taken(NamedTuple):
    id: int
    project: int
    key: str
    by: str
    due: float


def work_on_issues(
    store: Store,
    settings: Settings,
    now: float,
    *,
    cache: Path | None = None,
    connect: Connect = LlmClient,
) -> bool:
    """Investigate the next waiting issue; return whether there was one."""
    taken = _take(store, now)
    if taken is None:
        return False
    state, error = "done", None
    try:
        _investigate(store, settings, taken, now, cache, connect)
    except InputError as said:
        state, error = "failed", str(said)
    except Unavailable:
        raise
    except Exception as broken:  # noqa: BLE001 - it is said, and not tried for ever
        LOG.error("issue %s cannot be investigated: %s", taken.key, crash(broken))
        state, error = "failed", crash(broken)
    change_taken(
        store, issue_work, taken, state=state, error=None if error is None else clean(error)
    )
    return True


def _take(store: Store, now: float) -> _Taken | None:
    query = (
        select(issue_work, issue.c.key)
        .join(issue, (issue.c.id == issue_work.c.issue) & (issue.c.project == issue_work.c.project))
        .where(issue_work.c.state.in_(("waiting", "running")), issue_work.c.due <= now)
        .order_by(issue_work.c.id)
        .limit(1)
    )
    with store.read() as connection:
        row = connection.execute(query, execution_options=EVERY_PROJECT).mappings().first()
    if row is None:
        return None
    taken = _Taken(row["id"], row["project"], row["key"], row["by"], row["due"])
    until = now + _LEASE
    return (
        taken._replace(due=until)
        if change_taken(store, issue_work, taken, state="running", due=until)
        else None
    )


def _investigate(
    store: Store,
    settings: Settings,
    taken: _Taken,
    now: float,
    cache: Path | None,
    connect: Connect,
) -> None:
    named = usual_judge(settings)
    judge_settings = settings.judge_settings.get(named or "")
    if judge_settings is None:
        raise InputError("`judges:` of server.yaml names no judge that can be asked")
    budget = settings.trials
    left = left_of_budget(store, taken.project, settings, now)
    if left <= 0:
        raise InputError(
            f"the budget of `trials:` is used up (${budget.cost_usd:g} per {budget.per}): try "
            f"again in the next {budget.per}, or state more in server.yaml"
        )
    data = _data(store, settings, taken)
    judge = judge_within(judge_settings, left, cache, connect, settings.prices)
    short_settings = settings.judge_settings.get(settings.condense or "")
    cheaper = None
    if short_settings is not None:
        cheaper = judge_within(short_settings, left, cache, connect, settings.prices)

    async def ask() -> feed.Investigation:
        async with judge, cheaper or nullcontext():
            return await investigate(data, judge, condense=cheaper, steps=STEPS)

    try:
        outcome = run_anywhere(ask())
    finally:
        cost = judge.spent + (cheaper.spent if cheaper is not None else 0.0)
        charge(store, taken.project, settings, cost, now)
    caller = Caller(taken.project, taken.by, frozenset({"run"}))
    keep_progress(store, caller, taken.key, Progress(investigation=outcome, fix=outcome.fix))


def vectors_within(
    store: Store,
    settings: Settings,
    project: int,
    texts: Sequence[str],
    now: float,
    cache: Path | None,
) -> Sequence[Sequence[float]]:
    """Return vectors of texts by `embeddings:`, within what `trials:` allows.

    Raises:
        JudgeError: the model cannot be asked, or the budget is used up.
    """
    from baton.judges.embeddings import Embeddings

    model = settings.embedding_settings
    assert model is not None  # noqa: S101 - asked for only where it is stated
    left = left_of_budget(store, project, settings, now)
    if left <= 0:
        most = settings.trials.cost_usd
        raise JudgeError("budget", f"the budget of `trials:` is used up (${most:g})")
    try:
        limit = min(left, model.max_cost or left)
        embeddings = Embeddings(model, cache=cache, max_cost=limit, prices=settings.prices)
    except InputError:
        # The cost of a model without a price cannot be limited. Other errors are raised again here.
        embeddings = Embeddings(model, cache=cache, prices=settings.prices)
    try:
        return run_anywhere(embeddings.of(texts))
    finally:
        charge(store, project, settings, embeddings.spent, now)


def _data(store: Store, settings: Settings, taken: _Taken) -> InvestigationData:
    """Gather the material: members with different texts, and passing twins."""
    record = one_issue(store, taken.project, taken.key)
    one = record.issue
    by_text: dict[str, list[Member]] = {}
    for member in one.members:
        by_text.setdefault(member.says, []).append(member)
    # One member of each wording comes before a second one of any.
    ordered = [own[n] for n in range(MEMBERS) for own in by_text.values() if n < len(own)]
    members: list[tuple[Member, Trace]] = []
    for member in ordered:
        if member.number is not None and len(members) < MEMBERS:
            try:
                members.append((member, record_of(store, taken.project, member.number)))
            except (BodyGone, KeyError):
                continue
    if not members:
        raise InputError("its conversations are no longer stored")
    inputs = {input_of(trace): place for place, (_, trace) in reversed([*enumerate(members)])}
    twins: dict[int, Trace] = {}
    for trace in _passing(store, taken.project, one.receiver):
        place = inputs.get(input_of(trace))
        if place is not None:
            twins.setdefault(place, trace)
    texts: dict[str, str] = {}
    for _, trace in members:
        texts |= texts_in(trace.agents)
    # Definitions named by the admin come first: records show the past, and maybe only a part.
    names = {number: name for name, number in store.projects().items()}
    texts |= texts_in(settings.definitions_of(names[taken.project]))
    earlier = _earlier(store, taken)
    return InvestigationData(one, members, twins, dict(sorted(texts.items())), earlier)


def _earlier(store: Store, taken: _Taken) -> list[feed.Progress]:
    """Return the findings on the project's other issues, the last investigated first."""
    query = (
        select(issue.c.key, issue_progress.c.progress)
        .join(issue, (issue.c.id == issue_progress.c.issue) & (issue.c.project == taken.project))
        .where(
            issue_progress.c.project == taken.project,
            issue_progress.c.progress.contains('"investigation"'),
            issue.c.key != taken.key,
        )
    )
    with store.read() as connection:
        rows = connection.execute(query.limit(_LOOKED_THROUGH)).all()
    earlier = []
    for row in rows:
        kept = msgspec.json.decode(row.progress, type=Progress)
        if kept.investigation is not None:
            earlier.append((kept.investigation.at, row.key, kept))
    newest = sorted(earlier, key=lambda each: each[:2], reverse=True)[:_EARLIER]
    return [
        feed.Progress(
            issue=one_issue(store, taken.project, key, members=0).issue,
            investigation=kept.investigation,
            fix=kept.fix,
        )
        for _, key, kept in newest
    ]


def _passing(store: Store, project: int, receiver: str | None) -> Iterator[Trace]:
    """Yield the newest conversations with a dispatch to an agent in which nothing failed."""
    of = select(dispatch.c.conversation).where(
        dispatch.c.project == project, dispatch.c.to_agent == (receiver or "")
    )
    query = select(conversation.c.id).where(
        conversation.c.project == project,
        conversation.c.verdict == "passed",
        conversation.c.id.in_(of),
    )
    with store.read() as connection:
        ids = list(connection.scalars(query.order_by(conversation.c.id.desc()).limit(_TWINS)))
    for id_ in ids:
        try:
            yield record_of(store, project, id_)
        except (BodyGone, KeyError):
            continue


def follow_cases(store: Store, now: float) -> int:
    """Update issues from the results of their cases in evaluations; returns how many changed.

    Raises:
        Unavailable: the store is not available now.
    """
    with store.read() as connection:
        query = (
            select(issue_progress.c.project, issue.c.key, issue.c.id, issue_progress.c.progress)
            .join(
                issue,
                (issue.c.id == issue_progress.c.issue)
                & (issue.c.project == issue_progress.c.project),
            )
            .where(issue_progress.c.progress.contains('"promotion"'))
        )
        rows = connection.execute(query, execution_options=EVERY_PROJECT).all()
    changed = 0
    for row in rows:
        kept = msgspec.json.decode(row.progress, type=Progress)
        if kept.promotion is None:
            continue
        one = one_issue(store, row.project, row.key, members=0).issue
        about = feed.Progress(issue=one, promotion=kept.promotion)
        runs = _runs(store, row.project, kept.promotion.at)
        with store.write() as connection:
            marks = _marks_of(connection, row.project, row.id, row.key)
            for mark in marks_by_cases(about, runs, marks):
                changed += _mark(connection, row.project, row.id, mark, now)
    return changed


def _runs(store: Store, project: int, since: float) -> list[Run]:
    """Return the results, by case, of this server's evaluations that started later."""
    query = select(job.c.folder, job.c.ended).where(
        job.c.project == project,
        job.c.folder.is_not(None),
        job.c.ended.is_not(None),
        job.c.created >= since,
    )
    with store.read() as connection:
        ended = connection.execute(query.order_by(job.c.ended)).all()
    runs = []
    for folder, at in ended:
        verdicts: dict[str, Status] = {}
        try:
            for each in rows_of(Path(folder)):
                before = verdicts.get(each.case_id, each.status)
                verdicts[each.case_id] = min(before, each.status, key=_ORDER.index)
        except InputError:  # removed by hand, or damaged: no result
            continue
        runs.append(Run(at, verdicts))
    return runs


def _marks_of(connection: Connection, project: int, id_: int, key: str) -> list[Mark]:
    """Return the states that people gave to an issue."""
    query = select(issue_event.c.at, issue_event.c.details).where(
        issue_event.c.project == project, issue_event.c.issue == id_, issue_event.c.kind == "state"
    )
    marks = []
    for at, details in connection.execute(query.order_by(issue_event.c.id)):
        state = msgspec.json.decode(details).get("state")
        if state in ("new", "open", "muted", "fixed"):
            marks.append(Mark(key=key, state=state, at=at))
    return marks


def _mark(connection: Connection, project: int, id_: int, mark: Mark, now: float) -> bool:
    """Give an issue the state that its cases imply, once; return whether it is new."""
    events = select(issue_event.c.details).where(
        issue_event.c.project == project, issue_event.c.issue == id_, issue_event.c.kind == "cases"
    )
    known: list[Mapping[str, Any]] = [
        msgspec.json.decode(details) for details in connection.scalars(events)
    ]
    if any(each.get("run") == mark.at for each in known):
        return False
    which = (issue.c.project == project) & (issue.c.id == id_)
    values = {"state": mark.state, "version": None, "note": mark.note, "by": "its cases",
              "since": mark.at}  # fmt: skip
    connection.execute(update(issue).where(which).values(values))
    details = {"state": mark.state, "note": mark.note, "run": mark.at}
    row = {"project": project, "issue": id_, "at": now, "kind": "cases",
           "details": clean(msgspec.json.encode(details).decode())}  # fmt: skip
    connection.execute(insert(issue_event).values(row))
    return True
