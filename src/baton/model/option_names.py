"""How a message names an option: `max_cost` in Python, --max-cost on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Spelling = Callable[[str, Any], str]
"""Takes the name of a parameter and the value to give it (``...`` for none), and writes both."""


def in_python(name: str, value: Any = ...) -> str:
    """Write an option as Python code: ``in_python("jobs", 1)`` is `jobs=1`."""
    return f"`{name}`" if value is ... else f"`{name}={value!r}`"


_spelling: ContextVar[Spelling] = ContextVar("spelling", default=in_python)


def option(name: str, value: Any = ...) -> str:
    """Name an option in a message, with the value that it should have where one is given.

    What a user can do is called from Python and from the command line; both show the message, each
    with the names that its users know.
    """
    return _spelling.get()(name, value)


@contextmanager
def options_named_by(spelling: Spelling) -> Iterator[None]:
    """Name options in another way for as long as this is entered."""
    token = _spelling.set(spelling)
    try:
        yield
    finally:
        _spelling.reset(token)
