"""Whether agents asked for, did or said the same as before."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from baton.model import AgentRun, Content, Said, ToolCall, Trace, known

_WORD = re.compile(r"\w+(?:[.:/'-]\w+)*")
# Words that make a message longer or politer and ask for nothing else.
_SMALL_WORDS = """
    a again an and are as be been can could do does have i is it its just kindly me more my now
    once please so some still that the then there this those us very was we were will with would
    you your
"""
_SMALL = frozenset(_SMALL_WORDS.split())


class Deeds(NamedTuple):
    """What runs did and said, so that the same again is equal; ``told`` false if in part."""

    pieces: frozenset[tuple[str, ...]]
    told: bool


def telling_words(content: Content | None) -> tuple[str, ...]:
    """Return the words of a message that tell what it asks for, in their order, folded."""
    words = _WORD.findall(content.plain().casefold()) if content is not None else []
    return tuple(word for word in words if word not in _SMALL)


def share_words(first: frozenset[str], second: frozenset[str]) -> bool:
    """Tell whether two texts share at least 3 of 5 of their words."""
    return first == second or len(first & second) >= 0.6 * len(first | second)


def deeds_of(trace: Trace, runs: Iterable[AgentRun]) -> Deeds:
    """Return what some runs said, and what they called with what outcome, hand-offs apart."""
    pieces: set[tuple[str, ...]] = set()
    told = True
    for run in runs:
        told = told and known(trace, run, "steps")
        for step in run.steps:
            if isinstance(step, Said) and not step.thought:
                pieces.add((run.agent, *telling_words(step.content)))
            elif isinstance(step, ToolCall) and step.dispatch is None:
                told = told and known(trace, step, "arguments") and known(trace, step, "result")
                pieces.add((run.agent, *outcome(step)))
    return Deeds(frozenset(pieces), told)


def request(call: ToolCall) -> tuple[str, ...]:
    """Return what a call asks for, so that the same again is equal."""
    return call.name, msgspec.json.encode(call.arguments, order="sorted").decode()


def outcome(call: ToolCall) -> tuple[str, ...]:
    """Return a call and what came of it, so that the same again is equal."""
    result = call.result.plain() if call.result is not None else ""
    return (*request(call), call.status, result, call.error or "")
