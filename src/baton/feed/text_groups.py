"""Groups of texts: splits failures with the same signature by their reasons.

Texts become TF-IDF vectors of their words. Average linkage joins texts that share words, until no
two groups are similar enough. Beyond a few thousand texts, HDBSCAN over vectors reduced by SVD
first finds near-duplicates, as comparing all pairs would take too much memory. The same texts give
the same groups in any order. It needs scikit-learn (the extra `feed`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from baton.model import InputError
from baton.plugins.origin import install, requirement
from baton.stats.tfidf import fit, words

from .signature import mask

LEAST = 3
"""The minimum number of members of a group: two similar ones may be chance."""
_ALIKE = 0.12
"""The minimum similarity of groups with the same meaning: the mean cosine of their texts. Wordings
of one complaint (`It is rude to the customer`, `The tone is impolite and dismissive`) have 0.10 to
0.40 between them, complaints about different things 0.00 to 0.05. From 0.15 on, wordings of one
complaint fall apart; with 0.05, texts that share a common word come together. 0.12 gives more
nearly the same groups from samples of the texts than 0.1 (`benchmarks/feed.py stability`).
"""
_ALIKE_EMBEDDED = 0.3
"""The same for vectors of an API, after removing what all texts have in common."""
_KEEP = 0.75
"""Hysteresis: how much less similar an existing group may be before it is split, and how much more
similar two existing groups have to be before they are merged. With one limit for both, groups near
it would split and merge with every few failures.
"""
_ALL_PAIRS = 2_000
"""The maximum number of texts for comparing all pairs: 32 MB of similarities."""
_UNITS = 4_000
"""The most groups and single texts for comparing all pairs after HDBSCAN; with more, single texts
are only compared with groups.
"""
_DIMENSIONS = 100
"""Dimensions of HDBSCAN's vectors: 200 complaints among 10,000 texts are separated with 100, and
not with 30.
"""
_NEAREST = 0.35
"""The share of common words, weighted by their rarity, from which a new text belongs to a member's
group. Two wordings of one complaint share 0.4 to 0.8, texts of two complaints 0.0 to 0.25.
"""
Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Returns a vector for each text."""


def group_texts(
    texts: Sequence[str],
    before: Sequence[str | None] = (),
    embed: Embed | None = None,
    *,
    hold: bool = False,
) -> list[int]:
    """Return the group of each text, counted from 0 by size; -1 for no group.

    Ids and numbers are masked first, so texts that differ only in them are equal.

    Args:
        texts: in any order.
        before: the name of each text's old group, ``None`` for new or ungrouped texts. Groups are
            kept and get new texts; they are only merged or split if that is clear.
        embed: returns vectors of (masked) texts, used instead of TF-IDF.
        hold: never merge or split groups, for example if they were made from embeddings and only
            words are available now.

    Raises:
        InputError: scikit-learn is not installed.
    """
    masked = [mask(text).casefold() for text in texts]
    # In alphabetical order: the groups do not depend on the order of the texts.
    distinct = sorted(set(masked))
    had: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text, name in zip(masked, before, strict=False):
        if name is not None:
            had[text][name] += 1
    # If equal texts were in several groups, the most frequent one counts.
    usual = {text: min((-count, name) for name, count in of.items())[1] for text, of in had.items()}
    old = [usual.get(text) for text in distinct]
    label_of = dict(zip(distinct, _labels(distinct, old, embed, hold=hold), strict=True))
    labels = [label_of[text] for text in masked]
    sizes = Counter(labels)
    first: dict[int, str] = {}
    for label, text in zip(labels, masked, strict=True):
        first[label] = min(first.get(label, text), text)
    # A group whose members disappeared one by one is still the group that people know.
    known = {label_of[text] for text, name in zip(distinct, old, strict=True) if name is not None}
    large = [each for each in sizes if (sizes[each] >= LEAST or each in known) and each != -1]
    ordered = sorted(large, key=lambda label: (-sizes[label], first[label]))
    place = {label: number for number, label in enumerate(ordered)}
    return [place.get(label, -1) for label in labels]


def _labels(
    texts: Sequence[str], before: Sequence[str | None], embed: Embed | None, *, hold: bool
) -> list[int]:
    """Return a label for each distinct text; -1 if it has no word that counts."""
    try:
        import sklearn  # noqa: F401 - also what groups vectors of others
    except ImportError:
        raise InputError(
            f"groups of texts need scikit-learn: {install(requirement('feed'))}"
        ) from None
    vectors: Any = _of_words(texts) if embed is None else _embedded(embed(texts))
    if vectors is None:  # no text has a word that counts
        return [-1] * len(texts)
    filled = [place for place in range(len(texts)) if vectors[place].nnz]
    labels = [-1] * len(texts)
    old = [before[place] for place in filled]
    for place, label in zip(filled, _linked(vectors[filled], old, hold=hold), strict=True):
        labels[place] = label
    return labels


def _of_words(texts: Sequence[str]) -> Any:
    """Return TF-IDF vectors, sparse and of length 1; ``None`` if no text has a word."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    of_texts = [words(text, ENGLISH_STOP_WORDS) for text in texts]
    weights = fit(of_texts)
    if not weights.idf:
        return None
    rows = [weights.vector(each) for each in of_texts]
    places = [place for place, row in enumerate(rows) for _ in row]
    columns = [number for row in rows for number in row]
    values = [weight for row in rows for weight in row.values()]
    return csr_matrix((values, (places, columns)), shape=(len(texts), len(weights.idf)))


def _embedded(vectors: Sequence[Sequence[float]]) -> Any:
    """Return vectors of an API, adjusted so that unrelated texts have a cosine of about 0.

    For an embedding, all texts about agents are similar (cosines of 0.2 to 0.5 between different
    complaints), so the common part is removed, and the rest is scaled so that one limit fits both.
    """
    import numpy as np
    from scipy.sparse import csr_matrix
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    dense = normalize(np.asarray(vectors, dtype=float))
    dense = dense - dense.mean(axis=0)
    size = min(_DIMENSIONS, dense.shape[0] - 1, dense.shape[1] - 1)
    if size > 0 and size < dense.shape[1]:
        dense = TruncatedSVD(size, random_state=0).fit_transform(dense)
    return csr_matrix(normalize(dense) * np.sqrt(_ALIKE / _ALIKE_EMBEDDED))


def _linked(vectors: Any, before: Sequence[str | None], *, hold: bool) -> list[int]:
    """Return the group of each vector; a vector without similar ones is a separate group."""
    import numpy as np

    count = vectors.shape[0]
    unit = np.arange(count) if count <= _ALL_PAIRS else _nearly_same(vectors)
    old = _old_units(vectors, before, hold=hold)
    unit = np.where(old >= 0, int(unit.max()) + 1 + old, unit)
    single = (np.bincount(unit)[unit] == 1) & (old < 0)
    several = count - int(single.sum())
    linked = ~single if single.sum() + several > _UNITS and several else np.ones(count, bool)
    labels = np.full(count, -1)
    labels[linked] = _average_linkage(
        vectors[linked], unit[linked], old[linked] >= 0, between=0.0 if hold else _KEEP
    )
    left = np.flatnonzero(~linked)
    free = int(labels.max()) + 1
    means = _means(vectors[linked], labels[linked]) if left.size else None
    for at in range(0, left.size, 1_000):
        some = left[at : at + 1_000]
        alike = np.asarray((vectors[some] @ means.T).todense()) if means is not None else None
        for place, row in zip(some, alike, strict=True) if alike is not None else ():
            best = int(row.argmax())
            labels[place] = best if row[best] >= _ALIKE else free
            free += int(row[best] < _ALIKE)
    return [int(label) for label in labels]


def _old_units(vectors: Any, before: Sequence[str | None], *, hold: bool) -> Any:
    """Number the old groups, each with its still similar texts; -1 for no group.

    A group is split if it has parts of at least ``LEAST`` texts that are less similar than
    ``_KEEP``.
    """
    import numpy as np

    units = np.full(len(before), -1)
    members: defaultdict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(before):
        if name is not None:
            members[name].append(place)
    number = 0
    for _, places in sorted(members.items()):
        parts = np.zeros(len(places), int)
        if 2 * LEAST <= len(places) <= _ALL_PAIRS and not hold:
            own = np.arange(len(places))
            parts = _average_linkage(vectors[places], own, own < 0, alike=_ALIKE * _KEEP)
            large = np.flatnonzero(np.bincount(parts) >= LEAST)
            if large.size < 2:
                parts[:] = 0
        units[places] = number + parts
        number = int(units.max()) + 1
    return units


def _nearly_same(vectors: Any) -> Any:
    """Number the clusters of HDBSCAN, and each remaining text separately."""
    import numpy as np
    from sklearn.cluster import HDBSCAN
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    size = min(_DIMENSIONS, vectors.shape[1] - 1, vectors.shape[0] - 1)
    reduced = normalize(TruncatedSVD(size, random_state=0).fit_transform(vectors))
    dense = HDBSCAN(min_cluster_size=2, min_samples=1, cluster_selection_method="leaf", copy=True)
    unit = dense.fit(reduced).labels_.copy()
    alone = np.flatnonzero(unit == -1)
    unit[alone] = int(unit.max()) + 1 + np.arange(alone.size)
    return unit


def _average_linkage(
    vectors: Any, unit: Any, old: Any, *, alike: float = _ALIKE, between: float = _KEEP
) -> Any:
    """Join units, the most similar first, as long as their texts are similar on average.

    Args:
        vectors: one for each text.
        unit: the unit of each vector.
        old: whether it is an old group: two of these have to be more similar.
        alike: the least similarity for joining.
        between: the weight of the similarity of two old groups.
    """
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    numbers, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    if numbers.size < 2:
        return unit
    means = _means(vectors, unit)
    similar = np.asarray((means @ means.T).todense())
    known = old[first]
    similar[np.ix_(known, known)] *= between
    distance = 1.0 - similar
    np.fill_diagonal(distance, 0.0)
    joined = linkage(squareform(np.clip(distance, 0.0, 1.0), checks=False), "average")
    return fcluster(joined, 1.0 - alike, "distance")[unit] - 1


def _means(vectors: Any, unit: Any) -> Any:
    """Return the mean vector of each unit: their products are mean cosines of their texts."""
    import numpy as np
    from scipy.sparse import csr_matrix

    sizes = np.bincount(unit)
    of = (1.0 / sizes[unit], (unit, np.arange(unit.size)))
    return csr_matrix(of, shape=(sizes.size, unit.size)) @ vectors


class Event(NamedTuple):
    """A change of groups when texts were grouped again: ``old`` groups and the ``new`` one.

    ``kind`` is ``new``, ``merged`` (several old groups are one), ``split`` (one old group is
    several: the largest keeps its name), or ``gone``.
    """

    kind: str
    old: tuple[str, ...]
    new: str | None


class Kept(NamedTuple):
    """The names of groups, in their order, and the changes of old groups."""

    names: list[str]
    events: list[Event]


def keep_names(before: Mapping[str, Collection[str]], groups: Sequence[Collection[str]]) -> Kept:
    """Keep names of groups: each gets the name of the old group with the most common members.

    An old name goes to the group with the largest overlap. A group without an old name gets one
    made from its first member.

    Args:
        before: ids of members, by the name of the group.
        groups: ids of the members of each group now.
    """
    groups_with: defaultdict[str, list[int]] = defaultdict(list)
    for place, group in enumerate(groups):
        for member in set(group):
            groups_with[member].append(place)
    shared: Counter[tuple[str, int]] = Counter()
    for name, members in before.items():
        shared.update((name, place) for id_ in set(members) for place in groups_with.get(id_, ()))
    names: dict[int, str] = {}
    taken_names: set[str] = set()
    for (name, place), _ in sorted(shared.items(), key=lambda each: (-each[1], each[0])):
        if place not in names and name not in taken_names:
            names[place] = name
            taken_names.add(name)
    old_names: defaultdict[int, list[str]] = defaultdict(list)
    for name, place in sorted(shared):
        old_names[place].append(name)
    events: list[Event] = []
    taken = {*before, *taken_names}
    for place, group in enumerate(groups):
        old = tuple(old_names[place])
        if place not in names:
            names[place] = _fresh(group, taken)
            taken.add(names[place])
            events.append(Event("split" if old else "new", old, names[place]))
        elif len(old) > 1:
            events.append(Event("merged", old, names[place]))
    kept = set(names.values()) | {name for event in events for name in event.old}
    events += [Event("gone", (name,), None) for name in sorted(before) if name not in kept]
    return Kept([names[place] for place in range(len(groups))], events)


def _fresh(group: Collection[str], taken: Collection[str]) -> str:
    from hashlib import sha256

    first = min(group)
    names = (sha256(f"{first}\0{n}".encode(errors="replace")).hexdigest()[:4] for n in count())
    return next(name for name in names if name not in taken)


class Members:
    """Members of groups, for later texts: each gets the group of the nearest member, or is new.

    Args:
        members: some texts of each group, by its name.
    """

    def __init__(self, members: Mapping[str, Sequence[str]]) -> None:
        self._members = [
            (name, words) for name, texts in members.items() for words in map(_words, texts)
        ]
        self._in = Counter(word for _, words in self._members for word in words)

    def group_of(self, text: str) -> str | None:
        """Return the name of a text's group; ``None`` for a new text."""
        words = _words(text)
        best, best_name = _NEAREST, None
        for name, own in self._members:
            # Rare words say more: `refund` more than `the`.
            both = sum(self._weight(word) for word in words & own)
            either = sum(self._weight(word) for word in words | own)
            if either and both / either > best:
                best, best_name = both / either, name
        return best_name

    def _weight(self, word: str) -> float:
        return 1.0 / (1 + self._in[word])


def _words(text: str) -> frozenset[str]:
    return frozenset(words(mask(text)))


def middle_of(texts: Sequence[str]) -> str:
    """Return the text with the most words in common with the others, as their representative."""
    words = {text: _words(text) for text in texts}
    among = Counter(word for text in texts for word in words[text])

    def typical(text: str) -> float:
        own = words[text]
        return sum(among[word] for word in own) / (len(own) + 3)  # a single word is not a sentence

    return min(words, key=lambda text: (-typical(text), text), default="")
