"""Holding a judge against the labels of people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from baton.datasets.labels import HumanLabel
from baton.evaluators.judged import Judged
from baton.model import InputError
from baton.stats.agreement import Key, Together, disputed, majority, together
from baton.stats.calibration import (
    Item,
    JudgeVerdict,
    Quality,
    ReversedOrder,
    Scheme,
    Terms,
    judge_class,
    people_class,
    quality,
    reversed_order,
    scheme_of,
)
from baton.stats.intervals import Estimate
from baton.store.calibrations import Calibration, Figure, keep_calibration

from .judged import JudgedThing, terms_of
from .opinions import People, people, placed

PEOPLE, MAJORITY = "people", "majority"


class JudgeReport(msgspec.Struct, frozen=True, kw_only=True):
    """One judge over the labelled items.

    ``left_out`` counts the labelled items without a verdict of this judge, by why.
    """

    model: str
    quality: Quality
    left_out: dict[str, int]
    reversed_order: ReversedOrder | None = None


class CalibrationReport(msgspec.Struct, frozen=True, kw_only=True):
    """A rubric, its judges, and how they and people compare.

    ``people`` is how far people agree among themselves, ``disputed`` how many items they have no
    majority on. ``together`` compares every two raters.
    """

    rubric: str
    version: str
    labels: int
    people: Estimate | None
    disputed: int
    judges: list[JudgeReport]
    together: list[Together]
    split: int

    @property
    def is_evidence(self) -> bool:
        """Whether there are labels enough to speak of every judge."""
        return bool(self.judges) and all(one.quality.is_evidence for one in self.judges)


def calibration_report(
    evaluator: Judged,
    labels: Sequence[HumanLabel],
    things: Sequence[JudgedThing],
    turned: Mapping[str, Sequence[JudgedThing]] | None = None,
    renames: Mapping[str, str] | None = None,
) -> CalibrationReport:
    """Compare every model that gave verdicts with people, and with one another.

    ``turned`` has the verdicts of models on the same things asked in reverse order, ``renames``
    what cases call recorded agents.

    Raises:
        InputError: labels of what was not judged, or that the rubric does not have; two verdicts
            of one model on the same thing; no verdict of any judge.
    """
    terms = terms_of(evaluator)
    by_model = _by_model(things)
    if not by_model:
        raise InputError(f"no judge gave a verdict: {_why(things)}")
    version = _version(things)
    told = people(placed(labels, things, renames), terms)
    scheme = scheme_of(list(told.opinions.values()), terms)
    raters = _raters(told, by_model, scheme, terms)
    return CalibrationReport(
        rubric=evaluator.type,
        version=version,
        labels=len(labels),
        people=told.agreement,
        disputed=len(told.disputed),
        judges=[
            _report(model, found, told, terms, things, (turned or {}).get(model, ()))
            for model, found in by_model.items()
        ]
        if labels
        else [],
        together=[pair for pair in together(raters) if _tells(pair)],
        split=len(disputed({m: c for m, c in raters.items() if m in by_model})),
    )


def keep(report: CalibrationReport, files: Iterable[Path], root: Path) -> list[Path]:
    """Store what was found of each judge; return the files."""
    return [
        keep_calibration(
            Calibration(
                rubric=report.rubric,
                version=report.version,
                model=one.model,
                n=one.quality.n,
                agreement=_figure(one.quality.agreement),
                kappa=_figure(one.quality.kappa),
                lacking=one.quality.lacking,
                labels=[str(file) for file in files],
            ),
            root,
        )
        for one in report.judges
    ]


def _report(
    model: str,
    found: Mapping[Key, JudgedThing],
    told: People,
    terms: Terms,
    things: Sequence[JudgedThing],
    turned: Sequence[JudgedThing],
) -> JudgeReport:
    items: list[Item] = [
        (opinion, _verdict(found[key])) for key, opinion in told.opinions.items() if key in found
    ]
    why = {
        thing.key: _reason(thing)
        for thing in things
        if thing.key not in found and thing.asked in (None, model, *_models(found))
    }
    missing = (why.get(key, "not asked") for key in told.opinions if key not in found)
    return JudgeReport(
        model=model,
        quality=quality(items, terms, asked=len(told.opinions)),
        left_out=dict(sorted(Counter(missing).items())),
        reversed_order=_turned(found, {thing.key: thing for thing in turned}),
    )


def _models(found: Mapping[Key, JudgedThing]) -> set[str | None]:
    """Return the models that were asked where this one answered."""
    return {thing.asked for thing in found.values()}


def _turned(
    found: Mapping[Key, JudgedThing], turned: Mapping[Key, JudgedThing]
) -> ReversedOrder | None:
    both = [
        (one, turned[key])
        for key, one in found.items()
        if key in turned and turned[key].model is not None
    ]
    return reversed_order(
        [(_answer(a), _answer(b)) for a, b in both],
        [(a.value, b.value) for a, b in both if a.value is not None and b.value is not None],
    )


def _answer(thing: JudgedThing) -> str | float:
    return thing.label if thing.label is not None else thing.value or 0.0


def _by_model(things: Sequence[JudgedThing]) -> dict[str, dict[Key, JudgedThing]]:
    found: dict[str, dict[Key, JudgedThing]] = {}
    for thing in things:
        if thing.model is not None and thing.trouble is None:
            mine = found.setdefault(thing.model, {})
            if thing.key in mine:
                raise InputError(
                    f"{thing.model} judged `{thing.subject}` of trace `{thing.trace}` twice: "
                    "give one evaluation of each model, with one repeat"
                )
            mine[thing.key] = thing
    return found


def _raters(
    told: People,
    by_model: Mapping[str, Mapping[Key, JudgedThing]],
    scheme: Scheme,
    terms: Terms,
) -> dict[str, dict[Key, str]]:
    """Return the class that people and each judge put the things in."""
    raters: dict[str, dict[Key, str]] = {}
    for model, found in by_model.items():
        pairs = ((key, judge_class(_verdict(thing), scheme)) for key, thing in found.items())
        raters[model] = {key: name for key, name in pairs if name is not None}
    of_people = (
        (key, people_class(opinion, scheme, terms)) for key, opinion in told.opinions.items()
    )
    if len(raters) > 2:
        shared = set.intersection(*(set(found) for found in raters.values()))
        votes = {key: majority([found[key] for found in raters.values()]) for key in shared}
        raters[MAJORITY] = {key: name for key, name in votes.items() if name is not None}
    if told.opinions:
        raters[PEOPLE] = {key: name for key, name in of_people if name is not None}
    return raters


def _verdict(thing: JudgedThing) -> JudgeVerdict:
    return JudgeVerdict(
        label=thing.label,
        score=thing.value,
        passed=thing.passed,
        votes=thing.votes,
        length=thing.length,
        position=thing.position,
    )


def _reason(thing: JudgedThing) -> str:
    return "settled by findings" if thing.settled else thing.trouble or "not asked"


def _tells(pair: Together) -> bool:
    """Leave out a majority beside those it is made of."""
    return MAJORITY not in (pair.first, pair.second) or PEOPLE in (pair.first, pair.second)


def _version(things: Sequence[JudgedThing]) -> str:
    versions = sorted({thing.version for thing in things})
    if len(versions) > 1:
        raise InputError(f"judged by several versions of the rubric: {', '.join(versions)}")
    return versions[0]


def _why(things: Sequence[JudgedThing]) -> str:
    counts = Counter(_reason(thing) for thing in things)
    return ", ".join(f"{count} {why}" for why, count in counts.items()) or "nothing was judged"


def _figure(estimate: Estimate | None) -> Figure | None:
    if estimate is None:
        return None
    return Figure(value=estimate.value, low=estimate.low, high=estimate.high)
