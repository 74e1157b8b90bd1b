"""What hostile inputs came to, how long it took, and how much memory.

Seconds are those of a processor, so that other tests may run beside: what waits and never ends is
ended by the time-out of pytest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fuzz.outcome import check, outcome

from baton.model import Trace

SECONDS = 60.0
"""How long one input may take."""
_OWN = Path("/proc/self")


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
        """Read a file that holds traces, one at least; return the seconds it took."""
        before, began = self.traces, time.process_time()
        self.file(path)
        assert self.traces > before
        return time.process_time() - began

    def spans(self, read: Callable[[], Sequence[Trace]]) -> float:
        """Read what is in memory; returns the seconds it took, checks of the records apart."""
        with self._limits():
            began = time.process_time()
            traces = read()
            took = time.process_time() - began
            for trace in traces:
                check(trace)
        self.traces += len(traces)
        return took

    @contextmanager
    def memory(self, most: int) -> Iterator[None]:
        """Allow the peak of memory to rise by this many bytes."""
        # 5 makes what is in memory now the peak: that of an earlier test would hide this one's.
        (_OWN / "clear_refs").write_text("5")
        before = _peak()
        yield
        risen = _peak() - before
        assert risen <= most, f"took {risen / 1e6:.0f} MB more"

    @contextmanager
    def _limits(self) -> Iterator[None]:
        self.inputs += 1
        began = time.process_time()
        yield
        took = time.process_time() - began
        self.slowest = max(self.slowest, took)
        assert took < SECONDS, f"took {took:.1f} seconds"

    def __str__(self) -> str:
        return (
            f"{self.inputs} inputs, {self.traces} traces, {self.refused} refused, 0 crashes; "
            f"the slowest took {self.slowest:.1f} seconds"
        )


def _peak() -> int:
    """Return the most bytes that this process has had in memory since it was last cleared."""
    found = re.search(r"VmHWM:\s+(\d+) kB", (_OWN / "status").read_text())
    assert found is not None
    return int(found[1]) * 1024
