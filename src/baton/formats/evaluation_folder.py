"""The files of an evaluation folder, for those that write one and those that come upon one."""

from __future__ import annotations

from pathlib import Path

HEADER, INDEX, BODIES = "evaluation.json", "index.jsonl", "bodies.jsonl"


def is_evaluation(folder: Path) -> bool:
    """Tell an evaluation folder."""
    return (folder / HEADER).is_file() and (folder / BODIES).is_file()
