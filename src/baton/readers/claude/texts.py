"""Content of messages and results, without what the harness wraps around it."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, NamedTuple

from baton.model import Content, Part

from .wire import count_at, dict_at, is_list, text_at

_TOOL_ERROR = re.compile(r"\A\s*<tool_use_error>(.*)</tool_use_error>\s*\Z", re.DOTALL)
_FRAME = re.compile(r"\A(?:[^\n]*\n){0,40}?\[Subagent hand-back\][^\n]*\n")
_TRAILER = re.compile(r"agentId: [0-9A-Za-z_-]+(?: |\n|\Z)")
_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"
_NOTICE = re.compile(
    r"<task-notification>\n(.*?)\n</task-notification>(?=\s{0,9}(?:<task-notification>|\Z))",
    re.DOTALL,
)
_COORDINATOR = re.compile(
    r"\A(?:<system-reminder>\s*)?The (?:coordinator|user) sent a message while you were working:\n"
    r"(.*?)\n\n?(?:Address this before completing your current task\.|IMPORTANT:.*)"
    r"\s*(?:</system-reminder>)?\s*\Z",
    re.DOTALL,
)
INTERRUPTED = "[Request interrupted by user"


class Notice(NamedTuple):
    """A task notification: which agent ended, how, and with what answer."""

    agent: str
    call: str
    status: str
    result: str | None
    summary: str


def block_content(content: Any) -> Content:
    """Return the content of a tool result or message: its texts joined, its files as parts."""
    if isinstance(content, str):
        return Content(text=content)
    if not is_list(content):
        return Content() if content is None else Content(data=content)
    blocks = [block for block in content if isinstance(block, dict)]
    texts = [text for block in blocks if (text := text_at(block, "text"))]
    texts += [block for block in content if isinstance(block, str)]
    parts = [part for block in blocks if (part := _part(block)) is not None]
    rest = [
        b for b in blocks if not text_at(b, "text") and _part(b) is None and b.get("type") != "text"
    ]
    return Content(text="\n".join(texts) if texts else None, data=rest or None, parts=parts or None)


def tool_content(content: Any) -> Content | None:
    """Return what a tool gave back, without the reminders that the harness adds at its end."""
    found = block_content(content)
    if found.text is not None:
        found.text = without_reminders(found.text)
    return found if found or found.text is not None else None


def without_reminders(text: str) -> str:
    """Cut the system reminders off the end of a text."""
    while (bare := text.rstrip()).endswith(_CLOSE) and (start := bare.rfind(_OPEN)) >= 0:
        text = bare[:start].rstrip()
    return text


def tool_error(content: Any) -> str:
    """Return the text of a failed call without its tags."""
    text = block_content(content).plain()
    tagged = _TOOL_ERROR.match(text)
    return (tagged[1] if tagged else text).strip().removeprefix("Error: ")


def answer_content(content: Any, result: Any) -> Content | None:
    """Return what a sub-agent answered: ``result`` is what the harness recorded beside the text.

    Without such a record the frame around the text is cut off, of both generations.
    """
    told = result.get("content") if isinstance(result, dict) else None
    if is_list(told) or isinstance(told, str):
        notes, tails = (
            count_at(result, "harnessNoteCount") or 0,
            count_at(result, "harnessTailCount"),
        )
        blocks = told[notes : len(told) - (tails or 0)] if is_list(told) else told
        return block_content(blocks) or None
    kept = [block for block in content if not _is_trailer(block)] if is_list(content) else content
    found = block_content(kept)
    if found.text is not None:
        found.text = _unframed(found.text)
    return found or None


def notices(text: str) -> list[Notice]:
    """Read the task notifications in a message; none for any other text."""
    if not text.lstrip().startswith("<task-notification>"):
        return []
    return [_notice(body) for body in _NOTICE.findall(text)]


def told_agent(text: str) -> str:
    """Return the message in what a working agent is told by its coordinator."""
    wrapped = _COORDINATOR.match(text)
    return wrapped[1] if wrapped else text


def message_text(blocks: list[dict[str, Any]]) -> Content:
    """Return what a user message says, the answers of tools left out."""
    said = [block for block in blocks if block.get("type") != "tool_result"]
    return block_content(said)


def _unframed(text: str) -> str:
    trailer = text.rfind("\nagentId: ")
    if trailer >= 0 and _TRAILER.match(text, trailer + 1):
        text = text[:trailer]
    frame = _FRAME.match(text)
    if frame is None:
        return text.strip("\n")
    lines = text[frame.end() :].split("\n")
    return "\n".join(line.removeprefix("  ") for line in lines).strip("\n")


def _is_trailer(block: Any) -> bool:
    return _TRAILER.match(text_at(block, "text")) is not None


def _notice(body: str) -> Notice:
    result = re.search(r"<result>(.*)</result>", body, re.DOTALL)
    return Notice(
        agent=_tag(body, "task-id"),
        call=_tag(body, "tool-use-id"),
        status=_tag(body, "status"),
        result=result[1] if result else None,
        summary=_tag(body, "summary"),
    )


def _tag(body: str, name: str) -> str:
    found = re.search(rf"<{name}>([^<]*)</{name}>", body)
    return found[1].strip() if found else ""


def _part(block: dict[str, Any]) -> Part | None:
    """Describe an image or document; its bytes are not kept."""
    kind = text_at(block, "type")
    if kind not in ("image", "document", "file"):
        return None
    source = dict_at(block, "source")
    data = text_at(source, "data")
    return Part(
        type=kind,
        mime=text_at(source, "media_type") or None,
        uri=text_at(source, "url") or None,
        sha256=sha256(data.encode()).hexdigest() if data else None,
    )
