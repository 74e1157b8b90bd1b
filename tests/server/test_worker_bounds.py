"""Memory stays bounded, however much one conversation, or all of them, hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import func, select

from baton.server.conversations import BEYOND, record_of
from baton.server.inbox import Inbox, entry_of
from baton.server.schema import conversation
from baton.server.store import Store

from .test_conversations import AT, only

_WORKER = """
import sys
from pathlib import Path
import baton.cli  # sets the garbage collector as the command does
from baton.server.conversations import Bounds
from baton.server.store import open_store
from baton.server.worker import Worker
worker = Worker(open_store(Path(sys.argv[1])), Bounds(quiet=1.0))
now = float(sys.argv[2])
while worker.take_in(now) or worker.read_due(now):
    pass
# `ru_maxrss` would count the process that started this one, too.
status = Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


def peak_of_reading(folder: Path) -> int:
    """Read all there is in its own process; returns its peak of memory in MiB."""
    command = [sys.executable, "-c", _WORKER, str(folder), str(AT + 400)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def put(store: Store, spans: int, traces: int, size: int) -> None:
    """Put spans of agents and models into the inbox, 1,000 a request."""
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    text = "word " * (size // 5)
    for start in range(0, spans, 1000):
        data = TracesData()
        scoped = data.resource_spans.add().scope_spans.add()
        for number in range(start, min(start + 1000, spans)):
            span = scoped.spans.add()
            trace, place = divmod(number, spans // traces)
            span.trace_id = (trace + 1).to_bytes(16, "big")
            span.span_id = (place + 1).to_bytes(8, "big")
            if place:
                span.parent_span_id = (1).to_bytes(8, "big")
            span.start_time_unix_nano = int(AT * 1e9) + place * 1_000_000
            span.end_time_unix_nano = span.start_time_unix_nano + 500_000
            operation = "chat" if place % 5 else "invoke_agent"
            message = f'[{{"role":"user","parts":[{{"type":"text","content":"{number} {text}"}}]}}]'
            for name, value in (
                ("gen_ai.operation.name", operation),
                ("gen_ai.agent.name", f"a{place % 7}"),
                ("gen_ai.input.messages", message),
            ):
                attribute = span.attributes.add()
                attribute.key, attribute.value.string_value = name, value
        body = data.SerializeToString()
        Inbox(store).put([entry_of(1, "traces", "protobuf", body, received=AT)])


@pytest.mark.heavy
def test_a_trace_of_100_000_spans_is_read_within_bounds(store: Store, tmp_path: Path) -> None:
    put(store, 100_000, 1, 400)
    assert peak_of_reading(tmp_path / "server") < 330
    row = only(store)
    assert (row["spans"], row["state"]) == (100_000, "complete")
    assert not record_of(store, 1, row["id"]).dropped


@pytest.mark.heavy
def test_of_a_trace_of_400_mb_a_part_is_read_and_the_rest_is_counted(
    store: Store, tmp_path: Path
) -> None:
    put(store, 20_000, 1, 20_000)
    assert peak_of_reading(tmp_path / "server") < 330
    row = only(store)
    (lost,) = record_of(store, 1, row["id"]).dropped
    assert (lost.what, lost.count + row["spans"]) == (BEYOND, 20_000)


@pytest.mark.heavy
def test_ten_times_the_spans_take_no_more_memory(store: Store, tmp_path: Path) -> None:
    put(store, 7_500, 500, 2_000)
    first = peak_of_reading(tmp_path / "server")
    with store.read() as connection:
        query = select(func.count()).select_from(conversation).where(conversation.c.project == 1)
        assert connection.execute(query).scalar_one() == 500
    put(store, 75_000, 5_000, 2_000)  # 150 MB of texts: what was kept would exceed the bound
    second = peak_of_reading(tmp_path / "server")
    assert second < max(300, 1.2 * first)
