"""``baton draft``."""

from __future__ import annotations

import sys
from pathlib import Path

from baton.model.redact import ON
from baton.session.convert import draft

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
    sys.stdout.write(draft(traces, agents=agents, redact=redacting.over(ON), note=note))
    return 0
