"""Why a tool call or dispatch did not do what it was asked for."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from .texts import block_content, tool_error
from .wire import Entry, dict_at, is_list, text_at

By = Literal["runtime", "policy", "user"]
_NO_SUCH_TOOL = ("No such tool available", "InputValidationError", "Tool names must be unique")
_BY_USER = ("The user doesn't want to proceed", "The user doesn't want to take this action")
_BY_POLICY = ("Permission to use ", "Claude requested permissions to ", "PreToolUse:")
_NO_SUCH_AGENT = "Agent type '"


class Trouble(NamedTuple):
    """The text of an error; ``by`` says who kept the tool from running, if it did not run."""

    text: str
    by: By | None


def trouble(entry: Entry, block: dict[str, Any]) -> Trouble | None:
    """Tell what went wrong with a call, from its result; ``None`` when it went well."""
    by = _decided(entry, text_at(block, "tool_use_id"))
    if block.get("is_error") is not True and by is None:
        return None
    text = tool_error(block.get("content"))
    if by is None:
        by = _worded(block_content(block.get("content")).plain(), text)
    return Trouble(text, by)


def unstarted(text: str) -> bool:
    """Tell from its error that a dispatch started no agent: no such type, or a limit."""
    lowered = text.lower()
    return text.startswith(_NO_SUCH_AGENT) or (
        "limit" in lowered and ("agent" in lowered or "spawn" in lowered) and "api" not in lowered
    )


def _decided(entry: Entry, call: str) -> By | None:
    """Read who decided: the record of the decision, else the kind of the denial."""
    meta = entry.data.get("tool_result_meta")
    told: Any = next((m for m in meta if text_at(m, "id") == call), {}) if is_list(meta) else {}
    decision = dict_at(told, "permission_decision") or dict_at(entry.data, "permissionDecision")
    if text_at(decision, "decision") == "reject":
        return "user" if text_at(decision, "source").startswith("user") else "policy"
    denial = text_at(told, "non_execution_kind") or text_at(entry.data, "toolDenialKind")
    if denial:
        return "user" if denial.startswith("user") else "policy"
    return None


def _worded(raw: str, text: str) -> By | None:
    if raw.lstrip().startswith("<tool_use_error>") and text.startswith(_NO_SUCH_TOOL):
        return "runtime"
    if text.startswith(_NO_SUCH_AGENT):
        return "runtime"
    if text.startswith(_BY_USER):
        return "user"
    return "policy" if text.startswith(_BY_POLICY) else None
