"""Which attribute of a span holds which field of the record.

GenAI's own attributes where it has one, ``baton.*`` for the rest. A field that has its default
is left out. Texts of errors are the message of the span's status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from baton.model import AgentRun, Dispatch, GotBack, HandedOff, Said, ToolCall, Trace, Turn
from baton.readers.otlp.span import Event, Span

from .values import ANSWERED, ASKED, DATA, PLAIN, RESULT, TOOLS, Attributes, Form

SCOPE = "baton"
KIND, ID, INDEX, TURN, RUN = "baton.kind", "baton.id", "baton.index", "baton.turn", "baton.run"
ERROR, UNTIMED, SPANS = "baton.error", "baton.untimed", "baton.spans"
CONVERSATION = "gen_ai.conversation.id"
EVENTS: dict[str, type[HandedOff] | type[GotBack]] = {
    "baton.handed_off": HandedOff,
    "baton.got_back": GotBack,
}
_Table = dict[str, tuple[str, Form]]


def _plain(*names: str) -> _Table:
    return {name: (f"baton.{name}", PLAIN) for name in names}


_IN, _OUT = ("gen_ai.input.messages", ASKED), ("gen_ai.output.messages", ANSWERED)
_OF_DISPATCH = (
    "mode", "basis", "from_run", "from_agent", "to_kind", "call", "description", "group",
    "tools_allowed", "tools_source", "runs", "continues", "answers", "status", "depth", "unknown",
)  # fmt: skip
FIELDS: dict[type[msgspec.Struct], _Table] = {
    Trace: {
        **_plain("schema_version", "unknown", "case"),
        "id": (CONVERSATION, PLAIN),
        "agents": ("baton.agents", DATA),
        "state": ("baton.state", DATA),
        "dropped": ("baton.dropped", DATA),
        "attributes": ("baton.attributes", DATA),
    },
    Turn: {
        **_plain("status", "unknown"),
        "input": _IN,
        "output": _OUT,
        "state": ("baton.state", DATA),
    },
    AgentRun: {
        **_plain("node", "inside", "started_by", "status", "unknown"),
        "agent": ("gen_ai.agent.name", PLAIN),
        "input": _IN,
        "output": _OUT,
        "tools_offered": ("gen_ai.tool.definitions", TOOLS),
        "model": ("gen_ai.request.model", PLAIN),
    },
    Said: {
        "content": _OUT,
        "thought": ("baton.thought", PLAIN),
        "sources": ("baton.sources", DATA),
    },
    ToolCall: {
        **_plain("status", "refused_by", "dispatch", "unknown"),
        "name": ("gen_ai.tool.name", PLAIN),
        "arguments": ("gen_ai.tool.call.arguments", DATA),
        "result": ("gen_ai.tool.call.result", RESULT),
    },
    HandedOff: _plain("dispatch"),
    GotBack: _plain("dispatch"),
    Dispatch: {
        **_plain(*_OF_DISPATCH),
        "kind": ("baton.dispatch.kind", PLAIN),
        "to_agent": ("gen_ai.agent.name", PLAIN),
        "prompt": _IN,
        "context": ("baton.context", DATA),
        "result": _OUT,
    },
}
KINDS: dict[str, type[msgspec.Struct]] = {
    "trace": Trace,
    "turn": Turn,
    "run": AgentRun,
    "said": Said,
    "tool_call": ToolCall,
    "dispatch": Dispatch,
}
KIND_OF = {owner: kind for kind, owner in KINDS.items()}
TIMES: dict[type[msgspec.Struct], tuple[str, ...]] = {
    Trace: (),
    Turn: ("started", "ended"),
    AgentRun: ("started", "ended"),
    Dispatch: ("started", "ended"),
    ToolCall: ("at", "ended"),
    Said: ("at",),
    HandedOff: ("at",),
    GotBack: ("at",),
}
"""The fields that the start, and the end, of a span hold."""


def write_fields(obj: msgspec.Struct) -> Attributes:
    """Write the fields of one object that differ from their defaults."""
    owner = type(obj)
    names, defaults = owner.__struct_fields__, owner.__struct_defaults__
    required = len(names) - len(defaults)
    found: Attributes = {}
    for index, name in enumerate(names):
        value = getattr(obj, name)
        by_default = index >= required and value == _made(defaults[index - required])
        if name in FIELDS[owner] and not by_default:
            attribute, form = FIELDS[owner][name]
            found.update(form.write(attribute, value))
    return found


def _made(default: Any) -> Any:
    """Return a default, made anew where the struct makes one."""
    return default.factory() if hasattr(default, "factory") else default


def read_fields(owner: type[msgspec.Struct], told: Span | Event) -> Attributes:
    """Read what :func:`write_fields` wrote, and the times, as plain data.

    Raises:
        ValueError: an attribute does not hold what its field needs.
    """
    attributes = told.attributes
    found = {
        field: form.read(attribute, attributes)
        for field, (attribute, form) in FIELDS[owner].items()
        if attribute in attributes
    }
    if ID in attributes:
        found["id"] = attributes[ID]
    found.update(_times(owner, told))
    if isinstance(told, Span) and "error" in owner.__struct_fields__:
        error = attributes.get(ERROR, told.message)
        found.update({} if error is None else {"error": error})
    return found


def _times(owner: type[msgspec.Struct], told: Span | Event) -> Attributes:
    moments = (told.started, told.ended) if isinstance(told, Span) else (told.at,)
    attributes: Mapping[str, Any] = told.attributes
    untimed = attributes.get(UNTIMED, ())
    return {
        field: attributes.get(f"baton.{field}", moment)
        for field, moment in zip(TIMES[owner], moments, strict=False)
        if field not in untimed
    }
