"""Status: the server's state, unreadable input and how to fix it, rules, retention, keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from starlette.responses import Response
from starlette.routing import BaseRoute

from baton import __version__
from baton.server.access import RIGHTS, Right, create_key, list_keys, revoke_key
from baton.server.alerts import alerts_of
from baton.server.conversations import Unread, unread
from baton.server.inbox import Inbox, ProblemItem
from baton.server.queries import deletions, unknown_rules
from baton.server.queues import Queue, queues_of
from baton.server.rescores import rescores_of

from . import lists
from .frame import NavItem, View, Visit, Web

T = TypeVar("T")
NAV = NavItem("Status", "/status", "s")
_SHOWN = 100
"""Maximum problems to list; the page counts the others."""
_FEW = 20
"""Rows of other lists, of which the latest come first, where nothing is filtered."""
_LATE = 60.0
"""Seconds that something may wait in a queue before the page calls it late."""


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of this page."""
    return [
        web.page(NAV.path, _page),
        web.page("/parts/status/queues", _queues),
        web.action("/status/keys", _create_key, "admin"),
        web.action("/status/keys/revoke", _revoke_key, "admin"),
    ]


_MAY: Mapping[Right, str] = {
    "ingest": "send traces",
    "read": "see everything in the project",
    "review": "see everything, label, save views",
    "run": "see everything, talk to agents, start evaluations, change datasets and rubrics",
    "admin": "all of these, and make and revoke keys",
}
"""The purpose of each right, in the order of the form."""


class _Line(NamedTuple):
    """A queue for the page: ``state`` is a status, ``means`` describes what waits."""

    name: str
    means: str
    waiting: int
    age: float | None
    state: str


_STATES = lists.Choice(
    "state", "state", {"attention": "needs attention", "waiting": "in progress", "fine": "fine"}
)
_RESCORE_STATES = {"failed": "attention", "done": "fine", "stopped": "fine"}


class _Listed:
    """The rows of a list that meet the page's filter: each with its content and its state.

    A list whose rows have no state is left as it is by a state.
    """

    def __init__(self, asked: lists.Whole) -> None:
        self._asked = asked
        self.most = {True: _FEW, False: _SHOWN}[asked.is_plain]

    def __call__(
        self, rows: Iterable[T], shown: Callable[[T], Iterable[object]], state: Callable[[T], str]
    ) -> list[T]:
        wanted = self._asked.chosen["state"]
        return [
            row for row in rows if wanted in ("", state(row)) and self._asked.has_words(*shown(row))
        ]


def _attention(_: object) -> str:
    return "attention"


def _rule_state(rule: Mapping[str, Any]) -> str:
    judging = rule.get("judging") or {}
    if judging.get("error") or judging.get("over_budget"):
        return "attention"
    return "waiting" if judging.get("waiting") else "fine"


def _rule_words(rule: Mapping[str, Any]) -> list[object]:
    named = [word for one in rule["evaluators"] for word in (one["name"], one.get("judge"))]
    return [rule["name"], rule["on"], rule["where"], *named]


def _page(visit: Visit) -> View:
    asked = lists.read_whole(visit, NAV.path, _STATES)
    listed = _Listed(asked)
    state, project = visit.state, visit.caller.project
    store, settings = state.store, state.live_settings()
    every_problem, every_trace = Inbox(store).problems(project), unread(store, project)
    problems = listed(
        every_problem, lambda one: (one.name, one.kind, one.id, one.form, one.error), _attention
    )
    traces = listed(every_trace, lambda one: (one.trace_id, one.error), _attention)
    segments = store.bodies.segments()
    admin = visit.may("admin")
    every_rule = [
        {**each, "where": _filter_text(each["where"])} for each in state.rules(visit.project)
    ]
    rules = listed(every_rule, _rule_words, _rule_state)
    alerts = listed(
        alerts_of(store, project),
        lambda one: (one["rule"], one["condition"], one["message"]),
        lambda one: "attention" if one["closed"] is None else "fine",
    )
    rescores = listed(
        rescores_of(store, project, limit=_SHOWN),
        lambda one: (one.rule, one.state, one.filter, one.error),
        lambda one: _RESCORE_STATES.get(one.state, "waiting"),
    )
    every_deletion = deletions(store)
    removed = listed(every_deletion, lambda one: (one.day, one.why), lambda _: "fine")
    keys = listed(
        list_keys(store, visit.project) if admin else [],
        lambda key: (key.name, key.project, *key.rights, "revoked" if key.revoked else "valid"),
        lambda _: "fine",
    )
    context: dict[str, Any] = {
        **_queue_lines(visit, asked),
        "asked": asked,
        "read_all": not (every_problem or every_trace),
        "problems": [(each, _fix(each)) for each in problems[:_SHOWN]],
        "more_problems": len(problems) - _SHOWN,
        "traces": [(each, _fix(each)) for each in traces[:_SHOWN]],
        "more_traces": len(traces) - _SHOWN,
        "reread": _reread(visit),
        "rules": rules,
        "any_rules": bool(every_rule),
        "distilled": [(each["name"], one) for each in rules for one in each.get("distilled", ())],
        "alerts": alerts[: listed.most],
        "unknown_rules": unknown_rules(store, project, settings.live_rules.names(visit.project)),
        "rescores": rescores[: listed.most],
        "days": len(segments),
        "bytes": sum(each.bytes for each in segments),
        "first_day": segments[0].day if segments else None,
        "retention": settings.retention,
        "keep_inbox": settings.keep_inbox,
        "any_deletions": bool(every_deletion),
        "deletions": removed[: listed.most],
        "keys": keys if admin else None,
        "keyed": state.access.has_keys(),
        "rights": [(right, _MAY[right]) for right in RIGHTS],
        "project_names": sorted(store.projects()) if not visit.session.signed_in or admin else [],
        "place": "PostgreSQL" if store.is_postgresql else settings.folder,
    }
    return View("status.html", context, "Status")


def _create_key(visit: Visit) -> Response:
    """Make a key of this project, and show it once, as only its hash is stored."""
    is_first = not visit.state.access.has_keys()
    # After the first key, every user needs one, so its creator must be signed in with it.
    rights = ["admin"] if is_first else visit.form.get("right", [])
    name = " ".join(visit.value("name").split())
    key = create_key(visit.state.store, visit.project, name, rights)
    looker = visit
    if is_first:
        looker = visit._replace(session=visit.web.sessions.sign_in(key))
    given = {"name": name, "key": key, "rights": rights, "is_first": is_first}
    response = looker.show(View("status_key.html", given, "A new key"))
    response.headers["Cache-Control"] = "no-store"
    visit.web.sessions.keep(visit.request, looker.session, response)
    return response


def _revoke_key(visit: Visit) -> Response:
    revoke_key(visit.state.store, visit.project, visit.value("name"))
    return visit.redirect(NAV.path)


def _queues(visit: Visit) -> View:
    """Return only the queues, which the page replaces every few seconds."""
    asked = lists.read_whole(visit, NAV.path, _STATES)
    return View("status_queues.html", _queue_lines(visit, asked))


def _queue_lines(visit: Visit, asked: lists.Whole) -> dict[str, Any]:
    now = time.time()
    queues = queues_of(visit.state.store, now)

    def line(name: str, means: str, queue: Queue) -> _Line:
        age = queue.age(now) if queue.waiting else None
        late = age is not None and age > _LATE
        return _Line(name, means, queue.waiting, age, "error" if late else "ok")

    waiting = [
        line("To read", "accepted and stored, not read yet", queues.bodies),
        line("To score", "conversations that are due", queues.traces),
        line("To judge", "conversations that wait for a judge, or for its budget", queues.judging),
        line("To evaluate", "evaluations that wait for their turn", queues.jobs),
        line("To deliver", "messages of alerts", queues.deliveries),
    ]
    lines = _Listed(asked)(
        waiting,
        lambda one: (one.name, one.means),
        lambda one: "attention" if one.state == "error" else "waiting" if one.waiting else "fine",
    )
    address = visit.link("/parts/status/queues", text=asked.words, **asked.chosen)
    return {"lines": lines, "accepted": queues.accepted, "at": now, "queues_address": address}


def _fix(problem: ProblemItem | Unread) -> str:
    """Return how to fix something that could not be read."""
    if problem.reader != __version__:
        return f"Baton {problem.reader} could not read it; read it again with {__version__}"
    return "correct the sender, or read it again with a later version of Baton"


def _filter_text(where: dict[str, Any] | str | None) -> str:
    """Return the filter of a rule as it is written in one line: `to:refund-* depth:>=2`."""
    if not isinstance(where, dict):
        return where or ""
    shown = {k: ",".join(map(str, v)) if isinstance(v, list) else str(v) for k, v in where.items()}
    return " ".join(f'{k}:"{v}"' if " " in v else f"{k}:{v}" for k, v in shown.items())


def _reread(visit: Visit) -> str:
    settings = visit.state.live_settings()
    where = " --db DATABASE" if settings.db is not None else ""
    if not where and settings.folder != type(settings)().folder:
        where = f" --folder {settings.folder}"
    return f"baton serve reread{where} --project {visit.project}"
