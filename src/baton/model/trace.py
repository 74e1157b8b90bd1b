"""The record: what an agent system did in one conversation, the same for every source."""

from typing import Any, Literal, Self

import msgspec

# There is no `from __future__ import annotations` in modules of structs that most commands decode:
# msgspec would compile the text of each annotation when they start, 600 texts in 7 ms.

# Objects of the record refer to each other by id, so there are no reference cycles: the garbage
# collector can skip them (`gc=False`), which saves a tenth of the time of scoring.


class Part(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """An attachment. Its bytes are not kept; ``sha256`` (hex) identifies them."""

    type: str
    mime: str | None = None
    uri: str | None = None
    sha256: str | None = None


class Content(
    msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """The content of a message, call or result.

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
        """Return the data if there is no text, else the text: the argument of :meth:`of`."""
        return self.data if self.text is None and self.data is not None else self.plain()

    @classmethod
    def of(cls, value: Any) -> Self | None:
        """Make content from a value: a text as text, anything else but ``None`` as data."""
        if value is None:
            return None
        return cls(text=value) if isinstance(value, str) else cls(data=value)


SCHEMA_VERSION = 2
READ_VERSIONS = (1, 2)
"""Readable versions. Version 1 had no ``AgentRun.context``: there it is unknown, see ``known``."""

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
    """Tokens and cost of model requests; ``None`` if the source does not record it.

    ``input_tokens`` exclude cached ones, ``output_tokens`` include thinking. ``complete`` is false
    if some requests reported nothing, so that the figures are lower bounds.
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
    """The known parts of an agent's definition.

    ``shares_history``: whether it gets the earlier messages of the user and other agents, as with
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
    """A tool call. ``dispatch`` is set when the call hands work to an agent.

    ``stand_in`` says what answered in place of the tool, such as ``replay``; ``None`` means that it
    really ran.
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
    """The moment a run hands work over; the run may continue afterwards."""

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
    """A part of a run's context: the ``id`` of a turn, run or step of this trace, or a text.

    A turn means the user's message, a run its answer, and a step its content.
    """

    id: str | None = None
    text: str | None = None


class AgentRun(Record, kw_only=True):
    """One agent at work inside a turn, from getting control to giving it up.

    ``input`` and ``context`` together are everything in its first model request except
    instructions; an empty ``context`` means that the request had only the input.
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
    """Work passing from a run to another agent: one for each message that starts it.

    ``stand_in`` says what answered in place of the agent, as in a :class:`ToolCall`.
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
    """The source of a trace."""

    format: str
    framework: str | None = None
    location: str | None = None


class Dropped(Record, kw_only=True):
    """Content that a reader could not place: always counted, never dropped silently."""

    what: str
    count: int = 1
    example: str | None = None


UNKNOWN_KEY = "key "
"""How a key is named that the reader of a format does not know. No verdict depends on one."""
OTHER_KEYS, OTHER_CONTENT = f"{UNKNOWN_KEY}of another name", "content of other kinds"
"""How kinds are named that are only counted together, because there are many."""
REPEATED = "returned by the program, but already in its spans"
"""What is dropped because the trace has it from a better source: nothing of it is lost."""
# Reports name five kinds of content that was not read. A row of an index is read for each case, and
# has to stay short: a file can have 50,000 unknown keys.
_MOST_KINDS = 20


def few_kinds(dropped: list[Dropped]) -> list[Dropped]:
    """Return what was lost; from the 21st kind on, only how often."""
    lost = [each for each in dropped if each.what != REPEATED]
    kept, others = lost[:_MOST_KINDS], lost[_MOST_KINDS:]
    keys = sum(each.count for each in others if each.what.startswith(UNKNOWN_KEY))
    content = sum(each.count for each in others) - keys
    counts = ((OTHER_KEYS, keys), (OTHER_CONTENT, content))
    return kept + [Dropped(what=what, count=count) for what, count in counts if count]


DEFINED, TARGETS = "defined_agents", "targets"
"""Attributes of a trace: names of the agents with given definitions, and the possible receivers of
a tool, by agent and tool (``{"desk": {"transfer_to_agent": ["billing"]}}``), if the tool's
definition lists them.
"""


SESSION = "session"
"""Attribute of a trace: the start of its conversation, as far as recorded: ``app``,
``user`` and ``state``.
"""


GUARD = "guard"
"""Attribute of a trace: a guard's decisions except plain passes, in order. Each is a mapping with
``on`` (`dispatch`, `tool` or `output`), ``from``, ``to``, ``tool``, ``allowed``, ``action``,
``rule``, ``reason``, ``failed`` and ``version``, if there is one.
"""
OF_DECISIONS = (
    "on", "from", "to", "tool", "allowed", "action", "rule", "reason", "failed", "version",
)  # fmt: skip
"""The possible keys of each decision."""


UNPLACED = "stand-ins not in the record"
"""Attribute of a trace: names of tools and agents that a stand-in answered for without a call in
the record.
"""


class Trace(Record, kw_only=True):
    """The actions of an agent system in one conversation."""

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
"""For each kind of object its fields, and whether their default is ``None``."""
PARTS: dict[str, tuple[str, ...]] = {
    "steps": ("steps", "steps.said", "steps.tool_call"),
    "steps.said": ("steps", "steps.said"),
    "steps.tool_call": ("steps", "steps.tool_call"),
    "steps.refused": ("steps", "steps.tool_call", "steps.refused"),
    "output.data": ("output", "output.data"),
}
"""Names that make the steps of a run unknown, all or one kind; and the data of a turn's output.

``steps.refused`` are calls that no tool executed: spans only show tools that ran, so if the model's
messages are not recorded, other calls are unknown.
"""
for _part in PARTS:
    NONE_BY_DEFAULT[Turn if _part == "output.data" else AgentRun][_part] = False

_PREFIX = {kind: f"{name}." for name, kind in KINDS.items()}


_Asked = tuple[bool, tuple[str, ...], tuple[str, ...], int]
"""Data for :func:`known` about a field of a kind of object: whether ``None`` is its default, its
names in the ``unknown`` of the object and of the trace, and the first version of the record that
has it.
"""


def _asked(owner: type, field: str) -> _Asked:
    names, prefix = PARTS.get(field) or (field,), _PREFIX.get(owner)
    everywhere = () if prefix is None else tuple(prefix + name for name in names)
    # Records of version 1 could not state the context.
    since = SCHEMA_VERSION if owner is AgentRun and field == "context" else 0
    return NONE_BY_DEFAULT[owner][field], names, everywhere, since


# Computed once: this is called some twenty times for each scored trace.
_ASKED = {owner: {f: _asked(owner, f) for f in fields} for owner, fields in NONE_BY_DEFAULT.items()}


def known(trace: Trace, obj: Trace | Turn | AgentRun | Dispatch | ToolCall, field: str) -> bool:
    """Tell whether the source recorded ``obj.field``; a known ``None`` means there was none.

    A field is not recorded if the object's ``unknown`` names it. A name in the trace's ``unknown``
    (``dispatch.prompt``) applies to all objects of that kind: if the field's default is ``None``,
    to those without a value; for other fields (lists, statuses) to every object, as the value may
    be incomplete. A field that is recorded as empty is known. ``steps`` of a run are known when all
    kinds of them are; ``steps.said`` and ``steps.tool_call`` ask for one kind, ``steps.refused``
    for calls that were refused. ``output.data`` of a turn asks whether an answer without data
    really had no structured output.

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
