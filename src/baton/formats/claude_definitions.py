"""Definitions of Claude Code: sub-agents as files or the SDK's ``agents``, and ``CLAUDE.md``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.model import AgentCard, InputError, Problem

from .document import read_bytes

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"([A-Za-z][A-Za-z-]*):[ \t]*(.*)")
_SDK_KEYS = {"prompt", "disallowedTools", "disallowed_tools"}


def agents_folder(folder: Path) -> dict[str, AgentCard]:
    """Read the agents below a folder: ``.claude/agents``, or the folder that contains it.

    Raises:
        InputError: a file has no name in its front matter, or there is no agent.
    """
    inner = folder / ".claude" / "agents"
    root = inner if inner.is_dir() else folder / "agents" if folder.name == ".claude" else folder
    cards = dict(
        agent_file(path)
        for path in sorted(root.rglob("*.md"))
        if path.is_file() and is_agent_file(path)
    )
    if not cards:
        message = "no agent definitions: needs .md files with `name:` between lines of `---`"
        raise InputError(Problem(file=str(folder), message=message))
    return cards


class Parts(msgspec.Struct, frozen=True):
    """The text of a definition in parts: front matter from one offset to another, then the body."""

    name: str
    front_start: int
    front_end: int
    body_start: int


def agent_parts(text: str) -> Parts | None:
    """Return where the parts of a definition are in its text; ``None`` for any other file."""
    front = _FRONT.match(text)
    name = _fields(front[1], "").get("name") if front is not None else None
    if front is None or not isinstance(name, str) or not name:
        return None
    return Parts(name, front.start(1), front.end(1), front.end())


def is_agent_file(path: Path) -> bool:
    """Tell a definition by its front matter, which names the agent."""
    front = _FRONT.match(read_bytes(path).decode("utf-8", "replace"))
    return front is not None and re.search(r"^name:", front[1], re.MULTILINE) is not None


def agent_file(path: Path) -> tuple[str, AgentCard]:
    """Read one definition: front matter, and the instructions below it.

    Raises:
        InputError: it has no front matter with a name.
    """
    text = read_bytes(path).decode("utf-8", "replace")
    parts = agent_parts(text)
    if parts is None:
        message = "no agent definition: needs `name:` between lines of `---` at the top"
        raise InputError(Problem(file=str(path), line=1, message=message))
    fields = _fields(text[parts.front_start : parts.front_end], str(path))
    return parts.name, _card(fields, text[parts.body_start :].strip() or None)


def is_sdk_agents(value: Any) -> bool:
    """Tell the SDK's ``agents``: definitions by name, each with ``prompt`` and ``description``."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(item, dict) for item in value.values())
        and any(_SDK_KEYS & set(item) for item in value.values())
    )


def sdk_agents(value: dict[str, dict[str, Any]]) -> dict[str, AgentCard]:
    """Read the SDK's ``agents``, or the value of Claude Code's option ``--agents``."""
    return {name: _card(fields, _text(fields.get("prompt"))) for name, fields in value.items()}


def _card(fields: dict[str, Any], instructions: str | None) -> AgentCard:
    """Make a card; an agent without ``tools`` has all tools."""
    tools = _names(fields.get("tools"))
    denied = _names(fields.get("disallowedTools", fields.get("disallowed_tools")))
    return AgentCard(
        description=_text(fields.get("description")),
        tools="all" if tools is None or "*" in tools else tools,
        denied_tools=denied,
        instructions=instructions,
        model=_text(fields.get("model")),
    )


def _fields(text: str, file: str) -> dict[str, Any]:
    """Read front matter; if it is not valid YAML, line by line, like Claude Code."""
    try:
        from .yaml import load_yaml  # not needed without definitions

        value = load_yaml(text, file)
    except InputError:
        value = None
    if isinstance(value, dict):
        return {str(key): item for key, item in value.items()}
    lines = (_LINE.match(line) for line in text.splitlines())
    return {line[1]: line[2].strip().strip("\"'") for line in lines if line}


def _names(value: Any) -> list[str] | None:
    if isinstance(value, str):
        value = re.split(r",(?![^()]*\))", value)
    if not isinstance(value, list):
        return None
    return [str(item).strip() for item in value if str(item).strip()]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*\Z")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
# `@docs/style.md` imports another file. The `@` of a mail address or a decorator does not follow a
# blank, and one in a code span is ignored.
_IMPORT = re.compile(r"(?:^|\s)@(?:~?/|\./|\.\./)?[\w./-]+\.\w+(?=\s|$)", re.MULTILINE)
TOP = "top"
"""The name of the text before the first heading."""


class Section(NamedTuple):
    """The text below a heading, up to the next heading of any level, and its lines."""

    text: str
    first: int
    end: int


def sections(text: str) -> dict[str, Section]:
    """Return the sections of a file by their headings; a second one with a name is ``NAME (2)``.

    The text before the first heading is ``top``. Headings without text are left out.
    """
    lines = text.splitlines(keepends=True)
    starts = [(TOP, 0), *_headings(lines)]
    by_name: dict[str, Section] = {}
    for (name, first), (_, end) in zip(starts, [*starts[1:], ("", len(lines) + 1)], strict=True):
        body = "".join(lines[first : end - 1])
        if body.strip():
            number = sum(1 for known in by_name if known == name or known.startswith(f"{name} ("))
            by_name[name if not number else f"{name} ({number + 1})"] = Section(
                body.strip(), first, min(end - 1, len(lines))
            )
    return by_name


def with_sections(text: str, changed: Mapping[str, str]) -> str:
    """Return a file with the texts of some sections replaced; headings do not change."""
    lines = text.splitlines(keepends=True)
    for name, section in sorted(sections(text).items(), key=lambda each: -each[1].first):
        if name in changed:
            body = f"{changed[name].strip()}\n"
            before = "" if section.first == 0 else "\n"
            after = "" if section.end == len(lines) else "\n"
            lines[section.first : section.end] = [before, body, after]
    return "".join(lines)


def imports_of(text: str) -> list[str]:
    """Return what a file imports by ``@path``."""
    return [each.strip() for each in _IMPORT.findall(text)]


def _headings(lines: list[str]) -> list[tuple[str, int]]:
    """Return each heading with the number of the line after it; code blocks are ignored."""
    headings, fence = [], ""
    for number, line in enumerate(lines, 1):
        mark = _FENCE.match(line)
        if mark is not None:
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        heading = None if fence else _HEADING.match(line.rstrip("\r\n"))
        if heading is not None:
            headings.append((heading[1], number))
    return headings
