"""What is printed of an evaluation, and of several variants side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.config import Config
from baton.model.visible import visible_line
from baton.reports.text import one_line
from baton.store import read_evaluation

from .notes import note
from .output import readers_may_leave, report
from .reports import Reports


class Variant(NamedTuple):
    """One of a config's providers, and the folder of its evaluation; alone it has no name."""

    name: str | None
    folder: Path


class Printed(NamedTuple):
    """How to report."""

    json: bool
    show: int
    detailed: bool
    reports: Reports

    def one(self, folder: Path, settings: Config | None, reports: Reports | None = None) -> int:
        """Report on an evaluation; return the exit code."""
        return report(
            folder,
            settings,
            json=self.json,
            show=self.show,
            detailed=self.detailed,
            reports=self.reports if reports is None else reports,
        )

    def all(self, done: Sequence[Variant], settings: Config | None) -> int:
        """Report on all variants, the files of each under a name of its own; with a summary."""
        if len(done) == 1 and done[0].name is None:
            return self.one(done[0].folder, settings)
        code = 0
        for number, variant in enumerate(done):
            if self.json:
                _say("[" if number == 0 else ",")
            elif len(done) > 1:
                _say(f"{'' if number == 0 else chr(10)}# {one_line(str(variant.name))}")
            files = _named(self.reports, variant)
            code = max(code, self.one(variant.folder, _renamed(settings, variant), files))
        if self.json:
            _say("]")
        elif len(done) > 1:
            _say("\n" + "\n".join(_line(variant) for variant in done))
        if len(done) > 1:
            note(f"side by side: baton compare {' '.join(str(each.folder) for each in done)}")
        return code


def _say(text: str) -> None:
    with readers_may_leave():
        print(text)


def _line(variant: Variant) -> str:
    header = read_evaluation(variant.folder, partial=True).header
    counts = ", ".join(f"{count} {status}" for status, count in header.cases.items() if count)
    return visible_line(f"{variant.name}: {header.status} ({counts})  {variant.folder}")


def _named(reports: Reports, variant: Variant) -> Reports:
    files: dict[str, Any] = {kind: _of(path, variant) for kind, path in reports.files().items()}
    return replace(reports, **files)


def _renamed(settings: Config | None, variant: Variant) -> Config | None:
    if settings is None:
        return None
    reporters = [
        msgspec.structs.replace(each, output_path=str(_of(Path(each.output_path), variant)))
        if each.output_path
        else each
        for each in settings.reporters
    ]
    return msgspec.structs.replace(settings, reporters=reporters)


def _of(path: Path, variant: Variant) -> Path:
    return path.with_name(f"{path.stem}-{variant.name}{path.suffix}")
