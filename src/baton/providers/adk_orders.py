"""Requests ("orders") to Baton's plug-in for an ADK server, and its answers.

An order is sent as a function call in the user's message. Without the plug-in, ADK refuses such a
message before any agent runs, so that nothing is played live by accident.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from baton.model import Case, DispatchCase
from baton.stand_ins.serialized import Passed

NAME = "baton_play"
"""The function that is called, and that answers."""
FORMAT = 1
SWITCH = "BATON_ADK_PLUGIN"
"""Environment variable of the server that lets the plug-in take orders; it has to be ``on``."""
REFUSED_BY_ADK = "cannot contain function calls"
"""ADK's error for an order without the plug-in."""


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
