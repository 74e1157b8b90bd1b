"""The calls to a play's stand-ins as data, for agents that run in another process."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from .answer_sources import Answer
from .play import Answered, Play, Request


class PassedAnswer(NamedTuple):
    """An answer, with the index of its request in ``requests``."""

    place: int
    answer: Answer
    by: str


class Passed(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All calls and answers: see the attributes of :class:`Play`."""

    # The names on the wire: a server may run the plug-in of another version of Baton.
    requests: list[Request] = msgspec.field(default_factory=list, name="asked")
    answers: list[PassedAnswer] = msgspec.field(default_factory=list, name="given")
    refused: list[str] = msgspec.field(default_factory=list)
    decided: bool = False


def passed(play: Play) -> Any:
    """Return calls and answers as plain data; values that are not JSON become text."""
    places = {id(request): place for place, request in enumerate(play.requests)}
    answers = [PassedAnswer(places[id(a.request)], a.answer, a.by) for a in play.answers]
    calls = Passed(
        requests=play.requests,
        answers=answers,
        refused=play.refused,
        decided=play.decided,
    )
    return msgspec.to_builtins(calls, enc_hook=repr, str_keys=True)


def take(play: Play, calls: Passed) -> None:
    """Copy another process's calls and answers to a play; raises IndexError for contradictions."""
    play.requests = list(calls.requests)
    play.answers = [Answered(play.requests[a.place], a.answer, a.by) for a in calls.answers]
    play.refused, play.decided = list(calls.refused), calls.decided
