"""Writes the recordings of functions that MLflow's decorator traces, in whichever version is here.

    python record_functions.py FOLDER

``manual_*.json`` are spans as MLflow 3.17 exports them by OTLP, ``functions_*.json`` what
``Trace.to_json()`` of this version gives. Needs mlflow 2.14 or later, with the OpenTelemetry of its
day (2.14 and 3.0 run with opentelemetry-sdk 1.29); for ``manual_*`` also its OTLP exporter over
HTTP. Ids and times are new each time. No model is asked.
"""

from __future__ import annotations

import base64
import gzip
import http.server
import json
import os
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

QUESTION = "Is invoice INV-7 paid?"
PAUSE = 0.02


def programs(mlflow):
    """Return greeters by scenario, whose agents and tools are functions that are traced."""

    def agent(name, work):
        return mlflow.trace(work, name=name, span_type="AGENT")

    def tool(name, work):
        return mlflow.trace(work, name=name, span_type="TOOL")

    def paused(value):
        time.sleep(PAUSE)
        return value

    get_invoice = tool("get_invoice", lambda number: f"{number}: paid")

    def nested():
        def ledger(input):
            get_invoice("INV-7")
            return paused("paid")

        ask_ledger = tool("ask_ledger", agent("ledger", ledger))

        def billing(input):
            ask_ledger("Status of INV-7?")
            return paused("INV-7 is paid.")

        ask_billing = tool("ask_billing", agent("billing", billing))

        def greeter(question):
            ask_billing("Is INV-7 paid?")
            return paused("It is paid.")

        return agent("greeter", greeter)

    def parallel():
        billing = agent("billing", lambda input: paused(input and "INV-7 is paid."))
        ledger = agent("ledger", lambda input: paused(input and "12"))
        ask_billing, ask_ledger = tool("ask_billing", billing), tool("ask_ledger", ledger)

        def greeter(question):
            ask_billing("Is INV-7 paid?")
            ask_ledger("Balance?")
            return paused("Paid, and 12.")

        return agent("greeter", greeter)

    return {"nested": nested(), "parallel": parallel()}


def kept(mlflow):
    """Return the last trace as MLflow keeps it, without what only this machine has."""
    if hasattr(mlflow, "get_last_active_trace_id"):
        if hasattr(mlflow, "flush_trace_async_logging"):
            mlflow.flush_trace_async_logging()
        trace = mlflow.get_trace(mlflow.get_last_active_trace_id())
    else:
        trace = mlflow.get_last_active_trace()
    plain = json.loads(trace.to_json())
    info = plain["info"]
    info["tags"] = {"mlflow.traceName": info["tags"]["mlflow.traceName"]}
    for name in ("trace_metadata", "request_metadata"):
        if name in info:
            own = ("mlflow.trace_schema.version", "mlflow.traceInputs", "mlflow.traceOutputs")
            info[name] = {key: text for key, text in info[name].items() if key in own}
    return plain


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes spans as protobuf, and keeps them as OTLP's JSON."""

    documents: ClassVar[list] = []

    def do_POST(self):
        from google.protobuf.json_format import MessageToDict
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        plain = MessageToDict(
            ExportTraceServiceRequest.FromString(body), use_integers_for_enums=True
        )
        for resource in plain["resourceSpans"]:
            resource["resource"] = {"attributes": []}  # the machine and its user
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    for name in ("traceId", "spanId", "parentSpanId"):
                        if name in span:
                            span[name] = base64.b64decode(span[name]).hex()
        self.documents.append(plain)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Print nothing."""


def exported(folder):
    """Write what MLflow sends to a collector: one document for each scenario."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/v1/traces"
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = address
    os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
    import mlflow
    from opentelemetry import trace

    for name, greeter in programs(mlflow).items():
        Collector.documents.clear()
        greeter(QUESTION)
        if hasattr(mlflow, "flush_trace_async_logging"):
            mlflow.flush_trace_async_logging()
        provider = trace.get_tracer_provider()
        if hasattr(provider, "force_flush"):
            provider.force_flush()
        deadline = time.monotonic() + 10
        while not Collector.documents and time.monotonic() < deadline:
            time.sleep(0.1)
        spans = [
            span
            for document in Collector.documents
            for resource in document["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]
        document = Collector.documents[0]
        document["resourceSpans"][0]["scopeSpans"][0]["spans"] = spans
        document["resourceSpans"] = document["resourceSpans"][:1]
        write(folder / f"manual_{name}.json", document)
    server.shutdown()


def write(file, plain):
    """Write a recording as JSON."""
    file.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


def main():
    """Write the recordings into the folder that is named."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if sys.argv[2:] == ["--otlp"]:
        exported(folder)
        return
    import mlflow

    form = "_".join(version("mlflow-skinny").split(".")[:2])
    with tempfile.TemporaryDirectory() as store:
        # Folders of files are no longer written by the newest versions, and the smallest package
        # of the older ones has no database.
        has_database = find_spec("sqlalchemy") is not None
        mlflow.set_tracking_uri(f"sqlite:///{store}/kept.db" if has_database else f"file:{store}")
        mlflow.set_experiment("recordings")
        for name, greeter in programs(mlflow).items():
            greeter(QUESTION)
            write(folder / f"functions_{name}_{form}.json", kept(mlflow))


if __name__ == "__main__":
    main()
