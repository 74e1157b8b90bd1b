"""The queue of questions for judges: they are retried until there is a verdict, within budgets.

A judge that is down only causes a delay: unanswered questions stay in the queue, also after
restarts, and are retried after increasing pauses. Verdicts are stored at once, and only the rest is
retried.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from baton.judges.budget import Costs
from baton.judges.judge import LlmJudge, make_judge
from baton.judges.judge_settings import check_ready
from baton.judges.llm_client import LlmClient
from baton.judges.retries import Connect
from baton.model import InputError, Problem, Trace, Usage
from baton.model.subjects import Origin
from baton.runner.loop import run_anywhere

from .bodies import BodyGone
from .database import EVERY_PROJECT
from .drift import drift_status, stepped_back
from .judge_examples import with_examples
from .rows import Sums
from .rule_scoring import Row, beyond_samples, chosen_of, rows_of, scores_of
from .rules import Budget, Part, Rule, Rules, listed
from .schema import conversation, judging, run, score, spending
from .score_rows import add_scores, current_scores, key_of, lock, made_alike, replace_scores
from .store import Store

ReadRecord = Callable[[Store, int, int], Trace]
"""Returns the record of a conversation; raises BodyGone if retention deleted it."""

_LEASE = 300.0
"""Seconds for which taken rows are reserved for their worker; after a crash they are taken
again."""
_PATIENCE = 200.0
"""Seconds for one conversation: questions without an answer by then are retried later."""
WAITING = ("waiting", "budget")
"""States of questions that are still open; each has its part of an index."""
_FIRST_PAUSE, _LONGEST_PAUSE = 15.0, 3600.0
_ABOUT_THE_QUESTION = frozenset({"unparsable", "refusal", "truncated", "empty"})
"""Kinds of errors that a retry seldom solves: after some attempts the error becomes the score."""
_ATTEMPTS = 3
"""The number of these attempts."""
_LONGEST_ERROR = 2000
"""Maximum characters of an error in the queue."""


class _Item(NamedTuple):
    """A row of the queue; it is ours until ``due``; ``rescore`` is the rescore that asks."""

    id: int
    project: int
    conversation: int
    version: int
    rule: str
    attempts: int
    due: float
    rescore: int | None


class _Judged(NamedTuple):
    """The result of one conversation: rows to store, and why some are missing, if any are."""

    rows: list[Row]
    delayed: str | None = None
    budget: bool = False


class _Work(NamedTuple):
    """A conversation to be judged by a rule, with its existing scores."""

    item: _Item
    trace: Trace
    origin: Origin
    rows: list[Row]


def judge_waiting(
    store: Store,
    rules: Rules,
    now: float,
    *,
    read: ReadRecord,
    cache: Path | None = None,
    connect: Connect = LlmClient,
    limit: int = 32,
) -> int:
    """Send due questions to judges; returns how many conversations were examined.

    ``cache`` keeps verdicts, so that nothing is asked twice. If a conversation has a newer version,
    the old one is no longer judged. ``limit`` is the maximum number of conversations: a judge
    answers some ten questions at a time.

    Raises:
        Unavailable: the store is not available now; what was asked is asked again later.
    """
    items = _take(store, now, limit)
    by_rule: dict[tuple[int, str], list[_Item]] = defaultdict(list)
    for item in items:
        by_rule[item.project, item.rule].append(item)
    for (project, name), some in by_rule.items():
        rule = rules.named(name)
        if rule is None:
            for item in some:
                _finish(store, item, "done", now, "the rule no longer exists")
            continue
        work = [one for item in some if (one := _work(store, item, read, now)) is not None]
        if work:
            answers = _ask(store, project, rule, work, now, cache, connect, read)
            for one in work:
                _keep(store, rules, rule, one, answers[one.item.id], now)
    return len(items)


def lacking(rules: Rules) -> list[Problem]:
    """Return rules whose judges cannot be used: a key, a library or a price is missing."""
    problems: list[Problem] = []
    for place, rule in enumerate(rules.rules):
        for part in rule.parts:
            try:
                if part.judge is not None:
                    check_ready(part.judge)
            except InputError as error:
                problems += [
                    Problem(
                        path=f"rules[{place}]",
                        message=f"`{rule.name}` asks a judge, and {each.message}",
                    )
                    for each in error.problems
                ]
            problems += [
                Problem(
                    path=f"rules[{place}]",
                    message=f"`{rule.name}` has a budget, and the price of `{model}` is not known: "
                    "state it under `prices:`",
                )
                for model in _without_price(part if rule.budget is not None else None)
            ]
    return problems


def _without_price(part: Part | None) -> list[str]:
    """Return the models of a judge with a budget that have no price: it would wait forever."""
    if part is None or part.judge is None:
        return []
    costs, one = Costs(part.prices), Usage(input_tokens=1, output_tokens=1)
    return [each.model for each in part.judge.endpoints() if costs.of(each, one) is None]


def _take(store: Store, now: float, limit: int) -> list[_Item]:
    """Reserve due rows for some time, so that no other worker asks the same.

    Questions of a rescore wait until there are no others.
    """
    due = judging.c.state.in_(WAITING) & (judging.c.due <= now)
    query = select(
        judging.c.id,
        judging.c.project,
        judging.c.conversation,
        judging.c.version,
        judging.c.rule,
        judging.c.attempts,
        judging.c.due,
        judging.c.rescore,
    )
    last = judging.c.rescore.is_not(None)
    query = query.where(due).order_by(last, judging.c.due).limit(limit)
    with store.read() as connection:
        rows = connection.execute(query, execution_options=EVERY_PROJECT).all()
    if not rows:
        return []
    until = now + _LEASE
    taken = []
    with store.write() as connection:
        for row in rows:
            item = _Item(*row)
            if _change(connection, item, due=until):
                taken.append(item._replace(due=until))
    return taken


def _change(connection: Connection, item: _Item, **values: Any) -> bool:
    """Change a row of the queue, if it is unchanged."""
    mine = (judging.c.id == item.id) & (judging.c.due == item.due)
    if values.get("error") is not None:  # it may quote a model's answer
        values["error"] = values["error"].replace("\0", "\ufffd")[:_LONGEST_ERROR]
    change = update(judging).where(judging.c.project == item.project, mine).values(**values)
    return connection.execute(change).rowcount == 1


def _finish(store: Store, item: _Item, state: str, due: float, error: str | None) -> None:
    with store.write() as connection:
        _change(connection, item, state=state, due=due, error=error)


def _work(store: Store, item: _Item, read: ReadRecord, now: float) -> _Work | None:
    """Read a conversation and its scores; ``None`` if nothing is left to do."""
    of = (item.project, item.conversation)
    with store.read() as connection:
        row = connection.execute(
            select(conversation.c.version, conversation.c.service, conversation.c.state).where(
                conversation.c.project == of[0], conversation.c.id == of[1]
            )
        ).one_or_none()
        versions = agent_versions(connection, of[0], [of[1]])
        rows = connection.execute(
            select(score).where(
                score.c.project == of[0],
                score.c.conversation == of[1],
                score.c.version == item.version,
                score.c.replaced_by.is_(None),
            )
        ).mappings()
        known = [dict(each) for each in rows]
    if row is None or row.version != item.version:
        _finish(store, item, "done", now, "there is a newer version of the conversation")
        return None
    try:
        trace = read(store, *of)
    except (BodyGone, KeyError) as error:
        _finish(store, item, "done", now, f"there is no record of it: {error}")
        return None
    versions_of = versions.get(item.conversation, {})
    origin = Origin(service=row.service, versions=versions_of, open=row.state == "open")
    return _Work(item, trace, origin, known)


def _ask(
    store: Store,
    project: int,
    rule: Rule,
    work: Sequence[_Work],
    now: float,
    cache: Path | None,
    connect: Connect,
    read: ReadRecord,
) -> dict[int, _Judged]:
    """Ask the judges of a rule about some conversations, one judge after the other."""
    by_item = {one.item.id: _Judged([]) for one in work}
    for part in stepped_back(store, project, rule).judged:
        left = None
        if rule.budget is not None:
            left = rule.budget.cost_usd - spent(store, project, rule.name, rule.budget, now)
            if left <= 0:
                for one in work:
                    before = by_item[one.item.id]
                    by_item[one.item.id] = before._replace(budget=True, delayed=_used_up(rule, now))
                continue
        shown = with_examples(store, project, part, now, read)
        try:
            judge = _judge(part, left, cache, connect)
        except InputError as error:
            for one in work:
                by_item[one.item.id] = by_item[one.item.id]._replace(delayed=str(error))
            continue
        try:
            answers = run_anywhere(_ask_all(rule, shown, judge, work, now))
        finally:
            if rule.budget is not None and judge.spent > 0:
                spend(store, project, rule.name, rule.budget, judge.spent, now)
        for one, answer in zip(work, answers, strict=True):
            before = by_item[one.item.id]
            by_item[one.item.id] = _Judged(
                before.rows + answer.rows,
                before.delayed or answer.delayed,
                before.budget or answer.budget,
            )
    return by_item


def _judge(part: Part, left: float | None, cache: Path | None, connect: Connect) -> LlmJudge:
    assert part.judge is not None  # noqa: S101 - a part that is judged
    limits = [limit for limit in (left, part.judge.max_cost) if limit is not None]
    return make_judge(
        part.judge,
        cache=cache,
        max_cost=min(limits, default=None),
        prices=part.prices,
        connect=connect,
    )


async def _ask_all(
    rule: Rule, part: Part, judge: LlmJudge, work: Sequence[_Work], now: float
) -> list[_Judged]:
    async with judge:
        return await asyncio.gather(*(_ask_one(rule, part, judge, one, now) for one in work))


async def _ask_one(rule: Rule, part: Part, judge: LlmJudge, one: _Work, now: float) -> _Judged:
    """Ask about one conversation where there is no score yet; an answer may be missing."""
    failed = [row for row in one.rows if row["status"] == "failed"]
    chosen = chosen_of(one.trace, [rule], one.origin, () if rule.samples(one.trace.id) else failed)
    if not chosen:
        return _Judged([])
    have = {
        key_of(row)
        for row in one.rows
        if row["rule"] == rule.name and (one.item.rescore is None or is_up_to_date(row, rule))
    }
    names = [planned.evaluator.name for planned in part.plan.evaluators]
    ids = {
        id_
        for subject in chosen[0].subjects
        for id_ in subject.ids
        if not all((name, msgspec.json.encode([id_]).decode()) in have for name in names)
    }
    try:
        async with asyncio.timeout(_PATIENCE):
            scores = await scores_of(one.trace, part, frozenset(ids), judge)
    except TimeoutError:
        return _Judged([], f"no answer within {_PATIENCE:g} s")
    rows = []
    delayed: str | None = None
    over_budget = False
    for made, row in zip(
        scores, rows_of(one.trace, chosen[0], scores, one.origin, now), strict=True
    ):
        if key_of(row) in have:
            continue
        kind = made.details.get("judge_error")
        settled = kind in _ABOUT_THE_QUESTION and one.item.attempts + 1 >= _ATTEMPTS
        # An error without a kind is that of a panel, of which some gave no vote, or one of the
        # record, as of a turn that broke; asking again some times does no harm to the latter.
        if kind is None:
            settled = made.judge is None or one.item.attempts + 1 >= _ATTEMPTS
        if made.status == "error" and not settled:
            delayed = delayed or made.reason
            over_budget = over_budget or kind == "budget"
        else:
            rows.append(row)
    return _Judged(rows, delayed, over_budget)


def _keep(
    store: Store,
    rules: Rules,
    rule: Rule,
    one: _Work,
    answer: _Judged,
    now: float,
) -> None:
    """Store a judge's answers, and when the rest is due; all or nothing."""
    item = one.item
    names = {number: name for name, number in store.projects().items()}
    others = [
        stepped_back(store, item.project, each)
        for each in rules.for_project(names.get(item.project, ""))
        if each.name != rule.name
    ]
    if one.item.rescore is not None:
        others = []  # it is about one rule
    more = beyond_samples(one.trace, others, one.origin, answer.rows, now=now)
    have = {(row["rule"], row["evaluator"], row["subject"]) for row in one.rows}
    rows = answer.rows + [
        row for row in more.rows if (row["rule"], row["evaluator"], row["subject"]) not in have
    ]
    if answer.delayed is None:
        values: dict[str, Any] = {"state": "done", "due": now, "error": None}
    elif answer.budget and rule.budget is not None:
        values = {"state": "budget", "due": rule.budget.next(now), "error": answer.delayed}
    else:
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(item.attempts, 20))
        values = {"state": "waiting", "due": now + pause, "error": answer.delayed}
        values["attempts"] = item.attempts + 1
    with store.write() as connection:
        if not _change(connection, item, **values):
            return  # it took so long that another worker asks
        if item.rescore is not None:
            _keep_rescored(connection, item, item.rescore, rows)
        else:
            add_scores(connection, item.project, item.conversation, item.version, rows)
        for name in more.waiting:
            wait_for_judge(connection, item.project, item.conversation, item.version, name, now)


def _keep_rescored(connection: Connection, item: _Item, number: int, rows: list[Row]) -> None:
    """Replace earlier answers by those to a rescore, unless they are the same."""
    of = lock(connection, item.project, [item.conversation]).get(item.conversation)
    if of is None or of["version"] != item.version or not rows:
        return
    sums = Sums()
    version = [(item.conversation, item.version)]
    current = current_scores(connection, item.project, item.rule, version)[item.conversation]
    replace_scores(connection, of, current, rows, None, sums, number)
    sums.write(connection, item.project)


def is_up_to_date(row: Row, rule: Rule) -> bool:
    """Return whether a score is still valid for the current rule."""
    for part in rule.parts:
        for one in part.plan.evaluators:
            name = one.evaluator.name
            if name == row["evaluator"]:
                return made_alike(row, part.made_by[name], one.evaluator.version)
    return False


def agent_versions(
    connection: Connection, project: int, ids: Sequence[int]
) -> dict[int, dict[str, str]]:
    """Return the known versions of agents, by conversation and agent."""
    versions: dict[int, dict[str, str]] = defaultdict(dict)
    query = select(run.c.conversation, run.c.agent, run.c.agent_version).where(
        run.c.project == project,
        run.c.conversation.in_(ids),
        run.c.agent_version.is_not(None),
    )
    for id_, agent, version in connection.execute(query):
        versions[id_][agent] = version
    return versions


def wait_for_judge(
    connection: Connection,
    project: int,
    conversation_id: int,
    version: int,
    rule: str,
    now: float,
    rescore: int | None = None,
) -> None:
    """Put a conversation into the queue of a rule, unless it is already there.

    If all questions were already asked, a ``rescore`` has it examined again.
    """
    there = select(judging.c.id, judging.c.state).where(
        judging.c.project == project,
        judging.c.conversation == conversation_id,
        judging.c.version == version,
        judging.c.rule == rule,
    )
    known = connection.execute(there).first()
    if known is not None and known.state == "done" and rescore is not None:
        again = update(judging).where(judging.c.project == project, judging.c.id == known.id)
        values = {"state": "waiting", "attempts": 0, "due": now, "created": now, "error": None}
        connection.execute(again.values(**values, rescore=rescore))
    if known is None:
        row = {
            "project": project,
            "conversation": conversation_id,
            "version": version,
            "rule": rule,
            "state": "waiting",
            "attempts": 0,
            "due": now,
            "created": now,
            "rescore": rescore,
        }
        connection.execute(insert(judging).values(row))


def spent(store: Store, project: int, name: str, budget: Budget | None, now: float) -> float:
    """Return the cost in USD of the judges of a rule (its name) in this period of its budget."""
    if budget is None:
        return 0.0
    query = select(spending.c.cost_usd).where(
        spending.c.project == project,
        spending.c.rule == name,
        spending.c.period == budget.period(now),
    )
    with store.read() as connection:
        return connection.execute(query).scalar() or 0.0


def spend(store: Store, project: int, name: str, budget: Budget, cost: float, now: float) -> None:
    """Add to the cost in USD of the judges of a rule in this period."""
    key = {"project": project, "rule": name, "period": budget.period(now)}
    add = update(spending).where(*(spending.c[name] == value for name, value in key.items()))
    add = add.values(cost_usd=spending.c.cost_usd + cost)
    with store.write() as connection:
        if connection.execute(add).rowcount:
            return
    try:
        with store.write() as connection:
            connection.execute(insert(spending).values(**key, cost_usd=cost))
    except IntegrityError:  # another worker started the period meanwhile
        with store.write() as connection:
            connection.execute(add)


def _used_up(rule: Rule, now: float) -> str:
    assert rule.budget is not None  # noqa: S101 - asked for rules with a budget only
    budget = rule.budget
    return f"the budget of ${budget.cost_usd:g} per {budget.per} is used up ({budget.period(now)})"


def rules_with_status(store: Store, rules: Rules, project: str, now: float) -> list[dict[str, Any]]:
    """Return the data of `GET /api/v1/rules`: the rules of a project, and the status of judging.

    ``judging`` is ``None`` for a rule that asks no judge; see :func:`judging_status`. A rule with
    distilled judges has ``distilled``; see :func:`baton.server.drift.drift_status`.
    """
    status = {row["rule"]: row for row in judging_status(store, rules, now, project)}
    rows = listed(rules, project)
    for row in rows:
        rule = rules.named(row["name"])
        row["judging"] = status.get(row["name"]) if rule is not None and rule.judged else None
        if rule is not None and rule.drift_alerts:
            row["distilled"] = drift_status(store, store.project(project), rule)
    return rows


def judging_status(store: Store, rules: Rules, now: float, project: str) -> list[dict[str, Any]]:
    """Return for each rule what waits for a judge, why, and how much of its budget is spent.

    ``waiting`` and ``over_budget`` are numbers of conversations, ``oldest`` is the time since when
    the first of them waits (RFC 3339); ``error`` is the result of the last attempt.
    """
    number = store.project(project)
    query = select(
        judging.c.rule,
        judging.c.state,
        func.count().label("count"),
        func.min(judging.c.created).label("oldest"),
        func.max(judging.c.error).label("error"),
    )
    query = query.where(judging.c.project == number, judging.c.state != "done")
    with store.read() as connection:
        rows = connection.execute(query.group_by(judging.c.rule, judging.c.state)).mappings()
        by_rule: dict[str, dict[str, dict[str, Any]]] = {rule.name: {} for rule in rules.rules}
        for row in rows:
            by_rule.setdefault(row["rule"], {})[row["state"]] = dict(row)
    status = []
    for name, states in by_rule.items():
        rule = rules.named(name)
        budget = rule.budget if rule is not None else None
        since = min((each["oldest"] for each in states.values()), default=None)
        status.append(
            {
                "rule": name,
                "waiting": states.get("waiting", {}).get("count", 0),
                "over_budget": states.get("budget", {}).get("count", 0),
                "oldest": None if since is None else datetime.fromtimestamp(since, UTC).isoformat(),
                "error": next((each["error"] for each in states.values() if each["error"]), None),
                "spent_usd": spent(store, number, name, budget, now) if budget else None,
                "budget_usd": budget.cost_usd if budget else None,
                "per": budget.per if budget else None,
            }
        )
    return status
