"""Groups of texts: failures that one signature cannot tell apart, by what their reasons say.

Texts become TF-IDF vectors of their words, reduced by SVD; HDBSCAN finds dense groups in them, and
leaves out what belongs to none. A group whose members share too few words is taken apart again,
and two that say the same are put together. The same texts give the same groups in any order. It
needs scikit-learn, which the extra `feed` brings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from baton.model import InputError
from baton.plugins.origin import install, requirement

from .signature import mask

_DIMENSIONS = 15
"""Of the reduced vectors. Four complaints in three wordings each, among twenty texts that are of no
kind, are found with 10 and 15 dimensions; with 30, wordings of one complaint are as far from one
another as two complaints are."""
_LEAST = 3
"""Wordings of a group: two that are alike may be chance."""
_COHERENT = 0.1
"""How alike each member of a group has to be to the others (mean cosine of their words). HDBSCAN
also finds dense places among texts that have nothing in common: there it is 0.00 to 0.05."""
_SAME = 0.3
"""How alike the words of two groups are (cosine of their sums) that say the same. HDBSCAN splits a
complaint with thirty wordings into several groups: `rude to the customer`, `rude in its tone`."""
_ALIKE = 0.35
"""The share of words that a new text and a member have in common, weighted by how rare the words
are, from which on it is of its group. Two wordings of one complaint share 0.4 to 0.8, texts of two
complaints 0.0 to 0.25."""


def group_texts(texts: Sequence[str]) -> list[int]:
    """Return the group of each text, counted from 0 by size; -1 is of none.

    Ids and numbers are masked first. Texts that are equal then count once, and are of one group.

    Raises:
        InputError: scikit-learn is not installed.
    """
    masked = [mask(text).casefold() for text in texts]
    # In the order of the alphabet: the groups do not depend on the order of the texts.
    distinct = sorted(set(masked))
    label_of = dict(zip(distinct, _labels(distinct), strict=True))
    times = Counter(masked)
    # Many equal texts are a group, also where nothing else is like them.
    free = max(label_of.values(), default=-1) + 1
    for text in distinct:
        if label_of[text] == -1 and times[text] >= _LEAST:
            label_of[text], free = free, free + 1
    return _by_size([label_of[text] for text in masked], masked)


def _labels(texts: Sequence[str]) -> list[int]:
    """Return the group of each text; all are distinct."""
    if len(texts) < 2 * _LEAST:  # too few to tell what is dense
        return [-1] * len(texts)
    try:
        from sklearn.cluster import HDBSCAN
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.preprocessing import normalize
    except ImportError:
        raise InputError(
            f"groups of texts need scikit-learn: {install(requirement('feed'))}"
        ) from None
    # Words of two letters or more; masks (`#`, `<id>`) are in nearly all texts and tell nothing.
    words = TfidfVectorizer(
        sublinear_tf=True,
        stop_words="english",
        token_pattern=r"(?u)\b[^\W\d_]\w+\b",  # noqa: S106 - of words
    )
    try:
        vectors: Any = words.fit_transform(texts)
    except ValueError:  # no text has a word that counts
        return [-1] * len(texts)
    # The SVD takes fewer dimensions than there are words and texts.
    size = min(_DIMENSIONS, vectors.shape[1] - 1, len(texts) - 1)
    if size < 2:
        return [-1] * len(texts)
    reduced = normalize(TruncatedSVD(size, random_state=0).fit_transform(vectors))
    found = HDBSCAN(
        min_cluster_size=_LEAST, min_samples=1, cluster_selection_method="leaf", copy=True
    ).fit(reduced)
    members: dict[int, list[int]] = {}
    for place, label in enumerate(found.labels_):
        if label != -1:
            members.setdefault(int(label), []).append(place)
    parts = [_coherent(vectors, each) for each in members.values()]
    groups = [part for part in parts if len(part) >= _LEAST]
    labels = [-1] * len(texts)
    for number, group in enumerate(_joined(vectors, groups)):
        for place in group:
            labels[place] = number
    return labels


def _coherent(vectors: Any, members: list[int]) -> list[int]:
    """Drop the members of a group that have too little in common with the rest, worst first."""
    while len(members) >= _LEAST:
        own = vectors[members]
        # Vectors have the length 1, so that each is as like itself as 1.
        alike = (own @ _sum(own) - 1) / (len(members) - 1)
        worst = int(alike.argmin())
        if alike[worst] >= _COHERENT:
            break
        members = [place for number, place in enumerate(members) if number != worst]
    return members


def _joined(vectors: Any, groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Put groups together whose words are alike, the most alike first."""
    import numpy as np

    joined = [[int(place) for place in group] for group in groups]
    sums = [_sum(vectors[group]) for group in joined]
    while len(joined) > 1:
        units = np.array([each / np.linalg.norm(each) for each in sums])
        alike = units @ units.T
        np.fill_diagonal(alike, -1.0)
        first, second = sorted(divmod(int(alike.argmax()), len(joined)))
        if alike[first, second] < _SAME:
            break
        joined[first] += joined.pop(second)
        sums[first] = sums[first] + sums.pop(second)
    return joined


def _sum(vectors: Any) -> Any:
    import numpy as np

    return np.asarray(vectors.sum(axis=0)).ravel()


def _by_size(labels: Sequence[int], texts: Sequence[str]) -> list[int]:
    """Number groups by size, equal ones by the first of their texts in the alphabet."""
    sizes = Counter(label for label in labels if label != -1)
    first: dict[int, str] = {}
    for label, text in zip(labels, texts, strict=True):
        first[label] = min(first.get(label, text), text)
    ordered = sorted(sizes, key=lambda label: (-sizes[label], first[label]))
    place = {label: number for number, label in enumerate(ordered)} | {-1: -1}
    return [place[label] for label in labels]


class Members:
    """Members of groups, for texts that come later: each is of the nearest member's group, or new.

    Args:
        members: some texts of each group, by its name.
    """

    def __init__(self, members: Mapping[str, Sequence[str]]) -> None:
        self._members = [
            (name, words) for name, texts in members.items() for words in map(_words, texts)
        ]
        self._in = Counter(word for _, words in self._members for word in words)

    def group_of(self, text: str) -> str | None:
        """Return the name of the group that a text is of; ``None`` for one that is new."""
        words = _words(text)
        best, best_name = _ALIKE, None
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
    return frozenset(mask(text).casefold().split())
