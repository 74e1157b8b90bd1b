"""Proofs of fixes by playing the issues, and searches for fixes, on request to a server.

Both play an agent of `server.yaml`, like an evaluation: in a separate process, one after the other.
The texts of the agent are read there, never in the worker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import or_, select, update

from baton.feed.fixes import playable
from baton.feed.issue_progress import Fix
from baton.feed.taxonomy import subtype_named
from baton.judges.llm_client import LlmClient
from baton.model import CaseResult, InputError, Trace, suggestion
from baton.session.agent_under_test import is_configured
from baton.session.issue_work import prove_kept, search_for_fix
from baton.session.prepare import ScoreOptions
from baton.session.server_rows import IssueRecord, IssueRow, IssueWork

from .access import Caller
from .collecting import stored_records
from .database import EVERY_PROJECT
from .issue_list import Progress, keep_progress, one_issue
from .issue_work import ask_once, work_of
from .issues import clean
from .jobs import judge_named, usual_judge
from .schema import conversation, dispatch, issue, issue_proof
from .separate_process import RequestedWork, SeparateProcess
from .settings import Settings
from .store import Store, open_store
from .trials import charge, judge_within, left_of_budget

_LEASE = 60.0
"""Seconds after which a proof whose worker is gone counts as failed."""
_MOST = 3600.0
"""Seconds that a proof may take: 40 cases, three times on either side, at 15 seconds a play."""
_MOST_OF_SEARCH = 4 * _MOST
"""Seconds that a search may take: 20 texts on some 40 cases each, at 15 seconds a play."""
_BESIDE = 500
"""Maximum passing conversations, the newest, to search for neighbours."""


class ProofRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which of the `agents:` of server.yaml plays; the only one when left out."""

    agent: str | None = None


def cannot_prove(record: IssueRecord, settings: Settings) -> str | None:
    """Return why the fix of an issue cannot be proven here; ``None`` if it can be tried."""
    fix = fix_of(record)
    if fix is None:
        investigated = record.investigation is not None
        return "its investigation proposes no fix" if investigated else "it has no fix yet"
    if not settings.agents:
        return "a fix is proven by playing it: name an agent in `agents:` of server.yaml"
    reason = playable(fix)
    return None if reason is None else f"its fix cannot be proven by playing it: {reason}"


def cannot_improve(record: IssueRecord, settings: Settings) -> str | None:
    """Return why no fix of an issue can be searched for here; ``None`` if it can be tried."""
    if usual_judge(settings) is None:
        return "a model proposes fixes: name one in `judges:` of server.yaml"
    if not settings.agents:
        return "fixes are tried by playing them: name an agent in `agents:` of server.yaml"
    one = record.issue
    return None if one.sender or one.receiver else "it is not known whose fault it is"


def fix_of(record: IssueRecord) -> Fix | None:
    """Return the fix of an issue: the stored one, or that of its investigation."""
    return record.fix or (record.investigation.fix if record.investigation is not None else None)


def ask_to_prove(
    store: Store, caller: Caller, key: str, agent: str | None, settings: Settings
) -> None:
    """Have the fix of an issue proven, unless that already waits or runs.

    Raises:
        NoIssue: there is no such issue.
        InputError: it has no fix that can be played, or there is no such agent.
    """
    reason = cannot_prove(one_issue(store, caller.project, key, members=0), settings)
    _ask(store, caller, key, agent, settings, reason, "prove")


def ask_to_improve(
    store: Store, caller: Caller, key: str, agent: str | None, settings: Settings
) -> None:
    """Have a fix of an issue searched for, unless that already waits or runs.

    Raises:
        NoIssue: there is no such issue.
        InputError: there is no model that proposes, or no such agent.
    """
    reason = cannot_improve(one_issue(store, caller.project, key, members=0), settings)
    _ask(store, caller, key, agent, settings, reason, "improve")


def _ask(
    store: Store,
    caller: Caller,
    key: str,
    agent: str | None,
    settings: Settings,
    reason: str | None,
    task: str,
) -> None:
    if reason is not None:
        raise InputError(f"`{key}`: {reason}")
    names = sorted(settings.agents)
    if agent is None and len(names) > 1:
        raise InputError(f"server.yaml has several agents ({', '.join(names)}): name one")
    chosen = names[0] if agent is None else agent
    if chosen not in settings.agents:
        raise InputError(f"server.yaml has no agent `{chosen[:100]}`; {suggestion(chosen, names)}")
    ask_once(store, issue_proof, caller, key, agent=chosen, task=task)


def proving_of(store: Store, project: int, key: str) -> IssueWork | None:
    """Return the last requested proof or search; ``None`` without one."""
    return work_of(store, project, key, issue_proof)


class _Running(NamedTuple):
    id: int
    project: int
    due: float
    begun: float
    until: float
    process: SeparateProcess


class Proofs(RequestedWork[_Running]):
    """Plays the fixes that are to be proven, and searches for fixes."""

    def _begin(self, now: float) -> _Running | None:
        lost = update(issue_proof).where(issue_proof.c.state == "running", issue_proof.c.due <= now)
        message = "the worker ended during the play: request it again"
        waiting = (
            select(issue_proof, issue.c.key)
            .join(
                issue,
                (issue.c.id == issue_proof.c.issue) & (issue.c.project == issue_proof.c.project),
            )
            .where(issue_proof.c.state == "waiting")
            .order_by(issue_proof.c.id)
            .limit(1)
            .with_for_update(skip_locked=True, of=issue_proof)
        )
        with self._store.write() as connection:
            connection.execute(
                lost.values(state="failed", error=message), execution_options=EVERY_PROJECT
            )
            row = connection.execute(waiting, execution_options=EVERY_PROJECT).one_or_none()
            if row is None:
                return None
            mine = (issue_proof.c.project == row.project, issue_proof.c.id == row.id)
            begun = update(issue_proof).where(*mine).values(state="running", due=now + _LEASE)
            connection.execute(begun)

        def task(_: Path) -> _Task:
            return _Task(self._settings, row.project, row.key, row.agent, row.by)

        if row.task == "improve":
            process, most = SeparateProcess(_improved, task, "the search"), _MOST_OF_SEARCH
        else:
            process, most = SeparateProcess(_proved, task, "the proof"), _MOST
        return _Running(row.id, row.project, now + _LEASE, now, now + most, process)

    def _end(self, one: _Running, answer: dict[str, Any], now: float) -> None:  # noqa: ARG002
        error = answer.get("error")
        self._set(one, state="failed" if error else "done", error=error and clean(error))

    def _look(self, one: _Running, now: float) -> _Running | None:
        if now > one.until:
            one.process.end()
            most = one.until - one.begun
            self._set(one, state="failed", error=f"it took more than {most / 60:g} minutes")
            return None
        if one.due - now < _LEASE / 2:
            self._set(one, due=now + _LEASE)
            return one._replace(due=now + _LEASE)
        return one

    def _put_back(self, one: _Running) -> None:
        self._set(one, state="waiting")

    def _set(self, one: _Running, **values: Any) -> None:
        mine = (issue_proof.c.project == one.project, issue_proof.c.id == one.id)
        change = update(issue_proof).where(*mine, issue_proof.c.state == "running")
        with self._store.write() as connection:
            connection.execute(change.values(**values))


class _Task(msgspec.Struct):
    """The input of the process of a proof or a search."""

    settings: Settings
    project: int
    key: str
    agent: str
    by: str


def _proved(task: _Task) -> dict[str, Any]:
    """Play a fix, and keep its result with the issue."""
    settings = task.settings
    store = open_store(settings.store)
    try:
        record = one_issue(store, task.project, task.key)
        fix = fix_of(record)
        if fix is None or task.agent not in settings.agents:
            raise InputError("its fix, or the agent, no longer exists")
        agent = settings.agents[task.agent]

        def traced() -> Iterator[tuple[CaseResult, Trace]]:
            return _traced(store, task.project, record.issue)

        # A config has its own judge, or none, as for `baton eval`.
        judged: ScoreOptions = {} if is_configured(agent) else {"judge": judge_named(settings)}
        played = prove_kept(record.issue, fix, traced, agent, **judged)
        if fix_of(one_issue(store, task.project, task.key, members=0)) != fix:
            raise InputError("the issue got another fix while this one was played")
        caller = Caller(task.project, task.by, frozenset({"run"}))
        keep_progress(store, caller, task.key, Progress(fix=played))
        return {}
    finally:
        store.close()


def _improved(task: _Task) -> dict[str, Any]:
    """Search for a fix, and keep it with the issue if it is proven."""
    settings = task.settings
    store = open_store(settings.store)
    try:
        record = one_issue(store, task.project, task.key)
        named = usual_judge(settings)
        judge_settings = settings.judge_settings.get(named or "")
        if judge_settings is None or task.agent not in settings.agents:
            raise InputError("the judge, or the agent, no longer exists")
        now = time.time()
        left = left_of_budget(store, task.project, settings, now)
        if left <= 0:
            raise InputError(f"the budget of `trials:` is used up (${settings.trials.cost_usd:g})")
        judge = judge_within(judge_settings, left, None, LlmClient, settings.prices)

        def traced() -> Iterator[tuple[CaseResult, Trace]]:
            return _traced(store, task.project, record.issue)

        try:
            fix = search_for_fix(
                record.issue,
                fix_of(record),
                traced,
                settings.agents[task.agent],
                judge,
                second_judge(settings),
            )
        finally:
            charge(store, task.project, settings, judge.spent, now)
        caller = Caller(task.project, task.by, frozenset({"run"}))
        keep_progress(store, caller, task.key, Progress(fix=fix))
        return {}
    finally:
        store.close()


def second_judge(settings: Settings) -> dict[str, Any] | None:
    """Return the second judge for the search for a fix: the first one with another model.

    A text may flatter one judge, so a gain that only one judge sees is not proven.
    """
    judges, usual = settings.judge_settings, usual_judge(settings)
    for name, each in judges.items():
        if usual is not None and name != usual and each.model != judges[usual].model:
            # All three, because the first judge's address and key do not apply to this one.
            return {"model": each.model, "base_url": each.base_url, "api_key": each.api_key}
    return None


def _traced(store: Store, project: int, one: IssueRow) -> Iterator[tuple[CaseResult, Trace]]:
    """Yield the members of an issue, and passing conversations with possible neighbours."""
    members = {each.number for each in one.members if each.number is not None}
    query = select(conversation.c.id).where(
        conversation.c.project == project,
        conversation.c.state == "complete",
        conversation.c.verdict == "passed",
    )
    sides = []
    if one.sender:
        sides.append(dispatch.c.from_agent == one.sender)
    known = subtype_named(one.subtype)
    if one.receiver and (not sides or (known is not None and known.category == "working")):
        sides.append(dispatch.c.to_agent == one.receiver)
    if sides:
        beside = select(dispatch.c.conversation).where(dispatch.c.project == project, or_(*sides))
        query = query.where(conversation.c.id.in_(beside))
    with store.read() as connection:
        green = list(connection.scalars(query.order_by(conversation.c.id.desc()).limit(_BESIDE)))
    for trace, scores in stored_records(store, project, [*sorted(members), *green]):
        failed = any(score.status == "failed" for score in scores)
        result = CaseResult(case_id=trace.id, status="passed", scores=scores)
        yield msgspec.structs.replace(result, status="failed") if failed else result, trace
