"""When a case is played again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from baton.model import CaseResult, RunOptions, Trace, counted

from .collect_results import Results
from .player import Slot


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
                f"`max_agent_cost` ignores costs of {counted(self._unpriced, 'case')}: "
                "neither the agents nor `prices:` state them"
            )
        return texts


def _in_order(slot: Slot) -> tuple[int, int]:
    return slot.repeat, slot.position
