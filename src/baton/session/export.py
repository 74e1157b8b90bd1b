"""Writes recordings and results as OpenTelemetry, to a file or an endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

from baton.export.run import Exported, Only, export
from baton.export.sink import JsonFile, Limits, Sink, open_sink, target_of
from baton.formats.evaluation_folder import is_evaluation
from baton.formats.own_files import refuse_overwriting
from baton.model import InputError, Problem, Trace
from baton.model.option_spelling import option
from baton.model.redact import Redaction, RedactLike, redaction_of

from .prepare import Note, PathLike, TracesLike, each_once, log_note, traces_or_paths
from .recordings import PlainPrices, pricing, with_copies
from .server_source import is_server


class ExportedTo(NamedTuple):
    """What was written, and where."""

    done: Exported
    target: str


def export_recordings(
    recordings: TracesLike,
    target: str,
    *,
    only: Only | None = None,
    agents: PathLike | None = None,
    traces: Sequence[PathLike] = (),
    config: PathLike | None = None,
    prices: PlainPrices | None = None,
    headers_from: str | None = None,
    encoding: Literal["json", "protobuf"] | None = None,
    timeout: float = 30,
    retry_attempts: int = 5,
    retry_delay: float = 1,
    redact: RedactLike = None,
    backend: str | None = None,
    workers: int | None = None,
    jobs: int = 1,
    note: Note = log_note,
) -> ExportedTo:
    """Write the spans of recordings, and also the results of evaluations.

    Args:
        recordings: traces, files and folders with recorded traces, evaluation folders, and servers
            (``server://HOST``), whose conversations are copied unchanged into a JSON file.
        target: a file (``.jsonl``, ``.json``, ``.pb``), the address of an endpoint, or ``env`` for
            the one that the environment names.
        only: ``spans``, or ``results`` (of evaluations).
        agents: agent definitions.
        traces: the recordings that evaluations were made from.
        config: a config whose ``prices:`` are used.
        prices: USD per million tokens by model; override those of the config, which override the
            list of genai-prices.
        headers_from: the environment variable with headers for the endpoint.
        encoding: the encoding for an endpoint; by default protobuf if its library is installed,
            else JSON.
        timeout: seconds to wait for an answer.
        retry_attempts: the maximum number of attempts for a request.
        retry_delay: seconds before the second attempt; doubled for each further one.
        redact: what to replace with tags; ``None`` for secrets, and for what the evaluation
            folder says.
        backend: where conversations of servers are fetched: ``local`` or ``ray``.
        workers: how many workers the backend has.
        jobs: the number of processes on this machine, without a backend.
        note: called with notes of the readers; by default the logger `baton` warns.

    Raises:
        InputError: wrong options, or a file that is not a recording.
        NotDelivered: an endpoint did not accept everything.
    """
    some = traces_or_paths(recordings)
    if not some:
        raise InputError("name the files or folders to export")
    if timeout <= 0 or retry_attempts < 1 or retry_delay < 0:
        raise InputError(
            f"{option('timeout')} and {option('retry_attempts')} have to be over 0, "
            f"{option('retry_delay')} at least 0"
        )
    given = [each for each in some if isinstance(each, Trace)]
    if given and only == "results":
        raise InputError("a Trace is no evaluation: it has no results")
    unique = each_once((each for each in some if isinstance(each, str)), note)
    servers = [each for each in unique if is_server(each)]
    if servers and only == "results":
        raise InputError(Problem(file=servers[0], message="is a server: it has no evaluations"))
    if not servers and (backend, workers, jobs) != (None, None, 1):
        names = ", ".join(option(name) for name in ("backend", "workers", "jobs"))
        raise InputError(f"{names} are for conversations of a server: server://HOST/PROJECT")
    on: dict[str, Any] = {}
    if servers:
        from .server_parts import backend_of  # it loads the backends

        on = backend_of(config, backend, workers, jobs)
    paths = [Path(path) for path in with_copies(unique) if not is_server(path)]
    priced = pricing(config, prices or {})
    place, headers = target_of(target, headers_from)
    limits = Limits(timeout, retry_attempts, retry_delay)
    refuse_overwriting([Path(place)], _read_for(paths, Path(place)))
    sink = open_sink(place, encoding=encoding, headers=headers, limits=limits)
    try:
        done = export(
            [redaction_of(redact).trace(each) for each in given],
            paths,
            sink,
            only=only,
            agents=None if agents is None else Path(agents),
            traces=[Path(each) for each in traces],
            priced=priced,
            on_note=note,
            redact=None if redact is None else redaction_of(redact),
        )
        for address in servers:
            _export_server(address, sink, done, redaction_of(redact), on, note)
        if done.spans or done.results:
            sink.finish()
    finally:
        sink.close()
    return ExportedTo(done, place)


def _export_server(
    address: str,
    sink: Sink,
    done: Exported,
    redaction: Redaction,
    backend: Mapping[str, Any],
    note: Note,
) -> None:
    """Write the conversations of a server, each as one export.

    Raises:
        InputError: the target is not a JSON file, or the server refuses the request.
        ServerError: the server does not answer.
    """
    if not isinstance(sink, JsonFile):
        message = "conversations of a server can only be written to FILE.jsonl or FILE.json"
        raise InputError(Problem(file=address, message=message))
    from .server_parts import exports_of

    deleted = 0
    with closing(exports_of(address, redaction, backend)) as exports:
        for item in exports:
            if item is None:
                deleted += 1
            else:
                sink.add_encoded(item.data)
                done.traces += 1
                done.spans += item.spans
    if deleted:
        note(f"{address}: {deleted} more are missing: retention deleted them")


def _read_for(recordings: Sequence[Path], target: Path) -> Iterator[Path]:
    """Yield the recordings, and the target of the export if it is in a folder of recordings."""
    for path in recordings:
        if path.is_dir() and not is_evaluation(path) and target.exists():
            if target.resolve().is_relative_to(path.resolve()):
                yield target
        yield path
