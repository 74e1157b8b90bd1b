"""Conversations of a server leave it as they came: spans, or records if there are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.cli.app import main
from baton.export.received_otlp import encode_received
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.wire.read import body_records
from baton.readers.otlp.wire.streams import Report
from baton.server.bodies import day_of
from baton.server.conversations import Bounds
from baton.server.inbox import Inbox, entry_of
from baton.server.store import Store
from baton.server.worker import Worker
from baton.session.server_rows import Records
from baton.testing.build import delegate, run, trace, turn

from .otlp import body_of, of_file, parts_of, recordings, send, work
from .seeding import add_conversation
from .serving import api
from .test_worker import AT, QUIET, check_recordings, stored


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BATON_API_KEY", raising=False)


def address(url: str, rest: str = "") -> str:
    return url.replace("http://", "server://") + rest


def check_exports(store: Store, files: list[Path]) -> None:
    """Check what becomes of recordings that arrive, and export those that came in many parts."""
    projects = check_recordings(store, files)
    with api(store) as url:
        for number, (project, some) in enumerate(projects):
            out = Path(f"{number}.jsonl")
            assert main(["export", address(url, f"/{project}"), "-o", str(out)]) == 0
            found = {each.id: each for each in of_file(out)}
            kept = stored(store, store.project(project))
            assert found.keys() == kept.keys(), some
            for id_, each in kept.items():  # as in the files, by the check before
                assert found[id_] == each, some


def test_what_came_over_many_requests_is_exported_as_a_file_that_gives_the_same_record(
    store: Store,
) -> None:
    check_exports(store, recordings()[::30])


@pytest.mark.heavy
@pytest.mark.parametrize("part", range(4))  # all in one take minutes on a busy machine
def test_every_recording_gives_the_record_of_its_file_and_is_exported_as_it_came(
    store: Store, part: int
) -> None:
    check_exports(store, recordings()[part::4])


@pytest.mark.heavy
def test_postgresql_exports_the_same(postgres_store: Store) -> None:
    check_exports(postgres_store, recordings()[::30])


@pytest.mark.parametrize("file", recordings()[::40], ids=lambda file: file.stem)
def test_spans_and_log_records_are_written_as_they_were_read(file: Path) -> None:
    came = list(body_records(body_of(parts_of(file)), "json", Report("x")))
    spans = [each for each in came if isinstance(each, Span)]
    logs = [each for each in came if isinstance(each, Event)]
    again = list(body_records(encode_received(spans, logs), "json", Report("x")))
    assert sorted(map(repr, again)) == sorted(map(repr, came))


def test_attributes_of_every_kind_come_back(store: Store) -> None:
    values = {
        "text": {"stringValue": ""},
        "int": {"intValue": "-9223372036854775808"},
        "float": {"doubleValue": 2.0},
        "not a number": {"doubleValue": "-Infinity"},
        "yes": {"boolValue": True},
        "nothing": {},
        "list": {"arrayValue": {"values": [{"intValue": "1"}, {}, {"arrayValue": {}}]}},
        "object": {"kvlistValue": {"values": [{"key": "a", "value": {"kvlistValue": {}}}]}},
    }
    attributes = [{"key": key, "value": value} for key, value in values.items()]
    span = {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "2",
        "name": "n",
        "startTimeUnixNano": "1790000000123456789",
        "attributes": attributes,
        "status": {"code": 2, "message": "m"},
        "links": [{"traceId": "0" * 31 + "3", "spanId": "0" * 15 + "4"}],
        "events": [{"name": "e", "timeUnixNano": "1790000000123456790", "attributes": attributes}],
    }
    group = {
        "resource": {"attributes": attributes},
        "scopeSpans": [{"scope": {"name": "s"}, "spans": [span]}],
    }
    body = json.dumps({"resourceSpans": [group]}).encode()
    (came,) = body_records(body, "json", Report("x"))
    assert isinstance(came, Span)
    assert list(body_records(encode_received([came], []), "json", Report("x"))) == [came]


def test_conversations_that_share_a_trace_are_exported_each_by_itself(store: Store) -> None:
    def span(number: int, session: str, agent: str) -> dict[str, object]:
        values = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "session.id": session,
        }
        return {
            "traceId": "a" * 32,
            "spanId": f"{number:016x}",
            "name": f"invoke_agent {agent}",
            "startTimeUnixNano": str(int(AT * 1e9) + number),
            "endTimeUnixNano": str(int(AT * 1e9) + number + 5),
            "attributes": [
                {"key": key, "value": {"stringValue": value}} for key, value in values.items()
            ],
        }

    spans = [span(1, "one", "desk"), span(2, "two", "billing")]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    send(store, 1, [body], AT)
    work(Worker(store, QUIET), AT + 10)
    kept = stored(store, 1)
    assert sorted(kept) == ["one", "two"]
    with api(store) as url:
        for name in ("one", "two"):
            place = address(url, f"?conversation={name}")
            assert main(["export", place, "-o", f"{name}.jsonl"]) == 0
            assert of_file(Path(f"{name}.jsonl")) == [kept[name]]
        assert main(["export", address(url), "-o", "both.json"]) == 0
    assert {each.id: each for each in of_file(Path("both.json"))} == kept


def test_uploads_are_exported_by_their_records(store: Store) -> None:
    desk = trace(
        turn("Hi.", run("desk", delegate("refunds", "Go.", result="Done.")), run("refunds")),
        id="up",
    )
    add_conversation(store, desk)
    with api(store) as url:
        assert main(["export", address(url), "-o", "up.jsonl"]) == 0
    assert of_file(Path("up.jsonl")) == [desk]


def test_where_spans_were_deleted_the_record_stands_for_them(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    file = recordings()[0]
    send(store, 1, [body_of(parts_of(file))], AT)
    worker = Worker(store, Bounds(quiet=1.0))
    while worker.take_in(AT):
        pass
    while worker.read_due(AT + 86_400):
        pass
    kept = stored(store, 1)
    store.bodies.drop(day_of(AT))
    with api(store) as url:
        assert main(["export", address(url), "-o", "x.jsonl"]) == 0
        assert {each.id: each for each in of_file(Path("x.jsonl"))} == kept
        store.bodies.drop(day_of(AT + 86_400))
        capsys.readouterr()
        assert main(["export", address(url), "-o", "y.jsonl"]) == 2
    err = capsys.readouterr().err
    assert "retention deleted them" in err
    assert not Path("y.jsonl").exists()


def test_secrets_in_spans_have_tags_as_in_records(store: Store) -> None:
    secret = "sk-ant-" + "api03-" + "Zx9" * 20
    file = next(each for each in recordings() if b'"stringValue"' in each.read_bytes())
    parts = parts_of(file)
    for _, group in parts:
        group["resource"]["attributes"] += [
            {"key": "k", "value": {"stringValue": secret}},
            {"key": "api_key", "value": {"stringValue": "hunter2abcdefgh"}},
        ]
    Inbox(store).put([entry_of(1, "traces", "json", body_of(parts), received=AT)])
    work(Worker(store, QUIET), AT + 10)
    with api(store) as url:
        items = next(baton.connect(url).pages("/otlp", Records[Any], {})).items
        assert main(["export", address(url), "-o", "x.jsonl"]) == 0
    assert items
    for each in (secret, "hunter2abcdefgh"):
        assert each not in json.dumps(items)
        assert each not in Path("x.jsonl").read_text()


def test_what_takes_no_conversations_of_a_server_says_so(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    with api(store) as url:
        assert main(["export", address(url), "-o", "x.pb"]) == 2
        assert "can only be written to FILE.jsonl or FILE.json" in capsys.readouterr().err
        assert main(["export", address(url), "-o", "x.jsonl", "--only", "results"]) == 2
        assert "it has no evaluations" in capsys.readouterr().err
        assert main(["export", address(url), "-o", "x.jsonl"]) == 2
        assert "nothing to export" in capsys.readouterr().err
