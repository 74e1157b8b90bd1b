"""What a backend is: it takes jobs and gives outcomes, both as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, NamedTuple, Protocol, Self

import msgspec

from baton.model import AgentCard, CaseResult, Problem
from baton.model.redact import ON, Redaction
from baton.readers.shards import Shard
from baton.runner.plan import RunOptions
from baton.store import Encoded


class Recipe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a worker sets itself up: what the command line said, and nothing that was made of it.

    Paths start in ``folder``, also on other machines. ``baton`` is the version that a worker has
    to have. ``judge`` are the flags of the judge; keys come from the environment of the worker.
    ``provider`` is the spec of an agent that was named without a config, ``cases`` are the only
    ones of the dataset to take (without a dataset, ids of traces), ``run`` tells the time-out and
    how often errors are played again.
    ``trusted`` are files that may name code, though nobody named them, each with its sha256.
    ``redact`` is what is taken out of traces. ``texts`` are components that are changed.
    ``live_tools`` really run where stand-ins answer for others.
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
    """One playing of one case: its place in the dataset, its id, its repeat from 0.

    ``variant`` is which of the config's providers plays it, from 0.
    """

    position: int
    case: str
    repeat: int = 0
    variant: int = 0


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker is asked to do: to ``play`` a case, or to score a ``shard`` of traces."""

    recipe: Recipe
    play: Play | None = None
    shard: Shard | None = None


class ScoredTrace(msgspec.Struct, array_like=True):
    """The result of a recorded trace as the folder holds it, and what its trace is called.

    ``has_case`` says whether a case was found: without one, the position in its row means nothing.
    """

    result: Encoded
    has_case: bool
    trace: str
    format: str
    location: str | None


class Outcome(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What came of a job: the ``results`` of a case that was played, or of a shard what was scored.

    ``scored`` stands in the order of the traces, and ``left_out`` counts those that were not
    chosen. ``agents`` has the definitions in them, each
    once, and ``reasons`` why evaluators scored nothing, the first of each. ``problems`` are of
    files, their lines counted from where the shard starts; it has ``lines`` of them. A shard that
    Baton itself failed on is ``broken``. A ``fault`` is of the worker: no job can be done there.
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


class Done(NamedTuple):
    """A job that a worker is through with; without an ``outcome`` the worker was ``lost``."""

    number: int
    outcome: bytes | None
    lost: str = ""


class Backend(Protocol):
    """Hands jobs to workers, as JSON, and their outcomes back, as JSON.

    A worker gives the text of a job to ``baton.session.worker.Worker.do``, keeps that
    object for further jobs, and hands back what it returns. Jobs that were lost are submitted
    again by the caller, who also sees to it that no more than ``room`` are out at a time.
    """

    room: int

    def __enter__(self) -> Self:
        """Start the workers; raises InputError when that cannot be done."""

    def __exit__(self, *_: object) -> None:
        """End the workers; what is still out is dropped."""

    def submit(self, number: int, job: bytes) -> None:
        """Hand out a job; does not wait."""

    def take(self) -> Done:
        """Wait for any of the jobs that are out."""


class JobDoer(Protocol):
    """What a worker does jobs with, one after the other."""

    def do(self, text: bytes, /) -> bytes:
        """Do a job (JSON); return its outcome (JSON). What cannot be done is in there."""

    def close(self) -> None:
        """Let go of what is held for further jobs."""


class Waiting(ABC):
    """A backend whose jobs wait here, in their order, until a worker is free."""

    room = 1

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, bytes]] = deque()

    def submit(self, number: int, job: bytes) -> None:
        """Hand out a job; it waits until a worker is free."""
        self._waiting.append((number, job))
        self.hand_out()

    @abstractmethod
    def hand_out(self) -> None:
        """Give jobs that wait to workers that are free."""
