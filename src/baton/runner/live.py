"""Playing the cases of a dataset against a provider, several at once, and collecting results."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Container, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.formats.evaluation_header import Header
from baton.http.rate_limits import HEARD
from baton.model import (
    CaseResult,
    Dataset,
    Evaluation,
    Provider,
    ProviderWithNotice,
    RunOptions,
)
from baton.store import EvaluationWriter, Kept

from .collect_results import FolderResults, MemoryResults, Results
from .loop import GRACE, entered
from .pending_scores import Background
from .plan import Plan, check_overrides
from .player import Player, Slot, check_sessions, one_at_a_time
from .retries import Watch
from .scoring import Unfinished
from .throttle import Throttle

OnResult = Callable[[CaseResult], None]


def notices_of(provider: Provider) -> list[str]:
    """Return the notices for every report on this provider."""
    notice = provider.notice if isinstance(provider, ProviderWithNotice) else None
    return [notice] if notice else []


def check_playable(plan: Plan, provider: Provider, dataset: Dataset) -> None:
    """Check before anything runs that a provider can play the cases.

    Raises:
        InputError: options that are wrong or that cases may not override, and cases that need
            features of sessions or servers that the provider does not have.
    """
    check_overrides(plan, dataset)
    check_sessions(provider, dataset)


async def evaluate_in_memory(
    plan: Plan,
    provider: Provider,
    dataset: Dataset,
    options: RunOptions,
    name: str,
    on_result: OnResult = lambda _: None,
) -> Evaluation:
    """Play and score a dataset, and keep all results, in the order of the dataset.

    ``on_result`` is called with each result.
    """
    plan = _priced(plan, options)
    check_playable(plan, provider, dataset)
    options, notes = one_at_a_time(provider, dataset, options)
    results = MemoryResults(plan, len(dataset) * options.repeat)
    async with entered(provider), entered(plan.context.judge):
        announced = _Announced(results, on_result)
        outcome = await play_all(plan, provider, dataset, options, announced)
    results.note(outcome.notes, stopped=outcome.stopped)
    return results.evaluation(name, [*notices_of(provider), *notes])


class RunFolder(NamedTuple):
    """The folder for the results of a run: a new one below ``root``, or a resumed one.

    ``folder`` is the new one if its name matters. ``header`` describes how it was made.
    ``on_start`` is called with the folder, ``on_result`` with each result. With ``kept`` its folder
    is resumed: results without errors stay, and everything else is played.
    """

    root: Path
    name: str
    header: Header
    on_result: OnResult = lambda _: None
    on_start: Callable[[Path], None] = lambda _: None
    kept: Kept | None = None
    folder: Path | None = None

    def open(
        self, planned: int, repeats: int, notices: Sequence[str], run: RunOptions | None = None
    ) -> EvaluationWriter:
        """Create or reopen the folder; ``run`` is how it is played, if that changed."""
        header = msgspec.structs.replace(
            self.header,
            run=run or self.header.run,
            planned=planned,
            notices=list(dict.fromkeys([*self.header.notices, *notices])),
        )
        writer = EvaluationWriter(
            self.root,
            self.name,
            header=header,
            keep_traces=True,
            repeats=repeats,
            kept=self.kept,
            folder=self.folder,
        )
        self.on_start(writer.folder)
        return writer


async def evaluate_to_folder(
    plan: Plan, provider: Provider, dataset: Dataset, options: RunOptions, to: RunFolder
) -> Path:
    """Play and score a dataset, writing each result at once; return the folder.

    If interrupted, the folder is consistent and says so.
    """
    plan = _priced(plan, options)
    check_playable(plan, provider, dataset)
    options, notes = one_at_a_time(provider, dataset, options)
    planned = len(dataset) * options.repeat
    notices = [*notices_of(provider), *notes]
    async with entered(provider), entered(plan.context.judge):
        writer = to.open(planned, options.repeat, notices, options if notes else None)
        with FolderResults(plan, writer, planned=planned, kept=to.kept) as results:
            announced = _Announced(results, to.on_result)
            done = finished_slots(to.kept)
            outcome = await play_all(plan, provider, dataset, options, announced, done=done)
            results.note(outcome.notes, stopped=outcome.stopped)
    return writer.folder


def finished_slots(kept: Kept | None) -> set[Slot]:
    """Return what need not be played again: all existing results without errors."""
    if kept is None:
        return set()
    return {Slot(row.position, row.repeat) for row in kept.rows() if row.status != "error"}


def _priced(plan: Plan, options: RunOptions) -> Plan:
    """Have costs computed if they are limited."""
    if options.max_agent_cost is None or plan.prices is not None:
        return plan
    return msgspec.structs.replace(plan, prices={})


class _Announced:
    """Announces each result after it is written."""

    def __init__(self, results: Results, on_result: OnResult) -> None:
        self._results = results
        self._on_result = on_result

    def add(self, result: CaseResult) -> None:
        self._results.add(result)
        self._on_result(result)


async def play_all(
    plan: Plan,
    provider: Provider,
    dataset: Dataset,
    options: RunOptions,
    results: Results,
    *,
    grace: float = GRACE,
    done: Container[Slot] = (),
) -> Outcome:
    """Play every case and pass on each result at once; the provider has to be entered.

    A case that cannot be played is an error result, and the others continue. All first repeats come
    before all second ones, and before retries. What is ``done`` is left out. A cancelled call has
    ``grace`` seconds to clean up.
    """
    watch = Watch(results, options)
    throttle = Throttle(options.concurrency)
    heard = HEARD.set(throttle)
    player = Player(plan, provider, dataset, options.timeout, grace)
    run = _Run(player, watch, throttle, plan.window)
    try:
        todo: Iterable[Slot] = (slot for slot in slots(dataset, options) if slot not in done)
        await _play(run, iter(todo))
        for _ in range(options.retry_errors or 0):
            await _play(run, iter(watch.errors()))
        while watch.may_ask_again():
            await _play(run, watch.busy())
    finally:
        HEARD.reset(heard)
    notes = [*watch.notes(), *throttle.notes()]
    first = watch.first
    if first is None:
        return Outcome(notes)
    what = "failed" if first.status == "failed" else "is an error"
    planned = len(dataset) * options.repeat
    stopped = (
        "stopped at the first case that did not pass, as requested (`fail_fast`): "
        f"`{first.case_id}` {what}; {watch.played} of {planned} planned cases were played"
    )
    return Outcome([stopped, *notes], stopped=True)


def slots(dataset: Dataset, options: RunOptions) -> Iterator[Slot]:
    """Yield everything to play, the first repeats before the second ones."""
    pairs = itertools.product(range(options.repeat), range(len(dataset)))
    return (Slot(position, repeat) for repeat, position in pairs)


class Outcome(NamedTuple):
    """Notes on a run for the report; after a requested stop, unplayed cases are no problem."""

    notes: Sequence[str] = ()
    stopped: bool = False


class _Run(NamedTuple):
    """The shared state of the workers of one evaluation."""

    player: Player
    watch: Watch
    throttle: Throttle
    window: int


async def _play(run: _Run, todo: Iterator[Slot]) -> None:
    """Play all slots with several workers, until all are done or a stop is requested."""
    first = next(todo, None)
    if first is None:
        return
    todo = itertools.chain([first], todo)
    background = Background(run.watch, run.window)
    workers = [
        asyncio.ensure_future(_work(run, todo, background)) for _ in range(run.throttle.most)
    ]
    try:
        await _first(_through(workers, background), run.watch.stopped.wait())
    finally:
        for worker in workers:
            worker.cancel()
        ended = await asyncio.gather(*workers, return_exceptions=True)
        await background.stop()
    for error in ended:
        if error is not None and not isinstance(error, asyncio.CancelledError):
            raise error


async def _through(workers: Sequence[asyncio.Task[None]], background: Background) -> None:
    # Unlike `gather` it does not cancel the workers when it is cancelled: each must be cancelled
    # only once, as a second time would interrupt its clean-up.
    await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    if not any(worker.done() and worker.exception() for worker in workers):
        await background.wait()


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait for the first of several; raises its exception."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _work(run: _Run, todo: Iterator[Slot], background: Background) -> None:
    player = run.player
    for slot in todo:
        async with run.throttle:
            if run.watch.stopped.is_set() or run.watch.in_vain:
                return
            refused = run.watch.refuse(slot)
            if refused is not None:
                run.watch.add(player.unplayed(slot, refused))
                continue
            await player.prepare()
            scored, complete, busy = await player.play(slot)
        run.watch.count(scored.trace)
        if busy:
            run.watch.note_busy(slot)
        if isinstance(scored, Unfinished):
            await background.add(scored, complete)
        else:
            run.watch.add(complete(scored))
