"""Selects the parts of recorded traces to show: cases, turns and dispatches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from baton.formats.evaluation_folder import is_evaluation
from baton.formats.evaluation_header import read_header
from baton.model import Dispatch, InputError, Trace, suggestion
from baton.model.redact import RedactLike
from baton.readers import iter_traces

from .file_kinds import IS_A_DATASET, unreadable
from .prepare import Note, PathLike, each_once, log_note
from .recordings import PlainPrices, pricing, recordings_in


def _changed_in(paths: Sequence[str]) -> Iterator[str]:
    """Yield a note for each text that was changed in the evaluations to show."""
    for path in paths:
        if is_evaluation(Path(path)):
            provenance = read_header(Path(path)).provenance
            for each in provenance.texts if provenance is not None else ():
                yield f"{path}: played with a changed text: {each}"


class Shown(NamedTuple):
    """A trace, and the only dispatch to show, if any."""

    trace: Trace
    dispatch: Dispatch | None


def traces_to_show(
    files: PathLike | Sequence[PathLike],
    *,
    case: str | None = None,
    turn: int | None = None,
    dispatch: str | None = None,
    agents: PathLike | None = None,
    config: PathLike | None = None,
    prices: PlainPrices | None = None,
    redact: RedactLike = True,
    note: Note = log_note,
) -> Iterator[Shown]:
    """Yield the selected traces, each as soon as it is read.

    Args:
        files: files and folders with recorded traces, evaluation folders, and servers
            (``server://HOST``).
        case: only traces of this case.
        turn: the number of the turn to show, from 1; every trace has to have it.
        dispatch: the id of the only dispatch to show.
        agents: agent definitions.
        config: a config whose ``prices:`` are used.
        prices: USD per million tokens by model; override those of the config.
        redact: what to replace with tags, as for :func:`baton.score`.
        note: called with notes of the readers; by default the logger `baton` warns.

    Raises:
        InputError: files with errors (after all others were shown), or nothing was selected.
    """
    some = [files] if isinstance(files, str | os.PathLike) else list(files)
    if not some:
        raise InputError("name the files or folders to show")
    priced = pricing(config, prices)
    paths = each_once(some, note)
    for text in _changed_in(paths):
        note(text)
    read = recordings_in(paths, note)
    errors: list[InputError] = []
    cases: dict[str, None] = {}
    ids: list[str] = []
    shown = False
    for trace in iter_traces(
        [Path(path) for path in read.paths],
        agents=agents or read.agents,
        exclude=read.exclude,
        on_problem=errors.append,
        on_note=note,
        redact=redact,
    ):
        cases[trace.case or trace.id] = None
        if case is not None and case != (trace.case or trace.id):
            continue
        dispatches = [each for one in trace.turns for each in one.dispatches]
        ids += [each.id for each in dispatches]
        chosen = next((each for each in dispatches if each.id == dispatch), None)
        if dispatch is not None and chosen is None:
            continue
        shown = True
        if turn is not None and not 1 <= turn <= len(trace.turns):
            raise InputError(f"trace `{trace.id}` has no turn {turn}: it has {len(trace.turns)}")
        yield Shown(priced(trace), chosen)
    problems = [problem for error in errors for problem in error.problems]
    if not cases:
        problems = unreadable(problems, map(Path, read.paths), "dataset", IS_A_DATASET)
    if problems:
        raise InputError(problems)
    if not cases:
        raise InputError(f"no trace in {', '.join(map(str, some))}")
    if not shown and case is not None and case not in cases:
        raise InputError(f"no trace of case `{case}`; {suggestion(case, cases)}")
    if not shown:
        hint = suggestion(str(dispatch), ids) or "there are no dispatches"
        raise InputError(f"no dispatch `{dispatch}`; {hint}")
