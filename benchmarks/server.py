"""How many spans a second a server takes and has stored: ``python benchmarks/server.py``.

The sender is on the same machine and prepares its requests beforehand. Each row is one server with
an empty store on the disk of the temporary folder. An answer counts when it is 200, and that is
after the commit.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_TRACE = b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"
_WORDS = ["order ", "refund ", "customer ", "policy ", "ticket ", "agent ", "amount ", "reason "]
_TEXT = 1900
"""Characters of content in a span, which makes 2.2 kB of it."""


class Row(NamedTuple):
    """What is measured: spans a request, packed or not, and how many requests."""

    name: str
    spans: int
    packed: bool
    requests: int


ROWS = (
    Row("480 spans a request, gzip", 480, packed=True, requests=150),
    Row("480 spans a request", 480, packed=False, requests=150),
    Row("24 spans a request, gzip", 24, packed=True, requests=2000),
    Row("24 spans a request", 24, packed=False, requests=2000),
)


def request(spans: int) -> bytes:
    """Return an export of spans of 2.2 kB, of one trace."""
    chosen = random.Random(spans)
    export = ExportTraceServiceRequest()
    group = export.resource_spans.add()
    scope = group.scope_spans.add()
    for number in range(1, spans + 1):
        span = scope.spans.add(name=f"chat gpt-5 {number}")
        span.trace_id, span.span_id = _TRACE, number.to_bytes(8, "big")
        span.parent_span_id = (number // 2).to_bytes(8, "big") if number > 1 else b""
        span.start_time_unix_nano = 1_760_000_000_000_000_000 + number * 1_000_000
        span.end_time_unix_nano = span.start_time_unix_nano + chosen.randrange(1_000_000)
        words = " ".join(chosen.choice(_WORDS) + str(chosen.randrange(999)) for _ in range(250))
        for key, text in (
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.agent.name", chosen.choice(("desk", "billing", "shipping"))),
            ("gen_ai.conversation.id", f"conversation {number % 7}"),
            ("gen_ai.input.messages", words[:_TEXT]),
        ):
            item = span.attributes.add(key=key)
            item.value.string_value = text
    return export.SerializeToString()


def requests(row: Row) -> list[bytes]:
    """Return the bodies of a row, each of another trace."""
    body = request(row.spans)
    made = [body.replace(_TRACE, os.urandom(16)) for _ in range(row.requests)]
    return [gzip.compress(each, 6) for each in made] if row.packed else made


def send(port: int, bodies: Sequence[bytes], *, packed: bool, connections: int) -> int:
    """Send bodies over some connections; returns how many were accepted."""

    def share(start: int) -> int:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Content-Type": "application/x-protobuf"}
        if packed:
            headers["Content-Encoding"] = "gzip"
        accepted = 0
        for body in bodies[start::connections]:
            connection.request("POST", "/v1/traces", body, headers)
            response = connection.getresponse()
            response.read()
            accepted += response.status == 200
        connection.close()
        return accepted

    with ThreadPoolExecutor(connections) as pool:
        return sum(pool.map(share, range(connections)))


@contextmanager
def server(folder: Path, *options: str) -> Iterator[tuple[int, int]]:
    """Run `baton serve`; yields its port and process id."""
    command = [sys.executable, "-m", "baton", "serve", *options, "--port", "0", "--no-grpc"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr or ():
            if match := re.search(r"listening on http://[^:]+:(\d+)", line):
                yield int(match[1]), process.pid
                break
        else:
            sys.exit("the server did not start")
    finally:
        process.terminate()
        process.wait(30)


def measure(row: Row, options: Sequence[str], connections: int) -> str:
    """Return a line of the table."""
    bodies = requests(row)
    folder = Path(tempfile.mkdtemp(prefix="baton-bench-"))
    try:
        with server(folder, *options) as (port, pid):
            send(port, bodies[:10], packed=row.packed, connections=connections)
            before, started = cpu_seconds(pid), time.perf_counter()
            accepted = send(port, bodies[10:], packed=row.packed, connections=connections)
            seconds = time.perf_counter() - started
            used = cpu_seconds(pid) - before
        if accepted != len(bodies) - 10:
            sys.exit(f"only {accepted} of {len(bodies) - 10} requests were accepted")
    finally:
        shutil.rmtree(folder)
    spans = accepted * row.spans
    return (
        f"| {row.name} | {spans / seconds:,.0f} | {accepted / seconds:,.0f} |"
        f" {used / spans * 1000:.3f} |"
    )


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process used so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--options", default="", help="more options of `baton serve`")
    given = parser.parse_args()
    print(
        "| durable intake | spans/s | requests/s | CPU s a 1,000 spans |\n| --- | --: | --: | --: |"
    )
    for row in ROWS:
        # In a process of its own, as bodies take memory that would stay.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            line = pool.apply(measure, (row, given.options.split(), given.connections))
        print(line, flush=True)


if __name__ == "__main__":
    main()
