"""Mistral's chat: OpenAI's with its own errors, and without refusals of its own."""

from __future__ import annotations

from typing import Any

from baton.testing.llm.exchange import Asked, Said

from . import openai_chat
from .events import Event


def read(body: dict[str, Any]) -> Asked:
    """Read a request."""
    return openai_chat.read(body)


def answer(said: Said) -> dict[str, Any]:
    """Return the body of an answer; a refusal is told in plain words."""
    body = openai_chat.answer(said)
    choice = body["choices"][0]
    choice["finish_reason"] = _finish(choice["finish_reason"])
    choice.pop("logprobs")
    refusal = choice["message"].pop("refusal")
    choice["message"]["content"] = refusal or choice["message"]["content"] or ""
    return body


def stream(said: Said, body: dict[str, Any]) -> list[Event]:
    """Return the events of a streamed answer; the last one has the usage."""
    events = openai_chat.stream(said, body)
    for _, event in events[:-1]:
        choice = event["choices"][0]
        choice["finish_reason"] = _finish(choice["finish_reason"])
        delta = choice["delta"]
        if "refusal" in delta:
            delta["content"] = delta.pop("refusal")
    events[-2][1]["usage"] = openai_chat.usage(said)
    return events


def error(status: int, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    return {"object": "error", "message": message, "type": "api_error", "code": str(status)}


def _finish(reason: str | None) -> str | None:
    return "error" if reason == "content_filter" else reason
