"""The journal of an improvement: every play, verdict and proposal is written at once, as a line.

A killed improvement is repeated from its seed, and work that is in the journal is not repeated. So
a search has to store nothing else, and can be killed at any moment: an incomplete line is removed,
and its work is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec

from baton.formats.own_files import keep_others_out, make_folder, open_own, open_regular
from baton.model import InputError, Problem
from baton.runner.judged_subjects import JudgedThing
from baton.store import IndexRow

from .choose_component import Pointed
from .result import Study

JOURNAL = "journal.jsonl"
IN_USE = "another process is using this folder: wait for it, or end it"


class Play(msgspec.Struct, kw_only=True, omit_defaults=True, tag="play"):
    """One case played once.

    Args:
        texts: the hash of all texts that were changed (:func:`hash_of`).
        row: the short form of the result.
        error: the reason if it failed to run.
        described: what proposers see of it, by component; empty for cases that they never see.
        blamed: the agents that are proven to have made it fail.
        last: the agent that worked last; for plays without a dispatch, as their row names no agent.
        cost_usd: of agents and judges, as far as prices are known.
    """

    texts: str
    row: IndexRow
    error: str | None = None
    described: dict[str, str] = msgspec.field(default_factory=dict)
    blamed: list[str] = msgspec.field(default_factory=list)
    last: str | None = None
    cost_usd: float | None = None


class Proposal(msgspec.Struct, kw_only=True, omit_defaults=True, tag="proposal"):
    """A model's answer to a question of a strategy.

    Args:
        study: the component.
        number: the number of the question in its study, from 0.
        value: the answer, in the question's schema.
        requests: the number of requests it took.
        cost_usd: their cost, as far as prices are known.
    """

    study: str
    number: int
    value: dict[str, Any]
    requests: int = 0
    cost_usd: float | None = None


class Verdict(msgspec.Struct, kw_only=True, omit_defaults=True, tag="verdict"):
    """A judge's verdict on one labelled thing, with one text of its rubric.

    Args:
        text: the hash of the rubric's text (:func:`hash_of`).
        id: the labelled thing.
        thing: the verdict.
        cost_usd: the cost since the previous line, as far as prices are known.
    """

    text: str
    id: str
    thing: JudgedThing
    cost_usd: float | None = None


class Ruling(msgspec.Struct, kw_only=True, tag="ruling"):
    """A study that ended with a test on held-out cases: it is not repeated."""

    study: Study


class _Begun(msgspec.Struct, kw_only=True, tag="begun"):
    """The first line: what must not change before resuming, by name.

    ``pointed`` is the evidence from issues and labels at the start. It is kept because it grows,
    and another choice of agents would be another test on the same held-out cases.
    """

    about: dict[str, str]
    pointed: dict[str, Pointed] = {}


_Line = _Begun | Play | Verdict | Proposal | Ruling
_DECODER = msgspec.json.Decoder(_Line)
_ENCODER = msgspec.json.Encoder()


def hash_of(texts: Mapping[str, str]) -> str:
    """Return a short hash of changed texts, for finding plays; empty if nothing is changed."""
    if not texts:
        return ""
    encoded = msgspec.json.encode(texts, order="deterministic")
    return sha256(encoded).hexdigest()[:16]


class Journal:
    """Plays and proposals of one improvement; made by :meth:`begin` or :meth:`resume`.

    Leave it with ``with`` or :meth:`close`.
    """

    def __init__(self, file: BinaryIO | None, lines: list[_Line]) -> None:
        self._file = file
        self._plays: dict[tuple[str, str, int], Play] = {}
        self._verdicts: dict[tuple[str, str], JudgedThing] = {}
        self._proposals: dict[tuple[str, int], Proposal] = {}
        self._rulings: dict[str, Study] = {}
        self.pointed: dict[str, Pointed] = {}
        self._asked = 0
        self._cost: float | None = None
        for line in lines:
            self._take(line)

    @classmethod
    def in_memory(cls) -> Self:
        """Return a journal that is not stored."""
        return cls(None, [])

    @classmethod
    def begin(
        cls, folder: Path, about: Mapping[str, str], pointed: Mapping[str, Pointed] | None = None
    ) -> Self:
        """Create a folder and start a journal in it; raises InputError if that fails."""
        try:
            make_folder(folder)
            file = open_own(folder / JOURNAL, "xb")
        except OSError as error:
            message = f"no improvement can be stored here: {error.strerror}"
            raise InputError(Problem(file=str(folder), message=message)) from None
        keep_others_out(file, folder, IN_USE)
        made = cls(file, [])
        made.pointed = dict(pointed or {})
        made._write(_Begun(about=dict(about), pointed=made.pointed))
        return made

    @classmethod
    def resume(
        cls, folder: Path, about: Mapping[str, str], pointed: Mapping[str, Pointed] | None = None
    ) -> Self:
        """Open the journal of a folder again.

        An incomplete last line is removed. Errors at the end are dropped, so that plays that failed
        because a server was down are repeated.

        Raises:
            InputError: there is no journal, it is damaged, another process is writing it, or its
                inputs have changed: the message says which.
        """
        path = folder / JOURNAL
        try:
            file = open_regular(path, "r+b")
        except OSError:
            message = "is not the folder of an improvement: it has no journal"
            raise InputError(Problem(file=str(folder), message=message)) from None
        try:
            keep_others_out(file, folder, IN_USE)
            lines = _read(file, path)
            if not lines:  # killed within its first line
                made = cls(file, [])
                made.pointed = dict(pointed or {})
                made._write(_Begun(about=dict(about), pointed=made.pointed))
                return made
            known = lines[0].about if isinstance(lines[0], _Begun) else {}
            changed = [name for name, value in about.items() if known.get(name) != value]
            if changed:
                raise InputError(
                    Problem(
                        file=str(folder),
                        message=f"cannot be resumed: {_listed(changed)} changed since "
                        "it started; restore what changed, or start a new one",
                    )
                )
        except BaseException:
            file.close()
            raise
        return cls(file, lines)

    def play(self, texts: str, case: str, repeat: int) -> Play | None:
        """Return an earlier play."""
        return self._plays.get((texts, case, repeat))

    def verdict(self, text: str, id_: str) -> JudgedThing | None:
        """Return a judge's earlier verdict on a labelled thing, with a text of its rubric."""
        return self._verdicts.get((text, id_))

    def proposal(self, study: str, number: int) -> Proposal | None:
        """Return the earlier answer to a question."""
        return self._proposals.get((study, number))

    def ruling(self, component: str) -> Study | None:
        """Return the study of a component that was already tested on held-out cases."""
        return self._rulings.get(component)

    def add(self, line: Play | Verdict | Proposal | Ruling) -> None:
        """Record work; it is on its way to the disk when this returns.

        Raises:
            InputError: the disk is full, for example.
        """
        self._write(line)
        self._take(line)

    def _take(self, line: _Line) -> None:
        if isinstance(line, Play | Verdict | Proposal) and line.cost_usd is not None:
            self._cost = (self._cost or 0.0) + line.cost_usd
        if isinstance(line, Play):
            self._plays[line.texts, line.row.case_id, line.row.repeat] = line
        elif isinstance(line, Verdict):
            self._verdicts[line.text, line.id] = line.thing
        elif isinstance(line, Proposal):
            self._proposals[line.study, line.number] = line
            self._asked += line.requests
        elif isinstance(line, _Begun):
            self.pointed = line.pointed
        elif isinstance(line, Ruling):
            self._rulings[line.study.component] = line.study

    def _write(self, line: _Line) -> None:
        if self._file is None:
            return
        # Lines are passed to the system one by one: a killed process leaves whole lines, and maybe
        # the start of one.
        try:
            self._file.write(_ENCODER.encode(line) + b"\n")
            self._file.flush()
        except OSError as error:
            message = f"the journal cannot be written: {error.strerror}"
            raise InputError(Problem(file=JOURNAL, message=message)) from None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()

    def sums(self) -> tuple[int, int, float | None]:
        """Return the number of plays or verdicts, of requests for proposals, and the cost.

        The cost is the total; ``None`` if no price is known.
        """
        return len(self._plays) + len(self._verdicts), self._asked, self._cost


def _read(file: BinaryIO, path: Path) -> list[_Line]:
    """Read the lines of a journal, and truncate it after the last valid one."""
    data = file.read()
    lines: list[_Line] = []
    ends = [0]
    for number, text in enumerate(data.splitlines(keepends=True), 1):
        if not text.endswith(b"\n"):
            break  # incomplete
        try:
            lines.append(_DECODER.decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            message = f"is damaged: {error}; begin a new improvement"
            raise InputError(Problem(file=str(path), line=number, message=message)) from None
        ends.append(ends[-1] + len(text))
    while len(lines) > 1 and isinstance(last := lines[-1], Play) and last.row.status == "error":
        lines.pop()
        ends.pop()
    file.truncate(ends[-1])
    file.seek(ends[-1])
    return lines


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
