"""Signatures: what failures have in common, exactly, without any model.

Two failures with one signature are the same fault between the same two agents: of the same kind,
and about the same thing. Amounts, ids, dates, addresses and quoted texts are masked, so that order
17 and order 18 are one fault. Nothing depends on the order in which failures are read, on the
machine, or on what else failed.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import NamedTuple

from .failures import NOBODY, Failure


class Signature(NamedTuple):
    """What failures of one issue have in common.

    Attributes:
        project: empty for issues of all kinds: a server keeps those of a project by themselves, so
            that an issue has the same key there as in `baton issues`.
        fault: the kind of the finding, or the type of the evaluator where no finding proves it.
        sender: who made the dispatch; empty for the program or the user, ``?`` where untold.
        receiver: who got it, or whose run it is; ``?`` where untold.
        about: what the fault is about, masked: ``tool=Edit``; empty where it is about nothing more.
    """

    project: str
    fault: str
    sender: str
    receiver: str
    about: str

    @property
    def key(self) -> str:
        """A short name: the first 12 hex digits of its sha256."""
        return _short_hash("\0".join(self))

    @property
    def edge(self) -> str:
        """Write whose dispatches it is of: ``desk → refunds``."""
        receiver = short_name(self.receiver)
        if self.sender == UNTOLD:
            return receiver
        return f"{short_name(self.sender) or 'the program'} → {receiver}"


UNTOLD = "?"
_LONGEST_NAME = 120
"""Letters of an agent's name that are shown: a trace may call it by a megabyte, and GitHub takes
bodies of 65,536 and Slack texts of 40,000."""


def short_name(name: str) -> str:
    """Return the name of an agent as titles and messages show it."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def signature_of(failure: Failure, project: str = "") -> Signature:
    """Return the signature of a failure."""
    about = ";".join(
        f"{name}={_masked(name, text)}" for name, text in sorted(failure.subject.items())
    )
    if not about and failure.fault in _BY_ERROR:
        about = error_class(failure.says)
    return Signature(
        project,
        failure.fault or failure.type,
        UNTOLD if failure.sender is None else folded(failure.sender),
        UNTOLD if failure.receiver is None else folded(failure.receiver),
        about,
    )


# Faults that say in words of a tool or a framework why an agent failed: a time-out and a refused
# connection are two faults, two time-outs are one.
_BY_ERROR = frozenset(
    {"failed", "refused", "killed", "error_answer", "receiver_failed", "refused_target"}
)
# Values that differ from run to run. Only their kinds count: what a prompt left out of
# `Refund order 4411 by Friday` is `number, words`.
_VALUES = frozenset({"dropped", "result", "missing"})


def _masked(name: str, text: str) -> str:
    texts = text.split("\n")
    if name in _VALUES:
        return ",".join(sorted({kind_of(each) for each in texts}))
    masked = ",".join(sorted({mask(each) for each in texts}))
    if len(masked) <= _LONGEST:
        return masked
    # Hundreds of tools or agents: the title of an issue names the first of them.
    return f"{masked[:_LONGEST]}… ({_short_hash(masked)[:8]})"


def kind_of(text: str) -> str:
    """Tell what kind of value a text is: ``address``, ``number``, ``name`` or ``words``.

    >>> kind_of("ana@example.com"), kind_of("order 17"), kind_of("Ana Lima"), kind_of("by Friday")
    ('address', 'number', 'name', 'words')
    """
    if "@" in text or "://" in text:
        return "address"
    if any(letter.isdigit() for letter in text):
        return "number"
    return "name" if text.istitle() else "words"


# From the most special to the most general: an address holds digits, a date is made of numbers.
_MASKS = re.compile(
    r"""
    (?P<address> \b[\w.+-]+@[\w-]+\.[\w.-]+ | \b[a-z][a-z0-9+.-]*://[^\s"'`<>]+ )
    | (?P<id> \b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b
            | \b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b
            | \b(?=\w*\d)(?=\w*[A-Za-z])\w{12,}\b )
    | (?P<path> (?<![\w.])(?:[A-Za-z]:[\\/]|~?/)[^\s"'`<>:,;]+ )
    | (?P<quoted> "[^"]*" | '[^']*(?<=\w)' | “[^”]*” )
    | (?P<number> [+-]?\d[\d.,:/_-]*\d | \d )
    """,
    re.VERBOSE,
)
_MARKS = {
    "address": "<address>",
    "id": "<id>",
    "path": "<path>",
    "quoted": "<text>",
    "number": "#",
}
_LONGEST = 200
"""Letters of a text that count: what follows is a traceback, or what was sent."""
_READ = 2_000
"""Letters in which the class of an error is looked for: it may come after a long address."""


def mask(text: str) -> str:
    """Replace what differs from run to run: addresses, ids, paths, quoted texts and numbers.

    >>> mask("order 4411 of ana@example.com was not found in /var/data/orders.db")
    'order # of <address> was not found in <path>'
    """
    return _mask(text[:_READ])


@lru_cache(maxsize=4096)  # the same few messages come again and again, and long ones are cut
def _mask(text: str) -> str:
    line = " ".join(text.split())[:_LONGEST]
    return _MASKS.sub(lambda match: _MARKS[match.lastgroup or "number"], line)


# A number that a protocol or a system gives to a kind of error is not an id of a run: `HTTP 503`,
# `status code 429`, `errno 111`, `exit code 137`.
_CODE = re.compile(
    r"\b(?:http|status|code|errno|error|exit)\W{0,3}(?:status|code)?\W{0,3}(\d{1,3})\b",
    re.IGNORECASE,
)
# `ConnectionError`, `requests.exceptions.ReadTimeout`, `PermissionDenied`, `ECONNREFUSED`.
_CLASS = re.compile(
    r"\b(?:[A-Z][A-Za-z]*(?:Error|Exception|Timeout|Denied|Refused|Exceeded|Interrupt)|E[A-Z]{4,})\b"
)


def error_class(text: str) -> str:
    """Return what kind of error a message tells of: its class, its code, or its masked words.

    >>> error_class("`refunds` failed: httpx.ReadTimeout: no answer after 30 s (request 8f2a91c3)")
    'ReadTimeout'
    >>> error_class("the API answered with status code 429, retry in 12 s")
    '429'
    """
    return _error_class(text[:_READ])


@lru_cache(maxsize=4096)
def _error_class(text: str) -> str:
    named = _CLASS.search(text)
    code = _CODE.search(text)
    if named is not None:
        return f"{named[0]} {code[1]}" if code is not None else named[0]
    if code is not None:
        return code[1]
    # "`refunds` failed: the account is locked": what comes before the colon is said of any error.
    return mask(text.partition(": ")[2] or text)


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """Fold names that a program makes up for each run: `worker-8f3a91c2` is `worker-<id>`.

    A short number may tell two agents apart (`tier1`, `tier2`) and is kept.
    """
    if name == NOBODY:
        return name
    return _MADE_UP.sub("<id>", name)


_MADE_UP = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?<![0-9A-Za-z])(?=[0-9a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{8,}(?![0-9A-Za-z])"
    r"|\d{6,}"
)
