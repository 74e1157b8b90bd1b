"""Sentences of a request, and those that set a limit."""

from __future__ import annotations

import re

_LIMITS = (
    r"do not|don't|don’t|must not|mustn't|may not|never|must|only|except|without|"
    r"at (?:most|least)|no (?:more|less|fewer|later|earlier) than|up to|under|below|within|"
    r"maximum|minimum|max|min|limit\w*|budget|before|until|by no means|nothing else|keep|leave|"
    r"read[- ]only|unchanged|avoid|exclude|excluding|instead of|not|"
    r"nicht|nur|ohne|höchstens|mindestens|maximal|keine?n?|bis|"
    r"seulement|uniquement|sans|jamais|ne \w+ (?:pas|rien)|au (?:plus|moins)|"
    r"solo|sólo|únicamente|sin|nunca|como máximo|al menos|no"
)
_LIMIT = re.compile(rf"(?<!\w)(?:{_LIMITS})(?!\w)", re.IGNORECASE)
_STRICT = re.compile(
    r"(?<!\w)(?:do not|don't|don’t|must not|mustn't|never|only|except|without|nothing else|"
    r"nicht|nur|ohne|keine?n?|seulement|uniquement|sans|jamais|solo|sólo|sin|nunca)(?!\w)",
    re.IGNORECASE,
)
_END = re.compile(
    r"(?<=[.!?;])\s+|\n+|,\s+(?=(?:but|and|aber|und|mais|et|pero|y)\b)|"
    r"\s(?=but\b)"
)
_TAG = re.compile(r"^\s*\[[^\]\n]{1,60}\]\s*")


def sentences(text: str) -> list[str]:
    """Split a request; a tag in brackets that opens it names it and asks nothing."""
    return [part.strip() for part in _END.split(_TAG.sub("", text)) if part and part.strip()]


def sets_limit(text: str) -> bool:
    """Tell whether a text may limit what is to be done."""
    return _LIMIT.search(text) is not None


def forbids(text: str) -> bool:
    """Tell whether a sentence surely limits what is to be done."""
    return _STRICT.search(text) is not None
