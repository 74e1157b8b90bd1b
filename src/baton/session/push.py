"""Packs recordings for a server: related files become one archive."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from baton.formats.evaluation_folder import is_evaluation
from baton.formats.storage_addresses import is_address
from baton.model import InputError, Problem
from baton.readers.trace_paths import EMPTY, files_below, iter_traces, outside

from .prepare import Note, PathLike, log_note
from .recordings import recordings_in, with_copies


class Package(NamedTuple):
    """A file, a folder or a session of Claude Code, as an archive (tar, gzip).

    The same content gives the same bytes, so that a server keeps it once.
    """

    name: str
    files: int
    data: bytes


def pack(paths: Iterable[PathLike], note: Note = log_note) -> Iterator[Package]:
    """Pack what `baton show` reads: one package for each path, in their order.

    A transcript of Claude Code is packed with the folder of its sub-agents, which has the same
    name. Archives hold contents only: no links, no owners, no times.

    Raises:
        InputError: a path that does not exist or holds nothing, or a link that leads out of a
            folder.
    """
    for each in with_copies(paths):
        path = Path(each)
        if not path.exists():
            raise InputError(Problem(file=str(path), message="no such file or folder"))
        links: list[Path] = []
        if is_evaluation(path):
            # It may name paths of recordings on this machine; a server gets their content.
            made_of = recordings_in([str(path)], note)
            traces = iter_traces(made_of.paths, agents=made_of.agents, exclude=made_of.exclude)
            lines = b"".join(msgspec.json.encode(trace) + b"\n" for trace in traces)
            yield Package(path.name, 1, _archive({Path("records.jsonl"): lines}))
            continue
        if path.is_dir():
            members = {file: file.relative_to(path) for file in files_below(path, links)}
        else:
            members = {path: Path(path.name)}
            beside = path.with_suffix("")
            if path.suffix == ".jsonl" and beside.is_dir():
                below = files_below(beside, links)
                members |= {file: file.relative_to(path.parent) for file in below}
        if links:
            raise InputError(outside(links))
        if not members:
            raise InputError(Problem(file=str(path), message=EMPTY))
        content = {name: file.read_bytes() for file, name in members.items()}
        yield Package(path.resolve().name, len(members), _archive(content))


# Larger files are only read by the server: reading spans takes a second for each 20 MB.
_READ_FIRST = 64 * 1024 * 1024


def check_readable(paths: Iterable[PathLike]) -> None:
    """Check that each path holds a trace, before anything is sent; addresses are read later.

    A server accepts what it cannot read, in case a later version can, and only lists it.

    Raises:
        InputError: lists every path that is empty, or that holds no trace.
    """
    problems: list[Problem] = []
    for path in (Path(each) for each in paths if not is_address(str(each))):
        files = files_below(path, []) if path.is_dir() else [path]
        if is_evaluation(path) or sum(f.stat().st_size for f in files if f.is_file()) > _READ_FIRST:
            continue
        broken: list[InputError] = []
        if next(iter_traces(path, on_problem=broken.append), None) is None:
            why = [problem for error in broken for problem in error.problems]
            problems += why or [Problem(message=f"no trace in {path}")]
    if problems:
        raise InputError(problems)


def _archive(members: Mapping[Path, bytes]) -> bytes:
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, data in members.items():
            entry = tarfile.TarInfo(name.as_posix())
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()
