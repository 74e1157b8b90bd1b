"""How a message names an option: `max_cost` in Python, --max-cost on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Spelling = Callable[[str, Any], str]
"""Formats the name of a parameter and its value (``...`` for none)."""


def in_python(name: str, value: Any = ...) -> str:
    """Write an option as Python code: ``in_python("jobs", 1)`` is `jobs=1`."""
    return f"`{name}`" if value is ... else f"`{name}={value!r}`"


_spelling: ContextVar[Spelling] = ContextVar("spelling", default=in_python)


def option(name: str, value: Any = ...) -> str:
    """Return the name of an option for a message, with its value if given.

    The same function is called from Python and from the command line; each shows the message with
    its own names.
    """
    return _spelling.get()(name, value)


def one_of(name: str, index: int, value: Any) -> str:
    """Return the name of one of several values: ``evaluators[0]``, or ``--evaluator NAME``."""
    spelling = _spelling.get()
    return f"{name}[{index}]" if spelling is in_python else spelling(name, value)


@contextmanager
def options_named_by(spelling: Spelling) -> Iterator[None]:
    """Use other names of options inside this block."""
    token = _spelling.set(spelling)
    try:
        yield
    finally:
        _spelling.reset(token)
