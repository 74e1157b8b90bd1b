"""Collects the spans of this process by case: by trace or links, never by time."""

from __future__ import annotations

import functools
import os
import threading
from collections import Counter
from typing import Any

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk.environment_variables import OTEL_SDK_DISABLED
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace import Span as LiveSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from baton.model import InputError
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.wire.sdk import from_sdk, log_from_sdk

from .span_receiver import Hearing

_REMEMBERED = 10_000
"""The number of traces of finished cases whose ids are remembered."""

_MOST = 100_000
"""Maximum spans, and log records, of one trace: a program in an endless loop never stops."""


class Collected(msgspec.Struct, kw_only=True):
    """The spans of a case, and the log records of its traces.

    ``open`` names spans that have not ended, ``homeless`` spans that belong to no case and started
    while this one was played. ``lost`` counts other items that were not collected, by kind.
    """

    spans: list[Span] = msgspec.field(default_factory=list)
    logs: list[Event] = msgspec.field(default_factory=list)
    open: list[str] = msgspec.field(default_factory=list)
    homeless: list[str] = msgspec.field(default_factory=list)
    lost: Counter[str] = msgspec.field(default_factory=Counter)


class Play:
    """A case that is being played, or another owner of spans."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Group:
    """The spans of a trace. ``during`` are the cases in play when it started without an owner."""

    def __init__(self, during: list[Play]) -> None:
        self.owner: Play | None = None
        self.during = during
        self.spans: dict[int, ReadableSpan] = {}
        self.logs: list[Any] = []

    def linked(self) -> set[int]:
        """Return the traces that its spans name as related."""
        return {link.context.trace_id for span in self.spans.values() for link in span.links or ()}


class Collector(SpanProcessor):
    """Collects the spans of all cases in play, in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._playing: list[Play] = []
        self._groups: dict[int, _Group] = {}
        self._over: dict[int, str] = {}
        self._lost: Counter[str] = Counter()

    def on_start(self, span: LiveSpan, parent_context: Context | None = None) -> None:  # noqa: ARG002
        """Record a span that starts."""
        context = span.get_span_context()
        with self._lock:
            group = self._group(context.trace_id, span)
            if group is not None and len(group.spans) >= _MOST:
                self._lost[f"spans of one trace beyond the first {_MOST:,}"] += 1
            elif group is not None:
                group.spans[context.span_id] = span

    def on_end(self, span: ReadableSpan) -> None:
        """Record a span that has ended."""
        context = span.get_span_context()
        if context is None:
            return
        with self._lock:
            group = self._groups.get(context.trace_id)
            if group is not None and context.span_id in group.spans:
                group.spans[context.span_id] = span

    def on_log(self, data: Any) -> None:
        """Take in a log record."""
        record = getattr(data, "log_record", data)
        with self._lock:
            group = self._groups.get(record.trace_id or 0)
            if group is not None and len(group.logs) >= _MOST:
                self._lost[f"log records of one trace beyond the first {_MOST:,}"] += 1
            elif group is not None:
                group.logs.append(data)
            elif self._playing:
                self._lost["log records outside of any span"] += 1

    def begin(self, name: str) -> Play:
        """Record that a case is being played from now on."""
        play = Play(name)
        with self._lock:
            self._playing.append(play)
        return play

    def own(self, trace_id: int, play: Play) -> None:
        """Record that a trace belongs to the case."""
        with self._lock:
            self._groups.setdefault(trace_id, _Group([])).owner = play

    def is_open(self, play: Play) -> bool:
        """Return whether a span of a case has not ended."""
        with self._lock:
            return any(span.end_time is None for span in self._spans_of(play))

    def collect(self, play: Play) -> Collected:
        """Return what was collected for a case so far."""
        with self._lock:
            self._adopt(play)
            spans = self._spans_of(play)
            logs = [log for group in self._groups_of(play) for log in group.logs]
            homeless = [
                _named(span)
                for group in self._groups.values()
                if group.owner is None and play in group.during
                for span in group.spans.values()
            ]
            lost = Counter(self._lost)
        return _collected(spans, logs, homeless, lost)

    def end(self, play: Play) -> None:
        """Forget a case; late spans of its traces are counted as lost in the next case."""
        with self._lock:
            if play in self._playing:
                self._playing.remove(play)
                self._lost.clear()
            for trace_id, group in list(self._groups.items()):
                if play in group.during:
                    group.during.remove(play)
                if group.owner is play:
                    self._over[trace_id] = play.name
                if group.owner is play or (group.owner is None and not group.during):
                    del self._groups[trace_id]
            while len(self._over) > _REMEMBERED:
                del self._over[next(iter(self._over))]

    def _group(self, trace_id: int, span: ReadableSpan) -> _Group | None:
        """Return the group of a new span; ``None`` if it comes after or before its case."""
        group = self._groups.get(trace_id)
        if group is not None:
            return group
        if trace_id in self._over:
            over = self._over[trace_id]
            self._lost[f"spans of `{over}` that arrived after its end: {_named(span)}"] += 1
            return None
        if not self._playing:
            self._lost[f"spans while no case was played: {_named(span)}"] += 1
            return None
        return self._groups.setdefault(trace_id, _Group(list(self._playing)))

    def _groups_of(self, play: Play) -> list[_Group]:
        return [group for group in self._groups.values() if group.owner is play]

    def _spans_of(self, play: Play) -> list[ReadableSpan]:
        return [span for group in self._groups_of(play) for span in group.spans.values()]

    def _adopt(self, play: Play) -> None:
        """Add the traces that are linked with the case, in either direction."""
        free = {id_: group for id_, group in self._groups.items() if group.owner is None}
        adopted = bool(free)
        while adopted:
            adopted = False
            owned = {id_: group for id_, group in self._groups.items() if group.owner is play}
            named = {id_ for group in owned.values() for id_ in group.linked()}
            for id_, group in list(free.items()):
                if play in group.during and (id_ in named or group.linked() & owned.keys()):
                    group.owner = play
                    del free[id_]
                    adopted = True


class LogCollector(LogRecordProcessor):
    """Hands log records to the collector of spans."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    # The class has different names in versions of the SDK, so that the type is `Any`.
    def on_emit(self, log_record: Any) -> None:
        """Take in a log record."""
        self._collector.on_log(log_record)

    def shutdown(self) -> None:
        """Do nothing: callers fetch what was collected."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        """Do nothing, as above."""
        return True


def _collected(
    spans: list[ReadableSpan], logs: list[Any], homeless: list[str], lost: Counter[str]
) -> Collected:
    collected = Collected(homeless=homeless, lost=lost, logs=[log_from_sdk(data) for data in logs])
    for each in spans:
        readable = each._readable_span() if isinstance(each, LiveSpan) else each
        collected.spans.append(from_sdk(readable))
        if readable.end_time is None:
            collected.open.append(_named(readable))
        for kind in ("attributes", "events", "links"):
            count = getattr(readable, f"dropped_{kind}", 0)
            if count:
                collected.lost[f"{kind} of spans, beyond the limit of the SDK"] += count
    return collected


def _named(span: ReadableSpan) -> str:
    scope = span.instrumentation_scope
    return f"`{span.name}` of scope `{scope.name if scope else ''}`"


_SAMPLES = ("AlwaysOffSampler", "TraceIdRatioBased")


class Tracing:
    """Collects every span of this process; ``tracer`` starts the spans of turns."""

    def __init__(self) -> None:
        self.collector = Collector()
        turns = TracerProvider(
            sampler=ALWAYS_ON, resource=Resource.get_empty(), shutdown_on_exit=False
        )
        turns.add_span_processor(self.collector)
        self.tracer = turns.get_tracer("baton")
        # Created before the processors are added: these hear it already.
        self._hearing = Hearing(self.collector, LogCollector(self.collector))

    def install(self) -> None:
        """Listen to the current providers; set one up if the program did not.

        Raises:
            InputError: a provider of the program prevents the collection of spans.
        """
        if os.environ.get(OTEL_SDK_DISABLED, "").strip().lower() == "true":
            raise InputError(f"{OTEL_SDK_DISABLED} is set, which disables all spans: unset it")
        sampler = getattr(trace.get_tracer_provider(), "sampler", None)
        description = sampler.get_description() if sampler is not None else ""
        if description.startswith(_SAMPLES):
            raise InputError(
                f"the program's tracer provider drops spans by its sampler {description}"
            )
        self._hearing.install()


@functools.cache
def tracing() -> Tracing:
    """Return the collection of this process's spans."""
    return Tracing()
