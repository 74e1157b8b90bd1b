"""A small classifier that runs before a judge: its input, its output, and how sure it is.

`baton distill` trains it on the verdicts of a judge. It combines a linear model and small decision
trees. The linear model uses the words of the material, the overlap between its sections, their
facts, and the findings (:mod:`.distilled_features`). The trees use all of these but the words. The
model is stored as plain JSON: words, weights, trees and trial verdicts, never code. Using it takes
nothing but this module and :mod:`.distilled_features`.

It answers only if it had enough trials. It was tested on texts that it was not trained on and,
given several frameworks, on frameworks that it was not trained on. Its certainty limit admits as
many of the most certain trials as keep the error of all answers together below the limit. So the
error limit holds for other texts of the kinds it was trained on. Anything unlike them goes to the
judge.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from baton.findings.finding import Answer as FindingAnswer
from baton.formats.document import read_bytes
from baton.model import InputError, Problem
from baton.stats.tfidf import TfIdf

from .distilled_features import Reading, read
from .distilled_limits import Trial, limits_of
from .material import Section
from .rubric import DistilledOptions, Rubric

MOST_MIB = 32
"""The largest model file. 20,000 words with 20 labels take about 10 MiB."""
# More than `baton distill` writes, which keeps 5,000 words: a file from elsewhere must not fill the
# memory. The limits of labels and trials have the same reason.
MOST_WORDS = 20_000
_VERSION = 3
"""The file version. Models in older versions were tried on texts they had been trained on."""
_MOST_LABELS = 50
_MOST_TRIALS = 100_000
_MOST_NODES = 400_000
"""The most nodes in all trees together. 20 labels with 200 trees of depth 4 have 124,000."""


class Trained(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The training data of a model.

    ``judge`` is the model of the judge that gave the verdicts. They come from
    ``conversations`` and ``frameworks``. ``apart`` names the groups that the trials kept separate.
    ``cost_usd`` is the mean cost of one verdict of the judge. ``at`` is the time of training
    (RFC 3339).
    """

    judge: str
    verdicts: int
    conversations: int
    frameworks: list[str]
    apart: Literal["frameworks", "conversations"]
    cost_usd: float | None = None
    at: str = ""


class Tree(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A decision tree, as a list of nodes.

    Node ``n`` tests the feature ``number[n]``. If its value is at most ``limit[n]``, the tree
    continues at ``left[n]``, else at ``right[n]``. A node whose ``number`` is -1 is a leaf, which
    adds ``limit[n]`` to the sum of a label. Children come after their parents.
    """

    number: list[int]
    limit: list[float]
    left: list[int]
    right: list[int]

    def of(self, values: Sequence[float]) -> float:
        """Return the amount that the tree adds, given the values of all numeric features."""
        at = 0
        while (number := self.number[at]) >= 0:
            at = self.left[at] if values[number] <= self.limit[at] else self.right[at]
        return self.limit[at]


class DistilledModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of a model. ``weights`` has a row for each label: first words, then numbers.

    ``means`` and ``scales`` belong to the numbers (:func:`numbers_of`), by name. ``trees`` are
    the trees of each label, if any. They use the unscaled numbers. ``familiar`` is the share of a
    text's words that the model has to know. ``shares`` is how often the judge gave each label.
    """

    format: Literal["baton distilled judge"]
    format_version: int = _VERSION
    rubric: str
    rubric_version: str
    labels: Annotated[list[str], msgspec.Meta(min_length=2, max_length=_MOST_LABELS)]
    words: Annotated[list[str], msgspec.Meta(max_length=MOST_WORDS)]
    idf: Annotated[list[float], msgspec.Meta(max_length=MOST_WORDS)]
    numbers: Annotated[list[str], msgspec.Meta(max_length=2_000)]
    means: list[float]
    scales: list[float]
    weights: list[list[float]]
    bias: list[float]
    shares: list[float]
    familiar: float
    trials: Annotated[list[Trial], msgspec.Meta(max_length=_MOST_TRIALS)]
    trained: Trained
    trees: Annotated[list[list[Tree]], msgspec.Meta(max_length=_MOST_LABELS)] = []


class Guess(NamedTuple):
    """A classifier's answer about a subject: ``sure`` from 0 to 1, and whether that is enough.

    ``error`` is the share of wrong answers among trials that were at least as sure. ``limit`` is
    the highest share allowed. ``audited`` means that the judge is called too.
    """

    label: str
    sure: float
    familiar: float
    answers: bool
    error: float | None = None
    audited: bool = False
    limit: float = 0.0


class Distilled:
    """A model that is ready for use.

    Args:
        model: the trained model.
        options: when it may answer.
        version: a hash of the file.
    """

    def __init__(self, model: DistilledModel, options: DistilledOptions, version: str) -> None:
        self.model, self.options, self.version = model, options, version
        self._tfidf = TfIdf(
            number={word: place for place, word in enumerate(model.words)}, idf=model.idf
        )
        self.limits = limits_of(model.trials, model.shares, options.max_error)

    def guess(self, sections: Sequence[Section], answers: Mapping[str, FindingAnswer]) -> Guess:
        """Predict the judge's verdict on a subject, and whether it can replace that verdict."""
        return self.guess_of(read(sections, answers))

    def guess_of(self, reading: Reading) -> Guess:
        """Predict the verdict from a reading made earlier."""
        chances, familiar = predict(self.model, self._tfidf, reading)
        place = max(range(len(chances)), key=chances.__getitem__)
        label, sure = self.model.labels[place], certainty(chances[place])
        limit = self.limits.get(place)
        answers_ = (
            limit is not None and sure >= limit.sure and familiar >= self.model.familiar - 1e-9
        )
        if limit is None or not answers_:
            return Guess(label, sure, familiar, answers=False)
        # The material decides, so every run audits the same subjects, on any machine.
        drawn = int(reading.material[:8], 16) / 16**8
        return Guess(
            label,
            sure,
            familiar,
            answers=True,
            error=limit.error,
            audited=drawn < self.options.audit,
            limit=self.options.max_error,
        )


def predict(model: DistilledModel, tfidf: TfIdf, reading: Reading) -> tuple[list[float], float]:
    """Return the chance of each label (they sum to 1), and the share of known words."""
    sums = sums_of(
        model.weights, model.bias, model.means, model.scales, model.numbers, tfidf, reading
    )
    if model.trees:
        added = added_by(model.trees, model.numbers, reading)
        sums = [one + more for one, more in zip(sums, added, strict=True)]
    return softmax(sums), familiarity(tfidf, reading.words)


def sums_of(
    weights: Sequence[Sequence[float]],
    bias: Sequence[float],
    means: Sequence[float],
    scales: Sequence[float],
    numbers: Sequence[str],
    tfidf: TfIdf,
    reading: Reading,
) -> list[float]:
    """Return the sum of each label: its weights times the words and numbers of a subject."""
    vector = tfidf.vector(reading.words)
    values = [
        (reading.numbers.get(name, 0.0) - mean) / scale
        for name, mean, scale in zip(numbers, means, scales, strict=True)
    ]
    first = len(tfidf.idf)
    return [
        start
        + math.fsum(row[place] * weight for place, weight in vector.items())
        + math.fsum(row[first + at] * value for at, value in enumerate(values))
        for row, start in zip(weights, bias, strict=True)
    ]


def added_by(
    trees: Sequence[Sequence[Tree]], numbers: Sequence[str], reading: Reading
) -> list[float]:
    """Return the amount that each label's trees add to its sum."""
    values = [reading.numbers.get(name, 0.0) for name in numbers]
    return [math.fsum(tree.of(values) for tree in own) for own in trees]


def certainty(chance: float) -> float:
    """Return a chance rounded as in trials, because the two are compared."""
    return round(chance, 6)


def softmax(sums: Sequence[float]) -> list[float]:
    """Return chances that sum to 1."""
    highest = max(sums)
    powers = [math.exp(each - highest) for each in sums]
    total = math.fsum(powers)
    return [each / total for each in powers]


def familiarity(tfidf: TfIdf, terms: Iterable[str]) -> float:
    """Return the share of a text's distinct words that a model knows, or 1 for no words."""
    different = set(terms)
    return sum(term in tfidf.number for term in different) / len(different) if different else 1.0


def distilled_in(options: DistilledOptions, rubric: Rubric) -> Distilled:
    """Return the classifier from the file that the options name.

    Raises:
        InputError: the file is unreadable, or belongs to another rubric or rubric version.
    """
    path = Path(options.file)
    try:
        stat = path.stat()
    except OSError as error:
        message = f"{error.strerror}: `baton distill` writes a distilled judge"
        raise InputError(Problem(file=str(path), message=message)) from None
    model, version = _load(path, stat.st_mtime_ns, stat.st_size)
    problem = None
    if model.rubric != rubric.name:
        problem = f"it belongs to the rubric `{model.rubric}`, not to `{rubric.name}`"
    elif model.rubric_version != rubric.version:
        problem = (
            f"it was trained on version {model.rubric_version} of `{rubric.name}`, which now has "
            f"version {rubric.version}: train it again on new verdicts"
        )
    elif not set(model.labels) <= set(rubric.answer.labels or {}):
        problem = f"it has labels that `{rubric.name}` does not have"
    elif any(rubric.answer.score_of(label) is None for label in model.labels):
        problem = f"it has a label that has no score in `{rubric.name}`"
    if problem is not None:
        raise InputError(Problem(file=str(path), message=problem))
    return Distilled(model, options, version)


@lru_cache(maxsize=8)
def _load(path: Path, _time: int, size: int) -> tuple[DistilledModel, str]:
    if size > MOST_MIB * 2**20:
        message = f"larger than {MOST_MIB} MiB: it is not a distilled judge"
        raise InputError(Problem(file=str(path), message=message))
    data = read_bytes(path)
    problem: str | None
    try:
        model = msgspec.json.decode(data, type=DistilledModel)
        if model.format_version != _VERSION:
            age = "an older" if model.format_version < _VERSION else "a newer"
            message = f"{age} version of Baton wrote this distilled judge: train it again"
            raise InputError(Problem(file=str(path), message=message))
        problem = next(_faults(model), None)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = str(error)
    if problem is not None:
        raise InputError(Problem(file=str(path), message=f"a damaged distilled judge: {problem}"))
    return model, hashlib.sha256(data).hexdigest()[:8]


def _faults(model: DistilledModel) -> Iterator[str]:
    """Yield the inconsistencies of a model. Every number has to be finite."""
    labels, features = len(model.labels), len(model.words) + len(model.numbers)
    sizes = {
        "idf": (len(model.idf), len(model.words)),
        "means": (len(model.means), len(model.numbers)),
        "scales": (len(model.scales), len(model.numbers)),
        "weights": (len(model.weights), labels),
        "bias": (len(model.bias), labels),
        "shares": (len(model.shares), labels),
    }
    for name, (is_, should) in sizes.items():
        if is_ != should:
            yield f"`{name}` has {is_} entries instead of {should}"
    for row in model.weights:
        if len(row) != features:
            yield f"a row of `weights` has {len(row)} entries instead of {features}"
    yield from _faults_of_trees(model)
    if len(set(model.labels)) != labels or len(set(model.words)) != len(model.words):
        yield "a label or a word is a duplicate"
    lists = [model.idf, model.means, model.scales, model.bias, model.shares, *model.weights]
    if not all(abs(number) < 1e9 for numbers in lists for number in numbers):
        yield "a number is too large"
    if not all(scale > 1e-9 for scale in model.scales):
        yield "a scale is 0"
    if not all(0 <= share <= 1 for share in [*model.shares, model.familiar]):
        yield "a share is not between 0 and 1"
    if not all(0 <= each.label < labels and 0 <= each.sure <= 1 for each in model.trials):
        yield "a trial has an unknown label, or a certainty that is not between 0 and 1"


def _faults_of_trees(model: DistilledModel) -> Iterator[str]:
    if len(model.trees) not in (0, len(model.labels)):
        yield f"`trees` has {len(model.trees)} entries instead of {len(model.labels)}"
    every = [tree for own in model.trees for tree in own]
    if sum(len(tree.number) for tree in every) > _MOST_NODES:
        yield f"more than {_MOST_NODES:,} nodes of trees"
        return
    for tree in every:
        size = len(tree.number)
        if not size or {len(tree.limit), len(tree.left), len(tree.right)} != {size}:
            yield "the lists of a tree are not equally long"
            return
        for at, number in enumerate(tree.number):
            if not -1 <= number < len(model.numbers):
                yield "a tree uses a number that does not exist"
            elif number >= 0 and not (at < tree.left[at] < size and at < tree.right[at] < size):
                yield "a node of a tree does not come after its parent"  # it would never end
        if not all(abs(limit) < 1e9 for limit in tree.limit):
            yield "a number of a tree is too large"
