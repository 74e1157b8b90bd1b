"""Splits recorded traces into pieces that can be read separately."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from baton.formats.evaluation_folder import BODIES
from baton.formats.input_files import InputFile, current, one_by_one, too_large
from baton.formats.storage_addresses import (
    PIECE,
    copy_bounded,
    is_address,
    open_address,
    unreadable,
)
from baton.model import InputError, Problem, Trace
from baton.model.limits import FILE_BYTES

from .catalog import Catalog, is_catalog_file, load_catalog
from .claude.session_files import Folder, sort_files
from .file_reader import FileReader, ItemRange, LineRange
from .otlp.wire.sniff import is_otlp
from .trace_paths import (
    claude_agents,
    files_below,
    iter_part,
    iter_together,
    outside,
    without_secrets,
)


class Shard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Some files, or the lines of one file that begin from ``start`` up to ``end`` (bytes).

    Or the ``items`` of a JSON list in one file, or a ``part`` of the conversations in files with
    spans: its number, from 0, and the number of parts. ``definitions`` are files with agents next
    to them; ``named``: the files were named one by one. A ``folder`` is an address below which all
    of them are.
    """

    files: list[str]
    definitions: list[str] = msgspec.field(default_factory=list)
    named: bool = False
    start: int | None = None
    end: int | None = None
    items: ItemRange | None = None
    part: tuple[int, int] | None = None
    folder: str | None = None


def ranges(length: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut a length into about equal ranges of at most ``size``."""
    pieces = max(1, -(-length // size))
    bounds = [length * number // pieces for number in range(pieces + 1)]
    yield from itertools.pairwise(bounds)


BYTES = 1 << 20
"""The approximate amount of recorded text in a shard: about a hundred traces."""


OnProblem = Callable[[InputError], None]
OnNote = Callable[[str], None]


def iter_shards(
    targets: Iterable[str],
    *,
    exclude: Collection[Path] = (),
    size: int = BYTES,
    parts: int = 1,
    on_problem: OnProblem,
) -> Iterator[Shard]:
    """Cut files, folders and addresses into shards, in the order that their traces are read in.

    Files of JSON lines, and JSON files with a list of traces, are cut if they are longer than
    ``size`` (bytes); small files are combined. What has to be read together stays together: the
    files of a session of Claude, the traces of an evaluation, and all OpenTelemetry files of a
    folder. These last are cut into ``parts``. Each part decodes all their spans, which is a third
    of the work, so more parts than processes at a time would be slower.
    """
    named: list[Path] = []
    for target in targets:
        path = Path(target)
        if is_address(target):
            yield from remote_shards(target, size)
        elif path.is_dir():
            yield from _below(path, exclude, size, parts, on_problem)
        elif path.is_file():
            named.append(path)
        else:
            message = "no such file or folder, or it cannot be read in pieces"
            on_problem(InputError(Problem(file=target, message=message)))
    yield from _cut(list(dict.fromkeys(named)), [], size, parts, named=True)


def _below(
    folder: Path, exclude: Collection[Path], size: int, parts: int, on_problem: OnProblem
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
    yield from _cut(rest, beside, size, parts, named=False)


def _cut(
    files: list[Path], definitions: Sequence[Path], size: int, parts: int, *, named: bool
) -> Iterator[Shard]:
    """Cut a folder: first its spans, then independent files, then sessions of Claude."""
    beside = [str(path) for path in definitions]

    def shard(group: Iterable[Path]) -> Shard:
        return Shard(files=[str(path) for path in group], definitions=beside, named=named)

    folder = sort_files(one_by_one(map(InputFile, files)))
    spans = [file for file in folder.rest if is_otlp(file)]
    if spans and folder.ids():
        yield shard(files)
        return
    if spans:
        of = min(parts, sum(file.stat().st_size for file in spans) // size)
        if of > 1:
            yield from (
                msgspec.structs.replace(shard(spans), part=(number, of)) for number in range(of)
            )
        else:
            yield shard(spans)
    taken = set(spans)
    alone = [[file] for file in (*folder.rest, *folder.orphans) if file not in taken]
    for group in _grouped(alone, size):
        if isinstance(group, Path):
            for start, end in ranges(group.stat().st_size, size):
                yield msgspec.structs.replace(shard([group]), start=start, end=end)
        elif len(group) == 1 and (items := _items_of(group[0], size)):
            yield from (msgspec.structs.replace(shard(group), items=each) for each in items)
        else:
            yield shard(group)
    for session in _grouped([_session(folder, id_) for id_ in folder.ids()], size):
        yield shard([session] if isinstance(session, Path) else session)


def _session(folder: Folder, id_: str) -> list[Path]:
    own = [folder.sessions[id_]] if id_ in folder.sessions else []
    return [*own, *folder.streams.get(id_, ())]


def _grouped(units: Iterable[list[Path]], size: int) -> Iterator[list[Path] | Path]:
    """Combine units up to a size; a file that is large enough to be cut stays separate."""
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


def pieces_of(targets: Iterable[Path], size: int, exclude: Collection[Path] = ()) -> int:
    """Return how many pieces of ``size`` (bytes) of files and folders can be read separately.

    It is at most one if the largest file is of an evaluation, which is read at once.
    """
    listed = list(targets)
    # A folder of many small files is listed once, when it is read.
    total = itertools.accumulate(size_ for target in listed for size_ in _sizes(target))
    if not any(so_far >= 2 * size for so_far in total):
        return 1
    left_out = {path.resolve() for path in exclude}
    sizes: dict[Path, int] = {}
    for target in listed:
        for file in files_below(target) if target.is_dir() else [target]:
            if not left_out or file.resolve() not in left_out:
                sizes[file] = file.stat().st_size
    pieces = sum(sizes.values()) // size
    if pieces < 2:
        return pieces
    largest = max(sizes, key=sizes.__getitem__)
    return 1 if largest.name == BODIES else pieces


def _sizes(target: str | Path) -> Iterator[int]:
    """Yield the sizes of a file or of all files in a folder, also of those that are not read.

    This takes a fifth of the time in which :func:`files_below` chooses the files of a folder.
    """
    if not os.path.isdir(target):  # noqa: PTH112 - thousands of folders may be below one
        yield os.stat(target).st_size  # noqa: PTH116
        return
    with suppress(PermissionError), os.scandir(target) as entries:  # as `files_below` does
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _sizes(entry.path)
            elif entry.is_file():
                yield entry.stat().st_size


def _items_of(file: Path, size: int) -> list[ItemRange] | None:
    return FileReader(file, {}).items(size) if file.stat().st_size > size else None


class ShardReader:
    """Reads the traces of a shard.

    ``on_problem`` is called for broken files, and the others continue. At the end, ``lines`` is the
    number of lines in a range.
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
        with fetched(shard) as copies:
            start = None if shard.start is None else 0
            broken, note = self._told_of(copies)
            for trace in self._read(list(copies), start, broken, note):
                trace.source.location = copies.get(Path(trace.source.location or ""))
                yield trace

    def _told_of(self, copies: dict[Path, str]) -> tuple[OnProblem, OnNote]:
        """Return a function that replaces copies by their addresses in problems and notes."""

        def named(text: str) -> str:
            for copy, address in copies.items():
                text = text.replace(str(copy), address)
            return text

        def broken(error: InputError) -> None:
            self._on_problem(
                InputError(
                    msgspec.structs.replace(each, file=named(each.file or ""))
                    for each in error.problems
                )
            )

        return broken, lambda text: self._on_note(named(text))

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
        if shard.part is not None:
            yield from iter_part(files, catalog, shard.part, on_problem)
            return
        if start is None and shard.items is None:
            yield from iter_together(
                files, catalog, named=shard.named, on_problem=on_problem, on_note=on_note
            )
            return
        reader = FileReader(files[0], catalog)
        try:
            if shard.items is not None:
                yield from reader.traces_of(shard.items)
                return
            end = shard.end
            if end is None or is_address(shard.files[0]):
                end = files[0].stat().st_size
            lines = LineRange(files[0], start or 0, end)
            try:
                yield from reader.traces_in(lines)
            finally:
                self.lines = lines.count
        except InputError as error:
            on_problem(without_secrets(error))


# Bytes of an object that are fetched to see its format: its first line, or the start of it.
_HEAD = 1 << 20


def remote_shards(address: str, size: int) -> Iterator[Shard]:
    """Cut the content of an address: a file, all files below a folder, or those that match a glob.

    Long files of JSON lines are cut; everything else of a folder is one shard, as its files may
    belong together.

    Raises:
        InputError: fsspec or its driver is not installed, or there is nothing.
    """
    system, root = open_address(address)
    folders: dict[str, list[str]] = {}
    try:
        sizes = _found(system, root)
    except (OSError, ValueError) as error:
        raise unreadable(address, error) from None
    if not sizes:
        raise InputError(Problem(file=address, message="no such file or folder"))
    for name, length in sizes:
        if length > size and _can_be_cut(system, name):
            for start, end in ranges(length, size):
                yield Shard(files=[system.unstrip_protocol(name)], start=start, end=end)
        else:
            folders.setdefault(str(PurePosixPath(name).parent), []).append(name)
    for folder, names in folders.items():
        files = [system.unstrip_protocol(name) for name in names]
        yield Shard(files=files, folder=system.unstrip_protocol(folder), named=len(sizes) == 1)


@contextmanager
def fetched(shard: Shard) -> Iterator[dict[Path, str]]:
    """Copy the files of a shard here while it is read; for a range, only the range.

    Yields the addresses by copy; raises InputError.
    """
    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="baton-"))
        copies: dict[Path, str] = {}
        for address in shard.files:
            system, name = open_address(address)
            copy = Path(temporary) / PurePosixPath(name).name
            if Path("/proc/self/fd").is_dir():
                # The fetched file has no name, so that it disappears with the process, however that
                # ends; at most a dangling link is left.
                nameless = stack.enter_context(tempfile.TemporaryFile(prefix="baton-"))
                copy.symlink_to(f"/proc/{os.getpid()}/fd/{nameless.fileno()}")
            try:
                _copy(system, name, copy, shard)
            except (OSError, ValueError) as error:
                raise unreadable(address, error) from None
            copies[copy] = address
        yield copies


def _copy(system: Any, name: str, copy: Path, shard: Shard) -> None:
    """Copy a file or a range of it, up to the limit of a file, whatever the store sends.

    Raises:
        InputError: the file, or the line at an end of the range, is longer than the limit.
    """
    with system.open(name, "rb") as stream, copy.open("wb") as kept:
        if shard.start is None or shard.end is None:
            copy_bounded(stream, kept, name)
            return
        if shard.start:
            stream.seek(shard.start - 1)
            _rest_of_line(stream, name)
        left = shard.end - stream.tell()
        # The last line may continue beyond the range.
        if left > 0:
            kept.write(stream.read(left))
            if not _ends_a_line(stream):
                kept.write(_rest_of_line(stream, name))


def _rest_of_line(stream: Any, name: str) -> bytes:
    """Read to the end of a line; raises InputError if the line is too long."""
    start, rest = stream.tell(), bytearray()
    while piece := stream.read(PIECE):
        end = piece.find(b"\n") + 1
        rest += piece[:end] if end else piece
        if len(rest) > current(FILE_BYTES):
            raise too_large(name, FILE_BYTES)
        if end:
            break
    stream.seek(start + len(rest))
    return bytes(rest)


def _ends_a_line(stream: Any) -> bool:
    stream.seek(-1, 1)
    return bool(stream.read(1) == b"\n")


def _found(system: Any, root: str) -> list[tuple[str, int]]:
    """Return the files and their lengths in bytes, by name."""
    if any(mark in root for mark in "*?["):
        listed = system.glob(root, detail=True)
    elif system.isfile(root):
        return [(root, int(system.info(root)["size"]))]
    else:
        listed = system.find(root, detail=True)
    return sorted(
        (name, int(info["size"]))
        for name, info in listed.items()
        if info["type"] == "file" and not PurePosixPath(name).name.startswith(".")
    )


def _can_be_cut(system: Any, name: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="baton-") as temporary:
        copy = Path(temporary) / PurePosixPath(name).name
        with system.open(name, "rb") as stream:
            copy.write_bytes(stream.read(_HEAD))
        return FileReader(copy, {}).can_be_cut()
