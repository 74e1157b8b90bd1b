"""What people say of the things a judge was asked about, and what is worth a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from baton.datasets.labels import HumanLabel
from baton.evaluators.judged import Judged
from baton.evaluators.judging.evidence import FINDINGS, answers_of
from baton.evaluators.judging.subject import Subject
from baton.findings.finding import Answer, Clear, Finding, Untold
from baton.model import EvalContext, InputError, Problem, Trace, nearest, suggestion
from baton.stats.agreement import Key
from baton.stats.calibration import Opinion, Terms, opinion_fault, scheme_of
from baton.stats.intervals import Estimate, share

from .judged import JudgedThing


class People(msgspec.Struct, frozen=True, kw_only=True):
    """The opinion of the majority on each thing.

    ``disputed`` things have several labels and no majority. ``agreement`` is the share of pairs
    of people who say the same of the same thing; ``None`` where nothing is labelled twice.
    """

    opinions: Mapping[Key, Opinion]
    disputed: list[Key]
    agreement: Estimate | None


def placed(
    labels: Sequence[HumanLabel],
    things: Iterable[JudgedThing],
    renames: Mapping[str, str] | None = None,
) -> dict[Key, list[HumanLabel]]:
    """Find what each label is about; cases call recorded agents by their ``renames``.

    Raises:
        InputError: labels of what is not there, or of what they do not tell apart; all of them.
    """
    by_trace: dict[str, dict[str, JudgedThing]] = {}
    by_case: dict[str, dict[Key, JudgedThing]] = {}
    for thing in things:
        by_trace.setdefault(thing.trace, {})[thing.subject] = thing
        by_case.setdefault(thing.case, {})[thing.key] = thing
    found: dict[Key, list[HumanLabel]] = {}
    problems: list[Problem] = []
    for label in labels:
        if label.trace is not None:
            key = _of_trace(label, by_trace)
        else:
            key = _of_case(label, by_case, renames or {})
        if isinstance(key, str):
            problems.append(label.problem(key))
        else:
            found.setdefault(key, []).append(label)
    if problems:
        raise InputError(problems)
    return found


def people(found: Mapping[Key, Sequence[HumanLabel]], terms: Terms) -> People:
    """Make one opinion of the labels of each thing.

    Raises:
        InputError: labels that the rubric does not have; all of them.
    """
    every = _opinions(found, terms)
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


def _of_trace(label: HumanLabel, by_trace: Mapping[str, Mapping[str, JudgedThing]]) -> Key | str:
    trace, subject = str(label.trace), str(label.subject)
    if trace not in by_trace:
        return f"no trace `{trace}` to judge; {_hint(trace, by_trace)}"
    if subject not in by_trace[trace]:
        there = _hint(subject, by_trace[trace])
        return f"trace `{trace}` has no `{subject}` to judge; {there}"
    return trace, subject


def _of_case(
    label: HumanLabel,
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


def _opinions(found: Mapping[Key, Sequence[HumanLabel]], terms: Terms) -> dict[Key, list[Opinion]]:
    problems: list[Problem] = []
    every: dict[Key, list[tuple[HumanLabel, Opinion]]] = {}
    for key, labels in found.items():
        for label in labels:
            try:
                every.setdefault(key, []).append((label, _opinion(label, terms)))
            except ValueError as error:
                problems.append(label.problem(str(error)))
    told = [pair for pairs in every.values() for pair in pairs]
    scheme = scheme_of([opinion for _, opinion in told], terms)
    for label, opinion in told:
        fault = opinion_fault(opinion, scheme, terms)
        if fault is not None:
            problems.append(label.problem(fault))
    if problems:
        raise InputError(problems)
    return {key: [opinion for _, opinion in pairs] for key, pairs in every.items()}


def _opinion(label: HumanLabel, terms: Terms) -> Opinion:
    """Raises ValueError for a number that is not on the scale."""
    score = label.score
    if score is None and label.case is not None and label.label not in terms.labels:
        score = _number(label.label or "")
    return Opinion(label=label.label) if score is None else Opinion(score=terms.score(score))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _hint(word: str, known: Collection[str]) -> str:
    """Word a hint as elsewhere, but do not name very many."""
    if len(known) > 10 and not nearest(word, known):
        return f"there are {len(known)}"
    return suggestion(word, known)


DISAGREE, SPLIT, REST = range(3)


class ToLabel(NamedTuple):
    """One thing to label; ``why`` it comes when it does is ``DISAGREE``, ``SPLIT`` or ``REST``."""

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
    """Return what a rubric is about in some traces: first where judge and findings disagree.

    Then come those on which the samples of the judge differ, then all others; each in the order
    of the evaluation.
    """
    verdicts = {thing.key: thing for thing in things}
    found = [
        ToLabel(subject, _why(subject, evaluator, verdicts))
        for trace in traces
        for subject in evaluator.subjects(trace, None, context)
    ]
    return sorted(found, key=lambda one: one.why)


def _why(subject: Subject, evaluator: Judged, verdicts: Mapping[Key, JudgedThing]) -> int:
    verdict = verdicts.get((subject.trace.id, subject.id))
    if verdict is None or verdict.settled or verdict.passed is None:
        return REST
    proven = _proven(subject, evaluator)
    if proven is not None and proven != verdict.passed:
        return DISAGREE
    split = verdict.votes is not None and len(verdict.votes.counts) > 1
    return SPLIT if split else REST


def _proven(subject: Subject, evaluator: Judged) -> bool | None:
    """Tell what the findings that the rubric names say: fine, not fine, or nothing."""
    if subject.dispatch is None:
        return None
    answers = list(answers_of(evaluator.rubric, subject).values()) or _all(subject)
    faults = [f for answer in answers for f in _findings(answer) if not f.warning]
    if faults:
        return False
    return True if any(isinstance(answer, Clear) for answer in answers) else None


def _all(subject: Subject) -> list[Answer]:
    """Ask all there is, for a rubric that names no findings."""
    if subject.turn is None or subject.dispatch is None:
        return []
    place = (subject.trace, subject.turn, subject.dispatch, subject.renames)
    return [find(*place) for find, _ in FINDINGS.values()]


def _findings(answer: Answer) -> list[Finding]:
    return [] if isinstance(answer, Clear | Untold) else answer
