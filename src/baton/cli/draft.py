"""``baton draft``."""

from __future__ import annotations

import sys
from pathlib import Path

from baton.datasets.draft import draft_yaml
from baton.model import InputError
from baton.model.redact import ON
from baton.readers import load_traces
from baton.session.file_kinds import IS_A_DATASET, given_as

from .messages import note
from .options import AS_CONFIGURED, Redacting


def draft_command(
    *traces: Path, agents: Path | None = None, redacting: Redacting = AS_CONFIGURED
) -> int:
    """Turn a good run into a case: print a dataset that expects what it did.

    Parameters
    ----------
    traces
        Files and folders with recorded traces; each trace becomes a case.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    """
    if not traces:
        raise InputError("name the traces to draft cases from")
    try:
        recorded = load_traces(traces, agents=agents, redact=redacting.over(ON))
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
    sys.stdout.write(draft_yaml(recorded))
    return 0
