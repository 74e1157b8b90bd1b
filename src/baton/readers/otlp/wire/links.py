"""Traces that belong together because their spans name one another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def components(keys: Iterable[K], pairs: Iterable[tuple[K, K]]) -> list[list[K]]:
    """Return the sets of keys that the pairs connect, keys and sets in the order given."""
    near: dict[K, list[K]] = {key: [] for key in keys}
    for one, other in pairs:
        near[one].append(other)
        near[other].append(one)
    place = {key: index for index, key in enumerate(near)}
    seen: set[K] = set()
    found = []
    for key in near:
        if key in seen:
            continue
        seen.add(key)
        component = [key]
        for member in component:
            new = [other for other in near[member] if other not in seen]
            seen.update(new)
            component.extend(dict.fromkeys(new))
        found.append(sorted(component, key=place.__getitem__))
    return found


def nearest_labels(labels: dict[int, str], pairs: Iterable[tuple[int, int]]) -> dict[int, str]:
    """Give keys without a label that of the nearest one that has, over ``pairs``.

    Of several that are equally near the least label is taken, so that the order of the input
    does not matter. What reaches none is left out.
    """
    near: dict[int, set[int]] = defaultdict(set)
    for one, other in pairs:
        near[one].add(other)
        near[other].add(one)
    found: dict[int, str] = {}
    edge = {key: label for key, label in labels.items() if key in near}
    while edge:
        reached: dict[int, str] = {}
        for key, label in edge.items():
            for other in near[key]:
                if other not in labels and other not in found:
                    reached[other] = min(label, reached.get(other, label))
        found.update(reached)
        edge = reached
    return found
