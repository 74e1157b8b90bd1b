"""Recorded traces cut into pieces that are read apart from one another, and add up to the whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from baton.model import InputError, Problem, Trace

from .catalog import Catalog, is_catalog_file, load_catalog
from .claude.layout import Folder, sort_files
from .files import FileReader, LineRange
from .load import claude_agents, files_below, iter_together, outside, without_secrets
from .otlp.wire.sniff import is_otlp
from .shard import Shard, is_address, ranges

BYTES = 1 << 20
"""How much recorded text a shard has, about: a hundred traces or so."""


OnProblem = Callable[[InputError], None]
OnNote = Callable[[str], None]


def iter_shards(
    targets: Iterable[str],
    *,
    exclude: Collection[Path] = (),
    size: int = BYTES,
    on_problem: OnProblem,
) -> Iterator[Shard]:
    """Cut files, folders and addresses into shards, in the order that their traces are read in.

    Files of JSON lines are cut where they are longer than ``size`` (bytes), small files are put
    together. What has to be read together stays together: all OpenTelemetry files of a folder,
    the files of a session of Claude, the traces of an evaluation.
    """
    named: list[Path] = []
    for target in targets:
        path = Path(target)
        if is_address(target):
            from .remote import remote_shards

            yield from remote_shards(target, size)
        elif path.is_dir():
            yield from _below(path, exclude, size, on_problem)
        elif path.is_file():
            named.append(path)
        else:
            message = "no such file or folder, or none that can be read in pieces"
            on_problem(InputError(Problem(file=target, message=message)))
    yield from _cut(list(dict.fromkeys(named)), [], size, named=True)


def _below(
    folder: Path, exclude: Collection[Path], size: int, on_problem: OnProblem
) -> Iterator[Shard]:
    left_out = {path.resolve() for path in exclude}
    links: list[Path] = []
    files = files_below(folder, links)
    definitions = [file for file in files if is_catalog_file(file)]
    taken = set(definitions)
    rest = [file for file in files if file not in taken and file.resolve() not in left_out]
    beside = [*definitions, *claude_agents(folder, links)]
    if problems := outside(links, exclude):
        on_problem(InputError(problems))
    yield from _cut(rest, beside, size, named=False)


def _cut(
    files: list[Path], definitions: Sequence[Path], size: int, *, named: bool
) -> Iterator[Shard]:
    """Cut a folder: its spans first, then what stands for itself, then sessions of Claude."""
    beside = [str(path) for path in definitions]

    def shard(group: Iterable[Path]) -> Shard:
        return Shard(files=[str(path) for path in group], definitions=beside, named=named)

    folder = sort_files(files)
    spans = [file for file in folder.rest if is_otlp(file)]
    if spans and folder.ids():
        yield shard(files)
        return
    if spans:
        yield shard(spans)
    taken = set(spans)
    alone = [[file] for file in (*folder.rest, *folder.orphans) if file not in taken]
    for group in _grouped(alone, size):
        if isinstance(group, Path):
            for start, end in ranges(group.stat().st_size, size):
                yield msgspec.structs.replace(shard([group]), start=start, end=end)
        else:
            yield shard(group)
    for session in _grouped([_session(folder, id_) for id_ in folder.ids()], size):
        yield shard([session] if isinstance(session, Path) else session)


def _session(folder: Folder, id_: str) -> list[Path]:
    own = [folder.sessions[id_]] if id_ in folder.sessions else []
    return [*own, *folder.streams.get(id_, ())]


def _grouped(units: Iterable[list[Path]], size: int) -> Iterator[list[Path] | Path]:
    """Put units together up to a size; a file that can be cut, and is worth it, comes alone."""
    group: list[Path] = []
    filled = 0
    for unit in units:
        weight = sum(file.stat().st_size for file in unit)
        whole = len(unit) > 1 or weight <= size or not FileReader(unit[0], {}).can_be_cut()
        if group and (filled + weight > size or not whole):
            yield group
            group, filled = [], 0
        if whole:
            group, filled = [*group, *unit], filled + weight
        else:
            yield unit[0]
    if group:
        yield group


class ShardReader:
    """Reads the traces of a shard.

    What is broken goes to ``on_problem`` and the others go on. When all is read, ``lines`` is
    how many lines a range had.
    """

    def __init__(
        self,
        shard: Shard,
        catalog: Catalog | None,
        on_problem: OnProblem,
        on_note: OnNote,
    ) -> None:
        self._shard, self._given = shard, catalog or {}
        self._on_problem, self._on_note = on_problem, on_note
        self.lines = 0

    def traces(self) -> Iterator[Trace]:
        """Yield the traces in the order of the files; raises InputError for a lost address."""
        shard = self._shard
        if not is_address(shard.files[0]):
            files = [Path(name) for name in shard.files]
            yield from self._read(files, shard.start, self._on_problem, self._on_note)
            return
        from .remote import fetched

        with fetched(shard) as copies:
            start = None if shard.start is None else 0
            broken, note = self._told_of(copies)
            for trace in self._read(list(copies), start, broken, note):
                trace.source.location = copies.get(Path(trace.source.location or ""))
                yield trace

    def _told_of(self, copies: dict[Path, str]) -> tuple[OnProblem, OnNote]:
        """Return what names addresses where problems and notes name copies."""

        def told(text: str) -> str:
            for copy, address in copies.items():
                text = text.replace(str(copy), address)
            return text

        def broken(error: InputError) -> None:
            self._on_problem(
                InputError(
                    msgspec.structs.replace(each, file=told(each.file or ""))
                    for each in error.problems
                )
            )

        return broken, lambda text: self._on_note(told(text))

    def _read(
        self, files: list[Path], start: int | None, on_problem: OnProblem, on_note: OnNote
    ) -> Iterator[Trace]:
        shard = self._shard
        definitions = [Path(name) for name in shard.definitions]
        if shard.folder is not None:
            definitions = [file for file in files if is_catalog_file(file)]
            files = [file for file in files if file not in definitions]
        catalog = self._given
        for name in definitions:
            catalog = {**load_catalog(name), **catalog}
        if start is None:
            yield from iter_together(
                files, catalog, named=shard.named, on_problem=on_problem, on_note=on_note
            )
            return
        end = shard.end
        if end is None or is_address(shard.files[0]):
            end = files[0].stat().st_size
        lines = LineRange(files[0], start, end)
        try:
            yield from FileReader(files[0], catalog).traces_in(lines)
        except InputError as error:
            on_problem(without_secrets(error))
        self.lines = lines.count
