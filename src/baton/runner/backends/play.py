"""Playing cases on a backend: handing them out, and playing one in a worker.

The folders of such evaluations equal those of a local run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from baton.model import CaseResult, Dataset, InputError, Provider, RunOptions
from baton.model.option_spelling import option
from baton.runner.collect_results import FolderResults
from baton.runner.live import RunFolder, finished_slots, notices_of, play_all, slots
from baton.runner.loop import GRACE, DaemonThreads, entered
from baton.runner.plan import Plan, check_overrides
from baton.runner.player import check_sessions
from baton.runner.recorded import error_result

from .distribute import Finished, finished, read_outcome
from .protocol import Backend, Job, Outcome, Play, Recipe

if TYPE_CHECKING:
    from .work import Setup


def evaluate_on(
    backend: Backend,
    recipe: Recipe,
    plan: Plan,
    provider: Provider,
    dataset: Dataset,
    options: RunOptions,
    to: RunFolder,
    variant: int = 0,
) -> Path:
    """Let workers play and score a dataset, write each result at once; return the folder.

    ``provider`` is only checked for its abilities here, and not called. A case whose worker was
    lost repeatedly is an error. If interrupted, the folder is consistent and says so.
    """
    check_overrides(plan, dataset)
    check_sessions(provider, dataset)
    if dataset.first_with("restart") is not None:
        raise InputError("some cases restart the agents' server: play them without a backend")
    if options.fail_fast or options.max_agent_cost is not None:
        both = f"{option('fail_fast')} and {option('max_agent_cost')}"
        raise InputError(f"{both} do not work with a backend")
    planned = len(dataset) * options.repeat
    done = finished_slots(to.kept)
    jobs = (
        Job(
            recipe=recipe,
            play=Play(
                position=slot.position,
                case=dataset.ids[slot.position],
                repeat=slot.repeat,
                variant=variant,
            ),
        )
        for slot in slots(dataset, options)
        if slot not in done
    )
    with backend:
        writer = to.open(planned, options.repeat, notices_of(provider))
        with FolderResults(plan, writer, planned=planned, kept=to.kept) as results:
            for each in finished(backend, jobs, read_outcome):
                for result in _played(each, dataset):
                    results.add(result)
                    to.on_result(result)
    return writer.folder


def _played(done: Finished[Job, Outcome], dataset: Dataset) -> list[CaseResult]:
    play = done.job.play
    if done.outcome is not None or play is None:
        return done.outcome.results if done.outcome is not None else []
    case = dataset.cases[play.position]
    result = error_result(case.id, play.position, done.lost, None, case)
    result.repeat = play.repeat
    return [result]


class CasePlayer:
    """Plays the cases of a worker one after the other.

    The agents' resources are opened with the first case and closed by ``close``.
    """

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._hosts: dict[int, _Host] = {}

    def play(self, setup: Setup, play: Play, run: RunOptions) -> Outcome:
        """Play and score one case.

        Raises:
            InputError: nothing can play it here, or the dataset here is another one.
        """
        if setup.provider is None:
            raise InputError("nothing is set up to play cases")
        if setup.dataset is None or setup.dataset.ids[play.position : play.position + 1] != [
            play.case
        ]:
            raise InputError(f"the dataset has no case `{play.case}` at {play.position} here")
        if self._runner is None:
            self._runner = asyncio.Runner()
            self._runner.get_loop().set_default_executor(DaemonThreads())
        if play.variant not in self._hosts:
            host = _Host(setup.provider(play.variant), setup.plan(play.variant))
            self._runner.run(host.enter())
            self._hosts[play.variant] = host
        host = self._hosts[play.variant]
        options = msgspec.structs.replace(run, concurrency=1, repeat=1)
        results = _Kept()
        one = setup.dataset.subset([play.position])
        self._runner.run(play_all(host.plan, host.provider, one, options, results))
        for result in results.kept:
            result.position, result.repeat = play.position, play.repeat
        return Outcome(results=results.kept)

    def close(self) -> None:
        """Release agents and judges."""
        if self._runner is not None:
            try:
                for host in self._hosts.values():
                    self._runner.run(host.leave())
            finally:
                self._runner.close()


class _Host:
    """A task in which a provider and a judge are entered and exited: some require the same task."""

    def __init__(self, provider: Provider, plan: Plan) -> None:
        self.provider, self.plan = provider, plan
        self._leaving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._stay(ready))
        await asyncio.wait([self._task, ready], return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()

    async def leave(self) -> None:
        self._leaving.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=GRACE)

    async def _stay(self, ready: asyncio.Future[None]) -> None:
        async with entered(self.provider), entered(self.plan.context.judge):
            ready.set_result(None)
            await self._leaving.wait()


class _Kept:
    def __init__(self) -> None:
        self.kept: list[CaseResult] = []

    def add(self, result: CaseResult) -> None:
        self.kept.append(result)

    def note(self, notes: Sequence[str], *, stopped: bool = False) -> None:
        """Add notes; those of one case are not kept."""
