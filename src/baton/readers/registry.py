"""Finds readers of JSON files: each module of this package that ends with ``FORMATS = (...)``.

They are used for JSON objects that the reader of files does not recognise itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import msgspec

from baton.formats.document import Document
from baton.model import Source, Trace
from baton.plugins import module_names

from .catalog import Catalog


class FileFormat(msgspec.Struct, frozen=True):
    """A kind of JSON object with traces.

    An object with all of ``keys`` (in snake_case) is of this format. ``read`` gets the object, the
    source that its traces name, the known definitions of agents, and the id for a trace without
    one. With ``whole`` a list of such objects is read as one document, and a single one is not a
    trace.
    """

    name: str
    framework: str | None
    keys: frozenset[str]
    read: Callable[[Document, Source, Catalog, str], Iterator[Trace]]
    whole: bool = False


@cache
def formats() -> dict[str, FileFormat]:
    """Return the formats of all modules by name."""
    names = module_names(__file__)
    loaded = [importlib.import_module(f"{__package__}.{name}") for name in names]
    return {each.name: each for module in loaded for each in getattr(module, "FORMATS", ())}


def format_of(keys: Iterable[str], *, whole: bool = False) -> str | None:
    """Return the name of the format of an object with these keys, or of a list of such objects."""
    names = set(keys)
    matching = (name for name, each in formats().items() if each.keys <= names)
    return next((name for name in matching if formats()[name].whole == whole), None)
