"""Files and folders to traces."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from baton.formats.evaluation_folder import BODIES, is_evaluation
from baton.model import AgentCard, InputError, Problem, Trace

from .catalog import Catalog, is_catalog_file, load_catalog
from .files import FileReader

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Agents = Mapping[str, AgentCard] | str | os.PathLike[str]
_SUFFIXES = {".json", ".jsonl", ".ndjson", ".sse", ".txt", ".yaml", ".yml", ".log"}
NOT_A_TRACE = (
    "holds no trace: Baton reads answers of /run_sse and /run, sessions, eval sets and result "
    "files of ADK, judge-llm's results, and its own records"
)


def iter_traces(
    path: Paths,
    *,
    agents: Agents | None = None,
    exclude: Collection[Path] = (),
    on_problem: Callable[[InputError], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[Trace]:
    """Yield the traces of files and folders one after the other, never all in memory.

    ``agents`` are definitions (or a file of them) beyond the app-info answers that lie in a
    folder that is read; ``exclude`` leaves files of a folder out. A broken file goes to
    ``on_problem`` and the others go on.

    Raises:
        InputError: without ``on_problem``: when all is read, with the problems of all files.
    """
    problems: list[Problem] = []
    catalog = _given(agents)
    for item in [path] if isinstance(path, str | os.PathLike) else path:
        for file, known in _files(Path(item), catalog, exclude, problems):
            found = 0
            try:
                for trace in FileReader(file, known).traces():
                    found += 1
                    yield trace
                if not found and file == Path(item):
                    raise InputError(Problem(file=str(file), message=NOT_A_TRACE))
                if not found and on_note is not None:
                    on_note(f"{file}: holds no trace")
            except InputError as error:
                if on_problem is None:
                    problems += error.problems
                else:
                    on_problem(error)
    if problems and on_problem is not None:
        on_problem(InputError(problems))
    elif problems:
        raise InputError(problems)


def load_traces(path: Paths, *, agents: Agents | None = None) -> list[Trace]:
    """Load all traces of a file, a folder, or several of these.

    Raises:
        InputError: with the problems of all files. ``iter_traces`` goes on past a broken one.
    """
    return list(iter_traces(path, agents=agents))


def _given(agents: Agents | None) -> Catalog:
    if agents is None:
        return {}
    return dict(agents) if isinstance(agents, Mapping) else load_catalog(agents)


def _files(
    target: Path, catalog: Catalog, exclude: Collection[Path], problems: list[Problem]
) -> Iterator[tuple[Path, Catalog]]:
    """List the files of a target, each with the definitions that hold for it."""
    if not target.exists():
        problems.append(Problem(file=str(target), message="no such file or folder"))
    elif target.is_file():
        yield target, catalog
    else:
        left_out = {path.resolve() for path in exclude}
        files = files_below(target)
        definitions = [file for file in files if is_catalog_file(file)]
        known = dict(catalog)
        for file in definitions:
            known = {**load_catalog(file), **known}
        for file in files:
            if file not in definitions and file.resolve() not in left_out:
                yield file, known


def files_below(folder: Path) -> list[Path]:
    """List the files of a folder that may hold what Baton reads; hidden ones are left out."""
    return [file for file in sorted(folder.rglob("*")) if _may_hold(file, folder)]


def _may_hold(file: Path, folder: Path) -> bool:
    if is_evaluation(file.parent):
        return file.name == BODIES
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return file.suffix in _SUFFIXES and not hidden and file.is_file()
