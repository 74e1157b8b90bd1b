"""Cases from production: chooses dispatches of recordings, evaluations and servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Unpack

from baton.datasets.dispatch_cases import dispatch_case
from baton.datasets.recorded_dispatches import CONTEXT_TURNS, as_made
from baton.feed.collect import COUNT, FEWEST, LEAST, MOST, Collected, Pool
from baton.model import Case, Form, InputError, counted
from baton.model.filter import filter_of
from baton.model.option_spelling import option
from baton.model.subjects import FIELDS
from baton.pull.trace_pages import moment
from baton.runner.plan import Specs

from .issues import members_of_group
from .prepare import PathLike, ScoreOptions, log_note
from .report import STORED
from .results import results_of

_NAMED = 10
"""Agents with few cases that are named; the others are counted."""


class CaseSet(NamedTuple):
    """Cases, and how they were chosen."""

    cases: list[Case]
    collected: Collected


def collect(
    sources: Sequence[PathLike] = (),
    evaluators: Specs | None = None,
    *,
    count: int = COUNT,
    seed: int = 0,
    where: str | None = None,
    edge: str | None = None,
    since: str | None = None,
    tags: Sequence[str] = (),
    failing: bool = False,
    issue: str | None = None,
    form: Form = "decision",
    context_turns: int = CONTEXT_TURNS,
    stored: PathLike = STORED,
    unreadable: list[str] | None = None,
    **options: Unpack[ScoreOptions],
) -> CaseSet:
    """Choose dispatches for a set of cases, by receiver and verdict, and without duplicates.

    A passing dispatch becomes a case that expects the same target and tools. A failing one lists
    its faults as failure modes, and expects nothing until a person states it.

    Args:
        sources: folders of evaluations, recordings, and servers (``server://HOST/PROJECT``); the
            newest evaluation when left out. Recordings are scored first.
        evaluators: the evaluators for recordings, as for :func:`baton.score`.
        count: how many cases, 40 to 200; any number with ``failing`` or ``issue``.
        seed: another seed gives another set.
        where: a filter of dispatches: ``"to:refund-* depth:>=2"``.
        edge: the sender and receiver, as ``SENDER:RECEIVER``; either can be a glob.
        since: a date or time; only dispatches that started then or later are chosen.
        tags: only results whose case has one of these tags.
        failing: only dispatches that fail.
        issue: the key of an issue (see :func:`baton.session.issues.find_issues`): only failures
            that are its members are chosen, and passing neighbours. Its cases have the tag
            ``issue:KEY``.
        form: how the cases are played.
        context_turns: the number of turns before and after a dispatch that a case contains in full.
        stored: where evaluations are stored.
        unreadable: called with the fault of each broken file, and the others continue; without it,
            a broken file is an error.
        options: as for :func:`baton.score`; ``redact`` and ``redact_kinds`` apply to the cases.

    Raises:
        InputError: an option or file has errors, or no dispatch can be chosen.
    """
    if count < 1 or (not failing and issue is None and not FEWEST <= count <= MOST):
        raise InputError(
            f"{option('count')} is from {FEWEST} to {MOST}: fewer cannot distinguish a drop from "
            "chance, and more take long to play"
        )
    terms = [where] if where else []
    if edge is not None:
        sender, colon, receiver = edge.partition(":")
        if not colon or not receiver:
            raise InputError(f"{option('edge')} is SENDER:RECEIVER, not `{edge}`")
        terms += [f'from:"{sender}"'] if sender not in ("", "*") else []
        terms += [f'to:"{receiver}"'] if receiver != "*" else []
    pool = Pool(
        count,
        seed=seed,
        where=filter_of(" ".join(terms), FIELDS["dispatch"]),
        failing=failing,
        since=moment(since, "since").timestamp() if since is not None else None,
        issue=issue,
        members=None if issue is None else members_of_group(issue),
    )
    note = options.get("note", log_note)
    unread = 0
    for result, found_trace in results_of(
        sources, evaluators, stored=stored, unreadable=unreadable, **options
    ):
        if tags and not set(tags) & set(result.tags):
            continue
        if found_trace.trace is None:
            unread += 1
            continue
        pool.add(found_trace.trace, result.scores)
    if unread:
        note(f"{counted(unread, 'result')} left out, as the trace is missing")
    collected = pool.choose()
    if issue is not None and not any(each.failing for each in collected.strata):
        raise InputError(
            f"no failure of issue `{issue}` was found there: `baton issues` lists the issues"
        )
    if not collected.chosen:
        raise InputError("no dispatch can be chosen: none that matches the filters has a verdict")
    for each in shortcomings(collected, count, failing=failing):
        note(each)
    cases = cases_of(collected, issue=issue, form=form, context_turns=context_turns)
    return CaseSet(cases, collected)


def cases_of(
    collected: Collected,
    *,
    issue: str | None = None,
    form: Form = "decision",
    context_turns: int = CONTEXT_TURNS,
) -> list[Case]:
    """Make dispatch cases from the chosen dispatches; those of an ``issue`` have its tag."""
    cases: dict[str, Case] = {}
    for one in collected.chosen:
        case = dispatch_case(
            one.trace,
            one.dispatch.id,
            form=form,
            context_turns=context_turns,
            expected=None if one.failures else as_made(one.trace, one.dispatch),
            failure_modes=[each.fault or each.type for each in one.failures],
        )
        case.tags = [one.verdict, *([f"issue:{issue}"] if issue is not None else [])]
        cases[case.id] = case
    return list(cases.values())


def shortcomings(collected: Collected, count: int, *, failing: bool = False) -> Iterator[str]:
    """Yield the shortcomings of a set, one sentence each."""
    few = [each for each in collected.strata if each.chosen < LEAST]
    for stratum in few[:_NAMED]:
        cases = counted(stratum.chosen, "case")
        yield f"{stratum.agent}: {cases}; {LEAST} or more are needed to measure its rate"
    if len(few) > _NAMED:
        yield f"{len(few) - _NAMED} more agents have fewer than {LEAST} cases"
    chosen = len(collected.chosen)
    if chosen < count:
        yield f"{chosen} of {counted(count, 'case')}: there are no more that differ"
    share = collected.green / chosen if chosen else 0.0
    if chosen and not failing and not 0.6 <= share <= 0.7:
        side = "green" if share > 0.7 else "failing"
        green = f"{100 * share:.0f} % are green"
        yield f"{green}; a good set has 60 to 70 %: there are too many {side} ones"
    if collected.unscored:
        yield f"{counted(collected.unscored, 'dispatch')} without a verdict left out"
    if collected.refused:
        yield f"{counted(collected.refused, 'conversation')} left out: no consent"
