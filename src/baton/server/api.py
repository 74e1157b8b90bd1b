"""The JSON API under ``/api/v1``, with its OpenAPI document; health, readiness and metrics.

Each endpoint is a row of ``ENDPOINTS``: routes, parameters and the OpenAPI document come from it.
Errors are JSON: ``error`` says what is wrong, ``do`` what to do.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from baton import __version__
from baton.datasets.labels import Label, LabelLine
from baton.evaluators.judged import Judged
from baton.formats.document import Document
from baton.model import InputError, Trace, suggestion
from baton.model import Problem as Fault
from baton.model.filter import Bound, Field, Fields, Filter, Sign, Term, filter_of, term_of
from baton.session.server_rows import (
    AgentAxis,
    AgentRow,
    AgentVersion,
    Conversation,
    ConversationRecord,
    Deletion,
    DispatchRow,
    Edge,
    EvaluationJob,
    FailedDispatch,
    Failure,
    Health,
    InboxProblem,
    Interval,
    IssueRecord,
    IssueRow,
    Listed,
    Page,
    Parts,
    Point,
    Queued,
    Records,
    Rescore,
    Review,
    Rows,
    ScoreRow,
    Trial,
    UnknownRule,
    UnreadTrace,
)

from . import agents, exports, guards, jobs, queries, rescores, sums
from .access import Access, Caller, Denied, Right, caller_of, need_json
from .alerts import alerts_of
from .conversations import unread, unreadable
from .database import TooLong, Unavailable, Unfit, without_reason
from .inbox import Inbox
from .issue_list import (
    ISSUE_FIELDS,
    NoIssue,
    Order,
    Progress,
    StateChange,
    change_state,
    issues,
    keep_progress,
    one_issue,
)
from .issue_work import ask_to_investigate, work_of
from .issues import ask_for_regrouping
from .labels import add_label, labels_of
from .paging import MOST
from .proofs import ProofRequest, ask_to_improve, ask_to_prove, proving_of
from .queues import queues_of
from .rescoring import RescoreRequest
from .review import WHYS, Asked, Item, person, review, skip, take
from .rubrics import (
    ChangedMeanwhileError,
    RubricText,
    ToSave,
    evaluator_of,
    own_files,
    rubric_text,
    save_rubric,
)
from .settings import Settings
from .store import Store
from .trials import TrialRequest, start_trial, trial_of

T = TypeVar("T")
API = "/api/v1"
_VALUE = 2000
"""Maximum characters of a parameter."""
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class ApiState(NamedTuple):
    """The state that the API shows.

    ``rules`` returns the rules of a project as plain data; ``counters`` are the numbers of requests
    that this process received, by their content and outcome (``traces``, ``refused 413``).
    ``live_settings`` are the current settings of the server. ``guards`` count for programs.
    """

    store: Store
    access: Access
    rules: Callable[[str], list[Any]] = lambda _: []
    counters: Callable[[], Mapping[tuple[str, str], int]] = dict
    live_settings: Callable[[], Settings] = Settings
    guards: guards.GuardStores = guards.GuardStores(Path(Settings().folder))


def _described(text: str, **limits: Any) -> Any:
    return msgspec.Meta(description=text, **limits)


Time = Annotated[datetime, msgspec.Meta(tz=True)]


class _Project(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    project: Annotated[
        str | None, _described("The project; by default the project of the key, or `default`.")
    ] = None


class _Range(_Project, kw_only=True):
    since: Annotated[Time | None, _described("From this time on, RFC 3339.")] = None
    until: Annotated[Time | None, _described("Before this time, RFC 3339.")] = None


class _List(_Range, kw_only=True):
    limit: Annotated[int, _described("Rows per page.", ge=1, le=MOST)] = 50
    cursor: Annotated[str | None, _described("`next` of the previous page.")] = None
    filter: Annotated[
        str | None, _described("A filter over the fields below: `to:refund-* depth:>=2`.")
    ] = None


class _Exports(_List, kw_only=True):
    last: Annotated[
        str | None, _described("Up to this conversation: `last` of a part of `/rows/parts`.")
    ] = None


class _Conversations(_List, kw_only=True):
    text: Annotated[
        Annotated[str, msgspec.Meta(min_length=2, max_length=200)] | None,
        _described("Words of users, agents or tools, ignoring case."),
    ] = None


class _Scores(_List, kw_only=True):
    every_version: Annotated[
        bool, _described("Also scores of earlier versions of a conversation, and replaced ones.")
    ] = False


class _Issues(_List, kw_only=True):
    all: Annotated[bool, _described("Also muted and fixed issues.")] = False
    order: Annotated[Order, _described("By frequency, or by the time of the last failure.")] = (
        "count"
    )


class _Labels(_Project, kw_only=True):
    limit: Annotated[int, _described("Rows per page.", ge=1, le=MOST)] = 50
    cursor: Annotated[str | None, _described("`next` of the previous page.")] = None
    conversation_id: Annotated[int | None, _described("Only labels in this conversation.")] = None
    rubric: Annotated[str | None, _described("Only labels by this rubric.")] = None


class _Agent(_Project, kw_only=True):
    agent: Annotated[str, _described("The name of the agent.")]


class _Axes(_Range, kw_only=True):
    agent: Annotated[str, _described("The name of the agent.")]
    interval: Annotated[Interval, _described("The length of a step.")] = "day"


class _Rubrics(_Project, kw_only=True):
    name: Annotated[str | None, _described("Only this rubric, which may be a built-in one.")] = None


class _Review(_Project, kw_only=True):
    rubric: Annotated[str, _described("The rubric to label by.")]
    filter: Annotated[
        str | None, _described("A filter over dispatches: `to:refund-* depth:>=2`.")
    ] = None
    why: Annotated[
        str | None,
        _described(f"Reasons, separated by commas, of {', '.join(WHYS)}; by default all."),
    ] = None
    share: Annotated[
        float, _described("The share of the other dispatches that is sampled.", gt=0, le=1)
    ] = 0.1
    people: Annotated[int, _described("How many people label each dispatch.", ge=1, le=9)] = 1
    by: Annotated[str | None, _described("Who labels, if it is not the owner of the key.")] = None
    limit: Annotated[int, _described("Dispatches in the list.", ge=1, le=MOST)] = 50


class _Trends(_Range, kw_only=True):
    interval: Annotated[Interval, _described("The length of a step.")] = "day"
    evaluator: Annotated[
        str | None, _described("Sums of its scores; by default of the dispatches themselves.")
    ] = None
    from_agent: Annotated[
        str | None,
        _described(
            "Dispatches of this agent.",
        ),
    ] = None
    to_agent: Annotated[str | None, _described("Dispatches to this agent.")] = None
    by_version: Annotated[bool, _described("Sums for each version of the receiver.")] = False


class Call(NamedTuple):
    """One request: caller, parameters and body."""

    state: ApiState
    caller: Caller
    params: Any
    chosen: Filter
    path: Mapping[str, Any]
    body: bytes


class Endpoint(NamedTuple):
    """A row of the API. ``fields`` are filters that are parameters as well."""

    method: Literal["GET", "POST"]
    path: str
    right: Right | None
    summary: str
    answer: Any
    run: Callable[[Call], Any]
    params: type[_Project] = _Project
    fields: Fields = {}  # noqa: RUF012 - rows are never changed
    body: Any = None
    media: str = "application/json"
    most: int = 1 << 20
    """Maximum bytes of a request's body: a few thousand labels, unless it contains files."""


def _page(call: Call, listed: Callable[..., Any], **more: Any) -> Any:
    """Return the page of a list that the parameters of a call select."""
    params = call.params
    return listed(
        call.state.store,
        call.caller.project,
        call.chosen,
        limit=params.limit,
        cursor=params.cursor,
        **more,
    )


def _conversations(call: Call) -> Any:
    return _page(call, queries.conversations, text=call.params.text)


def _conversation(call: Call) -> Any:
    one = queries.one_conversation(call.state.store, call.caller.project, call.path["id"])
    if one is None:
        message = f"there is no conversation {call.path['id']} in this project"
        raise Denied(404, message, f"{API}/conversations lists them")
    return one


def _records(call: Call) -> Any:
    return _page(call, exports.records, last=call.params.last)


def _otlp(call: Call) -> Any:
    redaction = call.state.live_settings().redaction
    return _page(call, exports.otlp, last=call.params.last, redaction=redaction)


def _rows(call: Call) -> Any:
    return _page(call, exports.rows, last=call.params.last)


def _parts(call: Call) -> Any:
    return _page(call, exports.parts)


def _dispatches(call: Call) -> Any:
    return _page(call, queries.dispatches)


def _scores(call: Call) -> Any:
    return _page(call, queries.scores, every_version=call.params.every_version)


def _edges(call: Call) -> Any:
    since, until = _seconds(call.params.since), _seconds(call.params.until)
    store, project = call.state.store, call.caller.project
    made = sums.edges(store, project, since=since, until=until)
    return Listed(items=[edge for edge in made if edge.dispatches])


def _agents(call: Call) -> Any:
    since, until = _seconds(call.params.since), _seconds(call.params.until)
    store, project = call.state.store, call.caller.project
    return Listed(items=agents.agents(store, project, since=since, until=until))


def _agent_versions(call: Call) -> Any:
    store, project = call.state.store, call.caller.project
    return Listed(items=agents.versions(store, project, call.params.agent))


def _agent_axes(call: Call) -> Any:
    params = call.params
    made = agents.axes(
        call.state.store,
        call.caller.project,
        params.agent,
        interval=params.interval,
        since=_seconds(params.since),
        until=_seconds(params.until),
    )
    return Listed(items=made)


def _agent_worst(call: Call) -> Any:
    store, project = call.state.store, call.caller.project
    return Listed(items=agents.worst_dispatches(store, project, call.params.agent))


def _trends(call: Call) -> Any:
    params = call.params
    points = sums.trends(
        call.state.store,
        call.caller.project,
        interval=params.interval,
        evaluator=params.evaluator,
        from_agent=params.from_agent,
        to_agent=params.to_agent,
        by_version=params.by_version,
        since=_seconds(params.since),
        until=_seconds(params.until),
    )
    return Listed(items=points)


def _issues(call: Call) -> Any:
    params = call.params
    return _page(
        call,
        issues,
        order=params.order,
        all=params.all,
        since=_seconds(params.since),
        until=_seconds(params.until),
    )


def _issue(call: Call) -> Any:
    store, project, key = call.state.store, call.caller.project, call.path["key"]
    try:
        record = one_issue(store, project, key)
        work, proving = work_of(store, project, key), proving_of(store, project, key)
        return msgspec.structs.replace(record, work=work, proving=proving)
    except NoIssue as error:
        raise Denied(404, str(error), f"{API}/issues lists them") from None


def _issue_state(call: Call) -> Any:
    change = Document("body", call.body, "json").decode(StateChange)
    return _changed(
        call, lambda: change_state(call.state.store, call.caller, call.path["key"], change)
    )


def _issue_progress(call: Call) -> Any:
    progress = Document("body", call.body, "json").decode(Progress)
    return _changed(
        call, lambda: keep_progress(call.state.store, call.caller, call.path["key"], progress)
    )


def _changed(call: Call, change: Callable[[], None]) -> Any:
    try:
        change()
    except NoIssue as error:
        raise Denied(404, str(error), f"{API}/issues lists them") from None
    return _issue(call)


def _investigate(call: Call) -> Any:
    settings, key = call.state.live_settings(), call.path["key"]
    return _changed(call, lambda: ask_to_investigate(call.state.store, call.caller, key, settings))


def _improve(call: Call) -> Any:
    store, settings, key = call.state.store, call.state.live_settings(), call.path["key"]
    agent = Document("body", call.body, "json").decode(ProofRequest).agent
    return _changed(call, lambda: ask_to_improve(store, call.caller, key, agent, settings))


def _prove(call: Call) -> Any:
    settings, key = call.state.live_settings(), call.path["key"]
    agent = Document("body", call.body, "json").decode(ProofRequest).agent
    return _changed(call, lambda: ask_to_prove(call.state.store, call.caller, key, agent, settings))


def _regroup(call: Call) -> Any:
    ask_for_regrouping(call.state.store, call.caller.project)
    return Listed(items=[])


def _labels(call: Call) -> Any:
    params = call.params
    return labels_of(
        call.state.store,
        call.caller.project,
        conversation_id=params.conversation_id,
        rubric=params.rubric,
        limit=params.limit,
        cursor=params.cursor,
    )


def _label(call: Call) -> Any:
    return add_label(call.state.store, call.caller, call.body)


def _evaluator(call: Call, rubric: str) -> Judged:
    names = {number: name for name, number in call.state.store.projects().items()}
    return evaluator_of(call.state.live_settings(), names[call.caller.project], rubric)


def _review(call: Call) -> Any:
    params = call.params
    stated = {name: getattr(params, name) for name in ("rubric", "filter", "share", "people", "by")}
    why = [] if params.why is None else params.why.split(",")
    try:
        request = msgspec.convert({**stated, "why": why}, Asked)
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from None
    return review(
        call.state.store,
        call.caller.project,
        _evaluator(call, params.rubric),
        request,
        person(call.caller, request.by),
        limit=params.limit,
    )


def _take(call: Call) -> Any:
    request = Document("body", call.body, "json").decode(Asked)
    evaluator = _evaluator(call, request.rubric)
    by = person(call.caller, request.by)
    return Listed(
        items=[
            one
            for one in [take(call.state.store, call.caller.project, evaluator, request, by)]
            if one is not None
        ]
    )


def _rubrics(call: Call) -> Any:
    settings = call.state.live_settings()
    if call.params.name is not None:
        return Listed(items=[rubric_text(settings, call.params.name)])
    return Listed(items=[rubric_text(settings, each.name) for each in own_files(settings)])


def check_may_run(settings: Settings) -> None:
    """Refuse to run agents or change files if that was not allowed at the start.

    Raises:
        Denied: other machines can reach this server, and it was not allowed.
    """
    if not settings.may_run:
        raise Denied(
            403,
            "other machines reach this server: it plays no agents for pages, and changes no files",
            "start it with --allow-run, or with --host 127.0.0.1",
        )


def _save_rubric(call: Call) -> Any:
    check_may_run(call.state.live_settings())
    to_save = Document("body", call.body, "json").decode(ToSave)
    try:
        return save_rubric(call.state.live_settings(), to_save)
    except ChangedMeanwhileError as error:
        advice = "GET /api/v1/rubrics?name=NAME has the text and the digest of now"
        raise Denied(409, str(error), advice) from None


def _try_rubric(call: Call) -> Any:
    request = Document("body", call.body, "json").decode(TrialRequest)
    store, caller = call.state.store, call.caller
    settings = call.state.live_settings()
    number = start_trial(store, caller.project, caller.name, request, settings)
    return trial_of(store, caller.project, number)


def _trial(call: Call) -> Any:
    try:
        return trial_of(call.state.store, call.caller.project, call.path["id"])
    except KeyError:
        message = f"there is no trial {call.path['id']} in this project"
        raise Denied(404, message, f"POST {API}/rubrics/trials starts one") from None


def _skip(call: Call) -> Any:
    item = Document("body", call.body, "json").decode(Item)
    evaluator = _evaluator(call, item.rubric)
    skip(call.state.store, call.caller.project, evaluator, item, person(call.caller, item.by))
    return Listed(items=[])


def _rules(call: Call) -> Any:
    names = {number: name for name, number in call.state.store.projects().items()}
    return Listed(items=call.state.rules(names[call.caller.project]))


def _alerts(call: Call) -> Any:
    return Listed(items=alerts_of(call.state.store, call.caller.project))


def _problems(call: Call) -> Any:
    listed = Inbox(call.state.store).problems(call.caller.project)
    rows = [
        {**each._asdict(), "received": datetime.fromtimestamp(each.received, UTC)}
        for each in listed
    ]
    return Listed(items=[msgspec.convert(row, InboxProblem) for row in rows])


def _unread(call: Call) -> Any:
    listed = unread(call.state.store, call.caller.project)
    rows = [
        {**each._asdict(), "last_seen": datetime.fromtimestamp(each.last_seen, UTC)}
        for each in listed
    ]
    return Listed(items=[msgspec.convert(row, UnreadTrace) for row in rows])


def _unknown_rules(call: Call) -> Any:
    store, project = call.state.store, call.caller.project
    names = {number: name for name, number in store.projects().items()}
    known = call.state.live_settings().live_rules.names(names[project])
    return Listed(items=queries.unknown_rules(store, project, known))


def _deletions(call: Call) -> Any:
    return Listed(items=queries.deletions(call.state.store))


def _submit(call: Call) -> Any:
    state = call.state
    return jobs.submit(
        state.store, call.caller.project, call.caller.name, call.body, state.live_settings()
    )


def _rescore(call: Call) -> Any:
    state = call.state
    request = rescores.read_request(call.body)
    return rescores.ask(
        state.store, call.caller.project, call.caller.name, request, state.live_settings()
    )


def _rescores(call: Call) -> Any:
    return Listed(items=rescores.rescores_of(call.state.store, call.caller.project))


def _one_rescore(call: Call) -> Any:
    try:
        return rescores.rescore_of(call.state.store, call.caller.project, call.path["id"])
    except KeyError:
        message = f"there is no rescore {call.path['id']} in this project"
        raise Denied(404, message, f"{API}/rescores lists them") from None


def _evaluations(call: Call) -> Any:
    return Listed(items=jobs.jobs_of(call.state.store, call.caller.project))


def _evaluation(call: Call) -> Any:
    try:
        return jobs.job_of(call.state.store, call.caller.project, call.path["id"])
    except KeyError:
        raise _no_evaluation(call) from None


def _folder(call: Call) -> Any:
    try:
        return jobs.packed_folder(call.state.store, call.caller.project, call.path["id"])
    except KeyError:
        raise _no_evaluation(call) from None


def _case(call: Call) -> Any:
    path = call.path
    try:
        results = jobs.one_case(call.state.store, call.caller.project, path["id"], path["case"])
    except KeyError:
        message = f"evaluation {path['id']} of this project has no case {path['case']}"
        raise Denied(404, message, f"{API}/evaluations/{path['id']} shows its state") from None
    return Listed(items=results)


def _again(call: Call) -> Any:
    state, caller = call.state, call.caller
    try:
        return jobs.again(
            state.store, caller.project, call.path["id"], caller.name, state.live_settings()
        )
    except KeyError:
        raise _no_evaluation(call) from None


def _stop(call: Call) -> Any:
    try:
        return jobs.stop(call.state.store, call.caller.project, call.path["id"], call.caller.name)
    except KeyError:
        raise _no_evaluation(call) from None


def _no_evaluation(call: Call) -> Denied:
    message = f"there is no evaluation {call.path['id']} in this project, or it has no results yet"
    return Denied(404, message, f"{API}/evaluations lists them")


def _of_guard(name: str) -> Callable[[Call], Any]:
    def run(call: Call) -> Any:
        sent = Document("body", call.body, "json").decode(guards.QUESTIONS[name].body)
        return guards.answer(call.state.guards, call.caller.project, name, sent)

    return run


def _openapi(_: Call) -> Any:
    return openapi()


ENDPOINTS = (
    Endpoint(
        "GET",
        "/conversations",
        "read",
        "Conversations, the newest first",
        Page[Conversation],
        _conversations,
        _Conversations,
        queries.CONVERSATION_FIELDS,
    ),
    Endpoint(
        "GET",
        "/conversations/{id:int}",
        "read",
        "One conversation, with its record",
        ConversationRecord,
        _conversation,
    ),
    Endpoint(
        "GET",
        "/records",
        "read",
        "Records of conversations, the newest first; open ones only with `state`",
        Records[Trace],
        _records,
        _Exports,
        queries.CONVERSATION_FIELDS,
    ),
    Endpoint(
        "GET",
        "/otlp",
        "read",
        "Conversations as OTLP JSON: their spans as they arrived",
        Records[Any],
        _otlp,
        _Exports,
        queries.CONVERSATION_FIELDS,
    ),
    Endpoint(
        "GET",
        "/rows",
        "read",
        "Conversations with their runs, dispatches and scores, for tables",
        Rows,
        _rows,
        _Exports,
        queries.CONVERSATION_FIELDS,
    ),
    Endpoint(
        "GET",
        "/rows/parts",
        "read",
        "Where to cut `/rows`, `/records` or `/otlp`, to fetch parts side by side",
        Parts,
        _parts,
        _List,
        queries.CONVERSATION_FIELDS,
    ),
    Endpoint(
        "GET",
        "/dispatches",
        "read",
        "Dispatches, the newest first",
        Page[DispatchRow],
        _dispatches,
        _List,
        queries.DISPATCH_FIELDS,
    ),
    Endpoint(
        "GET",
        "/scores",
        "read",
        "Scores of rules, the newest first",
        Page[ScoreRow],
        _scores,
        _Scores,
        queries.SCORE_FIELDS,
    ),
    Endpoint(
        "GET",
        "/edges",
        "read",
        "Who dispatches to whom: counts, cost, pass rates by evaluator",
        Listed[Edge],
        _edges,
        _Range,
    ),
    Endpoint(
        "GET",
        "/agents",
        "read",
        "Agents: runs, dispatches, scores, cost",
        Listed[AgentRow],
        _agents,
        _Range,
    ),
    Endpoint(
        "GET",
        "/agents/versions",
        "read",
        "The definitions of an agent over time, the newest first, if records have them",
        Listed[AgentVersion],
        _agent_versions,
        _Agent,
    ),
    Endpoint(
        "GET",
        "/agents/axes",
        "read",
        "Scores of an agent over time, by evaluator, version and model",
        Listed[AgentAxis],
        _agent_axes,
        _Axes,
    ),
    Endpoint(
        "GET",
        "/agents/worst",
        "read",
        "Dispatches to an agent that failed most evaluators",
        Listed[FailedDispatch],
        _agent_worst,
        _Agent,
    ),
    Endpoint(
        "GET",
        "/trends",
        "read",
        "Sums of each hour, day or week",
        Listed[Point],
        _trends,
        _Trends,
    ),
    Endpoint(
        "GET",
        "/issues",
        "read",
        "Issues: failures with the same fault, the most frequent first",
        Page[IssueRow],
        _issues,
        _Issues,
        ISSUE_FIELDS,
    ),
    Endpoint(
        "POST",
        "/issues/regroup",
        "review",
        "Group the texts of judges again now, not only at night",
        Listed[Any],
        _regroup,
    ),
    Endpoint(
        "GET",
        "/issues/{key}",
        "read",
        "One issue, with members, rates by version and model, events, and its progress",
        IssueRecord,
        _issue,
    ),
    Endpoint(
        "POST",
        "/issues/{key}/state",
        "review",
        "Set the state of an issue",
        IssueRecord,
        _issue_state,
        body=StateChange,
    ),
    Endpoint(
        "POST",
        "/issues/{key}/progress",
        "run",
        "Store the investigation, the fix or the cases of an issue",
        IssueRecord,
        _issue_progress,
        body=Progress,
        most=8 << 20,
    ),
    Endpoint(
        "POST",
        "/issues/{key}/investigate",
        "run",
        "Let a worker investigate an issue; `work` of the issue has the progress",
        IssueRecord,
        _investigate,
    ),
    Endpoint(
        "POST",
        "/issues/{key}/prove",
        "run",
        "Play the fix of an issue; `proving` of the issue has the progress",
        IssueRecord,
        _prove,
        body=ProofRequest,
    ),
    Endpoint(
        "POST",
        "/issues/{key}/improve",
        "run",
        "Search for a fix of an issue; `proving` of the issue has the progress",
        IssueRecord,
        _improve,
        body=ProofRequest,
    ),
    Endpoint("GET", "/labels", "read", "Labels, the newest first", Page[Label], _labels, _Labels),
    Endpoint("POST", "/labels", "review", "Add a label", Label, _label, body=LabelLine),
    Endpoint(
        "GET",
        "/rubrics",
        "read",
        "Rubrics of the server's folder, with their texts",
        Listed[RubricText],
        _rubrics,
        _Rubrics,
    ),
    Endpoint(
        "POST",
        "/rubrics",
        "run",
        "Write a rubric into the folder, if the text that it was based on is unchanged",
        RubricText,
        _save_rubric,
        body=ToSave,
    ),
    Endpoint(
        "POST",
        "/rubrics/trials",
        "run",
        "Try a rubric on dispatches before it is saved, within the cost limit of `trials:`",
        Trial,
        _try_rubric,
        body=TrialRequest,
    ),
    Endpoint(
        "GET",
        "/rubrics/trials/{id:int}",
        "read",
        "The progress of a trial: answers, and the agreement with people",
        Trial,
        _trial,
    ),
    Endpoint(
        "GET",
        "/review",
        "read",
        "Dispatches that wait for a label, and the agreement of people",
        Review,
        _review,
        _Review,
    ),
    Endpoint(
        "POST",
        "/review/next",
        "review",
        "Reserve the next dispatch to label for ten minutes; nothing if all are labelled",
        Listed[Queued],
        _take,
        body=Asked,
    ),
    Endpoint(
        "POST",
        "/review/skip",
        "review",
        "Skip a dispatch, and leave it to others",
        Listed[Any],
        _skip,
        body=Item,
    ),
    Endpoint("GET", "/rules", "read", "Rules for arriving conversations", Listed[Any], _rules),
    Endpoint("GET", "/alerts", "read", "Alerts, the newest first", Listed[Any], _alerts),
    Endpoint(
        "GET",
        "/problems",
        "read",
        "Request bodies that could not be read",
        Listed[InboxProblem],
        _problems,
    ),
    Endpoint(
        "GET",
        "/problems/traces",
        "read",
        "Traces whose conversations could not be read",
        Listed[UnreadTrace],
        _unread,
    ),
    Endpoint(
        "GET",
        "/problems/rules",
        "read",
        "Rules that programs name but that do not exist",
        Listed[UnknownRule],
        _unknown_rules,
    ),
    Endpoint("GET", "/deletions", "read", "What retention deleted", Listed[Deletion], _deletions),
    Endpoint(
        "POST",
        "/evaluations",
        "run",
        "Evaluate cases, recordings or conversations, when a worker is free",
        EvaluationJob,
        _submit,
        body=jobs.EvaluationRequest,
        most=96 << 20,
    ),
    Endpoint(
        "GET",
        "/evaluations",
        "read",
        "Requested evaluations, the latest first",
        Listed[EvaluationJob],
        _evaluations,
    ),
    Endpoint("GET", "/evaluations/{id:int}", "read", "One of them", EvaluationJob, _evaluation),
    Endpoint(
        "POST",
        "/evaluations/{id:int}/again",
        "run",
        "Evaluate the same again; if that already waits or runs, it is returned",
        EvaluationJob,
        _again,
    ),
    Endpoint(
        "POST",
        "/evaluations/{id:int}/stop",
        "run",
        "Stop it if it waits or runs; the results so far stay",
        EvaluationJob,
        _stop,
    ),
    Endpoint(
        "GET",
        "/evaluations/{id:int}/folder",
        "read",
        "Its folder as an archive (tar, gzip)",
        bytes,
        _folder,
        media="application/gzip",
    ),
    Endpoint(
        "GET",
        "/evaluations/{id:int}/cases/{case:int}",
        "read",
        "One of its cases: a result with scores and trace for each repeat",
        Listed[Any],
        _case,
    ),
    Endpoint(
        "POST",
        "/rescores",
        "admin",
        "Apply a rule to stored conversations",
        Rescore,
        _rescore,
        body=RescoreRequest,
    ),
    Endpoint(
        "GET",
        "/rescores",
        "read",
        "Rules that are or were applied to stored conversations, the latest first",
        Listed[Rescore],
        _rescores,
    ),
    Endpoint("GET", "/rescores/{id:int}", "read", "One of them", Rescore, _one_rescore),
    *(
        Endpoint(
            "POST",
            f"/guard/{name}",
            "ingest",
            asked.summary,
            asked.answer,
            _of_guard(name),
            body=asked.body,
            most=32 << 10,
        )
        for name, asked in guards.QUESTIONS.items()
    ),
    Endpoint("GET", "/openapi.json", None, "This document", Any, _openapi),
)


def routes(state: ApiState) -> list[Route]:
    """Return the routes of the API; the state of their application needs ``state.access``."""
    by_path: dict[str, list[Endpoint]] = {}
    for each in ENDPOINTS:
        by_path.setdefault(each.path, []).append(each)
    rules = by_path["/rules"]
    # Routes are tried in order, and an agent waits for the answer to a guard's request.
    by_path = dict(sorted(by_path.items(), key=lambda one: not one[0].startswith("/guard/")))
    return [
        *(_route(state, API + path, there) for path, there in by_path.items()),
        _route(state, "/api/rules", rules),
        *(_route(state, each.path, [each]) for each in _OUTSIDE),
        Route(f"{API}/{{rest:path}}", _nowhere, methods=_METHODS),
    ]


_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
"""Routes accept all methods, so that a refused one gets its answer in JSON."""


def _route(state: ApiState, path: str, endpoints: list[Endpoint]) -> Route:
    async def handle(request: Request) -> Response:
        try:
            return await _answer(state, endpoints, request)
        except Denied as denied:
            return denied.answer()
        except (InputError, Unfit) as error:
            failure = Failure(error=str(error), do=f"{API}/openapi.json says what may be sent")
            return _json(failure, 400)
        except TooLong as error:
            failure = Failure(error=str(error), do="ask for less: a shorter time, a simpler filter")
            return _json(failure, 503)
        except Unavailable as error:
            failure = Failure(error=without_reason(error), do="try again in a few seconds")
            return _json(failure, 503, {"Retry-After": "2"})

    return Route(path, handle, methods=_METHODS)


async def _answer(state: ApiState, endpoints: list[Endpoint], request: Request) -> Response:
    method = "GET" if request.method == "HEAD" else request.method
    endpoint = next((each for each in endpoints if each.method == method), None)
    if endpoint is None:
        allowed = ", ".join(each.method for each in endpoints)
        raise Denied(405, f"{request.method} is not possible here", f"use {allowed}")
    body = b""
    if endpoint.method == "POST":
        need_json(request)
        body = await _body_of(request, endpoint.most)

    def run() -> bytes:
        values = request.query_params.multi_items()
        if endpoint.right is None:
            caller = _NOBODY
        else:
            caller = caller_of(request, request.query_params.get("project"))
            caller.need(endpoint.right)
        params, chosen = _params(endpoint, values)
        answer = endpoint.run(Call(state, caller, params, chosen, request.path_params, body))
        return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)

    content = await run_in_threadpool(run)
    return Response(content, headers=_HEADERS, media_type=endpoint.media)


async def _body_of(request: Request, most: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise Denied(413, f"the body is longer than {most >> 10} KiB", "send less at once")
    return bytes(body)


_LATE_PLUS = re.compile(r" (\d\d:\d\d)$")


def _params(endpoint: Endpoint, pairs: list[tuple[str, str]]) -> tuple[Any, Filter]:
    """Split the parameters of a request: those of the endpoint, and a filter.

    Raises:
        InputError: there are unknown parameters; the message lists all, with similar names.
    """
    own = {field.name: field for field in msgspec.structs.fields(endpoint.params)}
    plain: dict[str, str] = {}
    terms: list[Term] = []
    problems: list[Fault] = []
    for name, value in pairs:
        try:
            if len(value) > _VALUE:
                raise InputError(f"longer than {_VALUE} characters")
            if "\0" in value:
                raise InputError("contains a NUL character, which no text in the store has")
            if name in own:
                if name in plain:
                    raise InputError("is given twice")
                # A plus sign in an address means a space: `2026-01-31T09:00:00+01:00`.
                plain[name] = _LATE_PLUS.sub(r"+\1", value) if name in _RANGE else value
            elif name in endpoint.fields:
                terms.append(term_of(f"{name}:{value}", endpoint.fields))
            else:
                known = suggestion(name, [*own, *endpoint.fields])
                raise InputError(f"unknown parameter; {known}")
        except InputError as error:
            problems += [Fault(path=name, message=each.message) for each in error.problems]
    if problems:
        raise InputError(problems)
    try:
        params = msgspec.convert(plain, endpoint.params, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(str(error).replace(" - at `$.", " - in `")) from None
    # A filter of an endpoint without fields is about something else, which parses it itself.
    if endpoint.fields:
        terms += filter_of(getattr(params, "filter", None), endpoint.fields).terms
    when = "at" if "at" in endpoint.fields else "started"
    if when in endpoint.fields:
        for name, sign in _RANGE.items():
            at = getattr(params, name)
            if at is not None:
                terms.append(Term(field=when, bounds=((Bound(sign, at.timestamp()),),)))
    return params, Filter(terms=tuple(terms))


_RANGE: Mapping[str, Sign] = {"since": ">=", "until": "<"}


async def _nowhere(request: Request) -> Response:
    known = suggestion(request.url.path, [API + each.path for each in ENDPOINTS])
    return _json(Failure(error=f"there is no {request.url.path[:200]}", do=known), 404)


def _json(value: Any, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(value),
        status,
        {**_HEADERS, **(headers or {})},
        "application/json",
    )


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()


def _health(_: Call) -> Any:
    return Health(status="ok", version=__version__)


def _ready(call: Call) -> Any:
    """Read from both parts of the store; raises ``Unavailable`` if one does not exist."""
    call.state.store.projects()
    waiting, oldest = Inbox(call.state.store).depth()
    age = None if oldest is None else max(0.0, time.time() - oldest)
    return Health(status="ok", version=__version__, waiting=waiting, oldest_seconds=age)


def _metrics(call: Call) -> Any:
    """Return figures in the format of Prometheus."""
    store, now = call.state.store, time.time()
    queues = queues_of(store, now)
    bodies, traces = Inbox(store).unreadable(), unreadable(store)
    figures: list[tuple[str, str, str, float, str]] = [
        (
            "inbox_bodies_total",
            "counter",
            "All bodies that were accepted and stored.",
            queues.accepted,
            "",
        ),
        ("inbox_waiting", "gauge", "Bodies that wait to be read.", queues.bodies.waiting, ""),
        ("inbox_oldest_seconds", "gauge", "Age of the oldest of them.", queues.bodies.age(now), ""),
        ("inbox_problems", "gauge", "Bodies that could not be read.", bodies, ""),
        (
            "conversation_problems",
            "gauge",
            "Traces whose conversation could not be read, or was set aside.",
            traces,
            "",
        ),
        (
            "traces_due",
            "gauge",
            "Traces that are due to be read and scored.",
            queues.traces.waiting,
            "",
        ),
        (
            "scoring_lag_seconds",
            "gauge",
            "How long the oldest has been due.",
            queues.traces.age(now),
            "",
        ),
        (
            "judging_waiting",
            "gauge",
            "Conversations that wait for a judge.",
            queues.judging.waiting,
            "",
        ),
        (
            "judging_oldest_seconds",
            "gauge",
            "Age of the oldest of them.",
            queues.judging.age(now),
            "",
        ),
    ]
    received = "received_total", "counter", "Requests that this process received, by outcome."
    figures += [
        (*received, value, f'{{signal="{signal}",outcome="{outcome}"}}')
        for (signal, outcome), value in sorted(call.state.counters().items())
    ]
    lines = []
    for place, (name, kind, means, value, labels) in enumerate(figures):
        if place == 0 or figures[place - 1][0] != name:
            lines += [f"# HELP baton_{name} {means}", f"# TYPE baton_{name} {kind}"]
        lines.append(f"baton_{name}{labels} {value:.3f}".removesuffix(".000"))
    return ("\n".join(lines) + "\n").encode()


_NOBODY = Caller(0, "", frozenset())
_OUTSIDE = (
    Endpoint("GET", "/health", None, "Whether the process works", Health, _health),
    Endpoint("GET", "/ready", None, "Whether the store can be read", Health, _ready),
    Endpoint(
        "GET",
        "/metrics",
        "read",
        "Figures for Prometheus",
        str,
        _metrics,
        media="text/plain; version=0.0.4",
    ),
)


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document, made from the rows of ``ENDPOINTS`` and their types."""
    types = [each.answer for each in (*ENDPOINTS, *_OUTSIDE)] + [
        each.body for each in ENDPOINTS if each.body is not None
    ]
    reference = "#/components/schemas/{name}"
    shapes, parts = msgspec.json.schema_components([*types, Failure], ref_template=reference)
    schemas = dict(zip(map(_key, types), shapes, strict=False))
    failure = {"description": "What is wrong, and what to do", "content": _content(shapes[-1])}
    paths: dict[str, Any] = {}
    for each, base in [*((one, API) for one in ENDPOINTS), *((one, "") for one in _OUTSIDE)]:
        path = base + each.path.replace(":int", "")
        media = each.media.partition(";")[0]
        operation: dict[str, Any] = {
            "summary": each.summary,
            "parameters": _parameters(each),
            "responses": {
                "200": {
                    "description": each.summary,
                    "content": _content(schemas[_key(each.answer)], media),
                },
                "default": failure,
            },
            "security": [] if each.right is None else [{"key": []}],
        }
        if each.body is not None:
            body = {"required": True, "content": _content(schemas[_key(each.body)])}
            operation["requestBody"] = body
        paths.setdefault(path, {})[each.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Baton",
            "version": __version__,
            "description": "Conversations of agents, their dispatches and scores.",
        },
        "paths": paths,
        "components": {
            "schemas": parts,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _key(type_: Any) -> str:
    return repr(type_)


def _content(schema: Any, media: str = "application/json") -> dict[str, Any]:
    return {media: {"schema": schema}}


_FORMS = {
    "text": "A name or a glob; commas separate alternatives, `!` excludes one.",
    "number": "A number, or a comparison such as `>=2`.",
    "seconds": "A duration, such as `>=2s`.",
    "time": "A comparison with a time, such as `>=2026-01-31`.",
}


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for name, is_number in re.findall(r"\{(\w+)(:int)?\}", endpoint.path):
        schema = {"type": "integer" if is_number else "string"}
        made.append({"name": name, "in": "path", "required": True, "schema": schema})
    if endpoint.right is None:
        return made
    shape = msgspec.json.schema(endpoint.params)
    for definition in shape["$defs"].values():
        for name, schema in definition["properties"].items():
            made.append({"name": name, "in": "query", "schema": schema})
    for name, field in endpoint.fields.items():
        made.append({"name": name, "in": "query", "schema": _field_schema(field)})
    return made


def _field_schema(field: Field) -> dict[str, Any]:
    values = f" One of {', '.join(field.values)}." if field.values else ""
    return {"type": "string", "description": _FORMS[field.kind] + values}
