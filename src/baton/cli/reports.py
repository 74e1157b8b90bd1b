"""The reports that can be asked for on the command line: one table, and the options of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

Format = Literal["terminal", "json", "junit", "html", "markdown", "csv", "github"]
"""What ``baton report --format`` prints: the reporters of the registry."""


@dataclass(frozen=True)
class _Files:
    """Reports beside the one that is printed.

    Parameters
    ----------
    html
        Write one page with every case and trace to this file as well; it needs no network.
    markdown
        Write a comment for a pull request to this file as well.
    csv
        Write a row for each score to this file as well.
    junit
        Write a JUnit report to this file as well.
    github
        Print annotations for GitHub Actions, and add to the summary of its step.
    """

    html: Path | None = None
    markdown: Path | None = None
    csv: Path | None = None
    junit: Path | None = None
    github: Annotated[bool, Parameter(negative="")] = False

    def files(self) -> dict[str, Path]:
        """Return the files to write, by reporter."""
        return dict(self._files())

    def _files(self) -> Iterator[tuple[str, Path]]:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Path):
                yield field.name, value


NONE = _Files()
Reports = Annotated[_Files, Parameter(name="*")]
