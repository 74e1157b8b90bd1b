"""``baton show``."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from baton.model.redact import ON
from baton.session.show import traces_to_show

from .options import AS_CONFIGURED, ConfigPath, Flag, Redacting, Whole
from .usage_messages import note


def show_command(
    *files: str,
    case: str | None = None,
    turn: Whole | None = None,
    dispatch: str | None = None,
    agents: Path | None = None,
    config: ConfigPath = None,
    json: Flag = False,
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Draw recorded traces: runs, dispatches, tools, times, tokens, costs, and what is unknown.

    Parameters
    ----------
    files
        Files and folders with recorded traces, in any format that Baton reads; also evaluation
        folders; and conversations of a server: server://HOST/PROJECT?to=AGENT.
    case
        Show the traces of this case only.
    turn
        Show this turn only; counts from 1.
    dispatch
        Show only this dispatch, with what came before and after it.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    config
        Compute costs from the `prices:` of a config, and from genai-prices if that is installed.
    json
        Print the record as JSON, one line for each trace; Baton reads that again.
    """
    from baton.reports.trace import print_dispatch, print_trace

    for trace, chosen in traces_to_show(
        files,
        case=case,
        turn=turn,
        dispatch=dispatch,
        agents=agents,
        config=config,
        redact=redacting.over(ON),
        note=note,
    ):
        if json:
            print(msgspec.json.encode(trace).decode())
        elif chosen is not None:
            print_dispatch(trace, chosen, sys.stdout)
        else:
            print_trace(trace, sys.stdout, turn=turn)
    return 0
