"""Datasets: cases in order, and indexes to find one of them among many."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args, overload

from msgspec import structs

from .case import Case, DispatchCase, ExpectedTurn, Location
from .errors import InputError
from .stand_ins import StandIns, merged

Need = Literal["restart", "new_session", "same_session"]
NEEDS: tuple[Need, ...] = get_args(Need)
"""The abilities that a case may need from its provider: restarting a server, opening another
session, and keeping a session from turn to turn.
"""
Format = Literal["adk", "judge-llm", "baton", "strands", "steps", "mixed"]


class Override(NamedTuple):
    """A case that overrides options of evaluators, and its place."""

    case_id: str
    where: Location | None
    options: dict[str, dict[str, Any]]


class CaseIndex:
    """Ids, first messages, places and stated fields, in columns: small enough for very many cases.

    ``local_ids`` are ids within a case's own file, if different from its id; ``overrides`` those of
    the few cases that have any; ``files`` the files of the cases, each with its number.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.inputs = array("Q")
        self.lines = array("L")
        self.local_ids: dict[str, list[int]] = {}
        self.overrides: list[Override] = []
        self.files: dict[str, int] = {}
        self._file = array("L")
        self._stated = array("H")
        self._needs = array("B")
        self.hashes = array("Q")

    def add(self, case: Case, where: Location | None = None) -> None:
        """Add one case."""
        where = where or case.where
        self.ids.append(case.id)
        self.inputs.append(message_hash(case.first_input))
        self.lines.append((where.line if where else None) or 0)
        self._put(_stated(case), _needs(case), where.file if where else "")
        self.hashes.append(case.short_hash())
        if case.evaluators:
            self.overrides.append(Override(case.id, where, case.evaluators))

    def take(self, other: CaseIndex, position: int, case_id: str) -> None:
        """Add a case of another index under the id ``case_id``."""
        local_id = other.ids[position]
        if case_id != local_id:
            self.local_ids.setdefault(local_id, []).append(len(self.ids))
        self.ids.append(case_id)
        self.inputs.append(other.inputs[position])
        self.lines.append(other.lines[position])
        self._put(other._stated[position], other._needs[position], other._file_of(position))
        self.hashes.append(other.hashes[position])
        self.overrides += [
            override._replace(case_id=case_id)
            for override in other.overrides
            if override.case_id == local_id
        ]

    def local_ids_at(self, places: Sequence[int]) -> dict[str, list[int]]:
        """Return the local ids of some cases, numbered from 0 in the given order."""
        new = {old: position for position, old in enumerate(places)}
        kept = {
            name: [new[old] for old in olds if old in new] for name, olds in self.local_ids.items()
        }
        return {name: positions for name, positions in kept.items() if positions}

    def stated(self, file: str | None = None) -> set[str]:
        """Return what any of the cases states, or any case of one file."""
        if file is None:
            masks = set(self._stated)
        else:
            number = self.files.get(file)
            masks = {m for m, n in zip(self._stated, self._file, strict=True) if n == number}
        return {name for bit, name in enumerate(_STATED) if any(m >> bit & 1 for m in masks)}

    def all_with(self, need: Need) -> Iterator[int]:
        """Yield the places of the cases that need something for playing."""
        bit = 1 << NEEDS.index(need)
        return (place for place, mask in enumerate(self._needs) if mask & bit)

    def where(self, position: int) -> Location | None:
        """Return the place of a case; ``None`` if it is in no file."""
        file = self._file_of(position)
        return Location(file=file, line=self.lines[position] or None) if file else None

    def _put(self, stated: int, needs: int, file: str) -> None:
        self._stated.append(stated)
        self._needs.append(needs)
        self._file.append(self.files.setdefault(file, len(self.files)))

    def _file_of(self, position: int) -> str:
        return list(self.files)[self._file[position]]


class Dataset:
    """Cases in order, with unique ids. ``cases`` may be read from disk one at a time."""

    def __init__(
        self,
        cases: Sequence[Case],
        *,
        name: str = "dataset",
        format: Format = "baton",
        index: CaseIndex | None = None,
        notes: Sequence[str] = (),
        files: Mapping[str, Format] | None = None,
    ) -> None:
        """Use ``index``; without one, every case is read to build it.

        ``files`` are the possible files of the cases, each with its format; others are left out.
        """
        if index is None:
            index = CaseIndex()
            for case in cases:
                index.add(case)
        self.cases = cases
        self.name = name
        self.format = format
        self.notes = list(notes)
        self.files = {name: kind for name, kind in (files or {}).items() if name in index.files}
        self._index = index
        self._places = {case_id: place for place, case_id in enumerate(index.ids)}
        self._by_input: dict[int, list[int]] | None = None
        self._by_redacted: dict[int, list[int]] | None = None
        if len(self._places) < len(index.ids):
            twice = next(i for n, i in enumerate(index.ids) if self._places[i] != n)
            raise InputError(f"the case id `{twice}` is a duplicate")

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    @property
    def ids(self) -> Sequence[str]:
        """The ids of all cases, in order."""
        return self._index.ids

    def content_hash(self) -> str:
        """Return a hash of the ids and contents of all cases, in any order (16 hex digits)."""
        pairs = sorted(zip(self._index.ids, self._index.hashes, strict=True))
        text = "\n".join(f"{case_id} {number:x}" for case_id, number in pairs)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def stated(self) -> set[str]:
        """The expectations that any case states, by the names that Baton's own files use."""
        return self._index.stated()

    def stated_in(self, file: str) -> set[str]:
        """Return what any of the cases of one file states."""
        return self._index.stated(file)

    def first_with(self, need: Need) -> tuple[str, Location | None] | None:
        """Return the first case that needs something from its provider, and its place."""
        place = next(self._index.all_with(need), None)
        return None if place is None else (self.ids[place], self._index.where(place))

    @property
    def overrides(self) -> Sequence[Override]:
        """The cases that override options of evaluators."""
        return self._index.overrides

    def line_of(self, place: int) -> int | None:
        """Return the line of a case in its file, from 1; ``None`` if unknown."""
        return self._index.lines[place] or None

    def subset(self, places: Sequence[int]) -> Dataset:
        """Return the cases at some places, in the order given."""
        index = CaseIndex()
        for place in places:
            index.take(self._index, place, self.ids[place])
        index.local_ids = self._index.local_ids_at(places)
        cases = _Chosen(self.cases, places)
        return Dataset(
            cases,
            name=self.name,
            format=self.format,
            index=index,
            notes=self.notes,
            files=self.files,
        )

    def with_stand_ins(self, under: StandIns) -> Dataset:
        """Return the same cases, with these stand-ins as defaults for their own."""
        return Dataset(
            _StoodIn(self.cases, under),
            name=self.name,
            format=self.format,
            index=self._index,
            notes=self.notes,
            files=self.files,
        )

    def by_id(self, case_id: str) -> Case | None:
        """Return the case with this id, or ``None`` when there is none.

        The id within the case's own file works as well (``c1`` for ``a/c1``).

        Raises:
            InputError: several files have a case with this id; lists their full ids.
        """
        places = self.places(case_id)
        if len(places) > 1:
            names = ", ".join(f"`{self.ids[place]}`" for place in places)
            raise InputError(f"several cases are called `{case_id}`: {names}")
        return self.cases[places[0]] if places else None

    def places(self, case_id: str) -> list[int]:
        """Return the places of the cases with this id; several when files share it."""
        if case_id in self._places:
            return [self._places[case_id]]
        return self._index.local_ids.get(case_id, [])

    def by_input(self, message: str) -> list[int]:
        """Return the places of cases that start with this user message; white space is folded."""
        if self._by_input is None:
            self._by_input = {}
            for place, wanted in enumerate(self._index.inputs):
                if wanted:
                    self._by_input.setdefault(wanted, []).append(place)
        return self._by_input.get(message_hash(message), [])

    def by_redacted_input(self, message: str, redact: Callable[[str], str]) -> list[int]:
        """Return the places of the cases whose first message equals this one after redaction.

        This reads all cases once: ``redact`` has to be the same function every time.
        """
        if self._by_redacted is None:
            self._by_redacted = {}
            for place, case in enumerate(self.cases):
                if wanted := message_hash(redact(case.first_input)):
                    self._by_redacted.setdefault(wanted, []).append(place)
        return self._by_redacted.get(message_hash(message), [])

    def by_later_session(self, message: str) -> int | None:
        """Return the place of the first case that opens a later session with this message."""
        wanted = message_hash(message)
        for place in self._index.all_with("new_session"):
            openers = (turn for turn in self.cases[place].turns[1:] if turn.new_session)
            if any(message_hash(turn.input.plain()) == wanted for turn in openers):
                return place
        return None


class _Chosen(Sequence[Case]):
    """Some of the cases of a sequence, each read on access."""

    def __init__(self, cases: Sequence[Case], places: Sequence[int]) -> None:
        self._cases, self._places = cases, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> list[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | list[Case]:
        if isinstance(index, slice):
            return [self._cases[place] for place in self._places[index]]
        return self._cases[self._places[index]]


class _StoodIn(Sequence[Case]):
    """The cases of a sequence with default stand-ins, each read on access."""

    def __init__(self, cases: Sequence[Case], under: StandIns) -> None:
        self._cases, self._under = cases, under

    def __len__(self) -> int:
        return len(self._cases)

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> list[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | list[Case]:
        if isinstance(index, slice):
            return [self._with(case) for case in self._cases[index]]
        return self._with(self._cases[index])

    def _with(self, case: Case) -> Case:
        # `live` tools mean nothing for a case whose tools run anyway.
        if case.stand_ins is None and self._under == StandIns(live=self._under.live):
            return case
        return structs.replace(case, stand_ins=merged(self._under, case.stand_ins))


_TURN_FIELDS = {
    "response": "response",
    "response_contains": "response_contains",
    "response_not_contains": "response_not_contains",
    "structured": "structured",
    "agents": "agents",
    "dispatches": "dispatches",
    "tool_calls": "tools",
    "interactions": "interactions",
    "rubrics": "rubrics",
}


_FIELDS_OF: Callable[[ExpectedTurn], tuple[object, ...]] = attrgetter(*_TURN_FIELDS)
_STATED = (*_TURN_FIELDS.values(), "final_state", "dispatch.expect", "dispatch", "llm")
"""The statements that a case can have; ``dispatch``: it is a dispatch case, ``llm``: an LLM answers
for its tools. Neither is an expectation.
"""


def _stated(case: Case) -> int:
    """Return a bit for each name of ``_STATED`` that a case states."""
    mask = 0
    for turn in case.turns:
        for place, value in enumerate(_FIELDS_OF(turn)):
            if value is not None:
                mask |= 1 << place
    if case.rubrics:
        mask |= 1 << _STATED.index("rubrics")
    if case.final_state is not None:
        mask |= 1 << _STATED.index("final_state")
    if case.stand_ins is not None and case.stand_ins.asks_llm:
        mask |= 1 << _STATED.index("llm")
    if case.dispatch is not None:
        mask |= 1 << _STATED.index("dispatch")
        if _left_unchecked(case.dispatch):
            mask |= 1 << _STATED.index("dispatch.expect")
    return mask


def _left_unchecked(dispatch: DispatchCase) -> bool:
    """Tell whether a dispatch case expects something that its form cannot show.

    A decision shows where work goes, an integration what the sender does with the result.
    """
    expected = dispatch.expected
    routed = expected.prompt_contains is not None or expected.tools is not None
    if dispatch.form == "decision":
        return expected.follow_through is not None or (routed and not expected.to)
    return (
        routed
        or expected.to is not None
        or (dispatch.form == "child" and expected.follow_through is not None)
    )


def _needs(case: Case) -> int:
    """Return a bit for each of ``NEEDS`` that a case has."""
    needs: set[Need] = set()
    for number, turn in enumerate(case.turns):
        if turn.restart:
            needs.add("restart")
        if number:
            needs.add("new_session" if turn.new_session else "same_session")
    return sum(1 << NEEDS.index(need) for need in needs)


def message_hash(message: str) -> int:
    """Hash a user message, white space folded, to 64 bits; 0 for an empty one."""
    folded = " ".join(message.split())
    if not folded:
        return 0
    return int.from_bytes(hashlib.blake2b(folded.encode(), digest_size=8).digest())
