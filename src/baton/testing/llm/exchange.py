"""What a client asked, what the script says to it, and what that comes to as a model's words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec

from baton.model import suggestion

Api = Literal["openai", "openai_responses", "anthropic", "google", "mistral", "bedrock"]
"""The APIs that are spoken: OpenAI's chat completions and responses, Anthropic's Messages,
Google's generateContent, Mistral's chat, and Bedrock's Converse."""

Mode = Literal["schema", "tool", "json", "text"]
"""How a client wants its answer: by a native JSON schema, as the call of a tool, as JSON that only
the prompt describes, or as plain text."""

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
"""What can go wrong, see ``docs/testing-judges.md``."""


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt; roles are ``system``, ``user``, ``assistant`` and ``tool``."""

    role: str
    text: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an API's own request says, in the words all of them share."""

    messages: list[Message]
    model: str = ""
    mode: Mode = "text"
    schema: dict[str, Any] | None = None
    tools: dict[str, dict[str, Any]] = {}
    tool: str | None = None
    stream: bool = False


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it came in; ``number`` counts from 1.

    ``schema`` is the one of the answer: native, the parameters of ``tool`` (the one that the client
    wants called), or one in the system's text. ``tools`` are the parameters of all
    tools by name, ``body`` is the whole request. ``headers`` have lower-case names; what may be a
    secret is ``***``. ``at`` is in seconds since the server started.
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
        """The texts of the system, or the developer, joined by line breaks."""
        return self._texts("system")

    @property
    def user(self) -> str:
        """The texts of the user, joined by line breaks."""
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
    """What the script says to one request.

    An ``answer`` that is a text is sent as it is; any other is sent as JSON in the way the client
    asked for: as text under a schema, or as the arguments of its tool (``tool`` names one of
    several). With ``fill``, what the schema requires and a mapping lacks is filled in, as plainly
    as the schema allows. ``delay`` is in seconds and comes before the first byte; ``retry_after``,
    of errors, too is in seconds. ``status`` is an HTTP status of 400 or more to fail with, and
    ``message`` the words of that error. ``as_model`` is the model that the answer names; the one
    that was asked for, if it is not given. Tokens that are not given are a quarter of the letters.
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
        """Refuse what would not be sent as it was meant; raises ValueError."""
        kinds = get_args(FaultKind)
        if self.fault is not None and self.fault not in kinds:
            raise ValueError(f"there is no fault `{self.fault}`; {suggestion(self.fault, kinds)}")
        if self.fault is not None and self.status is not None:
            raise ValueError("`fault` and `status`: give one of them")
        if self.answer is None and self.fault is None and self.status is None:
            raise ValueError("says nothing: give it an `answer`, a `fault` or a `status`")
        if self.answer is not None and (self.status is not None or self.fault in _WITHOUT_ANSWER):
            raise ValueError(f"an `answer` has no place in {self.fault or self.status}")
        if self.fill and not isinstance(self.answer, Mapping):
            raise ValueError("`fill` needs an `answer` that is a mapping: `{}` leaves it all open")
        if self.failing is None and (self.retry_after is not None or self.message is not None):
            raise ValueError("`retry_after` and `message` are those of an error: give a `status`")

    @property
    def failing(self) -> int | None:
        """The HTTP status of the error that is sent instead of an answer, if one is."""
        return self.status or _STATUSES.get(self.fault or "")


_STATUSES = {"rate_limit": 429, "server_error": 500}
_WITHOUT_ANSWER = frozenset(
    {"rate_limit", "server_error", "garbage", "wrong_schema", "filtered", "empty"}
)


class ScriptError(Exception):
    """The script had nothing to say, or broke."""


Finish = Literal["stop", "tool", "length", "refusal", "filter"]


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A model's words, ready to be put into an API's own shape.

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
    """Return the text of a message's content: a string, or parts that have some or hold some."""
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
    """Return the first JSON Schema of an object in a text, as prompts have it."""
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
"""One event of a stream: its name, and JSON, or a text that is sent as it is."""


def server_sent(events: Iterable[Event]) -> bytes:
    """Write server-sent events."""
    lines: list[bytes] = []
    for name, data in events:
        text = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
        lines.append((f"event: {name}\n".encode() if name else b"") + b"data: " + text + b"\n\n")
    return b"".join(lines)
