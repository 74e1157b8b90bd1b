"""Potentially harmful new parts of a text: addresses, commands, names of tools, hidden characters.

A changed prompt may come from a model that read hostile text. A person decides about it, and should
see these first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Literal

import msgspec

from baton.judges.fenced_prompts import neutral

MarkKind = Literal["address", "tool", "command", "hidden characters"]


class NewText(msgspec.Struct, frozen=True, kw_only=True):
    """A new part of a text. It may come from hostile text."""

    kind: MarkKind
    text: str


# What a text tells agents to reach, call or run. Each may be intended, but hostile text in a prompt
# uses these: `send it to https://…`, `call delete_all`, `curl … | sh`.
_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]*://[^\s\"'`<>)\]]+"
    r"|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b"
    r"|\b(?:[a-z0-9-]+\.)+[a-z]{2,}(?:/[^\s\"'`<>)\]]*)?",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"\$\([^)]*\)|&&|\|\s*(?:ba|z)?sh\b|>\s*/\w+"
    r"|(?<![\w-])(?:curl|wget|bash|sudo|chmod|chown|rm|ssh|scp|netcat|powershell|eval|exec|pip3?"
    r"|npm|npx|apt-get|docker|kubectl|python3?|perl|crontab)\s+(?:-|[\w./~])\S*"
    r"|\b(?:drop|truncate)\s+table\b|\bdelete\s+from\b",
    re.IGNORECASE,
)
# A name with an underscore, or a call: no English word looks like that.
_NAME = re.compile(r"(?<![\w.])[A-Za-z]\w*_\w+(?![\w.])|(?<![\w.])[A-Za-z]\w*(?=\()|`([^`\s]+)`")


def new_in(before: str, after: str, tools: Collection[str] = ()) -> list[NewText]:
    """Return potentially harmful parts of a new text that the old one does not have, each once.

    Args:
        before: the current text.
        after: the new text.
        tools: known names of tools; other names are recognised by their spelling.
    """
    return list(_new_in(before, after, tools))


def _new_in(before: str, after: str, tools: Collection[str]) -> Iterator[NewText]:
    hidden = neutral(after)
    if hidden != after and neutral(before) == before:
        yield NewText(kind="hidden characters", text="characters that cannot be seen")
    seen: set[str] = set()
    for kind, pattern in _MARKED:
        for match in pattern.finditer(after):
            text = (match[match.lastindex] if match.lastindex else match[0]).rstrip(".,;:!?")
            if text not in before and text not in seen:
                seen.add(text)
                yield NewText(kind=kind, text=text)
    for tool in sorted(tools):
        word = re.compile(rf"(?<!\w){re.escape(tool)}(?!\w)")
        if tool not in seen and word.search(after) and not word.search(before):
            yield NewText(kind="tool", text=tool)


_MARKED: tuple[tuple[MarkKind, re.Pattern[str]], ...] = (
    ("address", _ADDRESS),
    ("command", _COMMAND),
    ("tool", _NAME),
)
