"""The exporters of OpenTelemetry's SDK send to a server: over HTTP and gRPC, packed.

The store is locked at first, so that the server answers 503 and they have to send again.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from tests.server.test_bad_days import _read
from tests.server.test_process import _serving

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_exporters_repeat_what_a_locked_store_refused(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "server.yaml").write_text("quiet: 0.2 s\n")
    with _serving(tmp_path, "server.yaml") as served:
        if protocol == "grpc":
            # Installed for the heavy tests alone.
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
                OTLPSpanExporter as GrpcExporter,
            )

            port = int(served.line("grpc on port").rpartition(" ")[2])
            exporter: SpanExporter = GrpcExporter(
                f"http://127.0.0.1:{port}", insecure=True, compression=grpc.Compression.Gzip
            )
        else:
            endpoint = f"http://127.0.0.1:{served.client.port}/v1/traces"
            exporter = HttpExporter(endpoint, compression=Compression.Gzip, timeout=60)
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(exporter))
        tracer = provider.get_tracer("tests")
        inbox = tmp_path / ".baton" / "server" / "inbox.db"
        locked = sqlite3.connect(inbox, isolation_level=None, check_same_thread=False)
        locked.execute("BEGIN IMMEDIATE")
        free = threading.Timer(7, lambda: locked.execute("ROLLBACK"))
        free.start()
        said: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent"}
        with tracer.start_as_current_span(
            "a", attributes={**said, "gen_ai.agent.name": "desk"}
        ) as s:
            trace_id = f"{s.get_span_context().trace_id:032x}"
            for number in range(600):
                named = {**said, "gen_ai.agent.name": f"agent {number % 7}"}
                tracer.start_span("b", attributes=named).end()
        provider.shutdown()
        free.join()
        locked.close()
        row = _read(served, trace_id, 601)
        assert (row["spans"], row["runs"]) == (601, 601)
        assert served.end()[0] == 0
