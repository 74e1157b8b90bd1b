"""Loading datasets: paths to one :class:`Dataset`, or every problem there is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from baton.model import Dataset, InputError, Problem, suggestion

from .files import FileCases, Format, dataset_files, read_file
from .lazy import JoinedCases, Place

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def load_dataset(path: Paths) -> Dataset:
    """Load cases from a file, a folder, ``FILE:case1,case2``, or several of these.

    The format of each file is told by its content: eval sets of ADK (both shapes, and the two
    older formats), judge-llm's dialect in JSON or YAML, Baton's own YAML, JSON or JSON lines.
    Folders are walked; files in them that hold no cases are named in ``notes``.

    Raises:
        InputError: with every problem of every file; nothing is loaded then.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    problems: list[Problem] = []
    parts: list[FileCases] = []
    notes: list[str] = []
    wanted: dict[str, list[str]] = {}
    for item in paths:
        try:
            target, chosen = _selection(os.fspath(item))
            files = _read(target, notes, problems)
            parts += files
            for part in files if chosen else ():
                wanted[part.file] = chosen
        except InputError as error:
            problems += error.problems
    if not problems:
        problems += _duplicates(parts)
        problems += _unknown_choices(parts, wanted)
    if not parts and not problems:
        problems.append(Problem(message=f"no cases in {', '.join(map(str, paths))}"))
    if problems:
        raise InputError(problems)
    return _joined(parts, wanted, notes)


def _selection(spec: str) -> tuple[Path, list[str]]:
    """Split ``FILE:case1,case2``; a path that exists as it stands is one."""
    head, colon, tail = spec.rpartition(":")
    if Path(spec).exists() or not colon or not Path(head).exists():
        return Path(spec), []
    return Path(head), [name.strip() for name in tail.split(",") if name.strip()]


def _read(target: Path, notes: list[str], problems: list[Problem]) -> list[FileCases]:
    if not target.exists():
        raise InputError(Problem(file=str(target), message="no such file or folder"))
    if target.is_file():
        found = read_file(target, target.name.split(".")[0])
        if found is None:
            raise InputError(Problem(file=str(target), message=_NOT_A_DATASET))
        return [found]
    parts = []
    for file in dataset_files(target):
        stem = file.relative_to(target).with_name(file.name.split(".")[0]).as_posix()
        try:
            found = read_file(file, stem)
        except InputError as error:
            problems += error.problems
            continue
        if found is None:
            notes.append(f"{file}: holds no cases")
        else:
            parts.append(found)
    return parts


_NOT_A_DATASET = (
    "holds no cases: an eval set has `eval_cases`, a dataset of Baton `cases`, "
    "a flat test file a list of turns with `query`"
)


def _duplicates(parts: list[FileCases]) -> Iterator[Problem]:
    """Find ids that stand twice in one file; two files may well use the same one."""
    for part in parts:
        first: dict[str, int | None] = {}
        for key in part.keys:
            line = key.where.line if key.where else None
            if key.id in first:
                message = f"the case id `{key.id}` stands twice, first on line {first[key.id]}"
                yield Problem(file=part.file, line=line, message=message)
            first.setdefault(key.id, line)


def _unknown_choices(parts: list[FileCases], wanted: dict[str, list[str]]) -> Iterator[Problem]:
    for part in parts:
        ids = [key.id for key in part.keys]
        for name in wanted.get(part.file, ()):
            if name not in ids:
                yield Problem(file=part.file, message=f"no case `{name}`; {suggestion(name, ids)}")


def _joined(parts: list[FileCases], wanted: dict[str, list[str]], notes: list[str]) -> Dataset:
    """Put files together; an id that several of them use gets the file's label before it."""
    places = [
        Place(part.cases, index, part.label, key)
        for part in parts
        for index, key in enumerate(part.keys)
        if part.file not in wanted or key.id in wanted[part.file]
    ]
    shared = {id_ for id_, count in Counter(p.key.id for p in places).items() if count > 1}
    labels = Counter(part.label for part in parts)
    ids = [
        f"{p.label if labels[p.label] == 1 else p.cases.file}/{p.key.id}"
        if p.key.id in shared
        else p.key.id
        for p in places
    ]
    if shared:
        some = ", ".join(f"`{id_}`" for id_ in sorted(shared)[:3])
        notes.append(f"ids that stand in several files got the file's name before them: {some}")
    whole = len(parts) == 1 and len(places) == len(parts[0].cases)
    formats: set[Format] = {part.format for part in parts}
    return Dataset(
        parts[0].cases if whole else JoinedCases(places, ids),
        name="+".join(part.name for part in parts[:3]) + ("+…" if len(parts) > 3 else ""),
        format=formats.pop() if len(formats) == 1 else "mixed",
        keys=[place.key._replace(id=id_) for id_, place in zip(ids, places, strict=True)],
        notes=[*notes, *(note for part in parts for note in part.notes)],
    )
