"""Choosing some cases of a dataset: by id, tag, label or metadata, and at most so many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import msgspec

from baton.model import Case, Dataset, InputError

Keep = Callable[[Case], bool]
_METADATA = "metadata."


def choose(dataset: Dataset, filters: Sequence[str] = (), limit: int | None = None) -> Dataset:
    """Return the cases that meet every filter, at most ``limit`` of them, in their order.

    A filter is a glob over ids (``refund_*``), ``tag:NAME`` or ``metadata.KEY=VALUE``; labels
    count as metadata, and keys of nested objects are joined by dots.

    Raises:
        InputError: a filter is malformed, or nothing is left.
    """
    if not filters and limit is None:
        return dataset
    keeps = [_filter(text) for text in filters]
    if keeps:
        places = [n for n, case in enumerate(dataset) if all(keep(case) for keep in keeps)]
    else:
        places = list(range(len(dataset)))
    if not places:
        names = " and ".join(f"`{text}`" for text in filters)
        raise InputError(
            f"no case of {len(dataset)} meets {names}; a filter is a glob over ids, tag:NAME or "
            "metadata.KEY=VALUE"
        )
    return dataset.subset(places[:limit])


def _filter(text: str) -> Keep:
    if text.startswith("tag:"):
        tag = text.removeprefix("tag:")
        return lambda case: any(fnmatchcase(each, tag) for each in case.tags)
    if text.startswith(_METADATA):
        key, equals, wanted = text.removeprefix(_METADATA).partition("=")
        if not equals or not key:
            raise InputError(f"`{text}` is no filter: write `metadata.KEY=VALUE`")
        return lambda case: _metadata(case, key) == wanted
    return lambda case: case.id == text or fnmatchcase(case.id, text)


def _metadata(case: Case, key: str) -> str | None:
    """Return a value as text: strings as they are, anything else as JSON."""
    if key in case.labels:
        return case.labels[key]
    value: object = case.metadata
    for step in [key] if key in case.metadata else key.split("."):
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
