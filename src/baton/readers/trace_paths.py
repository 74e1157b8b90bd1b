"""Files and folders to traces."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from baton.formats.evaluation_folder import BODIES, is_evaluation
from baton.formats.input_files import InputFile, copied, iter_lines, one_by_one, why_no_text
from baton.formats.own_files import LEADS_OUT, is_hidden_or_installed, stays_in
from baton.model import DEFINED, AgentCard, InputError, Problem, Trace
from baton.model.redact import ON, RedactLike, redaction_of

from .catalog import Catalog, is_catalog_file, load_catalog
from .claude.session_files import Folder, sort_files
from .file_reader import FileReader
from .otlp.wire.sniff import is_otlp

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Agents = Mapping[str, AgentCard] | str | os.PathLike[str]
_SUFFIXES = {
    ".json", ".jsonl", ".ndjson", ".sse", ".txt", ".yaml", ".yml", ".log",
    ".pb", ".binpb", ".otlp", ".gz", ".zst",
}  # fmt: skip
NOT_A_TRACE = (
    "contains no trace. Baton reads answers of /run_sse and /run, sessions, eval sets and result "
    "files of ADK, OpenTelemetry traces (OTLP, Jaeger, Tempo), traces of MLflow, sessions and "
    "streams of Claude, sessions, reports and results of Strands, judge-llm's results, and its own "
    "records"
)
EMPTY = "is empty"
_KEPT_OPEN = 16
"""The number of files that stay open from the detection of their type until they are read. In a
folder with more, each file is closed in between: a process may have about a thousand files open.
"""


def iter_traces(
    path: Paths,
    *,
    agents: Agents | None = None,
    exclude: Collection[Path] = (),
    on_problem: Callable[[InputError], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    redact: RedactLike = True,
) -> Iterator[Trace]:
    """Yield the traces of files and folders one after the other, never all in memory.

    ``agents`` are definitions (or a file of them) in addition to the app-info answers in a folder;
    ``exclude`` leaves out files of a folder. A broken file is reported to ``on_problem``, and the
    others continue. Secrets in traces are replaced by tags, unless ``redact`` is false; it may also
    name kinds, see :func:`baton.model.redact.redaction_of`.

    Raises:
        InputError: without ``on_problem``: after everything was read, with the problems of all
            files.
    """
    problems: list[Problem] = []
    redaction = redaction_of(redact)
    catalog = _given(agents)
    several = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(several, Iterable):
        raise InputError(f"recordings are the paths of files and folders, not {several!r}")
    targets = [Path(one) for one in several]
    broken = on_problem or (lambda error: problems.extend(error.problems))
    units = _units(targets, catalog, exclude, problems)
    yield from map(
        redaction.trace, _read_units(units, targets, broken, on_note or (lambda _: None))
    )
    if problems and on_problem is not None:
        on_problem(InputError(problems))
    elif problems:
        raise InputError(problems)


def iter_together(
    files: Sequence[Path],
    catalog: Catalog,
    *,
    named: bool,
    on_problem: Callable[[InputError], None],
    on_note: Callable[[str], None],
) -> Iterator[Trace]:
    """Yield the traces of some files of a folder, like :func:`iter_traces` with all of them.

    They are not redacted: the caller redacts each together with its case. ``named``: the user named
    these files, so a file without traces is a problem.
    """
    targets = files if named else []
    units = _together([InputFile(file) for file in files], catalog)
    yield from _read_units(units, targets, on_problem, on_note)


def iter_part(
    files: Sequence[Path],
    catalog: Catalog,
    part: tuple[int, int],
    on_problem: Callable[[InputError], None],
) -> Iterator[Trace]:
    """Yield a part of the traces of files with spans, as :func:`iter_together` yields them all.

    ``part`` is its number, from 0, and the number of parts. Each part decodes all files.
    """
    read = partial(_read_spans, [InputFile(file) for file in files], catalog, part)
    unit = _Unit(files[0], partial(_defined, read, catalog) if catalog else read)
    yield from _read_units([unit], (), on_problem, lambda _: None)


def _read_units(
    units: Iterable[_Unit],
    targets: Sequence[Path],
    on_problem: Callable[[InputError], None],
    on_note: Callable[[str], None],
) -> Iterator[Trace]:
    for unit in units:
        traces_read = 0
        try:
            for trace in unit.traces():
                traces_read += 1
                if trace is not None:
                    yield trace
            if not traces_read and unit.file in targets:
                message = EMPTY if _is_empty(unit.file) else _why_no_trace(unit.file)
                raise InputError(Problem(file=str(unit.file), message=message))
            if not traces_read:
                on_note(f"{unit.file}: contains no trace")
        except InputError as error:
            on_problem(without_secrets(error))


def without_secrets(error: InputError) -> InputError:
    """Return an error without secrets that it quotes from its file."""
    return InputError(
        msgspec.structs.replace(each, path=ON.text(each.path), message=ON.text(each.message))
        for each in error.problems
    )


def _is_empty(file: Path) -> bool:
    """Return whether a file holds only whitespace; false for a pipe, whose content is unknown."""
    return file.is_file() and not any(line.strip() for line in iter_lines(file))


def _why_no_trace(file: Path) -> str:
    if not file.is_file():  # a pipe, which was read to its end
        return NOT_A_TRACE
    with file.open("rb") as opened:
        return why_no_text(opened.read(64)) or NOT_A_TRACE


def load_traces(
    path: Paths, *, agents: Agents | None = None, redact: RedactLike = True
) -> list[Trace]:
    """Load all traces of a file, a folder, or several of these; secrets in them are redacted.

    Raises:
        InputError: with the problems of all files. ``iter_traces`` continues past a broken one.
    """
    return list(iter_traces(path, agents=agents, redact=redact))


def _given(agents: Agents | None) -> Catalog:
    if agents is None:
        return {}
    return dict(agents) if isinstance(agents, Mapping) else load_catalog(agents)


class _Unit(msgspec.Struct, frozen=True):
    """Files that are read together; a trace that waits for another unit is yielded as ``None``."""

    file: Path
    traces: Callable[[], Iterable[Trace | None]]


def _units(
    targets: list[Path], catalog: Catalog, exclude: Collection[Path], problems: list[Problem]
) -> Iterator[_Unit]:
    """List the contents of the targets: files that are named are read together, as in a folder."""
    files: list[Path] = []
    for target in targets:
        if not target.exists():
            program = str(target).rpartition(":")[0]
            message = "no such file or folder"
            if program.endswith(".py") and Path(program).is_file():
                message = (
                    "is an agent, not a recording: name it first, as in `baton eval AGENT CASES`"
                )
            problems.append(Problem(file=str(target), message=message))
        elif target.is_file():
            files.append(target)
        elif target.is_dir():
            yield from _units_below(target, catalog, exclude, problems)
        else:
            yield _Unit(target, partial(_read_stream, target, catalog))
    yield from _together([InputFile(file) for file in dict.fromkeys(files)], catalog)


def _units_below(
    target: Path, catalog: Catalog, exclude: Collection[Path], problems: list[Problem]
) -> Iterator[_Unit]:
    """List the contents of a folder, with its definitions."""
    left_out = {path.resolve() for path in exclude}
    links: list[Path] = []
    inputs = [InputFile(file) for file in files_below(target, links)]
    with ExitStack() as opened:
        for each in inputs:
            opened.callback(each.close)
        definitions = [each.path for each in _looked_at(inputs) if is_catalog_file(each)]
        known = dict(catalog)
        for file in [*definitions, *claude_agents(target, links)]:
            known = {**load_catalog(file), **known}
        problems += outside(links, exclude)
        taken = {*definitions}
        rest = [each for each in inputs if each.path not in taken]
        yield from _together([e for e in rest if e.path.resolve() not in left_out], known)


def _looked_at(inputs: list[InputFile]) -> Iterable[InputFile]:
    """Yield files whose type has to be detected; they stay open unless there are many."""
    return inputs if len(inputs) <= _KEPT_OPEN else one_by_one(inputs)


def _together(inputs: list[InputFile], catalog: Catalog) -> Iterator[_Unit]:
    """List files; their traces get the agents of the given definitions."""
    for unit in _listed(inputs, catalog):
        yield (
            msgspec.structs.replace(unit, traces=partial(_defined, unit.traces, catalog))
            if catalog
            else unit
        )


def _defined(
    traces: Callable[[], Iterable[Trace | None]], catalog: Catalog
) -> Iterator[Trace | None]:
    for trace in traces():
        if trace is not None:
            trace.attributes[DEFINED] = sorted(catalog)
        yield trace


def _listed(inputs: list[InputFile], catalog: Catalog) -> Iterator[_Unit]:
    """List files, spans first; the files of a Claude session are read as one, at the end."""
    with ExitStack() as opened:
        for each in inputs:
            opened.callback(each.close)
        folder = sort_files(_looked_at(inputs))
        held: dict[str, list[Trace]] = {id_: [] for id_ in folder.ids()}
        rest = [folder.input(file) for file in folder.rest]
        # Spans of several files are read together. The type of a single file is detected when it is
        # read.
        spans = [each for each in _looked_at(rest) if is_otlp(each)] if len(inputs) > 1 else []
        if spans:
            read_spans = partial(_read_spans, spans, catalog)
            yield _Unit(spans[0].path, partial(_hold_back, read_spans, held))
        for each in [*rest, *(folder.input(file) for file in folder.orphans)]:
            if each not in spans:
                yield _Unit(each.path, partial(_hold_back, FileReader(each, catalog).traces, held))
        for id_ in list(held):
            file = folder.sessions.get(id_) or folder.streams[id_][0]
            yield _Unit(file, partial(_read_session, folder, id_, catalog, held))


def _read_stream(pipe: Path, catalog: Catalog) -> Iterator[Trace]:
    """Read the data of a pipe after it is complete."""
    with copied(pipe) as copy:

        def named(text: str | None) -> str:
            return (text or "").replace(str(copy), str(pipe))

        try:
            for trace in FileReader(copy, catalog, name=pipe.name).traces():
                trace.source.location = str(pipe)
                for lost in trace.dropped:
                    lost.example = named(lost.example) or None
                yield trace
        except InputError as error:
            raise InputError(
                msgspec.structs.replace(each, file=named(each.file), message=named(each.message))
                for each in error.problems
            ) from None


def _read_spans(
    files: list[InputFile], catalog: Catalog, part: tuple[int, int] = (0, 1)
) -> Iterator[Trace]:
    from .otlp.reader import read_files

    return read_files(files, catalog, part)


def _read_session(
    folder: Folder, id_: str, catalog: Catalog, held: dict[str, list[Trace]]
) -> Iterable[Trace]:
    from .claude.reader import read_one

    return read_one(folder, id_, catalog, held)


def _hold_back(
    traces: Callable[[], Iterable[Trace]], held: dict[str, list[Trace]]
) -> Iterator[Trace | None]:
    """Yield the traces of files; spans of a session that is read later wait for it."""
    for trace in traces():
        if trace.source.format == "otlp" and trace.id in held:
            held[trace.id].append(trace)
            yield None
        else:
            yield trace


def claude_agents(folder: Path, links: list[Path] | None = None) -> list[Path]:
    """Return the folder of Claude's agents in a project, if it has definitions.

    Links in it that lead out of the project are added to ``links``; then its definitions are not
    read.
    """
    agents = folder / ".claude" / "agents"
    paths = [agents.parent, agents, *(path for path in agents.glob("**/*.md") if path.is_file())]
    leading_out = [path for path in paths if not stays_in(path, folder)]
    if leading_out and links is not None:
        links += leading_out
    return [agents] if len(paths) > 2 and not leading_out else []


def files_below(folder: Path, links: list[Path] | None = None) -> list[Path]:
    """List the files of a folder that Baton may be able to read.

    Hidden files and those of installed packages are left out. So are links that lead out of the
    folder, which are added to ``links``: with such links, a folder from somebody else could name
    any file of the user.
    """
    files = [file for file in sorted(folder.rglob("*")) if _may_hold(file, folder)]
    leading_out = [file for file in files if not stays_in(file, folder)]
    if leading_out and links is not None:
        links += leading_out
    return [file for file in files if file not in leading_out] if leading_out else files


def outside(links: Collection[Path], exclude: Collection[Path] = ()) -> list[Problem]:
    """Describe the problem of each link that was not followed; links of a dataset are ignored."""
    left_out = {path.absolute() for path in exclude}
    return [
        Problem(file=str(link), message=LEADS_OUT)
        for link in links
        if link.absolute() not in left_out
    ]


def _may_hold(file: Path, folder: Path) -> bool:
    if is_hidden_or_installed(file, folder):
        return False
    if is_evaluation(file.parent):
        return file.name == BODIES
    return file.suffix in _SUFFIXES and file.is_file()
