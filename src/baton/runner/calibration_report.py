"""How far a judge and people agree: match labels with judged things, and compute figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from baton.datasets.labels import Label
from baton.evaluators.judged import Judged
from baton.evaluators.judging.evidence import FINDINGS, answers_of
from baton.evaluators.judging.subject import Subject
from baton.findings.finding import Clear, NotRecorded
from baton.model import EvalContext, InputError, Problem, Trace, counted, nearest, suggestion
from baton.stats.calibration import (
    Item,
    JudgeVerdict,
    Key,
    Opinion,
    Quality,
    ReversedOrder,
    Scheme,
    Terms,
    Together,
    disputed,
    judge_class,
    majority,
    opinion_fault,
    people_class,
    quality,
    reversed_order,
    scheme_of,
    together,
)
from baton.stats.intervals import Estimate, share
from baton.store.calibrations import Calibration, better_calibration, keep_calibration

from .judged_subjects import JudgedThing, terms_of


class People(msgspec.Struct, frozen=True, kw_only=True):
    """The opinion of the majority on each thing.

    ``disputed`` things have several labels and no majority. ``agreement`` is the share of pairs of
    people with the same label for the same thing; ``None`` if nothing is labelled twice.
    """

    opinions: Mapping[Key, Opinion]
    disputed: list[Key]
    agreement: Estimate | None


def placed(
    labels: Sequence[Label],
    things: Iterable[JudgedThing],
    renames: Mapping[str, str] | None = None,
) -> dict[Key, list[Label]]:
    """Find the subject of each label; cases call recorded agents by their ``renames``.

    Raises:
        InputError: lists all labels with a missing or ambiguous subject.
    """
    by_trace: dict[str, dict[str, JudgedThing]] = {}
    by_case: dict[str, dict[Key, JudgedThing]] = {}
    for thing in things:
        by_trace.setdefault(thing.trace, {})[thing.subject] = thing
        by_case.setdefault(thing.case, {})[thing.key] = thing
    by_thing: dict[Key, list[Label]] = {}
    problems: list[Problem] = []
    for label in labels:
        key: Key | str
        if label.trace is not None:
            trace, subject = label.trace, str(label.what)
            if trace not in by_trace:
                key = f"no trace `{trace}` to judge; {_hint(trace, by_trace)}"
            elif subject not in by_trace[trace]:
                there = _hint(subject, by_trace[trace])
                key = f"trace `{trace}` has no `{subject}` to judge; {there}"
            else:
                key = trace, subject
        else:
            key = _of_case(label, by_case, renames or {})
        if isinstance(key, str):
            problems.append(label.problem(key))
        else:
            by_thing.setdefault(key, []).append(label)
    if problems:
        raise InputError(problems)
    return by_thing


def people(labelled: Mapping[Key, Sequence[Label]], terms: Terms) -> People:
    """Combine the labels of each thing into one opinion.

    Raises:
        InputError: lists all labels that the rubric does not have.
    """
    every = _opinions(labelled, terms)
    opinions: dict[Key, Opinion] = {}
    disputed: list[Key] = []
    same = pairs = 0
    for key, labels in every.items():
        counts = Counter(labels)
        same += sum(count * (count - 1) // 2 for count in counts.values())
        pairs += len(labels) * (len(labels) - 1) // 2
        (opinion, most), *_ = counts.most_common()
        if 2 * most > len(labels):
            opinions[key] = opinion
        else:
            disputed.append(key)
    return People(opinions=opinions, disputed=disputed, agreement=share(same, pairs))


def _of_case(
    label: Label,
    by_case: Mapping[str, Mapping[Key, JudgedThing]],
    renames: Mapping[str, str],
) -> Key | str:
    things = list(by_case.get(str(label.case), {}).values())
    if not things:
        return f"case `{label.case}` has nothing to judge; {_hint(str(label.case), by_case)}"
    wanted = label.subject
    meant = [one for one in things if wanted in (None, one.subject)]
    names = {one.agent: renames.get(one.agent, one.agent) for one in things if one.agent}
    meant = meant or [one for one in things if wanted in (one.agent, names.get(one.agent or ""))]
    if len(meant) == 1:
        return meant[0].key
    name = label.rubric if wanted is None else f"{label.rubric}/{wanted}"
    if not meant:
        there = [names.get(one.agent or "", one.subject) for one in things]
        return f"case `{label.case}`: `{name}` is not there; {_hint(str(wanted), there)}"
    ids = ", ".join(f"`{label.rubric}/{one.subject}`" for one in meant[:4])
    return f"case `{label.case}`: `{name}` may mean {len(meant)} things: write {ids}"


def _opinions(labelled: Mapping[Key, Sequence[Label]], terms: Terms) -> dict[Key, list[Opinion]]:
    problems: list[Problem] = []
    every: dict[Key, list[tuple[Label, Opinion]]] = {}
    for key, labels in labelled.items():
        for label in labels:
            try:
                value = label.value
                if label.case is not None and value not in terms.labels:
                    with suppress(ValueError):
                        value = float(value)
                if isinstance(value, str):
                    opinion = Opinion(label=value)
                else:
                    opinion = Opinion(score=terms.score(value))  # ValueError: not on the scale
                every.setdefault(key, []).append((label, opinion))
            except ValueError as error:
                problems.append(label.problem(str(error)))
    pairs_of_all = [pair for pairs in every.values() for pair in pairs]
    scheme = scheme_of([opinion for _, opinion in pairs_of_all], terms)
    for label, opinion in pairs_of_all:
        fault = opinion_fault(opinion, scheme, terms)
        if fault is not None:
            problems.append(label.problem(fault))
    if problems:
        raise InputError(problems)
    return {
        key: [_compared(opinion, scheme, terms) for _, opinion in pairs]
        for key, pairs in every.items()
    }


def _compared(opinion: Opinion, scheme: Scheme, terms: Terms) -> Opinion:
    """Return an opinion in which `correct` and `passed` are the same."""
    if scheme == "verdicts" and opinion.label in terms.labels:
        return Opinion(label=people_class(opinion, scheme, terms))
    return opinion


def _hint(word: str, known: Collection[str]) -> str:
    """Return a hint as elsewhere, but with few names."""
    if len(known) > 10 and not nearest(word, known):
        return f"there are {len(known)}"
    return suggestion(word, known)


PEOPLE, MAJORITY = "people", "majority"


class JudgeReport(msgspec.Struct, frozen=True, kw_only=True):
    """One judge over the labelled items.

    ``left_out`` counts the labelled items without a verdict of this judge, by reason.
    """

    model: str
    quality: Quality
    left_out: dict[str, int]
    reversed_order: ReversedOrder | None = None


class CalibrationReport(msgspec.Struct, frozen=True, kw_only=True):
    """A rubric, its judges, and how they and people compare.

    ``people`` is how far people agree with each other, ``disputed`` the number of items without a
    majority. ``together`` compares each pair of raters.
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
        """Whether there are enough labels for every judge."""
        return bool(self.judges) and all(one.quality.is_evidence for one in self.judges)


def calibration_report(
    evaluator: Judged,
    labels: Sequence[Label],
    things: Sequence[JudgedThing],
    turned: Mapping[str, Sequence[JudgedThing]] | None = None,
    renames: Mapping[str, str] | None = None,
) -> CalibrationReport:
    """Compare every model that gave verdicts with people, and with each other.

    ``turned`` has the models' verdicts on the same things in reverse order, ``renames`` the cases'
    names for recorded agents.

    Raises:
        InputError: labels of things that were not judged, or that the rubric does not have; two
            verdicts of one model on the same thing; no verdict of any judge.
    """
    terms = terms_of(evaluator)
    by_model: dict[str, dict[Key, JudgedThing]] = {}
    for thing in things:
        if thing.model is not None and thing.trouble is None:
            mine = by_model.setdefault(thing.model, {})
            if thing.key in mine:
                raise InputError(
                    f"{thing.model} judged `{thing.subject}` of trace `{thing.trace}` twice: "
                    "give one evaluation of each model, with one repeat"
                )
            mine[thing.key] = thing
    if not by_model:
        counts = Counter(_reason(thing) for thing in things)
        why = ", ".join(f"{count} {why}" for why, count in counts.items()) or "nothing was judged"
        raise InputError(f"no judge gave a verdict: {why}")
    versions = sorted({thing.version for thing in things})
    if len(versions) > 1:
        raise InputError(f"judged by several versions of the rubric: {', '.join(versions)}")
    version = versions[0]
    of_people = people(placed(labels, things, renames), terms)
    scheme = scheme_of(list(of_people.opinions.values()), terms)
    raters = _raters(of_people, by_model, scheme, terms)
    return CalibrationReport(
        rubric=evaluator.type,
        version=version,
        labels=len(labels),
        people=of_people.agreement,
        disputed=len(of_people.disputed),
        judges=[
            _report(model, verdicts, of_people, terms, things, (turned or {}).get(model, ()))
            for model, verdicts in by_model.items()
        ]
        if labels
        else [],
        together=[
            pair  # the majority is not compared with its own members
            for pair in together(raters)
            if MAJORITY not in (pair.first, pair.second) or PEOPLE in (pair.first, pair.second)
        ],
        split=len(disputed({m: c for m, c in raters.items() if m in by_model})),
    )


def keep(report: CalibrationReport, files: Iterable[Path], root: Path) -> list[str]:
    """Store each judge's calibration; return notes on earlier ones with more evidence.

    Those are kept: a few labels do not replace the evidence of many.
    """
    notes = []
    for one in report.judges:
        calibration = Calibration(
            rubric=report.rubric,
            version=report.version,
            model=one.model,
            n=one.quality.n,
            agreement=one.quality.agreement,
            kappa=one.quality.kappa,
            lacking=one.quality.lacking,
            labels=[str(file) for file in files],
        )
        earlier = better_calibration(calibration, root)
        file = keep_calibration(calibration, root)
        if earlier is not None:
            why = f"has {calibration.n}"
            if calibration.lacking and not earlier.lacking:
                why = f"is not evidence: {calibration.lacking[0]}"
            notes.append(
                f"the calibration of {counted(earlier.n, 'label')} is kept: this one {why}; "
                f"delete {file} to replace it"
            )
    return notes


def _report(
    model: str,
    verdicts: Mapping[Key, JudgedThing],
    of_people: People,
    terms: Terms,
    things: Sequence[JudgedThing],
    turned: Sequence[JudgedThing],
) -> JudgeReport:
    items: list[Item] = [
        (opinion, _verdict(verdicts[key]))
        for key, opinion in of_people.opinions.items()
        if key in verdicts
    ]
    # The models that were called when this one answered.
    models = {None, model, *(thing.asked for thing in verdicts.values())}
    why = {
        thing.key: _reason(thing)
        for thing in things
        if thing.key not in verdicts and thing.asked in models
    }
    missing = (why.get(key, "not asked") for key in of_people.opinions if key not in verdicts)
    reversed_things = {thing.key: thing for thing in turned}
    both = [
        (one, reversed_things[key])
        for key, one in verdicts.items()
        if key in reversed_things and reversed_things[key].model is not None
    ]
    return JudgeReport(
        model=model,
        quality=quality(items, terms, asked=len(of_people.opinions)),
        left_out=dict(sorted(Counter(missing).items())),
        reversed_order=reversed_order(
            [(_answer(a), _answer(b)) for a, b in both],
            [(a.value, b.value) for a, b in both if a.value is not None and b.value is not None],
        ),
    )


def _answer(thing: JudgedThing) -> str | float:
    return thing.label if thing.label is not None else thing.value or 0.0


def _raters(
    of_all: People,
    by_model: Mapping[str, Mapping[Key, JudgedThing]],
    scheme: Scheme,
    terms: Terms,
) -> dict[str, dict[Key, str]]:
    """Return the class that people and each judge assigned to things."""
    raters: dict[str, dict[Key, str]] = {}
    for model, things in by_model.items():
        pairs = ((key, judge_class(_verdict(thing), scheme)) for key, thing in things.items())
        raters[model] = {key: name for key, name in pairs if name is not None}
    of_people = (
        (key, people_class(opinion, scheme, terms)) for key, opinion in of_all.opinions.items()
    )
    if len(raters) > 2:
        shared = set.intersection(*(set(classes) for classes in raters.values()))
        votes = {key: majority([classes[key] for classes in raters.values()]) for key in shared}
        raters[MAJORITY] = {key: name for key, name in votes.items() if name is not None}
    if of_all.opinions:
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
    return "answered without the judge" if thing.settled else thing.trouble or "not asked"


DISAGREE, SPLIT, REST = range(3)


class ToLabel(NamedTuple):
    """One thing to label; ``why`` explains its position: ``DISAGREE``, ``SPLIT`` or ``REST``."""

    subject: Subject
    why: int

    @property
    def key(self) -> Key:
        """The ids of the trace and of the thing."""
        return self.subject.trace.id, self.subject.id


def to_label(
    evaluator: Judged,
    traces: Iterable[Trace],
    context: EvalContext,
    things: Sequence[JudgedThing] = (),
) -> list[ToLabel]:
    """Return the subjects of a rubric in traces: first those where judge and findings disagree.

    Then come those where the judge's samples differ, then all others; all in the order of the
    evaluation.
    """
    verdicts = {thing.key: thing for thing in things}
    things_to_label = [
        ToLabel(subject, _order(subject, evaluator, verdicts))
        for trace in traces
        for subject in evaluator.subjects(trace, None, context)
    ]
    return sorted(things_to_label, key=lambda one: one.why)


def _order(subject: Subject, evaluator: Judged, verdicts: Mapping[Key, JudgedThing]) -> int:
    verdict = verdicts.get((subject.trace.id, subject.id))
    if verdict is None or verdict.settled or verdict.passed is None:
        return REST
    proven = _proven(subject, evaluator)
    if proven is not None and proven != verdict.passed:
        return DISAGREE
    split = verdict.votes is not None and len(verdict.votes.counts) > 1
    return SPLIT if split else REST


def _proven(subject: Subject, evaluator: Judged) -> bool | None:
    """Return the result of the rubric's findings: fine, not fine, or nothing."""
    if subject.dispatch is None:
        return None
    answers = list(answers_of(evaluator.rubric, subject).values())
    if not answers and subject.turn is not None:  # a rubric that names no findings: ask all
        place = (subject.trace, subject.turn, subject.dispatch, subject.renames)
        answers = [find(*place) for find, _ in FINDINGS.values()]
    faults = [
        f
        for answer in answers
        for f in ([] if isinstance(answer, Clear | NotRecorded) else answer)
        if not f.warning
    ]
    if faults:
        return False
    return True if any(isinstance(answer, Clear) for answer in answers) else None
