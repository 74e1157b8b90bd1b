"""Jobs for a backend, and recorded traces that it scores.

The folders of its evaluations equal those of a local run. Nothing here needs asyncio.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from baton.formats.evaluation_header import Header
from baton.model import SCHEMA_VERSION, Dataset, InputError, Source, Trace
from baton.readers.shards import Shard
from baton.runner.collect_results import FolderResults
from baton.runner.plan import Plan, check_overrides
from baton.runner.recorded import Merge, none_chosen
from baton.store import EvaluationWriter

from .protocol import Backend, Job, Outcome, Recipe

RETRIES = 3
"""How often a job is retried after its worker was lost."""
AHEAD = 8
"""How far, in multiples of its room, a backend may be ahead of the oldest unfinished job."""

_OUTCOMES = msgspec.json.Decoder(Outcome)
J = TypeVar("J")
R = TypeVar("R")


def read_outcome(text: bytes) -> Outcome:
    """Read the outcome of a job; raises InputError if its worker cannot work."""
    outcome = _OUTCOMES.decode(text)
    if outcome.fault is not None:
        raise InputError(f"a worker cannot work: {outcome.fault}")
    return outcome


class Finished(NamedTuple, Generic[J, R]):
    """A finished job, or one that was given up (``lost`` says why); exactly one of both."""

    number: int
    job: J
    outcome: R | None
    lost: str


class _Out(NamedTuple, Generic[J]):
    job: J
    losses: int = 0


def finished(
    backend: Backend, jobs: Iterable[J], read: Callable[[bytes], R]
) -> Iterator[Finished[J, R]]:
    """Yield each job once, in the order of completion.

    Jobs are created when there is room for them, and sent as JSON; ``read`` decodes outcomes. If a
    worker is lost, its job is retried; a second outcome of a job is dropped.

    Raises:
        InputError: a worker cannot work: files are missing, or it has another version of Baton.
    """
    out: dict[int, _Out[J]] = {}
    source = enumerate(jobs)
    started = 0
    while True:
        oldest = min(out, default=started)
        free = min(backend.room - len(out), oldest + AHEAD * backend.room - started)
        for number, job in itertools.islice(source, max(free, 0)):
            started = number + 1
            out[number] = _Out(job)
            backend.submit(number, msgspec.json.encode(job))
        if not out:
            return
        done = backend.take()
        if done.number not in out:
            continue
        job, losses = out[done.number]
        if done.outcome is None and losses < RETRIES:
            out[done.number] = _Out(job, losses + 1)
            backend.submit(done.number, msgspec.json.encode(job))
            continue
        del out[done.number]
        if done.outcome is None:
            lost = f"its worker was lost {RETRIES + 1} times: {done.lost}"
            yield Finished(done.number, job, None, lost)
        else:
            yield Finished(done.number, job, read(done.outcome), "")


def in_order(done: Iterable[Finished[J, R]]) -> Iterator[Finished[J, R]]:
    """Yield finished jobs by number; early ones wait, bounded by ``AHEAD``."""
    early: dict[int, Finished[J, R]] = {}
    expected = 0
    for each in done:
        early[each.number] = each
        while expected in early:
            yield early.pop(expected)
            expected += 1


Say = Callable[[str], None]


def score_on(
    backend: Backend,
    recipe: Recipe,
    plan: Plan,
    shards: Iterable[Shard],
    dataset: Dataset | None,
    *,
    root: Path,
    name: str,
    header: Header,
    input_problems: list[str],
    on_note: Say,
    repeats: int = 1,
) -> Path | None:
    """Let workers read and score traces, and write the results in the traces' order.

    Returns the folder; ``None``, without creating one, if no trace was read. Without a dataset, it
    raises InputError if none of the read traces is selected. Order and content of the results are
    those of one process. ``input_problems`` collects problems of files, also from the generator of
    shards, and shards that were not scored because their worker was lost.
    """
    if dataset is not None:
        check_overrides(plan, dataset)
    lines: dict[str, int] = {}
    merge = Merge(dataset)
    results: FolderResults | None = None
    left_out = 0
    with ExitStack() as entered:
        entered.enter_context(backend)
        jobs = (Job(recipe=recipe, shard=shard) for shard in shards)
        for done in in_order(finished(backend, jobs, read_outcome)):
            shard, outcome = done.job.shard, done.outcome
            if shard is None:
                continue
            if outcome is None:
                files = (
                    shard.files[0]
                    if len(shard.files) == 1
                    else f"{shard.files[0]} to {shard.files[-1]}"
                )
                place = "" if shard.start is None else f", bytes {shard.start} to {shard.end}"
                input_problems.append(f"{files}{place}: these traces were not scored: {done.lost}")
                outcome = Outcome(broken=True)
            before = lines.get(shard.files[0], 0)
            for problem in outcome.problems:
                line = None if problem.line is None else problem.line + before
                input_problems.append(str(msgspec.structs.replace(problem, line=line)))
            if outcome.lines:
                lines[shard.files[0]] = before + outcome.lines
            for text in outcome.notes:
                on_note(text)
            left_out += outcome.left_out
            # Remaining cases without a trace are errors, also if no trace was selected.
            begins = outcome.scored or outcome.broken or (left_out and dataset is not None)
            if results is None and begins:
                writer = EvaluationWriter(root, name, header=header, repeats=repeats)
                results = entered.enter_context(FolderResults(plan, writer, input_problems))
            if results is not None:
                results.see(outcome.agents)
                reasons = outcome.reasons
                for scored in outcome.scored:
                    row = scored.result.row
                    position = row.position if scored.has_case else None
                    placed = merge.place(position, row.repeat, scored.trace, scored.location)
                    if placed.problem is None:
                        row.position = placed.position
                        results.add_written(scored.result, reasons)
                        reasons = {}
                    else:
                        trace = Trace(  # as its result says
                            schema_version=SCHEMA_VERSION,
                            id=scored.trace,
                            source=Source(format=scored.format, location=scored.location),
                            turns=[],
                            usage=scored.result.row.usage,
                        )
                        results.add(merge.second(placed, row.repeat, trace))
        if results is None and left_out:
            raise none_chosen(left_out)
        if results is None:
            return None
        for result in merge.unmet():
            results.add(result)
    return writer.folder
