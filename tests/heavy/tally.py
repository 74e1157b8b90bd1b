"""What hostile inputs came to, how long it took, and how much memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fuzz.outcome import check, outcome

from baton.model import Trace

SECONDS = 60.0
"""How long one input may take."""
_BYTES = 1024  # what `ru_maxrss` counts in


class Tally:
    """Counts inputs; one that crashes, hangs or takes too much fails its test."""

    def __init__(self) -> None:
        self.inputs = self.traces = self.refused = 0
        self.slowest = 0.0

    def file(self, path: Path) -> None:
        """Read a file: sound records, or errors that name it."""
        with self._limits():
            found = outcome(path)
        self.traces += len(found.traces)
        self.refused += bool(found.problems)

    def timed(self, path: Path) -> float:
        """Read a file that holds traces, one at least; returns the seconds it took."""
        before, began = self.traces, time.perf_counter()
        self.file(path)
        assert self.traces > before
        return time.perf_counter() - began

    def spans(self, read: Callable[[], Sequence[Trace]]) -> float:
        """Read what is in memory; returns the seconds it took, checks of the records apart."""
        with self._limits():
            began = time.perf_counter()
            traces = read()
            took = time.perf_counter() - began
            for trace in traces:
                check(trace)
        self.traces += len(traces)
        return took

    @contextmanager
    def memory(self, most: int) -> Iterator[None]:
        """Allow the peak of memory to rise by this many bytes."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES
        yield
        risen = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES - before
        assert risen <= most, f"took {risen / 1e6:.0f} MB more"

    @contextmanager
    def _limits(self) -> Iterator[None]:
        self.inputs += 1
        began = time.perf_counter()
        yield
        took = time.perf_counter() - began
        self.slowest = max(self.slowest, took)
        assert took < SECONDS, f"took {took:.1f} seconds"

    def __str__(self) -> str:
        return (
            f"{self.inputs} inputs, {self.traces} traces, {self.refused} refused, 0 crashes; "
            f"the slowest took {self.slowest:.1f} seconds"
        )
