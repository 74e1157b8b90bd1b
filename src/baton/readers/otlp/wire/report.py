"""What reading a file leaves to say: what was lost, and what is wrong."""

from __future__ import annotations

import msgspec

from baton.model import Dropped, Problem

_MOST_PROBLEMS = 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is read before a file is refused.

    ``decompressed`` and ``compressed`` are bytes of a packed file, ``ratio`` how many times
    larger its content may be once that is over 64 MiB, ``members`` how many packed parts it may
    have, ``message`` the bytes of one framed message, and ``span`` those of one span or record.
    """

    decompressed: int = 16 << 30
    compressed: int = 4 << 30
    ratio: int = 400
    members: int = 200_000
    message: int = 1 << 30
    span: int = 256 << 20


class Report:
    """Collects what was lost on reading a file, and its problems.

    ``read`` counts the bytes of records that were read.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.lost: dict[str, Dropped] = {}
        self.problems: list[Problem] = []
        self.more_problems = 0
        self.read = 0

    def lose(self, what: str, count: int = 1, example: str | None = None) -> None:
        """Count something that could not be kept."""
        known = self.lost.setdefault(what, Dropped(what=what, count=0, example=example))
        known.count += count

    def fault(self, message: str, line: int | None = None, path: str = "") -> None:
        """Note something that is wrong with the file; the first ones are told in full."""
        if not self.is_full():
            self.problems.append(Problem(file=self.file, line=line, path=path, message=message))
        else:
            self.more_problems += 1

    def is_full(self) -> bool:
        """Tell whether further problems are only counted."""
        return len(self.problems) >= _MOST_PROBLEMS

    def all_problems(self) -> list[Problem]:
        """Return the problems, with a last one that counts those not told."""
        if not self.more_problems:
            return self.problems
        more = Problem(file=self.file, message=f"and {self.more_problems} more problems")
        return [*self.problems, more]
