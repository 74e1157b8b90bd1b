"""The answers to a question about a dispatch, and finding the parts of a dispatch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from baton.model import AgentRun, Dispatch, Evidence, GotBack, HandedOff, ToolCall, Trace, known
from baton.model.views import index_of


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something proven: a fault or, with ``warning``, a possible fault.

    ``kind`` is a word for it (``tool_outside_scope``), ``says`` is one sentence, and ``evidence``
    has the steps that prove it. ``share`` is the part that is right, 0 to 1.
    """

    kind: str
    says: str
    evidence: list[Evidence]
    share: float = 0.0
    warning: bool = False
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class Clear(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing wrong was found. ``says`` states what was examined."""

    says: str
    share: float = 1.0
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class NotRecorded(msgspec.Struct, frozen=True, kw_only=True):
    """The record does not decide. ``says`` states what is missing and what would supply it."""

    says: str


TOO_LONG = (
    "the conversation has too many dispatches, steps or words to compare each dispatch with all "
    "others: record it as several traces"
)
"""The reason for an undecided answer once the work budget of a trace is used up."""
Answer = list[Finding] | Clear | NotRecorded
"""Findings (at least one), nothing wrong, or undecidable."""
# Tools that change something, by a word of their name: `create_ticket`, `git_commit`, but not
# `settings_list` or `postcode`.
_CHANGES = (
    r"(?:^|[^a-z])(?:write|edit|save|update|create|delete|send|patch|apply|insert|add|set|post|put"
    r"|rename|move|commit|push|replace|mail|append|publish|notify)(?![a-z])"
)


def changes_something(tool: str) -> bool:
    """Tell whether a tool changes something, by a word in its name: `edit_file`, `mail.send`."""
    return re.search(_CHANGES, tool, re.IGNORECASE) is not None


NO_NAMES: Mapping[str, str] = {}
"""No renames: agents have their names from the record."""


def sender_of(trace: Trace, dispatch: Dispatch) -> AgentRun | None:
    """Return the run that made a dispatch, or ``None`` for a program or the user."""
    if dispatch.from_run is None:
        return None
    return index_of(trace).runs.get(dispatch.from_run)


def receivers_of(trace: Trace, dispatch: Dispatch) -> list[AgentRun]:
    """Return the runs that a dispatch started directly."""
    return index_of(trace).chosen(set(dispatch.runs))


def call_of(trace: Trace, sender: AgentRun | None, dispatch: Dispatch) -> ToolCall | None:
    """Return the tool call that made a dispatch."""
    if sender is None or dispatch.call is None:
        return None
    call = index_of(trace).sayings.get(dispatch.call)
    return call if isinstance(call, ToolCall) else None


def call_key(call: ToolCall) -> bytes:
    """Return a key that is equal for equal requests: the name and arguments of a call."""
    return msgspec.json.encode((call.name, call.arguments), order="deterministic")


def same_result(first: ToolCall, second: ToolCall) -> bool:
    """Return whether two equal calls succeeded with the same result, as far as recorded."""
    if not {first.status, second.status} <= {"ok", "unknown"}:
        return False
    if first.result is None or second.result is None:
        return True
    return first.result.plain() == second.result.plain()


def steps_of(trace: Trace, sender: AgentRun | None, dispatch: Dispatch) -> list[str]:
    """Return the ids that identify a dispatch: its own, its call or hand-over, and its answer."""
    ids = [dispatch.id]
    if sender is None:
        return ids
    for run, at in index_of(trace).steps_about.get(dispatch.id, ()):
        step = sender.steps[at] if run == sender.id else None
        if isinstance(step, GotBack) or (isinstance(step, HandedOff) and dispatch.call is None):
            ids.append(step.id)
    return ids if dispatch.call is None else [ids[0], dispatch.call, *ids[1:]]


def receiver_name(trace: Trace, dispatch: Dispatch, renames: Mapping[str, str]) -> str:
    """Name the receiver of a dispatch in a sentence, even if the source does not."""
    if not known(trace, dispatch, "to_agent"):
        return "an agent whose name is not recorded"
    return f"`{renames.get(dispatch.to_agent, dispatch.to_agent)}`"


# `Refund Agent`, `refund_agent` and `refund-agent` are the same agent: frameworks derive names of
# tools and nodes from agent names, and replace characters that are not allowed there.
def name_key(name: str) -> str:
    """Fold spelling differences of a name: case, and anything except letters and digits."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def has_run(trace: Trace, agent: str) -> bool:
    """Return whether an agent, by any of its names, ran anywhere in a trace."""
    index = index_of(trace)
    return name_key(agent) in index.once("has_run", lambda: frozenset(map(name_key, index.names)))
