"""A backend from what a config or the command line says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baton.formats.explain import checked
from baton.model import InputError, Problem
from baton.plugins import backend_entry, resolve
from baton.plugins.user_code import load_function

from .protocol import Backend


def backend_spec(told: str | Mapping[str, Any]) -> dict[str, Any]:
    """Check ``ray`` or ``{"type": "ray", ...}``; what it names is not started.

    Raises:
        InputError: an unknown backend, with the nearest name, or wrong options of one of ours.
    """
    spec = {"type": told} if isinstance(told, str) else dict(told)
    kind = spec.get("type")
    if not isinstance(kind, str):
        raise InputError(Problem(path="type", message="is missing: which backend is it?"))
    if ":" not in kind:
        try:
            entry = backend_entry(kind)
        except InputError as error:
            raise InputError(Problem(path="type", message=str(error))) from None
        checked(spec, resolve(entry).options_type)
    return spec


def make_backend(spec: Mapping[str, Any], folder: Path) -> Backend:
    """Build a backend; one of the user's own, ``module:name``, is looked for in ``folder``.

    It is called with all options but the type, and returns a :class:`Backend`.

    Raises:
        InputError: it cannot be built.
    """
    kind = spec["type"]
    if ":" not in kind:
        made: Backend = resolve(backend_entry(kind))(spec)
        return made
    function = load_function(kind, folder)
    own = {name: value for name, value in spec.items() if name != "type"}
    try:
        backend = function(**own)
    except TypeError as error:
        raise InputError(Problem(path="backend", message=f"`{kind}`: {error}")) from None
    lacks = [name for name in ("submit", "take", "room") if not hasattr(backend, name)]
    if lacks:
        message = f"`{kind}` makes no backend: it has no `{'`, no `'.join(lacks)}`"
        raise InputError(Problem(path="backend", message=message))
    return backend  # type: ignore[no-any-return]
