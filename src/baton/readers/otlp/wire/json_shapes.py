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
_NOTHING = Raw()


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
    """One export, or what wraps it: Tempo's ``trace``, Jaeger's ``result``, a request's ``body``.

    ``data`` is an older answer of Jaeger, ``spans`` one trace of it, ``context`` that of a span as
    the SDK prints it. Metrics are known, and not read.
    """

    resource_spans: list[ResourceSpans[S]] | None = None
    batches: list[ResourceSpans[S]] | None = None
    resource_logs: list[ResourceLogs[L]] | None = None
    resource_metrics: Raw = _NOTHING
    trace: Raw = _NOTHING
    result: Raw = _NOTHING
    body: Raw = _NOTHING
    data: Raw = _NOTHING
    spans: Raw = _NOTHING
    context: Raw = _NOTHING

    def wrapped(self) -> list[Raw]:
        """Return the wrapped values; those that only have such a name are none."""
        return [raw for raw in (self.trace, self.result, self.body) if _starts(raw, b"{", b"[")]

    def answer(self) -> Raw | None:
        """Return what a query service answers with."""
        return self.data if _starts(self.data, b"{", b"[") else None

    def jaeger(self) -> bool:
        """Tell whether this is one trace of Jaeger."""
        return _starts(self.spans, b"[")

    def sdk_span(self) -> bool:
        """Tell whether this is a span as the SDK prints it."""
        return _starts(self.context, b"{")

    def known(self) -> bool:
        """Tell whether this is any of the other forms."""
        here = (self.resource_spans, self.batches, self.resource_logs)
        return (
            any(value is not None for value in here)
            or bool(self.wrapped() or self.answer())
            or _starts(self.resource_metrics, b"[")
        )


class JaegerTrace(msgspec.Struct, Generic[S]):
    """One trace of Jaeger."""

    spans: list[S] | None = None
    processes: dict[str, Process] | None = None


def _starts(raw: Raw, *starts: bytes) -> bool:
    return bytes(memoryview(raw)[:1]) in starts


TYPED = msgspec.json.Decoder(Top[WireSpan, WireLog] | list[Top[WireSpan, WireLog]])
RAW = msgspec.json.Decoder(Top[Raw, Raw] | list[Top[Raw, Raw]])
JAEGER_TYPED = msgspec.json.Decoder(JaegerTrace[JaegerSpan] | list[JaegerTrace[JaegerSpan]])
JAEGER_RAW = msgspec.json.Decoder(JaegerTrace[Raw] | list[JaegerTrace[Raw]])
SDK = msgspec.json.Decoder(SdkSpan | list[SdkSpan])
