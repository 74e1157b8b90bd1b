"""What strangers send: it is kept as it is, or refused, and stops nothing else."""

from __future__ import annotations

import io
import json
import logging
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from sqlalchemy import select

from baton.model import InputError, Trace
from baton.server.access import create_key
from baton.server.api import ENDPOINTS
from baton.server.endpoints import API
from baton.server.process import log_to
from baton.server.schema import conversation, dispatch, job, score
from baton.server.settings import Settings
from baton.server.store import Store, check_version, open_store
from baton.server.worker import Worker
from baton.server.worker_jobs import Live
from baton.testing.build import delegate, run, turn
from baton.testing.build import trace as make_trace

from .otlp import send, work
from .seeding import START, add_conversation, add_score
from .serving import api
from .test_conversations import AT, QUIET, body, span

LONG = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(10_000))
"""Ten thousand letters that no database packs well."""
BIDI = "\u202edesk\x1b[31m\r\n<script>"


def passing_work(trace_id: int, sender: str, receiver: str, session: str) -> bytes:
    """Make spans of an agent that hands work to another one, twice."""
    common: dict[str, Any] = {"session__id": session, "resource": {"service.name": sender}}
    return body(
        span(trace_id, 1, agent=sender, **common),
        span(trace_id, 2, 1, gen_ai__operation__name="execute_tool", gen_ai__tool__name=receiver),
        span(trace_id, 3, 2, agent=receiver, **common),
        span(trace_id, 4, 1, gen_ai__operation__name="execute_tool", gen_ai__tool__name=receiver),
        span(trace_id, 5, 4, agent=receiver, **common),
    )


def check_names(store: Store) -> None:
    """Hostile names give rows, records and scores, and what comes after them is read."""
    rules = [{"name": "all", "on": "dispatch", "evaluators": ["dispatch_completed"]}]
    live = Live(store, Settings(rules=rules))
    names = {1: ("de\0sk", "re\0fund", "s\0"), 2: (LONG, LONG[::-1], LONG), 3: (BIDI,) * 3}
    bodies = [passing_work(number, *three) for number, three in names.items()]
    send(store, 1, [*bodies, passing_work(4, "desk", "refund", "plain")], AT)
    work(Worker(store, QUIET, live.score), AT + 10)
    with store.read() as connection:
        there = select(conversation.c.day, conversation.c.place, conversation.c.key)
        kept = connection.execute(there.where(conversation.c.project == 1)).all()
        scored = select(score.c.to_agent).where(score.c.project == 1)
        targets = set(connection.execute(scored).scalars())
        made = select(dispatch.c.to_agent).where(dispatch.c.project == 1)
        assert targets == set(connection.execute(made).scalars())
    assert len(kept) == 4
    assert len(targets) == 4
    with api(store) as url:
        records = [one_record(url, number) for number in range(1, 5)]
    said_names = {each.agent for record in records for turn in record.turns for each in turn.runs}
    assert {LONG, LONG[::-1], BIDI, "de\0sk", "re\0fund"} <= said_names


def one_record(url: str, number: int) -> Trace:
    answer = ask(url, "GET", f"{API}/conversations/{number}")
    assert answer.status == 200
    return msgspec.convert(answer.json["record"], Trace)


def test_names_that_databases_refuse_stop_nothing(store: Store) -> None:
    check_names(store)


@pytest.mark.heavy
def test_names_that_postgresql_refuses_stop_nothing(postgres_store: Store) -> None:
    check_names(postgres_store)


def test_counts_that_no_integer_holds_are_none(store: Store) -> None:
    huge: dict[str, Any] = {
        "gen_ai__usage__input_tokens": "9" * 30,
        "gen_ai__usage__output_tokens": "7",
    }
    send(store, 1, [body(span(1, 1, agent="desk", **huge))], AT)
    work(Worker(store, QUIET), AT + 10)
    with api(store) as url:
        (one,) = one_record(url, 1).turns[0].runs
    assert one.usage is not None
    assert (one.usage.input_tokens, one.usage.output_tokens) == (None, 7)


@pytest.mark.parametrize("start", [AT + 86_400 * 365, 9_000_000_000.0, AT])
def test_a_clock_that_runs_ahead_puts_nothing_on_top_of_lists(store: Store, start: float) -> None:
    send(store, 1, [body(span(1, 1, agent="desk", start=start))], AT)
    work(Worker(store, QUIET), AT + 10)
    with store.read() as connection:
        there = select(conversation.c.started, conversation.c.state)
        (row,) = connection.execute(there.where(conversation.c.project == 1))
    assert row == (AT, "complete")


@pytest.mark.parametrize(
    "url", ["postgresql://u:SECRET@h:port/x", "postgresql://u:SECRET@h:99:9/x"]
)
def test_a_wrong_address_of_a_database_is_reported_without_its_password(url: str) -> None:
    with pytest.raises(InputError, match="USER@HOST:PORT/NAME") as told:
        open_store(url)
    assert "SECRET" not in str(told.value)


def test_an_old_postgresql_is_refused() -> None:
    check_version((15, 0))
    with pytest.raises(InputError, match=r"needs PostgreSQL 15 or later; this is 14\.9"):
        check_version((14, 9))


class Answer(msgspec.Struct):
    status: int
    json: Any
    text: str


def ask(url: str, method: str, path: str, sent: object = None, key: str | None = None) -> Answer:
    """Send a request; the body as JSON."""
    from http.client import HTTPConnection

    connection = HTTPConnection(url.removeprefix("http://"), timeout=30)
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    connection.request(method, path, None if sent is None else json.dumps(sent), headers)
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
    connection.close()
    kind = answer.headers.get("content-type", "")
    return Answer(answer.status, json.loads(text) if "json" in kind else None, text)


HUGE = 10**30
PARAMETERS = [
    f"/conversations/{HUGE}",
    f"/conversations/{2**63}",
    f"/evaluations/{HUGE}",
    f"/evaluations/{HUGE}/folder",
    f"/labels?conversation_id={HUGE}",
    f"/labels?conversation_id={-(2**64)}",
    f"/scores?conversation_id={HUGE}",
    f"/dispatches?depth=%3E%3D{HUGE}",
    "/labels?rubric=%00",
    "/trends?evaluator=%00",
    "/conversations?project=%00",
    "/conversations?to=a%00*",
    "/conversations?to=[z-a]*",
    "/dispatches?from=[[:foo:]]",
    "/scores?rule=[.a.]",
    "/conversations?text=%00%00",
    "/conversations?since=0001-01-01T00:00:00%2B23:59",
    "/edges?until=9999-12-31T23:59:59-23:59",
]
CURSORS: dict[str, list[list[Any]]] = {
    "conversations": [[1.0, HUGE], [1.0, 2**63], [1.0, -(2**63) - 1], ["x", 1], [1.0]],
    "dispatches": [[1.0, HUGE, "x"], [1.0, 1, "\0"]],
    "scores": [[1.0, HUGE], [-1e308, 2**63]],
    "labels": [[HUGE], [-HUGE]],
}


def check_requests(store: Store) -> None:
    """What no list can be asked is the fault of who asks, and never one of the server."""
    from baton.server.paging import cursor_after

    add_score(store, add_conversation(store, make_trace("Hi.", run("desk", output="Hi."))))
    tampered = [
        f"/{name}?cursor={cursor_after(row)}" for name, rows in CURSORS.items() for row in rows
    ]
    broken = [f"/{name}?cursor={quote(text)}" for name in CURSORS for text in ("é", "=", "A" * 999)]
    with api(store) as url:
        for path in [*PARAMETERS, *tampered, *broken]:
            status = ask(url, "GET", API + path).status
            assert status in (200, 400, 404), path


def test_values_that_no_database_compares_are_refused(store: Store) -> None:
    check_requests(store)


@pytest.mark.heavy
def test_values_that_postgresql_does_not_compare_are_refused(postgres_store: Store) -> None:
    check_requests(postgres_store)


SECRET = "SECRETOFBLUE"


@pytest.fixture
def two_projects(store: Store) -> tuple[Store, dict[str, int]]:
    """A store in which project `blue` has one of everything, and project `red` nothing."""
    blue, _ = store.project("blue", create=True), store.project("red", create=True)
    record = make_trace(
        turn(SECRET, run("desk", delegate(SECRET, SECRET)), run(SECRET, output=SECRET)),
        id=SECRET,
    )
    number = add_conversation(store, record, project=blue, service=SECRET, verdict="failed")
    add_score(store, number, project=blue, to_agent=SECRET, reason=SECRET, status="failed")
    row = {
        "project": blue,
        "created": START,
        "by": SECRET,
        "request": "{}",
        "state": "failed",
        "error": SECRET,
        "attempts": 1,
    }
    with store.write() as connection:
        added = connection.execute(job.insert().values(row)).inserted_primary_key
    assert added is not None
    return store, {"conversation": number, "evaluation": int(added[0])}


def test_no_endpoint_tells_of_another_project(
    two_projects: tuple[Store, dict[str, int]],
) -> None:
    store, ids = two_projects
    red = create_key(store, "red", "red key", ["admin"])
    blue = create_key(store, "blue", "blue key", ["admin"])
    label = {"trace": SECRET, "rubric": "good", "value": "yes"}
    seen: set[str] = set()
    with api(store) as url:
        assert ask(url, "POST", f"{API}/labels", label, blue).status == 200
        assert ask(url, "POST", f"{API}/labels", label, red).status == 400
        for each in ENDPOINTS:
            number = ids["evaluation" if "evaluations" in each.path else "conversation"]
            path = API + each.path.replace("{id:int}", str(number)).replace("{case:int}", "0")
            sent = {"conversations": "*"} if each.method == "POST" else None
            for tail in ("", f"?filter=to:{SECRET}", f"?conversation_id={number}"):
                for project in ("", "project=blue"):
                    asked = path + (tail or "?") + ("&" if tail else "") + project
                    answer = ask(url, each.method, asked.rstrip("?&"), sent, red)
                    told = SECRET in answer.text.replace(quote(SECRET), "", asked.count(SECRET))
                    assert not told, asked
                    if project and each.right is not None:
                        assert answer.status == 403, asked
            if SECRET in ask(url, each.method, path, sent, blue).text:
                seen.add(each.path)
    lists = {"/conversations", "/dispatches", "/scores", "/labels", "/evaluations"}
    assert {*lists, "/conversations/{id:int}", "/evaluations/{id:int}"} <= seen


def test_what_spans_tell_starts_no_line_in_the_log() -> None:
    log = logging.getLogger("baton.server")
    before = (log.handlers[:], log.level, log.propagate)
    written = io.StringIO()
    try:
        log_to(written)
        log.warning("trace %s cannot be read", "label:x\n2026 all is well\x1b[2J")
        try:
            raise ValueError("\x1b[2J")
        except ValueError:
            log.exception("reading")
    finally:
        log.handlers[:], log.level, log.propagate = before
    lines = written.getvalue().splitlines()
    assert lines[0] == "trace label:x\\n2026 all is well\\u001b[2J cannot be read"
    assert "\x1b" not in written.getvalue()
