"""Instrumentation: packages that bring it, and frameworks that have it built in."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, NamedTuple

from baton.model import InputError, suggestion
from baton.plugins import is_installed

Wanted = Literal["auto"] | list[str]
_GROUP = "opentelemetry_instrumentor"
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_LIMITS = ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_SPAN_EVENT_COUNT_LIMIT")


def check_instrumentors(wanted: Wanted) -> None:
    """Raise InputError for a name that no installed package has."""
    _chosen(wanted)


def set_environment() -> None:
    """Ask for whole records, where the environment does not say otherwise."""
    has_modes = is_installed("opentelemetry.util.genai")
    os.environ.setdefault(_CONTENT, "SPAN_AND_EVENT" if has_modes else "true")
    for name in _LIMITS:
        os.environ.setdefault(name, "100000")


def activate(wanted: Wanted) -> list[str]:
    """Switch instrumentors on; return which, as ``name (package version)``.

    Those that are asked for by name have to work. Of all there are, those are left out whose
    library is not installed; one that fails otherwise is listed with the reason.

    Raises:
        InputError: an unknown name, or one that was asked for cannot be switched on.
    """
    activated = []
    for entry in _chosen(wanted):
        try:
            instrumentor = entry.load()()
            if not instrumentor.is_instrumented_by_opentelemetry:
                instrumentor.instrument(raise_exception_on_conflict=True)
        except Exception as error:
            if wanted == "auto" and type(error).__name__ == "DependencyConflictError":
                continue  # there is nothing for it to instrument
            reason = f"{_told(entry)} does not start: {type(error).__name__}: {error}"
            if wanted != "auto":
                raise InputError(f"the instrumentor {reason}") from error
            activated.append(reason)
        else:
            activated.append(_told(entry))
    return activated


class BuiltIn(NamedTuple):
    """A framework's own instrumentation: whether it is on, and how to switch it on."""

    is_on: Callable[[Any], bool]
    switch_on: Callable[[Any], None]


def built_in_off() -> list[str]:
    """Name the frameworks that the program has imported and whose instrumentation is off."""
    return [
        name
        for name, framework in _BUILT_IN.items()
        if name in sys.modules and not framework.is_on(sys.modules[name])
    ]


def switch_on(names: Iterable[str]) -> None:
    """Switch on what frameworks have built in."""
    for name in names:
        _BUILT_IN[name].switch_on(sys.modules[name])


def _chosen(wanted: Wanted) -> list[EntryPoint]:
    """Choose one instrumentor for each name: several of one library would record it twice."""
    installed = sorted(entry_points(group=_GROUP), key=_rank)
    if wanted == "auto":
        refused = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
        names = {entry.name for entry in installed} - {name.strip() for name in refused}
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
    """Sort those first that tell most of who handed work to whom."""
    package = _package(entry)
    return not package.startswith("openinference"), "genai" not in package, package


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


def _told(entry: EntryPoint) -> str:
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


_BUILT_IN = {
    "pydantic_ai": BuiltIn(_pydantic_ai_is_on, _pydantic_ai_on),
    "agent_framework.observability": BuiltIn(_agent_framework_is_on, _agent_framework_on),
}
