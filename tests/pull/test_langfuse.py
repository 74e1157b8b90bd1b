"""Langfuse, of both generations: observations become the spans that they were."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.pull.conftest import (
    DATA,
    PUBLIC,
    SECRET,
    Answer,
    Behaviour,
    FakeStore,
    attributes_of,
    spans_of,
)

from baton.pull import Pulled, Query, Store, pull
from baton.pull.langfuse import traces

SDK = DATA / "otel" / "langfuse" / "routed.json"
MIXED = DATA / "otel" / "langfuse" / "wrapped.json"


def pulled(store: FakeStore, out: Path, query: Query | None = None, page: int = 1000) -> Pulled:
    async def run() -> Pulled:
        client = Store(store.url, basic=(PUBLIC, SECRET))
        try:
            return await pull(traces(client, query or Query(), page=page), out)
        finally:
            await client.close()

    return asyncio.run(run())


def sent() -> dict[str, Any]:
    return spans_of(SDK) | spans_of(MIXED)


@pytest.fixture(params=["langfuse", "old_langfuse"])
def either(request: pytest.FixtureRequest) -> FakeStore:
    """A Langfuse of each generation."""
    store: FakeStore = request.getfixturevalue(request.param)
    return store


def test_spans_keep_their_ids_names_parents_and_errors(either: FakeStore, tmp_path: Path) -> None:
    assert pulled(either, tmp_path / "t.jsonl") == Pulled(traces=2, spans=13)
    found = spans_of(tmp_path / "t.jsonl")
    assert found.keys() == sent().keys()
    for id_, span in sent().items():
        for key in ("traceId", "parentSpanId", "name", "scope"):
            assert found[id_].get(key) == span.get(key)
        assert found[id_].get("status", {}).get("code", 0) == span["status"].get("code", 0)
        # kept to the millisecond
        assert 0 <= int(span["startTimeUnixNano"]) - int(found[id_]["startTimeUnixNano"]) < 10**6


def test_attributes_and_content_come_back_under_their_names(
    either: FakeStore, tmp_path: Path
) -> None:
    pulled(either, tmp_path / "t.jsonl")
    found = spans_of(tmp_path / "t.jsonl")
    for id_, span in sent().items():
        got = attributes_of(found[id_])
        for key, value in attributes_of(span).items():
            if "internal" in key or key == "langfuse.observation.usage_details":
                continue
            whole = value if isinstance(value, str) else json.dumps(value)
            same = got[key] if isinstance(got[key], str) else json.dumps(got[key])
            assert _read(same) == _read(whole), key


def test_usage_of_other_conventions_is_a_number_again(either: FakeStore, tmp_path: Path) -> None:
    pulled(either, tmp_path / "t.jsonl")
    chats = [attributes_of(span) for span in spans_of(tmp_path / "t.jsonl").values()]
    tokens = [each["gen_ai.usage.input_tokens"] for each in chats if "gen_ai.request.model" in each]
    assert [type(each) for each in tokens] == [int, int, int]


def test_spans_of_other_conventions_are_not_taken_for_those_of_the_sdk(
    either: FakeStore, tmp_path: Path
) -> None:
    pulled(either, tmp_path / "t.jsonl")
    for span in spans_of(tmp_path / "t.jsonl").values():
        of_sdk = span["scope"] == "langfuse-sdk"
        assert ("langfuse.observation.type" in attributes_of(span)) is of_sdk


def test_metadata_that_was_truncated_is_asked_for_again(
    langfuse: FakeStore, tmp_path: Path
) -> None:
    pulled(langfuse, tmp_path / "t.jsonl")
    asked = [
        each.query["expandMetadata"][0] for each in langfuse.asked if "expandMetadata" in each.query
    ]
    assert len(asked) == 1
    assert "attributes.model_request_parameters" in asked[0].split(",")


def test_every_page_of_observations_is_fetched(langfuse: FakeStore, tmp_path: Path) -> None:
    assert pulled(langfuse, tmp_path / "a.jsonl", page=2) == Pulled(traces=2, spans=13)
    pulled(langfuse, tmp_path / "b.jsonl")
    assert spans_of(tmp_path / "a.jsonl") == spans_of(tmp_path / "b.jsonl")


def test_every_page_of_an_old_servers_traces_is_fetched(
    old_langfuse: FakeStore, tmp_path: Path
) -> None:
    assert pulled(old_langfuse, tmp_path / "t.jsonl", page=1) == Pulled(traces=2, spans=13)


def test_one_session_is_fetched(either: FakeStore, baton: Baton, tmp_path: Path) -> None:
    done = baton("pull", "langfuse", "--url", either.url, "--session", "chat-w")
    assert (done.code, done.err) == (0, "1 trace (7 spans) in traces.jsonl\n")
    found = spans_of(tmp_path / "traces.jsonl").values()
    assert {attributes_of(span)["session.id"] for span in found} == {"chat-w"}


def test_a_server_that_ignores_the_session_changes_nothing(
    langfuse: FakeStore, tmp_path: Path
) -> None:
    inner = langfuse.behave
    langfuse.behave = lambda asked: inner(
        asked._replace(query={k: v for k, v in asked.query.items() if k != "sessionId"})
    )
    assert pulled(langfuse, tmp_path / "t.jsonl", Query(session="chat-w")).spans == 7


def test_a_trace_is_fetched_by_its_id_and_one_that_is_missing_is_named(
    either: FakeStore, baton: Baton, tmp_path: Path
) -> None:
    known = next(iter(spans_of(SDK).values()))["traceId"]
    named = ("--trace", known, "--trace", "f" * 32)
    done = baton("pull", "langfuse", "--url", either.url, *named)
    assert done.code == 3
    assert done.err.splitlines() == [
        "1 trace (6 spans) in traces.jsonl",
        "note: this is incomplete: the rest could not be fetched",
        f"baton: {either.url} has no observations of trace {'f' * 32}",
    ]
    assert len(spans_of(tmp_path / "traces.jsonl")) == 6


def test_a_time_range_is_asked_for_in_utc(langfuse: FakeStore, baton: Baton) -> None:
    when = ("--since", "2026-01-01T01:00+01:00", "--until", "2026-01-02")
    done = baton("pull", "langfuse", "--url", langfuse.url, *when)
    assert done.code == 3
    query = langfuse.asked[-1].query
    assert query["fromStartTime"] == ["2026-01-01T00:00:00.000Z"]
    assert query["toStartTime"] == ["2026-01-02T00:00:00.000Z"]


def test_refused_keys_are_a_mistake_of_the_caller_and_are_not_shown(
    langfuse: FakeStore, baton: Baton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-other")
    done = baton("pull", "langfuse", "--url", langfuse.url)
    assert done.code == 2
    assert "answered 401" in done.err
    assert "check LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY" in done.err
    assert SECRET not in done.err
    assert "Invalid credentials: Basic *** of ***" in done.err


@pytest.mark.parametrize("variable", ["LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"])
def test_a_missing_key_is_named_before_anything_is_asked(
    variable: str, langfuse: FakeStore, baton: Baton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable)
    done = baton("pull", "langfuse", "--url", langfuse.url)
    assert (done.code, variable in done.err, langfuse.asked) == (2, True, [])


def test_a_server_that_is_not_langfuse_is_called_none(
    serve: Callable[[Behaviour], FakeStore], baton: Baton
) -> None:
    other = serve(lambda _: Answer("<html>", 404, "text/html"))
    done = baton("pull", "langfuse", "--url", other.url)
    assert done.code == 3
    assert f"is {other.url} the address of Langfuse?" in done.err


def test_ids_of_older_sdks_become_ids_of_spans(
    serve: Callable[[Behaviour], FakeStore], tmp_path: Path
) -> None:
    times = {"startTime": "2026-01-01T00:00:00Z", "endTime": None}
    root = {"id": "root-1", "traceId": "chat/1", "type": "SPAN", **times}
    event = {"id": "event-1", "traceId": "chat/1", "type": "EVENT", **times}
    found = [root, event | {"parentObservationId": "root-1"}]
    store = serve(lambda _: Answer({"data": found, "meta": {}}))
    pulled(store, tmp_path / "t.jsonl", Query(traces=("chat/1",)))
    first, second = spans_of(tmp_path / "t.jsonl").values()
    assert second["parentSpanId"] == first["spanId"]
    assert (len(first["spanId"]), len(first["traceId"])) == (16, 32)
    assert "endTimeUnixNano" not in first
    assert second["endTimeUnixNano"] == second["startTimeUnixNano"] == "1767225600000000000"
    assert attributes_of(first)["langfuse.observation.id"] == "root-1"


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
