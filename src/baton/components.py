"""Components: the named texts of an agent system that may be changed.

``agent:refund`` is the instructions of the agent ``refund``, ``description:refund`` its description
for routers, ``tool:charge`` the description of a tool, and ``examples:refund`` a choice of cases. A
program gets its texts from ``baton.prompts.get``, and examples from ``baton.prompts.examples``; a
choice is passed as a text, too: the JSON of its examples.
"""

from __future__ import annotations

import base64
import binascii
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import msgspec

from baton.model import (
    Case,
    Example,
    InputError,
)

KINDS = ("agent", "description", "tool", "examples")
ENVIRONMENT = "BATON_PROMPTS"
"""Environment variable with changed texts, as a JSON object by name."""
HEADER = "X-Baton-Prompts"
"""HTTP header with changed texts: the base64 form of such an object."""

_CHANGED: dict[str, str] = {}
_REQUESTED: dict[str, tuple[str, str]] = {}
"""The program's own text, and the file that requested it, by name."""
_OF_REQUEST: ContextVar[Mapping[str, str]] = ContextVar("baton_prompts", default={})  # noqa: B039


def check_name(name: str) -> str:
    """Return a component's name unchanged; raises InputError for anything else."""
    kind, colon, of = name.partition(":")
    if not colon or not of or kind not in KINDS:
        kinds = ", ".join(f"`{each}:NAME`" for each in KINDS)
        raise InputError(f"`{name}` is not a component: write {kinds}")
    return name


def use(texts: Mapping[str, str]) -> None:
    """Make :func:`get` return these texts in this process; raises InputError for a bad name."""
    changed = {check_name(name): text for name, text in texts.items()}
    _CHANGED.clear()
    _CHANGED.update(changed)


def get(name: str, default: str) -> str:
    """Return the text of a component: ``default``, unless a replay changes it.

    Raises:
        InputError: the name is not that of a text, such as ``agent:refund``.
    """
    if are_examples(name):
        raise InputError(f"`{name}` is a selection of cases: get it with `baton.prompts.examples`")
    return _requested(name, default, sys._getframe(1).f_code.co_filename)


def examples(name: str, default: str) -> list[Example]:
    """Return cases as examples: those of ``default``, unless a replay chooses others.

    Files are read at each call: call it once, when the program is loaded.

    Args:
        name: such as ``examples:refund``.
        default: a dataset, ``FILE`` or ``FILE:case1,case2``, or a file that selects cases of a
            dataset by ``from``, ``ids`` and ``number``. Paths are relative to the calling file.

    Raises:
        InputError: the name is not that of examples, or the files have errors.
    """
    if not are_examples(name):
        raise InputError(f"`{name}` is one text: get it with `baton.prompts.get`")
    file = sys._getframe(1).f_code.co_filename
    return read_examples(_requested(name, chosen(default, Path(file).parent), file))


def are_examples(name: str) -> bool:
    """Return whether a component is a choice of examples; raises InputError for a bad name."""
    return check_name(name).startswith("examples:")


def chosen(choice: str | os.PathLike[str] | Iterable[Case], folder: Path = Path()) -> str:
    """Return a choice of cases as a text, one example per line.

    Args:
        choice: cases, or what :func:`examples` takes.
        folder: the folder that paths are relative to.

    Raises:
        InputError: the files have errors, there is no such case, or a case expects nothing, so that
            it is not an example.
    """
    # A program that only requests texts should not load the code for datasets.
    from baton.datasets.examples import as_text, chosen_cases

    if isinstance(choice, str | os.PathLike):
        return as_text(chosen_cases(os.fspath(choice), folder))
    return as_text(choice)


def read_examples(text: str) -> list[Example]:
    """Read what :func:`chosen` wrote; raises InputError for anything else."""
    try:
        return msgspec.json.decode(text, type=list[Example])
    except (msgspec.DecodeError, UnicodeError) as error:
        message = f"this is not a selection of examples: {error}; `baton.prompts.chosen` makes one"
        raise InputError(message) from None


def _requested(name: str, default: str, file: str) -> str:
    """Return the current text of a component, and record that a file requests it."""
    _REQUESTED[check_name(name)] = default, file
    of_request = _OF_REQUEST.get()
    if name in of_request:
        return of_request[name]
    if name in _CHANGED:
        return _CHANGED[name]
    stated = os.environ.get(ENVIRONMENT)
    return default if not stated else _read(stated.encode(), ENVIRONMENT).get(name, default)


def asked(is_own: Callable[[str], bool]) -> dict[str, str]:
    """Return the texts that a program requested, by name; its files are named by path."""
    return {
        name: _CHANGED.get(name, default)
        for name, (default, file) in _REQUESTED.items()
        if is_own(file)
    }


def to_environment(texts: Mapping[str, str]) -> str:
    """Write texts as the value of :data:`ENVIRONMENT`."""
    return msgspec.json.encode(texts).decode()


def to_header(texts: Mapping[str, str]) -> str:
    """Write texts as the value of :data:`HEADER`."""
    return base64.b64encode(msgspec.json.encode(texts)).decode()


@contextmanager
def handed_over(header: str | None) -> Iterator[None]:
    """Make :func:`get` return the texts of a request's header inside the block.

    A client that sends this header chooses the agents' texts: a server should accept it only in
    tests.

    Raises:
        InputError: it is not such a header.
    """
    texts: dict[str, str] = {}
    if header:
        try:
            texts = _read(base64.b64decode(header, validate=True), HEADER)
        except binascii.Error as error:
            raise InputError(f"`{HEADER}` is not base64: {error}") from None
    token = _OF_REQUEST.set(texts)
    try:
        yield
    finally:
        _OF_REQUEST.reset(token)


def _read(encoded: bytes, place: str) -> dict[str, str]:
    try:
        texts = msgspec.json.decode(encoded, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"`{place}` is not a JSON object that maps names to texts: {error}"
        ) from None
    return {check_name(name): text for name, text in texts.items()}
