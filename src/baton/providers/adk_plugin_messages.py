"""Requests ("orders") to Baton's plug-in for an ADK server, and its answers.

An order is sent as a function call in the user's message. Without the plug-in, ADK refuses such a
message before any agent runs, so that nothing is played live by accident.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from baton.model import Case, DispatchCase
from baton.stand_ins.answer_sources import Answer
from baton.stand_ins.play import Answered, Play, Request

NAME = "baton_play"
"""The function that is called, and that answers."""
FORMAT = 1
SWITCH = "BATON_ADK_PLUGIN"
"""Environment variable of the server that lets the plug-in take orders; it has to be ``on``."""
REFUSED_BY_ADK = "cannot contain function calls"
"""ADK's error for an order without the plug-in."""


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


class Order(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One message to be played, or (``do: texts``) a question for the texts of the agents.

    ``number`` counts the messages of a session from 1. ``state`` is the initial state of the
    session, ``texts`` are the changed components; both apply to the whole session.
    """

    format: int = FORMAT
    do: Literal["play", "texts"] = "play"
    number: int = 1
    message: str = ""
    case: Case | None = None
    state: dict[str, Any] = msgspec.field(default_factory=dict)
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    streaming: bool = False


class Reply(msgspec.Struct, kw_only=True):
    """The reply to an order; ``problem`` says why it failed.

    ``events`` are those of the agents as a server writes them, ``trouble`` is why they ended early.
    """

    events: list[dict[str, Any]] = msgspec.field(default_factory=list)
    trouble: str | None = None
    state: dict[str, Any] | None = None
    passed: Passed = msgspec.field(default_factory=Passed)
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    tools: list[str] = msgspec.field(default_factory=list)
    problem: str | None = None


def bare(case: Case) -> Case:
    """Return the parts of a case for the agents' side, without expectations."""
    moment = case.dispatch
    return Case(
        id=case.id,
        turns=[],
        dispatch=None
        if moment is None
        else DispatchCase(form=moment.form, context=moment.context, call=moment.call),
        stand_ins=case.stand_ins,
    )


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
