"""The JSON API under ``/api/v1``: each endpoint is a row of ``ENDPOINTS``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from starlette.routing import Route

from baton.datasets.labels import Label, LabelLine
from baton.evaluators.judged import Judged
from baton.formats.document import Document
from baton.model import InputError, Trace
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
from .access import Denied
from .alerts import alerts_of
from .conversations import unread
from .endpoints import API, ApiState, Call, Endpoint, Params, described, routes_of
from .fix_proofs import ProofRequest, ask_to_improve, ask_to_prove, proving_of
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
from .metrics import OUTSIDE
from .openapi import openapi
from .paging import MOST
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
from .trials import TrialRequest, start_trial, trial_of

Time = Annotated[datetime, msgspec.Meta(tz=True)]


class _Range(Params, kw_only=True):
    since: Annotated[Time | None, described("From this time on, RFC 3339.")] = None
    until: Annotated[Time | None, described("Before this time, RFC 3339.")] = None


class _List(_Range, kw_only=True):
    limit: Annotated[int, described("Rows per page.", ge=1, le=MOST)] = 50
    cursor: Annotated[str | None, described("`next` of the previous page.")] = None
    filter: Annotated[
        str | None, described("A filter over the fields below: `to:refund-* depth:>=2`.")
    ] = None


class _Exports(_List, kw_only=True):
    last: Annotated[
        str | None, described("Up to this conversation: `last` of a part of `/rows/parts`.")
    ] = None


class _Conversations(_List, kw_only=True):
    text: Annotated[
        Annotated[str, msgspec.Meta(min_length=2, max_length=200)] | None,
        described("Words of users, agents or tools, ignoring case."),
    ] = None


class _Scores(_List, kw_only=True):
    every_version: Annotated[
        bool, described("Also scores of earlier versions of a conversation, and replaced ones.")
    ] = False


class _Issues(_List, kw_only=True):
    all: Annotated[bool, described("Also muted and fixed issues.")] = False
    order: Annotated[Order, described("By frequency, or by the time of the last failure.")] = (
        "count"
    )


class _Labels(Params, kw_only=True):
    limit: Annotated[int, described("Rows per page.", ge=1, le=MOST)] = 50
    cursor: Annotated[str | None, described("`next` of the previous page.")] = None
    conversation_id: Annotated[int | None, described("Only labels in this conversation.")] = None
    rubric: Annotated[str | None, described("Only labels by this rubric.")] = None


class _Agent(Params, kw_only=True):
    agent: Annotated[str, described("The name of the agent.")]


class _Axes(_Range, kw_only=True):
    agent: Annotated[str, described("The name of the agent.")]
    interval: Annotated[Interval, described("The length of a step.")] = "day"


class _Rubrics(Params, kw_only=True):
    name: Annotated[str | None, described("Only this rubric, which may be a built-in one.")] = None


class _Review(Params, kw_only=True):
    rubric: Annotated[str, described("The rubric to label by.")]
    filter: Annotated[
        str | None, described("A filter over dispatches: `to:refund-* depth:>=2`.")
    ] = None
    why: Annotated[
        str | None,
        described(f"Reasons, separated by commas, of {', '.join(WHYS)}; by default all."),
    ] = None
    share: Annotated[
        float, described("The share of the other dispatches that is sampled.", gt=0, le=1)
    ] = 0.1
    people: Annotated[int, described("How many people label each dispatch.", ge=1, le=9)] = 1
    by: Annotated[str | None, described("Who labels, if it is not the owner of the key.")] = None
    limit: Annotated[int, described("Dispatches in the list.", ge=1, le=MOST)] = 50


class _Trends(_Range, kw_only=True):
    interval: Annotated[Interval, described("The length of a step.")] = "day"
    evaluator: Annotated[
        str | None, described("Sums of its scores; by default of the dispatches themselves.")
    ] = None
    from_agent: Annotated[
        str | None,
        described(
            "Dispatches of this agent.",
        ),
    ] = None
    to_agent: Annotated[str | None, described("Dispatches to this agent.")] = None
    by_version: Annotated[bool, described("Sums for each version of the receiver.")] = False


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
        advice = "GET /api/v1/rubrics?name=NAME returns the current text and digest"
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
    return openapi(ENDPOINTS, OUTSIDE)


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
        "Where to cut `/rows`, `/records` or `/otlp`, to fetch parts in parallel",
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


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()


def routes(state: ApiState) -> list[Route]:
    """Return the routes of the API; the state of their application needs ``state.access``."""
    return routes_of(state, ENDPOINTS, OUTSIDE)
