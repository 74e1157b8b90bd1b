"""``baton show``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from baton.model import Dispatch, InputError, Trace, suggestion
from baton.readers import iter_traces

from .notes import note


def show_command(
    *files: Path,
    turn: int | None = None,
    dispatch: str | None = None,
    agents: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Draw recorded traces: runs, dispatches and tools, times, tokens, and what is not known.

    Parameters
    ----------
    files
        Files and folders with recorded traces, in any format Baton reads.
    turn
        Show this turn only; counts from 1.
    dispatch
        Show this dispatch only, with what came before and after it.
    agents
        Agent definitions: an app-info answer of ADK, or YAML with `agents:`.
    json
        Print the record as JSON, one line for each trace; Baton reads that again.
    """
    from baton.reports.trace import print_dispatch, print_trace

    if not files:
        raise InputError("name the files or folders to show")
    errors: list[InputError] = []
    found = 0
    ids: list[str] = []
    shown = False
    for trace in iter_traces(files, agents=agents, on_problem=errors.append, on_note=note):
        found += 1
        if dispatch is not None:
            chosen, known = _dispatch(trace, dispatch)
            ids += known
            if chosen is None:
                continue
        shown = True
        if turn is not None and not 1 <= turn <= len(trace.turns):
            raise InputError(f"trace `{trace.id}` has no turn {turn}: it has {len(trace.turns)}")
        if json:
            print(msgspec.json.encode(trace).decode())
        elif dispatch is not None and chosen is not None:
            print_dispatch(trace, chosen, sys.stdout)
        else:
            print_trace(trace, sys.stdout, turn=turn)
    problems = [problem for error in errors for problem in error.problems]
    if problems:
        raise InputError(problems)
    if not found:
        raise InputError(f"no trace in {', '.join(map(str, files))}")
    if not shown:
        raise InputError(f"no dispatch `{dispatch}`; {suggestion(str(dispatch), ids)}")
    return 0


def _dispatch(trace: Trace, id_: str) -> tuple[Dispatch | None, list[str]]:
    dispatches = [d for turn in trace.turns for d in turn.dispatches]
    return next((d for d in dispatches if d.id == id_), None), [d.id for d in dispatches]
