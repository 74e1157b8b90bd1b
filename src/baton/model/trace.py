"""The record: what an agent system did in one conversation, the same for every source.

``docs/record.md`` explains each field and why it is there. Times are seconds since the
epoch, UTC. Ids are unique in a trace, across its turns. ``None`` says that there was none;
what a source did not record is ``None`` and named in ``unknown`` (see :func:`baton.model.known`).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .content import Content

SCHEMA_VERSION = 1

TurnStatus = Literal["completed", "failed", "waiting", "incomplete"]
RunStatus = Literal["completed", "failed", "cancelled", "waiting", "unknown"]
CallStatus = Literal["ok", "failed", "refused", "unanswered", "waiting", "unknown"]
DispatchKind = Literal["transfer", "delegate", "sequence", "return"]
DispatchStatus = Literal["completed", "failed", "refused", "unanswered", "waiting", "unknown"]


class Record(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of all parts of the record: keyword-only, compact as JSON, no stray keys."""


class Usage(Record, kw_only=True):
    """Tokens and cost of model requests; ``None`` where a source does not tell.

    ``input_tokens`` leaves cached ones out, ``output_tokens`` has thinking in. ``complete``
    is false when some requests reported nothing, so that the figures are a lower bound.
    """

    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    requests: int | None = None
    failed_requests: int | None = None
    cost_usd: float | None = None
    cost_from: Literal["source", "prices"] | None = None
    complete: bool = True


class AgentCard(Record, kw_only=True):
    """What is known of an agent from its definition."""

    description: str | None = None
    tools: list[str] | Literal["all"] | None = None
    denied_tools: list[str] | None = None
    instructions: str | None = None
    model: str | None = None
    kind: Literal["agent", "workflow", "human"] = "agent"
    aliases: list[str] = msgspec.field(default_factory=list)
    sub_agents: list[str] = msgspec.field(default_factory=list)


class Said(Record, kw_only=True, tag_field="type", tag="said"):
    """A text or structured answer of a run; ``thought`` marks reasoning, ``sources`` citations."""

    id: str
    content: Content
    thought: bool = False
    sources: list[Any] | None = None
    at: float | None = None


class ToolCall(Record, kw_only=True, tag_field="type", tag="tool_call"):
    """A call of a tool. ``dispatch`` is set when the call hands work to an agent."""

    id: str
    name: str
    arguments: Any = None
    result: Content | None = None
    status: CallStatus = "ok"
    refused_by: Literal["runtime", "policy", "user"] | None = None
    dispatch: str | None = None
    error: str | None = None
    at: float | None = None
    ended: float | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class HandedOff(Record, kw_only=True, tag_field="type", tag="handed_off"):
    """The moment a run hands work over; the run may go on afterwards."""

    id: str
    dispatch: str
    at: float | None = None


class GotBack(Record, kw_only=True, tag_field="type", tag="got_back"):
    """The moment the answer to a dispatch reaches the run that made it."""

    id: str
    dispatch: str
    at: float | None = None


Step = Said | ToolCall | HandedOff | GotBack


class AgentRun(Record, kw_only=True):
    """One agent at work inside a turn, from getting control to giving it up."""

    id: str
    agent: str
    node: str | None = None
    inside: list[str] = msgspec.field(default_factory=list)
    started_by: list[str] = msgspec.field(default_factory=list)
    input: Content | None = None
    output: Content | None = None
    steps: list[Step] = msgspec.field(default_factory=list)
    tools_offered: list[str] | None = None
    status: RunStatus = "completed"
    error: str | None = None
    model: str | None = None
    usage: Usage | None = None
    started: float | None = None
    ended: float | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class Dispatch(Record, kw_only=True):
    """Work passing from a run to another agent, one for each message that sets one to work."""

    id: str
    kind: DispatchKind
    mode: Literal["foreground", "background", "unknown"] = "foreground"
    basis: Literal["stated", "structure", "order"] = "stated"
    from_run: str | None = None
    from_agent: str | None = None
    to_agent: str
    to_kind: Literal["agent", "human", "workflow"] = "agent"
    call: str | None = None
    prompt: Content | None = None
    description: str | None = None
    context: dict[str, Any] = msgspec.field(default_factory=dict)
    group: int | None = None
    tools_allowed: list[str] | Literal["all"] | None = None
    tools_source: Literal["definition", "request", "listing", "offered"] | None = None
    runs: list[str] = msgspec.field(default_factory=list)
    continues: str | None = None
    answers: str | None = None
    result: Content | None = None
    status: DispatchStatus = "completed"
    error: str | None = None
    depth: int = 0
    started: float | None = None
    ended: float | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class Turn(Record, kw_only=True):
    """One user message and everything up to its final response."""

    id: str
    input: Content | None = None
    output: Content | None = None
    runs: list[AgentRun] = msgspec.field(default_factory=list)
    dispatches: list[Dispatch] = msgspec.field(default_factory=list)
    state: dict[str, Any] | None = None
    status: TurnStatus = "completed"
    error: str | None = None
    started: float | None = None
    ended: float | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class Source(Record, kw_only=True):
    """Where a trace was read from."""

    format: str
    framework: str | None = None
    location: str | None = None


class Dropped(Record, kw_only=True):
    """What a reader met and could not place: never nothing, always counted."""

    what: str
    count: int = 1
    example: str | None = None


class Trace(Record, kw_only=True):
    """What an agent system did in one conversation."""

    schema_version: int
    id: str
    case: str | None = None
    source: Source
    turns: list[Turn]
    agents: dict[str, AgentCard] = msgspec.field(default_factory=dict)
    state: dict[str, Any] | None = None
    usage: Usage | None = None
    unknown: list[str] = msgspec.field(default_factory=list)
    dropped: list[Dropped] = msgspec.field(default_factory=list)
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)
