"""``baton draft``."""

from __future__ import annotations

import sys
from pathlib import Path

from baton.formats.own_files import make_folder, naming, refuse_overwriting
from baton.model.redact import ON
from baton.session.convert import draft

from .messages import note, say
from .options import AS_CONFIGURED, Output, Redacting


def draft_command(
    *traces: str,
    output: Output = None,
    agents: Path | None = None,
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Turn a good run into a case: print a dataset that expects what it did.

    Parameters
    ----------
    traces
        Files and folders with recorded traces, or conversations of a server:
        server://HOST/PROJECT?to=AGENT. Each trace becomes a case.
    output
        Write the cases to this file, in place of printing them.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    """
    if output is not None:
        refuse_overwriting([output], traces)
    text = draft(traces, agents=agents, redact=redacting.over(ON), note=note)
    if output is None:
        sys.stdout.write(text)
        return 0
    make_folder(output.parent)
    with naming(output):
        output.write_text(text, encoding="utf-8")
    say(f"the cases are in {output}")
    return 0
