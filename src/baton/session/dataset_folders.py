"""Datasets in folders that a server was started with: lists them, and changes them by case.

A dataset is identified by its folder's name and its path there (`cases/refunds.yaml`). Nothing
outside of the folders is accessible: only listed names are accepted, new names become slugs, and
links that lead out are refused. The author's formatting of a file is kept; if the file was changed
in the meantime, the change is refused (:class:`ChangedMeanwhile`).
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from baton.datasets.baton_cases import CaseSpec, to_case
from baton.datasets.convert_cases import ID_KEYS, TARGETS, Target, differences
from baton.datasets.draft_case import draft_case
from baton.datasets.evalset import eval_case
from baton.datasets.files import (
    About,
    Dialect,
    FileCases,
    dataset_files,
    dialect_of_case,
    dialect_of_mapping,
    read_file,
)
from baton.formats.document import Document, without_comments
from baton.formats.edit_values import rewrite
from baton.formats.own_files import naming, open_regular, stays_in, write_whole
from baton.formats.yaml import dump_yaml, load_yaml
from baton.model import Case, InputError, Problem, Trace, digest, suggestion
from baton.model.redact import ON

from .check import check
from .convert import dispatch_yaml

New = Literal["baton", "adk"]
SUFFIXES: Mapping[New, str] = {"baton": ".yaml", "adk": ".evalset.json"}
_LARGEST = 32 << 20
"""Maximum bytes of a file that can be changed here."""
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_LOCK = threading.Lock()


class ChangedMeanwhile(InputError):  # noqa: N818 - what happened, as others say it
    """A file or a case has changed since it was shown."""


class Place(NamedTuple):
    """A folder for datasets: its name for users, and its path."""

    name: str
    folder: Path


class CaseRow(NamedTuple):
    """A summary of a case. ``agents`` are those that it expects; ``tools`` counts the calls."""

    id: str
    place: int
    message: str
    turns: int
    tags: list[str]
    agents: list[str]
    tools: int
    line: int | None
    hash: str


class DatasetRow(NamedTuple):
    """A summary of a dataset; ``problem`` is why it cannot be read.

    While it is ``reading``, only its name and path are known.
    """

    name: str
    path: Path
    format: str
    title: str
    cases: list[CaseRow]
    hash: str
    problem: str | None = None
    reading: bool = False

    @property
    def target(self) -> Target | None:
        """The dialect that a new case is written in; ``None`` if none can be added."""
        return _TARGETS.get(self.format)

    @property
    def strata(self) -> dict[str, int]:
        """How many cases expect each agent, the most first."""
        counts = Counter(agent for case in self.cases for agent in case.agents)
        return dict(counts.most_common())

    @property
    def tags(self) -> dict[str, int]:
        """How many cases have each tag, the most first."""
        return dict(Counter(tag for case in self.cases for tag in case.tags).most_common())


_TARGETS: Mapping[str, Target] = {
    "baton": "baton",
    "adk": "adk",
    "judge-llm": "judge-llm",
    "strands": "strands",
}


class DatasetFolders:
    """The datasets below some folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Name the folders; folders with the same name get a number."""
        self._places: dict[str, Path] = {}
        for folder in folders:
            plain = folder.resolve().name or "datasets"
            name, number = plain, 1
            while name in self._places:
                number += 1
                name = f"{plain}-{number}"
            self._places[name] = folder.resolve()

    def places(self) -> list[Place]:
        """Return where datasets can be created: the folders, and their subfolders with datasets."""
        places: list[Place] = []
        for name, folder in self._places.items():
            places.append(Place(name, folder))
            below = sorted({path.parent for path in _files(folder)} - {folder})
            apps = [path for path in sorted(folder.glob("*")) if (path / "agent.py").is_file()]
            inside = [each for each in dict.fromkeys([*apps, *below]) if stays_in(each, folder)]
            places += [
                Place(f"{name}/{each.relative_to(folder).as_posix()}", each) for each in inside
            ]
        return places

    def datasets(self, within: float | None = None) -> list[DatasetRow]:
        """Return all datasets, by name; those not read ``within`` seconds are marked as such."""
        until = None if within is None else time.monotonic() + within
        return [row for name, path in self._listed().items() if (row := _row(name, path, until))]

    def dataset(self, name: str, within: float | None = None) -> DatasetRow:
        """Return a dataset by name; raises KeyError if there is none."""
        until = None if within is None else time.monotonic() + within
        row = _row(name, self._listed()[name], until)
        if row is None:
            raise KeyError(name)
        return row

    def named(self, path: Path) -> str | None:
        """Return the name of a file here, if it is one of the datasets."""
        wanted = path.resolve()
        return next((name for name, each in self._listed().items() if each == wanted), None)

    def _listed(self) -> dict[str, Path]:
        return {
            f"{name}/{path.relative_to(folder).as_posix()}": path
            for name, folder in self._places.items()
            for path in _files(folder)
        }

    def create(self, place: str, title: str, kind: New) -> DatasetRow:
        """Make an empty dataset in a folder of :meth:`places`.

        Raises:
            InputError: no such folder, no name can be made from the title, or the file exists.
        """
        folders = {each.name: each.folder for each in self.places()}
        if place not in folders:
            message = f"there is no folder `{place}`; {suggestion(place, folders)}"
            raise InputError(Problem(path="folder", message=message))
        slug = slug_of(title, kind)
        path = folders[place] / f"{slug}{SUFFIXES[kind]}"
        if kind == "adk":
            value: Any = {"eval_set_id": slug, "name": title.strip(), "eval_cases": []}
            text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
        else:
            text = dump_yaml({"name": title.strip(), "cases": []})
        with _LOCK:
            _make(path, text.encode())
        return self.dataset(f"{place}/{path.name}")

    def rename(self, name: str, title: str, hash_: str) -> DatasetRow:
        """Give a dataset another name, and its file with it; the folder stays.

        Raises:
            KeyError: there is no such dataset.
            InputError: no name can be made from the title, or the file exists.
            ChangedMeanwhile: the file was changed and has another hash.
        """
        with _LOCK:
            path, data = self._opened(name, hash_)
            dotted = path.name.partition(".")[2]
            text, value = _read_value(path, data)
            slug = slug_of(
                title, "adk" if isinstance(value, dict) and "eval_cases" in value else "baton"
            )
            to = path.with_name(f"{slug}.{dotted}")
            if isinstance(value, dict):
                named = {key: title.strip() for key in ("name",) if key in value}
                if "eval_set_id" in value:
                    named["eval_set_id"] = slug
                text = rewrite(path.name, text, {**value, **named})
            if to != path:
                _make(to, data)
                to.chmod(stat.S_IMODE(path.stat().st_mode))
                path.unlink()
            write_whole(to, text.encode(), keep_mode=True)
        return self.dataset(name.rpartition("/")[0] + f"/{to.name}")

    def delete(self, name: str, hash_: str) -> None:
        """Delete a dataset if it is unchanged since it was shown; raises as :meth:`rename`."""
        with _LOCK:
            path, _ = self._opened(name, hash_)
            path.unlink()

    def case_value(self, name: str, case_id: str) -> tuple[Any, str]:
        """Return a case as it is in its file, and its hash.

        Raises:
            KeyError: there is no such dataset or case.
        """
        path = self._listed()[name]
        _, value = _read_value(path, _bytes(path))
        cases, _ = _cases_of(value)
        for case in cases:
            if _id_of(case) == case_id:
                return case, digest(case)
        raise KeyError(case_id)

    def add_session(self, name: str, case_id: str, trace: Trace) -> list[str]:
        """Write a conversation as a case that expects the same behaviour from now on.

        It is the case that `baton draft` writes, in the dialect of the file, with app, user and the
        initial state of the session.

        Raises:
            KeyError: there is no such dataset.
            InputError: the name exists already, or cases cannot be added to this kind of file.
        """
        dataset = self.dataset(name)
        _check_id(case_id)
        case, notes = drafted(trace, case_id, _target_of(dataset))
        return [*notes, *self._change(name, lambda cases: [*cases, case])]

    def add_case(self, name: str, value: Any) -> list[str]:
        """Add a case in the dialect of the file; raises as :meth:`add_session`."""
        _check_id(_id_of(value))
        return self._change(name, lambda cases: [*cases, value])

    def add_recorded(self, name: str, cases: Sequence[Case]) -> tuple[int, list[str]]:
        """Add dispatch cases that do not exist yet; return how many, and what to note.

        Raises:
            KeyError: there is no such dataset.
            InputError: cases cannot be added to this kind of file, or a case has errors.
        """
        if self.dataset(name).target != "baton":
            raise InputError(
                f"{name} takes no recorded dispatches: choose a dataset of Baton's own"
            )
        text = dispatch_yaml(cases).encode()
        values, _ = _cases_of(Document(name, text, "yaml").value())
        count = 0

        def added(there: list[Any]) -> list[Any]:
            nonlocal count
            known = {_id_of(case) for case in there}
            new = [value for value in values if _id_of(value) not in known]
            count = len(new)
            return [*there, *new]

        notes = self._change(name, added)
        return count, notes

    def change_case(self, name: str, case_id: str, value: Any, hash_: str) -> list[str]:
        """Replace a case by ``value``, if it is unchanged since it was shown.

        Raises:
            KeyError: there is no such dataset or case.
            InputError: the new case has errors; the message has the line and a suggestion.
            ChangedMeanwhile: the case was changed and has another hash.
        """
        _check_id(_id_of(value))

        def changed(cases: list[Any]) -> list[Any]:
            at = _position(cases, case_id, hash_)
            return [*cases[:at], value, *cases[at + 1 :]]

        return self._change(name, changed)

    def delete_cases(self, name: str, hashes: Mapping[str, str]) -> list[str]:
        """Delete cases by id, if unchanged since they were shown; raises as :meth:`change_case`."""

        def changed(cases: list[Any]) -> list[Any]:
            gone = {_position(cases, case_id, hash_) for case_id, hash_ in hashes.items()}
            return [case for at, case in enumerate(cases) if at not in gone]

        return self._change(name, changed)

    def _change(self, name: str, change: Callable[[list[Any]], list[Any]]) -> list[str]:
        """Change the cases of a file; new ones are checked before it is written.

        Return warnings about valid cases that may not test what was meant.
        """
        with _LOCK:
            path = self._listed()[name]
            data = _bytes(path)
            text, value = _read_value(path, data)
            cases, key = _cases_of(value)
            new = change(cases)
            for case_id, count in Counter(_id_of(case) for case in new).items():
                if count > 1:
                    raise InputError(f"there is a case `{case_id}` in {name}: take another name")
            before = {digest(case) for case in cases}
            added = [case for case in new if digest(case) not in before]
            # The others are unchanged: checking them again takes seconds if there are many.
            notes = _checked(path, added, {**value, key: added} if key else added) if added else []
            if path.suffix in (".jsonl", ".ndjson"):
                written = _lines(text, cases, new)
            else:
                written = rewrite(name, text, new if key is None else {**value, key: new})
            write_whole(path, written.encode(), keep_mode=True)
        return notes

    def _opened(self, name: str, hash_: str) -> tuple[Path, bytes]:
        path = self._listed()[name]
        data = _bytes(path)
        if sha256(data).hexdigest() != hash_:
            raise ChangedMeanwhile(f"someone else changed {name}: load it again, then repeat this")
        return path, data


def drafted(trace: Trace, case_id: str, target: Target) -> tuple[dict[str, Any], list[str]]:
    """Return a conversation as a case of a dialect, and notes on what is missing in it.

    Raises:
        InputError: the conversation has no message of a user.
    """
    redacted = ON.trace(trace)
    if not any(turn.input is not None for turn in redacted.turns):
        raise InputError("the conversation has no message of a user: there is nothing to replay")
    own = {**draft_case(redacted), "id": case_id}
    notes = [
        f"turn {number} is {turn.status}: is this a run to expect again?"
        for number, turn in enumerate(redacted.turns, 1)
        if turn.status != "completed"
    ]
    if target == "baton":
        return own, notes
    case = to_case(msgspec.convert(own, CaseSpec))
    written = TARGETS[target].case(case, {})
    if written is None:
        raise InputError(f"a case of this conversation cannot be written as {target}")
    if target == "adk":
        again = eval_case(Document("case", msgspec.json.encode(written), "json"), [])
        paths = {str(each.path[2]) for each in differences(case, again) if len(each.path) > 2}
        lost = sorted(paths & {"dispatches", "response_contains"})
        if lost:
            words = " and ".join(f"`{name}`" for name in lost)
            notes.append(f"an eval set of ADK has no place for {words}; a dataset of Baton has")
    return written, notes


def _checked(path: Path, cases: list[Any], whole: Any) -> list[str]:
    """Check cases alone, like `baton check`; return the doubtful points.

    Raises:
        InputError: the cases have errors; it lists all of them with suggestions.
    """
    if path.suffix in (".jsonl", ".ndjson"):
        text = _lines("", [], cases)
    elif path.suffix == ".json":
        text = msgspec.json.encode(whole).decode()
    else:
        text = dump_yaml(whole)
    with tempfile.TemporaryDirectory(prefix="baton-check-") as made:
        file = Path(made) / path.name
        file.write_text(text, encoding="utf-8")
        result = check(file, note=lambda _: None)
    if result.problems:
        # The line is that of a file of these cases alone; the path says the key.
        raise InputError(
            msgspec.structs.replace(
                problem, file=None, line=None, path=_IN_FILE.sub("", problem.path)
            )
            for problem in result.problems
        )
    return [f"{warning.what}; {warning.remedy}" for warning in result.warnings]


_IN_FILE = re.compile(r"^(?:eval_cases|evalCases|cases|test_cases)?\[\d+\]\.?")


def slug_of(title: str, kind: New) -> str:
    """Make a file name from a title: letters, digits, and a separator between words.

    ADK takes ASCII letters, digits and underscores for the name of an eval set.

    Raises:
        InputError: nothing remains of it.
    """
    if kind == "adk":
        slug = re.sub(r"[^A-Za-z0-9]+", "_", title).strip("_")
    else:
        slug = re.sub(r"[\W_]+", "-", title).strip("-").lower()
    if not slug:
        what = "ASCII letters or digits" if kind == "adk" else "letters or digits"
        raise InputError(Problem(path="name", message=f"`{title[:60]}` contains no {what}"))
    return slug[:80]


def _files(folder: Path) -> list[Path]:
    """List files that may be datasets, without links from elsewhere."""
    return [path for path in dataset_files(folder, []) if not path.is_symlink()]


def _bytes(path: Path) -> bytes:
    if path.stat().st_size > _LARGEST:
        message = f"is larger than {_LARGEST >> 20} MB: change it in an editor"
        raise InputError(Problem(file=path.name, message=message))
    with open_regular(path) as file:
        return file.read()


def _row(name: str, path: Path, until: float | None = None) -> DatasetRow | None:
    """Read a dataset again only if its file changed; ``None`` if it is not a dataset."""
    try:
        state = path.stat()
    except OSError:
        return None
    reading = _reading_of(path, state.st_mtime_ns, state.st_size)
    if not reading.done.wait(None if until is None else max(0.0, until - time.monotonic())):
        return DatasetRow(name, path, "", path.name.split(".")[0], [], "", reading=True)
    if reading.error is not None:
        raise reading.error
    return None if reading.row is None else reading.row._replace(name=name)


class _Reading:
    """A file that is read in a thread, so that a list need not wait: 50,000 cases take seconds.

    Files are read one at a time, so that other requests get processor time.
    """

    _one = threading.Lock()

    def __init__(self, path: Path) -> None:
        self.done = threading.Event()
        self.row: DatasetRow | None = None
        self.error: Exception | None = None
        threading.Thread(target=self._read, args=(path,), name="baton dataset", daemon=True).start()

    def _read(self, path: Path) -> None:
        try:
            with self._one:
                self.row = _row_of(path)
        except OSError:
            pass  # it was removed meanwhile
        except Exception as error:  # noqa: BLE001 - raised again when the result is read
            self.error = error
        finally:
            self.done.set()


@lru_cache(maxsize=256)
def _reading_of(path: Path, _mtime: int, _size: int) -> _Reading:
    return _Reading(path)


def _row_of(path: Path) -> DatasetRow | None:
    digest, title, label = "", path.name.split(".")[0], path.name.split(".")[0]
    try:
        if path.stat().st_size > _LARGEST:
            return _too_large(path, title)
        data = _bytes(path)
        digest = sha256(data).hexdigest()
        read = read_file(path, About(label))
    except InputError as error:
        empty = _empty(path, data) if digest else None
        if empty is not None:
            return DatasetRow("", path, empty[0], empty[1] or title, [], digest)
        if not digest or _kind_of(path, data) is None:
            return None
        return DatasetRow("", path, "", title, [], digest, str(error))
    if read is None:
        return None
    rows = _case_rows(path, data, read)
    return DatasetRow("", path, read.format, read.name, rows, digest)


# Reading such a file takes seconds and hundreds of megabytes, so only its start is examined:
# `{"eval_set_id": "refunds", "eval_cases": [` or `cases:` are those of a dataset.
_OF_DATASETS = re.compile(rb"[\"']?\b(?:eval_cases|test_cases|cases|eval_id)[\"']?\s*:")
# The keys that tell a dataset are in its first case. A file too large to be shown is not read.
_BEGINNING = 1 << 16


def _too_large(path: Path, title: str) -> DatasetRow | None:
    """Return the row of a dataset that is too large to be shown; ``None`` for any other file."""
    with open_regular(path) as file:
        beginning = file.read(_BEGINNING)
    if _OF_DATASETS.search(beginning) is None:
        return None
    problem = (
        f"{path.name}: is larger than {_LARGEST >> 20} MB, so its cases are not shown; "
        "`baton eval` plays it"
    )
    return DatasetRow("", path, "", title, [], "", problem)


def _kind_of(path: Path, data: bytes) -> Dialect | None:
    """Return whether a file with errors is meant to be a dataset."""
    try:
        _, value = _read_value(path, data)
    except InputError:
        return None
    if isinstance(value, dict):
        return (dialect_of_mapping(value) or (None,))[0]
    first = value[0] if isinstance(value, list) and value else None
    return dialect_of_case(first) if isinstance(first, dict) else None


def _empty(path: Path, data: bytes) -> tuple[str, str | None] | None:
    """Return the format and name of a dataset that has no cases yet."""
    try:
        _, value = _read_value(path, data)
    except InputError:
        return None
    if isinstance(value, dict):
        for key, kind in (("eval_cases", "adk"), ("cases", "baton")):
            if key in value and not value[key]:
                name = value.get("name") or value.get("eval_set_id")
                return kind, name if isinstance(name, str) else None
    return None


def _case_rows(path: Path, data: bytes, read: FileCases) -> list[CaseRow]:
    try:
        cases, _ = _cases_of(_read_value(path, data)[1])
    except InputError:
        cases = []  # a dialect whose cases cannot be changed here
    hashes = {str(_id_of(case)): digest(case) for case in cases if isinstance(case, dict)}
    return [_case_row(case, place, hashes) for place, case in enumerate(read.cases)]


def _case_row(case: Case, place: int, hashes: Mapping[str, str]) -> CaseRow:
    agents: dict[str, None] = {}
    for turn in case.turns:
        for stage in turn.agents or ():
            agents |= dict.fromkeys([stage] if isinstance(stage, str) else stage.any_order)
        agents |= dict.fromkeys(each.to for each in turn.dispatches or ())
        agents |= dict.fromkeys(each.agent for each in turn.interactions or ())
        agents |= dict.fromkeys(each.agent for each in turn.tool_calls or () if each.agent)
    first = (
        case.turns[0].input.plain()
        if case.turns
        else (case.scenario.start if case.scenario else "")
    )
    return CaseRow(
        id=case.id,
        place=place,
        message=first or "",
        turns=len(case.turns),
        tags=list(case.tags),
        agents=[agent for agent in agents if agent != "user"],
        tools=sum(len(turn.tool_calls or ()) for turn in case.turns),
        line=case.where.line if case.where else None,
        hash=hashes.get(case.id, ""),
    )


def _read_value(path: Path, data: bytes) -> tuple[str, Any]:
    """Parse a file: JSON (maybe with comments), JSON lines as a list, or YAML."""
    _ = Document(path.name, data, "yaml").text  # raises for what is not UTF-8
    text = data.decode()
    if path.suffix in (".jsonl", ".ndjson"):
        return text, [
            Document(path.name, line.encode(), "json", number).value()
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip()
        ]
    plain = text.removeprefix("\ufeff").encode()
    if plain.lstrip()[:1] in (b"{", b"["):
        # Most JSON has no comments, and looking for them takes longer than all the rest.
        with suppress(InputError):
            return text, Document(path.name, plain, "json").value()
    plain = without_comments(plain)
    if plain.lstrip()[:1] in (b"{", b"["):
        return text, Document(path.name, plain, "json").value()
    return text, load_yaml(text.removeprefix("\ufeff"), path.name)


def _cases_of(value: Any) -> tuple[list[Any], str | None]:
    """Return the cases of a file and their key, or ``None`` if the file is a list of cases.

    Raises:
        InputError: its cases are not a list that can be changed.
    """
    if isinstance(value, dict):
        dialect = dialect_of_mapping(value)
        key = dialect[1] if dialect is not None else None
        if key is not None and (value[key] is None or isinstance(value[key], list)):
            return value[key] or [], key
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        if dialect_of_case(value[0]) not in (None, "legacy-flat"):
            return value, None
    message = "has no list of cases that can be changed here: change it in an editor"
    raise InputError(message)


def _id_of(case: Any) -> Any:
    if not isinstance(case, dict):
        return None
    keys = (*ID_KEYS.values(), "evalId", "test_case")
    # A case of Baton may have a `name` only in its metadata, so that `id` is tried first.
    ordered = ("id", *(key for key in keys if key != "id"))
    return next((case[key] for key in ordered if key in case), None)


def _check_id(case_id: Any) -> None:
    if not isinstance(case_id, str) or not case_id.strip() or not _NAME.fullmatch(case_id):
        message = "a case needs a name: 1 to 200 characters on one line"
        raise InputError(Problem(path="name", message=message))


def _position(cases: list[Any], case_id: str, hash_: str) -> int:
    for at, case in enumerate(cases):
        if _id_of(case) == case_id:
            if digest(case) != hash_:
                raise ChangedMeanwhile(
                    f"someone else changed the case `{case_id}`: check what it says now first"
                )
            return at
    raise KeyError(case_id)


def _target_of(dataset: DatasetRow) -> Target:
    if dataset.target is None:
        message = (
            f"no case can be added to a file of this kind ({dataset.format}): make a new dataset"
        )
        raise InputError(Problem(file=dataset.name, message=message))
    return dataset.target


def _lines(text: str, old: list[Any], new: list[Any]) -> str:
    """Write JSON lines again where a case changed; the others stay as they are."""
    lines = [line for line in text.splitlines() if line.strip()]
    stays = {msgspec.json.encode(case): line for case, line in zip(old, lines, strict=True)}
    written = [
        stays.get(msgspec.json.encode(case)) or msgspec.json.encode(case).decode() for case in new
    ]
    return "".join(f"{line}\n" for line in written)


def _make(path: Path, data: bytes) -> None:
    """Write a new file; raises InputError if there is one."""
    try:
        with naming(path):
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            with os.fdopen(number, "wb") as file:
                file.write(data)
    except FileExistsError:
        message = "already exists: choose another name"
        raise InputError(Problem(file=path.name, message=message)) from None
