"""What a prompt omits from or replaces in a request that it copies word for word.

A prompt that rewords the request can express any part of it in another way, or keep it for another
agent. A prompt that copies the request and drops a limit from the middle does neither.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from .patterns import regex
from .replaced_words import may_be_inside, may_be_same_name
from .words import COMMON, MONTHS

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
_SENTENCE_ENDS = regex(r"(?:^|[.!?;\n])\s*$")


class Gap(NamedTuple):
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
def gaps(request: str, prompt: str) -> tuple[Gap, ...]:
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
    found = []
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
        found.append(Gap(request[start:end], instead, whole, near, rest))
    return tuple(found)


def _ends_there(rest: str) -> bool:
    return re.match(r"\s*(?:$|[.!?;\n])", rest) is not None


_FILE = regex(r"(?<![\w/-])[\w/-]{1,120}\.([a-z]\w{1,7})")


def renamed(gap: Gap) -> bool:
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


def numbers_of(gap: Gap) -> tuple[str, str] | None:
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
