"""One dataset file: its dialect, and its cases, all checked."""

from __future__ import annotations

import io
import json
import re
from abc import abstractmethod
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, overload

import msgspec

from baton.datasets.baton_cases import DatasetSpec, own_case, steps_case
from baton.datasets.evalset import eval_case, legacy_case, legacy_flat
from baton.datasets.stand_in_files import with_file
from baton.datasets.strands import Known, strands_case
from baton.formats.document import Document, raw_documents, read_bytes, without_comments
from baton.formats.evaluation_folder import is_evaluation
from baton.formats.input_files import first_of_lines, first_of_lines_in, iter_lines, read_small
from baton.formats.key_case import ExtraKey, snake
from baton.formats.nesting import is_too_deep
from baton.formats.own_files import is_hidden_or_installed, stays_in
from baton.formats.strands import CASE_KEYS
from baton.model import (
    AgentCard,
    Case,
    CaseIndex,
    InputError,
    Location,
    Problem,
    StandIns,
    counted,
)
from baton.model.dataset import Format

Parse = Callable[[Document], Case]


class CaseSequence(Sequence[Case]):
    """A sequence of cases; subclasses say how to get one."""

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
        """Return the source of a case."""


class Source(msgspec.Struct, frozen=True):
    """The text of a case, and the function that reads its dialect."""

    document: Document
    parse: Parse


class LazyCases(CaseSequence):
    """Cases of one file, each decoded from its text on access.

    ``checked`` holds those that are decoded already. Each is returned only once, since the caller
    may change it: most runs access each case once.
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
        """Return the text of one case, with its line numbers."""
        return self._document(index)

    def source(self, index: int) -> Source:
        """Return the source of a case."""
        return Source(self._document(index), self._parse)

    def _case(self, index: int) -> Case:
        case = self._checked.pop(index, None)
        if case is not None:
            return case
        document = self._document(index)
        case = self._parse(document)
        case.where = Location(file=document.file, line=document.line(()))
        return case


class Place(msgspec.Struct, frozen=True):
    """The file and index of one case of a joined dataset."""

    cases: LazyCases
    position: int


class JoinedCases(CaseSequence):
    """Cases of several files in sequence, or a selection from one file."""

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
        """Return the source of a case; its id there may be different."""
        place = self._places[index]
        return place.cases.source(place.position)


def line_documents(file: str, data: bytes | None = None) -> tuple[int, Callable[[int], Document]]:
    """Count the non-blank lines of a JSON-lines file, and return their documents.

    ``data`` is its content, if it was read already: a small file is opened once.
    """
    offsets, lines = array("Q"), array("L")
    at = 0
    stream = iter_lines(file) if data is None else io.BytesIO(data)
    for number, line in enumerate(stream, 1):
        if not line.isspace():
            offsets.append(at)
            lines.append(number)
        at += len(line)

    def document(index: int) -> Document:
        with open(file, "rb") if data is None else io.BytesIO(data) as stream:
            stream.seek(offsets[index])
            return Document(file, stream.readline(), "json", lines[index])

    return len(lines), document


Dialect = Literal["evalset", "legacy-evalset", "legacy-flat", "own", "strands", "steps"]
_OWN_KEYS = frozenset(
    {"agents", "dispatches", "final_state", "interactions", "response", "tools", "turns"}
)


def dialect_of_mapping(value: Mapping[Any, Any]) -> tuple[Dialect, str | None] | None:
    """Detect the dialect of a file that is a mapping, and the key that holds its cases.

    The key is ``None`` when the mapping is one case. Returns ``None`` if it is not a dataset.
    Values may be JSON text.
    """
    names = {snake(str(key)): str(key) for key in value}
    if "eval_cases" in names:
        return "evalset", names["eval_cases"]
    if "test_passes" in names:
        return None  # a report of Strands: its cases were run already
    if "cases" in names:
        first = _first(value[names["cases"]])
        dialect = None if first is None else dialect_of_case(first)
        return dialect if dialect in ("strands", "steps") else "own", names["cases"]
    if "test_cases" in names:
        first = _first(value[names["test_cases"]])
        if first is not None and dialect_of_case(first) == "steps":
            return "steps", names["test_cases"]
    dialect = dialect_of_case(value)
    return None if dialect is None or dialect == "legacy-flat" else (dialect, None)


def dialect_of_case(keys: Any) -> Dialect | None:
    """Detect the dialect of one case (or of one turn of a flat file) by its keys."""
    names = {snake(str(key)) for key in keys}
    if "eval_id" in names and names & {"conversation", "conversation_scenario"}:
        return "evalset"
    if "query" in names and names & {"expected_tool_use", "reference"}:
        return "legacy-flat"
    if {"name", "data"} <= names:
        return "legacy-evalset"
    if {"test_case", "steps"} <= names:
        return "steps"
    if "id" in names and names & {"input", "turns", "dispatch"}:
        return "own"
    if "input" in names and names & CASE_KEYS and not names & {"actual_output", *_OWN_KEYS}:
        return "strands"
    return None


def _first(cases: Any) -> dict[str, Any] | None:
    """Return the first case, if it is an object."""
    if isinstance(cases, msgspec.Raw):
        try:
            cases = msgspec.json.decode(cases, type=list[msgspec.Raw])
            cases = [msgspec.json.decode(raw) for raw in cases[:1]]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
    first = cases[0] if isinstance(cases, list) and cases else None
    return first if isinstance(first, dict) else None


# The most keys that a note names; a file of another tool has a handful that Baton ignores.
_NAMED = 20
_SUFFIXES = {".json", ".jsonl", ".ndjson", ".yaml", ".yml"}


class FileCases(msgspec.Struct, frozen=True):
    """The cases of one file."""

    file: str
    label: str
    name: str
    format: Format
    cases: LazyCases
    lookup: CaseIndex
    notes: list[str]


def dataset_files(folder: Path, links: list[Path] | None = None) -> list[Path]:
    """List the files below a folder that may hold cases.

    Hidden folders, installed packages and Baton's own output are left out. So are links that lead
    out of the folder (they are added to ``links``): otherwise another person's dataset could name
    any file of the user.
    """
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in _SUFFIXES
        and path.is_file()
        and not is_hidden_or_installed(path, folder)
        and not is_evaluation(path.parent)
    )
    leading_out = [path for path in files if not stays_in(path, folder)]
    if leading_out and links is not None:
        links += leading_out
    return [path for path in files if path not in leading_out] if leading_out else files


class About(msgspec.Struct, frozen=True):
    """What is known about a file beforehand: a short name, and definitions of agents.

    The name becomes the id of the case of a flat test file, which has none.
    """

    label: str
    agents: Mapping[str, AgentCard] | None = None


def read_file(path: Path, about: About) -> FileCases | None:
    """Read and check one file; ``None`` when it is readable but contains no cases.

    Raises:
        InputError: lists every problem of the file.
    """
    file = str(path)
    data = read_small(path) if path.is_file() else None
    lines = _json_lines_dialect(path, data)
    if lines is not None:
        return _checked(file, lines, about, *line_documents(file, data))
    data = read_bytes(path) if data is None else data
    if is_json_lines(data):
        _refuse_later_cases(file, data)
        return None
    return read_data(file, data, about)


def is_json_lines(data: bytes) -> bool:
    """Return whether a text has several lines, of which the first is a whole JSON object."""
    first = first_of_lines_in(data)
    if first is None or is_too_deep(first):
        return False
    try:
        return isinstance(msgspec.json.decode(first), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _refuse_later_cases(file: str, data: bytes) -> None:
    """Raise InputError if a line is not JSON, or is a case although the first line is none."""
    count, document = line_documents(file, data)
    for index in range(count):
        value = document(index).value()
        if isinstance(value, dict) and dialect_of_case(value) is not None:
            first = document(0)
            raise InputError(first.problem("this line contains no case", first.first_line))


_LEAD = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:[ \t\r\n]|//[^\n]*+|\#[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
"""What may come before the first bracket of JSON: blanks and comments."""


def starts_as_json(data: bytes) -> bool:
    """Return whether a text opens an object or a list, perhaps after comments."""
    lead = _LEAD.match(data)
    start = lead.end() if lead else 0
    return data[start : start + 1] in (b"{", b"[")


def read_data(file: str, data: bytes, about: About) -> FileCases | None:
    """Read and check the content of a file that is not JSON lines; ``file`` is only its name.

    Raises:
        InputError: lists every problem.
    """
    if starts_as_json(data):
        try:
            return _read_json(file, data, about)
        except InputError:
            plain = without_comments(data)
            if plain != data and _is_json(plain):
                return _read_json(file, plain, about)
            if not _is_flow_yaml(file, data):
                raise
    whole = Document(file, data, "yaml")
    value = whole.value()
    if isinstance(value, dict):
        recognised = dialect_of_mapping(value)
        if recognised is None:
            return None
        dialect, key = recognised
        if key is None:
            return _checked(file, dialect, about, 1, lambda _: whole.part(value, ()))
        head = _head(whole, dialect, {k: v for k, v in value.items() if k != key})
        items, base = value[key], [key]
        if not isinstance(items, list):
            raise InputError(whole.problem_at((key,), "has to be a list of cases"))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        first = dialect_of_case(value[0])
        if first is None:
            return None
        dialect, items, base, head = first, value, [], _NO_HEAD
        if dialect == "legacy-flat":
            return _checked(file, dialect, about, 1, lambda _: whole.part(value, ()))
    else:
        return None
    parts = [whole.part(item, (*base, i)) for i, item in enumerate(items)]
    return _checked(file, dialect, about, len(parts), lambda i: parts[i], head)


def _is_json(data: bytes) -> bool:
    if is_too_deep(data):
        return False
    try:
        json.loads(data.removeprefix(b"\xef\xbb\xbf"), parse_constant=lambda _: None)
    except ValueError:
        return False
    return True


def _is_flow_yaml(file: str, data: bytes) -> bool:
    """Tell whether a text that is not valid JSON, perhaps because of its quotes, is YAML."""
    with suppress(InputError):
        return not _is_json(data) and isinstance(Document(file, data, "yaml").value(), dict | list)
    return False


def _read_json(file: str, data: bytes, about: About) -> FileCases | None:
    data = data.removeprefix(b"\xef\xbb\xbf")
    whole = Document(file, data, "json")
    eval_set = whole.eval_set()
    if eval_set is not None:
        whole.refuse_duplicate_keys()
        rest, raws = eval_set
        head = _head(whole, "evalset", rest)
        return _checked(file, "evalset", about, len(raws), raw_documents(file, data, raws), head)
    top = whole.shallow()
    whole.refuse_duplicate_keys()
    if isinstance(top, dict):
        recognised = dialect_of_mapping(top)
        if recognised is None:
            return None
        dialect, key = recognised
        if key is None:
            return _checked(file, dialect, about, 1, lambda _: whole)
        head = _head(whole, dialect, {k: v for k, v in top.items() if k != key})
        try:
            raws = msgspec.json.decode(top[key], type=list[msgspec.Raw])
        except msgspec.DecodeError:
            raise InputError(whole.problem_at((key,), "has to be a list of cases")) from None
    else:
        raws, head = top, _NO_HEAD
        keys = Document(file, bytes(raws[0]), "json").value() if raws else None
        dialect_ = dialect_of_case(keys) if isinstance(keys, dict) else None
        if dialect_ is None:
            return None
        dialect = dialect_
        if dialect == "legacy-flat":
            return _checked(file, dialect, about, 1, lambda _: whole)
    return _checked(file, dialect, about, len(raws), raw_documents(file, data, raws), head)


class _Head(msgspec.Struct, frozen=True):
    """The data of a file beside its cases."""

    name: str | None = None
    stand_ins: StandIns | None = None


_NO_HEAD = _Head()


def _head(document: Document, dialect: Dialect, rest: dict[str, Any]) -> _Head:
    """Check the data beside the cases."""
    plain = {
        key: Document(document.file, bytes(value), "json").value()
        if isinstance(value, msgspec.Raw)
        else value
        for key, value in rest.items()
    }
    if dialect == "own":
        spec = document.convert({**plain, "cases": []}, DatasetSpec)
        return _Head(spec.name, with_file(spec.stand_ins, document))
    name = plain.get("name") or plain.get("eval_set_id")
    return _Head(name if isinstance(name, str) else None)


def _checked(
    file: str,
    dialect: Dialect,
    about: About,
    count: int,
    document: Callable[[int], Document],
    head: _Head = _NO_HEAD,
) -> FileCases:
    """Read every case once, to find all problems before anything runs."""
    known = Known(about.agents)
    if dialect == "strands":
        for place in range(count):
            with suppress(InputError):
                known.add_nodes(document(place).value())
    parse = _parser(dialect, about.label, known, head.stand_ins)
    ignored: dict[str, int | None] = {}  # each unknown key, with the line where it is first
    case_index = CaseIndex()
    problems: list[Problem] = []
    format_ = _FORMATS.get(dialect, "adk")
    scenarios = room = 0
    checked: dict[int, Case] = {}
    for index in range(count):
        text = document(index)
        extra_keys: list[ExtraKey] = []
        try:
            case = parse(text, extra_keys)
        except InputError as error:
            problems += error.problems
            continue
        for key in extra_keys:
            if (name := str(key.path[-1])) not in ignored:
                # To find a line, the text is read again: only for names that are shown.
                ignored[name] = text.line(key.path) if len(ignored) < _NAMED else None
        case.where = Location(file=file, line=text.line(()))
        case_index.add(case)
        room += len(text.data)
        if room <= _KEPT:
            checked[index] = case
        elif room > _MANY_TIMES * _KEPT:
            # they are few: saving memory matters more than the time to decode them again
            checked.clear()
        scenarios += case.scenario is not None
        if format_ == "adk" and (case.evaluators or case.metadata):
            format_ = "judge-llm"
    if not count:
        problems.append(Problem(file=file, message="contains no cases"))
    if problems:
        raise InputError(problems)
    notes = []
    if ignored:
        more = f" and {len(ignored) - _NAMED:,} more" if len(ignored) > _NAMED else ""
        shown = list(ignored.items())[:_NAMED]
        first = shown[0][1]
        names = [f"`{name}`" + ("" if at == first else f" (line {at})") for name, at in shown]
        notes.append(
            f"{file}:{first}: ignored, because Baton does not know them: {', '.join(names)}{more}"
        )
    if scenarios:
        need = "needs" if scenarios == 1 else "need"
        notes.append(f"{file}: {scenarios} of {counted(count, 'case')} {need} a simulated user")
    if known.undecided:
        notes.append(
            f"{file}: `expected_trajectory` of {known.undecided} of {counted(count, 'case')} "
            "is read as tool calls; if these are agents, give their definitions (`agents`)"
        )
    cases = LazyCases(file, count, document, lambda text: parse(text, []), checked)
    return FileCases(file, about.label, head.name or about.label, format_, cases, case_index, notes)


_FORMATS: dict[Dialect, Format] = {"own": "baton", "strands": "strands", "steps": "steps"}


_KEPT, _MANY_TIMES = 8 << 20, 4
"""The most bytes of text whose cases stay decoded in memory (they take about three times that). If
there is several times as much text, no case stays decoded.
"""


def _parser(
    dialect: Dialect, label: str, names: Known, stand_ins: StandIns | None = None
) -> Callable[[Document, list[ExtraKey]], Case]:
    if dialect == "legacy-flat":
        return lambda text, extra_keys: legacy_flat(text, extra_keys, label)
    if dialect == "own":
        return lambda text, _: own_case(text, stand_ins)
    if dialect == "strands":
        return lambda text, extra_keys: strands_case(text, extra_keys, names)
    if dialect == "steps":
        return steps_case
    return eval_case if dialect == "evalset" else legacy_case


def _json_lines_dialect(path: Path, data: bytes | None) -> Dialect | None:
    """Detect the dialect of a JSON-lines file by its first line; ``None`` when it is not one.

    ``data`` is its content, if it was read already.
    """
    if data is None and not path.is_file():
        return None  # A pipe can only be read once.
    first = first_of_lines(path) if data is None else first_of_lines_in(data)
    if first is None or is_too_deep(first):
        return None
    try:
        keys = msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return dialect_of_case(keys) if isinstance(keys, dict) else None
