"""JSON as people write it: with comments, and with commas after the last entry."""

from __future__ import annotations

import re

_PIECES = re.compile(
    rb"""
    "(?:[^"\\]++|\\.)*+"?                                           # a text stays as it is
    | (?P<comment> //[^\n]*+ | \#[^\n]*+ | /\*.*?\*/ )
    | (?P<comma> , (?= (?: \s | //[^\n]*+ | \#[^\n]*+ )*+ [}\]] ))
    """,
    re.VERBOSE | re.DOTALL,
)
_VISIBLE = re.compile(rb"[^\n]")


def without_comments(data: bytes) -> bytes:
    """Return JSON with blanks for comments (``//``, ``#``, ``/* */``) and for last commas.

    Lines and columns stay the same, and JSON that has none of these stays as it is.
    """
    return _PIECES.sub(_blank, data)


def _blank(match: re.Match[bytes]) -> bytes:
    return match[0] if match.lastgroup is None else _VISIBLE.sub(b" ", match[0])
