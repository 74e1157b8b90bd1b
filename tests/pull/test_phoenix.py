"""Phoenix: what comes out is what went in, as far as it keeps it (answers of a real server)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.pull.conftest import DATA, PULL, Answer, FakeStore, attributes_of, spans_of

from baton.pull import Pulled, Query, Store, pull
from baton.pull.phoenix import derived, traces

SENT = [PULL / "sent_to_phoenix.json", DATA / "otel" / "a2a" / "unreachable.json"]
TRACE = "c6e635b5fbc4ff3a4391052234a906e9"
SESSION = "01a1fda6-5624-75c7-8b47-9a0f74e79890"


def pulled(store: FakeStore, out: Path, query: Query | None = None, page: int = 1) -> Pulled:
    async def run() -> Pulled:
        client = Store(store.url)
        try:
            found = traces(client, query or Query(), project="desk", page=page)
            return await pull(found, out)
        finally:
            await client.close()

    return asyncio.run(run())


def sent() -> dict[str, Any]:
    return {id_: span for path in SENT for id_, span in spans_of(path).items()}


def test_every_page_is_fetched_and_every_trace_is_one_line(
    phoenix: FakeStore, tmp_path: Path
) -> None:
    assert pulled(phoenix, tmp_path / "t.jsonl") == Pulled(traces=2, spans=12)
    lines = (tmp_path / "t.jsonl").read_text().splitlines()
    ids = [{span["traceId"] for span in _spans(json.loads(line))} for line in lines]
    assert ids == [{TRACE}, {"17021e5e4df11af509c40d2a0a54c5de"}]


def test_spans_keep_their_names_parents_times_and_status(
    phoenix: FakeStore, tmp_path: Path
) -> None:
    pulled(phoenix, tmp_path / "t.jsonl")
    found = spans_of(tmp_path / "t.jsonl")
    assert found.keys() == sent().keys()
    for id_, span in sent().items():
        for key in ("traceId", "parentSpanId", "name"):
            assert found[id_].get(key) == span.get(key)
        for key in ("startTimeUnixNano", "endTimeUnixNano"):  # kept to the microsecond
            assert abs(int(found[id_][key]) - int(span[key])) < 2000
        assert found[id_].get("status", {}).get("code", 0) == span["status"].get("code", 0)


def test_attributes_and_events_are_what_was_sent(phoenix: FakeStore, tmp_path: Path) -> None:
    pulled(phoenix, tmp_path / "t.jsonl")
    found = spans_of(tmp_path / "t.jsonl")
    for id_, span in sent().items():
        got = attributes_of(found[id_])
        for key, value in attributes_of(span).items():
            if key == "metadata":
                assert json.loads(got[key]) == json.loads(value)
            elif value != []:
                assert got[key] == value, key
        events = [each["name"] for each in found[id_].get("events", ())]
        assert events == [each["name"] for each in span.get("events", ())]


def test_nothing_is_added_to_spans_of_the_opentelemetry_conventions(
    phoenix: FakeStore, tmp_path: Path
) -> None:
    pulled(phoenix, tmp_path / "t.jsonl")
    found = spans_of(tmp_path / "t.jsonl")
    for id_, span in spans_of(SENT[1]).items():
        assert attributes_of(found[id_]).keys() <= attributes_of(span).keys()


def test_openinference_attributes_of_an_instrumentation_stay() -> None:
    made = {"openinference.span.kind", "session.id", "llm.model_name"}
    said = {"gen_ai.operation.name", "gen_ai.conversation.id", "gen_ai.request.model"}
    assert derived(made | said) == made
    assert derived(made | said | {"agent.name"}) == frozenset()
    assert derived(made | said - {"gen_ai.request.model"}) == frozenset()
    assert derived(made) == frozenset()


def test_metadata_is_one_text_again(phoenix: FakeStore, tmp_path: Path) -> None:
    pulled(phoenix, tmp_path / "t.jsonl")
    texts = [
        attributes_of(span).get("metadata") for span in spans_of(tmp_path / "t.jsonl").values()
    ]
    limits = {"tokens": 500, "strict": True}
    found = next(json.loads(text) for text in texts if text)
    assert found == {"team": "rates", "steps": ["find", "write"], "limits": limits}


def test_one_trace_is_fetched_by_its_id(phoenix: FakeStore, baton: Baton, tmp_path: Path) -> None:
    done = baton("pull", "phoenix", "--url", phoenix.url, "--project", "desk", "--trace", TRACE)
    assert (done.code, done.out) == (0, "")
    assert done.err == "1 trace (5 spans) in traces.jsonl\n"
    assert len(spans_of(tmp_path / "traces.jsonl")) == 5


def test_a_session_is_asked_for_by_its_name(phoenix: FakeStore, tmp_path: Path) -> None:
    found = pulled(phoenix, tmp_path / "t.jsonl", Query(session=SESSION), page=1000)
    assert found == Pulled(traces=1, spans=5)


def test_a_time_range_without_traces_writes_nothing_and_does_not_pass(
    phoenix: FakeStore, baton: Baton, tmp_path: Path
) -> None:
    when = ("--since", "2026-01-01", "--until", "2026-01-02T11:30+02:00")
    done = baton("pull", "phoenix", "--url", phoenix.url, "--project", "desk", *when)
    assert done.code == 3
    assert done.err == f"baton: {phoenix.url} has no such trace; nothing was written\n"
    assert not (tmp_path / "traces.jsonl").exists()


def test_a_trace_that_is_missing_is_named(phoenix: FakeStore, baton: Baton) -> None:
    done = baton("pull", "phoenix", "--url", phoenix.url, "--project", "desk", "--trace", "0" * 32)
    assert done.code == 3
    assert f"project `desk` of {phoenix.url} has no trace {'0' * 32}" in done.err


def test_a_project_that_is_missing_is_a_mistake_of_the_caller(
    phoenix: FakeStore, baton: Baton
) -> None:
    done = baton("pull", "phoenix", "--url", phoenix.url, "--project", "nope")
    assert done.code == 2
    assert "404: Project with name nope not found; is --project right?" in done.err


def test_a_server_that_lists_no_traces_says_what_still_works(
    phoenix: FakeStore, baton: Baton
) -> None:
    phoenix.first = [Answer("<!DOCTYPE html>", media="text/html")]
    done = baton("pull", "phoenix", "--url", phoenix.url)
    assert done.code == 3
    assert "lists no traces" in done.err
    assert "--trace" in done.err


def test_the_key_goes_with_every_request_and_into_no_message(
    phoenix: FakeStore, baton: Baton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHOENIX_API_KEY", "px-very-secret")
    phoenix.first = [Answer({"detail": "Invalid token px-very-secret"}, 401)]
    done = baton("pull", "phoenix", "--url", phoenix.url)
    assert phoenix.asked[0].headers["authorization"] == "Bearer px-very-secret"
    assert done.code == 2
    assert "answered 401: Invalid token ***; check PHOENIX_API_KEY" in done.err
    assert "very-secret" not in done.err + done.out


def _spans(line: Any) -> list[Any]:
    return [
        span for each in line["resourceSpans"] for s in each["scopeSpans"] for span in s["spans"]
    ]
