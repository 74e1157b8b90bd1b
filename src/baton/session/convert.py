"""Writing cases: a dataset in another dialect, or one drafted from good runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from baton.datasets import load_dataset
from baton.datasets.convert import Converted, Target, convert
from baton.datasets.draft import draft_yaml
from baton.formats.own_files import make_folder, naming, refuse_overwriting
from baton.model import InputError
from baton.model.redact import ON, Redaction
from baton.readers import load_catalog, load_traces

from .file_kinds import IS_A_DATASET, given_as
from .prepare import Note


class ConvertedFile(NamedTuple):
    """What became of a dataset, of how many cases."""

    converted: Converted
    cases: int


def convert_dataset(
    dataset: Sequence[str],
    to: Target,
    out: Path,
    *,
    agents: Path | None = None,
    redaction: Redaction = ON,
    note: Note,
) -> ConvertedFile:
    """Write a dataset in another dialect, and return what that has no place for.

    Args:
        dataset: files and folders with cases; ``FILE:case1,case2`` for some of them.
        to: the dialect.
        out: the file to write: JSON or YAML, by its suffix.
        agents: agent definitions, which tell a trajectory of agents from one of tools.
        redaction: what is taken out.
        note: gets what of the dataset is not read.

    Raises:
        InputError: files with faults, or a suffix that the dialect is not written with.
    """
    if not dataset:
        raise InputError("name the files or folders to convert")
    catalog = load_catalog(agents) if agents is not None else None
    cases = load_dataset(dataset, agents=catalog)
    refuse_overwriting([out], [*cases.files, *([agents] if agents is not None else ())])
    converted = convert(cases, to, out, agents=catalog, redaction=redaction)
    make_folder(out.parent)
    with naming(out):
        out.write_text(converted.text, encoding="utf-8")
    for text in (*cases.notes, *converted.notes):
        note(text)
    return ConvertedFile(converted, len(cases))


def draft_dataset(
    traces: Sequence[Path], *, agents: Path | None = None, redaction: Redaction = ON, note: Note
) -> str:
    """Return a dataset (YAML) that expects what recorded traces did; each becomes a case.

    Raises:
        InputError: files with faults, or without a trace.
    """
    if not traces:
        raise InputError("name the traces to draft cases from")
    try:
        recorded = load_traces(traces, agents=agents, redact=redaction)
    except InputError as error:
        datasets = given_as(traces, "dataset", IS_A_DATASET)
        raise InputError(datasets or error.problems) from None
    if not recorded:
        raise InputError(f"no trace in {', '.join(map(str, traces))}")
    for trace in recorded:
        for number, turn in enumerate(trace.turns, 1):
            if turn.input is None:
                note(f"{trace.id}: turn {number}: the recording does not hold the user's message")
            if turn.status != "completed":
                note(f"{trace.id}: turn {number} is {turn.status}: is this a run to expect again?")
    return draft_yaml(recorded)
