"""Requests of a client, replies of the script, and their form as a model's answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec

from baton.model import suggestion

Api = Literal["openai", "openai_responses", "anthropic", "google", "mistral", "bedrock"]
"""The supported APIs: OpenAI's chat completions and responses, Anthropic's Messages, Google's
generateContent, Mistral's chat, and Bedrock's Converse."""

Mode = Literal["schema", "tool", "json", "text"]
"""The form in which a client wants its answer: with a native JSON schema, as a tool call, as JSON
that only the prompt describes, or as plain text."""

FaultKind = Literal[
    "rate_limit",
    "server_error",
    "cut",
    "disconnect",
    "garbage",
    "invalid_json",
    "wrong_schema",
    "refusal",
    "filtered",
    "empty",
    "truncated",
]
"""The possible faults, see ``docs/testing-judges.md``."""


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt; roles are ``system``, ``user``, ``assistant`` and ``tool``."""

    role: str
    text: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of an API's request, in a form shared by all APIs."""

    messages: list[Message]
    model: str = ""
    mode: Mode = "text"
    schema: dict[str, Any] | None = None
    tools: dict[str, dict[str, Any]] = {}
    tool: str | None = None
    stream: bool = False


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it was received; ``number`` counts from 1.

    ``schema`` is the schema of the answer: a native one, the parameters of ``tool`` (the tool that
    the client wants the model to call), or one in the system text. ``tools`` are the parameters of
    all tools by name; ``body`` is the whole request. ``headers`` have lower-case names, and
    possible secrets are ``***``. ``at`` is in seconds since the server started.
    """

    number: int
    api: Api
    model: str
    messages: list[Message]
    mode: Mode
    schema: dict[str, Any] | None
    tool: str | None
    tools: dict[str, dict[str, Any]]
    stream: bool
    body: dict[str, Any]
    headers: dict[str, str]
    at: float

    @property
    def system(self) -> str:
        """The system or developer texts, joined by line breaks."""
        return self._texts("system")

    @property
    def user(self) -> str:
        """The user's texts, joined by line breaks."""
        return self._texts("user")

    @property
    def text(self) -> str:
        """The texts of all messages, joined by line breaks."""
        return "\n".join(message.text for message in self.messages)

    def _texts(self, role: str) -> str:
        return "\n".join(message.text for message in self.messages if message.role == role)


Seconds = Annotated[float, msgspec.Meta(ge=0)]
Tokens = Annotated[int, msgspec.Meta(ge=0)]


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The script's reply to one request.

    An ``answer`` that is a string is sent unchanged. Any other answer is sent as JSON in the form
    that the client requested: as text under a schema, or as the arguments of its tool (``tool``
    names one of several). With ``fill``, properties that the schema requires and that are missing
    in a mapping are filled in, with the simplest values that the schema allows. ``delay`` is the
    number of seconds before the first byte. ``retry_after`` is for errors, and is also in seconds.
    ``status`` is an HTTP status of 400 or more to fail with, and ``message`` is the message of that
    error. ``as_model`` is the model named in the answer; the default is the requested one. The
    default token count is a quarter of the number of characters.
    """

    answer: Any = None
    fill: bool = False
    fault: FaultKind | None = None
    delay: Seconds = 0.0
    status: Annotated[int, msgspec.Meta(ge=400, le=599)] | None = None
    message: str | None = None
    retry_after: Seconds | None = None
    tool: str | None = None
    as_model: str | None = None
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None

    def __post_init__(self) -> None:
        """Refuse a reply that could not be sent as intended; raises ValueError."""
        kinds = get_args(FaultKind)
        if self.fault is not None and self.fault not in kinds:
            raise ValueError(f"there is no fault `{self.fault}`; {suggestion(self.fault, kinds)}")
        if self.fault is not None and self.status is not None:
            raise ValueError("`fault` and `status`: give one of them")
        if self.answer is None and self.fault is None and self.status is None:
            raise ValueError("the reply is empty: give it an `answer`, a `fault` or a `status`")
        if self.answer is not None and (self.status is not None or self.fault in _WITHOUT_ANSWER):
            raise ValueError(f"an `answer` cannot be sent with {self.fault or self.status}")
        if self.fill and not isinstance(self.answer, Mapping):
            raise ValueError("`fill` needs an `answer` that is a mapping: `{}` fills everything in")
        if self.failing is None and (self.retry_after is not None or self.message is not None):
            raise ValueError("`retry_after` and `message` are only for errors: give a `status`")

    @property
    def failing(self) -> int | None:
        """The HTTP status of the error that is sent instead of an answer, if any."""
        return self.status or _STATUSES.get(self.fault or "")


_STATUSES = {"rate_limit": 429, "server_error": 500}
_WITHOUT_ANSWER = frozenset(
    {"rate_limit", "server_error", "garbage", "wrong_schema", "filtered", "empty"}
)


class ScriptError(Exception):
    """The script had no reply, or failed."""


Finish = Literal["stop", "tool", "length", "refusal", "filter"]


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer, ready to be converted to an API's format.

    With ``tool``, ``arguments`` is the JSON text that the model wrote for it.
    """

    number: int
    model: str
    text: str = ""
    tool: str | None = None
    arguments: str = ""
    finish: Finish = "stop"
    input_tokens: int = 1
    output_tokens: int = 1


def text_of(content: Any) -> str:
    """Return the text of a message's content: a string, or parts with text or with nested parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for part in content if (text := text_of(part)))
    if not isinstance(content, dict):
        return ""
    if "functionResponse" in content:
        return json.dumps(content["functionResponse"].get("response"))
    inner = next((content[key] for key in _HOLDERS if key in content), None)
    return text_of(inner)


_HOLDERS = ("text", "content", "output", "toolResult")


def halves(text: str) -> list[str]:
    """Return the pieces in which a text is streamed."""
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def schema_in(text: str) -> dict[str, Any] | None:
    """Return the first JSON Schema of an object in a text, in the form used in prompts."""
    if '"properties"' not in text:
        return None
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            value, _ = decoder.raw_decode(text, at)
        except ValueError:
            value = None
        if isinstance(value, dict) and "properties" in value:
            return value
        at = text.find("{", at + 1)
    return None


Event = tuple[str | None, Any]
"""One event of a stream: its name, and JSON or a text that is sent unchanged."""


def server_sent(events: Iterable[Event]) -> bytes:
    """Write server-sent events."""
    lines: list[bytes] = []
    for name, data in events:
        text = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
        lines.append((f"event: {name}\n".encode() if name else b"") + b"data: " + text + b"\n\n")
    return b"".join(lines)
