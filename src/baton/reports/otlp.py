"""The report ``otlp``: results as OpenTelemetry events, as JSON lines."""

from __future__ import annotations

from typing import IO

from baton.plugins import Entry
from baton.store import StoredEvaluation


def write_otlp(evaluation: StoredEvaluation, out: IO[str]) -> None:
    """Write events of the results, and spans of the traces that were not read from spans."""
    from baton.export.run import write_json_lines  # loads protobuf

    write_json_lines(evaluation, out)


REPORT = Entry("otlp", write_otlp, "results as OpenTelemetry events, to a file or an endpoint")
