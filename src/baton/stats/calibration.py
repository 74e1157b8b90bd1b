"""Measure a judge: its agreement with people and with itself, and agreement between raters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import fmean
from typing import Literal, TypeVar

import msgspec

from baton.model import counted
from baton.model.score import passes

from .intervals import Z95, Estimate, mean_interval, needed_for, rank_correlation, share, wilson

Label = TypeVar("Label", bound=Hashable)
Pair = tuple[Label, Label]
Weight = Callable[[Label, Label], float]


class ClassQuality(msgspec.Struct, frozen=True, kw_only=True):
    """The quality of a judge's verdicts for one label.

    ``labelled`` counts the items with this label from people, ``judged`` those with this label from
    the judge, ``both`` those with both. ``precision`` is ``both / judged``, ``recall`` is ``both /
    labelled``; ``None`` if that divides by 0.
    """

    label: str
    labelled: int
    judged: int
    both: int
    precision: Estimate | None
    recall: Estimate | None


def agreement(pairs: Sequence[Pair[Label]]) -> Estimate | None:
    """Estimate the share of items to which both raters give the same label."""
    return share(sum(a == b for a, b in pairs), len(pairs))


def kappa(pairs: Sequence[Pair[Label]], weight: Weight[Label] | None = None) -> Estimate | None:
    """Estimate Cohen's kappa: agreement beyond chance, 1 at most, 0 for chance alone.

    ``kappa = (p_o - p_e) / (1 - p_e)``: J. Cohen, "A coefficient of agreement for nominal
    scales", Educational and Psychological Measurement 20 (1960). With ``weight``, it is the
    weighted kappa of J. Cohen, Psychological Bulletin 70 (1968): the weight of two labels is 1 if
    they are equal and falls to 0 with their distance. ``None`` if there are no items, or if both
    raters always use the same single label, because kappa is 0/0 then.

    The interval covers two intervals:

    - that of the large-sample standard error of J. L. Fleiss, J. Cohen and B. S. Everitt, "Large
      sample standard errors of kappa and weighted kappa", Psychological Bulletin 72 (1969), which
      has the width 0 if all labels agree;
    - Wilson's interval of the agreement, converted by the formula above with a fixed ``p_e``.
      Weights may vary less than agreement does. Then it is computed for a larger number of items,
      the effective sample size of E. L. Korn and B. I. Graubard, Survey Methodology 24 (1998).
    """
    n = len(pairs)
    if n == 0:
        return None
    weigh = weight or (lambda a, b: float(a == b))
    cells = Counter(pairs)
    rows, columns = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = math.fsum(weigh(a, b) * count for (a, b), count in cells.items()) / n
    expected = (
        math.fsum(weigh(a, b) * i * j for a, i in rows.items() for b, j in columns.items()) / n**2
    )
    if expected > 1 - 1e-12:
        return None
    value = (observed - expected) / (1 - expected)
    reach = Z95 * _standard_error(cells, rows, columns, weigh, observed, expected)
    squares = math.fsum(weigh(a, b) ** 2 * count for (a, b), count in cells.items()) / n
    spread = squares - observed**2
    size = n * observed * (1 - observed) / spread if spread > 1e-12 else n
    ends = [(min(end, 1.0) - expected) / (1 - expected) for end in wilson(observed, size)]
    return Estimate(
        value=value,
        low=max(-1.0, min(value - reach, ends[0])),
        high=min(1.0, max(value + reach, ends[1])),
        n=n,
    )


def squared_weight(scores: Mapping[Label, float]) -> Weight[Label]:
    """Return a weight: 1 minus the squared distance of scores, relative to the largest one."""
    span = max(scores.values()) - min(scores.values())

    def weight(a: Label, b: Label) -> float:
        return 1.0 if not span else 1 - ((scores[a] - scores[b]) / span) ** 2

    return weight


def classes(pairs: Sequence[Pair[str]], labels: Sequence[str] = ()) -> list[ClassQuality]:
    """Return precision and recall of every label; pairs are (people's label, the judge's label).

    ``labels`` come first and in this order, even if they do not occur.
    """
    labelled, judged = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    both = Counter(a for a, b in pairs if a == b)
    names = [*labels, *sorted({*labelled, *judged} - set(labels))]
    return [
        ClassQuality(
            label=name,
            labelled=labelled[name],
            judged=judged[name],
            both=both[name],
            precision=share(both[name], judged[name]),
            recall=share(both[name], labelled[name]),
        )
        for name in names
    ]


def confusion(pairs: Sequence[Pair[str]]) -> list[tuple[str, str, int]]:
    """Return how often each (people's label, the judge's label) occurs, sorted by label."""
    return [(a, b, count) for (a, b), count in sorted(Counter(pairs).items())]


def _standard_error(
    cells: Mapping[Pair[Label], int],
    rows: Mapping[Label, int],
    columns: Mapping[Label, int],
    weigh: Weight[Label],
    observed: float,
    expected: float,
) -> float:
    """Formula 13 of Fleiss, Cohen and Everitt (1969); their formula 8 for weights of 0 and 1."""
    n = sum(rows.values())
    of_row = {a: math.fsum(weigh(a, b) * j / n for b, j in columns.items()) for a in rows}
    of_column = {b: math.fsum(weigh(a, b) * i / n for a, i in rows.items()) for b in columns}
    spread = (
        (weigh(a, b) * (1 - expected) - (of_row[a] + of_column[b]) * (1 - observed), count)
        for (a, b), count in cells.items()
    )
    total = math.fsum(term**2 * count / n for term, count in spread)
    rest = (observed * expected - 2 * expected + observed) ** 2
    return math.sqrt(max(total - rest, 0.0) / n) / (1 - expected) ** 2


Key = tuple[str, str]
"""The ids of a trace and of the judged item in it."""


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of two raters on the ``n`` items that both judged."""

    first: str
    second: str
    n: int
    agreement: Estimate | None
    kappa: Estimate | None


def together(raters: Mapping[str, Mapping[Key, str]]) -> list[Together]:
    """Compare every pair of raters, in the given order; a rater maps items to classes."""
    return [_pair(a, b, raters[a], raters[b]) for a, b in combinations(raters, 2)]


def disputed(raters: Mapping[str, Mapping[Key, str]]) -> list[Key]:
    """Return the items that all raters judged, but with different results."""
    if not raters:
        return []
    shared = set.intersection(*(set(answers) for answers in raters.values()))
    return sorted(key for key in shared if len({answers[key] for answers in raters.values()}) > 1)


def majority(answers: Sequence[str]) -> str | None:
    """Return the answer of more than half; ``None`` if no answer has a majority."""
    for answer in dict.fromkeys(answers):
        if 2 * answers.count(answer) > len(answers):
            return answer
    return None


def _pair(a: str, b: str, first: Mapping[Key, str], second: Mapping[Key, str]) -> Together:
    pairs = [(first[key], second[key]) for key in first if key in second]
    return Together(first=a, second=b, n=len(pairs), agreement=agreement(pairs), kappa=kappa(pairs))


Answer = str | float
"""A verdict: a label, or a number."""


class Votes(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of one item: the number of samples for each answer, and the range of scores."""

    counts: Mapping[str, int]
    spread: float = 0.0


class SelfAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The consistency of a judge: the same answer to the same question.

    ``unanimous`` is the share of items with samples that all agree; ``fewest`` and ``most`` are
    the smallest and largest number of samples of an item. ``spread`` is the mean distance between
    the lowest and the highest score of an item.
    """

    unanimous: Estimate
    spread: Estimate
    fewest: int
    most: int


class ReversedOrder(msgspec.Struct, frozen=True, kw_only=True):
    """How verdicts change when a judge reads the choices in reverse order.

    ``changed`` is the share of items whose verdict changed; ``shift`` is the change of the mean
    score.
    """

    changed: Estimate
    shift: Estimate | None = None


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """Spearman's rho of scores and errors with properties that should not matter.

    ``score_length`` and ``error_length`` are correlations with the length of the judged text in
    characters; ``score_position`` and ``error_position`` with its position among the judged items
    of its trace. An error is the distance between judge and people, 0 if they agree. ``None`` if
    unknown.
    """

    score_length: Estimate | None = None
    error_length: Estimate | None = None
    score_position: Estimate | None = None
    error_position: Estimate | None = None


def self_agreement(votes: Sequence[Votes]) -> SelfAgreement | None:
    """Measure agreement on items with several samples; ``None`` if there is no such item.

    This counts items whose samples all agree, not pairs of samples. Sampling stops when further
    samples cannot change the verdict, so that agreeing pairs would be counted too often.
    """
    several = [one for one in votes if sum(one.counts.values()) > 1]
    unanimous = share(sum(len(one.counts) == 1 for one in several), len(several))
    if unanimous is None:
        return None
    spread = mean_interval([one.spread for one in several])
    taken = [sum(one.counts.values()) for one in several]
    return SelfAgreement(unanimous=unanimous, spread=spread, fewest=min(taken), most=max(taken))


def reversed_order(
    answers: Sequence[tuple[Answer, Answer]], scores: Sequence[tuple[float, float]]
) -> ReversedOrder | None:
    """Compare the verdicts of each item in normal and reverse order: pairs (normal, reverse)."""
    changed = share(sum(a != b for a, b in answers), len(answers))
    if changed is None:
        return None
    moved = [after - before for before, after in scores]
    return ReversedOrder(changed=changed, shift=mean_interval(moved) if moved else None)


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with properties that must not affect it; ``error`` is the distance from people."""

    score: float
    error: float | None
    length: int | None
    position: int


def effects(items: Sequence[Placed]) -> Effects:
    """Correlate scores and errors with length and position."""
    long = [(one, float(one.length)) for one in items if one.length is not None]
    placed = [(one, float(one.position)) for one in items]
    return Effects(
        score_length=_with_score(long),
        error_length=_with_error(long),
        score_position=_with_score(placed),
        error_position=_with_error(placed),
    )


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """Items to which a judge gave similar scores: their number, and people's scores for them.

    ``low`` and ``high`` are the lowest and highest score of the judge, ``judge`` is the mean of its
    scores, ``people`` the mean score from people.
    """

    low: float
    high: float
    judge: float
    people: Estimate


class Reliability(msgspec.Struct, frozen=True, kw_only=True):
    """Bins of scores, and the mean distance from people's scores, weighted by the size of bins."""

    bins: list[Bin]
    expected_error: float


def reliability(scores: Sequence[tuple[float, float]], limit: int = 10) -> Reliability | None:
    """Compare a judge's scores with people's scores; pairs are (people's, the judge's).

    There is a bin for each score, or, for more than ``limit`` different scores, ``limit`` bins of
    equal size.
    ``expected_error`` is the expected calibration error of M. P. Naeini, G. F. Cooper and
    M. Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI (2015):
    the sum over bins of (items / all items) times |mean of judge - mean of people|.
    """
    if not scores:
        return None
    ordered = sorted(((judge, people) for people, judge in scores), key=lambda one: one[0])
    bins = [_bin(group) for group in _grouped(ordered, limit)]
    error = sum(one.people.n * abs(one.judge - one.people.value) for one in bins) / len(scores)
    return Reliability(bins=bins, expected_error=error)


# A judge with few labels gets a bin for each label. A judge that answers with numbers would have
# bins of one item, whose rate is 0 or 1, if each number had its own bin.
def _grouped(ordered: list[tuple[float, float]], limit: int) -> list[list[tuple[float, float]]]:
    values = sorted({judge for judge, _ in ordered})
    if len(values) <= limit:
        return [[one for one in ordered if one[0] == value] for value in values]
    size = len(ordered)
    cuts = [number * size // limit for number in range(limit + 1)]
    return [ordered[a:b] for a, b in pairwise(cuts) if a < b]


def _bin(group: Sequence[tuple[float, float]]) -> Bin:
    judged, people = [one[0] for one in group], [one[1] for one in group]
    plain = set(people) <= {0.0, 1.0}
    estimate = share(int(sum(people)), len(people)) if plain else mean_interval(people)
    if estimate is None:
        raise ValueError("a bin has at least one item")
    return Bin(low=judged[0], high=judged[-1], judge=fmean(judged), people=estimate)


def _with_score(pairs: Sequence[tuple[Placed, float]]) -> Estimate | None:
    return rank_correlation([one.score for one, _ in pairs], [x for _, x in pairs])


def _with_error(pairs: Sequence[tuple[Placed, float]]) -> Estimate | None:
    known = [(one.error, x) for one, x in pairs if one.error is not None]
    return rank_correlation([error for error, _ in known], [x for _, x in known])


LEAST_ITEMS = 40
"""The minimum number of labelled items. Seed sets of dispatches start at 40."""
LEAST_OF_CLASS = 8
"""The minimum for each of two labels: otherwise a judge with one constant answer looks good."""
WIDEST = 0.1
"""The maximum half-width of the 95 % interval of agreement."""
LEAST_ANSWERED = 0.9
"""The minimum share of labelled items that a judge must have answered."""


def lacking(
    agreement: Estimate | None, classes: Sequence[ClassQuality], *, asked: int
) -> list[str]:
    """Return why labels are not evidence; empty if they are.

    Evidence needs ``LEAST_ITEMS`` items with a label and a verdict, two labels with
    ``LEAST_OF_CLASS`` items each, an interval of agreement of at most ``WIDEST`` to either side,
    and verdicts on ``LEAST_ANSWERED`` of the ``asked`` items.
    """
    n = agreement.n if agreement is not None else 0
    reasons = []
    if n < LEAST_ITEMS:
        reasons.append(f"{counted(n, 'label')}, at least {LEAST_ITEMS} are needed")
    filled = [one for one in classes if one.labelled >= LEAST_OF_CLASS]
    if len(filled) < 2:
        counts = ", ".join(f"{one.labelled} `{one.label}`" for one in classes if one.labelled)
        reasons.append(
            f"at least {LEAST_OF_CLASS} of each of two labels are needed, there are "
            f"{counts or 'none'}"
        )
    reach = agreement.half_width if agreement is not None else None
    if agreement is not None and n >= LEAST_ITEMS and reach is not None and reach > WIDEST:
        needed = needed_for(agreement.value, WIDEST)
        reasons.append(
            f"agreement is only known to ±{reach:.2f}; about {needed} labels "
            f"are needed for ±{WIDEST:.2f}"
        )
    if asked and n < LEAST_ANSWERED * asked:
        reasons.append(f"the judge gave a verdict on {n} of {asked}, {LEAST_ANSWERED:.0%} needed")
    return reasons


def too_few(count: int) -> bool:
    """Return whether a class has too few items for its precision or recall to be quoted."""
    return count < LEAST_OF_CLASS


PASSED, FAILED = "passed", "failed"
_PLAIN = {PASSED: 1.0, FAILED: 0.0}


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The possible answers to a rubric: its labels with their scores; no labels for a scale.

    A score passes if it is at least ``threshold``, or at most if less is better (``higher`` is
    false). ``bounds`` limit the scale on which people and judges answer; with ``normalise``, scores
    are converted to 0 to 1.
    """

    labels: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    threshold: float = 0.5
    higher: bool = True
    bounds: tuple[float, float] = (0.0, 1.0)
    normalise: bool = False

    def passes(self, score: float) -> bool:
        """Return whether a score passes, with a tolerance of 1e-9."""
        return passes(score, self.threshold, higher=self.higher)

    def score(self, answer: float) -> float:
        """Convert a number on the scale to a score.

        Raises:
            ValueError: the number is not on the scale.
        """
        low, high = self.bounds
        if not low <= answer <= high:
            raise ValueError(f"{answer:g} is not on the scale, which goes from {low:g} to {high:g}")
        return (answer - low) / (high - low) if self.normalise else answer


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """People's opinion of one item: a label of the rubric, ``passed`` or ``failed``, or a score."""

    label: str | None = None
    score: float | None = None


class JudgeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's verdict on one item.

    ``votes`` are the samples, if there were several. ``length`` is the length of the judged text in
    characters. ``position`` is the item's position among those of its trace, from 1.
    """

    label: str | None
    score: float | None
    passed: bool | None
    votes: Votes | None = None
    length: int | None = None
    position: int = 1


Item = tuple[Opinion, JudgeVerdict]
Scheme = Literal["labels", "verdicts"]


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """The quality of a judge, measured on labelled items; figures that are unknown are ``None``.

    ``compared`` says what was compared: the rubric's ``labels``, or ``verdicts`` (passed or
    failed). ``asked`` counts the labelled items, ``n`` those that also have a verdict.
    ``weighted_kappa`` weighs disagreement by the squared distance of scores. ``distance`` is the
    mean absolute difference of scores, ``rank`` their rank correlation. ``lacking`` lists the
    reasons why this is not evidence.
    """

    asked: int
    n: int
    compared: Scheme
    agreement: Estimate | None
    kappa: Estimate | None
    weighted_kappa: Estimate | None
    classes: list[ClassQuality]
    confusion: list[tuple[str, str, int]]
    distance: Estimate | None
    rank: Estimate | None
    reliability: Reliability | None
    self_agreement: SelfAgreement | None
    effects: Effects
    lacking: list[str]

    @property
    def is_evidence(self) -> bool:
        """Whether there are enough labels."""
        return not self.lacking


def scheme_of(opinions: Sequence[Opinion], terms: Terms) -> Scheme:
    """Return what to compare: labels, if the rubric has some and people used only these.

    If some people said `passed` and others `correct`, all opinions are compared by whether they
    pass.
    """
    plain = {PASSED, FAILED} - set(terms.labels)
    if not terms.labels or any(one.label in plain for one in opinions):
        return "verdicts"
    return "labels"


def opinion_fault(opinion: Opinion, scheme: Scheme, terms: Terms) -> str | None:
    """Return why an opinion cannot be compared; ``None`` if it can."""
    if people_class(opinion, scheme, terms) is not None:
        return None
    if opinion.label is not None:
        if opinion.label in terms.labels:
            return f"`{opinion.label}` neither passes nor fails, and others say `{PASSED}`"
        known = list(terms.labels) if scheme == "labels" else [PASSED, FAILED]
        return f"the rubric has no label `{opinion.label}`; known: {', '.join(known)}"
    return f"no label of the rubric has the score {opinion.score:g}"


def people_class(opinion: Opinion, scheme: Scheme, terms: Terms) -> str | None:
    """Return the class of an opinion; ``None`` if it has none."""
    if scheme == "labels":
        if opinion.label is not None:
            return opinion.label if opinion.label in terms.labels else None
        with_score = (name for name, score in terms.labels.items() if score == opinion.score)
        return next(with_score, None)
    score = opinion.score
    if opinion.label is not None:
        score = terms.labels.get(opinion.label)
        if score is None:
            return opinion.label if opinion.label in (PASSED, FAILED) else None
    return _verdict(score is not None and terms.passes(score))


def judge_class(verdict: JudgeVerdict, scheme: Scheme) -> str | None:
    """Return the class of a verdict; ``None`` if it has none."""
    if scheme == "labels":
        return verdict.label
    return None if verdict.passed is None else _verdict(verdict.passed)


def quality(items: Sequence[Item], terms: Terms, *, asked: int) -> Quality:
    """Measure a judge; all opinions have to be comparable (see :func:`opinion_fault`).

    ``asked`` is the number of items with a label, with or without a verdict.
    """
    scheme = scheme_of([opinion for opinion, _ in items], terms)
    pairs = [
        (people, judge)
        for opinion, verdict in items
        if (people := people_class(opinion, scheme, terms)) is not None
        and (judge := judge_class(verdict, scheme)) is not None
    ]
    names = list(terms.labels) if scheme == "labels" else [PASSED, FAILED]
    agreed, qualities = agreement(pairs), classes(pairs, names)
    scores = [
        (score, verdict.score)
        for opinion, verdict in items
        if (score := score_of(opinion, terms)) is not None and verdict.score is not None
    ]
    placed = [_placed(*item, scheme, terms) for item in items if item[1].score is not None]
    graded = len({score for pair in scores for score in pair}) > 2
    return Quality(
        asked=asked,
        n=len(pairs),
        compared=scheme,
        agreement=agreed,
        kappa=kappa(pairs),
        weighted_kappa=_weighted(pairs, scores, scheme, terms) if graded else None,
        classes=qualities,
        confusion=confusion(pairs),
        distance=mean_interval([abs(a - b) for a, b in scores]) if graded else None,
        rank=rank_correlation([a for a, _ in scores], [b for _, b in scores]) if graded else None,
        reliability=reliability(scores),
        self_agreement=self_agreement([v.votes for _, v in items if v.votes is not None]),
        effects=effects(placed),
        lacking=lacking(agreed, qualities, asked=asked),
    )


def score_of(opinion: Opinion, terms: Terms) -> float | None:
    """Return the score of an opinion or of its label; 1 for passed and 0 for failed."""
    if opinion.score is not None:
        return opinion.score
    label = opinion.label or ""
    return terms.labels[label] if label in terms.labels else _PLAIN.get(label)


def _weighted(
    pairs: Sequence[tuple[str, str]],
    scores: Sequence[tuple[float, float]],
    scheme: Scheme,
    terms: Terms,
) -> Estimate | None:
    if scheme == "labels":
        known = {name: score for name, score in terms.labels.items() if score is not None}
        known_pairs = [pair for pair in pairs if set(pair) <= set(known)]
        return kappa(known_pairs, squared_weight(known)) if known_pairs else None
    return kappa(scores, squared_weight({score: score for pair in scores for score in pair}))


def _placed(opinion: Opinion, verdict: JudgeVerdict, scheme: Scheme, terms: Terms) -> Placed:
    people, judge = people_class(opinion, scheme, terms), judge_class(verdict, scheme)
    of_people, score = score_of(opinion, terms), verdict.score or 0.0
    error = None if people is None or judge is None else float(people != judge)
    if of_people is not None:
        error = abs(of_people - score)
    return Placed(score=score, error=error, length=verdict.length, position=verdict.position)


def _verdict(passed: bool) -> str:
    return PASSED if passed else FAILED
