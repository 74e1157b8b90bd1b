"""Answers for tools that an LLM makes up: the request, and how its answer is read.

It is called through the client of judges, with their cache, prices and limits. All text of the
agents under test is fenced, and limited in size.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import msgspec

from baton.judges.fenced_prompts import fenced_neutral, neutral
from baton.judges.shorten_texts import clip
from baton.model import Judge, JudgeRequest
from baton.stand_ins import Answer, Imagine, LlmQuestion, imagining

_VERSION = "1"
_INSTRUCTIONS = (
    "You stand in for a tool of an agent system that is being tested: the tool does not run, and "
    "you write what it would have returned. The call is in the block `call`. If there is a block "
    "`result schema`, the result fits that JSON Schema. If there is a block `world`, it says what "
    "exists. The block `earlier calls` has what was called before in this conversation and what "
    "came back: what was created, changed or deleted there stays so, and the same question has the "
    "same answer. Write the result as the tool would, with plain values and no remarks. Where the "
    "tool would fail, for instance because what it is asked about does not exist, write the error "
    "message and set `failed`."
)
_AGENT = (
    "You stand in for an agent that other agents hand work to. Its task is in the block `call`, "
    "after its name. Write its answer, as text. The block `earlier calls` lists the tools that "
    "were called before in this conversation and their results; the block `world` says what "
    "exists."
)
_ANSWER = {
    "type": "object",
    "properties": {
        "result": {"type": "string", "description": "The result as JSON, or as plain text."},
        "failed": {"type": "boolean", "description": "Whether the result is an error message."},
    },
    "required": ["result", "failed"],
    "additionalProperties": False,
}
# Sizes in characters. A play may have hundreds of calls with answers of whole pages: the latest
# ones matter most for the current state, so the oldest are left out first.
_LONGEST_CALL = 2_000
_ALL_CALLS = 20_000
_LONGEST_WORLD = 20_000


def imagining_by(judge: Judge) -> AbstractContextManager[None]:
    """Let a judge's model answer for tools in plays inside the block."""

    async def close() -> None:
        ending = getattr(judge, "close", None)  # a user's own judge may have none
        if ending is not None:
            await ending()

    return imagining(_imagine_by(judge), close)


def _imagine_by(judge: Judge) -> Imagine:

    async def imagine(question: LlmQuestion) -> Answer:
        value = (await judge.ask(_request(question))).value
        text = value["result"]
        if value["failed"]:
            return Answer(error=text, by="llm")
        return Answer(_value(text) if question.request.kind == "tool" else text, by="llm")

    return imagine


def _request(question: LlmQuestion) -> JudgeRequest:
    call = question.request
    blocks = [("call", f"{call.name}\n{_json(call.input)}")]
    if question.schema is not None:
        blocks.append(("result schema", _json(question.schema)))
    if question.about is not None:
        blocks.append(("world", clip(question.about, _LONGEST_WORLD).text))
    if question.earlier:
        blocks.append(("earlier calls", _earlier(question)))
    safe = [(title, neutral(text)) for title, text in blocks]
    return JudgeRequest(
        rubric="stand_in",
        version=_VERSION,
        instructions=_AGENT if call.kind == "agent" else _INSTRUCTIONS,
        content=fenced_neutral(safe),
        schema=_ANSWER,
    )


def _earlier(question: LlmQuestion) -> str:
    lines: list[str] = []
    left = _ALL_CALLS
    for number, each in reversed(list(enumerate(question.earlier, 1))):
        came = f"error: {each.error}" if each.error is not None else _json(each.result)
        text = clip(f"{number}. {each.name} {_json(each.input)}\n-> {came}", _LONGEST_CALL).text
        left -= len(text)
        if left < 0:
            lines.append(f"({number} earlier calls are left out)")
            break
        lines.append(text)
    return "\n".join(reversed(lines))


def _json(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, enc_hook=repr).decode("utf-8", "replace")


def _value(text: str) -> Any:
    """Return an answer as data if it is JSON, else as text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
