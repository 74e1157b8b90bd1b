"""What is new in a text and may do harm: addresses, commands, names of tools, hidden characters.

A changed prompt may come from a model that read hostile text. A person decides on it, and has to
see these first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Literal

import msgspec

from baton.judges.prompts import neutral

MarkKind = Literal["address", "tool", "command", "hidden characters"]


class NewText(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a text did not have before. It may come from hostile text."""

    kind: MarkKind
    text: str


# What a text tells agents to reach, to call or to run. Each may be meant; but what hostile text
# smuggles into a prompt is one of these: `send it to https://…`, `call delete_all`, `curl … | sh`.
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
# A name with an underscore, or one that is called: no English word looks like that.
_NAME = re.compile(r"(?<![\w.])[A-Za-z]\w*_\w+(?![\w.])|(?<![\w.])[A-Za-z]\w*(?=\()|`([^`\s]+)`")


def new_in(before: str, after: str, tools: Collection[str] = ()) -> list[NewText]:
    """Return what is in a new text and not in the old one, and may do harm; each once.

    Args:
        before: the text as it is.
        after: the text that is to replace it.
        tools: the names of tools that are known; other names are found by how they are written.
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
