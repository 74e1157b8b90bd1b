"""Trains the small classifier that answers before a judge, from the judge's verdicts.

A logistic regression over TF-IDF words and numbers, and gradient boosted trees over the numbers
(:mod:`baton.evaluators.judging.distilled_features`). Its quality is measured in trials: each
verdict is predicted by a model that was trained on other texts, and on other frameworks if there
are several. It is not enough to keep conversations apart: a model that was trained on ten answers
to one result knows the result, and is much surer of the eleventh answer than of any other text. The
trials also choose the weight of the trees and the penalty of the regression, and its probabilities
are calibrated on them with one temperature.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from baton.evaluators.judging.distilled import (
    DistilledModel,
    Trained,
    Tree,
    added_by,
    certainty,
    familiarity,
    softmax,
    sums_of,
)
from baton.evaluators.judging.distilled_features import OF_FACTS, Reading
from baton.evaluators.judging.distilled_limits import Trial
from baton.model import InputError, counted
from baton.plugins.origin import install, requirement
from baton.stats.tfidf import TfIdf, Vector, fit

LEAST = 500
"""The minimum number of verdicts to train on: showing an error of at most 5 % takes 60 right
answers in a row, and usually half of the verdicts are unclear ones."""
MOST = 20_000
"""The number of newest verdicts to train on: a few minutes of training for two labels."""
_FOLDS = 5
"""The number of parts of the texts: the texts of one part are held out together."""
_MOST_FRAMEWORKS = 4
"""The number of parts of the frameworks. Each is combined with each part of the texts: 20
trainings."""
_LEAST_OF_LABEL = 10
"""The minimum number of verdicts with a label. With fewer, the model does not know the label, and
its predictions for these verdicts count as wrong in the trials."""
_FRAMEWORKS = 3
"""The minimum number of frameworks for holding out whole frameworks in the trials."""
_FEWEST = 20
"""The minimum number of verdicts for a framework to count as a separate one in the trials."""
# The most frequent ones: a word in one or two of some hundred verdicts says nothing about the next.
_WORDS = 5_000
_STRENGTHS = (0.001, 0.003, 0.03, 0.3)
"""The inverse strengths of the penalty (``C``) to try; the one with the lowest loss is used."""
_TREES: dict[str, Any] = {
    "n_estimators": 100,
    "learning_rate": 0.1,
    "max_depth": 2,
    "min_samples_leaf": 10,
    "subsample": 0.5,
    "max_features": 0.2,
}
"""Small trees with much randomness: with a thousand verdicts, other trees learn them by heart."""
_SHARES = (0.0, 0.5, 1.0)
"""The weights of the trees in a sum to try. Words are good predictors if all material is of one
kind. Across frameworks the overlap of the sections predicts better, and its effect is seldom
linear."""
_MOST_OF_ONE = 0.5
"""The maximum share of verdicts in one group of texts, to leave enough to train on."""
_FAMILIAR = 0.02
"""The share of trials with fewer known words than the limit of familiarity."""


class Verdict(NamedTuple):
    """A verdict of a judge: what was judged, the label, and the origin."""

    reading: Reading
    label: str
    conversation: str
    framework: str


class Report(NamedTuple):
    """The results of training.

    Args:
        agreement: the share of all trials that predict the judge's label.
        usual: the share of the commonest label, which is the agreement of always predicting it.
        loss: the mean, over the trials, of the negative logarithm of the right label's probability.
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
    """Train a model, and try it on verdicts that it was not trained on.

    Args:
        verdicts: the verdicts of one judge on one version of a rubric.
        rubric: the rubric.
        version: its version.
        judge: the model of the judge.
        labels: the labels of the rubric, in its order.
        cost_usd: the average cost of a verdict.
        seed: the seed of random draws.
        now: the time to write into the file.

    Raises:
        InputError: there are too few verdicts, or only one label, or scikit-learn is not installed.
    """
    try:
        import sklearn.linear_model  # noqa: F401
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise InputError(
            f"distilling needs scikit-learn: {install(requirement('improve'))}"
        ) from None
    # Keep only the newest verdict on the same material: copies would make trials look surer than
    # they are.
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
    # Several threads for a matrix of a few hundred rows wait for each other: a third slower.
    with threadpool_limits(1):
        # The last model of each fold is the trees; the others are regressions by strength.
        *linears, by_trees = _tried(
            verdicts,
            known,
            folds,
            lambda seen: [*_fit(seen, known, _STRENGTHS), _fit_trees(seen, known, seed)],
        )
    tried: dict[tuple[float, float], list[list[float]]] = {}
    for strength, linear in zip(_STRENGTHS, linears, strict=True):
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
    (fitted,) = _fit(verdicts, known, [strength])
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
        """Return the model as a file; weights and leaves include temperature and share of trees."""
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
    """Trained trees of each label over numbers, and the initial value of each label's sum."""

    numbers: list[str]
    start: list[float]
    by_label: list[list[Tree]]

    def sums(self, reading: Reading) -> list[float]:
        """Return the sum of each label for a thing."""
        added = added_by(self.by_label, self.numbers, reading)
        return [one + more for one, more in zip(self.start, added, strict=True)]

    def trees(self, numbers: Sequence[str], times: float) -> list[list[Tree]]:
        """Return the trees with renumbered numbers, and leaves multiplied.

        The initial value of a sum is a tree of one leaf.
        """
        place = [numbers.index(name) for name in self.numbers]
        by_class = []
        for start, own in zip(self.start, self.by_label, strict=True):
            trees = [Tree([-1], [round(start * times, 6)], [0], [0])]
            for tree in own:
                number = [each if each < 0 else place[each] for each in tree.number]
                limit = [
                    value if of >= 0 else round(value * times, 6)
                    for of, value in zip(number, tree.limit, strict=True)
                ]
                trees.append(Tree(number, limit, tree.left, tree.right))
            by_class.append(trees)
        return by_class


def _fit(
    verdicts: Sequence[Verdict], labels: Sequence[str], strengths: Sequence[float]
) -> list[_Fitted]:
    """Train with each strength on verdicts; those with an unknown label are left out."""
    import numpy as np
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    own = [verdict for verdict in verdicts if verdict.label in labels]
    tfidf = _fit_words(own)
    names = sorted({name for verdict in own for name in verdict.reading.numbers})
    table = np.array([[each.reading.numbers.get(name, 0.0) for name in names] for each in own])
    means, scales = table.mean(axis=0), table.std(axis=0)
    scales[scales < 1e-6] = 1.0  # the same everywhere, so it predicts nothing
    features = hstack([_rows(own, tfidf), csr_matrix((table - means) / scales)]).tocsr()
    targets = [labels.index(verdict.label) for verdict in own]
    steps = []
    for strength in strengths:
        model = LogisticRegression(C=strength, max_iter=2_000)
        model.fit(features, targets)
        weights, bias = model.coef_, model.intercept_
        if len(model.classes_) == 2:  # one row stands for both labels
            weights = np.vstack([-weights / 2, weights / 2])
            bias = np.array([-bias[0], bias[0]]) / 2
        by_label = {int(label): place for place, label in enumerate(model.classes_)}
        order = [by_label.get(place) for place in range(len(labels))]
        # A label that is in no conversation of this fold is never predicted.
        none = [0.0] * features.shape[1]
        steps.append(
            _Fitted(
                tfidf,
                names,
                [float(each) for each in means],
                [float(each) for each in scales],
                [none if at is None else [float(each) for each in weights[at]] for at in order],
                [-50.0 if at is None else float(bias[at]) for at in order],
            )
        )
    return steps


def _fit_trees(verdicts: Sequence[Verdict], labels: Sequence[str], seed: int) -> _Grown:
    """Grow trees on verdicts; those with an unknown label are left out.

    Trees over facts and trees over all other numbers are grown separately, and each counts half.
    """
    own = [verdict for verdict in verdicts if verdict.label in labels]
    names = sorted({name for verdict in own for name in verdict.reading.numbers})
    parts = [
        [name for name in names if name.startswith(OF_FACTS) == of_facts]
        for of_facts in (False, True)
    ]
    grown = [_grow(own, labels, part, seed) for part in parts if part]
    by_label: list[list[Tree]] = [[] for _ in labels]
    for one in grown:
        for place, trees in enumerate(one.trees(names, 1 / len(grown))):
            by_label[place] += trees
    return _Grown(names, [0.0 for _ in labels], by_label)


def _grow(own: Sequence[Verdict], labels: Sequence[str], names: list[str], seed: int) -> _Grown:
    """Grow trees over some of the numbers."""
    import numpy as np
    from sklearn.ensemble import GradientBoostingClassifier

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
    start = [-50.0 for _ in labels]  # a label without a verdict is never predicted
    for place, label in enumerate(present):
        trees[label] = by_class[place]
        start[label] = math.log(counts[label] / len(own))
    return _Grown(names, start, trees)


def _tree(grown: Any, times: float) -> Tree:
    """Return a tree of scikit-learn as plain lists, with its leaves multiplied."""
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
    # A word that occurs in only one conversation is a name, and says nothing about others.
    return fit([verdict.reading.words for verdict in verdicts], least=2, most=_WORDS)


class _Folds(NamedTuple):
    """The part of the texts, and of the frameworks, that each verdict belongs to."""

    texts: list[int]
    frameworks: list[int]
    apart: Literal["frameworks", "conversations"]


def _folds(verdicts: Sequence[Verdict]) -> _Folds:
    """Return the parts of each verdict: verdicts that must be held out together are in one part.

    A conversation is in one part of the texts. So are copies of the same material under several
    ids, and materials that share a section: ten answers to one result are not ten texts, and a
    model that has seen nine of them knows the tenth. If there are several frameworks, they have
    parts as well: the way a framework words things is no reason for a verdict. A recording of two
    frameworks at once counts for the first of them.
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
    """Return the group of each verdict: verdicts of one conversation, or with an identical section.

    A section that is the same nearly everywhere, such as the question of a load test, does not
    distinguish texts: while most verdicts are in one group, the section with the fewest texts is
    left out.
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
    fit_: Callable[[Sequence[Verdict]], Sequence[_Fitted | _Grown]],
) -> list[list[list[float]]]:
    """Try models on verdicts of other texts and frameworks than those they were trained on.

    Returns:
        By model of ``fit_``: each verdict's sum of each label.
    """
    tried: dict[int, list[list[float]]] = {}
    for places, seen in _parts(verdicts, folds):
        if len({verdict.label for verdict in seen if verdict.label in labels}) < 2:
            raise InputError(
                "without one framework, or one group of texts, all verdicts are the same: nothing "
                "can be tested"
            )
        models = fit_(seen)
        for place in places:
            tried[place] = [model.sums(verdicts[place].reading) for model in models]
    by_verdict = [tried[place] for place in range(len(verdicts))]
    return [list(sums) for sums in zip(*by_verdict, strict=True)]


def _parts(verdicts: Sequence[Verdict], folds: _Folds) -> Iterator[tuple[list[int], list[Verdict]]]:
    """Yield indexes of verdicts that are tried together, and the verdicts to train on."""
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
    """Return the temperature with which the probabilities fit the trials best, and its loss.

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

    # From 0.25 (chances become more extreme) to 22 (nearly equal), each a quarter larger.
    temperatures = [0.25 * 1.25**step for step in range(21)]
    best = min(temperatures, key=loss)
    return best, loss(best)


def _trial(sums: Sequence[float], temperature: float, said: str, labels: Sequence[str]) -> Trial:
    chances = softmax([each / temperature for each in sums])
    place = max(range(len(chances)), key=chances.__getitem__)
    return Trial(place, certainty(chances[place]), labels[place] == said)


def _familiarities(verdicts: Sequence[Verdict], folds: _Folds) -> list[float]:
    """Return, for each verdict, how many of its words a model knows that was not trained on it."""
    values: list[float] = []
    for places, seen in _parts(verdicts, folds):
        tfidf = _fit_words(seen)
        values += [familiarity(tfidf, verdicts[place].reading.words) for place in places]
    return sorted(values)
