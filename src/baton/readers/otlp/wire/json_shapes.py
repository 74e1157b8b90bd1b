"""What spans stand in, in JSON: exports, answers of Tempo and of Jaeger."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from .jaeger import JaegerSpan, Process
from .otlp_json import Named, Wire, WireLog, WireSpan
from .sdk_json import SdkSpan

S = TypeVar("S")
L = TypeVar("L")
Raw = msgspec.Raw


class ScopeSpans(Wire, Generic[S]):
    """Spans of one scope; the scope was called instrumentation library once."""

    scope: Named | None = None
    instrumentation_library: Named | None = None
    spans: list[S] | None = None


class ResourceSpans(Wire, Generic[S]):
    """Spans of one resource."""

    resource: Named | None = None
    scope_spans: list[ScopeSpans[S]] | None = None
    instrumentation_library_spans: list[ScopeSpans[S]] | None = None


class ScopeLogs(Wire, Generic[L]):
    """Log records of one scope."""

    log_records: list[L] | None = None


class ResourceLogs(Wire, Generic[L]):
    """Log records of one resource."""

    resource: Named | None = None
    scope_logs: list[ScopeLogs[L]] | None = None
    instrumentation_library_logs: list[ScopeLogs[L]] | None = None


class Top(Wire, Generic[S, L]):
    """One export, or what wraps it: ``trace`` of Tempo, ``body`` of a recorded request.

    ``data`` is an answer of Jaeger, ``spans`` one trace of it, ``context`` that of a span as
    the SDK prints it. Metrics are known, and not read.
    """

    resource_spans: list[ResourceSpans[S]] | None = None
    batches: list[ResourceSpans[S]] | None = None
    resource_logs: list[ResourceLogs[L]] | None = None
    resource_metrics: Raw | None = None
    trace: Raw | None = None
    body: Raw | None = None
    data: Raw | None = None
    spans: Raw | None = None
    context: Raw | None = None

    def known(self) -> bool:
        """Tell whether this is anything; values that only look like a wrapping are forgotten."""
        self.trace, self.body = _container(self.trace), _container(self.body)
        self.data = _container(self.data)
        return any(
            value is not None
            for value in (
                self.resource_spans, self.batches, self.resource_logs, self.resource_metrics,
                self.trace, self.body, self.data,
            )
        )  # fmt: skip


class JaegerTrace(msgspec.Struct, Generic[S]):
    """One trace of Jaeger."""

    spans: list[S] | None = None
    processes: dict[str, Process] | None = None


def _container(raw: Raw | None) -> Raw | None:
    return raw if raw is not None and bytes(memoryview(raw)[:1]) in (b"{", b"[") else None


TYPED = msgspec.json.Decoder(Top[WireSpan, WireLog] | list[Top[WireSpan, WireLog]])
RAW = msgspec.json.Decoder(Top[Raw, Raw] | list[Top[Raw, Raw]])
JAEGER_TYPED = msgspec.json.Decoder(JaegerTrace[JaegerSpan] | list[JaegerTrace[JaegerSpan]])
JAEGER_RAW = msgspec.json.Decoder(JaegerTrace[Raw] | list[JaegerTrace[Raw]])
SDK = msgspec.json.Decoder(SdkSpan | list[SdkSpan])
