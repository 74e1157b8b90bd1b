"""Switches instrumentation on: that of packages, and that built into frameworks."""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, Literal, NamedTuple

from baton.model import InputError, suggestion
from baton.plugins import is_installed

from .frameworks import FRAMEWORKS, installed_instrumentors, is_sdk_of_openai

Wanted = Literal["auto"] | list[str]
_OPTIONS = {
    # Without it delegates are known only by the arguments of the call.
    "openinference-instrumentation-crewai": {"use_event_listener": True},
}
"""Options of instrumentors for complete recordings, by package."""
# The spans that CrewAI's events make are never around the request that they tell. A span of the
# model's client is then a trace of its own: a second conversation with the same request.
_TELLS_REQUESTS = {
    "openinference-instrumentation-crewai": "openinference.instrumentation.crewai._event_listener",
}
"""Instrumentors that tell each request themselves, with the module of versions that do."""
_CLIENTS = frozenset(
    {"anthropic", "bedrock", "google_genai", "groq", "litellm", "mistralai", "openai", "vertexai"}
)
"""Instrumentors of the clients of models."""
_LARGE = {each.instrumentor: each.module for each in FRAMEWORKS if each.instrumentor}
_LARGE |= {"langchain": "langchain_core", "llama_index": "llama_index.core"}
"""The modules whose import switches an instrumentor on, by its name."""

_NO_SPANS = frozenset({"threading"})
"""Instrumentors without own spans: that of threads, which comes with Strands, connects spans."""

_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_SENSITIVE = (
    "HAYSTACK_CONTENT_TRACING_ENABLED",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE",
)
"""Environment variables that let frameworks record the content of messages."""
_LIMITS = ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_SPAN_EVENT_COUNT_LIMIT")


def check_instrumentors(wanted: Wanted) -> None:
    """Raise InputError for a name that no installed package has."""
    _chosen(wanted)


def set_environment() -> None:
    """Enable complete recordings, unless the environment says otherwise."""
    # Instrumentations without OpenTelemetry's helpers only know `true`. ADK knows the modes itself,
    # and with `true` it leaves the results of tools out of its spans.
    has_modes = is_installed("opentelemetry.util.genai") or is_installed("google.adk")
    os.environ.setdefault(_CONTENT, "SPAN_AND_EVENT" if has_modes else "true")
    for name in _SENSITIVE:
        os.environ.setdefault(name, "true")
    for name in _LIMITS:
        os.environ.setdefault(name, "100000")


def activate(wanted: Wanted, note: Callable[[str], None]) -> None:
    """Switch instrumentors on; ``note`` is called with each as ``name (package version)``.

    Those that are requested by name have to work. If all are requested, those without their library
    are left out, and ``note`` is called with the reason of any other failure. If a framework takes
    long to import, its instrumentor is switched on when the program has imported it.

    Raises:
        InputError: an unknown name, or a requested instrumentor cannot be switched on.
    """
    # Strands also instruments threads. Suppress its warning that this was done before.
    logging.getLogger("opentelemetry.instrumentation.instrumentor").addFilter(
        lambda record: "already instrumented" not in record.getMessage()
    )
    if wanted == "auto":
        record_langchain(note)
    for entry in _chosen(wanted):
        module = _LARGE.get(entry.name) if wanted == "auto" else None
        if module is None:
            _switch_on(entry, note, asked=wanted != "auto")
        else:
            after_import(module, functools.partial(_switch_on_with, entry, note))


def record_langchain(note: Callable[[str], None]) -> None:
    """Record LangChain and LangGraph with Baton's handler, if no instrumentor is installed.

    ``note`` is called with its name when the program uses LangChain.
    """
    if is_recorded_or_refused("langchain"):
        return

    def imported(_: ModuleType) -> None:
        from .langchain_handler import switch_on

        switch_on()
        note("langchain (Baton's own handler)")

    # This module has the handlers of all runs, and is imported before the first run.
    after_import("langchain_core.tracers.context", imported)


def is_recorded_or_refused(name: str) -> bool:
    """Return whether this instrumentor is installed, or switched off by the environment."""
    return name in {entry.name for entry in installed_instrumentors()} | _refused()


def _refused() -> set[str]:
    """Return the instrumentors that the environment switches off."""
    names = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
    return {name.strip() for name in names}


def _switch_on_with(entry: EntryPoint, note: Callable[[str], None], module: ModuleType) -> None:
    # A folder `agents` of the program is not the SDK of OpenAI.
    if module.__name__ != "agents" or is_sdk_of_openai():
        _switch_on(entry, note, asked=False, used=True)


def _switch_on(
    entry: EntryPoint, note: Callable[[str], None], *, asked: bool, used: bool = False
) -> None:
    """Switch an instrumentor on; ``used``: the program has imported its library."""
    try:
        instrumentor = entry.load()()
        if not instrumentor.is_instrumented_by_opentelemetry:
            options = _OPTIONS.get(_package(entry), {})
            instrumentor.instrument(raise_exception_on_conflict=True, **options)
    except Exception as error:
        if not (asked or used) and type(error).__name__ == "DependencyConflictError":
            return  # there is nothing for it to instrument, and otherwise its version is too old
        reason = f"{_shown(entry)} does not start: {type(error).__name__}: {error}"
        if asked:
            raise InputError(f"the instrumentor {reason}") from error
        note(reason)
    else:
        if entry.name not in _NO_SPANS:
            note(_shown(entry))
        module = _TELLS_REQUESTS.get(_package(entry))
        if not asked and module is not None and is_installed(module):
            _switch_off_clients(entry, note)


def _switch_off_clients(teller: EntryPoint, note: Callable[[str], None]) -> None:
    for entry in _chosen("auto"):
        if entry.name.replace("-", "_") in _CLIENTS:
            instrumentor = entry.load()()
            if instrumentor.is_instrumented_by_opentelemetry:
                instrumentor.uninstrument()
                note(f"{teller.name} in place of {entry.name}: both record the same requests")


class BuiltIn(NamedTuple):
    """A framework's own instrumentation: whether it is on, and how to switch it on."""

    is_on: Callable[[Any], bool]
    switch_on: Callable[[Any], None]


def switch_on_built_in(note: Callable[[str], None]) -> None:
    """Switch on frameworks' own instrumentation, as soon as the program has imported them.

    ``note`` is called with the name of each that was off.
    """

    def imported(module: ModuleType) -> None:
        framework = _BUILT_IN[module.__name__]
        if not framework.is_on(module):
            framework.switch_on(module)
            note(module.__name__)

    for name in _BUILT_IN:
        after_import(name, imported)


def after_import(name: str, act: Callable[[ModuleType], None]) -> None:
    """Call a function with a module: now if it is imported, else when it is."""
    if name in sys.modules:
        act(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, act))


class _Finder(MetaPathFinder):
    """Finds one module through the other finders, and calls a function when it is loaded."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._act = act
        self._is_looking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name or self._is_looking:
            return None
        self._is_looking = True
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = find(fullname, path, target) if find else None
                if spec is not None:
                    break
            else:
                return None
        finally:
            self._is_looking = False
        if spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._act)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Loader, act: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._act = act

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Restore the original loader, which also finds resources.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._act(module)


def _chosen(wanted: Wanted) -> list[EntryPoint]:
    """Choose one instrumentor for each name: several of one library would record it twice."""
    installed = sorted(installed_instrumentors(), key=_rank)
    if wanted == "auto":
        names = {entry.name for entry in installed} - _refused()
        return [_first(installed, name) for name in sorted(names)]
    known = {entry.name for entry in installed} | {_package(entry) for entry in installed}
    for name in wanted:
        if name not in known:
            hint = suggestion(name, known) or "none is installed"
            raise InputError(f"no instrumentor `{name}` is installed; {hint}")
    return [_first(installed, name) for name in dict.fromkeys(wanted)]


def _first(installed: list[EntryPoint], name: str) -> EntryPoint:
    return next(entry for entry in installed if name in (entry.name, _package(entry)))


def _rank(entry: EntryPoint) -> tuple[bool, bool, str]:
    """Return a sort key: instrumentors with the most information on dispatches come first."""
    package = _package(entry)
    return not package.startswith("openinference"), "genai" not in package, package


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


def _shown(entry: EntryPoint) -> str:
    version = entry.dist.version if entry.dist is not None else ""
    return f"{entry.name} ({_package(entry)} {version})"


def _pydantic_ai_is_on(module: Any) -> bool:
    return bool(getattr(module.Agent, "_instrument_default", False))


def _pydantic_ai_on(module: Any) -> None:
    module.Agent.instrument_all()


def _agent_framework_is_on(module: Any) -> bool:
    settings = module.OBSERVABILITY_SETTINGS
    if getattr(settings, "is_user_disabled", False):
        return True  # the program wants it off
    names = ("enable_instrumentation", "enable_otel")
    on = next((getattr(settings, name) for name in names if hasattr(settings, name)), True)
    return bool(on and settings.enable_sensitive_data)


def _agent_framework_on(module: Any) -> None:
    enable = getattr(module, "enable_instrumentation", None)
    if enable is not None:
        enable(enable_sensitive_data=True)
    else:
        module.OBSERVABILITY_SETTINGS.enable_otel = True
        module.OBSERVABILITY_SETTINGS.enable_sensitive_data = True


# Semantic Kernel writes what models heard and said only to this logger, and few programs show it.
_SEMANTIC_KERNEL = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"


def _semantic_kernel_is_on(_: Any) -> bool:
    from .log_records import ToOpenTelemetry

    return ToOpenTelemetry.listens(_SEMANTIC_KERNEL)


def _semantic_kernel_on(_: Any) -> None:
    from .log_records import ToOpenTelemetry

    ToOpenTelemetry.listen(_SEMANTIC_KERNEL)


_OF_HAYSTACK = "haystack_integrations.tracing.opentelemetry"


def _haystack_is_on(_: Any) -> bool:
    # Version 2 switches itself on; version 3 needs the package `opentelemetry-haystack`.
    if not is_installed("haystack.tracing") or not is_installed(_OF_HAYSTACK):
        return True
    return bool(importlib.import_module("haystack.tracing").is_tracing_enabled())


def _haystack_on(_: Any) -> None:
    from opentelemetry import trace

    tracer = importlib.import_module(_OF_HAYSTACK).OpenTelemetryTracer(trace.get_tracer("haystack"))
    importlib.import_module("haystack.tracing").enable_tracing(tracer)


_BUILT_IN = {
    "pydantic_ai": BuiltIn(_pydantic_ai_is_on, _pydantic_ai_on),
    "agent_framework.observability": BuiltIn(_agent_framework_is_on, _agent_framework_on),
    "haystack": BuiltIn(_haystack_is_on, _haystack_on),
    "semantic_kernel": BuiltIn(_semantic_kernel_is_on, _semantic_kernel_on),
}
