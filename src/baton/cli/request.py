"""What an evaluation was asked for, kept in its folder so that it can be resumed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from baton.config import Config
from baton.formats.evaluation_folder import Header, read_header
from baton.model import Dataset, InputError, Problem
from baton.runner.plan import Plan, RunOptions


class Request(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The words and options of `baton eval` that say what to evaluate.

    ``cases`` are those chosen by `--only-failed`. ``variant`` is which of a config's providers.
    """

    target: list[str] = msgspec.field(default_factory=list)
    dataset: list[str] = msgspec.field(default_factory=list)
    evaluators: list[str] = msgspec.field(default_factory=list)
    criteria: str | None = None
    agents: str | None = None
    app: str | None = None
    filters: list[str] = msgspec.field(default_factory=list)
    limit: int | None = None
    cases: list[str] | None = None
    variant: str | None = None
    judge: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing in particular."""
        return self == Request(judge=self.judge)


class Basis(msgspec.Struct, kw_only=True):
    """What results rest on: hashes of files and cases, versions of evaluators."""

    cases: str
    files: dict[str, str] = msgspec.field(default_factory=dict)
    evaluators: dict[str, str] = msgspec.field(default_factory=dict)


class Earlier(Header, kw_only=True):
    """What a folder tells of the evaluation in it, and of how that was asked for."""

    run: RunOptions = msgspec.field(default_factory=RunOptions)
    request: Request | None = None
    basis: Basis | None = None


def earlier(folder: Path) -> tuple[Earlier, Request, Basis]:
    """Read what a folder was asked for.

    Raises:
        InputError: no evaluation, or one that holds no request: of recorded traces, or older.
    """
    found = read_header(folder, Earlier)
    if found.request is None or found.basis is None:
        message = (
            "does not say how it was made: recorded traces are scored again by `baton score`, and "
            "older folders cannot be resumed"
        )
        raise InputError(Problem(file=str(folder), message=message))
    return found, found.request, found.basis


def basis_of(settings: Config | None, request: Request, plan: Plan, cases: Dataset) -> Basis:
    """Hash what the results of an evaluation rest on."""
    evaluators = plan.all_evaluators.items()
    return Basis(
        cases=cases.content_hash(),
        files={str(file): _hash(file) for file in _files(settings, request)},
        evaluators={name: planned.evaluator.version for name, planned in evaluators},
    )


def changes(before: Basis, after: Basis) -> list[str]:
    """Say what is not as it was; one file may be named in several ways."""
    found = ["the cases: their content is another"] if before.cases != after.cases else []
    old_files, new_files = _by_place(before.files), _by_place(after.files)
    for place in sorted({*old_files, *new_files}):
        old_hash, new_hash = old_files.get(place), new_files.get(place)
        if (old_hash and old_hash[1]) != (new_hash and new_hash[1]):
            found.append(f"the file {(new_hash or old_hash or (place,))[0]}")
    for name in sorted({*before.evaluators, *after.evaluators}):
        old, new = before.evaluators.get(name), after.evaluators.get(name)
        if old != new:
            found.append(f"the evaluator `{name}`: version {old or 'none'}, now {new or 'none'}")
    return found


def _by_place(files: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return absolute path to the path as it was named, and the hash."""
    return {os.path.abspath(file): (file, sha256) for file, sha256 in files.items()}  # noqa: PTH100


def _files(settings: Config | None, request: Request) -> Iterator[Path]:
    if settings is not None:
        yield Path(settings.file)
        if settings.agents:
            yield from _below(Path(settings.agents))
        for path in settings.rubric_paths:
            yield from _below(path)
    for given in (request.criteria, request.agents):
        if given is not None:
            yield from _below(Path(given))


def _below(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [file for file in sorted(path.rglob("*")) if file.is_file()]


def _hash(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError:
        return "not there"
