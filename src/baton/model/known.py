"""Telling "there was none" from "it was not recorded"."""

from __future__ import annotations

import msgspec

from .trace import AgentRun, Dispatch, ToolCall, Trace, Turn

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
    "output.data": ("output", "output.data"),
}
"""What makes the steps of a run unknown, all of them or one kind; the data of a turn's output."""
for _part in PARTS:
    NONE_BY_DEFAULT[Turn if _part == "output.data" else AgentRun][_part] = False

_PREFIX = {kind: f"{name}." for name, kind in KINDS.items()}


def known(trace: Trace, obj: Trace | Turn | AgentRun | Dispatch | ToolCall, field: str) -> bool:
    """Tell whether the source recorded ``obj.field``; a known ``None`` means there was none.

    A field is not recorded when the object names it in its own ``unknown``. A name on the trace
    (``dispatch.prompt``) holds for all objects of that kind: for a field that is ``None`` by
    default, for those that have no value there; for any other (lists, statuses) for every
    object, as what stands there may be incomplete. What is recorded as empty is known.
    ``steps`` of a run are known when all kinds of them are; ``steps.said`` and
    ``steps.tool_call`` ask for one kind. ``output.data`` of a turn asks whether an answer that
    has no data can be taken for one without structured output.

    Raises:
        AttributeError: ``obj`` has no such field.
    """
    owner = type(obj)
    none_by_default = NONE_BY_DEFAULT[owner].get(field)
    if none_by_default is None:
        raise AttributeError(f"{owner.__name__} has no field `{field}`")
    names = PARTS.get(field) or (field,)
    own, prefix = obj.unknown, _PREFIX.get(owner, "")
    for name in names:
        if name in own:
            return False
    if owner is Trace or (none_by_default and getattr(obj, field) is not None):
        return True
    return all(prefix + name not in trace.unknown for name in names)
