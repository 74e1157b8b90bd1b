"""Promoting: the members of an issue become cases that the next change has to pass.

The set stays balanced: passing neighbours are added so that about two thirds of the set pass. The
issue stores its cases. It closes when all of them passed in several evaluations in a row, and opens
again when one fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from baton.datasets.dispatch_cases import dispatch_case
from baton.datasets.recorded_dispatches import as_made
from baton.model import Case, Dispatch, ExpectedHandling, Form, Status, Trace, counted
from baton.replays.cases import conversation_cases

from .collect import GREEN, Chosen, alike_words, words_of
from .failures import Failure
from .issue_progress import Progress, Promoted
from .issue_states import Mark
from .issues import Issue
from .signature import mask
from .taxonomy import subtype_named

MOST = 8
"""The default number of members that become cases: they all show one fault."""
PASSES = 3
"""Evaluations in a row that close an issue: one may pass by chance."""


class Made(NamedTuple):
    """Cases of an issue, with their expectations, and the passing ones beside them."""

    members: list[tuple[Case, Promoted]]
    neighbours: list[Case]

    @property
    def cases(self) -> list[Case]:
        """All of them."""
        return [*(case for case, _ in self.members), *self.neighbours]


def make_cases(
    issue: Issue,
    chosen: Sequence[Chosen],
    *,
    form: Form,
    there: Sequence[Case] = (),
    expect: Sequence[str] | None = None,
    known_right: Mapping[str, ExpectedHandling] | None = None,
    most: int = MOST,
    neighbours: int | None = None,
) -> Made:
    """Make cases from the chosen members of an issue, and from passing neighbours.

    Args:
        issue: the issue.
        chosen: members, in order of preference, and passing dispatches beside them.
        form: how the cases are played.
        there: the existing cases of the set: no case with the same request is added.
        expect: the right receiver, given by a person; ``[]`` for none.
        known_right: the right result, by :func:`member_of`, if a case or a passing run shows it.
        most: the most members.
        neighbours: the number of passing ones; by default as many as keep the set balanced.
    """
    known = [words_of(_prompt(case)) for case in there]
    new = [one for one in chosen if not any(alike_words(words_of(_of(one)), w) for w in known)]
    failing = [one for one in new if one.failures][:most]
    green = [one for one in new if not one.failures]
    wanted = neighbours
    if wanted is None:
        old_green = sum("green" in case.tags for case in there)
        all_failing = len(failing) + sum("failing" in case.tags for case in there)
        wanted = max(round(all_failing * GREEN / (1 - GREEN)) - old_green, 0)
    tag = f"issue:{issue.key}"
    members = []
    for one in failing:
        handling = _expected(issue, one, expect, known_right or {})
        case = dispatch_case(
            one.trace,
            one.dispatch.id,
            form=form,
            expected=handling,
            failure_modes=[each.fault or each.type for each in one.failures],
        )
        case.tags = ["failing", tag]
        promoted = Promoted(
            case=case.id,
            expects=_in_words(issue, handling, form),
            conversation=one.trace.id,
            dispatch=one.dispatch.id,
        )
        members.append((case, promoted))
    beside = []
    for one in green[:wanted]:
        case = dispatch_case(
            one.trace, one.dispatch.id, form=form, expected=as_made(one.trace, one.dispatch)
        )
        case.tags = ["green", tag]
        beside.append(case)
    return Made(members, beside)


def conversations(
    issue: Issue,
    failing: Sequence[tuple[Trace, Failure]],
    passing: Sequence[Trace],
    *,
    there: Sequence[Case] = (),
    most: int = MOST,
    neighbours: int | None = None,
) -> Made:
    """Make cases from whole conversations, for an issue that belongs to no dispatch.

    Args:
        issue: the issue.
        failing: its members, each once.
        passing: conversations of the same agents without failures.
        there: the existing cases of the set.
        most: the most members.
        neighbours: the number of passing ones; by default as many as keep the set balanced.
    """
    known = [words_of(_prompt(case)) for case in there]
    by_says: dict[str, list[Trace]] = {}
    for trace, failure in failing:
        words = words_of(input_of(trace))
        if not any(alike_words(words, each) for each in known):
            known.append(words)
            by_says.setdefault(mask(failure.says), []).append(trace)
    chosen: list[Trace] = []
    while len(chosen) < most and any(by_says.values()):
        for own in by_says.values():
            chosen += own[:1]
            del own[:1]
    chosen = chosen[:most]
    wanted = neighbours
    if wanted is None:
        wanted = max(round(len(chosen) * GREEN / (1 - GREEN)), 0)
    tag = f"issue:{issue.key}"
    members = []
    for case, trace in zip(conversation_cases(chosen), chosen, strict=True):
        case.tags = ["failing", tag]
        summary = _in_words(issue, None, None)
        members.append((case, Promoted(case=case.id, expects=summary, conversation=trace.id)))
    green: list[Trace] = []
    for trace in passing:
        words = words_of(input_of(trace))
        if len(green) < wanted and not any(alike_words(words, each) for each in known):
            known.append(words)
            green.append(trace)
    beside = conversation_cases(green)
    for case in beside:
        case.tags = ["green", tag]
    return Made(members, beside)


def member_of(trace: Trace, dispatch: Dispatch) -> str:
    """Return a key for a dispatch that is unique over all conversations."""
    return f"{trace.id}\t{dispatch.id}"


def input_of(trace: Trace) -> str:
    """Return the first message of a conversation with ids and numbers masked."""
    first = next((turn.input for turn in trace.turns if turn.input is not None), None)
    return mask(first.plain()) if first is not None else ""


def _of(one: Chosen) -> str:
    return one.dispatch.prompt.plain() if one.dispatch.prompt is not None else ""


def _prompt(case: Case) -> str:
    if case.dispatch is not None and case.dispatch.call.prompt is not None:
        return case.dispatch.call.prompt.plain()
    return case.turns[0].input.plain() if case.turns else ""


def _expected(
    issue: Issue,
    one: Chosen,
    expect: Sequence[str] | None,
    known_right: Mapping[str, ExpectedHandling],
) -> ExpectedHandling | None:
    """Return the expected result of a member, if a person or a passing run shows it.

    If the choice was right and something else failed, the choice should stay. If the choice was
    wrong, the right one comes from a person, from the played case, or from a passing run with the
    same input.
    """
    if expect is not None:
        return ExpectedHandling(to=list(expect))
    known = subtype_named(issue.subtype)
    if known is not None and known.category != "choosing":
        return as_made(one.trace, one.dispatch)
    return known_right.get(member_of(one.trace, one.dispatch))


def _in_words(issue: Issue, handling: ExpectedHandling | None, form: Form | None) -> str:
    passes = f"{', '.join(issue.evaluators)} passes"
    if handling is None or handling.to is None or form != "decision":
        return passes
    return f"the work goes to {', '.join(handling.to) or 'nobody'}; {passes}"


def handled_in(trace: Trace, sender: str | None) -> ExpectedHandling | None:
    """Return what a sender did in a passing run: the receivers, or none.

    ``None`` if the record does not show it.
    """
    made: list[Dispatch] = [
        each
        for turn in trace.turns
        for each in turn.dispatches
        if each.kind != "return" and each.from_agent == sender
    ]
    if not made:
        ran = any(run.agent == sender for turn in trace.turns for run in turn.runs)
        return ExpectedHandling(to=[]) if ran and "dispatches" not in trace.unknown else None
    return as_made(trace, made[0])


class Run(NamedTuple):
    """One evaluation that played cases: when, in seconds since the epoch, and their verdicts."""

    at: float
    verdicts: Mapping[str, Status]


def marks_by_cases(
    progress: Progress, runs: Iterable[Run], marks: Sequence[Mark]
) -> Iterator[Mark]:
    """Yield the states of an issue that follow from its cases, in order of time.

    ``fixed`` when all of its cases passed in as many evaluations in a row as its promotion
    requires, ``regressed`` when one of them fails after that, or after a person marked it as fixed.
    A case that was not played, was skipped or broke says nothing: an evaluation that does not play
    all cases cannot close an issue, but one failure opens it. A muted issue stays muted.

    Args:
        progress: the issue with its cases.
        runs: evaluations, in any order; those before the promotion do not count.
        marks: people's marks of issues.
    """
    promotion = progress.promotion
    if promotion is None or not promotion.cases:
        return
    cases = [each.case for each in promotion.cases]
    own_marks = sorted((m for m in marks if m.key == progress.issue.key), key=lambda mark: mark.at)
    state, row = "open", 0
    for run in sorted(runs, key=lambda run: run.at):
        verdicts = [run.verdicts[case] for case in cases if case in run.verdicts]
        if run.at < promotion.at or not verdicts:
            continue
        while own_marks and own_marks[0].at <= run.at:
            state = own_marks.pop(0).state
        failed = [case for case in cases if run.verdicts.get(case) == "failed"]
        if failed:
            row = 0
            if state == "fixed":
                state = "regressed"
                note = f"{counted(len(failed), 'case')} of {len(cases)} failed, such as {failed[0]}"
                yield Mark(key=progress.issue.key, state="regressed", at=run.at, note=note)
            continue
        row = row + 1 if verdicts == ["passed"] * len(cases) else 0
        if row >= promotion.passes and state not in ("fixed", "muted"):
            state = "fixed"
            times = counted(promotion.passes, "evaluation")
            note = f"{counted(len(cases), 'case')} passed in {times} in a row"
            yield Mark(key=progress.issue.key, state="fixed", at=run.at, note=note)
