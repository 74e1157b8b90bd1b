"""Playing the cases of a dataset against a provider, several at once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Container, Coroutine, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from baton.http.patience import HEARD
from baton.model import Dataset, Provider

from .background import Background
from .collect import Results
from .loop import GRACE
from .plan import Plan, RunOptions
from .player import Player
from .scoring import Unfinished
from .watch import First, Slot, Throttle, Watch


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
    """Play every case and hand each result over as it comes; the provider has to be entered.

    A case that cannot be played is an error result, and the others go on. All first repeats
    come before all second ones, and before what is played again. What is ``done`` is left out.
    A call that is cancelled has ``grace`` seconds to clean up.
    """
    watch = Watch(results, options)
    throttle = Throttle(options.concurrency)
    heard = HEARD.set(throttle)
    player = Player(plan, provider, dataset, options.timeout, grace)
    run = _Run(player, watch, throttle, plan.window)
    try:
        todo: Iterable[Slot] = (slot for slot in slots(dataset, options) if slot not in done)
        await _play(run, iter(todo))
        for _ in range(options.retry_errors):
            await _play(run, iter(watch.errors()))
    finally:
        HEARD.reset(heard)
    notes = [*watch.notes(), *throttle.notes()]
    if watch.first is None:
        return Outcome(notes)
    return Outcome([_stopped(watch, watch.first, dataset, options), *notes], stopped=True)


def slots(dataset: Dataset, options: RunOptions) -> Iterator[Slot]:
    """Yield all that is to be played, the first repeats before the second ones."""
    pairs = itertools.product(range(options.repeat), range(len(dataset)))
    return (Slot(position, repeat) for repeat, position in pairs)


class Outcome(NamedTuple):
    """What a report has to say of a run; one that ``stopped`` was not meant to play the rest."""

    notes: Sequence[str] = ()
    stopped: bool = False


class _Run(NamedTuple):
    """What the workers of one evaluation share."""

    player: Player
    watch: Watch
    throttle: Throttle
    window: int


async def _play(run: _Run, todo: Iterator[Slot]) -> None:
    """Play what is to do, by several workers, until all is done or somebody wants to stop."""
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
    # Unlike `gather` it leaves the workers alone when it is cancelled: each is cancelled
    # once, as a second time would break off its clean-up.
    await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    if not any(worker.done() and worker.exception() for worker in workers):
        await background.wait()


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait for one of several; raises what it does."""
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
            if run.watch.stopped.is_set():
                return
            refused = run.watch.refuse(slot)
            if refused is not None:
                run.watch.add(player.unplayed(slot, refused))
                continue
            await player.prepare()
            played, complete = await player.play(slot)
        run.watch.count(played.trace)
        if isinstance(played, Unfinished):
            await background.add(played, complete)
        else:
            run.watch.add(complete(played))


def _stopped(watch: Watch, first: First, dataset: Dataset, options: RunOptions) -> str:
    what = "failed" if first.status == "failed" else "is an error"
    return (
        f"stopped at the first case that did not pass, as asked (`fail_fast`): `{first.case_id}` "
        f"{what}; {watch.played} of {len(dataset) * options.repeat} planned cases were played, the "
        "others were not"
    )
