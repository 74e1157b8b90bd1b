"""The calls to a play's stand-ins as data, for agents that run in another process."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from .answers import Answer
from .play import Asked, Given, Play


class GivenTo(NamedTuple):
    """An answer, with the index of the call in ``asked``."""

    place: int
    answer: Answer
    by: str


class Passed(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All calls and answers: see the attributes of :class:`Play`."""

    asked: list[Asked] = msgspec.field(default_factory=list)
    given: list[GivenTo] = msgspec.field(default_factory=list)
    refused: list[str] = msgspec.field(default_factory=list)
    decided: bool = False


def passed(play: Play) -> Any:
    """Return calls and answers as plain data; values that are not JSON become text."""
    places = {id(asked): place for place, asked in enumerate(play.asked)}
    whole = Passed(
        asked=play.asked,
        given=[GivenTo(places[id(each.asked)], each.answer, each.by) for each in play.given],
        refused=play.refused,
        decided=play.decided,
    )
    return msgspec.to_builtins(whole, enc_hook=repr, str_keys=True)


def take(play: Play, told: Passed) -> None:
    """Copy another process's calls and answers to a play; raises IndexError for contradictions."""
    play.asked = list(told.asked)
    play.given = [Given(play.asked[each.place], each.answer, each.by) for each in told.given]
    play.refused, play.decided = list(told.refused), told.decided
