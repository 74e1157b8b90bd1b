"""The supported APIs: their paths, and how each is read and written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from baton.testing.llm.exchange import Api, Asked, Event, Said, server_sent

from . import anthropic, bedrock, google, openai


class Dialect(NamedTuple):
    """The functions that read and write one API; ``events`` encodes the events of a stream."""

    read: Callable[[dict[str, Any]], Asked]
    answer: Callable[[Said], dict[str, Any]]
    stream: Callable[[Said, dict[str, Any]], list[Event]]
    error: Callable[[int, str], dict[str, Any]]
    events: Callable[[Iterable[Event]], bytes] = server_sent
    stream_type: str = "text/event-stream"


DIALECTS: Mapping[Api, Dialect] = {
    "openai": Dialect(openai.read_chat, openai.answer_chat, openai.stream_chat, openai.error),
    "openai_responses": Dialect(
        openai.read_responses, openai.answer_responses, openai.stream_responses, openai.error
    ),
    "anthropic": Dialect(anthropic.read, anthropic.answer, anthropic.stream, anthropic.error),
    "google": Dialect(google.read, google.answer, google.stream, google.error),
    "mistral": Dialect(
        openai.read_chat, openai.answer_mistral, openai.stream_mistral, openai.error_mistral
    ),
    "bedrock": Dialect(
        bedrock.read,
        bedrock.answer,
        bedrock.stream,
        bedrock.error,
        bedrock.amazon,
        "application/vnd.amazon.eventstream",
    ),
}

BASES: Mapping[Api, str] = {
    "openai": "/v1",
    "openai_responses": "/v1",
    "anthropic": "",
    "google": "",
    "mistral": "/mistral",
    "bedrock": "",
}
"""The path of the base address for a client of each API."""


PREFIXES: Mapping[Api, str] = {
    "openai": "openai",
    "openai_responses": "openai-responses",
    "anthropic": "anthropic",
    "google": "google",
    "mistral": "mistral",
    "bedrock": "bedrock",
}
"""The prefix of a judge's model name for each API."""


class Route(NamedTuple):
    """The API of a path, and what other APIs state in the body."""

    api: Api
    model: str | None = None
    stream: bool = False


_ROUTES: list[tuple[Api, re.Pattern[str]]] = [
    ("mistral", re.compile(r"/mistral(?:/v1)?/chat/completions$")),
    ("openai", re.compile(r"(?:/v1)?/chat/completions$")),
    ("openai_responses", re.compile(r"(?:/v1)?/responses$")),
    ("anthropic", re.compile(r"(?:/v1)?/messages$")),
    ("google", re.compile(r"/models/(?P<model>[^/:]+):(?P<how>stream)?[gG]enerateContent$")),
    ("bedrock", re.compile(r"/model/(?P<model>[^/]+)/converse(?P<how>-stream)?$")),
]


def route(path: str) -> Route | None:
    """Return the API of a path; ``None`` if it is not supported."""
    path = path.partition("?")[0]
    for api, pattern in _ROUTES:
        if match := pattern.search(path):
            parts = match.groupdict()
            model = unquote(parts["model"]) if parts.get("model") else None
            return Route(api, model, bool(parts.get("how")))
    return None
