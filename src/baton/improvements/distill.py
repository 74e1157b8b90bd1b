"""Trains the small classifier that answers before a judge, from verdicts that the judge gave.

A logistic regression over TF-IDF words and numbers, and gradient boosted trees over the numbers
(:mod:`baton.evaluators.judging.distilled`). Its quality is measured in trials: each verdict is
predicted by a model that was trained on other texts, and on other frameworks where there are
several. It is not enough to keep conversations apart: where ten answers to one result are trained
on, a model knows the result, and is much surer of the eleventh than of any other text. How much
the trees count is chosen by these trials, and so is the penalty of the regression; its chances are
calibrated on them by one temperature.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, NamedTuple

from baton.evaluators.judging.distilled import (
    DistilledModel,
    Reading,
    Trained,
    Tree,
    Trial,
    added_by,
    certainty,
    familiarity,
    softmax,
    sums_of,
)
from baton.model import InputError, counted
from baton.plugins.origin import install, requirement
from baton.stats.tfidf import TfIdf, Vector, fit

LEAST = 500
"""Verdicts below which nothing is trained: an error of 5 % takes 60 right answers in a row to show,
and half of the verdicts are usually the unclear ones."""
MOST = 20_000
"""Verdicts that are trained on, the newest: some minutes of training for two labels."""
_FOLDS = 5
"""Parts of the texts: those of one part are kept apart together."""
_MOST_FRAMEWORKS = 4
"""Parts of the frameworks. Each of them is combined with each part of the texts: 20 trainings."""
_LEAST_OF_LABEL = 10
"""Verdicts of a label below which the model does not know it: what it says of them counts as
wrong in the trials."""
_FRAMEWORKS = 3
"""Frameworks from which on whole frameworks are kept apart in the trials."""
_FEWEST = 20
"""Verdicts of a framework below which it is no framework of its own in the trials."""
_WORDS = 5_000
_STRENGTHS = (0.03, 0.3)
"""Inverse strengths of the penalty (``C``) that are tried; the one with the least loss is taken."""
_TREES: dict[str, Any] = {
    "n_estimators": 100,
    "learning_rate": 0.1,
    "max_depth": 2,
    "min_samples_leaf": 10,
    "subsample": 0.5,
    "max_features": 0.2,
}
"""Small trees with much chance in them: with a thousand verdicts others learn them by heart."""
_SHARES = (0.0, 0.5, 1.0)
"""Shares that trees may have in a sum. Words tell where all is of one kind; across frameworks it is
how the sections overlap, which is seldom a straight line."""
_MOST_OF_ONE = 0.5
"""The share of verdicts that one group of texts may have, to leave enough to train on."""
_FAMILIAR = 0.02
"""The share of trials that have fewer known words than the limit of familiarity."""


class Verdict(NamedTuple):
    """A verdict of a judge: what was judged, what it said, and where it is from."""

    reading: Reading
    label: str
    conversation: str
    framework: str


class Report(NamedTuple):
    """What came of training.

    Args:
        agreement: of all trials, the share that says what the judge said.
        usual: the share of the commonest label: what one reaches by always saying that.
        loss: mean of the negative logarithm of the chance of the right label, over the trials.
    """

    model: DistilledModel
    agreement: float
    usual: float
    loss: float


def train(
    verdicts: Sequence[Verdict],
    *,
    rubric: str,
    version: str,
    judge: str,
    labels: Sequence[str],
    cost_usd: float | None = None,
    seed: int = 0,
    now: datetime | None = None,
) -> Report:
    """Train a model, and try it on what it was not trained on.

    Args:
        verdicts: those of one judge on one version of a rubric.
        rubric: which rubric that is.
        version: its version.
        judge: the model of the judge.
        labels: those the rubric has, in its order.
        cost_usd: what a verdict cost on average.
        seed: of what is drawn.
        now: the time that the file names.

    Raises:
        InputError: too few verdicts, one label alone, or scikit-learn is missing.
    """
    try:
        import sklearn.linear_model  # noqa: F401
    except ImportError:
        raise InputError(
            f"distilling needs scikit-learn: {install(requirement('improve'))}"
        ) from None
    # Of the same material the newest: copies would make trials look surer than they are.
    given = len(verdicts)
    verdicts = list({verdict.reading.material: verdict for verdict in verdicts}.values())
    if len(verdicts) < LEAST:
        copies = "" if len(verdicts) == given else f", apart from {given - len(verdicts)} copies,"
        raise InputError(
            f"{counted(len(verdicts), 'verdict')} of a judge{copies} are too few to distill it: "
            f"{LEAST} are needed; judge more recordings first"
        )
    verdicts = verdicts[-MOST:]
    counts = Counter(verdict.label for verdict in verdicts)
    known = [label for label in labels if counts[label] >= _LEAST_OF_LABEL]
    if len(known) < 2:
        raise InputError(
            f"nearly all verdicts are `{counts.most_common(1)[0][0]}`: there is nothing to learn "
            "to tell apart"
        )
    folds = _folds(verdicts)
    by_trees = _tried(verdicts, known, folds, partial(_fit_trees, labels=known, seed=seed))
    tried: dict[tuple[float, float], list[list[float]]] = {}
    for strength in _STRENGTHS:
        fit_linear = partial(_fit, labels=known, strength=strength)
        linear = _tried(verdicts, known, folds, fit_linear)
        for share in _SHARES:
            tried[strength, share] = [
                [(1 - share) * one + share * other for one, other in zip(*rows, strict=True)]
                for rows in zip(linear, by_trees, strict=True)
            ]
    losses = {each: _temperature(sums, verdicts, known) for each, sums in tried.items()}
    chosen = min(losses, key=lambda each: losses[each][1])
    temperature, loss = losses[chosen]
    trials = [
        _trial(scores, temperature, verdict.label, known)
        for scores, verdict in zip(tried[chosen], verdicts, strict=True)
    ]
    strength, trees = chosen
    fitted = _fit(verdicts, known, strength)
    grown = _fit_trees(verdicts, known, seed) if trees else None
    familiar = _familiarities(verdicts, folds)
    model = fitted.model(
        rubric=rubric,
        version=version,
        temperature=temperature,
        grown=grown,
        share=trees,
        labels=known,
        shares=[counts[label] / len(verdicts) for label in known],
        trials=trials,
        familiar=familiar[int(len(familiar) * _FAMILIAR)],
        trained=Trained(
            judge=judge,
            verdicts=len(verdicts),
            conversations=len({verdict.conversation for verdict in verdicts}),
            frameworks=sorted({verdict.framework for verdict in verdicts}),
            apart=folds.apart,
            cost_usd=cost_usd,
            at=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
        ),
    )
    right = sum(trial.right for trial in trials) / len(trials)
    return Report(model, right, counts.most_common(1)[0][1] / len(verdicts), loss)


class _Fitted(NamedTuple):
    """A trained regression: words, numbers with their means and scales, weights by label."""

    tfidf: TfIdf
    numbers: list[str]
    means: list[float]
    scales: list[float]
    weights: list[list[float]]
    bias: list[float]

    def sums(self, reading: Reading) -> list[float]:
        """Return the sum of each label for a thing."""
        return sums_of(
            self.weights, self.bias, self.means, self.scales, self.numbers, self.tfidf, reading
        )

    def model(
        self,
        *,
        rubric: str,
        version: str,
        temperature: float,
        grown: _Grown | None,
        share: float,
        labels: list[str],
        shares: list[float],
        trials: list[Trial],
        familiar: float,
        trained: Trained,
    ) -> DistilledModel:
        """Return it as a file; temperature and the share of trees go into weights and leaves."""
        words = sorted(self.tfidf.number, key=self.tfidf.number.__getitem__)
        return DistilledModel(
            format="baton distilled judge",
            rubric=rubric,
            rubric_version=version,
            labels=labels,
            words=words,
            idf=[round(each, 6) for each in self.tfidf.idf],
            numbers=self.numbers,
            means=self.means,
            scales=self.scales,
            weights=[
                [round(each * (1 - share) / temperature, 6) for each in row] for row in self.weights
            ],
            bias=[each * (1 - share) / temperature for each in self.bias],
            shares=shares,
            familiar=familiar,
            trials=trials,
            trained=trained,
            trees=[] if grown is None else grown.trees(self.numbers, share / temperature),
        )


class _Grown(NamedTuple):
    """Trained trees of each label over numbers, and where the sum of each label begins."""

    numbers: list[str]
    start: list[float]
    by_label: list[list[Tree]]

    def sums(self, reading: Reading) -> list[float]:
        """Return the sum of each label for a thing."""
        added = added_by(self.by_label, self.numbers, reading)
        return [one + more for one, more in zip(self.start, added, strict=True)]

    def trees(self, numbers: Sequence[str], times: float) -> list[list[Tree]]:
        """Return the trees with other numbers of the numbers, and leaves multiplied.

        Where sums begin is a tree of one leaf.
        """
        place = [numbers.index(name) for name in self.numbers]
        found = []
        for start, own in zip(self.start, self.by_label, strict=True):
            trees = [Tree([-1], [round(start * times, 6)], [0], [0])]
            for tree in own:
                number = [each if each < 0 else place[each] for each in tree.number]
                limit = [
                    value if of >= 0 else round(value * times, 6)
                    for of, value in zip(number, tree.limit, strict=True)
                ]
                trees.append(Tree(number, limit, tree.left, tree.right))
            found.append(trees)
        return found


def _fit(verdicts: Sequence[Verdict], labels: Sequence[str], strength: float) -> _Fitted:
    """Train on verdicts; those with a label that is not known are left out."""
    import numpy as np
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    own = [verdict for verdict in verdicts if verdict.label in labels]
    tfidf = _fit_words(own)
    names = sorted({name for verdict in own for name in verdict.reading.numbers})
    table = np.array([[each.reading.numbers.get(name, 0.0) for name in names] for each in own])
    means, scales = table.mean(axis=0), table.std(axis=0)
    scales[scales < 1e-6] = 1.0  # it is the same everywhere, and tells nothing
    features = hstack([_rows(own, tfidf), csr_matrix((table - means) / scales)]).tocsr()
    model = LogisticRegression(C=strength, max_iter=2_000)
    model.fit(features, [labels.index(verdict.label) for verdict in own])
    weights, bias = model.coef_, model.intercept_
    if len(model.classes_) == 2:  # one row stands for both labels
        weights, bias = np.vstack([-weights / 2, weights / 2]), np.array([-bias[0], bias[0]]) / 2
    by_label: dict[int, int] = {int(label): place for place, label in enumerate(model.classes_)}
    order = [by_label.get(place) for place in range(len(labels))]
    # A label that is in no conversation of this fold is never guessed.
    none = [0.0] * features.shape[1]
    return _Fitted(
        tfidf,
        names,
        [float(each) for each in means],
        [float(each) for each in scales],
        [none if at is None else [float(each) for each in weights[at]] for at in order],
        [-50.0 if at is None else float(bias[at]) for at in order],
    )


def _fit_trees(verdicts: Sequence[Verdict], labels: Sequence[str], seed: int) -> _Grown:
    """Grow trees on verdicts; those with a label that is not known are left out."""
    import numpy as np
    from sklearn.ensemble import GradientBoostingClassifier

    own = [verdict for verdict in verdicts if verdict.label in labels]
    names = sorted({name for verdict in own for name in verdict.reading.numbers})
    table = np.array([[each.reading.numbers.get(name, 0.0) for name in names] for each in own])
    model = GradientBoostingClassifier(random_state=seed, **_TREES)
    model.fit(table, [labels.index(verdict.label) for verdict in own])
    counts = Counter(labels.index(verdict.label) for verdict in own)
    present = [int(label) for label in model.classes_]
    if len(present) == 2:  # one row of trees stands for both labels: the second against the first
        grown = [_tree(each.tree_, model.learning_rate / 2) for each in model.estimators_[:, 0]]
        against = [_tree(each.tree_, -model.learning_rate / 2) for each in model.estimators_[:, 0]]
        by_class = [against, grown]
    else:
        by_class = [
            [_tree(each.tree_, model.learning_rate) for each in model.estimators_[:, place]]
            for place in range(len(present))
        ]
    trees: list[list[Tree]] = [[] for _ in labels]
    start = [-50.0 for _ in labels]  # a label that is in none of these verdicts is never guessed
    for place, label in enumerate(present):
        trees[label] = by_class[place]
        start[label] = math.log(counts[label] / len(own))
    return _Grown(names, start, trees)


def _tree(grown: Any, times: float) -> Tree:
    """Return a tree of scikit-learn as plain lists, its leaves multiplied."""
    leaf = [int(each) < 0 for each in grown.children_left]
    return Tree(
        [-1 if ends else int(each) for ends, each in zip(leaf, grown.feature, strict=True)],
        [
            float(value) * times if ends else float(limit)
            for ends, value, limit in zip(leaf, grown.value[:, 0, 0], grown.threshold, strict=True)
        ],
        [0 if ends else int(each) for ends, each in zip(leaf, grown.children_left, strict=True)],
        [0 if ends else int(each) for ends, each in zip(leaf, grown.children_right, strict=True)],
    )


def _rows(verdicts: Sequence[Verdict], tfidf: TfIdf) -> Any:
    from scipy.sparse import csr_matrix

    vectors: list[Vector] = [tfidf.vector(verdict.reading.words) for verdict in verdicts]
    places = [place for place, vector in enumerate(vectors) for _ in vector]
    columns = [number for vector in vectors for number in vector]
    values = [weight for vector in vectors for weight in vector.values()]
    return csr_matrix((values, (places, columns)), shape=(len(verdicts), len(tfidf.idf)))


def _fit_words(verdicts: Sequence[Verdict]) -> TfIdf:
    # A word of one conversation alone is a name, and says nothing of others.
    return fit([verdict.reading.words for verdict in verdicts], least=2, most=_WORDS)


class _Folds(NamedTuple):
    """The part of the texts, and of the frameworks, that each verdict belongs to."""

    texts: list[int]
    frameworks: list[int]
    apart: Literal["frameworks", "conversations"]


def _folds(verdicts: Sequence[Verdict]) -> _Folds:
    """Return the parts of each verdict: what has to be told apart is in one part.

    One conversation is in one part of the texts, and so is the same material under several ids, and
    what shares a section: ten answers to one result are no ten texts, and who has seen nine of them
    knows the tenth. With several frameworks they have parts as well: how a framework words things
    is no reason for a verdict. What was recorded by two frameworks at once is of the first of them.
    """
    groups = _groups(verdicts)
    texts = _packed(_by_texts(verdicts), _FOLDS)
    sizes = Counter(verdict.framework for verdict in verdicts)
    large = [name for name, size in sizes.items() if size >= _FEWEST]
    if len(large) < _FRAMEWORKS:
        return _Folds(texts, [0] * len(verdicts), "conversations")
    first: dict[int, str] = {}
    for group, verdict in zip(groups, verdicts, strict=True):
        first.setdefault(group, verdict.framework)
    return _Folds(
        texts, _packed([first[group] for group in groups], _MOST_FRAMEWORKS), "frameworks"
    )


def _packed(groups: Sequence[Any], parts: int) -> list[int]:
    """Put groups into parts of about the same size; return the part of each member."""
    loads = [0] * parts
    part: dict[Any, int] = {}
    for group, size in sorted(Counter(groups).items(), key=lambda each: (-each[1], str(each[0]))):
        part[group] = min(range(parts), key=loads.__getitem__)
        loads[part[group]] += size
    return [part[group] for group in groups]


def _by_texts(verdicts: Sequence[Verdict]) -> list[int]:
    """Return the group of each verdict: of one conversation, or with a section that is the same.

    A section that is the same nearly everywhere, as the question of a load test is, tells no texts
    apart: while most verdicts are in one group, the section with the fewest texts is left out.
    """
    texts: dict[str, set[str]] = {}
    for verdict in verdicts:
        for name, text in verdict.reading.texts:
            texts.setdefault(name, set()).add(text)
    names = sorted(texts, key=lambda name: (len(texts[name]), name))
    while True:
        groups = _groups(verdicts, frozenset(names))
        if not names or Counter(groups).most_common(1)[0][1] <= len(verdicts) * _MOST_OF_ONE:
            return groups
        del names[0]


def _groups(verdicts: Sequence[Verdict], sections: frozenset[str] = frozenset()) -> list[int]:
    """Return the group of each verdict: same conversation, material, or text of a section."""
    leader = list(range(len(verdicts)))

    def find(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    first: dict[Hashable, int] = {}
    for place, verdict in enumerate(verdicts):
        shared = [each for each in verdict.reading.texts if each[0] in sections]
        for key in (
            ("conversation", verdict.conversation),
            ("material", verdict.reading.material),
            *shared,
        ):
            leader[find(place)] = find(first.setdefault(("of", *key), place))
    return [find(place) for place in range(len(verdicts))]


def _tried(
    verdicts: Sequence[Verdict],
    labels: Sequence[str],
    folds: _Folds,
    fit_: Callable[[Sequence[Verdict]], _Fitted | _Grown],
) -> list[list[float]]:
    """Return, for each verdict, the sum of each label by a model of other texts and frameworks."""
    found: dict[int, list[float]] = {}
    for places, seen in _parts(verdicts, folds):
        if len({verdict.label for verdict in seen if verdict.label in labels}) < 2:
            raise InputError(
                "without one framework, or one group of texts, all verdicts are the same: nothing "
                "can be tried"
            )
        fitted = fit_(seen)
        for place in places:
            found[place] = fitted.sums(verdicts[place].reading)
    return [found[place] for place in range(len(verdicts))]


def _parts(verdicts: Sequence[Verdict], folds: _Folds) -> Iterator[tuple[list[int], list[Verdict]]]:
    """Yield the places of verdicts that are tried together, and what is trained on for them."""
    cells: dict[tuple[int, int], list[int]] = {}
    for place, cell in enumerate(zip(folds.texts, folds.frameworks, strict=True)):
        cells.setdefault(cell, []).append(place)
    several = folds.apart == "frameworks"
    for (text, framework), places in sorted(cells.items()):
        yield (
            places,
            [
                verdict
                for verdict, own, made_by in zip(
                    verdicts, folds.texts, folds.frameworks, strict=True
                )
                if own != text and not (several and made_by == framework)
            ],
        )


def _temperature(
    sums: Sequence[Sequence[float]], verdicts: Sequence[Verdict], labels: Sequence[str]
) -> tuple[float, float]:
    """Return the temperature that makes the chances fit the trials best, and the loss with it.

    C. Guo and others, "On calibration of modern neural networks" (2017).
    """
    places = [labels.index(v.label) if v.label in labels else None for v in verdicts]

    def loss(temperature: float) -> float:
        total = 0.0
        for row, place in zip(sums, places, strict=True):
            # A label that the model does not know costs as much as a chance of 1 %.
            chance = 0.01 if place is None else softmax([s / temperature for s in row])[place]
            total -= math.log(max(chance, 1e-12))
        return total / len(sums)

    temperatures = [0.25 * 1.25**step for step in range(21)]
    best = min(temperatures, key=loss)
    return best, loss(best)


def _trial(sums: Sequence[float], temperature: float, said: str, labels: Sequence[str]) -> Trial:
    chances = softmax([each / temperature for each in sums])
    place = max(range(len(chances)), key=chances.__getitem__)
    return Trial(place, certainty(chances[place]), labels[place] == said)


def _familiarities(verdicts: Sequence[Verdict], folds: _Folds) -> list[float]:
    """Return how many of its words a model knows that did not see them, for each verdict."""
    found: list[float] = []
    for places, seen in _parts(verdicts, folds):
        tfidf = _fit_words(seen)
        found += [familiarity(tfidf, verdicts[place].reading.words) for place in places]
    return sorted(found)
