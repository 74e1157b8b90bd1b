"""What arrives becomes the record that a file with the same spans gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from baton.model import Trace
from baton.server.conversations import Bounds, record_of
from baton.server.schema import conversation
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


def check_recordings(store: Store, files: list[Path]) -> None:
    worker = Worker(store, QUIET)
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
            assert stored(store, store.project(f"{number} {how}")) == expected, f"{file} {how}"


def test_one_request_and_forty_give_the_record_of_the_file(store: Store) -> None:
    check_recordings(store, recordings()[::25])


@pytest.mark.heavy
def test_every_recording_gives_the_record_of_its_file(store: Store) -> None:
    check_recordings(store, recordings())
