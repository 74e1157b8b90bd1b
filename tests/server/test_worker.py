"""What arrives becomes the record that a file with the same spans gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from baton.model import Trace
from baton.server.conversations import Bounds, Recorded, record_of
from baton.server.rules import read_rules
from baton.server.schema import conversation
from baton.server.schema import score as score_rows
from baton.server.scoring import score
from baton.server.store import Store
from baton.server.worker import Worker

from .otlp import body_of, of_file, parts_of, recordings, send, shuffled, work

AT = 1_790_000_000.0
QUIET = Bounds(quiet=1.0)


def stored(store: Store, project: int) -> dict[str, Trace]:
    query = select(conversation.c.id).where(conversation.c.project == project)
    with store.read() as connection:
        ids = list(connection.execute(query.order_by(conversation.c.id)).scalars())
    return {trace.id: trace for trace in (record_of(store, project, id_) for id_ in ids)}


RULES = read_rules().for_project("")


def scored(
    project: int, record: Trace, told: Recorded | None, state: str
) -> tuple[list[Any], list[str]]:
    assert state == "complete"
    made = score(record, RULES, now=AT)
    return made.rows, made.waiting


def verdicts(rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    names = ("rule", "evaluator", "unit", "subject", "status", "value", "reason", "evidence")
    return sorted(([row[name] for name in names] for row in rows), key=repr)


def stored_verdicts(store: Store, project: int) -> list[Any]:
    query = select(score_rows).where(score_rows.c.project == project)
    with store.read() as connection:
        return verdicts(dict(row) for row in connection.execute(query).mappings())


def check_recordings(store: Store, files: list[Path]) -> None:
    worker = Worker(store, QUIET, scored)
    for number, file in enumerate(files):
        parts = parts_of(file)
        whole = store.project(f"{number} whole", create=True)
        spread = store.project(f"{number} spread", create=True)
        send(store, whole, [body_of(parts)], AT)
        send(store, spread, shuffled(parts, 40, number), AT)
    work(worker, AT + 10)
    for number, file in enumerate(files):
        expected = {trace.id: trace for trace in of_file(file)}
        for how in ("whole", "spread"):
            project = store.project(f"{number} {how}")
            assert stored(store, project) == expected, f"{file} {how}"
            at_home = [row for each in of_file(file) for row in score(each, RULES).rows]
            assert stored_verdicts(store, project) == verdicts(at_home), f"{file} {how}"


def test_one_request_and_forty_give_the_record_of_the_file(store: Store) -> None:
    check_recordings(store, recordings()[::25])


def test_events_of_claude_code_join_the_conversation_they_name(store: Store) -> None:
    files = [file for file in recordings() if file.suffix == ".jsonl"]
    assert files
    check_recordings(store, files)


@pytest.mark.heavy
def test_every_recording_gives_the_record_of_its_file(store: Store) -> None:
    check_recordings(store, recordings())
