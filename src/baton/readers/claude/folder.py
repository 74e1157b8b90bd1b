"""The sessions of a folder, each from all that was recorded of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from baton.formats.document import read_bytes
from baton.model import Source, Trace
from baton.readers.catalog import Catalog

from . import session, stream
from .layout import Folder
from .merge import merge, merge_stream


def read_session_file(path: Path, catalog: Catalog) -> Trace:
    """Read the file of a session and of its sub-agents; raises InputError."""
    source = Source(format=session.FORMAT, framework=session.FRAMEWORK, location=str(path))
    return session.read_session(path, source=source, catalog=catalog)


def read_stream_file(path: Path, data: bytes, catalog: Catalog) -> list[Trace]:
    """Read a file of messages, one trace a session; raises InputError."""
    source = Source(format=stream.FORMAT, framework=stream.FRAMEWORK, location=str(path))
    return stream.read_stream_file(str(path), data, path.name.split(".")[0], source, catalog)


def read_one(
    folder: Folder, id_: str, catalog: Catalog, others: Mapping[str, Sequence[Trace]]
) -> list[Trace]:
    """Read one session of a folder, from its transcript where there is one.

    ``others`` are traces of the same sessions by id, read from spans. Streams without a
    transcript are traces of their own.

    Raises:
        InputError: a file cannot be read.
    """
    streams = [
        trace
        for path in folder.streams.get(id_, ())
        for trace in read_stream_file(path, read_bytes(path), catalog)
    ]
    main = folder.sessions.get(id_)
    if main is None:
        traces = streams
    else:
        transcript = read_session_file(main, catalog)
        for trace in streams:
            if trace.id == transcript.id:
                merge_stream(transcript, trace)
        known = {*folder.ids(), transcript.id}
        traces = [transcript, *(trace for trace in streams if trace.id not in known)]
    for trace in traces:
        for twin in others.get(trace.id, ()):
            merge(trace, twin)
    return traces
