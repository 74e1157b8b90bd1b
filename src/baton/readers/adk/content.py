"""Parts of ADK events as content of the record."""

from __future__ import annotations

from typing import Any

from baton.formats.adk_attachments import attachments
from baton.formats.evalset import Part as WirePart
from baton.formats.evalset import UsageMetadata
from baton.model import Content, Usage

_OTHER = (
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
    "audio_transcription",
)


def said_content(parts: list[WirePart]) -> Content:
    """Join the parts that say something (calls and their answers are none of these)."""
    if not parts:
        return Content()
    texts = [part.text for part in parts if part.text]
    other = [{kind: value} for kind, value in _values(parts, _OTHER)]
    return Content(
        text="\n".join(texts) if texts else None,
        data=(other[0] if len(other) == 1 else other) if other else None,
        parts=attachments(parts),
    )


def result_content(response: Any) -> Content | None:
    """Return what a tool gave back; ADK wraps a plain value as ``{"result": value}``."""
    if isinstance(response, dict) and set(response) == {"result"}:
        response = response["result"]
    if response is None:
        return None
    return Content(text=response) if isinstance(response, str) else Content(data=response)


def error_of(response: Any) -> str | None:
    """Return the error that a tool reported in its answer, by ADK's two conventions."""
    if not isinstance(response, dict):
        return None
    if set(response) == {"error"} and response["error"]:
        return str(response["error"])
    if str(response.get("status", "")).lower() == "error":
        return str(response.get("error_message") or response.get("message") or "error")
    return None


def add_usage(usage: Usage | None, counts: UsageMetadata | None) -> Usage:
    """Count one more model request; without sound ``counts`` the sum is a lower bound."""
    usage = usage or Usage()
    usage.requests = (usage.requests or 0) + 1
    if counts is None:
        usage.complete = False
        return usage
    cached = counts.cached_content_token_count or 0
    prompt = (counts.prompt_token_count or 0) + (counts.tool_use_prompt_token_count or 0)
    answer = (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0)
    if min(cached, prompt - cached, answer) < 0:
        usage.complete = False
        return usage
    usage.input_tokens = (usage.input_tokens or 0) + prompt - cached
    usage.cache_read_tokens = (usage.cache_read_tokens or 0) + cached
    usage.output_tokens = (usage.output_tokens or 0) + answer
    return usage


def _values(parts: list[WirePart], kinds: tuple[str, ...]) -> list[tuple[str, Any]]:
    return [(kind, value) for part in parts for kind in kinds if (value := getattr(part, kind))]
