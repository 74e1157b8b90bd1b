"""Uploaded recordings: a file, or an archive of a folder, to records.

What is uploaded is content only: it is read in a private folder that is removed again, and a place
that a recording names is never opened.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from baton.formats.opening import InputFile
from baton.model import InputError, Problem, Trace
from baton.model.redact import ON, Redaction
from baton.readers.load import iter_traces
from baton.readers.otlp.wire.sniff import is_otlp

from .archives import UploadLimits, write_upload
from .inbox import Item


class Upload:
    """An uploaded recording in a private folder: ``path`` is the file, or the folder of several."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        files = list(folder.iterdir())
        self.path = files[0] if len(files) == 1 and files[0].is_file() else folder

    def spans(self) -> InputFile | None:
        """Return the file if it is one of spans: these are kept like any that arrive."""
        if self.path.is_dir():
            return None
        file = InputFile(self.path)
        if is_otlp(file):
            return file
        file.close()
        return None

    def records(self, redaction: Redaction) -> tuple[list[Trace], str | None]:
        """Return the records, and what is wrong with the rest."""
        problems: list[Problem] = []
        records = []
        found = iter_traces(
            self.path, on_problem=lambda error: problems.extend(error.problems), redact=redaction
        )
        for record in found:
            record.source.location = self.name
            for lost in record.dropped:
                lost.example = None if lost.example is None else self._named(lost.example)
            records.append(record)
        said = [self._named(str(problem)) for problem in problems]
        if not records and not said:
            said.append("holds no trace")
        return records, ON.text("; ".join(said))[:2000] or None

    def _named(self, text: str) -> str:
        """Return a message about the files as their sender knows them."""
        inside = text.replace(f"{self.path}/", "") if self.path.is_dir() else text
        return inside.replace(str(self.path), self.name)


@contextmanager
def opened(item: Item, limits: UploadLimits) -> Iterator[Upload]:
    """Open an upload; its folder is removed at the end.

    Raises:
        InputError: it is an archive that is broken, holds a link or a way out, or is too large.
    """
    name = item.name or "recording"
    with tempfile.TemporaryDirectory(prefix="baton-upload-") as made:
        folder = Path(made)
        try:
            write_upload(item.body, name, folder, limits)
        except InputError as error:
            raise InputError(Problem(file=name, message=str(error))) from None
        yield Upload(name, folder)
