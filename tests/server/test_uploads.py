"""Uploaded recordings become the records that their files give; nothing else is opened."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

import baton
from baton.model import Trace
from baton.readers.trace_paths import load_traces
from baton.server.conversations import Bounds, record_of
from baton.server.inbox import Inbox, entry_of
from baton.server.schema import chunk, conversation, dispatch, trace
from baton.server.store import Store
from baton.server.worker import Worker

from .otlp import DATA, of_file, send, work
from .test_conversations import AT, body, rows, span

FILES = DATA.parent
CLAUDE = FILES / "claude" / "current" / "01_correct_dispatch"
QUIET = Bounds(quiet=1.0)


@pytest.fixture
def worker(store: Store) -> Worker:
    return Worker(store, QUIET)


def upload(store: Store, name: str, content: bytes, at: float = AT) -> None:
    kind = "application/octet-stream"
    Inbox(store).put([entry_of(1, "recording", kind, content, name=name, received=at)])


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def tarred(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def below(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def records(store: Store) -> dict[str, Trace]:
    found = [record_of(store, 1, row["id"]) for row in rows(store, conversation)]
    return {record.id: record for record in found}


def without_place(traces: list[Trace], place: str | None) -> dict[str, Trace]:
    for each in traces:
        each.source.location = place
    return {each.id: each for each in traces}


@pytest.mark.parametrize(
    "file",
    [
        FILES / "strands" / "report_session.json",
        FILES / "strands" / "session_swarm.json",
        *sorted((FILES / "strands").glob("graph_state*")),
    ],
    ids=lambda file: file.name,
)
def test_a_file_gives_the_record_it_gives_at_home(store: Store, worker: Worker, file: Path) -> None:
    upload(store, file.name, file.read_bytes())
    work(worker, AT)
    assert records(store) == without_place(load_traces(file), file.name)
    assert {row["state"] for row in rows(store, conversation)} == {"complete"}
    assert not rows(store, chunk)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_folder_of_claude_is_one_session_with_its_subagents(
    store: Store, worker: Worker, pack: object
) -> None:
    assert callable(pack)
    upload(store, "session.archive", pack(below(CLAUDE)))
    work(worker, AT)
    expected = without_place(load_traces(CLAUDE), "session.archive")
    assert expected
    assert records(store) == expected
    assert len(rows(store, dispatch)) == sum(
        len(turn.dispatches) for each in expected.values() for turn in each.turns
    )


def test_spans_in_a_file_are_kept_like_spans_that_arrive(store: Store, worker: Worker) -> None:
    file = DATA / "google-adk" / "agent_tool_nested_content.json"
    upload(store, file.name, file.read_bytes())
    work(worker, AT + 10)
    assert records(store) == without_place(of_file(file), None)
    assert rows(store, chunk)


def test_a_place_in_an_uploaded_evaluation_is_never_opened(
    store: Store, worker: Worker, tmp_path: Path
) -> None:
    private = tmp_path / "private.json"
    private.write_bytes((FILES / "strands" / "session_swarm.json").read_bytes())
    made = baton.score(private, evaluators=["dispatch_target_known"])
    made.save(tmp_path / "evaluation")
    files = below(tmp_path / "evaluation")
    bodies = next(content for name, content in files.items() if name.endswith("bodies.jsonl"))
    assert str(private).encode() in bodies
    upload(store, "evaluation.zip", zipped(files))
    upload(store, "bodies.jsonl", bodies)
    work(worker, AT)
    assert not rows(store, conversation)
    assert len(Inbox(store).problems(1)) == 2


def test_the_same_session_again_is_a_new_version(store: Store, worker: Worker) -> None:
    file = FILES / "strands" / "session_swarm.json"
    upload(store, file.name, file.read_bytes())
    work(worker, AT)
    upload(store, file.name, file.read_bytes() + b"\n", AT + 100)
    work(worker, AT + 100)
    assert [row["version"] for row in rows(store, conversation)] == [2]


def test_spans_do_not_take_the_place_of_what_a_program_uploaded(
    store: Store, worker: Worker
) -> None:
    file = FILES / "strands" / "session_swarm.json"
    upload(store, file.name, file.read_bytes())
    work(worker, AT)
    (before,) = rows(store, conversation)
    send(store, 1, [body(span(1, 1, agent="other", session__id=before["key"]))], AT + 10)
    work(worker, AT + 20)
    assert rows(store, conversation) == [before]
    assert not [row for row in rows(store, trace) if row["changed"]]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("notes.txt", b"hello", "notes.txt: contains no trace"),
        ("broken.json", b'{"schema_version": 2, "turns": [', "broken.json"),
        ("evil.zip", zipped({"../out.json": b"{}"}), "evil.zip"),
        ("cut.zip", zipped({"a.json": b"{}"})[:30], "cut.zip"),
        ("deep.json", b"[" * 100_000, "deep.json"),
    ],
    ids=["text", "broken", "leads out", "cut", "deep"],
)
def test_what_is_not_a_recording_is_listed_with_the_reason(
    store: Store, worker: Worker, name: str, content: bytes, said: str
) -> None:
    upload(store, name, content)
    upload(store, "fine.json", (FILES / "strands" / "session_swarm.json").read_bytes())
    work(worker, AT)
    (problem,) = Inbox(store).problems(1)
    assert said in problem.error
    assert "baton-upload" not in problem.error
    assert len(rows(store, conversation)) == 1
