"""Blame for failed runs: what is proven, and a judge's answer if nothing is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Unpack, cast

import msgspec

from baton.config.judge_config import JudgeConfig, make_judge_of
from baton.datasets.dispatch_cases import dispatch_case
from baton.datasets.recorded_dispatches import as_made
from baton.feed.blame import VOTES, Again, Blame, Suspect, blame, moment_of
from baton.feed.failures import Failure, failures_of
from baton.model import CaseResult, InputError, Judge, Trace, suggestion
from baton.model.option_spelling import option
from baton.model.views import index_of
from baton.replays.outcome import Seen, differences
from baton.runner.loop import run_anywhere
from baton.runner.plan import PROVEN_SPECS, EvaluatorSpec, Specs, make_plan

from .evaluate import EvaluateOptions
from .file_kinds import config_of
from .prepare import PathLike, ScoreOptions, judge_flags_of, log_note
from .replay import replay
from .report import STORED
from .results import results_of
from .score import score

FINDERS: list[EvaluatorSpec | str] = [*PROVEN_SPECS, "result_contradicted", "duplicate_work"]
"""The evaluators for recordings to explain: all that prove faults."""


REPEATS = 3
"""The number of plays of a moment: a random fault does not occur each time."""


class Blamed(NamedTuple):
    """A run, its failures, and their cause."""

    trace: Trace
    failures: list[Failure]
    blame: Blame


class _Run(NamedTuple):
    trace: Trace
    failures: list[Failure]
    failed: str | None


def find_blame(
    sources: Sequence[PathLike] = (),
    evaluators: Specs | None = None,
    *,
    traces: Sequence[str] = (),
    votes: int = VOTES,
    replay_by: str | None = None,
    texts: Mapping[str, str] | None = None,
    repeat: int = REPEATS,
    stored: PathLike = STORED,
    unreadable: list[str] | None = None,
    **options: Unpack[ScoreOptions],
) -> list[Blamed]:
    """Find the agent, the step and the fault that made runs fail.

    Args:
        sources: folders of evaluations, whose failed results are examined, and recordings of failed
            runs; the newest evaluation when left out.
        evaluators: the evaluators for recordings; by default those of the config, or all that prove
            a fault.
        traces: the ids of the only traces to examine.
        votes: how many answers of a judge are merged.
        replay_by: the agent, or a config, that plays each suspect's moment again.
        texts: texts to change, by name, to see whether the run then passes.
        repeat: how often each moment is played.
        stored: where evaluations are stored.
        unreadable: called with the fault of each broken file, and the others continue; without it,
            a broken file is an error.
        options: as for :func:`baton.score`. A judge in ``judge`` or in the ``config`` is asked if
            nothing is proven.

    Raises:
        InputError: an option or file has errors, a trace does not exist, nothing failed, or the
            agent cannot be played.
    """
    if votes < 1:
        raise InputError("`votes` is at least 1")
    if replay_by is None and texts:
        raise InputError(f"{option('with')} can only be used with {option('replay')}")
    note = options.get("note", log_note)
    runs: list[_Run] = []
    known: list[str] = []
    for result, found_trace in results_of(
        sources, evaluators or _finders(options), stored=stored, unreadable=unreadable, **options
    ):
        if found_trace.trace is None:
            note(f"{result.case_id}: its trace no longer exists")
            continue
        known.append(found_trace.trace.id)
        # A run that an error ended can show what was wrong before: an agent that does not exist.
        failed = result.status == "failed" or any(s.status == "failed" for s in result.scores)
        if found_trace.trace.id in traces if traces else bool(sources) or failed:
            failures = list(failures_of(found_trace.trace, result.scores))
            runs.append(_Run(found_trace.trace, failures, _failed(result, failures)))
    missing = [each for each in traces if each not in known]
    if missing:
        raise InputError(f"no run `{missing[0]}`; {suggestion(missing[0], known)}")
    blamed = run_anywhere(_blamed(runs, votes, options))
    if replay_by is not None:
        for one in blamed:
            one.blame.suspects = [
                _played_again(one, suspect, replay_by, texts or {}, repeat, options)
                for suspect in one.blame.suspects
            ]
    return blamed


def _played_again(
    one: Blamed,
    suspect: Suspect,
    agent: str,
    texts: Mapping[str, str],
    repeat: int,
    options: ScoreOptions,
) -> Suspect:
    """Play the moment of a suspect again; raises InputError if the agent cannot be played."""
    moment = moment_of(one.trace, suspect, one.failures)
    at = f"step `{suspect.step}` of `{one.trace.id}`"
    if moment is None:
        raise InputError(
            f"`{suspect.agent}` cannot be played from {at}: no dispatch started it, and "
            "it made none"
        )
    made = index_of(one.trace).dispatches[moment.dispatch]
    expected = as_made(one.trace, made) if moment.is_chosen_right else None
    case = dispatch_case(one.trace, made.id, form=moment.form, expected=expected)
    lacks = case.dispatch.lacks if case.dispatch is not None else None
    if lacks is not None:
        raise InputError(f"`{suspect.agent}` cannot be played from {at}: {lacks}")
    changed = {"texts": texts, "repeat": repeat}
    play = cast("EvaluateOptions", {**options, **changed})
    replayed = replay([case], agent, moment.evaluators or None, **play)
    (played,) = replayed.cases
    plays = [*played.unchanged, *played.changed]
    errors = [each.error or "a play failed" for each in plays if each.status == "error"]
    if errors:
        raise InputError(f"`{suspect.agent}` cannot be played from {at}: {errors[0]}")
    differing = [differences(played.recorded, each) for each in played.unchanged if played.recorded]
    again = Again(
        form=moment.form,
        plays=repeat,
        failed=_failing(played.unchanged),
        same=differing.count("") if differing and None not in differing else None,
        changed_failed=_failing(played.changed),
    )
    return msgspec.structs.replace(suspect, again=again)


def _failing(plays: Sequence[Seen]) -> int | None:
    """Return how many plays failed; ``None`` if there are none, or one has no verdict."""
    if not plays or any(each.status not in ("passed", "failed") for each in plays):
        return None
    return sum(each.status == "failed" for each in plays)


def blame_traces(
    traces: Sequence[Trace], *, votes: int = VOTES, **options: Unpack[ScoreOptions]
) -> list[Blamed]:
    """Find the causes of failed runs, given as records; in their order.

    Args:
        traces: records of runs that failed.
        votes: how many answers of a judge are merged.
        options: as for :func:`baton.score`.
    """
    runs = [
        _Run(result.trace, failures, _failed(result, failures))
        for result in score(traces, None, _finders(options), **options).results
        if result.trace is not None
        for failures in [list(failures_of(result.trace, result.scores))]
    ]
    return run_anywhere(_blamed(runs, votes, options))


async def _blamed(runs: Sequence[_Run], votes: int, options: ScoreOptions) -> list[Blamed]:
    async def one(run: _Run, judge: Judge | None) -> Blamed:
        outcome = await blame(run.trace, run.failures, failed=run.failed, judge=judge, votes=votes)
        return Blamed(run.trace, run.failures, outcome)

    judge_option = options.get("judge")
    if isinstance(judge_option, Judge):
        return await asyncio.gather(*(one(run, judge_option) for run in runs))
    flags, named = judge_flags_of(options), options.get("config")
    config = config_of(named) if isinstance(named, str | os.PathLike) else named
    judging = config.judging if config is not None else JudgeConfig()
    if flags.model is None and not judging.options.get("model"):
        return await asyncio.gather(*(one(run, None) for run in runs))
    plan = config.plan if config is not None else make_plan(None)
    async with make_judge_of(judging, flags, plan) as judge:
        return await asyncio.gather(*(one(run, judge) for run in runs))


def _finders(options: ScoreOptions) -> Specs | None:
    """Return the evaluators that prove faults, unless a config names evaluators."""
    return FINDERS if options.get("config") is None else None


def _failed(result: CaseResult, failures: Sequence[Failure]) -> str | None:
    """Return what is wrong with the end of a run: an error, or an evaluator's reason."""
    reasons = [each.says for each in failures if each.fault is None]
    return "\n".join(([result.error] if result.error else []) + reasons) or None
