"""From what a model said to a verdict: an object that keeps to its schema, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec

from baton.model import JudgeErrorKind

from .schema import faults

_SHOWN = 5
_IN_MARKDOWN = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered one request with, as it came.

    ``text`` is JSON, if all is well. ``stopped`` says why the model did not come to its end:
    ``refusal`` or ``truncated``; ``note`` is what it said about that.
    """

    text: str
    model: str
    stopped: JudgeErrorKind | None = None
    note: str = ""
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0

    @property
    def read_tokens(self) -> int:
        """All tokens that were read, from a cache or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


class CallError(Exception):
    """A request that brought no answer.

    ``again`` says whether the same request may succeed later, ``retry_after`` how many seconds the
    server wants to be left alone.
    """

    def __init__(
        self,
        kind: JudgeErrorKind,
        message: str,
        *,
        again: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.again = again
        self.retry_after = retry_after


class AnswerError(Exception):
    """An answer that is no verdict: ``kind`` is ``unparsable`` or ``empty``; asking again may help.

    The message is in our own words alone, and may be shown to the model.
    """

    def __init__(self, kind: JudgeErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def read_verdict(said: Said, schema: Mapping[str, Any], canary: str) -> dict[str, Any]:
    """Return the answer as an object that keeps to the schema.

    Raises:
        CallError: the model refused, or was cut off.
        AnswerError: it said nothing, or something else than was asked for.
    """
    if said.stopped is not None:
        raise CallError(said.stopped, said.note or _STOPPED[said.stopped])
    if not said.text.strip():
        raise AnswerError("empty", "the answer was empty")
    if canary in said.text:
        leak = "the answer repeats the canary of the instructions: the material may have led it"
        raise AnswerError("unparsable", leak)
    value = _object(said.text)
    found = list(islice(faults(value, schema), _SHOWN))
    if found:
        raise AnswerError("unparsable", "; ".join(found))
    return value


def _object(text: str) -> dict[str, Any]:
    """Decode a whole text, in Markdown or not; JSON inside of prose may be a quotation."""
    text = text.strip()
    within = _IN_MARKDOWN.fullmatch(text)
    try:
        value = msgspec.json.decode(within[1] if within else text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise AnswerError("unparsable", "the answer is no JSON") from None
    if not isinstance(value, dict):
        raise AnswerError("unparsable", "the answer is no JSON object")
    return value


_STOPPED: Mapping[JudgeErrorKind, str] = {
    "refusal": "the model refused to answer",
    "truncated": "the answer was cut off: raise `max_tokens` of the judge",
}
