"""``baton show``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from baton.model import Dispatch, InputError, Trace, suggestion
from baton.model.redact import ON
from baton.readers import iter_traces
from baton.session.file_kinds import IS_A_DATASET, given_as

from .messages import note
from .options import AS_CONFIGURED, Redacting, Whole


def show_command(
    *files: Path,
    case: str | None = None,
    turn: Whole | None = None,
    dispatch: str | None = None,
    agents: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Draw recorded traces: runs, dispatches and tools, times, tokens, and what is not known.

    Parameters
    ----------
    files
        Files and folders with recorded traces, in any format Baton reads; evaluation folders
        of live runs, too.
    case
        Show the traces of this case only.
    turn
        Show this turn only; counts from 1.
    dispatch
        Show this dispatch only, with what came before and after it.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    json
        Print the record as JSON, one line for each trace; Baton reads that again.
    """
    from baton.reports.trace import print_dispatch, print_trace

    if not files:
        raise InputError("name the files or folders to show")
    errors: list[InputError] = []
    cases: dict[str, None] = {}
    ids: list[str] = []
    shown = False
    for trace in iter_traces(
        files, agents=agents, on_problem=errors.append, on_note=note, redact=redacting.over(ON)
    ):
        cases[trace.case or trace.id] = None
        if case is not None and case != (trace.case or trace.id):
            continue
        chosen, known = _dispatch(trace, dispatch)
        ids += known
        if dispatch is not None and chosen is None:
            continue
        shown = True
        if turn is not None and not 1 <= turn <= len(trace.turns):
            raise InputError(f"trace `{trace.id}` has no turn {turn}: it has {len(trace.turns)}")
        if json:
            print(msgspec.json.encode(trace).decode())
        elif chosen is not None:
            print_dispatch(trace, chosen, sys.stdout)
        else:
            print_trace(trace, sys.stdout, turn=turn)
    _complain(errors, files, list(cases))
    if not shown and case is not None and case not in cases:
        raise InputError(f"no trace of case `{case}`; {suggestion(case, cases)}")
    if not shown:
        hint = suggestion(str(dispatch), ids) or "nothing was handed over"
        raise InputError(f"no dispatch `{dispatch}`; {hint}")
    return 0


def _complain(errors: list[InputError], files: tuple[Path, ...], cases: list[str]) -> None:
    problems = [problem for error in errors for problem in error.problems]
    if not cases:
        problems = given_as(files, "dataset", IS_A_DATASET) or problems
    if problems:
        raise InputError(problems)
    if not cases:
        raise InputError(f"no trace in {', '.join(map(str, files))}")


def _dispatch(trace: Trace, id_: str | None) -> tuple[Dispatch | None, list[str]]:
    """Find a dispatch; return it and the ids of all."""
    dispatches = [d for turn in trace.turns for d in turn.dispatches]
    return next((d for d in dispatches if d.id == id_), None), [d.id for d in dispatches]
