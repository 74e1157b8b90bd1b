"""Recording a program's spans: to a file that ``baton show`` reads, or to a server.

    from baton.otel import record

    record("runs/desk.otlp.jsonl")

`baton record -- python app.py` does the same without a change of the program. Each line is OTLP as
JSON, like those of the file exporter of an OpenTelemetry Collector, so that other tools can read
it, too. ``send()`` instead of ``record`` sends to `baton serve`. Needs
``pip install 'baton-evals[otel]'``.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from baton.formats.otlp_json import any_value, attributes, utf8
from baton.http.credentials import plain_address
from baton.model import InputError
from baton.model.option_spelling import option
from baton.model.visible import exception_line
from baton.plugins.origin import install, requirement

try:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.sdk._logs import LogRecordProcessor
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SimpleSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )

    from baton.providers.instrument.frameworks import CLAUDE
    from baton.providers.instrument.instrumentors import (
        after_import,
        is_recorded_or_refused,
        record_langchain,
    )
    from baton.providers.instrument.span_receiver import Hearing, watch
except ModuleNotFoundError as error:
    message = f"baton.otel needs OpenTelemetry: {install(requirement('otel'))}"
    raise ModuleNotFoundError(message, name=error.name) from error

_LOG = logging.getLogger("baton")
if TYPE_CHECKING:
    from baton.model import Trace
    from baton.providers.claude_recorder import Messages
    from baton.readers import Catalog

__all__ = ["FileSpanExporter", "Recording", "Sending", "record", "send", "tag"]

PROJECT, RULES = "baton.project", "baton.rules"
"""Attributes of spans (or of a resource) that :func:`tag` sets."""

SERVER = "http://localhost:4318"
"""The default address of `baton serve`."""

Json = dict[str, Any]


class FileSpanExporter(SpanExporter):
    """Adds a line to a file for each batch of spans; creates folders, keeps earlier lines."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = _File(path)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write a batch before this returns; raises OSError."""
        if spans:
            groups = _grouped((span, span.resource, span.instrumentation_scope) for span in spans)
            self._file.add({"resourceSpans": _resources(groups, "scopeSpans", "spans", _span)})
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002
        """Do nothing: exported spans are already written."""
        return True


class _Listening:
    """The receivers of this program's spans and log records."""

    def __init__(self, spans: SpanProcessor, logs: LogRecordProcessor) -> None:
        self._to = spans
        self.hearing = Hearing(spans, logs)

    def record_claude(self, begun: Callable[[str], None], failed: Callable[[str], None]) -> None:
        """Write each conversation with the Claude Agent SDK as spans, when it ends.

        ``begun`` is called with the name of this recording when the program imports the SDK,
        ``failed`` with the reason if a conversation could not be written. If an instrumentor of the
        SDK is installed, or the environment excludes it, this does nothing.
        """

        def imported(_: ModuleType) -> None:
            # Only programs that use the SDK load the code to read its messages.
            from baton.providers.claude_recorder import conversation_trace, on_conversation

            writer = _RecordWriter(self._to, failed)

            def write(messages: Messages, agents: Catalog) -> None:
                writer.write(
                    "a conversation with Claude", lambda: conversation_trace(messages, agents)
                )

            on_conversation(write)
            begun(f"{CLAUDE} (Baton's own)")

        if not is_recorded_or_refused(CLAUDE):
            after_import(CLAUDE, imported)

    def record_marked(self, begun: Callable[[str], None], failed: Callable[[str], None]) -> None:
        """Write what `baton.record_agent` and `baton.agent` record as spans, message by message.

        ``begun`` is called with their name at the first message, ``failed`` with the reason if one
        could not be written.
        """

        def imported(recorder: ModuleType) -> None:
            writer = _RecordWriter(self._to, failed)

            def write(made: Trace) -> None:
                if not writer.counts:
                    begun("baton.record_agent")
                writer.write("a message", lambda: made)

            recorder.on_message(write)

        after_import("baton.providers.recorder", imported)


class _RecordWriter:
    """Writes records as finished spans."""

    def __init__(self, to: SpanProcessor, failed: Callable[[str], None]) -> None:
        self._to = to
        self._failed = failed
        # Created now: it starts threads, which is impossible at the end of a program.
        self._made_by = Resource.create()
        self.counts: Counter[str] = Counter()

    def write(self, what: str, make: Callable[[], Trace]) -> None:
        """Write one record; an error never stops the program."""
        from baton.export.sdk_spans import sdk_spans

        try:
            resource = self._made_by.merge(Resource(dict(_tagger.attributes)))
            trace_ = make()
            # A resumed session is written as another conversation with a different id, because
            # cases are found by ids.
            self.counts[trace_.id] += 1
            if (number := self.counts[trace_.id]) > 1:
                trace_.id = f"{trace_.id}-{number}"
            spans = list(sdk_spans(trace_, resource))
        except Exception as error:  # noqa: BLE001 - whatever it is, the program continues
            self._failed(f"{what} was not recorded: {exception_line(error)}")
            return
        for span in spans:
            self._to.on_end(span)


class Recording(_Listening):
    """A recording in progress; it is complete when the program or its ``with`` block ends."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._spans = _SpanWriter(path)
        super().__init__(self._spans, _LogWriter(path))
        atexit.register(self._spans.write_open)

    def flush(self) -> None:
        """Do nothing: finished spans are written at once, so that a crash cannot lose them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()


def record(path: str | os.PathLike[str]) -> Recording:
    """Write all spans and log records of this program to a file from now on.

    Tracer providers that the program has set or sets later are kept, and get one more processor; if
    there is none, one is set. The program adds its own instrumentation, before or after this call:
    LangChain, LangGraph and the Claude Agent SDK need none.

    Raises:
        InputError: the current tracer provider does not accept span processors.
    """
    recording = Recording(path)
    recording.hearing.install()
    record_langchain(lambda _: None)
    recording.record_claude(lambda _: None, _LOG.warning)
    recording.record_marked(lambda _: None, _LOG.warning)
    return recording


class Sending(_Listening):
    """Sends spans and log records of this program to a server, in batches."""

    def __init__(
        self,
        server: str = SERVER,
        *,
        key: str | None = None,
        project: str | None = None,
        answered: Callable[[int, str], None] | None = None,
    ) -> None:
        """Start; ``answered`` gets the status of each answer, and the reason if refused."""
        address = plain_address(server, option("server"), "`key` or BATON_API_KEY")
        try:
            import requests
            from opentelemetry.exporter.otlp.proto.http import Compression
            from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        except ModuleNotFoundError:
            needed = "opentelemetry-exporter-otlp-proto-http"
            raise InputError(f"sending spans needs an exporter: pip install {needed}") from None
        key = key or os.environ.get("BATON_API_KEY")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        headers |= {"x-baton-project": project} if project else {}
        packed = Compression.Gzip

        def session() -> Any:
            made = requests.Session()
            if answered is not None:
                made.hooks["response"].append(
                    lambda answer, *_, **__: answered(answer.status_code, _reason(answer))
                )
            return made

        spans = OTLPSpanExporter(
            f"{address}/v1/traces",
            headers=headers,
            compression=packed,
            timeout=_PATIENCE,
            session=session(),
        )
        logs = OTLPLogExporter(
            f"{address}/v1/logs",
            headers=headers,
            compression=packed,
            timeout=_PATIENCE,
            session=session(),
        )
        self._spans = BatchSpanProcessor(
            spans, schedule_delay_millis=_DELAY, max_queue_size=_WAITING
        )
        self._logs = BatchLogRecordProcessor(logs, schedule_delay_millis=_DELAY)
        super().__init__(self._spans, self._logs)
        atexit.register(self.flush)

    def flush(self) -> None:
        """Send waiting data. What the server refuses is lost, and the exporter logs it."""
        self._spans.force_flush()
        self._logs.force_flush()


def _reason(answer: Any) -> str:
    """Return a server's message about a refusal, or the name of the status.

    OTLP answers with a ``google.rpc.Status``, whose second field is the message.
    """
    # Imported only after a refusal: few programs need it.
    from baton.readers.otlp.wire.protobuf import BYTES, NoProtobuf, fields

    reason: object = None
    try:
        if "protobuf" in answer.headers.get("content-type", ""):
            data = memoryview(answer.content)
            for field in fields(data, 0, len(data)):
                if (field.number, field.type) == (2, BYTES):
                    reason = bytes(data[field.start : field.end]).decode(errors="replace")
        else:
            body = msgspec.json.decode(answer.content, type=dict[str, Any])
            reason = body.get("error") or body.get("message")
    except (msgspec.DecodeError, UnicodeError, RecursionError, NoProtobuf):
        reason = None  # another program answered
    return str(reason or answer.reason)[:300]


_DELAY = 1000
"""The maximum milliseconds that a span waits for others."""
_WAITING = 100_000
"""The maximum number of waiting spans: those of a conversation with Claude all come at its end."""
_PATIENCE = 5
"""Seconds that a program waits at its end for a server that does not answer."""


def send(server: str = SERVER, *, key: str | None = None, project: str | None = None) -> Sending:
    """Send all spans and log records of this program to a server from now on (`baton serve`).

    As with :func:`record`, tracer providers of the program are kept. Data that the server does not
    accept is lost: an agent never waits for the server, and never fails because of it.

    Args:
        server: the address of the server, or of any other that accepts OTLP over HTTP.
        key: an API key; the default is the environment variable ``BATON_API_KEY``.
        project: the project, if the key does not determine it.

    Raises:
        InputError: no exporter is installed, or the tracer provider does not accept processors.
    """
    sending = Sending(server, key=key, project=project)
    sending.hearing.install()
    sending.record_claude(lambda _: None, _LOG.warning)
    sending.record_marked(lambda _: None, _LOG.warning)
    return sending


def tag(project: str | None = None, rules: Sequence[str] = ()) -> None:
    """Add a project and the names of rules to all spans of this program from now on.

    `baton serve` scores a conversation by the rules for its project, and by those with
    `tagged: true` that its program names here. The last call counts. Without an SDK for traces
    nothing is sent or tagged. Programs in other languages set the same attributes with
    `OTEL_RESOURCE_ATTRIBUTES=baton.project=support,baton.rules=NAME`.

    Raises:
        InputError: neither is given, or ``rules`` is one text.
    """
    if isinstance(rules, str):
        raise InputError(f"`rules` is a list of names: write [{rules!r}]")
    attributes: dict[str, str | tuple[str, ...]] = {}
    if project is not None:
        attributes[PROJECT] = project
    if rules:
        attributes[RULES] = tuple(rules)
    if not attributes:
        raise InputError("`tag` needs a project or rules: neither is given")
    is_first = not _tagger.attributes
    _tagger.attributes = attributes
    if is_first:
        watch(TracerProvider, _tagger.meet)
        _tagger.meet(trace.get_tracer_provider())


class _Tagger(SpanProcessor):
    """Sets attributes on each span when it starts."""

    def __init__(self) -> None:
        self.attributes: Mapping[str, str | tuple[str, ...]] = {}

    def meet(self, provider: Any) -> None:
        """Tag the spans of a provider; one without processors makes no spans."""
        if hasattr(provider, "add_span_processor"):
            provider.add_span_processor(self)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
        span.set_attributes(self.attributes)


_tagger = _Tagger()


class _SpanWriter(SimpleSpanProcessor):
    """Writes each span when it ends, and unfinished spans when the program ends."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(FileSpanExporter(path))
        self._open: dict[int, Span] = {}

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        super().on_start(span, parent_context)
        self._open[span.get_span_context().span_id] = span

    def on_end(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        if context is not None:
            self._open.pop(context.span_id, None)
        super().on_end(span)

    def write_open(self) -> None:
        """Write the unfinished spans."""
        unfinished = [span._readable_span() for span in self._open.values()]
        self._open.clear()
        self.span_exporter.export(unfinished)


class _LogWriter(LogRecordProcessor):
    """Adds a line to a file for each log record."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = _File(path)

    def on_emit(self, log_record: Any) -> None:
        scope = log_record.instrumentation_scope
        record_ = getattr(log_record, "log_record", log_record)
        resource = getattr(log_record, "resource", None) or getattr(record_, "resource", None)
        groups = _grouped([(record_, resource, scope)])
        self._file.add({"resourceLogs": _resources(groups, "scopeLogs", "logRecords", _log)})

    def shutdown(self) -> None:
        """Do nothing: all records are written."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002
        return True


class _File:
    """Adds lines to a file; several threads and processes may write to it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()

    def add(self, value: Json) -> None:
        line = msgspec.json.encode(value) + b"\n"
        with self._lock:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(self._path, "ab", buffering=0) as file:
                file.write(line)


_Groups = dict[int, tuple[Any, dict[Any, list[Any]]]]


def _grouped(items: Iterable[tuple[Any, Any, Any]]) -> _Groups:
    """Put items below their resource and their scope."""
    groups: _Groups = {}
    for item, resource, scope in items:
        _, scopes = groups.setdefault(id(resource), (resource, {}))
        scopes.setdefault(scope, []).append(item)
    return groups


def _resources(groups: _Groups, scopes_key: str, key: str, write: Any) -> list[Json]:
    return [
        {
            "resource": {"attributes": attributes(resource.attributes if resource else None)},
            scopes_key: [
                {"scope": _scope(scope), key: [write(item) for item in items]}
                for scope, items in scopes.items()
            ],
        }
        for resource, scopes in groups.values()
    ]


def _scope(scope: Any) -> Json:
    return {} if scope is None else {"name": scope.name, "version": scope.version or ""}


def _span(span: ReadableSpan) -> Json:
    context, parent, status = span.get_span_context(), span.parent, span.status
    written = {
        **_ids(context),
        "parentSpanId": "" if parent is None else f"{parent.span_id:016x}",
        "name": utf8(span.name),
        "kind": span.kind.value + 1,
        "startTimeUnixNano": str(span.start_time or ""),
        "endTimeUnixNano": str(span.end_time or ""),
        "attributes": attributes(span.attributes),
        "droppedAttributesCount": span.dropped_attributes,
        "events": [
            {
                "timeUnixNano": str(event.timestamp),
                "name": utf8(event.name),
                "attributes": attributes(event.attributes),
            }
            for event in span.events
        ],
        "links": [
            {**_ids(link.context), "attributes": attributes(link.attributes)} for link in span.links
        ],
        "status": {"code": status.status_code.value, "message": utf8(status.description or "")},
    }
    return {key: value for key, value in written.items() if value not in ("", [], 0)}


def _log(record_: Any) -> Json:
    severity = getattr(record_.severity_number, "value", 0)
    written = {
        "traceId": f"{record_.trace_id:032x}" if record_.trace_id else "",
        "spanId": f"{record_.span_id:016x}" if record_.span_id else "",
        "timeUnixNano": str(record_.timestamp or 0),
        "observedTimeUnixNano": str(record_.observed_timestamp or 0),
        "severityNumber": severity,
        "severityText": record_.severity_text or "",
        "eventName": getattr(record_, "event_name", None) or "",
        "body": None if record_.body is None else any_value(record_.body),
        "attributes": attributes(record_.attributes),
    }
    return {key: value for key, value in written.items() if value not in ("", [], 0, None)}


def _ids(context: Any) -> Json:
    return {"traceId": f"{context.trace_id:032x}", "spanId": f"{context.span_id:016x}"}
