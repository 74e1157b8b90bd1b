"""What arrives becomes the record that a file with the same spans gives.

All recordings are sent in ``test_exports``, where they are exported as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import select

from baton.model import Trace
from baton.readers.otlp.span import Span
from baton.readers.otlp.wire.read import body_records
from baton.readers.otlp.wire.streams import Report
from baton.readers.otlp.wire.trace_store import conversation_of, session_of
from baton.server.conversations import Bounds, Recorded, record_of
from baton.server.rule_scoring import score
from baton.server.rules import read_rules
from baton.server.schema import conversation
from baton.server.schema import score as score_rows
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


def check_recordings(store: Store, files: list[Path]) -> list[tuple[str, list[Path]]]:
    """Send recordings whole and spread over requests, and compare what becomes of them.

    Files that share no id share a project: to ask for each one by itself would take most of the
    time. Returns the projects of what was spread, with the files of each.
    """
    worker = Worker(store, QUIET, scored)
    projects = [*apart(files)]
    for number, some in enumerate(projects):
        whole = store.project(f"whole{number}", create=True)
        spread = store.project(f"spread{number}", create=True)
        for place, file in enumerate(some):
            parts = parts_of(file)
            send(store, whole, [body_of(parts)], AT)
            send(store, spread, shuffled(parts, 40, place), AT)
    work(worker, AT + 10)
    for number, some in enumerate(projects):
        traces = [each for file in some for each in of_file(file)]
        at_home = verdicts(row for each in traces for row in score(each, RULES).rows)
        expected = {each.id: each for each in traces}
        assert len(expected) == len(traces)
        for how in ("whole", "spread"):
            project = store.project(f"{how}{number}")
            kept = stored(store, project)
            assert kept.keys() == expected.keys(), f"{how}{number}"
            for id_, each in expected.items():
                assert kept[id_] == each, f"{id_} {how}"
            assert stored_verdicts(store, project) == at_home, f"{how}{number}"
    return [(f"spread{number}", some) for number, some in enumerate(projects)]


def apart(files: Iterable[Path]) -> Iterator[list[Path]]:
    """Yield recordings in lists, of which no two share a trace, a session or another id."""
    lists: list[tuple[list[Path], set[str]]] = []
    for file in files:
        ids: set[str] = set()
        for record in body_records(body_of(parts_of(file)), "json", Report(str(file))):
            links = record.links if isinstance(record, Span) else ()
            named = (
                record.trace_id,
                session_of(record.attributes, record.resource),
                conversation_of(record.attributes),
                *(link.trace_id for link in links),
            )
            ids.update(filter(None, named))
        place = next((one for one in lists if one[1].isdisjoint(ids)), None)
        if place is None:
            place = [], set()
            lists.append(place)
        place[0].append(file)
        place[1].update(ids)
    for some, _ in lists:
        yield some


def test_turns_that_continue_from_an_answer_are_one_conversation(store: Store) -> None:
    """Each turn has its own trace, and only the id of the answer before connects them."""
    check_recordings(store, [each for each in recordings() if each.name == "kept_by_service.json"])


def test_one_request_and_forty_give_the_record_of_the_file(store: Store) -> None:
    check_recordings(store, recordings()[::25])


def test_events_of_claude_code_join_the_conversation_they_name(store: Store) -> None:
    files = [file for file in recordings() if file.suffix == ".jsonl"]
    assert files
    check_recordings(store, files)
