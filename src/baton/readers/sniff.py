"""What a recorded value is, told by what it says."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from baton.formats.spelling import snake

Kind = Literal[
    "record", "adk-session", "adk-event", "adk-result", "evalset", "eval-case",
    "judge-llm-report", "judge-llm-result", "evaluation",
]  # fmt: skip

FRAMEWORKS: dict[Kind, str | None] = {
    "record": None,
    "adk-session": "google-adk",
    "adk-event": "google-adk",
    "adk-result": "google-adk",
    "evalset": "google-adk",
    "eval-case": "google-adk",
    "judge-llm-report": None,
    "judge-llm-result": None,
    "evaluation": None,
}

_SIGNS: list[tuple[frozenset[str], Kind]] = [
    (frozenset({"schema_version", "turns"}), "record"),
    (frozenset({"case_id", "repeat", "scores"}), "evaluation"),
    (frozenset({"execution_runs"}), "judge-llm-report"),
    (frozenset({"conversation_history"}), "judge-llm-result"),
    (frozenset({"eval_case_results"}), "adk-result"),
    (frozenset({"eval_cases"}), "evalset"),
    (frozenset({"eval_id", "conversation"}), "eval-case"),
    (frozenset({"events", "id"}), "adk-session"),
    (frozenset({"author", "invocation_id"}), "adk-event"),
    (frozenset({"error", "error_details"}), "adk-event"),
]


def kind_of(keys: Collection[str]) -> Kind | None:
    """Tell what an object with these keys is; ``None`` for nothing that holds a trace."""
    names = {snake(key) for key in keys}
    return next((kind for signs, kind in _SIGNS if signs <= names), None)
