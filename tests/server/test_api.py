"""The JSON API, asked over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from sqlalchemy import update

from baton.model import Trace
from baton.server.access import create_key
from baton.server.bodies import day_of
from baton.server.inbox import Inbox, entry_of
from baton.server.schema import conversation
from baton.server.schema import trace as trace_rows
from baton.server.store import Store, open_store
from baton.testing.build import call, delegate, run, trace, turn

from .conftest import Opening
from .seeding import START, add_conversation, add_score, add_sum
from .serving import api


def desk(id_: str, to: str = "refunds", asked: str = "Refund order 42.") -> Trace:
    return trace(
        turn(
            asked,
            run("desk", delegate(to, "Refund it.")),
            run(to, call("refund", {"order": 42}), output="Refunded."),
            output="Done.",
        ),
        id=id_,
    )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Ten conversations, an hour apart; each third one failed."""
    store = open_store(tmp_path_factory.mktemp("store") / "server")
    for n in range(10):
        to = "refunds" if n % 2 else "billing"
        failed = n % 3 == 0
        verdict: dict[str, Any] = (
            {"verdict": "failed", "failed": 1} if failed else {"verdict": "passed"}
        )
        asked = f"Where is Order-{n}? Größe XL."
        id_ = add_conversation(
            store, desk(f"c{n}", to, asked), at=START + n * 3600, cost_usd=n / 100, **verdict
        )
        status = "failed" if failed else "passed"
        finding: dict[str, Any] = {"finding": "scope_exceeded" if failed else None}
        add_score(
            store, id_, status=status, value=float(not failed), at=START + n, to_agent=to, **finding
        )
    other = store.project("other", create=True)
    add_conversation(store, desk("secret"), project=other)
    yield store
    store.close()


@pytest.fixture(scope="module")
def url(filled: Store) -> Iterator[str]:
    with api(filled, rules=lambda project: [{"name": "all", "project": project}]) as address:
        yield address


def get(url: str, path: str, **params: Any) -> Any:
    answer = httpx2.get(f"{url}/api/v1{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def keys(url: str, **params: Any) -> list[str]:
    return [each["key"] for each in get(url, "/conversations", **params)["items"]]


def refused(url: str, path: str, **params: Any) -> tuple[int, str]:
    answer = httpx2.get(f"{url}/api/v1{path}", params=params)
    body = answer.json()
    assert body["do"]
    return answer.status_code, body["error"]


def test_conversations_are_listed_newest_first_with_times_as_rfc_3339(url: str) -> None:
    listed = get(url, "/conversations", limit=3)
    assert [each["key"] for each in listed["items"]] == ["c9", "c8", "c7"]
    first = listed["items"][0]
    assert first["started"] == "2026-01-01T09:00:00Z"
    assert first["agents"] == ["desk", "refunds"]
    assert (first["verdict"], first["failed"], first["cost_usd"]) == ("failed", 1, 0.09)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"agent": "refunds"}, "97531"),
        ({"agent": "bil*", "verdict": "failed"}, "60"),
        ({"to": "refunds", "kind": "delegate"}, "97531"),
        ({"to": "refunds,billing", "from": "desk", "depth": ">=2"}, ""),
        ({"to": "!refunds"}, "86420"),
        ({"evaluator": "dispatch_scope", "verdict": "failed"}, "9630"),
        ({"evaluator": "other"}, ""),
        ({"finding": "scope_*"}, "9630"),
        ({"conversation": "c[3-5]"}, "543"),
        ({"cost": ">=0.07"}, "987"),
        ({"duration": "2s", "limit": 1}, "9"),
        ({"since": "2026-01-01T08:00:00Z"}, "98"),
        ({"since": "2026-01-01T09:00:00+01:00", "until": "2026-01-01T09:00:00Z"}, "8"),
        ({"filter": "to:billing verdict:passed"}, "842"),
        ({"text": "order-7?"}, "7"),
        ({"text": "GRÖSSE xl", "to": "refunds"}, "97531"),
        ({"text": "größe xl", "verdict": "failed"}, "9630"),
        ({"text": "delegate"}, ""),
    ],
)  # fmt: skip
def test_conversations_are_chosen_by_what_is_in_them(
    url: str, params: dict[str, Any], expected: str
) -> None:
    assert "".join(key[1:] for key in keys(url, **params)) == expected


def test_a_search_quotes_what_it_was_for(url: str) -> None:
    listed = get(url, "/conversations", text="refunded")
    assert {each["match"] for each in listed["items"]} == {"Refunded."}
    assert listed["searched_to"] == "2026-01-01T00:00:00Z"
    first = get(url, "/conversations", text="refunded", limit=4)
    rest = get(url, "/conversations", text="refunded", cursor=first["next"])
    assert [each["key"] for each in first["items"] + rest["items"]] == [
        f"c{n}" for n in range(9, -1, -1)
    ]
    assert rest["next"] is None


def test_pages_go_on_where_they_stopped_whatever_arrives_meanwhile(
    tmp_path: Path, opening: Opening
) -> None:
    store = opening(tmp_path / "server")
    for n in range(5):
        add_conversation(store, desk(f"c{n}"))  # all at the same moment
    with api(store) as url:
        first = get(url, "/conversations", limit=2)
        add_conversation(store, desk("new"), at=START + 60)
        second = get(url, "/conversations", limit=2, cursor=first["next"])
        third = get(url, "/conversations", limit=2, cursor=second["next"])
        pages = [each["key"] for page in (first, second, third) for each in page["items"]]
        assert pages == ["c4", "c3", "c2", "c1", "c0"]
        assert third["next"] is None
        found, cursor = [], None
        while True:
            page = get(url, "/dispatches", limit=4, **({"cursor": cursor} if cursor else {}))
            found += [each["conversation"] for each in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert found == ["new", "c4", "c3", "c2", "c1", "c0"]


def test_a_conversation_is_shown_with_its_record(url: str) -> None:
    listed = get(url, "/conversations", conversation="c4")["items"]
    one = get(url, f"/conversations/{listed[0]['id']}")
    assert one["conversation"] == listed[0]
    assert msgspec.convert(one["record"], Trace) == desk(
        "c4", "billing", "Where is Order-4? Größe XL."
    )
    assert refused(url, "/conversations/4711") == (
        404,
        "there is no conversation 4711 in this project",
    )


def test_what_retention_deleted_is_reported(tmp_path: Path, opening: Opening) -> None:
    store = opening(tmp_path / "server")
    id_ = add_conversation(store, desk("c0"))
    store.bodies.drop(day_of(START))
    with api(store) as url:
        one = get(url, f"/conversations/{id_}")
        assert one["record"] is None
        assert one["deleted"] == "what arrived on 2026-01-01 was deleted by retention"
        assert get(url, "/deletions") == {"items": []}
        assert get(url, "/conversations", text="refund")["items"] == []


def test_dispatches_are_chosen_and_named_with_their_conversation(url: str) -> None:
    listed = get(url, "/dispatches", to="ref*", verdict="failed")["items"]
    assert [(each["conversation"], each["to_agent"], each["id"]) for each in listed] == [
        ("c9", "refunds", "d1"),
        ("c3", "refunds", "d1"),
    ]
    id_ = listed[0]["conversation_id"]
    assert len(get(url, "/dispatches", conversation_id=id_)["items"]) == 1
    by_score = get(url, "/dispatches", finding="scope_exceeded", to="billing")["items"]
    assert [each["conversation"] for each in by_score] == ["c6", "c0"]


def test_scores_are_those_of_the_newest_version(tmp_path: Path, opening: Opening) -> None:
    store = opening(tmp_path / "server")
    id_ = add_conversation(store, desk("c0"), version=2)
    add_score(store, id_, version=1, status="failed", value=0.0)
    add_score(store, id_, version=2, details='{"a": 1}', at=START + 1)
    with api(store) as url:
        assert [each["version"] for each in get(url, "/scores")["items"]] == [2]
        assert get(url, "/scores")["items"][0]["details"] == {"a": 1}
        both = get(url, "/scores", every_version=True, conversation_id=id_)["items"]
        assert [each["status"] for each in both] == ["passed", "failed"]
        assert keys(url, evaluator="dispatch_scope", verdict="failed") == []
        assert get(url, "/dispatches", evaluator="dispatch_scope", verdict="failed")["items"] == []


def test_edges_and_trends_come_from_the_hourly_sums(tmp_path: Path, opening: Opening) -> None:
    store = opening(tmp_path / "server")
    hour = int(START // 3600)
    for each in (hour, hour + 1, hour + 24):
        add_sum(store, each, "refunds")
        add_sum(store, each, "refunds", "dispatch_scope", passed=9, failed=1, agent_version="v2")
    add_sum(store, hour, "billing", count=5)
    # Scores of a run, and of a conversation: nobody dispatched anything there.
    add_sum(store, hour, "desk", "agent_chain", from_agent="", passed=3)
    add_sum(store, hour, "", "agent_chain", from_agent="", passed=3)
    with api(store) as url:
        first, second = get(url, "/edges")["items"]
        assert (first["from_agent"], first["to_agent"], first["dispatches"]) == (
            "desk",
            "refunds",
            30,
        )
        assert (first["seconds"], second["dispatches"], second["evaluators"]) == (2.0, 5, [])
        (scope,) = first["evaluators"]
        assert (scope["evaluator"], scope["passed"], scope["pass_rate"]["value"]) == (
            "dispatch_scope",
            27,
            0.9,
        )
        assert scope["pass_rate"]["low"] < 0.9 < scope["pass_rate"]["high"]
        late = get(url, "/edges", since="2026-01-02T00:00:00Z")["items"]
        assert [(each["to_agent"], each["dispatches"]) for each in late] == [("refunds", 10)]
        span = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-04T00:00:00Z"}
        days = get(url, "/trends", **span)["items"]
        assert [(each["at"], each["count"]) for each in days] == [
            ("2026-01-01T00:00:00Z", 25),
            ("2026-01-02T00:00:00Z", 10),
        ]
        weeks = get(url, "/trends", interval="week", **span)["items"]
        assert [(each["at"], each["count"]) for each in weeks] == [("2025-12-29T00:00:00Z", 35)]
        hours = get(
            url, "/trends", interval="hour", evaluator="dispatch_scope", by_version=True, **span
        )["items"]
        assert [(each["agent_version"], each["pass_rate"]["value"]) for each in hours] == [
            ("v2", 0.9)
        ] * 3
        status, said = refused(url, "/trends", interval="hour", since="2020-01-01T00:00:00Z")
        assert (status, "over 10,000 steps" in said) == (400, True)


@pytest.mark.parametrize(
    ("path", "params", "said"),
    [
        ("/conversations", {"agnet": "x"}, "agnet: unknown parameter; did you mean `agent`?"),
        ("/conversations", {"status": "faild"}, "did you mean `failed`"),
        ("/conversations", {"depth": "deep"}, "is not a number"),
        ("/conversations", {"limit": "0"}, "limit: expected"),
        ("/conversations", {"limit": "501"}, "limit: expected"),
        ("/conversations", {"since": "yesterday"}, "since: "),
        ("/conversations", {"since": "2026-01-01T00:00:00"}, "since: "),
        ("/conversations", {"cursor": "x"}, "`cursor` does not belong to this list"),
        ("/dispatches", {"cursor": "WzEsMl0"}, "`cursor` does not belong to this list"),
        ("/conversations", {"filter": "nope:x"}, "unknown field"),
        ("/conversations", {"text": "x"}, "text: "),
        (
            "/conversations",
            {"agent": "*a*a*a*a*a*a*a*a*a", "to": "*a*a*a*a*a*a*a*a*a"},
            "over 8 stars",
        ),
        ("/conversations", {"agent": "x" * 3000}, "longer than 2000"),
        ("/openapi.json", {"x": "1"}, "unknown parameter"),
        ("/trends", {"interval": "minute"}, "interval: `minute` is not one of day, hour, week"),
        ("/dispatches", {"limit": "9999"}, "limit: expected a whole number <= 500, got 9999"),
        ("/dispatches", {"limit": "ten"}, "limit: expected a whole number"),
        ("/dispatches", {"since": "soon"}, "since: `soon` is not a time with its zone, such"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_to_write(
    url: str, path: str, params: dict[str, str], said: str
) -> None:
    status, error = refused(url, path, **params)
    assert status == 400
    assert said in error


def test_a_path_or_method_that_is_missing_says_so_in_json(url: str) -> None:
    assert refused(url, "/conversation")[0] == 404
    answer = httpx2.delete(f"{url}/api/v1/conversations")
    assert (answer.status_code, answer.json()["do"]) == (405, "use GET")


def test_labels_are_written_by_those_who_may_review(tmp_path: Path, opening: Opening) -> None:
    store = opening(tmp_path / "server")
    add_conversation(store, desk("c0"))
    headers = {
        right: {"authorization": f"Bearer {create_key(store, 'default', right, [right])}"}
        for right in ("read", "review", "ingest")
    }
    label = {
        "trace": "c0",
        "subject": "d1",
        "rubric": "scope_fidelity",
        "value": "inside",
        "note": "fine",
    }
    with api(store) as url:
        labels = f"{url}/api/v1/labels"
        assert httpx2.post(labels, json=label).status_code == 401
        assert httpx2.post(labels, json=label, headers=headers["read"]).status_code == 403
        made = httpx2.post(labels, json=label, headers=headers["review"]).json()
        assert {**made, "at": ""} == {**label, "by": "review", "at": "", "origin": "api"}
        wrong = httpx2.post(labels, json={**label, "trace": "c1"}, headers=headers["review"])
        assert (wrong.status_code, wrong.json()["error"]) == (
            400,
            "there is no conversation `c1` in this project",
        )
        wrong = httpx2.post(labels, json={**label, "lable": "c1"}, headers=headers["review"])
        assert (wrong.status_code, "did you mean `label`" in wrong.json()["error"]) == (400, True)
        # What a form of another site may send without asking.
        form = httpx2.post(
            labels,
            content=msgspec.json.encode(label),
            headers={**headers["review"], "content-type": "text/plain"},
        )
        assert form.status_code == 415
        assert (
            httpx2.post(
                labels,
                content=b"x" * (1 << 21),
                headers={**headers["review"], "content-type": "application/json"},
            ).status_code
            == 413
        )
        assert httpx2.get(labels, headers=headers["ingest"]).status_code == 403
        listed = httpx2.get(
            labels, headers=headers["read"], params={"rubric": "scope_fidelity"}
        ).json()
        assert listed == {"items": [made], "next": None, "searched_to": None}


def test_no_page_of_another_site_and_no_other_name_reaches_it(url: str) -> None:
    for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
        answer = httpx2.get(f"{url}/api/v1/conversations", headers=headers)
        assert answer.status_code in (403, 421)
        assert answer.json()["do"]


def test_a_project_shows_only_its_own(url: str) -> None:
    assert keys(url, project="other") == ["secret"]
    assert "secret" not in keys(url)
    number = get(url, "/conversations", project="other")["items"][0]["id"]
    assert refused(url, f"/conversations/{number}")[0] == 404
    assert refused(url, "/conversations", project="nope")[0] == 404


def test_rules_and_problems_are_listed(url: str, filled: Store) -> None:
    assert get(url, "/rules") == {"items": [{"name": "all", "project": "default"}]}
    assert httpx2.get(f"{url}/api/rules").json() == get(url, "/rules")
    inbox = Inbox(filled)
    inbox.put([entry_of(1, "traces", "json", b"{}", received=START)])
    with filled.write_inbox() as connection:
        (item,) = inbox.take(connection, 1000)
        inbox.fail(connection, item.id, "no spans")
    (problem,) = get(url, "/problems")["items"]
    assert (problem["error"], problem["received"]) == ("no spans", "2026-01-01T00:00:00Z")
    row = {
        "project": 1, "trace_id": "1" * 32, "first_seen": START, "last_seen": START, "spans": 7,
        "logs": 0, "root": True, "changed": False, "due": START, "error": "odd", "reader": "0.1",
    }  # fmt: skip
    with filled.write() as connection:
        connection.execute(trace_rows.insert(), row)
    (unread,) = get(url, "/problems/traces")["items"]
    assert (unread["trace_id"], unread["spans"], unread["error"]) == ("1" * 32, 7, "odd")
    assert unread["last_seen"] == "2026-01-01T00:00:00Z"
    figures = httpx2.get(f"{url}/metrics").text
    assert "\nbaton_inbox_problems 1\n" in figures
    assert "\nbaton_conversation_problems 1\n" in figures


def test_health_readiness_and_figures(filled: Store) -> None:
    with api(filled, counters=lambda: {("traces", "refused 413"): 3}) as url:
        assert httpx2.get(f"{url}/health").json()["status"] == "ok"
        assert httpx2.get(f"{url}/ready").json()["status"] == "ok"
        answer = httpx2.get(f"{url}/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert 'baton_received_total{signal="traces",outcome="refused 413"} 3\n' in answer.text
        assert "baton_scoring_lag_seconds 0\n" in answer.text


def test_a_store_that_is_locked_is_said_to_be_and_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opening: Opening
) -> None:
    store = opening(tmp_path / "server")
    add_conversation(store, desk("c0"))
    label = {"trace": "c0", "rubric": "r", "value": "passed"}
    monkeypatch.setattr("baton.server.database.BUSY", 0.1)
    locked = opening(tmp_path / "server")
    with api(locked) as url:
        with store.write() as connection:
            connection.execute(
                update(conversation).where(conversation.c.project == 1).values(spans=8)
            )
            answer = httpx2.post(f"{url}/api/v1/labels", json=label)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
            assert "locked" in answer.json()["error"]
            assert keys(url) == ["c0"]
        assert httpx2.post(f"{url}/api/v1/labels", json=label).status_code == 200


def test_the_openapi_document_names_every_path_parameter_and_type(url: str) -> None:
    document = get(url, "/openapi.json")
    assert document["openapi"] == "3.1.0"
    listed = document["paths"]["/api/v1/conversations"]["get"]
    assert {"agent", "evaluator", "text", "since", "cursor", "project"} <= {
        each["name"] for each in listed["parameters"]
    }
    text = msgspec.json.encode(document).decode()
    for reference in {part.split('"')[0] for part in text.split('"$ref":"')[1:]}:
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]
    assert document["paths"]["/api/v1/labels"]["post"]["requestBody"]["required"]
