"""Invisible characters, and those that act on a terminal or a build, and how they are shown.

This is the one table of such characters. Terminals, JUnit, CSV and Markdown show them as escapes
(:func:`visible`), the HTML report and the fence of judges by their own marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LINE_BREAKS = (
    (0x0B, 0x0D),  # vertical tab, form feed, carriage return: a CR overwrites the line it is in
    (0x1C, 0x1E),  # separators, at which `str.splitlines` splits
    (0x85, 0x85),  # next line, a C1 control
    (0x2028, 0x2029),  # line and paragraph separator
)
"""Line breaks other than the newline: a text could start a line that looks like Baton's own."""
UNSEEN = (
    (0x00, 0x08),  # C0 controls, such as backspace
    (0x0E, 0x1B),  # among them ESC, which starts sequences: OSC 52 sets a clipboard
    (0x1F, 0x1F),
    (0x7F, 0x84),  # DEL, and C1 controls: U+009B is ESC [ in one character
    (0x86, 0x9F),
    (0xAD, 0xAD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark, a bidi control
    (0x115F, 0x1160),  # fillers of Hangul, as wide as a letter and empty
    (0x17B4, 0x17B5),  # Khmer vowels that are not drawn
    (0x180B, 0x180F),  # Mongolian variation selectors and vowel separator
    (0x200B, 0x200B),  # zero-width space
    (0x200E, 0x200F),  # left-to-right and right-to-left mark
    (0x202A, 0x202E),  # bidi embeddings and overrides: `gpj.<U+202E>exe` reads as `gpj.exe`
    (0x2060, 0x206F),  # word joiner, invisible operators, bidi isolates
    (0x3164, 0x3164),  # a filler of Hangul
    (0xFEFF, 0xFEFF),  # byte order mark, zero-width no-break space
    (0xFFA0, 0xFFA0),  # a filler of Hangul, half as wide
    (0xFFF0, 0xFFFB),  # unassigned, and interlinear annotations
    (0x1D173, 0x1D17A),  # invisible marks of musical notation
    (0xE0000, 0xE0FFF),  # tags: they can hold whole prompts that no person sees
)
"""First and last of each range of invisible characters, except newline and tab."""
_NO_TEXT = (
    # lone surrogates: file names that are not UTF-8 contain them, no encoding does
    (0xD800, 0xDFFF),
    (0xFDD0, 0xFDEF),
    *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0x110000, 0x10000)),
)
"""Code points that are not characters: XML refuses them, and UTF-8 refuses lone surrogates."""
_JOINERS = "\u200c\u200d"


def character_class(ranges: Iterable[tuple[int, int]]) -> str:
    """Return ranges of characters in the syntax of a regular expression's brackets."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


_ALL = (*UNSEEN, *LINE_BREAKS, *_NO_TEXT)
# Python uses one lookup for the first 65,536 characters, but tests ranges beyond them one by one
# for each character: with a single range it is twelve times as fast.
_FIRST_PLANE = character_class(pair for pair in _ALL if pair[1] < 0x10000)
_SUSPECT = f"[{_FIRST_PLANE}{_JOINERS}\U00010000-\U0010ffff]"
_HIDDEN = f"[{character_class(_ALL)}{_JOINERS}]"
_ASCII_HIDDEN = bytes(c for c in (*range(0x20), 0x7F) if c not in b"\t\n")
_SHORT = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPACES = rf"(?:\r\n|[^\S{character_class((*UNSEEN, *LINE_BREAKS))}])+"
# `##[group]`, `##vso[...]` and `##teamcity[...]` count anywhere in a line (GitHub, Azure,
# TeamCity), `::error::` where nothing but white space is before it (GitHub). `##` at the very end
# counts as well, as the rest may be written next.
_COMMAND = re.compile(r"(^[^\S\n]*:):|(#)#(?=\w*(?:\[|\Z))", re.MULTILINE)
_ESCAPED = {":": "\\u003a", "#": "\\u0023"}


def visible(text: str) -> str:
    r"""Escape characters that are invisible or act on a terminal; newlines and tabs stay.

    ``"\x1b[2J"`` becomes ``\u001b[2J``. The escapes are those of JSON, so that a JSON document
    keeps its values, and existing escapes are not changed. A CR before a newline stays, as it has
    no effect there (and CSV uses it). Joiners stay between letters of other scripts and in emoji,
    where they belong; next to ASCII they only hide something.
    """
    if text.isascii():
        # A pass over bytes is ten times faster than a search, and large reports are mostly ASCII.
        data = text.encode()
        if len(data.translate(None, _ASCII_HIDDEN)) == len(data):
            return text
    return re.sub(_SUSPECT, _shown, text)  # few texts need it, and compiling it takes long


def visible_line(text: str) -> str:
    r"""Show a text in one line: like :func:`visible`, and newlines as ``\n``, tabs as ``\t``."""
    text = visible(text).replace("\r\n", "\\r\\n")
    return text.replace("\n", "\\n").replace("\t", "\\t")


def folded_line(text: str) -> str:
    """Show a text in one line, each run of spaces, tabs and newlines as one space."""
    return visible(re.sub(_SPACES, " ", text).strip(" "))


def exception_line(error: BaseException, most: int = 300) -> str:
    """Return an exception's name and message in one line, truncated to ``most`` characters."""
    try:
        text = folded_line(str(error))
    except Exception as worse:  # noqa: BLE001 - an exception of a library may fail here
        text = f"its text is not available: {type(worse).__name__}"
    text = text if len(text) <= most else f"{text[:most]}…"
    return f"{type(error).__name__}{f': {text}' if text else ''}"


def without_commands(text: str) -> str:
    r"""Break texts that a CI system would read as commands in its log.

    ``::error::x`` at the start of a line becomes ``:\u003aerror::x``, ``##vso[x]`` becomes
    ``#\u0023vso[x]``: escapes of JSON, as in :func:`visible`.
    """
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(_broken, text)


def _shown(hidden: re.Match[str]) -> str:
    character, text = hidden[0], hidden.string
    if character > "\uffff" and not re.match(_HIDDEN, character):
        return character  # such as an emoji
    if character == "\r" and text.startswith("\n", hidden.end()):
        return character
    if character in _JOINERS:
        start, end = hidden.span()
        before, after = text[start - 1 : start], text[end : end + 1]
        if _joins(before) and _joins(after):
            return character
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _joins(neighbour: str) -> bool:
    """Return whether a joiner may be next to a character: a letter or sign that is not ASCII."""
    return bool(neighbour) and not neighbour.isascii() and not re.match(_HIDDEN, neighbour)


def _broken(match: re.Match[str]) -> str:
    kept = match[1] or match[2]
    return kept + _ESCAPED[kept[-1]]
