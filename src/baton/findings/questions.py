"""Questions whether something is so, and answers that say so."""

from __future__ import annotations

import re

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
