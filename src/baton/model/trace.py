"""The record: what an agent system did in one conversation, the same for every source."""

from typing import Any, Literal, Self

import msgspec

# There is no `from __future__ import annotations` in modules of structs that most commands decode:
# msgspec would compile the text of each annotation when they start, 600 texts in 7 ms.

# Objects of the record name each other by id, so that none leads back to itself: the garbage
# collector need not look at them (`gc=False`), which takes it a tenth of the time of scoring.


class Part(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """An attachment. Its bytes are not kept; ``sha256`` (hex) tells two apart."""

    type: str
    mime: str | None = None
    uri: str | None = None
    sha256: str | None = None


class Content(
    msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """What was said, asked or returned.

    ``data`` is JSON: structured output, or the result of a tool that returns an object.
    """

    text: str | None = None
    data: Any = None
    parts: list[Part] | None = None

    def __bool__(self) -> bool:
        return bool(self.text) or self.data is not None or bool(self.parts)

    def plain(self) -> str:
        """Return the text, or the data as compact JSON, or an empty string."""
        if self.text is not None:
            return self.text
        return "" if self.data is None else msgspec.json.encode(self.data).decode()

    def value(self) -> Any:
        """Return the data where there is no text, else the text: what :meth:`of` was given."""
        return self.data if self.text is None and self.data is not None else self.plain()

    @classmethod
    def of(cls, value: Any) -> Self | None:
        """Make content of a value: a text as text, anything else as data; ``None`` is none."""
        if value is None:
            return None
        return cls(text=value) if isinstance(value, str) else cls(data=value)


SCHEMA_VERSION = 2
READ_VERSIONS = (1, 2)
"""What can be read. Version 1 had no ``AgentRun.context``: there it is unknown, see ``known``."""

TurnStatus = Literal["completed", "failed", "waiting", "incomplete"]
RunStatus = Literal["completed", "failed", "cancelled", "waiting", "unknown"]
CallStatus = Literal["ok", "failed", "refused", "unanswered", "waiting", "unknown"]
DispatchKind = Literal["transfer", "delegate", "sequence", "return"]
DispatchStatus = Literal["completed", "failed", "refused", "unanswered", "waiting", "unknown"]


class Record(
    msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """Base of all parts of the record: keyword-only, compact as JSON, no unknown keys."""


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
    """What is known of an agent from its definition.

    ``shares_history`` tells whether it is given what the user and other agents said before, as by
    ``include_contents`` of Google ADK.
    """

    description: str | None = None
    tools: list[str] | Literal["all"] | None = None
    denied_tools: list[str] | None = None
    instructions: str | None = None
    model: str | None = None
    kind: Literal["agent", "workflow", "human"] = "agent"
    aliases: list[str] = msgspec.field(default_factory=list)
    sub_agents: list[str] = msgspec.field(default_factory=list)
    shares_history: bool | None = None


class Said(Record, kw_only=True, tag_field="type", tag="said"):
    """A text or structured answer of a run; ``thought`` marks reasoning, ``sources`` citations."""

    id: str
    content: Content
    thought: bool = False
    sources: list[Any] | None = None
    at: float | None = None


class ToolCall(Record, kw_only=True, tag_field="type", tag="tool_call"):
    """A call of a tool. ``dispatch`` is set when the call hands work to an agent.

    ``stand_in`` tells what answered in place of the tool, ``replay`` for instance; ``None`` says
    that it really ran.
    """

    id: str
    name: str
    arguments: Any = None
    result: Content | None = None
    status: CallStatus = "ok"
    refused_by: Literal["runtime", "policy", "user"] | None = None
    dispatch: str | None = None
    stand_in: str | None = None
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


class Ref(Record, kw_only=True):
    """A part of what a run was given: the ``id`` of a turn, run or step of this trace, or a text.

    A turn stands for the user's message, a run for its answer, a step for all that is in it.
    """

    id: str | None = None
    text: str | None = None


class AgentRun(Record, kw_only=True):
    """One agent at work inside a turn, from getting control to giving it up.

    ``input`` and ``context`` together are all that its first model request held, instructions
    apart; an empty ``context`` says that there was nothing beside the input.
    """

    id: str
    agent: str
    node: str | None = None
    inside: list[str] = msgspec.field(default_factory=list)
    started_by: list[str] = msgspec.field(default_factory=list)
    input: Content | None = None
    context: list[Ref] | None = None
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
    """Work passing from a run to another agent, one for each message that sets one to work.

    ``stand_in`` tells what answered in place of the agent, as for a :class:`ToolCall`.
    """

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
    stand_in: str | None = None
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


DEFINED, TARGETS = "defined_agents", "targets"
"""Attributes of a trace: names of the agents that definitions were given of, and the agents that a
tool may hand work to, by the agent that has it and the tool (``{"desk": {"transfer_to_agent":
["billing"]}}``), where the definition of the tool lists them.
"""


SESSION = "session"
"""Attribute of a trace: what its conversation began with, as far as it is recorded: ``app``,
``user`` and ``state``.
"""


GUARD = "guard"
"""Attribute of a trace: what a guard decided beside a plain pass, in order. Each is a mapping with
``on`` (`dispatch`, `tool` or `output`), ``from``, ``to``, ``tool``, ``allowed``, ``action``,
``rule``, ``reason``, ``failed`` and ``version``, as far as there is one.
"""
OF_DECISIONS = (
    "on", "from", "to", "tool", "allowed", "action", "rule", "reason", "failed", "version",
)  # fmt: skip
"""What each of them may have."""


UNPLACED = "stand-ins not in the record"
"""Attribute of a trace: names of the tools and agents that a stand-in answered for where the record
shows no call.
"""


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


KINDS: dict[str, type] = {
    "turn": Turn,
    "run": AgentRun,
    "dispatch": Dispatch,
    "tool_call": ToolCall,
}


def _none_by_default(owner: type[msgspec.Struct]) -> dict[str, bool]:
    names, defaults = owner.__struct_fields__, owner.__struct_defaults__
    required = len(names) - len(defaults)
    return {
        name: index >= required and defaults[index - required] is None
        for index, name in enumerate(names)
    }


NONE_BY_DEFAULT: dict[type, dict[str, bool]] = {
    owner: _none_by_default(owner) for owner in (Trace, Turn, AgentRun, Dispatch, ToolCall)
}
"""For each kind of object its fields, and whether ``None`` is what they hold by default."""
PARTS: dict[str, tuple[str, ...]] = {
    "steps": ("steps", "steps.said", "steps.tool_call"),
    "steps.said": ("steps", "steps.said"),
    "steps.tool_call": ("steps", "steps.tool_call"),
    "steps.refused": ("steps", "steps.tool_call", "steps.refused"),
    "output.data": ("output", "output.data"),
}
"""What makes the steps of a run unknown, all of them or one kind; the data of a turn's output.

``steps.refused`` are calls that no tool carried out: spans tell of tools that ran, and where the
words of the model are not recorded, nothing is known of the others.
"""
for _part in PARTS:
    NONE_BY_DEFAULT[Turn if _part == "output.data" else AgentRun][_part] = False

_PREFIX = {kind: f"{name}." for name, kind in KINDS.items()}


_Asked = tuple[bool, tuple[str, ...], tuple[str, ...], int]
"""What :func:`known` looks for, of a field of a kind of object: whether ``None`` is its default,
what names it in the object's own ``unknown`` and in that of the trace, and the version of the
record from which on it can be told."""


def _asked(owner: type, field: str) -> _Asked:
    names, prefix = PARTS.get(field) or (field,), _PREFIX.get(owner)
    everywhere = () if prefix is None else tuple(prefix + name for name in names)
    # Records of version 1 could not tell the context.
    since = SCHEMA_VERSION if owner is AgentRun and field == "context" else 0
    return NONE_BY_DEFAULT[owner][field], names, everywhere, since


# Worked out once: this is asked some twenty times for each trace that is scored.
_ASKED = {owner: {f: _asked(owner, f) for f in fields} for owner, fields in NONE_BY_DEFAULT.items()}


def known(trace: Trace, obj: Trace | Turn | AgentRun | Dispatch | ToolCall, field: str) -> bool:
    """Tell whether the source recorded ``obj.field``; a known ``None`` means there was none.

    A field is not recorded when the object names it in its own ``unknown``. A name on the trace
    (``dispatch.prompt``) holds for all objects of that kind: for a field that is ``None`` by
    default, for those that have no value there; for any other (lists, statuses) for every
    object, as what is there may be incomplete. What is recorded as empty is known.
    ``steps`` of a run are known when all kinds of them are; ``steps.said`` and
    ``steps.tool_call`` ask for one kind, ``steps.refused`` for calls that were refused.
    ``output.data`` of a turn asks whether an answer that
    has no data can be taken for one without structured output.

    Raises:
        AttributeError: ``obj`` has no such field.
    """
    owner = type(obj)
    asked = _ASKED[owner].get(field)
    if asked is None:
        raise AttributeError(f"{owner.__name__} has no field `{field}`")
    none_by_default, names, everywhere, since = asked
    own, unknown = obj.unknown, trace.unknown
    if own:
        for name in names:
            if name in own:
                return False
    if none_by_default and getattr(obj, field) is not None:
        return True
    if since and trace.schema_version < since:
        return False
    if unknown:
        for name in everywhere:  # `all` with a generator takes twice as long
            if name in unknown:
                return False
    return True
