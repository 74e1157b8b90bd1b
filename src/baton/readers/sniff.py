"""What a recorded value is, told by what it says."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from baton.formats.spelling import snake

Kind = Literal[
    "record", "adk-session", "adk-event", "adk-result", "evalset", "eval-case",
    "judge-llm-report", "judge-llm-result", "evaluation", "claude-stream", "claude-session",
    "claude-hooks", "strands-session", "strands-report", "strands-case", "strands-result",
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
    "claude-stream": "claude-agent-sdk",
    "claude-session": "claude-agent-sdk",
    "claude-hooks": "claude-agent-sdk",
    "strands-session": "strands",
    "strands-report": "strands",
    "strands-case": "strands",
    "strands-result": "strands",
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
    (frozenset({"traces", "session_id"}), "strands-session"),
    (frozenset({"cases", "scores", "test_passes"}), "strands-report"),
    (frozenset({"input", "actual_output", "actual_trajectory"}), "strands-case"),
    (frozenset({"type", "results", "accumulated_usage"}), "strands-result"),
    (frozenset({"type", "node_results", "accumulated_usage"}), "strands-result"),
]

# Claude tells a stream from a session file by the spelling of its keys.
_SPELT_SIGNS: list[tuple[frozenset[str], Kind]] = [
    (frozenset({"hook_event_name", "session_id"}), "claude-hooks"),
    (frozenset({"type", "sessionId"}), "claude-session"),
    (frozenset({"type", "leafUuid"}), "claude-session"),
    (frozenset({"type", "messageId", "snapshot"}), "claude-session"),
    (frozenset({"type", "session_id"}), "claude-stream"),
    (frozenset({"subtype", "data"}), "claude-stream"),
    (frozenset({"subtype", "num_turns", "session_id"}), "claude-stream"),
    (frozenset({"content", "model", "parent_tool_use_id"}), "claude-stream"),
    (frozenset({"content", "parent_tool_use_id", "tool_use_result"}), "claude-stream"),
]


def kind_of(keys: Collection[str]) -> Kind | None:
    """Tell what an object with these keys is; ``None`` for nothing that holds a trace."""
    names = {snake(key) for key in keys}
    found = next((kind for signs, kind in _SIGNS if signs <= names), None)
    if found is None:
        spelt = set(keys)
        found = next((kind for signs, kind in _SPELT_SIGNS if signs <= spelt), None)
    return found
