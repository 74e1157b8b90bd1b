"""Reports on a stored evaluation: the requested files and their places."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from baton.config import Config
from baton.config.config_file import ReporterSpec
from baton.formats.own_files import refuse_overwriting
from baton.formats.storage_addresses import is_address, open_address, place_of
from baton.model import BatonError, InputError, Problem
from baton.model.redact import RedactLike, redaction_of
from baton.reports.registry import report_entry
from baton.store import (
    StoredEvaluation,
    evaluation_at,
    latest_evaluation,
    read_evaluation,
    recordings_of,
    temporary_folder,
)

from .prepare import Note, PathLike, log_note

if TYPE_CHECKING:
    from .evaluation import Evaluation

STORED = Path(".baton/evaluations")
"""Where evaluations are stored, and looked for, unless another folder is named."""


class Out(msgspec.Struct, frozen=True):
    """Where evaluations are stored: a folder, and the address where finished ones are copied."""

    folder: Path
    address: str | None = None


def out_at(place: PathLike) -> Out:
    """Return where to store evaluations: a folder, or below an address.

    With an address they are written below :data:`STORED` first, so that nothing is lost if the
    storage fails.

    Raises:
        InputError: fsspec or the driver of the address is not installed.
    """
    text = os.fspath(place)
    if not is_address(text):
        return Out(Path(text))
    open_address(text)
    return Out(STORED, text)


class Written(msgspec.Struct, frozen=True):
    """An evaluation folder, and other inputs of its reports.

    ``traces`` are the recordings that were scored, ``agents`` the definitions they were read with,
    ``upload_to`` the address below which it is copied.
    """

    folder: Path
    config: Config | None = None
    traces: Sequence[Path] = ()
    agents: Path | None = None
    upload_to: str | None = None


def folder_of(evaluation: Evaluation | PathLike) -> Path:
    """Return the folder of an evaluation; one in memory is saved for as long as the process lasts.

    Raises:
        InputError: there is none at the address, or it cannot be fetched or written.
    """
    if isinstance(evaluation, str | os.PathLike):
        return evaluation_at(evaluation)
    return evaluation.save(temporary_folder(evaluation.name))


def report(
    evaluation: Evaluation | PathLike | None = None,
    *,
    html: PathLike | None = None,
    markdown: PathLike | None = None,
    csv: PathLike | None = None,
    junit: PathLike | None = None,
    output: PathLike | None = None,
    traces: Sequence[PathLike] = (),
    agents: PathLike | None = None,
    redact: RedactLike = None,
    with_traces: bool = False,
    stored: PathLike = STORED,
    note: Note = log_note,
) -> StoredEvaluation:
    """Open a stored evaluation, and write reports on it.

    Args:
        evaluation: what ``score`` or ``evaluate`` returned, or its folder, also at an address
            (``s3://bucket/NAME``), of which a copy is fetched; the newest one below ``stored`` when
            left out.
        html: the file for one page with every case and trace.
        markdown: the file for a comment for a pull request.
        csv: the file for a row for each score.
        junit: the file for a JUnit report.
        output: a file that will be written afterwards; the function checks that it can be.
        traces: recordings that it was made from: needed for pages with traces when it was made on
            another machine, or moved.
        agents: agent definitions that these recordings were scored with.
        redact: what is replaced by tags; with ``None``, the folder's own settings.
        with_traces: whether to report why traces cannot be shown, also without ``html``.
        stored: where evaluations are stored.
        note: called with why traces are not shown; by default the logger `baton` warns.

    Returns:
        The evaluation: its ``header``, and ``rows()`` with a summary of each result.

    Raises:
        InputError: no such evaluation, or a file that cannot be written.
    """
    folder = folder_of(latest_evaluation(Path(stored)) if evaluation is None else evaluation)
    named = {"html": html, "markdown": markdown, "csv": csv, "junit": junit}
    files = {kind: Path(path) for kind, path in named.items() if path is not None}
    made = read_evaluation(
        folder,
        None if redact is None else redaction_of(redact),
        partial=True,
        traces=[Path(each) for each in traces],
        agents=None if agents is None else Path(agents),
    )
    if with_traces or html is not None:
        if refused := recordings_of(made).refused:
            note(f"{place_of(folder)}: {refused}")
    check_outputs(None, [*files.values(), *([] if output is None else [Path(output)])])
    write_reports(made, [], files)
    return made


def check_outputs(
    config: Config | None, files: Sequence[Path], inputs: Iterable[Path | str | None] = ()
) -> None:
    """Make sure that reports can be written, before anything runs.

    Raises:
        InputError: a file cannot be written, or is one of the ``inputs``; an endpoint is not valid.
    """
    reporters = config.reporters if config else []
    paths = [Path(each.output_path) for each in reporters if each.output_path]
    read = [each for each in inputs if each is not None]
    refuse_overwriting((*paths, *files), [*read, config.file] if config else read)
    for path in (*paths, *files):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("a", encoding="utf-8").close()
        except OSError as error:
            raise _unwritable(path, error) from None
    for reporter in reporters:
        if reporter.endpoint is not None:
            from baton.export.run import endpoint_of

            endpoint_of(reporter.endpoint, reporter.headers_from).close()


def write_reports(
    evaluation: StoredEvaluation, reporters: Sequence[ReporterSpec], files: Mapping[str, Path]
) -> None:
    """Write the reports of a config, then other ``files`` by the type of their reporter.

    Raises:
        InputError: a file cannot be written.
    """
    wanted = [(each.type, Path(each.output_path)) for each in reporters if each.output_path]
    for kind, path in (*wanted, *files.items()):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8", newline="") as file:
                report_entry(kind).target(evaluation, file)
        except OSError as error:
            raise _unwritable(path, error) from None


def deliver(evaluation: StoredEvaluation, reporters: Sequence[ReporterSpec]) -> list[str]:
    """Send the results to the endpoints of a config; return why any could not be delivered."""
    problems: list[str] = []
    for reporter in reporters:
        if reporter.endpoint is not None:
            from baton.export.run import send_otlp

            try:
                send_otlp(evaluation, reporter.endpoint, reporter.headers_from)
            except BatonError as error:
                problems.append(f"the results were not delivered: {error}")
    return problems


def _unwritable(path: Path, error: OSError) -> InputError:
    message = f"the report cannot be written: {error.strerror}"
    return InputError(Problem(file=str(path), message=message))
