"""Trains the small classifier that answers before a judge, from verdicts that the judge gave.

A logistic regression over TF-IDF words and numbers (:mod:`baton.evaluators.judging.distilled`). Its
quality is measured in trials: each verdict is predicted by a model that was trained on other
conversations, and on other frameworks where there are several. Its chances are calibrated on these
trials by one temperature.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from baton.evaluators.judging.distilled import (
    DistilledModel,
    Reading,
    Trained,
    Trial,
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
"""Verdicts that are trained on, the newest: a minute of training."""
_FOLDS = 5
_MOST_FOLDS = 8
"""With more frameworks, several of them are kept apart together."""
_LEAST_OF_LABEL = 10
"""Verdicts of a label below which the model does not know it: what it says of them counts as
wrong in the trials."""
_FRAMEWORKS = 3
"""Frameworks from which on whole frameworks are kept apart in the trials."""
_FEWEST = 20
"""Verdicts of a framework below which it is no framework of its own in the trials."""
_WORDS = 5_000
_STRENGTHS = (0.03, 0.3, 3.0)
"""Inverse strengths of the penalty (``C``) that are tried; the one with the least loss is taken."""
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
    if len(verdicts) < LEAST:
        raise InputError(
            f"{counted(len(verdicts), 'verdict')} of a judge are too few to distill it: "
            f"{LEAST} are needed"
        )
    verdicts = list(verdicts)[-MOST:]
    counts = Counter(verdict.label for verdict in verdicts)
    known = [label for label in labels if counts[label] >= _LEAST_OF_LABEL]
    if len(known) < 2:
        raise InputError(
            f"nearly all verdicts are `{counts.most_common(1)[0][0]}`: there is nothing to learn "
            "to tell apart"
        )
    folds, apart = _folds(verdicts, seed)
    tried = {strength: _tried(verdicts, known, folds, strength) for strength in _STRENGTHS}
    losses = {each: _temperature(sums, verdicts, known) for each, sums in tried.items()}
    chosen = min(losses, key=lambda strength: losses[strength][1])
    temperature, loss = losses[chosen]
    trials = [
        _trial(scores, temperature, verdict.label, known)
        for scores, verdict in zip(tried[chosen], verdicts, strict=True)
    ]
    fitted = _fit(verdicts, known, chosen)
    familiar = _familiarities(verdicts, folds)
    model = fitted.model(
        rubric=rubric,
        version=version,
        temperature=temperature,
        labels=known,
        shares=[counts[label] / len(verdicts) for label in known],
        trials=trials,
        familiar=familiar[int(len(familiar) * _FAMILIAR)],
        trained=Trained(
            judge=judge,
            verdicts=len(verdicts),
            conversations=len({verdict.conversation for verdict in verdicts}),
            frameworks=sorted({verdict.framework for verdict in verdicts}),
            apart=apart,
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
        labels: list[str],
        shares: list[float],
        trials: list[Trial],
        familiar: float,
        trained: Trained,
    ) -> DistilledModel:
        """Return it as a file; the temperature goes into the weights."""
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
            weights=[[round(each / temperature, 6) for each in row] for row in self.weights],
            bias=[each / temperature for each in self.bias],
            shares=shares,
            familiar=familiar,
            trials=trials,
            trained=trained,
        )


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


def _folds(
    verdicts: Sequence[Verdict], seed: int
) -> tuple[list[int], Literal["frameworks", "conversations"]]:
    """Return the fold of each verdict: what has to be told apart is in one fold.

    One conversation is in one fold, and so is the same material under several ids. With several
    frameworks each is a fold of its own: how a framework words things is no reason for a verdict.
    """
    sizes = Counter(verdict.framework for verdict in verdicts)
    large = sorted(name for name, size in sizes.items() if size >= _FEWEST)
    if len(large) >= _FRAMEWORKS:
        number = {name: place for place, name in enumerate(large)}
        folds = min(len(large), _MOST_FOLDS)
        return [number.get(verdict.framework, 0) % folds for verdict in verdicts], "frameworks"
    groups = _groups(verdicts)
    chance = random.Random(f"distill {seed}")  # noqa: S311 - no secret is made of it
    order = sorted(set(groups))
    chance.shuffle(order)
    fold = {group: place % _FOLDS for place, group in enumerate(order)}
    return [fold[group] for group in groups], "conversations"


def _groups(verdicts: Sequence[Verdict]) -> list[int]:
    """Return the group of each verdict: of one conversation, or of the same material."""
    leader = list(range(len(verdicts)))

    def find(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    first: dict[Hashable, int] = {}
    for place, verdict in enumerate(verdicts):
        for key in (("conversation", verdict.conversation), ("material", verdict.reading.material)):
            leader[find(place)] = find(first.setdefault(key, place))
    return [find(place) for place in range(len(verdicts))]


def _tried(
    verdicts: Sequence[Verdict], labels: Sequence[str], folds: Sequence[int], strength: float
) -> list[list[float]]:
    """Return, for each verdict, the sum of each label by a model that did not see its fold."""
    found: dict[int, list[float]] = {}
    for fold in sorted(set(folds)):
        seen = [verdict for verdict, other in zip(verdicts, folds, strict=True) if other != fold]
        if len({verdict.label for verdict in seen if verdict.label in labels}) < 2:
            raise InputError(
                "without one framework all verdicts are the same: nothing can be tried"
            )
        fitted = _fit(seen, labels, strength)
        for place, other in enumerate(folds):
            if other == fold:
                found[place] = fitted.sums(verdicts[place].reading)
    return [found[place] for place in range(len(verdicts))]


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


def _familiarities(verdicts: Sequence[Verdict], folds: Sequence[int]) -> list[float]:
    """Return how many of its words a model knows that did not see them, for each verdict."""
    found = []
    for fold in sorted(set(folds)):
        pairs = list(zip(verdicts, folds, strict=True))
        tfidf = _fit_words([verdict for verdict, other in pairs if other != fold])
        found += [familiarity(tfidf, v.reading.words) for v, other in pairs if other == fold]
    return sorted(found)
