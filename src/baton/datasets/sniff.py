"""What a dataset file is, told by what it says."""

from __future__ import annotations

from typing import Any, Literal

from baton.formats.spelling import snake

Dialect = Literal["evalset", "legacy-evalset", "legacy-flat", "own"]


def dialect_of_mapping(keys: Any) -> tuple[Dialect, str | None] | None:
    """Tell the dialect of a file that is a mapping, and the key its cases stand under.

    The key is ``None`` when the mapping is one case. ``None`` instead of both: no dataset.
    """
    names = {snake(str(key)): str(key) for key in keys}
    if "eval_cases" in names:
        return "evalset", names["eval_cases"]
    if "cases" in names:
        return "own", names["cases"]
    dialect = dialect_of_case(keys)
    return None if dialect is None or dialect == "legacy-flat" else (dialect, None)


def dialect_of_case(keys: Any) -> Dialect | None:
    """Tell the dialect of one case (or of one turn of a flat file) by its keys."""
    names = {snake(str(key)) for key in keys}
    if "eval_id" in names and names & {"conversation", "conversation_scenario"}:
        return "evalset"
    if "query" in names and names & {"expected_tool_use", "reference"}:
        return "legacy-flat"
    if {"name", "data"} <= names:
        return "legacy-evalset"
    if "id" in names and names & {"input", "turns"}:
        return "own"
    return None
