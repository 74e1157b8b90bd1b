"""``baton convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from baton.model import counted
from baton.model.redact import ON

from .options import AS_CONFIGURED, Flag, OutputFile, Redacting
from .usage_messages import note, say

LOST = 1


def convert_command(
    *dataset: str,
    to: Literal["adk", "judge-llm", "strands", "baton"],
    output: OutputFile,
    agents: Path | None = None,
    initial_session: Path | None = None,
    strict: Flag = False,
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Convert a dataset to another dialect, and list what is lost.

    Parameters
    ----------
    dataset
        Files and folders with cases, in any dialect Baton reads; `FILE:case1,case2` for some.
    to
        The dialect: an eval set of ADK or judge-llm, an experiment of Strands, or Baton's own.
    output
        The file to write: JSON or YAML, by its suffix.
    agents
        Agent definitions, which distinguish a trajectory of agents from one of tools: an app-info
        answer of ADK, `.claude/agents`, or YAML with `agents:`.
    initial_session
        A JSON file with `app_name`, `user_id` and `state`, or a session that ADK saved: cases that
        state no session start with it. With `--to adk` this is what ADK's
        `migrate_eval_data_to_new_schema` does.
    strict
        Exit with 1 when anything is lost; the file is written anyway.
    """
    from baton.session.convert import convert

    converted, total = convert(
        dataset,
        to,
        output,
        agents=agents,
        initial_session=initial_session,
        redact=redacting.over(ON),
        note=note,
    )
    for loss in converted.losses:
        what = "added" if loss.is_added else "lost"
        say(f"{what}: " + ": ".join(part for part in loss[:3] if part))
    differ = f", {len(converted.losses)} changed" if converted.losses else ""
    say(f"{output}: {converted.written} of {counted(total, 'case')}{differ}")
    return LOST if strict and converted.losses else 0
