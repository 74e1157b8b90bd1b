"""The rubrics that a command can name: those of Baton, of a config, and of folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from baton.config import Config
from baton.evaluators.judging.load import FOLDER, load_folders, names_of, shipped
from baton.evaluators.judging.rubric import Rubric
from baton.model import InputError, suggestion
from baton.plugins import RUBRIC_SUFFIXES, Entry, own_rubrics


class RubricFile(NamedTuple):
    """A rubric, where it stands, and whether it is the user's own."""

    rubric: Rubric
    file: Path
    own: bool


def files_among(names: Iterable[str]) -> tuple[Path, ...]:
    """Return what of some names of rubrics are files of one's own."""
    return tuple(Path(name) for name in names if name.endswith(RUBRIC_SUFFIXES))


def rubric_files(settings: Config | None, folders: Sequence[Path]) -> dict[str, RubricFile]:
    """Return all rubrics by name, the user's own first.

    Raises:
        InputError: a folder is not there or holds none, a rubric is faulty, or its name is taken.
    """
    own = load_folders([*(settings.rubric_paths if settings is not None else ()), *folders])
    found = {name: RubricFile(rubric, file, True) for name, (rubric, file) in own.items()}
    for name, rubric in shipped().items():
        found[name] = RubricFile(rubric, FOLDER / f"{name}.yaml", False)
    return found


def named(found: dict[str, RubricFile], name: str) -> RubricFile:
    """Find a rubric by any of its names, or its file; raises InputError with the nearest ones."""
    file = Path(name)
    for each in found.values():
        if name in names_of(each.rubric) or (each.own and each.file == file):
            return each
    known = [known for each in found.values() for known in names_of(each.rubric)]
    raise InputError(f"there is no rubric `{name}`; {suggestion(name, known)}")


def entries(settings: Config | None, folders: Sequence[Path]) -> tuple[Entry, ...]:
    """Return the user's own rubrics as entries of the registry."""
    of_config = settings.rubrics if settings is not None else ()
    return (*of_config, *(own_rubrics(folders) if folders else ()))
