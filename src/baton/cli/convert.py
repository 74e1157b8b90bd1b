"""``baton convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from baton.datasets import load_dataset
from baton.formats.own_files import make_folder, naming
from baton.model import InputError
from baton.model.redact import ON
from baton.readers import load_catalog

from .messages import note, say
from .options import AS_CONFIGURED, Redacting

LOST = 1


def convert_command(
    *dataset: str,
    to: Literal["adk", "judge-llm", "strands", "baton"],
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    agents: Path | None = None,
    strict: Annotated[bool, Parameter(negative="")] = False,
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Write a dataset in another dialect, and list what that has no place for.

    Parameters
    ----------
    dataset
        Files and folders with cases, in any dialect Baton reads; `FILE:case1,case2` for some.
    to
        The dialect: an eval set of ADK or judge-llm, an experiment of Strands, or Baton's own.
    out
        The file to write: JSON or YAML, by its suffix.
    agents
        Agent definitions, which tell a trajectory of agents from one of tools: an app-info
        answer of ADK, `.claude/agents`, or YAML with `agents:`.
    strict
        Exit with 1 when anything is lost; the file is written anyway.
    """
    from baton.datasets.convert import convert

    if not dataset:
        raise InputError("name the files or folders to convert")
    catalog = load_catalog(agents) if agents is not None else None
    cases = load_dataset(dataset, agents=catalog)
    converted = convert(cases, to, out, agents=catalog, redaction=redacting.over(ON))
    make_folder(out.parent)
    with naming(out):
        out.write_text(converted.text, encoding="utf-8")
    for text in (*cases.notes, *converted.notes):
        note(text)
    for loss in converted.losses:
        what = "added" if loss.is_added else "lost"
        say(f"{what}: " + ": ".join(part for part in loss[:3] if part))
    differ = f", {len(converted.losses)} not as they were" if converted.losses else ""
    say(f"{out}: {converted.written} of {len(cases)} cases{differ}")
    return LOST if strict and converted.losses else 0
