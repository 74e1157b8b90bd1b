"""What a prompt omits from or replaces in a request that it copies word for word.

A prompt that rewords the request can express any part of it in another way, or keep it for another
agent. A prompt that copies the request and drops a limit from the middle does neither.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from .changed_values import is_transposed, keeps_to
from .facts import read
from .lazy_patterns import regex
from .lost_limits import excludes, names_caller, only_limits, only_reads
from .normalise_values import in_digits
from .only_gaps import bounds_number
from .replaced_words import may_be_inside, may_be_same_name
from .restated_values import has_value_derived_from
from .sent_context import Sent
from .words import (
    COMMON,
    MONTHS,
    asides,
    forbids,
    is_callers,
    is_courtesy,
    is_deadline,
    sentences,
)

# Numbers, times and codes are one word (`18:30`, `V-204`), and signs of units are words, as another
# one is another value.
_WORD = regex(r"[^\W_]+(?:[.,:/_-][^\W_]+)*|[%€$£°]")
# Longer texts are not compared word by word, as that takes time quadratic in their length.
_MOST_WORDS = 300
# The share of a prompt that is copied, and the share of the request. In the held-out lists of
# benchmarks/accuracy, copies with something cut out have at least 0.95 and 0.7.
COPIED = 0.9
KEPT = 0.6
# Shorter runs of words can be equal by chance.
_IN_A_ROW = 2
# The number of characters that are searched for a number's limit: "must not cost more than 80 EUR".
_NEAR = 40
# What is left out begins after the end of a sentence, so it may be a whole one.
_SENTENCE_ENDS = regex(r"(?:^|[.!?;\n])\s*$")


# "Close valve V-204" for "do NOT close valve V-204".
_NEGATION = regex(r"(?:please )?(?:do not|don['’]t|never|must not|not|nicht|nie)", re.IGNORECASE)
# Characters of the request that a reason quotes.
_QUOTED = 60


def cut_from_copy(sent: Sent) -> list[str]:
    """Return limits that a prompt leaves out, or in which it replaces a name, month or number.

    This only applies to a prompt that copies the request word for word.
    """
    if not sent.undivided or sent.dispatch.context or sent.is_json or sent.only_asks:
        return []
    missing = []
    for gap in _gaps(in_digits(sent.request.text), in_digits(sent.prompt)):
        if _is_renamed(gap):
            if not any(sent.comes_up(fact) for fact in read(gap.text).facts):
                missing.append(gap.text)
        elif gap.is_cut and _NEGATION.fullmatch(gap.text) is not None:
            at = sent.request.text.find(gap.text)
            missing.append(sent.request.text[max(0, at) :][:_QUOTED])
        elif gap.is_cut:
            missing += _needed_of(gap, sent)
        elif _is_number_changed(gap, sent):
            missing.append(f"{gap.before} {gap.text}")
    return missing


class _Gap(NamedTuple):
    """A part of a request that is not in its copy, and what the copy has in its place.

    ``whole``: it is one or more full sentences, not part of one. ``before`` is the request's text
    right before it, and ``rest`` is the remaining text of the request.
    """

    text: str
    instead: str
    whole: bool
    before: str
    rest: str

    @property
    def is_cut(self) -> bool:
        """Whether nothing meaningful is in its place."""
        return all(word.casefold() in COMMON for word in _WORD.findall(self.instead))


@lru_cache(maxsize=256)
def _gaps(request: str, prompt: str) -> tuple[_Gap, ...]:
    """Return what a prompt leaves out or replaces, or nothing if it does not copy the request."""
    mine, theirs = list(_WORD.finditer(request)), list(_WORD.finditer(prompt))
    if not 0 < len(mine) <= _MOST_WORDS or not 0 < len(theirs) <= _MOST_WORDS:
        return ()
    words = [match[0].casefold() for match in mine]
    copy = [match[0].casefold() for match in theirs]
    matcher = SequenceMatcher(None, words, copy, autojunk=False)
    blocks = [b for b in matcher.get_matching_blocks() if b.size >= _IN_A_ROW]
    copied = sum(block.size for block in blocks)
    if copied < COPIED * len(copy) or copied < KEPT * len(words):
        return ()
    ends = [(0, 0), *((b.a + b.size, b.b + b.size) for b in blocks)]
    starts = [*((b.a, b.b) for b in blocks), (len(words), len(copy))]
    gaps = []
    for (left, at), (right, to) in zip(ends, starts, strict=True):
        if left == right:
            continue
        start, end = mine[left].start(), mine[right - 1].end()
        before = request[mine[left - 1].end() : start] if left else ""
        whole = _SENTENCE_ENDS.search(before) is not None and _ends_there(request[end:])
        instead = prompt[theirs[at].start() : theirs[to - 1].end()] if at < to else ""
        rest = f"{request[:start]} {request[end:]}"
        near = request[:start].rstrip()[-_NEAR:]
        # Do not start in the middle of a word.
        near = near if len(near) < _NEAR else near.partition(" ")[2]
        gaps.append(_Gap(request[start:end], instead, whole, near, rest))
    return tuple(gaps)


def _ends_there(rest: str) -> bool:
    return re.match(r"\s*(?:$|[.!?;\n])", rest) is not None


_FILE = regex(r"(?<![\w/-])[\w/-]{1,120}\.([a-z]\w{1,7})")


def _is_renamed(gap: _Gap) -> bool:
    """Return whether another name, file or month replaces this one: Polish for German."""
    mine, other = _WORD.findall(gap.text), _WORD.findall(gap.instead)
    if len(mine) != 1 or len(other) != 1:
        return False
    old, new = mine[0], other[0]
    files = [_FILE.fullmatch(name) for name in (old, new)]
    if files[0] is not None and files[1] is not None:
        # `retry.py` is `src/retry.py`.
        same_name = old.endswith(new) or new.endswith(old)
        return files[0][1] == files[1][1] and not same_name
    if old.casefold() in MONTHS and new.casefold() in MONTHS:
        return MONTHS[old.casefold()] != MONTHS[new.casefold()]
    return (
        # After a number it can be a unit: 900 Kč are 900 CZK.
        re.search(r"\d\W*$", gap.before) is None
        and old.isalpha()
        and new.isalpha()
        and old[:1].isupper()
        and new[:1].isupper()
        # "Monday" for "Mon", "Peters" for "Peter".
        and old.casefold()[:3] != new.casefold()[:3]
        and not may_be_same_name(old, new)
        # "A flat in Chiado" is one in Lisbon.
        and not may_be_inside((_WORD.findall(gap.before) or [""])[-1], old, new)
        and not {old.casefold(), new.casefold()} & COMMON
    )


_NUMBER = regex(r"\d+(?:[.,]\d+)*")


def _numbers_of(gap: _Gap) -> tuple[str, str] | None:
    """Return the number of a request, and the number that replaces it in a copy."""
    mine, other = _WORD.findall(gap.text), _WORD.findall(gap.instead)
    if len(mine) != 1 or len(other) != 1:
        return None
    if _NUMBER.fullmatch(mine[0]) is None or _NUMBER.fullmatch(other[0]) is None:
        return None
    # `0.25` can be passed on as 25.
    old, new = (re.sub(r"\D", "", each[0]).strip("0") for each in (mine, other))
    share = mine[0].startswith("0") or other[0].startswith("0")
    return None if share and old == new else (mine[0], other[0])


def _is_number_changed(gap: _Gap, sent: Sent) -> bool:
    """Return whether another number stands in a copy, which does not keep to the one before."""
    numbers = _numbers_of(gap)
    if numbers is None:
        return False
    (old,), (new,) = read(numbers[0]).facts or (None,), read(numbers[1]).facts or (None,)
    if old is None or new is None or old.keys & new.keys:
        return False
    # "At most 42 characters" is kept by 40, but nobody means 24.
    if is_transposed(*(re.sub(r"\D", "", number) for number in numbers)):
        return not sent.elsewhere.holds(old)
    if has_value_derived_from(old, sent):
        return False
    return not keeps_to(gap.before, old, new) and not sent.elsewhere.holds(old)


def _needed_of(gap: _Gap, sent: Sent) -> list[str]:
    """Return the parts of a gap that the work needs: its limits.

    Words can't show whether it needs anything else: an item can be left to the user ("The screen we
    can borrow"), and a value can tell only the caller something ("The tenant is Ms Reyes").
    """
    parts = sentences(gap.text) if gap.whole else [gap.text]
    return [part for part in parts if _is_limit_cut(part, sent, gap)]


# Words that limit the work, for a text that is otherwise copied. `forbids` is for any other text.
_LIMITS_WORK = regex(
    r"\b(?:no|none|nobody|nothing|not|disregard|kein\w*|niemand|nichts|aucun\w*|rien|nadie"
    r"|ningun\w*)\b",
    re.IGNORECASE,
)
# "To the gift card, not to the credit card": a copy with the gift card is complete. "Not before",
# "not more" and "not in Bairro Alto" say something else.
_CONTRAST = regex(
    r"""(?<!\W)\W{0,4}(?:and\ |but\ |und\ |et\ |y\ )?
        (?:(?:not|nicht|pas|no(?=\ (?:el|la|los|las)\b))
            (?!\ (?:before|after|until|more|less|later|earlier|longer|only|even|yet|any|one|vor|nach
                |mehr|länger|avant|plus|antes|más)\b)
        |instead\ of|rather\ than|statt|anstatt|en\ vez\ del?|au\ lieu\ d[eu])
        \ (?P<place>(?:to|for|as|on|in|at|via|by|from|with|near|auf|an|für|bei|mit|zu|im|am|à|dans
            |en|chez|avec|con)\b)?""",
    re.VERBOSE | re.IGNORECASE,
)


def _is_limit_cut(text: str, sent: Sent, gap: _Gap) -> bool:
    """Return whether a part of a gap limits the work, and no other text has it."""
    if _is_contrast(text, gap) or is_callers(text) or is_courtesy(text) or asides(text):
        return False
    if names_caller(text) or only_reads(text, sent) or not _limits_work(text):
        return False
    if gap.whole and not only_limits(text):
        return False
    if _has_deadline(text):
        return False
    # "No meat" can be expressed as "vegetarian".
    if sent.has_own_words:
        return False
    # "50 to 55 % humidity", which the prompt also copies, does not carry "at most 50 lux".
    facts = read(text).without(read(gap.rest))
    return bool(facts) and not any(sent.comes_up(fact) for fact in facts)


def _limits_work(text: str) -> bool:
    if bounds_number(text) and re.search(r"\d", text):
        return True
    return forbids(text) or _LIMITS_WORK.search(text) is not None or excludes(text)


def _has_deadline(text: str) -> bool:
    return any(is_deadline(fact.text, text) for fact in read(text).facts)


def _is_contrast(text: str, gap: _Gap) -> bool:
    """Return whether a cut only names what is not meant, next to what is meant."""
    if gap.whole or not gap.before.rstrip().endswith(","):
        return False
    match = _CONTRAST.match(text)
    if match is None:
        return False
    place = match["place"]
    clause = re.split(r"[.;:!?]", gap.before)[-1].casefold()
    return place is None or f" {place.casefold()} " in f" {clause}"
