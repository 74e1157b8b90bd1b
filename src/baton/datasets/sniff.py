"""What a dataset file is, told by what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from baton.formats.spelling import snake
from baton.formats.strands_cases import CASE_KEYS

Dialect = Literal["evalset", "legacy-evalset", "legacy-flat", "own", "strands", "steps"]
_OWN_KEYS = frozenset(
    {"agents", "dispatches", "final_state", "interactions", "response", "tools", "turns"}
)


def dialect_of_mapping(value: Mapping[Any, Any]) -> tuple[Dialect, str | None] | None:
    """Tell the dialect of a file that is a mapping, and the key its cases stand under.

    The key is ``None`` when the mapping is one case. ``None`` instead of both: no dataset.
    Values may be JSON text.
    """
    names = {snake(str(key)): str(key) for key in value}
    if "eval_cases" in names:
        return "evalset", names["eval_cases"]
    if "test_passes" in names:
        return None  # a report of Strands: its cases have been played
    if "cases" in names:
        first = _first(value[names["cases"]])
        told = None if first is None else dialect_of_case(first)
        return told if told in ("strands", "steps") else "own", names["cases"]
    if "test_cases" in names:
        first = _first(value[names["test_cases"]])
        if first is not None and dialect_of_case(first) == "steps":
            return "steps", names["test_cases"]
    dialect = dialect_of_case(value)
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
    if {"test_case", "steps"} <= names:
        return "steps"
    if "id" in names and names & {"input", "turns"}:
        return "own"
    if "input" in names and names & CASE_KEYS and not names & {"actual_output", *_OWN_KEYS}:
        return "strands"
    return None


def _first(cases: Any) -> dict[str, Any] | None:
    """Return the first of some cases, if it is an object."""
    if isinstance(cases, msgspec.Raw):
        try:
            cases = msgspec.json.decode(cases, type=list[msgspec.Raw])
            cases = [msgspec.json.decode(raw) for raw in cases[:1]]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
    first = cases[0] if isinstance(cases, list) and cases else None
    return first if isinstance(first, dict) else None
