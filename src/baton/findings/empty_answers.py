"""Answers that show by themselves that nothing was made of a result that was there.

That none of its words come up proves little: a caller may say all of it in words of its own.
"""

from __future__ import annotations

import re

_FIRST_PERSON = r"(?:I['’]ll|I['’]m(?:\ going\ to)?|I\ (?:will|am(?:\ going\ to)?)|let\ me)"
_PROMISES = re.compile(
    rf"""\b{_FIRST_PERSON}(?:\ now|\ just)?\ (?:
        (?:check|look|search|start|run|open|review|query|consult|investigat|analy[sz])(?:e|ing)?\b
        |(?:have|take|having|taking)\ a\ (?:\w+\ )?look\b|find(?:ing)?\ out\b|see\ what\b)""",
    re.VERBOSE | re.IGNORECASE,
)
# "I'm checking the connections. One second please!" after the connections came back. What comes
# next may be looked up as well ("I'll check the hotels"), so the caller has to say that it waits.
_WAITING = re.compile(
    r"""\bfirst\b|\b(?:one|an?)\ (?:moment|second|sec|minute)\b|\bat\ the\ moment\b
        |\bthis\ (?:may|will|might|can)\ take\b|\b(?:come|get|be)\ back\b|\bshortly\b|\bhang\ on\b
        |\b(?:when|once|as\ soon\ as)\ (?:it|they|he|she|I)\b|\bstand\ by\b|\bplease\ wait\b
        |\bright\ (?:now|away)\b|\bin\ the\ meantime\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "I'm forwarding your question to the payroll agent", which had answered it.
_PASSES_ON = re.compile(
    r"""\b(?:pass|forward|hand|send|sent|giv|relay)\w*\s(?:on\s)?(?:this|it|that|your(?:\s[\w-]+){1,4})\s
        (?:on\s|over\s)?to\s(?:the|our|an?)\s(?:[\w-]+\s){0,2}agent\b
        |\bask(?:ed|ing)?\ (?:the|our)\ (?:[\w-]+\ ){1,2}agent\ (?:about|for|whether|if)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_NEEDS_FIRST = re.compile(
    r"""\bbefore\ I\ can\ (?:check|answer|say|tell|look|start|help)\b
        |\bto\ (?:answer|check|find\ out)\b[^.?!]*\bI(?:['’]d|\ would)\ (?:have\ to\ |need\ to\ )?
        (?:search|look|check|ask)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Which branch should I compare it with?" asks what the work needed before it was done.
_ASKS_BACK = re.compile(
    r"""\W*(?:which|what(?!\ about|\ if|\ do\ you\ think)|when|where|who|how\ (?!about|does\ that)
        |(?:at|for|in)\ (?:which|what)|d(?:o|id)\ you\ (?:mean|have)|by\ [\w\ ]+do\ you\ mean
        |and\ (?:is|are|do|by|should)|could\ you\ (?:tell|send|give)|is\ it\ meant)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?]+[.!?]*")


def postpones(answer: str) -> bool:
    """Tell an answer that announces the work, of which the result is there."""
    if _PASSES_ON.search(answer) or _NEEDS_FIRST.search(answer):
        return True
    return _PROMISES.search(answer) is not None and _WAITING.search(answer) is not None


def only_asks(answer: str) -> bool:
    """Tell an answer that is nothing but questions about what is wanted."""
    parts = [part.strip() for part in _SENTENCE.findall(answer) if part.strip()]
    return bool(parts) and all(p.endswith("?") and _ASKS_BACK.match(p) for p in parts)
