"""Where spans come from: every tracer provider of a process, the program's own ones too."""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any

from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.environment_variables import OTEL_SDK_DISABLED
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from baton.model import InputError

from .collector import Collector, LogCollector

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
