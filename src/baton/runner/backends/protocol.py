"""The interface of backends: they take jobs and return outcomes, both as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Protocol, Self

import msgspec

from baton.model import AgentCard, CaseResult, Problem, RunOptions
from baton.model.redact import ON, Redaction
from baton.readers.shards import Shard
from baton.store import Encoded


class Recipe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a worker sets itself up: only the command line's options, nothing derived from them.

    Paths are relative to ``folder``, also on other machines. ``baton`` is the version that a worker
    must have. ``judge`` are the flags of the judge; API keys come from the environment of the
    worker. ``provider`` is the spec of an agent that was named without a config, ``cases`` are the
    only ones of the dataset to take (without a dataset, ids of traces), ``run`` has the time-out
    and how often errors are retried. ``trusted`` are found files that may name code, each with its
    sha256. ``redact`` is what to redact in traces. ``texts`` are changed components. ``live_tools``
    really run while stand-ins answer for other tools.
    """

    baton: str
    folder: str
    config: str | None = None
    dataset: list[str] = msgspec.field(default_factory=list)
    filters: list[str] = msgspec.field(default_factory=list)
    keyword: str | None = None
    limit: int | None = None
    cases: list[str] | None = None
    agents: str | None = None
    evaluators: list[str] = msgspec.field(default_factory=list)
    criteria: str | None = None
    provider: dict[str, Any] | None = None
    run: RunOptions = msgspec.field(default_factory=RunOptions)
    judge: dict[str, Any] = msgspec.field(default_factory=dict)
    recorded: bool = False
    trusted: dict[str, str] = msgspec.field(default_factory=dict)
    redact: Redaction = ON
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    live_tools: list[str] = msgspec.field(default_factory=list)


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """One play of one case: its place in the dataset, its id, its repeat from 0.

    ``variant`` is which of the config's providers plays it, from 0.
    """

    position: int
    case: str
    repeat: int = 0
    variant: int = 0


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job for a worker: to ``play`` a case, or to score a ``shard`` of traces."""

    recipe: Recipe
    play: Play | None = None
    shard: Shard | None = None


class ScoredTrace(msgspec.Struct, array_like=True):
    """The encoded result of a recorded trace, and the name of its trace.

    ``has_case`` says whether a case was found: without one, the position in its row means nothing.
    """

    result: Encoded
    has_case: bool
    trace: str
    format: str
    location: str | None


class Outcome(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The outcome of a job: the ``results`` of a played case, or the scored traces of a shard.

    ``scored`` is in the order of the traces, and ``left_out`` counts unselected ones. ``agents``
    has their definitions without duplicates, and ``reasons`` why evaluators scored nothing, the
    first of each. ``problems`` are those of files,
    with lines counted from the start of the shard, which has ``lines`` lines. If Baton itself
    failed on a shard, it is ``broken``. A ``fault`` is the worker's: it can do no job.
    """

    results: list[CaseResult] = msgspec.field(default_factory=list)
    scored: list[ScoredTrace] = msgspec.field(default_factory=list)
    agents: list[dict[str, AgentCard]] = msgspec.field(default_factory=list)
    reasons: dict[str, str] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    lines: int = 0
    left_out: int = 0
    broken: bool = False
    fault: str | None = None


class Done(msgspec.Struct, frozen=True):
    """A job that a worker has finished; without an ``outcome`` the worker was ``lost``."""

    number: int
    outcome: bytes | None
    lost: str = ""


class Backend(Protocol):
    """Sends jobs to workers as JSON, and returns their outcomes as JSON.

    A worker gives the text of a job to ``baton.session.backend_workers.Worker.do``, keeps that
    object for further jobs, and sends back its result. The caller resubmits lost jobs, and makes
    sure that no more than ``room`` are running at a time.
    """

    room: int

    def __enter__(self) -> Self:
        """Start the workers; raises InputError when that cannot be done."""

    def __exit__(self, *_: object) -> None:
        """End the workers; running jobs are dropped."""

    def submit(self, number: int, job: bytes) -> None:
        """Submit a job; does not wait."""

    def take(self) -> Done:
        """Wait for any of the running jobs."""


class JobDoer(Protocol):
    """Does jobs in a worker, one after the other."""

    def do(self, text: bytes, /) -> bytes:
        """Do a job (JSON); return its outcome (JSON), which includes errors."""

    def close(self) -> None:
        """Release resources that are kept for further jobs."""


class Waiting(ABC):
    """A backend that queues jobs until a worker is free."""

    room = 1

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, bytes]] = deque()

    def submit(self, number: int, job: bytes) -> None:
        """Queue a job until a worker is free."""
        self._waiting.append((number, job))
        self.hand_out()

    @abstractmethod
    def hand_out(self) -> None:
        """Give queued jobs to free workers."""
