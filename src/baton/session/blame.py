"""Blame for runs that failed: what is proven, and what a judge says where nothing is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import NamedTuple, Unpack

from baton.config.judge import JudgeConfig, make_judge_of
from baton.feed.blame import VOTES, Blame, blame
from baton.feed.failures import Failure, failures_of
from baton.model import CaseResult, InputError, Judge, Trace, suggestion
from baton.runner.loop import run_anywhere
from baton.runner.plan import PROVEN_BY_RECORD, EvaluatorSpec, Specs, make_plan

from .file_kinds import config_of
from .issues import results_of
from .prepare import PathLike, ScoreOptions, judge_flags_of, log_note
from .report import STORED
from .score import score

FINDERS: list[EvaluatorSpec | str] = [*PROVEN_BY_RECORD, "result_contradicted", "duplicate_work"]
"""What scores recordings whose failure is to be explained: all that proves a fault."""


class Blamed(NamedTuple):
    """A run, what was wrong with it, and what made it fail."""

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
    stored: PathLike = STORED,
    **options: Unpack[ScoreOptions],
) -> list[Blamed]:
    """Say which agent, at which step, by which fault made runs fail.

    Args:
        sources: folders of evaluations, of which the results that failed are asked about, and
            recordings of runs that failed; the newest evaluation when left out.
        evaluators: what recordings are scored by; what the config says, or all that proves a fault,
            when left out.
        traces: ask about these only, by their ids.
        votes: how many answers of a judge are merged.
        stored: where evaluations are stored.
        options: as for :func:`baton.score`. With ``judge``, or one of the ``config``, it is asked
            where nothing is proven.

    Raises:
        InputError: an option or file with faults, no such trace, or nothing that failed.
    """
    if votes < 1:
        raise InputError("`votes` is at least 1")
    note = options.get("note", log_note)
    runs: list[_Run] = []
    known: list[str] = []
    for result, found in results_of(
        sources, evaluators or _finders(options), stored=stored, **options
    ):
        if found.trace is None:
            note(f"{result.case_id}: its trace is not there any more")
            continue
        known.append(found.trace.id)
        wanted = found.trace.id in traces if traces else bool(sources) or result.status == "failed"
        if wanted:
            failures = list(failures_of(found.trace, result.scores))
            runs.append(_Run(found.trace, failures, _failed(result, failures)))
    missing = [each for each in traces if each not in known]
    if missing:
        raise InputError(f"no run `{missing[0]}`; {suggestion(missing[0], known)}")
    return run_anywhere(_blamed(runs, votes, options))


def blame_traces(
    traces: Sequence[Trace], *, votes: int = VOTES, **options: Unpack[ScoreOptions]
) -> list[Blamed]:
    """Say what made runs fail, of records that a program has; in their order.

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
        found = await blame(run.trace, run.failures, failed=run.failed, judge=judge, votes=votes)
        return Blamed(run.trace, run.failures, found)

    given = options.get("judge")
    if isinstance(given, Judge):
        return await asyncio.gather(*(one(run, given) for run in runs))
    flags, named = judge_flags_of(options), options.get("config")
    config = config_of(named) if isinstance(named, str | os.PathLike) else named
    judging = config.judging if config is not None else JudgeConfig()
    if flags.model is None and not judging.options.get("model"):
        return await asyncio.gather(*(one(run, None) for run in runs))
    plan = config.plan if config is not None else make_plan(None)
    async with make_judge_of(judging, flags, plan) as judge:
        return await asyncio.gather(*(one(run, judge) for run in runs))


def _finders(options: ScoreOptions) -> Specs | None:
    """Return what proves faults, unless a config says what scores."""
    return FINDERS if options.get("config") is None else None


def _failed(result: CaseResult, failures: Sequence[Failure]) -> str | None:
    """Say what is wrong with the end of a run: an error, or what evaluators miss."""
    said = [each.says for each in failures if each.fault is None]
    return "\n".join(([result.error] if result.error else []) + said) or None
