"""Handing out jobs, a bounded number at a time, until each is done once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from baton.model import InputError

from .protocol import Backend, Job, Outcome

RETRIES = 3
"""How often a job is handed out again after its worker was lost."""
AHEAD = 8
"""How many times its room a backend may be ahead of the oldest job that is not done."""

_OUTCOMES = msgspec.json.Decoder(Outcome)


class Finished(NamedTuple):
    """A job that is done, or (``lost`` says how) given up; exactly one of both."""

    number: int
    job: Job
    outcome: Outcome | None
    lost: str


class _Out(NamedTuple):
    job: Job
    losses: int = 0


def finished(backend: Backend, jobs: Iterable[Job]) -> Iterator[Finished]:
    """Yield each job once, in the order they come to an end.

    Jobs are made when there is room for them. One whose worker is lost is handed out again; an
    outcome that comes a second time is dropped.

    Raises:
        InputError: a worker cannot work: it lacks files, or has another version of Baton.
    """
    out: dict[int, _Out] = {}
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
            yield Finished(done.number, job, _checked(done.outcome), "")


def in_order(done: Iterable[Finished]) -> Iterator[Finished]:
    """Yield finished jobs by number; those that come early wait, bounded by ``AHEAD``."""
    early: dict[int, Finished] = {}
    expected = 0
    for each in done:
        early[each.number] = each
        while expected in early:
            yield early.pop(expected)
            expected += 1


def _checked(text: bytes) -> Outcome:
    outcome = _OUTCOMES.decode(text)
    if outcome.fault is not None:
        raise InputError(f"a worker cannot work: {outcome.fault}")
    return outcome
