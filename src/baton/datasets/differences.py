"""What differs between a case as it was and as it is read back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from baton.formats.explain import Path
from baton.model import Case


class Difference(NamedTuple):
    """A value of a case that is another one, or none, in the other case."""

    path: Path
    before: Any
    after: Any

    @property
    def is_added(self) -> bool:
        """Whether the first case said nothing here; an empty list may well say something."""
        return self.before is None or (self.before in ([], {}) and self.after is not None)


def differences(before: Case, after: Case) -> list[Difference]:
    """Return where two cases differ, however deep; where they stand does not count."""
    bare = msgspec.structs.replace(before, where=None)
    return list(_differences(bare, msgspec.structs.replace(after, where=None), ()))


def _differences(before: Any, after: Any, path: Path) -> Iterator[Difference]:
    if isinstance(before, msgspec.Struct) and type(before) is type(after):
        for name in before.__struct_fields__:
            yield from _differences(getattr(before, name), getattr(after, name), (*path, name))
    elif _are_structs(before) and _are_structs(after):
        yield from _of_lists(before, after, path)
    elif _json(before) != _json(after):
        yield Difference(path, before, after)


def _of_lists(before: list[Any], after: list[Any], path: Path) -> Iterator[Difference]:
    kept = _positions(before, after)
    if kept is not None:
        for place, item in enumerate(before):
            if place not in kept:
                yield Difference((*path, place), item, None)
        return
    for place in range(max(len(before), len(after))):
        old, new = (items[place] if place < len(items) else None for items in (before, after))
        yield from _differences(old, new, (*path, place))


def _positions(before: list[Any], after: list[Any]) -> set[int] | None:
    """Return the places of ``before`` that make up ``after``; ``None`` when it holds others."""
    texts = [_json(item) for item in before]
    places, at = set(), 0
    for item in map(_json, after):
        while at < len(texts) and texts[at] != item:
            at += 1
        if at == len(texts):
            return None
        places.add(at)
        at += 1
    return places


def _are_structs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], msgspec.Struct)


def _json(value: Any) -> bytes:
    """Spell a value as a content hash does, which tells 1 from 1.0 and from true."""
    return msgspec.json.encode(value, order="deterministic")
