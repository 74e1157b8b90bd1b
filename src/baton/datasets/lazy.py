"""Cases that are read when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple, overload

from baton.formats.document import Document
from baton.formats.opening import iter_lines
from baton.model import Case, Location

Parse = Callable[[Document], Case]


class CaseSequence(Sequence[Case]):
    """A sequence of cases; subclasses say how one is got."""

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> list[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | list[Case]:
        if isinstance(index, slice):
            return [self._case(i) for i in range(len(self))[index]]
        return self._case(range(len(self))[index])

    @abstractmethod
    def _case(self, index: int) -> Case: ...

    @abstractmethod
    def source(self, index: int) -> Source:
        """Return what a case is read from."""


class Source(NamedTuple):
    """The text of a case, and what reads one of its dialect."""

    document: Document
    parse: Parse


class LazyCases(CaseSequence):
    """Cases of one file, each decoded from its text when it is asked for.

    ``checked`` holds those that are decoded already. Each is given away once, since whoever asks
    may change it: most runs ask once for each case.
    """

    def __init__(
        self,
        file: str,
        count: int,
        document: Callable[[int], Document],
        parse: Parse,
        checked: dict[int, Case] | None = None,
    ) -> None:
        self.file = file
        self._count, self._document, self._parse = count, document, parse
        self._checked = checked or {}

    def __len__(self) -> int:
        return self._count

    def document(self, index: int) -> Document:
        """Return the text of one case, which knows its lines."""
        return self._document(index)

    def source(self, index: int) -> Source:
        """Return what a case is read from."""
        return Source(self._document(index), self._parse)

    def _case(self, index: int) -> Case:
        case = self._checked.pop(index, None)
        if case is not None:
            return case
        document = self._document(index)
        case = self._parse(document)
        case.where = Location(file=document.file, line=document.line(()))
        return case


class Place(NamedTuple):
    """Where one case of a joined dataset is got from."""

    cases: LazyCases
    position: int


class JoinedCases(CaseSequence):
    """Cases of several files one after the other, or a choice of one file's."""

    def __init__(self, places: Sequence[Place], ids: Sequence[str]) -> None:
        self._places, self._ids = places, ids

    def __len__(self) -> int:
        return len(self._places)

    def _case(self, index: int) -> Case:
        place = self._places[index]
        case = place.cases[place.position]
        case.id = self._ids[index]
        return case

    def source(self, index: int) -> Source:
        """Return what a case is read from; its id there may be another one."""
        place = self._places[index]
        return place.cases.source(place.position)


def line_documents(file: str) -> tuple[int, Callable[[int], Document]]:
    """Count the lines of a JSON-lines file that are not blank, and give their documents."""
    offsets, lines = array("Q"), array("L")
    at = 0
    for number, line in enumerate(iter_lines(file), 1):
        if not line.isspace():
            offsets.append(at)
            lines.append(number)
        at += len(line)

    def document(index: int) -> Document:
        with open(file, "rb") as stream:
            stream.seek(offsets[index])
            return Document(file, stream.readline(), "json", lines[index])

    return len(lines), document
