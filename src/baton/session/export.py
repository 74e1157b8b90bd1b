"""Writing recordings and results as OpenTelemetry, to a file or an endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from baton.export.run import Exported, Only, export
from baton.export.sink import Limits, open_sink, target_of
from baton.formats.evaluation_folder import is_evaluation
from baton.formats.own_files import refuse_overwriting
from baton.model import InputError
from baton.model.redact import Redaction

from .prepare import Note


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Recordings and evaluations to export, and where to.

    ``target`` is a file, the address of an endpoint, or ``env`` for the one that the environment
    names; ``headers_from`` is the environment variable with headers for it. ``traces`` are the
    recordings that evaluations were made of. Times are in seconds.
    """

    recordings: Sequence[Path]
    target: str
    only: Only | None = None
    agents: Path | None = None
    traces: Sequence[Path] = ()
    headers_from: str | None = None
    encoding: Literal["json", "protobuf"] | None = None
    timeout: float = 30
    retry_attempts: int = 5
    retry_delay: float = 1
    redact: Redaction | None = None


class ExportedTo(NamedTuple):
    """How much was written, and where."""

    done: Exported
    target: str


def export_recordings(request: ExportRequest, note: Note) -> ExportedTo:
    """Write the spans of recordings, and of evaluations their results, too.

    Raises:
        InputError: wrong options, or what is no recording.
        NotDelivered: an endpoint did not take everything.
    """
    if not request.recordings:
        raise InputError("name the files or folders to export")
    if request.timeout <= 0 or request.retry_attempts < 1 or request.retry_delay < 0:
        raise InputError("--timeout and --retry-attempts are over 0, --retry-delay is not negative")
    target, headers = target_of(request.target, request.headers_from)
    limits = Limits(request.timeout, request.retry_attempts, request.retry_delay)
    refuse_overwriting([Path(target)], _read_for(request.recordings, Path(target)))
    sink = open_sink(target, encoding=request.encoding, headers=headers, limits=limits)
    try:
        done = export(
            request.recordings,
            sink,
            only=request.only,
            agents=request.agents,
            traces=request.traces,
            on_note=note,
            redact=request.redact,
        )
        if done.spans or done.results:
            sink.finish()
    finally:
        sink.close()
    return ExportedTo(done, target)


def _read_for(recordings: Sequence[Path], target: Path) -> Iterator[Path]:
    """Yield the files that are read for an export, of folders only the target itself."""
    for path in recordings:
        if path.is_dir() and not is_evaluation(path) and target.exists():
            if target.resolve().is_relative_to(path.resolve()):
                yield target
        yield path
