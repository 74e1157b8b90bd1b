"""From what a model said to a verdict: an object that keeps to its schema, or why there is none.

Only an unambiguous answer is a verdict: one JSON object and nothing else. It may stand in a
Markdown code block, and the closed thinking of a reasoning model may come before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec

from baton.model import JudgeErrorKind

from .schema import faults

VERSION = "2"
"""Changes whenever answers are read in another way: verdicts read the old way are not reused."""

_SHOWN = 5
_IN_MARKDOWN = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)
# Reasoning models behind servers that do not separate it write their thinking before the answer,
# as `<think>...</think>{"label": ...}`: DeepSeek-R1 and Qwen say `think`, Anthropic's older prompts
# `thinking`, others `thought` or `reasoning`.
_THINKING = re.compile(
    r"\s*<(?P<tag>think|thinking|thought|reasoning)>(?P<inside>.*?)</(?P=tag)>",
    re.DOTALL | re.IGNORECASE,
)


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
        CallError: the model refused, or its answer was truncated.
        AnswerError: it said nothing, or something else than was asked for.
    """
    if said.stopped is not None:
        raise CallError(said.stopped, said.note or _STOPPED[said.stopped])
    text = _without_thinking(said.text)
    if not text:
        raise AnswerError("empty", "the answer was empty")
    value = _object(text)
    # Escapes such as \\u0063anary hide it in the text, and not in the value.
    if canary in text or canary in json.dumps(value):
        leak = "the answer repeats the canary of the instructions: the material may have led it"
        raise AnswerError("unparsable", leak)
    found = list(islice(faults(value, schema), _SHOWN))
    if found:
        raise AnswerError("unparsable", "; ".join(found))
    return value


def _without_thinking(text: str) -> str:
    """Drop closed blocks of thinking before the answer.

    A block that is not closed stays, and makes the answer unparsable: the model was still thinking,
    and `<think>{"label": "inside"}` is a label that it considered. So does a block that opens
    another one, as only one of the two is closed.
    """
    start = 0
    while (block := _THINKING.match(text, start)) is not None:
        if f"<{block['tag']}>".lower() in block["inside"].lower():
            break
        start = block.end()
    return text[start:].strip()


def _object(text: str) -> dict[str, Any]:
    """Decode a whole text, in Markdown or not; JSON inside of prose may be a quotation."""
    within = _IN_MARKDOWN.fullmatch(text)
    text = within[1] if within else text
    try:
        value = msgspec.json.decode(text)
        json.loads(text, object_pairs_hook=_once_each)
    except AnswerError:
        raise
    except (ValueError, RecursionError):
        raise AnswerError("unparsable", "the answer is not valid JSON") from None
    if not isinstance(value, dict):
        raise AnswerError("unparsable", "the answer is not a JSON object")
    return value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that has a key twice, also with the same value.

    Which of two values counts is not defined, and no encoder writes a key twice: it is two answers
    in one, or a model that lost its thread. Asking again costs one request.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise AnswerError("unparsable", "an object of the answer has a key twice")
    return found


_STOPPED: Mapping[JudgeErrorKind, str] = {
    "refusal": "the model refused to answer",
    "truncated": "the answer was truncated: raise `max_tokens` of the judge",
}
