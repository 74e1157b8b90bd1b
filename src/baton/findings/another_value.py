"""Does a clause speak of another value than the one that a result states?

"Normal is 12 to 16", "last year it was 12.1" and "your 1,845 is under the median" mean another
value on purpose, so none of them is against the result.
"""

from __future__ import annotations

import re

from .lazy_patterns import regex
from .text_values import Value

# Words that show that a clause means another value on purpose: "normal is 12 to 16", "Last year it
# was 12.1", "I suggest 60 s", "3 EUR are left". All of these words count only if the result does
# not contain them.
_OTHERWISE = regex(
    r"""\b(?:normal\w*|usual\w*|typical\w*|average|last|previous\w*|earlier|former\w*|another|others?
        |would|should|could|might|suggest\w*|recommend\w*|propos\w*|advis\w*|want\w*|need\w*|instead
        |left|remain\w*|rest|free|total|together|altogether|sum|difference|combined|more|less|larger
        |smaller|longer|shorter|above|below|higher|lower|cheaper|dearer|höher|niedriger|teurer
        |günstiger|by\ law|if|once|ago|before|after|until|since|in\ time|warn\w*|again
        |frei\w*|übrig\w*|restlich\w*|restant\w*|libres?|quedan?
        |your\ own|our\ own|bring|plus|minus|not\ \w+\ but|wrong\w*|correct\w*|mistake\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# A value computed from many values can have the digits of one of them.
_WORKED_OUT = regex(
    r"""\b(?:average|mean|median|total|sum|difference|each|together|altogether|in\ all|per\ \w+
        |durchschnitt\w*|insgesamt|zusammen|en\ moyenne|en\ tout|de\ media|en\ total
        |without|excluding|excl\.?|ohne|sans|sin)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Those of these words that certainly point to another date. "Before" does not: "come before 3
# June".
_ANOTHER = regex(
    r"""\b(?:normal\w*|usual\w*|last|next|previous\w*|earlier|later|former\w*|another|others?|again
        |suggest\w*|recommend\w*|propos\w*|instead|if|until|reminder|remind\w*|already)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# A caller that changed something states the new value: "The timeout is now 60".
_CHANGES = regex(
    r"\b(?:set|sets|changed?|raised?|lower(?:ed)?|updated?|increased?|reduced?|now|new|switched|moved|"
    r"replaced?|edited|bumped|geändert|gesetzt)\b",
    re.IGNORECASE,
)


def speaks_otherwise(clause: str, result: str) -> bool:
    """Return whether a clause means another value on purpose: "normal is 12 to 16"."""
    return bool(_added(_OTHERWISE, clause, result)) or is_worked_out(clause, result)


def is_worked_out(clause: str, result: str) -> bool:
    """Return whether a clause gives a value computed from others: an average, a sum."""
    return bool(_added(_WORKED_OUT, clause, result))


def speaks_of_another(clause: str, result: str) -> bool:
    """Return whether a clause certainly means another value, or another date: "last year"."""
    return bool(_added(_ANOTHER, clause, result))


# "I've changed it: cpu > 80 % for 5 minutes".
_CHANGED_IT = regex(
    r"\b(?:I|we)(?:['’]ve| have)? (?:now )?(?:set|changed|raised|lowered|updated|increased|reduced"
    r"|adjusted|edited) (?:it|them|this|that|these)\b",
    re.IGNORECASE,
)


def reports_change(value: Value, result: str) -> bool:
    """Return whether the clause of a value, or a caller before it, says that it was changed."""
    if _CHANGED_IT.search(value.sentence) is not None:
        return True
    return bool(_added(_CHANGES, value.clause, result))


def _added(words: re.Pattern[str], clause: str, result: str) -> set[str]:
    """Return the words of a clause that the result does not have."""
    own = {word.casefold() for word in words.findall(clause)}
    if not own:  # as in most clauses, and a result may be long
        return own
    return own - {word.casefold() for word in words.findall(result)}


# "Your 1,845 is ten dollars under the median", "1,845 is right at the median": a value that is
# compared with the result's value is another value. So is a value that belongs to a person.
_OF_SOMEBODY = regex(
    r"""\b(?:your|my|our|their|his|her|ihr(?:e[nmrs]?)?|dein(?:e[nmrs]?)?|unser(?:e[nmrs]?)?|votre
        |vos|nos|mon|mes|su|sus|tu|tus|mis?)\s(?:(?:own|current|old|new|planned)\s)?
        (?:[€$£]|EUR\ |USD\ |GBP\ )?\s?$""",
    re.VERBOSE | re.IGNORECASE,
)
_SET_APART = regex(
    r"""^\D{0,40}?\b(?:is|are|was|were|would\ be|comes?|lies?|stands?)\b[^.;!?]{0,40}?
        \b(?:(?:less|more|fewer|cheaper|dearer|higher|lower|larger|smaller|shorter|longer|earlier
            |later|faster|slower|better|worse)\ than
        |under|below|over|above|short\ of|ahead\ of|behind|near|around|close\ to|in\ line\ with
        |(?:right|just|exactly|about|almost|well|still)\ (?:at|on|around|within|inside))
        \ (?:the|that|its|their|what)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def is_set_apart(value: Value) -> bool:
    """Return whether a sentence compares a value with the result's, or assigns it to a person."""
    before, itself, after = value.sentence.partition(value.fact.text)
    if not itself:
        return False
    return _OF_SOMEBODY.search(before) is not None or _SET_APART.search(after) is not None


# "€590 + 25 = €615"
_EQUALS = regex(r"[=≈]\s?[€$£]?\s?\Z")
# A calculation that is shown: `3 x 12.50`, `100 - 20`, but not `12.50 and 3`.
_OPERATION = regex(r"\d[^=≈\d]{0,30}(?:[+×*/÷·-]|\bx\b)[^=≈\d]{0,30}\d")


def is_calculated(value: Value) -> bool:
    """Return whether a caller shows how it calculated a value."""
    before, itself, _ = value.sentence.rpartition(value.fact.text)
    # A sum of several items with their names fits. Earlier numbers of the sentence belong to
    # something else.
    shown = before[-150:]
    return bool(itself) and _EQUALS.search(shown) is not None and bool(_OPERATION.search(shown))


# "Be at pier 4 at 14:15" for the ferry of 14:30.
_COMING = regex(
    r"\b(?:be (?:at|there|ready|in|on)|come|arrive|get (?:to|there)|meet|show up|check in|"
    r"leave (?:home|here|the)|set off|go to|wake|start from)\b",
    re.IGNORECASE,
)
# "About 490", and "over 480": nearly the number, or on one side of it.
_ABOUT = regex(
    r"\b(?:nearly|almost|about|roughly|around|approx\w*|circa|over|above|under|below|some|up to|"
    r"a little|just|(?:more|less|fewer) than|at (?:least|most)|gut|knapp|etwa|rund|fast)\b",
    re.IGNORECASE,
)
# "For 30 kg Icepost is out" is about the user's parcel, not about the limit of 20 kg.
_SUPPOSES = regex(
    r"(?<!\W)\W*(?:for|if|with|above|over|under|beyond|für|bei|pour)\b", re.IGNORECASE
)
# "You arrive at 6 pm", "we remind you at 9:15", "I'd rather go on 3 June": another moment.
_ANOTHER_MOMENT = regex(
    r"""\b(?:remind\w*|earlier|later|last|next|previous\w*|former\w*|usual\w*|normal\w*|before|after
        |suggest\w*|recommend\w*|propos\w*|instead|again|rather|would|could|should|might|plan\w*
        |you\ (?:arrive|come|leave|land|start|get)|vor|nach|eher|früher|später|avant|après|antes
        |después|prima|dopo)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def tells_when_to_come(clause: str) -> bool:
    """Return whether a clause gives the time to be somewhere, which is before the event."""
    return _COMING.search(clause) is not None


def gives_roughly(clause: str) -> bool:
    """Return whether a clause gives a number only roughly, or as a bound."""
    return _ABOUT.search(clause) is not None


# "81 of 89 GiB, so 92 percent", "i.e. 143 kWh per m²": worked out from what was said before.
_CONCLUDES = regex(
    r"^\W{0,9}(?:so|thus|hence|therefore|i\.?\s?e\b|that['’]s|that (?:is|makes)|which (?:is|makes)"
    r"|also|das sind|macht|donc|soit|o sea|es decir|quindi|cioè|ou seja)\b",
    re.IGNORECASE,
)
# "Better than the ±0.2 mm you asked for": what another value is compared with.
_COMPARED = regex(
    r"\b(?:than|as|als|wie|que|che|do que)\s"
    r"(?:(?:the|your|our|its|der|die|das|den|la|le|el|los)\s)?[^\w\s]?\s?\Z",
    re.IGNORECASE,
)


def concludes(value: Value) -> bool:
    """Return whether a clause draws a conclusion, or compares something with the value."""
    before, itself, _ = value.clause.partition(value.fact.text)
    return _CONCLUDES.match(value.clause) is not None or (
        bool(itself) and _COMPARED.search(before) is not None
    )


def supposes(clause: str) -> bool:
    """Return whether a clause begins with a condition."""
    return _SUPPOSES.match(clause) is not None


def speaks_of_another_moment(clause: str) -> bool:
    """Return whether a clause gives the time or date of something else."""
    return _ANOTHER_MOMENT.search(clause) is not None
