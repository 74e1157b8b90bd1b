"""Recordings as requests: in one, or shuffled over many."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from baton.model import Trace
from baton.readers.trace_paths import load_traces
from baton.server.inbox import Inbox, entry_of
from baton.server.store import Store
from baton.server.worker import Worker

DATA = Path(__file__).parents[1] / "data" / "otel"
CAPTURES = Path(__file__).parents[2].parent / "shared" / "captures" / "otel"

Part = tuple[str, dict[str, Any]]
"""`resourceSpans` or `resourceLogs`, and one of them with a single record."""


def recordings() -> list[Path]:
    """Return the recordings that are files of OTLP exports."""
    files = [*DATA.glob("*/*.json"), *CAPTURES.glob("*/*.json")]
    files += DATA.parent.glob("claude/*/*/otlp*.jsonl")
    return sorted(file for file in files if file.name != "truth.json" and _is_export(file))


def _is_export(file: Path) -> bool:
    return (
        file.read_bytes()[:200]
        .lstrip()
        .startswith((b'{"resource', b'{\n  "resource', b'{"path": "/v1/'))
    )


def parts_of(file: Path) -> list[Part]:
    """Take a recording apart: a part for each span and log record, with its resource and scope."""
    text = file.read_text()
    documents = text.splitlines() if file.suffix == ".jsonl" else [text]
    parts: list[Part] = []
    for written in map(json.loads, documents):
        document = written.get("body", written)  # some tools write a request with its path
        parts += _parts(document, "Spans", "spans")
        parts += _parts(document, "Logs", "logRecords")
    return parts


def _parts(document: dict[str, Any], kind: str, records: str) -> Iterator[Part]:
    for group in document.get(f"resource{kind}", ()):
        for scoped in group.get(f"scope{kind}", ()):
            for record in scoped.get(records, ()):
                one = {**scoped, records: [record]}
                yield f"resource{kind}", {**group, f"scope{kind}": [one]}


def body_of(parts: Sequence[Part]) -> bytes:
    """Put parts into one export."""
    document: dict[str, list[Any]] = {}
    for key, group in parts:
        document.setdefault(key, []).append(group)
    return json.dumps(document).encode()


def shuffled(parts: Sequence[Part], count: int, seed: int) -> list[bytes]:
    """Spread parts over exports in random order; every fifth comes twice."""
    order = random.Random(seed)
    listed = [*parts, *(part for part in parts if order.random() < 0.2)]
    order.shuffle(listed)
    bodies: list[list[Part]] = [[] for _ in range(count)]
    for part in listed:
        order.choice(bodies).append(part)
    return [body_of(some) for some in bodies if some]


def send(
    store: Store, project: int, bodies: Sequence[bytes], at: float, form: str = "json"
) -> None:
    """Put bodies into the inbox, received one after the other from ``at`` on."""
    entries = [
        entry_of(project, "traces", form, body, received=at + 0.01 * number)
        for number, body in enumerate(bodies)
    ]
    Inbox(store).put(entries)


def work(worker: Worker, now: float) -> None:
    """Do all that is to do at a moment."""
    while worker.take_in(now):
        pass
    while worker.read_due(now):
        pass


def of_file(file: Path) -> list[Trace]:
    """Return the traces of a file, without its place."""
    traces = load_traces(file)
    for each in traces:
        each.source.location = None
    return traces
