"""Conversations are combined over requests, are read when they are complete, and again later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

import baton
from baton.model import Trace
from baton.model.prices import ModelPrice
from baton.server import completeness, conversations, span_chunks
from baton.server.agents import agents
from baton.server.bodies import BodyGone, day_of
from baton.server.conversations import BEYOND, DELETED, Bounds, record_of
from baton.server.inbox import Inbox, entry_of
from baton.server.rows import Reading, narrow, write
from baton.server.schema import (
    chunk,
    conversation,
    conversation_trace,
    dispatch,
    judging,
    label,
    rollup,
    run,
    score,
    tie,
    trace,
)
from baton.server.score_rows import add_scores
from baton.server.store import Store
from baton.server.sums import edges, trends
from baton.server.worker import Worker

from .otlp import send, work
from .seeding import assert_days_follow

AT = 1_790_000_000.0
QUIET = Bounds(quiet=1.0)


def span(
    trace_id: int,
    span_id: int,
    parent: int | None = None,
    *,
    agent: str | None = None,
    links: list[int] | None = None,
    start: float = AT,
    seconds: float = 1.0,
    resource: dict[str, str] | None = None,
    **attributes: Any,
) -> dict[str, Any]:
    """Make a resource group with one span: of an agent, if one is named."""
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    if agent is not None:
        named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent, **named}
    return {
        "resource": {"attributes": _attributes(resource or {})},
        "scopeSpans": [
            {
                "scope": {"name": "tests"},
                "spans": [
                    {
                        "traceId": f"{trace_id:032x}",
                        "spanId": f"{span_id:016x}",
                        **({} if parent is None else {"parentSpanId": f"{parent:016x}"}),
                        "name": "invoke_agent" if agent else "step",
                        "startTimeUnixNano": str(int(start * 1e9)),
                        "endTimeUnixNano": str(int((start + seconds) * 1e9)),
                        "attributes": _attributes(named),
                        "links": [
                            {"traceId": f"{other:032x}", "spanId": f"{1:016x}"}
                            for other in links or ()
                        ],
                    }
                ],
            }
        ],
    }


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]


def body(*groups: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"resourceSpans": groups})


def rows(store: Store, table: Any, project: int = 1) -> list[dict[str, Any]]:
    with store.read() as connection:
        query = select(table).where(table.c.project == project)
        return [dict(row) for row in connection.execute(query).mappings()]


def only(store: Store) -> dict[str, Any]:
    (row,) = rows(store, conversation)
    return row


def agents_of(record: Trace) -> list[str]:
    return [each.agent for turn in record.turns for each in turn.runs]


@pytest.fixture
def worker(store: Store) -> Worker:
    return Worker(store, QUIET)


def test_a_late_span_makes_a_second_version(store: Store, worker: Worker) -> None:
    send(store, 1, [body(span(1, 1, agent="desk"))], AT)
    work(worker, AT + 2)
    first = only(store)
    assert (first["version"], first["state"], first["runs"]) == (1, "complete", 1)
    send(store, 1, [body(span(1, 2, 1, agent="billing"))], AT + 100)
    work(worker, AT + 102)
    second = only(store)
    assert (second["id"], second["version"], second["runs"]) == (first["id"], 2, 2)
    assert agents_of(record_of(store, 1, second["id"])) == ["desk", "billing"]


def test_a_span_that_is_sent_again_makes_no_new_version(store: Store, worker: Worker) -> None:
    one = span(1, 1, agent="desk")
    send(store, 1, [body(one)], AT)
    work(worker, AT + 2)
    send(store, 1, [body(one, one)], AT + 100)
    work(worker, AT + 102)
    assert only(store)["version"] == 1
    assert not [row for row in rows(store, trace) if row["changed"]]


def test_a_session_is_one_conversation_over_its_traces(store: Store, worker: Worker) -> None:
    bodies = [
        body(span(number, 1, agent="desk", start=AT + number, session__id="s1"))
        for number in (3, 1, 2)
    ]
    send(store, 1, bodies, AT)
    work(worker, AT + 2)
    row = only(store)
    assert (row["key"], row["turns"], row["spans"]) == ("s1", 3, 3)
    assert len(rows(store, conversation_trace)) == 3


def test_a_link_joins_traces_whichever_of_them_comes_first(store: Store, worker: Worker) -> None:
    send(store, 1, [body(span(1, 1, agent="desk"))], AT)
    work(worker, AT + 2)
    send(store, 1, [body(span(2, 2, agent="billing", links=[1], start=AT + 5))], AT + 100)
    work(worker, AT + 102)
    row = only(store)
    assert (row["key"], row["version"]) == (f"{1:032x}", 2)
    assert agents_of(record_of(store, 1, row["id"])) == ["desk", "billing"]


def test_a_conversation_that_gets_a_name_later_takes_the_place_of_the_nameless_one(
    store: Store, worker: Worker
) -> None:
    send(store, 1, [body(span(1, 1, agent="desk"))], AT)
    work(worker, AT + 2)
    said = {
        "project": 1, "conversation": only(store)["id"], "subject": "r1", "rubric": "good",
        "value": "true", "by": "ann", "at": AT, "origin": "page",
    }  # fmt: skip
    with store.write() as connection:
        connection.execute(label.insert(), said)
    send(store, 1, [body(span(1, 2, 1, agent="billing", session__id="s1"))], AT + 100)
    work(worker, AT + 102)
    row = only(store)
    assert (row["key"], row["version"]) == ("s1", 1)
    assert {each["conversation"] for each in rows(store, run)} == {row["id"]}
    assert [each["conversation"] for each in rows(store, label)] == [row["id"]]


def test_a_trace_of_two_sessions_is_two_conversations(store: Store, worker: Worker) -> None:
    groups = [
        span(1, 1),
        span(1, 2, 1, agent="a", session__id="s1"),
        span(1, 3, 1, agent="b", session__id="s2"),
    ]
    send(store, 1, [body(*groups)], AT)
    work(worker, AT + 2)
    assert {row["key"] for row in rows(store, conversation)} == {"s1", "s2"}


def test_projects_are_apart(store: Store, worker: Worker) -> None:
    other = store.project("other", create=True)
    send(store, 1, [body(span(1, 1, agent="desk", session__id="s1"))], AT)
    send(store, other, [body(span(1, 2, 1, agent="spy", session__id="s1"))], AT)
    work(worker, AT + 400)
    for project, agent in ((1, "desk"), (other, "spy")):
        (row,) = rows(store, conversation, project)
        assert agents_of(record_of(store, project, row["id"])) == [agent]
    (row,) = rows(store, conversation, other)
    with pytest.raises(KeyError):
        record_of(store, 1, row["id"])


def test_log_records_without_a_trace_join_by_the_session_they_name(
    store: Store, worker: Worker
) -> None:
    record = {
        "timeUnixNano": str(int(AT * 1e9)),
        "attributes": _attributes({"session.id": "s1", "event.name": "user_prompt"}),
    }
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    Inbox(store).put([entry_of(1, "logs", "json", msgspec.json.encode(logs), received=AT)])
    work(worker, AT + 400)
    assert not rows(store, conversation)
    send(store, 1, [body(span(1, 1, agent="desk", session__id="s1"))], AT + 500)
    work(worker, AT + 502)
    assert only(store)["key"] == "s1"
    assert {row["trace_id"] for row in rows(store, tie)} == {"label:s1", f"{1:032x}"}


def test_without_its_root_a_conversation_is_waited_for_longer(store: Store) -> None:
    worker = Worker(store)
    send(store, 1, [body(span(1, 2, 99, agent="desk"))], AT)
    work(worker, AT + 20)
    assert not rows(store, conversation)
    work(worker, AT + 301)
    assert only(store)["state"] == "complete"


def test_a_trace_that_was_read_without_its_root_is_not_waited_for_again(store: Store) -> None:
    worker = Worker(store)
    send(store, 1, [body(span(1, 2, 99, agent="desk", session__id="s1"))], AT)
    work(worker, AT + 301)
    assert only(store)["version"] == 1
    send(store, 1, [body(span(2, 1, agent="billing", session__id="s1"))], AT + 400)
    work(worker, AT + 412)
    assert (only(store)["version"], only(store)["turns"]) == (2, 2)


def test_ids_of_traces_that_are_no_hexadecimal_numbers_are_joined_by_links(
    store: Store, worker: Worker
) -> None:
    one, other = span(1, 1, agent="desk"), span(2, 2, agent="billing", links=[1], start=AT + 1)
    odd = "no hex " * 100
    text = body(one, other).decode().replace(f"{1:032x}", odd)
    send(store, 1, [text.encode()], AT)
    work(worker, AT + 2)
    assert (only(store)["key"], only(store)["runs"]) == (narrow(odd), 2)


def test_an_open_conversation_is_shown_and_becomes_complete(store: Store) -> None:
    worker = Worker(store)
    states = []
    for number in range(40):  # a span every second: never quiet
        send(store, 1, [body(span(1, 2 + number, 1, agent=f"a{number}"))], AT + number)
        work(worker, AT + number + 0.5)
        states += [row["state"] for row in rows(store, conversation)]
    assert set(states) == {"open"}
    send(store, 1, [body(span(1, 1, agent="desk"))], AT + 40)
    work(worker, AT + 60)
    row = only(store)
    assert (row["state"], row["runs"]) == ("complete", 41)


def test_a_conversation_that_is_never_quiet_counts_as_complete_when_it_is_old(
    store: Store,
) -> None:
    worker = Worker(store, Bounds(max_age=100))
    versions = []
    for number in range(25):
        groups = [span(1, 2 + number, 1, agent=f"a{number}")]
        send(store, 1, [body(*groups)], AT + 10 * number)
        work(worker, AT + 10 * number + 0.5)
        versions += [
            row["version"] for row in rows(store, conversation) if row["state"] == "complete"
        ]
    assert len(set(versions)) == 2


def test_what_waits_in_the_inbox_keeps_a_conversation_open(store: Store, worker: Worker) -> None:
    send(store, 1, [body(span(1, 1, agent="desk"))], AT)
    while worker.take_in(AT + 0.5):
        pass
    send(store, 1, [body(span(1, 2, 1, agent="billing"))], AT + 0.7)
    while worker.read_due(AT + 100):  # a worker that is late
        pass
    assert not rows(store, conversation)


def test_the_quiet_time_is_learnt_from_the_gaps_seen(store: Store, worker: Worker) -> None:
    with store.read() as connection:
        assert completeness.quiet_times(connection, [1]) == {1: 10.0}
    for number in range(101):
        send(store, 1, [body(span(1, 2 + number, 1, agent="a"))], AT + 20 * number)
        while worker.take_in(AT + 20 * number):
            pass
    with store.read() as connection:
        learnt = completeness.quiet_times(connection, [1])[1]
    assert 20 <= learnt <= 25


@pytest.mark.parametrize("seconds", [0.0001, 0.001, 0.3, 7.0, 86_400.0])
def test_a_bucket_holds_its_gaps(seconds: float) -> None:
    assert span_chunks.longest_of(span_chunks.bucket_of(seconds)) >= seconds


def test_times_of_spans_decide_nothing(store: Store, worker: Worker) -> None:
    send(store, 1, [body(span(1, 1, agent="late", start=AT + 1e8))], AT)
    send(store, 1, [body(span(2, 1, agent="old", start=1.0))], AT)
    work(worker, AT + 2)
    found = {row["agents"]: row for row in rows(store, conversation)}
    assert {row["state"] for row in found.values()} == {"complete"}
    assert found['["late"]']["started"] == AT  # it cannot have begun after it arrived
    assert found['["old"]']["started"] == 1.0
    assert {row["day"] for row in rows(store, chunk)} == {day_of(AT)}
    record = record_of(store, 1, found['["late"]']["id"])
    assert record.turns[0].started == AT + 1e8


def test_a_reused_span_id_is_two_spans(store: Store, worker: Worker) -> None:
    groups = [
        span(1, 1, agent="desk"),
        span(1, 2, 1, agent="a"),
        span(1, 2, 1, agent="b", start=AT + 5),
    ]
    send(store, 1, [body(each) for each in groups], AT)
    work(worker, AT + 2)
    assert agents_of(record_of(store, 1, only(store)["id"])) == ["desk", "a", "b"]


def test_a_conversation_beyond_the_limit_says_what_was_left_out(store: Store) -> None:
    worker = Worker(store, Bounds(quiet=1.0, spans=10))
    first = body(span(1, 2, 1, agent="first"))
    middle = [body(span(1, 10 + n, 1, agent="middle", start=AT + n)) for n in range(30)]
    last = body(span(1, 1, agent="desk", start=AT - 1, seconds=100))
    for number, each in enumerate([first, *middle, last]):
        send(store, 1, [each], AT + number)
        while worker.take_in(AT + number):
            pass
    work(worker, AT + 100)
    row = only(store)
    record = record_of(store, 1, row["id"])
    assert row["spans"] == 10
    assert agents_of(record)[:2] == ["desk", "first"]
    assert [(lost.what, lost.count) for lost in record.dropped] == [(BEYOND, 22)]


def test_a_record_says_what_retention_deleted_of_it(store: Store, worker: Worker) -> None:
    day = 86_400.0
    send(store, 1, [body(span(1, 1, agent="desk"))], AT)
    work(worker, AT + 2)
    store.bodies.drop(day_of(AT))
    with pytest.raises(BodyGone):
        record_of(store, 1, only(store)["id"])
    send(store, 1, [body(span(1, 2, 1, agent="billing"))], AT + 3 * day)
    work(worker, AT + 3 * day + 400)
    row = only(store)
    assert (row["gone"], row["version"]) == (True, 2)
    record = record_of(store, 1, row["id"])
    assert [(lost.what, lost.count) for lost in record.dropped] == [(DELETED, 1)]


def test_one_broken_conversation_does_not_stop_the_others(store: Store, worker: Worker) -> None:
    groups = [span(1, 1, agent="a", session__id="bad"), span(2, 1, agent="b", session__id="fine")]
    send(store, 1, [body(*groups)], AT)
    while worker.take_in(AT):
        pass
    (place,) = store.bodies.put(day_of(AT), [b"no chunk"])
    which = (chunk.c.project == 1) & (chunk.c.trace_id == f"{1:032x}")
    right = next(row for row in rows(store, chunk) if row["trace_id"] == f"{1:032x}")
    with store.write() as connection:
        connection.execute(update(chunk).where(which).values(place=place.number))
    work(worker, AT + 2)
    assert only(store)["key"] == "fine"
    found = {row["trace_id"]: row for row in rows(store, trace)}
    assert "ValidationError" in found[f"{1:032x}"]["error"]
    assert not found[f"{1:032x}"]["changed"]
    with store.write() as connection:
        connection.execute(update(chunk).where(which).values(place=right["place"]))
        assert conversations.reread(connection, AT + 3, older=True) == 0
        assert conversations.reread(connection, AT + 3) == 1
    work(worker, AT + 5)
    assert {row["key"] for row in rows(store, conversation)} == {"fine", "bad"}
    assert {row["error"] for row in rows(store, trace)} == {None}


def scored(project: int, record: Trace, told: object, state: str) -> tuple[list[Any], list[str]]:
    """Score each dispatch and run: what `billing` does fails. Judges of one rule have to be asked."""
    found = []
    for turn in record.turns:
        for made in turn.dispatches:
            found.append(score_of(made.id, made.from_agent, made.to_agent))
        found.append(score_of(None, None, turn.runs[0].agent))
    return found, ["judged"]


def score_of(made: str | None, sender: str | None, agent: str, status: str | None = None) -> Any:
    status = status or ("failed" if agent == "billing" else "passed")
    return {
        "rule": "all", "evaluator": "scope", "type": "scope", "evaluator_version": "1",
        "unit": "dispatch" if made else "run", "subject": "[]", "dispatch": made,
        "from_agent": sender, "to_agent": agent, "agent_version": None, "status": status,
        "value": 0.0 if status == "failed" else 1.0, "threshold": 1.0, "reason": "", "finding": None,
        "details": "{}", "evidence": "[]", "judge": None, "cost_usd": None, "at": AT,
    }  # fmt: skip


def sums(store: Store) -> dict[Any, Any]:
    """Return the sums by hour that follow from what is stored: each row's own figures."""
    found: dict[Any, list[float]] = {}
    of = {row["id"]: row for row in rows(store, conversation)}
    dispatches = rows(store, dispatch)
    starts = {(row["conversation"], row["id"]): row["started"] for row in dispatches}
    for row in dispatches:
        key = (int(row["started"] // 3600), row["from_agent"], row["to_agent"], "")
        each = found.setdefault(key, [0, 0, 0])
        each[0] += 1
        each[1] += row["status"] == "completed"
        each[2] += row["status"] in ("failed", "refused", "unanswered")
    for row in rows(store, score):
        own = of.get(row["conversation"])
        if own is None or own["version"] != row["version"]:
            continue
        began = starts.get((row["conversation"], row["dispatch"]), own["started"])
        key = (int(began // 3600), row["from_agent"] or "", row["to_agent"], row["evaluator"])
        each = found.setdefault(key, [0, 0, 0])
        each[0] += 1
        each[1] += row["status"] == "passed"
        each[2] += row["status"] == "failed"
    return found


def stored_sums(store: Store) -> dict[Any, Any]:
    return {
        (row["hour"], row["from_agent"], row["to_agent"], row["evaluator"]): [
            row["count"], row["passed"], row["failed"],
        ]
        for row in rows(store, rollup)
    }  # fmt: skip


def test_sums_are_those_of_the_current_versions(store: Store) -> None:
    worker = Worker(store, QUIET, scored)
    top, second = span(1, 1, agent="desk"), span(1, 2, 1, agent="billing")
    third = span(1, 3, 2, agent="refunds", start=AT + 7200)
    other = span(9, 1, agent="desk"), span(9, 2, 1, agent="billing")
    steps = [(top, *other), (second,), (third,), (span(1, 4, 1, agent="tax", session__id="s1"),)]
    for number, groups in enumerate(steps):
        now = AT + 100 * number
        send(store, 1, [body(*groups)], now)
        work(worker, now + 2)
        assert stored_sums(store) == sums(store), number
        assert_days_follow(store)
    found = {row["key"]: row for row in rows(store, conversation)}
    assert (found["s1"]["version"], found["s1"]["verdict"], found["s1"]["failed"]) == (
        1,
        "failed",
        1,
    )
    # Scores of a conversation that is no more are not left behind.
    assert {row["conversation"] for row in rows(store, score)} == {
        row["id"] for row in found.values()
    }
    waiting = [(row["conversation"], row["version"]) for row in rows(store, judging)]
    assert sorted(waiting) == sorted((row["id"], row["version"]) for row in found.values())


def test_scores_of_old_versions_stay_and_their_judges_are_not_asked(store: Store) -> None:
    worker = Worker(store, QUIET, scored)
    send(store, 1, [body(span(1, 1, agent="desk"))], AT)
    work(worker, AT + 2)
    send(store, 1, [body(span(1, 2, 1, agent="billing"))], AT + 100)
    work(worker, AT + 102)
    assert {row["version"] for row in rows(store, score)} == {1, 2}
    assert [(row["version"], row["state"]) for row in rows(store, judging)] == [(2, "waiting")]
    (made,) = rows(store, dispatch)
    assert (made["to_agent"], made["verdict"]) == ("billing", "failed")


def test_scores_that_come_later_count_while_their_version_is_the_current_one(store: Store) -> None:
    worker = Worker(store, QUIET)
    send(store, 1, [body(span(1, 1, agent="desk"), span(1, 2, 1, agent="billing"))], AT)
    work(worker, AT + 2)
    row = only(store)
    (made,) = rows(store, dispatch)
    given = [score_of(made["id"], "desk", "billing")]
    with store.write() as connection:
        add_scores(connection, 1, row["id"], 1, given)
        add_scores(connection, 1, row["id"], 0, given)
        add_scores(connection, 1, row["id"] + 1, 1, given)
    assert sorted(each["version"] for each in rows(store, score)) == [0, 1]
    row = only(store)
    assert (row["verdict"], row["failed"]) == ("failed", 1)
    assert rows(store, dispatch)[0]["verdict"] == "failed"
    assert stored_sums(store) == sums(store)


def test_a_record_whose_scoring_breaks_is_kept_and_listed(store: Store) -> None:
    def breaks(*_: object) -> Any:
        raise ZeroDivisionError("no dispatches")

    worker = Worker(store, QUIET, breaks)
    send(store, 1, [body(span(1, 1, agent="desk"))], AT)
    work(worker, AT + 2)
    assert only(store)["state"] == "complete"
    (row,) = rows(store, trace)
    assert "cannot be scored: ZeroDivisionError" in row["error"]


def test_rows_say_which_service_and_which_version(store: Store, worker: Worker) -> None:
    resource = {"service.name": "support", "service.version": "1.4"}
    groups = [
        span(1, 1, agent="desk", resource=resource),
        span(1, 2, 1, agent="billing", resource=resource, gen_ai__agent__version="7"),
    ]
    send(store, 1, [body(*groups)], AT)
    work(worker, AT + 2)
    assert only(store)["service"] == "support"
    found = {row["agent"]: row["agent_version"] for row in rows(store, run)}
    assert found == {"desk": "1.4", "billing": "7"}
    assert [row["agent_version"] for row in rows(store, dispatch)] == ["7"]


def test_names_that_a_database_cannot_hold_are_kept_short(store: Store, worker: Worker) -> None:
    long = "x" * 5_000_000
    groups = [span(1, 1, agent=f"a{long}\0", session__id=f"{long}1", start=AT)]
    send(store, 1, [body(*groups), body(span(2, 1, agent="b", session__id=f"{long}2"))], AT)
    work(worker, AT + 2)
    keys = {row["key"] for row in rows(store, conversation)}
    assert len(keys) == 2
    assert all(len(key) < 300 for key in keys)
    (record,) = [
        record_of(store, 1, row["id"])
        for row in rows(store, conversation)
        if row["agents"] != '["b"]'
    ]
    assert record.id == f"{long}1"


def test_narrow_names_stay_apart() -> None:
    assert narrow("short") == "short"
    assert narrow("a\0b") == "a\ufffdb"
    assert len({narrow("ä" * 1000 + end) for end in ("", "1", "2")}) == 3
    assert all(len(narrow(text * 1000).encode()) <= 240 for text in ("x", "ä", "😀"))


def test_a_return_is_no_dispatch_in_the_count_as_in_scores(store: Store) -> None:
    text = (Path(__file__).parents[1] / "records" / "langgraph_supervisor_return.json").read_bytes()
    record = msgspec.json.decode(text, type=Trace)
    kinds = [made.kind for turn in record.turns for made in turn.dispatches]
    assert "return" in kinds
    (place,) = store.bodies.put(day_of(AT), [b"x"])
    reading = Reading(
        trace=record, place=place, state="complete", traces=["t"], spans=1, seen=AT, scores=[]
    )
    with store.write() as connection:
        write(connection, 1, [reading], AT, traces=["t"])
    (result,) = baton.score(record, evaluators=[{"type": "dispatch_completed", "optional": True}])
    assert result.efficiency is not None
    assert only(store)["dispatches"] == result.efficiency.dispatches == len(kinds) - 1


@pytest.mark.parametrize(
    ("prices", "cost"),
    [(None, None), ({"m-1": ModelPrice(input=1, output=2)}, (300 + 2 * 50) / 1e6)],
)
def test_costs_are_computed_with_prices_and_unknown_without(
    store: Store, prices: dict[str, ModelPrice] | None, cost: float | None
) -> None:
    model: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m-1",
        "gen_ai.usage.input_tokens": "300",
        "gen_ai.usage.output_tokens": "50",
    }
    sent = body(
        span(1, 1, agent="desk"),
        span(1, 4, 1, **model),
        span(1, 2, 1, agent="lab"),
        span(1, 3, 2, **model),
    )
    worker = Worker(store, Bounds(quiet=1.0, prices=prices))
    send(store, 1, [sent], AT)
    work(worker, AT + 60)
    (edge,) = edges(store, 1)
    lab, desk = sorted(agents(store, 1), key=lambda each: each.sent)
    (day,) = trends(store, 1, since=AT - 86_400, until=AT + 86_400)
    assert (edge.dispatches, desk.cost_usd) == (1, None)
    assert edge.cost_usd == lab.cost_usd == day.cost_usd == cost
    assert only(store)["cost_usd"] == (None if cost is None else 2 * cost)
    assert_days_follow(store)
