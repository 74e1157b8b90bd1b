"""Receives every span and log record of this process, no matter what creates its providers."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from opentelemetry import _logs, trace
from opentelemetry._logs import _internal as _loggers
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from baton.model import InputError

_MANY = 100_000
"""Maximum attributes of a span: instrumentations write one for each part of each message."""


class Hearing:
    """Passes all spans of this process to one processor, and all log records to another.

    The processors are added to the program's own providers, whose exporters work as before.
    """

    def __init__(self, spans: SpanProcessor, logs: LogRecordProcessor) -> None:
        self._spans = spans
        self._logs = logs
        self._providers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._heard: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_installed = False
        for kind in (TracerProvider, LoggerProvider):
            watch(kind, self._met)

    def install(self) -> None:
        """Listen to the current providers; set up those that the program did not.

        Raises:
            InputError: the program's tracer provider takes no processors.
        """
        self._is_installed = True
        self._set_tracer_provider()
        provider = trace.get_tracer_provider()
        if not hasattr(provider, "add_span_processor"):
            raise InputError(
                f"{type(provider).__name__} takes no span processors: it hides its spans"
            )
        self._set_logger_provider()
        for each in [*self._providers, provider, _logs.get_logger_provider()]:
            self._hear(each)

    def install_before(self) -> None:
        """Listen from now on, in a program that has not started.

        It may still set its own providers, and they can be set only once. So Baton's are only set
        when the first span or log record would have none.
        """
        self._is_installed = True
        _before(trace.ProxyTracer, "_tracer", self._set_tracer_provider)
        _before(_loggers.ProxyLogger, "_logger", self._set_logger_provider)

    def _set_tracer_provider(self) -> None:
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            trace.set_tracer_provider(TracerProvider(sampler=ALWAYS_ON, span_limits=many()))

    def _set_logger_provider(self) -> None:
        if not hasattr(_logs.get_logger_provider(), "add_log_record_processor"):
            _logs.set_logger_provider(LoggerProvider())

    def _met(self, provider: Any) -> None:
        """Record a new provider, because it may not be the global one."""
        self._providers.add(provider)
        if self._is_installed:
            self._hear(provider)

    def _hear(self, provider: Any) -> None:
        if isinstance(provider, LoggerProvider):
            if provider not in self._heard:
                provider.add_log_record_processor(self._logs)
        elif hasattr(provider, "add_span_processor"):
            if provider in self._heard and self._is_still_there(provider):
                return
            provider.add_span_processor(self._spans)
        self._heard.add(provider)

    def _is_still_there(self, provider: Any) -> bool:
        """Return whether a provider still has the processor; some providers drop them."""
        multi = getattr(provider, "_active_span_processor", None)
        there = getattr(multi, "_span_processors", None)
        return there is None or self._spans in there


def many() -> SpanLimits:
    """Return limits that no instrumentation reaches."""
    return SpanLimits(
        max_span_attributes=_MANY, max_events=_MANY, max_links=_MANY, max_event_attributes=_MANY
    )


def watch(kind: type[Any], met: Callable[[Any], None]) -> None:
    """Call a function with every new object of a class from now on."""
    original = kind.__init__

    @functools.wraps(original)
    def made(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        met(self)

    kind.__init__ = made


def _before(kind: type[Any], name: str, act: Callable[[], None]) -> None:
    """Call a function each time before a property of a class is read."""
    original: property = vars(kind)[name]

    def read(self: Any) -> Any:
        act()
        return original.__get__(self)

    setattr(kind, name, property(read))
