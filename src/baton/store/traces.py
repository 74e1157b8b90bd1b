"""The traces that an evaluation scored, wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from baton.model import InputError, Problem, Trace
from baton.readers import iter_traces
from baton.readers.load import Agents

from .read import StoredEvaluation


def evaluation_traces(
    evaluation: StoredEvaluation, agents: Agents | None = None
) -> Iterator[Trace]:
    """Yield the traces of an evaluation: those it holds, or of the files it was made of.

    ``agents`` are definitions beyond those that lie beside the files.

    Raises:
        InputError: files it was made of are gone or cannot be read.
    """
    files = [Path(path) for path in evaluation.header.traces] or [evaluation.folder]
    gone = [path for path in files if not path.exists()]
    if gone:
        message = f"`{evaluation.folder}` was made of this, which is not here any more"
        raise InputError(Problem(file=str(path), message=message) for path in gone)
    yield from iter_traces(files, agents=agents, redact=evaluation.header.redaction)
