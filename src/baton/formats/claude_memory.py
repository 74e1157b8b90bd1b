"""Sections of a ``CLAUDE.md``: what is below each of its headings, and how it is replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

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
