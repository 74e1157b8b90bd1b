"""Finds a backend by its name, and builds one from a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from baton.formats.explain_mistakes import checked
from baton.model import InputError, Problem, suggestion
from baton.plugins import Entry
from baton.plugins.user_code import load_function

from .protocol import Backend, JobDoer


@cache
def backend_entries() -> tuple[Entry, ...]:
    """Return all backends. They are imported here because most runs use none."""
    from .local import Local
    from .ray import Ray

    return (
        Entry("local", Local, "processes on this machine"),
        Entry("ray", Ray, "a Ray cluster, or one made for the run"),
    )


def backend_entry(name: str) -> Entry:
    """Find a backend by its name; raises InputError with similar names."""
    known = {entry.type: entry for entry in backend_entries()}
    if name not in known:
        raise InputError(f"unknown backend `{name}`; {suggestion(name, known)}")
    return known[name]


def backend_spec(stated: str | Mapping[str, Any]) -> dict[str, Any]:
    """Check ``ray`` or ``{"type": "ray", ...}`` without starting the backend.

    Raises:
        InputError: an unknown backend, with a similar name, or wrong options of a built-in one.
    """
    spec = {"type": stated} if isinstance(stated, str) else dict(stated)
    kind = spec.get("type")
    if not isinstance(kind, str):
        raise InputError(Problem(path="type", message="is missing: name the backend"))
    if ":" not in kind:
        try:
            entry = backend_entry(kind)
        except InputError as error:
            raise InputError(Problem(path="type", message=str(error))) from None
        checked(spec, entry.target.options_type)
    return spec


def make_backend(spec: Mapping[str, Any], folder: Path, worker: Callable[[], JobDoer]) -> Backend:
    """Build a backend; the user's own (``module:name``) is searched in ``folder``.

    The user's own is called with all options except the type, and returns a :class:`Backend`;
    ``worker`` creates the workers of built-in ones.

    Raises:
        InputError: it cannot be built.
    """
    kind = spec["type"]
    if ":" not in kind:
        made: Backend = backend_entry(kind).target(spec, worker)
        return made
    function = load_function(kind, folder)
    own = {name: value for name, value in spec.items() if name != "type"}
    try:
        backend = function(**own)
    except TypeError as error:
        raise InputError(Problem(path="backend", message=f"`{kind}`: {error}")) from None
    lacks = [name for name in ("submit", "take", "room") if not hasattr(backend, name)]
    if lacks:
        message = f"`{kind}` does not return a backend: the result has no `{'`, no `'.join(lacks)}`"
        raise InputError(Problem(path="backend", message=message))
    return backend  # type: ignore[no-any-return]
