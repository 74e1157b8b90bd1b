"""Every span of this process, and whose case it is: by its trace or by links, never by time."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections import Counter
from typing import Any

import msgspec
from opentelemetry import _logs, trace
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
from opentelemetry.sdk.environment_variables import OTEL_SDK_DISABLED
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace import Span as LiveSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from baton.model import InputError
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.wire.sdk import from_sdk, log_from_sdk

_REMEMBERED = 10_000
"""Traces of cases that are over which are still known by their id."""

_MOST = 100_000
"""Spans, and log records, that are kept of one trace: a program in a circle makes them for ever."""


class Collected(msgspec.Struct, kw_only=True):
    """What the spans of a case are, and the log records of its traces.

    ``open`` names spans that have not ended, ``homeless`` spans that belong to no case and began
    while this one was played. ``lost`` counts what else was seen, by what it is.
    """

    spans: list[Span] = msgspec.field(default_factory=list)
    logs: list[Event] = msgspec.field(default_factory=list)
    open: list[str] = msgspec.field(default_factory=list)
    homeless: list[str] = msgspec.field(default_factory=list)
    lost: Counter[str] = msgspec.field(default_factory=Counter)


class Play:
    """A case that is being played, or what else spans may belong to."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Group:
    """The spans of a trace. ``during`` are the cases in play when it began and has no owner."""

    def __init__(self, during: list[Play]) -> None:
        self.owner: Play | None = None
        self.during = during
        self.spans: dict[int, ReadableSpan] = {}
        self.logs: list[Any] = []

    def linked(self) -> set[int]:
        """Return the traces that its spans name as related."""
        return {link.context.trace_id for span in self.spans.values() for link in span.links or ()}


class Collector(SpanProcessor):
    """Keeps the spans of all cases in play, as they start and end, in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._playing: list[Play] = []
        self._groups: dict[int, _Group] = {}
        self._over: dict[int, str] = {}
        self._lost: Counter[str] = Counter()

    def on_start(self, span: LiveSpan, parent_context: Context | None = None) -> None:  # noqa: ARG002
        """Take in a span that starts."""
        context = span.get_span_context()
        with self._lock:
            group = self._group(context.trace_id, span)
            if group is not None and len(group.spans) >= _MOST:
                self._lost[f"spans of one trace beyond the first {_MOST:,}"] += 1
            elif group is not None:
                group.spans[context.span_id] = span

    def on_end(self, span: ReadableSpan) -> None:
        """Take in a span as it ended."""
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
        """Say that a case is being played from now on."""
        play = Play(name)
        with self._lock:
            self._playing.append(play)
        return play

    def own(self, trace_id: int, play: Play) -> None:
        """Say that a trace is the case's."""
        with self._lock:
            self._groups.setdefault(trace_id, _Group([])).owner = play

    def is_open(self, play: Play) -> bool:
        """Tell whether a span of a case has not ended."""
        with self._lock:
            return any(span.end_time is None for span in self._spans_of(play))

    def collect(self, play: Play) -> Collected:
        """Return what there is of a case until now."""
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
        """Forget a case; what its traces still bring is counted for the next one."""
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
        """Find the group of a span that starts; ``None`` when it comes too late, or too early."""
        group = self._groups.get(trace_id)
        if group is not None:
            return group
        if trace_id in self._over:
            over = self._over[trace_id]
            self._lost[f"spans of `{over}` that came after its end: {_named(span)}"] += 1
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
        """Find the traces that are the case's because a link leads there, or from there."""
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

    # Named otherwise in the versions of the SDK, so that it is taken as it comes.
    def on_emit(self, log_record: Any) -> None:
        """Take in a log record."""
        self._collector.on_log(log_record)

    def shutdown(self) -> None:
        """Do nothing: what was collected is fetched by those who want it."""

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


_MANY = 100_000
"""Attributes of a span: instrumentations write one for each part of each message."""
_SAMPLES = ("AlwaysOffSampler", "TraceIdRatioBased")


class Tracing:
    """Hears every span of this process.

    A program's own providers stay what they are, and their exporters get what they got before:
    the collector is one more processor of theirs. ``tracer`` starts the spans of turns.
    """

    def __init__(self) -> None:
        self.collector = Collector()
        self._logs = LogCollector(self.collector)
        self._providers: weakref.WeakSet[TracerProvider] = weakref.WeakSet()
        self._heard: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_installed = False
        turns = TracerProvider(
            sampler=ALWAYS_ON, resource=Resource.get_empty(), shutdown_on_exit=False
        )
        turns.add_span_processor(self.collector)
        self.tracer = turns.get_tracer("baton")
        _watch(self)

    def met(self, provider: TracerProvider) -> None:
        """Note a provider that was made, and hear it from now on once cases are played."""
        self._providers.add(provider)
        if self._is_installed:
            self._hear(provider)

    def install(self) -> None:
        """Listen to what providers there are by now; set one up when the program did not.

        Raises:
            InputError: a provider of the program keeps spans from being heard.
        """
        if os.environ.get(OTEL_SDK_DISABLED, "").strip().lower() == "true":
            raise InputError(f"{OTEL_SDK_DISABLED} is set: it silences every span; unset it")
        provider_now = trace.get_tracer_provider()
        if isinstance(provider_now, trace.ProxyTracerProvider):
            provider_now = TracerProvider(sampler=ALWAYS_ON, span_limits=many())
            trace.set_tracer_provider(provider_now)
        if not hasattr(provider_now, "add_span_processor"):
            raise InputError(
                f"{type(provider_now).__name__} takes no span processors: it hides its spans"
            )
        sampler = getattr(provider_now, "sampler", None)
        said = sampler.get_description() if sampler is not None else ""
        if said.startswith(_SAMPLES):
            raise InputError(f"the program's tracer provider drops spans by its sampler {said}")
        for provider in [*self._providers, provider_now]:
            self._hear(provider)
        self._hear_logs()
        self._is_installed = True

    def _hear(self, provider: Any) -> None:
        if provider in self._heard and self._is_still_there(provider):
            return
        provider.add_span_processor(self.collector)
        self._heard.add(provider)

    def _is_still_there(self, provider: Any) -> bool:
        """Tell whether the collector is still among the processors; some providers drop them."""
        multi = getattr(provider, "_active_span_processor", None)
        there = getattr(multi, "_span_processors", None)
        return there is None or self.collector in there

    def _hear_logs(self) -> None:
        logger_provider = _logs.get_logger_provider()
        if not hasattr(logger_provider, "add_log_record_processor"):
            _logs.set_logger_provider(LoggerProvider())
            logger_provider = _logs.get_logger_provider()
        if logger_provider not in self._heard and hasattr(
            logger_provider, "add_log_record_processor"
        ):
            logger_provider.add_log_record_processor(self._logs)
            self._heard.add(logger_provider)


@functools.cache
def tracing() -> Tracing:
    """Return what hears the spans of this process."""
    return Tracing()


def many() -> SpanLimits:
    """Return limits that no instrumentation reaches."""
    return SpanLimits(
        max_span_attributes=_MANY, max_events=_MANY, max_links=_MANY, max_event_attributes=_MANY
    )


def _watch(heard: Tracing) -> None:
    """Meet every provider that is made from now on, as it need not be the one of the process."""
    original = TracerProvider.__init__

    @functools.wraps(original)
    def made(self: TracerProvider, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        heard.met(self)

    TracerProvider.__init__ = made  # type: ignore[method-assign]
