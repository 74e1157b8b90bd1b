"""How a worker does a job."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from baton.model import CaseResult, Dataset, InputError, Problem, Provider, Trace
from baton.model.visible import exception_line
from baton.readers import Catalog
from baton.readers.shards import Shard, ShardReader
from baton.runner.plan import Plan
from baton.runner.recorded import collect, error_result, score_one
from baton.store import encoded

from .protocol import Job, Outcome, Recipe, ScoredTrace

if TYPE_CHECKING:
    from .play import CasePlayer

_JOBS = msgspec.json.Decoder(Job)


class Setup(NamedTuple):
    """A loaded recipe; plan and provider are those of a variant, from 0.

    ``keep`` selects the recorded traces to score, if only some cases are scored. Nothing is played
    without a ``provider``.
    """

    plan: Callable[[int], Plan]
    dataset: Dataset | None
    catalog: Catalog | None
    provider: Callable[[int], Provider] | None = None
    keep: Callable[[Trace], bool] | None = None


class Loaded(NamedTuple):
    """A recipe and what was loaded from it."""

    recipe: Recipe
    setup: Setup


class JobWorker:
    """Does jobs one after the other, and keeps its setup for the next.

    Not thread-safe. The agents' resources are opened with the first case and closed by ``close``.
    """

    def __init__(
        self,
        set_up: Callable[[Recipe], Setup],
        loaded: Loaded | None = None,
    ) -> None:
        """``set_up`` loads a recipe that is not ``loaded``; it may raise InputError."""
        self._load = set_up
        self._recipe: Recipe | None = loaded.recipe if loaded is not None else None
        self._setup: Setup | None = loaded.setup if loaded is not None else None
        self._player: CasePlayer | None = None

    def do(self, text: bytes) -> bytes:
        """Do a job (JSON); return its outcome (JSON). What cannot be done is in there."""
        try:
            job = _JOBS.decode(text)
        except msgspec.DecodeError as error:
            return msgspec.json.encode(Outcome(fault=str(error)))
        try:
            setup = self._setup
            if setup is None or job.recipe != self._recipe:
                self.close()
                os.chdir(job.recipe.folder)
                setup = self._load(job.recipe)
                self._recipe, self._setup = job.recipe, setup
            if job.play is not None:
                if self._player is None:
                    from .play import CasePlayer  # with asyncio: most workers score recordings

                    self._player = CasePlayer()
                outcome = self._player.play(setup, job.play, job.recipe.run)
            elif job.shard is not None:
                outcome = _score(setup, job.shard)
            else:
                outcome = Outcome(fault="a job with nothing to play or score")
        except (InputError, OSError, msgspec.DecodeError) as error:
            outcome = Outcome(fault=str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours leaves the other jobs alone
            # A bug in Baton for this job: an error, and never a failure.
            crash = f"internal error: {exception_line(error)}"
            if job.shard is not None:
                message = f"{crash}; --jobs 1 --debug shows the traceback"
                problem = Problem(file=job.shard.files[0], message=message)
                outcome = Outcome(problems=[problem], broken=True)
            elif job.play is None:
                outcome = Outcome(fault=crash)
            else:
                result = error_result(job.play.case, job.play.position, crash, None, None)
                result.repeat = job.play.repeat
                outcome = Outcome(results=[result])
        return msgspec.json.encode(outcome)

    def close(self) -> None:
        """Release agents and judges."""
        if self._player is not None:
            self._player.close()
        self._player, self._setup, self._recipe = None, None, None


def _score(setup: Setup, shard: Shard) -> Outcome:
    """Score the traces of a shard; return the encoded results for the folder."""
    outcome = Outcome()
    reader = ShardReader(
        shard,
        setup.catalog,
        lambda error: outcome.problems.extend(error.problems),
        outcome.notes.append,
    )
    plan = setup.plan(0)

    def chosen() -> Iterator[Trace]:
        for trace in reader.traces():
            if setup.keep is None or setup.keep(trace):
                yield trace
            else:
                outcome.left_out += 1

    scored = (score_one(plan, trace, setup.dataset) for trace in chosen())
    collect(plan, scored, _Encoding(outcome))
    outcome.lines = reader.lines
    return outcome


class _Encoding:
    """Encodes results as in the folder, so that no trace is sent between processes."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def add(self, result: CaseResult) -> None:
        outcome, trace = self._outcome, result.trace
        assert trace is not None  # noqa: S101 - a recorded trace is what was scored
        if trace.agents and trace.agents not in outcome.agents:
            outcome.agents.append(trace.agents)
        for score in result.scores:
            if score.value is None:
                outcome.reasons.setdefault(score.evaluator, score.reason)
        source = trace.source
        has_case = result.position >= 0
        result.position = max(result.position, 0)
        outcome.scored.append(
            ScoredTrace(encoded(result), has_case, trace.id, source.format, source.location)
        )
