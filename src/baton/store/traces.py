"""The traces that an evaluation scored: those it holds, or recordings that lie elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from baton.model import InputError, Problem, Trace
from baton.readers import iter_traces
from baton.readers.load import Agents

from .read import StoredEvaluation
from .seal import is_sealed

_NAMED = 3


class Recordings(NamedTuple):
    """What the traces of an evaluation may be read from, now.

    ``paths`` are files and folders, ``exclude`` datasets among them, ``agents`` definitions.
    ``refused`` says why places that the folder names are not opened. ``are_elsewhere`` tells
    whether the folder itself holds no traces.
    """

    paths: list[Path]
    exclude: list[Path]
    agents: Path | None
    refused: str | None = None
    are_elsewhere: bool = True


def recordings_of(evaluation: StoredEvaluation) -> Recordings:
    """Return where the traces of an evaluation lie, as far as that may be believed.

    A folder is data: what it names is opened only when the user named it on the command line,
    now or when the evaluation was made here (its seal says that). No file is touched otherwise.
    """
    header, named = evaluation.header, evaluation.traces
    if not header.traces:
        return Recordings([evaluation.folder], [], evaluation.agents, are_elsewhere=False)
    if named:
        exclude = [path for path in _datasets(evaluation) if _is_below(path, named)]
        return Recordings(named, exclude, evaluation.agents)
    if is_sealed(evaluation.folder, msgspec.structs.asdict(header)):
        there = [path for path in map(Path, header.traces) if path.exists() and not path.is_fifo()]
        told = evaluation.agents or (Path(header.definitions) if header.definitions else None)
        return Recordings(there, _datasets(evaluation), told)
    more = f" and {len(header.traces) - _NAMED} more" if len(header.traces) > _NAMED else ""
    refused = (
        f"this evaluation was not made here, or was moved, so {', '.join(header.traces[:_NAMED])}"
        f"{more} was not opened: name the recordings with --traces PATH"
    )
    return Recordings([], [], None, refused)


def evaluation_traces(
    evaluation: StoredEvaluation, agents: Agents | None = None
) -> Iterator[Trace]:
    """Yield the traces of an evaluation: those it holds, or of the files it was made of.

    ``agents`` are definitions beyond those that lie beside the files.

    Raises:
        InputError: files it was made of are gone, cannot be read, or were not named by the user.
    """
    found = recordings_of(evaluation)
    if found.refused is not None:
        raise InputError(Problem(file=str(evaluation.folder), message=found.refused))
    names = {str(path) for path in found.paths}
    wanted = [] if evaluation.traces else evaluation.header.traces
    gone = [path for path in wanted if str(Path(path)) not in names]
    if gone:
        message = f"`{evaluation.folder}` was made of this, which is not here any more"
        raise InputError(Problem(file=path, message=message) for path in gone)
    yield from iter_traces(found.paths, agents=agents, redact=evaluation.header.redaction)


def _datasets(evaluation: StoredEvaluation) -> list[Path]:
    return [Path(name) for name in evaluation.header.dataset if "\0" not in name]


def _is_below(path: Path, folders: list[Path]) -> bool:
    """Tell whether a path lies in a folder by its words alone: nothing is looked up for it."""
    words = Path(os.path.abspath(path))  # noqa: PTH100 - resolving would follow links
    return any(words.is_relative_to(os.path.abspath(each)) for each in folders)  # noqa: PTH100
