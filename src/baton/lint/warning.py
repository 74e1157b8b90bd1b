"""What a rule says."""

from __future__ import annotations

import msgspec


class LintWarning(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Something in a file that is likely to be a mistake.

    ``line`` counts from 1; ``what`` says what was found and what comes of it, ``remedy`` what to
    do about it.
    """

    file: str
    line: int | None
    rule: str
    what: str
    remedy: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.what}; {self.remedy} [{self.rule}]"
