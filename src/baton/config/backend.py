"""``backend:`` of a config, and what goes before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.formats.document import Document
from baton.model import InputError, Problem
from baton.runner.backends.protocol import backend_spec


def read_backend(
    document: Document, told: str | Mapping[str, Any] | None, problems: list[Problem]
) -> dict[str, Any] | None:
    """Check ``backend: ray``, or a mapping with its options."""
    if told is None:
        return None
    try:
        return backend_spec(told)
    except InputError as error:
        for problem in error.problems:
            steps = tuple(step for step in problem.path.split(".") if step)
            inside = steps if isinstance(told, Mapping) and steps[:1] and steps[0] in told else ()
            problems.append(document.problem_at(("backend", *inside), problem.message))
    return None


def chosen_backend(
    configured: Mapping[str, Any] | None, name: str | None, workers: int | None
) -> dict[str, Any] | None:
    """Put what the command line names over what a config does.

    Raises:
        InputError: an unknown backend, or workers and nothing to have them.
    """
    if name is None and configured is None:
        if workers is not None:
            raise InputError("--workers goes with --backend (local, ray)")
        return None
    spec = dict(configured or {})
    if name is not None and name != spec.get("type"):
        spec = {"type": name}
    if workers is not None:
        spec["workers"] = workers
    try:
        return backend_spec(spec)
    except InputError as error:
        raise InputError(
            Problem(
                path="--workers" if each.path == "workers" else "--backend", message=each.message
            )
            for each in error.problems
        ) from None
