"""Playing the cases of a dataset against a provider, several at once, and collecting results."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Container, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from baton.formats.evaluation_header import Header
from baton.http.rate_limits import HEARD, LONGEST_WAIT, loop_time
from baton.model import (
    CaseResult,
    Dataset,
    Evaluation,
    Provider,
    ProviderWithNotice,
    RunOptions,
    Trace,
    counted,
)
from baton.store import EvaluationWriter, Kept

from .collect_results import FolderResults, MemoryResults, Results
from .loop import GRACE, entered
from .pending_scores import Background
from .plan import Plan, check_overrides
from .player import Player, Slot, check_sessions, one_at_a_time
from .scoring import Unfinished

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


class First(NamedTuple):
    """The first case that did not pass."""

    case_id: str
    status: str


_ROUNDS = 5
"""How often a case is retried at most if a server is busy."""
_IN_VAIN = 10
"""The number of retried cases in a row that a server refuses, after which it is not busy but
broken.
"""


class Watch:
    """Passes results on, and watches them."""

    def __init__(self, results: Results, wanted: RunOptions) -> None:
        self.stopped = asyncio.Event()
        self.first: First | None = None
        self.played = 0
        self._results = results
        self._wanted = wanted
        self._left = wanted.retry_errors or 0
        self._rounds = 0 if wanted.retry_errors == 0 else _ROUNDS
        self._errors: list[Slot] = []
        self._busy: set[Slot] = set()
        self._waiting: dict[Slot, str] = {}
        self._refused_again: int | None = None  # in a row; None before any retry
        self._again = 0
        self._asked_again = 0
        self._refused: set[Slot] = set()
        self._cost = 0.0
        self._unpriced = 0

    def note_busy(self, slot: Slot) -> None:
        """Record, before its result, that a server was busy for a case."""
        self._busy.add(slot)

    def add(self, result: CaseResult) -> None:
        """Pass a result on."""
        self._results.add(result)
        self.played += 1
        is_final = True
        slot = Slot(result.position, result.repeat)
        busy = slot in self._busy
        self._busy.discard(slot)
        if self._refused_again is not None and not self.in_vain:
            self._refused_again = self._refused_again + 1 if busy else 0
        if result.status == "error" and slot not in self._refused:
            if self._left:
                self._errors.append(slot)
                is_final = False
            elif busy and self._rounds:
                self._waiting[slot] = result.case_id
                is_final = False
        if is_final and result.status in ("failed", "error"):
            self._stop_at(First(result.case_id, result.status))

    def _stop_at(self, first: First) -> None:
        if self._wanted.fail_fast:
            self.first = self.first or first
            self.stopped.set()

    def errors(self) -> list[Slot]:
        """Return what to retry now; nothing after the maximum number of retries."""
        if self.stopped.is_set():
            return []
        again, self._errors = sorted(self._errors, key=_in_order), []
        self._left -= 1
        self._again += len(again)
        return again

    def may_ask_again(self) -> bool:
        """Tell whether refused cases should be retried."""
        if self.in_vain:
            self._rounds = 0
        if self._waiting and not self._rounds:
            self._stop_at(First(next(iter(self._waiting.values())), "error"))
        return bool(self._waiting and self._rounds) and not self.stopped.is_set()

    def busy(self) -> Iterator[Slot]:
        """Yield the refused cases for a retry."""
        self._rounds -= 1
        self._refused_again = 0
        waiting, self._waiting = sorted(self._waiting, key=_in_order), {}
        for slot in waiting:
            self._asked_again += 1
            yield slot

    @property
    def in_vain(self) -> bool:
        """Whether a server refuses all retries."""
        return (self._refused_again or 0) >= _IN_VAIN

    def count(self, trace: Trace | None) -> None:
        """Add the cost of a case, if known."""
        usage = trace.usage if trace is not None else None
        if usage is not None and usage.cost_usd is not None:
            self._cost += usage.cost_usd
        if usage is None or usage.cost_usd is None or not usage.complete:
            self._unpriced += 1

    def refuse(self, slot: Slot) -> str | None:
        """Return why no further case is played, if the budget is spent."""
        limit = self._wanted.max_agent_cost
        if limit is None or self._cost < limit:
            return None
        self._refused.add(slot)
        return (
            f"budget: the agents cost {self._cost:.4g} USD, and `max_agent_cost` is {limit:g} USD"
        )

    def notes(self) -> list[str]:
        """Return notes for a report about retries and skipped cases."""
        texts = []
        if self._again:
            errors = f"{counted(self._again, 'error')} {'was' if self._again == 1 else 'were'}"
            texts.append(f"{errors} played again (`retry_errors`)")
        if self._asked_again:
            times = counted(self._asked_again, "time")
            texts.append(f"cases that busy servers refused were played again: {times} (429, 503)")
        limit = self._wanted.max_agent_cost
        if limit is not None and self._unpriced:
            texts.append(
                f"`max_agent_cost` lacks costs of {counted(self._unpriced, 'case')}: "
                "no source or price states them"
            )
        return texts


def _in_order(slot: Slot) -> tuple[int, int]:
    return slot.repeat, slot.position


_PAUSE = 1.0
"""Seconds without new cases after a 429 that states no time."""
_STEP = 0.5
"""How much the limit grows for each case without a complaint of a server."""


class Throttle:
    """Lets up to ``most`` cases be in play; entered for each.

    When a server is overloaded, nothing is sent for as long as it asks, and the limit is halved.
    Cases without complaints raise it again.
    """

    def __init__(self, most: int) -> None:
        """Start with the maximum."""
        self.most = most
        self.complaints = 0
        self.lowest = most
        self._limit = float(most)
        self._in_play = 0
        self._until = 0.0
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int:
        """The current limit of cases in play."""
        return max(1, int(self._limit))

    async def __aenter__(self) -> Self:
        await self._enter()
        return self

    async def _enter(self) -> None:
        while True:
            await self.wait()
            if self._in_play < self.limit:
                self._in_play += 1
                return
            self._changed.clear()
            await self._changed.wait()

    async def enter_again(self) -> None:
        """Give up the turn of a case in play, and wait for the next one."""
        self._in_play -= 1
        self._changed.set()
        try:
            await self._enter()
        except BaseException:
            self._in_play += 1  # it counts as in play until it leaves
            raise

    async def __aexit__(self, *_: object) -> None:
        self._in_play -= 1
        if self._limit < self.most and loop_time() >= self._until:
            self._limit = min(float(self.most), self._limit + _STEP)
        self._changed.set()

    def slow(self, seconds: float | None) -> None:
        """Handle a complaint; those during one pause have the same cause."""
        self.complaints += 1
        now = loop_time()
        if now >= self._until:
            self._limit = max(1.0, min(self._limit, float(self._in_play)) / 2)
            self.lowest = min(self.lowest, self.limit)
        # A longer wait is its own error case, and does not delay all others.
        pause = _PAUSE if seconds is None or seconds > LONGEST_WAIT else seconds
        self._until = max(self._until, now + pause)

    async def wait(self) -> None:
        """Wait for the end of a pause."""
        while (left := self._until - loop_time()) > 0:
            await asyncio.sleep(left)

    def notes(self) -> list[str]:
        """Return a note for the report if it slowed down."""
        if not self.complaints:
            return []
        times = f"{counted(self.complaints, 'time')} (429, 503)"
        return [f"servers asked to slow down {times}: down to {self.lowest} of {self.most} at once"]
