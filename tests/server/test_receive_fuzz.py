"""Broken bodies: an answer for each, none of them 500, and the server continues."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard
from google.protobuf.json_format import Parse, ParseError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sqlalchemy import select

from baton.server.content import cleaner_of
from baton.server.inbox import Inbox
from baton.server.otlp_bodies import Kind, NotOtlp, TooLarge, read_export, unpack
from baton.server.schema import trace
from baton.server.settings import Settings
from baton.server.store import open_store

from .sending import JSON, PROTOBUF, Client, logs, spans
from .test_process import _serving, _until

DATA = Path(__file__).parent.parent / "data" / "otel"
SHARE = float(os.environ.get("BATON_FUZZ_SHARE", "1"))


@cache
def _seeds() -> list[tuple[str, bytes]]:
    """Return real exports, as JSON and as protobuf; reading them takes seconds."""
    return list(_exports())


def _exports() -> Iterator[tuple[str, bytes]]:
    yield "protobuf", spans(5).SerializeToString()
    yield "protobuf", logs(5).SerializeToString()
    for file in sorted(DATA.rglob("*.json*")):
        text = file.read_bytes()
        lines = text.splitlines()[:2] if file.suffix == ".jsonl" else [text]
        for line in lines:
            if line.startswith(b"{") and b'"resourceSpans"' in line and len(line) < 100_000:
                yield "json", line
                try:
                    yield "protobuf", Parse(line, ExportTraceServiceRequest()).SerializeToString()
                except (ParseError, ValueError):
                    continue  # ids as hex digits are no base64 of an even length


def _broken(chosen: random.Random, body: bytes) -> bytes:
    data = bytearray(body)
    for _ in range(chosen.choice((1, 1, 2, 5, 20))):
        at = chosen.randrange(len(data) + 1)
        what = chosen.randrange(7)
        if what == 0:
            data[at : at + chosen.randrange(40)] = b""
        elif what == 1:
            data[at:at] = chosen.randbytes(chosen.randrange(9))
        elif what == 2 and at < len(data):
            data[at] ^= 1 << chosen.randrange(8)
        elif what == 3:
            data[at:at] = data[at : at + chosen.randrange(300)]
        elif what == 4:
            data = data[:at] or bytearray(b"\n")
        elif what == 5:
            data[at:at] = chosen.choice(
                (b"\xff" * 10, b"[" * 500, b"null", b"1e999", b"\x00", b'"')
            )
        elif at < len(data):
            data[at] = chosen.randrange(256)
    return bytes(data)


def _value(chosen: random.Random, depth: int = 0) -> Any:
    """Make plain data that looks like OTLP, and is not."""
    keys = ("resourceSpans", "scopeSpans", "spans", "traceId", "spanId", "attributes", "key",
            "value", "stringValue", "intValue", "arrayValue", "values", "events", "status",
            "resourceLogs", "scopeLogs", "logRecords", "body", "resource", "name", "kvlistValue")  # fmt: skip
    kind = chosen.randrange(9 if depth < 7 else 5)
    if kind < 5:
        return chosen.choice((None, True, -1, 1e308, "", "0" * 32, "text", 2**70, "\x00", "\ud800"))
    if kind < 7:
        return [_value(chosen, depth + 1) for _ in range(chosen.randrange(4))]
    return {chosen.choice(keys): _value(chosen, depth + 1) for _ in range(chosen.randrange(5))}


def _bodies(chosen: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    for _ in range(count):
        if chosen.random() < 0.3:
            value = {"resourceSpans": [_value(chosen)], "resourceLogs": [_value(chosen)]}
            yield "json", json.dumps(value).encode("utf-8", "surrogatepass")
        else:
            form, body = chosen.choice(_seeds())
            yield form, _broken(chosen, body)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(content="none"), Settings(content="hashed", redact=["email"])],
    ids=["keep", "none", "hashed"],
)
@pytest.mark.parametrize("kind", ["traces", "logs"])
def test_a_broken_body_is_read_in_part_or_refused_with_a_reason(
    settings: Settings, kind: Kind
) -> None:
    chosen = random.Random(f"{kind} {settings.content}")
    cleaner = cleaner_of(settings)
    outcomes: Counter[str] = Counter()
    for form, body in _bodies(chosen, int(400 * SHARE)):
        try:
            export = read_export(kind, form, body, 1000, cleaner)  # type: ignore[arg-type]
        except NotOtlp as error:
            outcomes["refused" if str(error) else "refused without a reason"] += 1
            continue
        outcomes["kept"] += 1
        assert (export.rejected == 0) == (export.reason == "")
        if export.body:
            # What is kept is whole: it is read again without anything to reject.
            again = read_export(kind, form, export.body, 1000)  # type: ignore[arg-type]
            assert (again.records, again.rejected) == (export.records, 0)
    assert outcomes.keys() == {"kept", "refused"}


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_broken_packed_body_is_refused_or_stays_within_its_limit(encoding: str) -> None:
    chosen = random.Random(encoding)
    pack = gzip.compress if encoding == "gzip" else zstandard.compress
    packed = [pack(body) for _, body in _seeds()[:10]] + [pack(bytes(1 << 20))]
    sizes = []
    for _ in range(int(1000 * SHARE)):
        with suppress(NotOtlp, TooLarge):
            sizes.append(len(unpack(_broken(chosen, chosen.choice(packed)), encoding, 100_000)))
    assert max(sizes) <= 100_000


@pytest.mark.heavy
def test_a_server_answers_broken_bodies_in_bounded_memory(tmp_path: Path) -> None:
    """The load is that of eight senders; both processes of the server continue.

    For a minute, and over gRPC as well, it is part of ``make torture``.
    """
    (tmp_path / "server.yaml").write_text("quiet: 0.2 s\n")
    _seeds()  # a server closes connections that wait for them for seconds

    with _serving(tmp_path, "server.yaml") as served:
        reading = _until(served.worker)
        assert served.process.stderr is not None
        # It says of each body why it cannot be read; a full pipe would stop it.
        draining = threading.Thread(target=served.lines.extend, args=(served.process.stderr,))
        draining.start()
        until = time.monotonic() + 10

        def send(seed: int) -> Counter[int]:
            chosen = random.Random(seed)
            outcomes: Counter[int] = Counter()
            client = Client(served.client.port)
            for form, body in _bodies(chosen, 1_000_000):
                if time.monotonic() > until:
                    break
                encoding = chosen.choice(("", "", "gzip", "zstd", "br"))
                packs: dict[str, Any] = {"gzip": gzip.compress, "zstd": zstandard.compress}
                packed: bytes = packs[encoding](body) if encoding in packs else body
                if chosen.random() < 0.1:
                    packed = _broken(chosen, packed)
                path = chosen.choice(("/v1/traces", "/v1/logs", "/v1/metrics"))
                kind = chosen.choice(
                    (PROTOBUF if form == "protobuf" else JSON, PROTOBUF, JSON, "x/y")
                )
                headers = {"Content_Encoding": encoding} if encoding else {}
                outcomes[client.post(path, packed, kind, **headers).status] += 1
            client.close()
            return outcomes

        with ThreadPoolExecutor(8) as pool:
            outcomes = sum(pool.map(send, range(8)), Counter())
        after = spans(trace=(1 << 127) + 1).SerializeToString()
        assert served.client.post("/v1/traces", after).status == 200
        assert served.worker() == reading, "the reading process ended"
        for pid in (served.process.pid, reading):
            status = Path(f"/proc/{pid}/status").read_text()
            peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]
            assert peak < 300 << 10, f"{peak} kB"
        store = open_store(tmp_path / ".baton" / "server")
        try:
            _until(lambda: not Inbox(store).depth().waiting, 120)
            known = select(trace.c.spans).where(trace.c.trace_id == f"{(1 << 127) + 1:032x}")
            with store.read() as connection:
                every = connection.execution_options(every_project=True)
                assert every.execute(known).scalar_one() == 3
        finally:
            store.close()
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(10) == 0
        draining.join()
        assert not [line for line in served.lines if "Traceback" in line]
    assert set(outcomes) <= {200, 400, 413, 415}
    assert outcomes[200] > 50
    assert outcomes[400] > 50
