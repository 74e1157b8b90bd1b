"""Signatures: exact keys for equal failures, without any model.

Two failures with the same signature are the same fault between the same two agents: of the same
kind, and about the same thing. Amounts, ids, dates, addresses and quoted texts are masked, so order
17 and order 18 are one fault. The result does not depend on the order of reading, on the machine,
or on other failures.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from baton.model import text_hash

from .failures import NOBODY, Failure


class Signature(NamedTuple):
    """The key of the failures of one issue.

    Attributes:
        project: always empty: a server stores issues per project, so an issue has the same key
            there as in `baton issues`.
        fault: the kind of the finding, or the type of the evaluator if no finding proves it.
        sender: who made the dispatch; empty for the program or the user, ``?`` if unknown.
        receiver: who got it, or the agent of the run; ``?`` if unknown.
        about: what the fault is about, masked: ``tool=Edit``; may be empty.
    """

    project: str
    fault: str
    sender: str
    receiver: str
    about: str

    @property
    def key(self) -> str:
        """A short name: the first 12 hex digits of its sha256."""
        return text_hash("\0".join(self))

    @property
    def edge(self) -> str:
        """Return the ends of its dispatches: ``desk → refunds``."""
        receiver = short_name(self.receiver)
        if self.sender == UNTOLD:
            return receiver
        return f"{short_name(self.sender) or 'the program'} → {receiver}"


UNTOLD = "?"
_LONGEST_NAME = 120
"""The most characters of an agent's name that are shown: it may have a megabyte, and GitHub accepts
bodies of 65,536 and Slack texts of 40,000."""


def short_name(name: str) -> str:
    """Return the name of an agent for titles and messages."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


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


# Faults with a tool's or framework's message about the failure: a time-out and a refused connection
# are two faults, two time-outs are one.
_BY_ERROR = frozenset(
    {"failed", "refused", "killed", "error_answer", "receiver_failed", "refused_target"}
)
# Values that differ from run to run. Only their kinds count: what a prompt omitted from
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
    return f"{masked[:_LONGEST]}… ({text_hash(masked)[:8]})"


def kind_of(text: str) -> str:
    """Return the kind of value of a text: ``address``, ``number``, ``name`` or ``words``.

    >>> kind_of("ana@example.com"), kind_of("order 17"), kind_of("Ana Lima"), kind_of("by Friday")
    ('address', 'number', 'name', 'words')
    """
    if "@" in text or "://" in text:
        return "address"
    if any(letter.isdigit() for letter in text):
        return "number"
    return "name" if text.istitle() else "words"


# From the most specific to the most general: an address contains digits, a date is made of numbers.
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
"""The most characters of a text that count: then comes a traceback, or the sent data."""
_READ = 2_000
"""Characters that are searched for the class of an error: it may come after a long address."""


def mask(text: str) -> str:
    """Mask what differs from run to run: addresses, ids, paths, quoted texts and numbers.

    >>> mask("order 4411 of ana@example.com was not found in /var/data/orders.db")
    'order # of <address> was not found in <path>'
    """
    return _mask(text[:_READ])


@lru_cache(maxsize=4096)  # the same few messages repeat, and long ones are cut
def _mask(text: str) -> str:
    line = " ".join(text.split())[:_LONGEST]
    return _MASKS.sub(lambda match: _MARKS[match.lastgroup or "number"], line)


# A protocol's or system's number for a kind of error is not an id of a run: `HTTP 503`,
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
    """Return the kind of error in a message: its class, its code, or its masked words.

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
    # "`refunds` failed: the account is locked": the part before the colon is the same for any
    # error.
    return mask(text.partition(": ")[2] or text)


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """Normalise names that a program generates for each run: `worker-8f3a91c2` is `worker-<id>`.

    A short number may distinguish agents (`tier1`, `tier2`) and is kept.
    """
    if name == NOBODY:
        return name
    return _MADE_UP.sub("<id>", name)


_MADE_UP = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?<![0-9A-Za-z])(?=[0-9a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{8,}(?![0-9A-Za-z])"
    r"|\d{6,}"
)
