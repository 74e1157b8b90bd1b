"""What in a recording is neither said nor done by anyone, and what a request failed of."""

from __future__ import annotations

from typing import Any

from .texts import block_content
from .wire import Entry, dict_at, text_at

FOLDED = frozenset({
    "system", "stream_event", "rate_limit_event", "conversation_reset", "queue-operation",
    "last-prompt", "tools-used", "api-request", "api-request-blob", "summary", "atis-latch",
    "file-history-snapshot", "progress", "control_request", "control_response", "keep_alive",
    "control_cancel_request", "tool_progress", "auth_status", "permission-mode", "mode",
    "agent-name", "agent-color", "custom-title", "ai-title", "tag", "pr-link", "worktree-state",
})  # fmt: skip
"""Kinds of messages that keep books, or that repeat what stands elsewhere."""
GIVEN = frozenset({
    "file", "directory", "image", "pdf_reference", "compact_file_reference", "mcp_resource",
    "selected_lines_in_ide",
})  # fmt: skip
"""Kinds of attachments by which a user gives a model more than words."""
_COMMAND_OUTPUT = ("<local-command-", "<bash-stdout>", "<bash-stderr>")
NO_ANSWER = ("(no content)", "No response requested.")
NOT_A_USER = frozenset({
    "task-notification", "auto-continuation", "coordinator", "observer", "observer-activity",
})  # fmt: skip


def failure(entry: Entry) -> str | None:
    """Return the text of a failed model request; ``None`` for an answer."""
    text = block_content(entry.message.get("content")).plain()
    flagged = any(
        entry.data.get(key) is True for key in ("isApiErrorMessage", "is_api_error_message")
    )
    synthetic = text_at(entry.message, "model") == "<synthetic>"
    if flagged or (synthetic and (text_at(entry.data, "error") or text.startswith("API Error"))):
        return text or text_at(entry.data, "error")
    return None


def is_plumbing(entry: Entry, text: str) -> bool:
    """Tell a text on the user's side that no user wrote."""
    data = entry.data
    flags = ("isMeta", "isSynthetic", "isVisibleInTranscriptOnly")
    if any(data.get(flag) is True for flag in flags) or text.startswith(_COMMAND_OUTPUT):
        return True
    return text_at(dict_at(data, "origin"), "kind") in NOT_A_USER


def text_of(data: dict[str, Any]) -> str:
    """Return what a message of an unknown kind says, if it says anything."""
    for key in ("message", "content", "text", "result", "data"):
        found = data.get(key)
        if isinstance(found, str) and found:
            return found
        if found and isinstance(found, dict | list):
            inner = found.get("content") if isinstance(found, dict) else found
            text = block_content(inner).plain()
            if text:
                return text
    words = (item for item in data.values() if isinstance(item, str) and " " in item.strip())
    return next(words, "")
