"""Evaluations whose work is done by a backend; their folders are those of a local run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from baton.model import CaseResult, Dataset, InputError, Problem, Provider
from baton.readers.shard import Shard
from baton.runner.collect import FolderResults
from baton.runner.evaluate import OnResult, notices_of
from baton.runner.evaluate import finished as already
from baton.runner.execute import error_result, settled
from baton.runner.live import slots
from baton.runner.options import RunOptions
from baton.runner.plan import Plan, check_overrides
from baton.runner.sessions import check_sessions
from baton.runner.watch import Slot
from baton.store import EvaluationWriter, Kept

from .drive import Finished, finished, in_order
from .protocol import Backend, Job, Play, Recipe

Say = Callable[[str], None]


def evaluate_on(
    backend: Backend,
    recipe: Recipe,
    plan: Plan,
    provider: Provider,
    dataset: Dataset,
    options: RunOptions,
    *,
    root: Path,
    name: str,
    header: dict[str, Any],
    on_result: OnResult,
    on_start: Callable[[Path], None] = lambda _: None,
    kept: Kept | None = None,
    variant: int = 0,
) -> Path:
    """Let workers play and score a dataset, write each result as it comes; return the folder.

    ``provider`` is asked what it can do, and is not called here. A case whose worker was lost
    again and again is an error. What is there when it is interrupted is complete and says so.
    """
    check_overrides(plan, dataset)
    check_sessions(provider, dataset)
    if dataset.first_with("restart") is not None:
        raise InputError("some cases restart the agents' server: play them without a backend")
    if options.fail_fast or options.max_agent_cost is not None:
        raise InputError("--fail-fast and --max-agent-cost do not go with a backend")
    planned = len(dataset) * options.repeat
    done = already(kept)
    jobs = (
        Job(recipe=recipe, play=_play(slot, dataset, variant))
        for slot in slots(dataset, options)
        if slot not in done
    )
    with backend:
        writer = EvaluationWriter(
            root,
            name,
            header={**header, "planned": planned, "notices": notices_of(provider)},
            keep_traces=True,
            repeats=options.repeat,
            kept=kept,
        )
        on_start(writer.folder)
        with FolderResults(plan, writer, planned=planned, kept=kept) as results:
            for each in finished(backend, jobs):
                for result in _played(each, dataset):
                    results.add(result)
                    on_result(result)
    return writer.folder


def _play(slot: Slot, dataset: Dataset, variant: int) -> Play:
    case = dataset.ids[slot.position]
    return Play(position=slot.position, case=case, repeat=slot.repeat, variant=variant)


def _played(done: Finished, dataset: Dataset) -> list[CaseResult]:
    play = done.job.play
    if done.outcome is not None or play is None:
        return done.outcome.results if done.outcome is not None else []
    case = dataset.cases[play.position]
    result = error_result(case.id, play.position, done.lost, None, case)
    result.repeat = play.repeat
    return [result]


def score_on(
    backend: Backend,
    recipe: Recipe,
    plan: Plan,
    shards: Iterable[Shard],
    dataset: Dataset | None,
    *,
    root: Path,
    name: str,
    header: dict[str, Any],
    input_problems: list[str],
    on_note: Say,
    repeats: int = 1,
) -> Path:
    """Let workers read and score traces, and write the results in the traces' order.

    ``input_problems`` also take those of whoever yields the shards. Traces whose worker was lost
    again and again are one of them.

    Raises:
        InputError: no trace was read; no folder is left behind then.
    """
    if dataset is not None:
        check_overrides(plan, dataset)
    problems: list[str] = []
    with backend:
        jobs = (Job(recipe=recipe, shard=shard) for shard in shards)
        read = _results(in_order(finished(backend, jobs)), problems, on_note)
        rest = iter(read)
        first = list(itertools.islice(rest, 1))
        if not first:
            raise InputError([Problem(message=each) for each in problems] or "there is no trace")
        writer = EvaluationWriter(root, name, header=header, repeats=repeats)
        with FolderResults(plan, writer, input_problems) as results:
            for result in settled(itertools.chain(first, rest), dataset):
                results.add(result)
            input_problems += problems
    return writer.folder


def _results(done: Iterable[Finished], problems: list[str], on_note: Say) -> Iterator[CaseResult]:
    lines: dict[str, int] = {}
    for each in done:
        shard, outcome = each.job.shard, each.outcome
        if shard is None:
            continue
        if outcome is None:
            problems.append(_given_up(shard, each.lost))
            continue
        before = lines.get(shard.files[0], 0)
        for problem in outcome.problems:
            line = None if problem.line is None else problem.line + before
            problems.append(str(msgspec.structs.replace(problem, line=line)))
        if outcome.lines:
            lines[shard.files[0]] = before + outcome.lines
        for text in outcome.notes:
            on_note(text)
        yield from outcome.results


def _given_up(shard: Shard, lost: str) -> str:
    files = shard.files[0] if len(shard.files) == 1 else f"{shard.files[0]} to {shard.files[-1]}"
    place = "" if shard.start is None else f", bytes {shard.start} to {shard.end}"
    return f"{files}{place}: these traces were not scored: {lost}"
