"""Sentences of a request: those that set a limit, and questions whether something is so."""

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


_QUESTION = re.compile(r"[^.!?\n]*\?")
_WORDS = re.compile(r"[^\W\d_]+")
_OPENERS = frozenset(
    """
    am are can could did do does had has have is may might must shall should was were will would
    aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren won wouldn
    darf dürfen gibt haben hat ist kann können muss müssen sind soll sollen war wird wäre est
    """.split()  # noqa: SIM905
)
_VERDICT = re.compile(
    r"""\W*(?:
        (?:yes|no|yep|nope|not|mostly|partly|probably|almost|sure|correct
            |ja|nein|nicht|noch\ nicht|fast|teilweise|vermutlich
            |oui|non|pas\ encore|s[íi]|todav[íi]a\ no)\b
        | (?:it|they|you|we|that|this|there)\ (?:is|are|was|were|does|do|did|has|have|can|could
            |may|must|should|will|would)(?:\ not|n['’]t)?\b
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_ASKED_TO_ACT = frozenset({"you", "du", "ihr", "sie"})


def wants_verdict(text: str) -> bool:
    """Tell whether a message asks whether something is so; ``can you ...?`` asks for a deed."""
    for question in _QUESTION.findall(text):
        words = [word.casefold() for word in _WORDS.findall(question)][:3]
        if words and words[0] in _OPENERS and not _ASKED_TO_ACT.intersection(words[1:]):
            return True
    return False


def gives_verdict(text: str) -> bool:
    """Tell whether an answer opens by saying that something is so, or is not."""
    return _VERDICT.match(text) is not None
