"""Scoring recorded traces in several processes, with the results of one.

Each process is a copy of this one, so that plan and dataset are there already. It is told which
part of which file to read, and sends back what the folder is to hold: no trace goes between
processes.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.model import (
    SCHEMA_VERSION,
    AgentCard,
    CaseResult,
    Dataset,
    Problem,
    Source,
    Trace,
    Usage,
)
from baton.model.visible import exception_line
from baton.readers import Catalog
from baton.readers.shards import Shard, ShardReader
from baton.store import Encoded, EvaluationWriter, encoded

from .collect import FolderResults
from .loop import run_anywhere
from .plan import Plan, check_overrides
from .recorded import Seen, error_result, score_one, unmet
from .scoring import Unfinished

SHARD = 1 << 20
"""Bytes of recorded text that a process reads at once."""
_AHEAD = 4
"""How many shards a process may be ahead of the oldest one that is not written."""


class Scored(msgspec.Struct, array_like=True):
    """A result, and what its trace is called."""

    result: Encoded
    trace: str
    format: str
    location: str | None


class Batch(msgspec.Struct, array_like=True):
    """What came of a shard; ``reasons`` has why evaluators scored nothing, the first of each."""

    scored: list[Scored] = msgspec.field(default_factory=list)
    agents: list[dict[str, AgentCard]] = msgspec.field(default_factory=list)
    reasons: dict[str, str] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    lines: int = 0
    broken: bool = False


class Recorded(NamedTuple):
    """What is scored, and by what."""

    plan: Plan
    dataset: Dataset | None
    catalog: Catalog | None


def score_with_jobs(
    recorded: Recorded,
    shards: Iterable[Shard],
    jobs: int,
    *,
    root: Path,
    name: str,
    header: dict[str, Any],
    input_problems: list[str],
    on_note: Callable[[str], None],
    repeats: int = 1,
) -> Path | None:
    """Score traces in ``jobs`` processes; return the folder, or ``None`` when there was no trace.

    Order and content of the results are those of one process. ``input_problems`` take what was
    wrong with files; whatever a process did not finish is among them.
    """
    plan, dataset, _ = recorded
    if dataset is not None:
        check_overrides(plan, dataset)
    with _Team(recorded, jobs) as team:
        batches = _mended(team.batches(shards), input_problems, on_note)
        first = next((batch for batch in batches if batch.scored), None)
        if first is None and not team.has_lost:
            return None
        writer = EvaluationWriter(root, name, header=header, repeats=repeats)
        with FolderResults(plan, writer, input_problems) as results:
            merged = _Merge(results, dataset)
            for batch in itertools.chain([] if first is None else [first], batches):
                merged.take(batch)
            merged.end()
    return writer.folder


class _Merge:
    """Puts results in their places, as one process does that sees all traces."""

    def __init__(self, results: FolderResults, dataset: Dataset | None) -> None:
        self._results, self._dataset = results, dataset
        self._seen = Seen(len(dataset) if dataset is not None else 0)
        self._strangers = 0

    def take(self, batch: Batch) -> None:
        for agents in batch.agents:
            self._results.see(agents)
        reasons = batch.reasons
        for scored in batch.scored:
            twice = self._place(scored)
            if twice is not None:
                self._results.add(twice)
                continue
            self._results.add_written(scored.result, reasons)
            reasons = {}

    def end(self) -> None:
        if self._dataset is not None:
            for result in unmet(self._dataset, self._seen):
                self._results.add(result)

    def _place(self, scored: Scored) -> CaseResult | None:
        """Give a result its position; return another when its case had a trace before."""
        row, dataset = scored.result.row, self._dataset
        position, repeat = row["position"], row["repeat"]
        if dataset is None or position < 0:
            row["position"] = self._strangers + (len(dataset) if dataset is not None else 0)
            self._strangers += 1
            return None
        trace = _bare(scored)
        twice = self._seen.add(position, repeat, trace, dataset.ids[position])
        if twice is None:
            return None
        case = dataset.cases[position]
        result = error_result(case.id, position, twice, trace, case)
        result.repeat = repeat
        return result


def _bare(scored: Scored) -> Trace:
    """Return of a trace what its result tells."""
    usage = scored.result.row.get("usage")
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=scored.trace,
        source=Source(format=scored.format, location=scored.location),
        turns=[],
        usage=None if usage is None else msgspec.convert(usage, Usage),
    )


def _mended(
    batches: Iterable[tuple[Shard, Batch]], problems: list[str], on_note: Callable[[str], None]
) -> Iterator[Batch]:
    """Pass on what was said of files, its lines counted from the start of each."""
    lines: dict[str, int] = {}
    for shard, batch in batches:
        before = lines.get(shard.files[0], 0)
        for problem in batch.problems:
            line = None if problem.line is None else problem.line + before
            problems.append(str(msgspec.structs.replace(problem, line=line)))
        lines[shard.files[0]] = before + batch.lines
        for text in batch.notes:
            on_note(text)
        yield batch


class _Team:
    """Processes that score shards; entered for as long as they are needed."""

    def __init__(self, recorded: Recorded, jobs: int) -> None:
        self._recorded, self._jobs = recorded, jobs
        self.has_lost = False
        self._ends: dict[Connection[bytes, bytes], BaseProcess] = {}

    def __enter__(self) -> _Team:
        sys.stdout.flush()
        gc.freeze()  # what is there stays where it is, in memory that all share
        context = multiprocessing.get_context("fork")
        for _ in range(self._jobs):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_work, args=(theirs, [*self._ends, ours], self._recorded), daemon=True
            )
            process.start()
            theirs.close()
            self._ends[ours] = process
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for end, process in self._ends.items():
            end.close()
            if kind is not None:
                process.terminate()
            process.join()
        gc.unfreeze()

    def batches(self, shards: Iterable[Shard]) -> Iterator[tuple[Shard, Batch]]:
        """Yield what came of each shard, in their order."""
        source = enumerate(shards)
        idle = list(self._ends)
        busy: dict[Connection[bytes, bytes], tuple[int, Shard]] = {}
        early: dict[int, tuple[Shard, Batch]] = {}
        expected = started = 0
        more = True
        while more or busy or early:
            while idle and more and started - expected < _AHEAD * self._jobs:
                found = next(source, None)
                if found is None:
                    more = False
                    break
                started += 1
                end = idle.pop()
                # That nobody hears it any more is told where the answer is waited for.
                with suppress(OSError):
                    end.send_bytes(msgspec.msgpack.encode(found[1]))
                busy[end] = found
            if not busy and not idle and not early:
                yield from self._given_up(source)
                return
            for ready in wait(list(busy)) if busy else ():
                if not isinstance(ready, Connection):
                    continue
                number, shard = busy.pop(ready)
                batch, alive = self._hear(ready, shard)
                early[number] = shard, batch
                if alive:
                    idle.append(ready)
            while expected in early:
                yield early.pop(expected)
                expected += 1

    def _given_up(self, source: Iterator[tuple[int, Shard]]) -> Iterator[tuple[Shard, Batch]]:
        for _, shard in source:
            message = "this was not scored, as every process that could has ended"
            yield shard, Batch(problems=[Problem(file=shard.files[0], message=message)])

    def _hear(self, end: Connection[bytes, bytes], shard: Shard) -> tuple[Batch, bool]:
        """Return what a process sends, and whether it is still there."""
        try:
            batch = msgspec.msgpack.decode(end.recv_bytes(), type=Batch)
            self.has_lost = self.has_lost or batch.broken
            return batch, True
        except (EOFError, OSError):
            self.has_lost = True
            process = self._ends[end]
            process.join(1)
            message = f"the process that scored this ended with exit code {process.exitcode}"
            return Batch(problems=[Problem(file=shard.files[0], message=message)]), False


def _work(
    end: Connection[bytes, bytes], others: list[Connection[bytes, bytes]], recorded: Recorded
) -> None:
    """Score shards until there are no more; Ctrl-C is for the process that merges.

    So is a terminal that closes. SIGTERM is how that process ends this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:
        other.close()
    while True:
        try:
            shard = msgspec.msgpack.decode(end.recv_bytes(), type=Shard)
        except EOFError:
            return
        try:
            told = msgspec.msgpack.encode(_score(recorded, shard))
        except Exception as error:  # noqa: BLE001 - a fault of ours, told like a broken file
            said = f"internal error: {exception_line(error)}"
            message = f"{said}; --jobs 1 --debug shows the traceback"
            problem = Problem(file=shard.files[0], message=message)
            told = msgspec.msgpack.encode(Batch(problems=[problem], broken=True))
        try:
            end.send_bytes(told)
        except BrokenPipeError:
            return  # who merges is gone


def _score(recorded: Recorded, shard: Shard) -> Batch:
    batch = Batch()
    reader = ShardReader(
        shard,
        recorded.catalog,
        lambda error: batch.problems.extend(error.problems),
        batch.notes.append,
    )
    for trace in reader.traces():
        scored = score_one(recorded.plan, trace, recorded.dataset)
        result = run_anywhere(scored.finish()) if isinstance(scored, Unfinished) else scored
        redacted = result.trace or trace
        if redacted.agents and redacted.agents not in batch.agents:
            batch.agents.append(redacted.agents)
        for score in result.scores:
            if score.value is None:
                batch.reasons.setdefault(score.evaluator, score.reason)
        source = redacted.source
        batch.scored.append(Scored(encoded(result), redacted.id, source.format, source.location))
    batch.lines = reader.lines
    return batch
