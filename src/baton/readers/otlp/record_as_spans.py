"""Write a Baton record as spans, and read it back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from baton.formats.nesting import decode_json
from baton.model import (
    READ_VERSIONS,
    SCHEMA_VERSION,
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    InputError,
    Problem,
    Said,
    ToolCall,
    Trace,
    Turn,
    Usage,
    integrity_problems,
)
from baton.model.trace import NONE_BY_DEFAULT
from baton.readers.otlp.span import Conversation, Event, Span

Attributes = dict[str, Any]
USAGE = "baton.usage."
_TOKENS = {
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
}
_INPUT = "gen_ai.usage.input_tokens"
_BESIDE = ("requests", "failed_requests", "cost_usd", "cost_from", "complete")
_SAID = ("text", "reasoning")


class Form(NamedTuple):
    """How a value is written under a name and read back as plain data."""

    write: Callable[[str, Any], Attributes]
    read: Callable[[str, Mapping[str, Any]], Any]


def as_json(value: Any) -> str:
    """Write a value as JSON text."""
    return msgspec.json.encode(value).decode()


def messages(content: Content, role: str, *, text: str = "text") -> str:
    """Write content as a single message of GenAI's ``gen_ai.*.messages``.

    Data and attachments are parts with custom types, which GenAI allows; ``text`` is the type of
    the part that holds the text.
    """
    parts: list[Any] = []
    if content.text is not None:
        parts.append({"type": text, "content": content.text})
    if content.data is not None:
        parts.append({"type": "data", "content": content.data})
    for part in content.parts or ():
        kind = "attachment" if part.uri is None else "uri"
        described = {"mime_type": part.mime, "uri": part.uri, "sha256": part.sha256}
        known = {name: value for name, value in described.items() if value is not None}
        parts.append({"type": kind, "modality": part.type, **known})
    if content.parts == []:
        parts.append({"type": "attachments", "content": []})
    ending = {"finish_reason": "stop"} if role == "assistant" else {}
    return as_json([{"role": role, "parts": parts, **ending}])


def content_of(text: str) -> Attributes:
    """Read the content that :func:`messages` wrote, as plain data.

    Raises:
        ValueError: the text is not such a message.
    """
    content: Attributes = {}
    said = decode_json(text)
    if not (isinstance(said, list) and len(said) == 1 and isinstance(said[0], dict)):
        raise ValueError("not one message")
    for part in said[0].get("parts", ()):
        kind = part.get("type")
        if kind in _SAID:
            content["text"] = part.get("content")
        elif kind == "data":
            content["data"] = part.get("content")
        else:
            attachments = content.setdefault("parts", [])
            if kind != "attachments":
                attachments.append(_attachment(part))
    return content


def _attachment(part: Mapping[str, Any]) -> Attributes:
    names = {"modality": "type", "mime_type": "mime", "uri": "uri", "sha256": "sha256"}
    return {ours: part[theirs] for theirs, ours in names.items() if theirs in part}


def _write_messages(role: str) -> Callable[[str, Content], Attributes]:
    return lambda name, value: {name: messages(value, role)}


def _read_messages(name: str, attributes: Mapping[str, Any]) -> Any:
    return content_of(attributes[name])


def _write_result(name: str, value: Content) -> Attributes:
    """Write a result as tools return it; anything but plain text gets an extra attribute."""
    if value == Content(text=value.text) and value.text is not None:
        return {name: value.text}
    if value == Content(data=value.data) and value.data is not None:
        return {name: as_json(value.data), "baton.result.form": "data"}
    return {name: value.plain(), "baton.result": as_json(value)}


def _read_result(name: str, attributes: Mapping[str, Any]) -> Any:
    if "baton.result" in attributes:
        return decode_json(attributes["baton.result"])
    value = attributes[name]
    if attributes.get("baton.result.form") == "data":
        return {"data": decode_json(value)}
    return {"text": value}


def _write_tools(name: str, value: list[str]) -> Attributes:
    return {name: as_json([{"type": "function", "name": each} for each in value])}


def _read_tools(name: str, attributes: Mapping[str, Any]) -> Any:
    return [each["name"] for each in decode_json(attributes[name])]


def write_usage(usage: Usage) -> Attributes:
    """Write token usage; GenAI's input count includes the cached tokens."""
    written: Attributes = {}
    if usage.input_tokens is not None:
        cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
        written[_INPUT] = usage.input_tokens + cached
    for field, name in _TOKENS.items():
        written[name] = getattr(usage, field)
    for field in _BESIDE:
        written[USAGE + field] = getattr(usage, field)
    return {name: value for name, value in written.items() if value is not None}


def read_usage(attributes: Mapping[str, Any]) -> Attributes | None:
    """Read what :func:`write_usage` wrote, as plain data; ``None`` if there is no usage."""
    if USAGE + "complete" not in attributes:
        return None
    names = {**_TOKENS, **{field: USAGE + field for field in _BESIDE}}
    usage = {field: attributes[name] for field, name in names.items() if name in attributes}
    if _INPUT in attributes:
        cached = usage.get("cache_read_tokens", 0) + usage.get("cache_write_tokens", 0)
        usage["input_tokens"] = attributes[_INPUT] - cached
    return usage


PLAIN = Form(lambda name, value: {name: value}, lambda name, attributes: attributes[name])
DATA = Form(
    lambda name, value: {name: as_json(value)},
    lambda name, attributes: decode_json(attributes[name]),
)
ASKED = Form(_write_messages("user"), _read_messages)
ANSWERED = Form(_write_messages("assistant"), _read_messages)
RESULT = Form(_write_result, _read_result)
TOOLS = Form(_write_tools, _read_tools)


SCOPE = "baton"
KIND, ID, INDEX, TURN, RUN = "baton.kind", "baton.id", "baton.index", "baton.turn", "baton.run"
GUARD = "baton.guard."
"""The prefix of attributes with a guard's decisions."""
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
    "tools_allowed", "tools_source", "runs", "continues", "answers", "status", "depth", "stand_in",
    "unknown",
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
        "context": ("baton.context", DATA),
        "tools_offered": ("gen_ai.tool.definitions", TOOLS),
        "model": ("gen_ai.request.model", PLAIN),
    },
    Said: {
        "content": _OUT,
        "thought": ("baton.thought", PLAIN),
        "sources": ("baton.sources", DATA),
    },
    ToolCall: {
        **_plain("status", "refused_by", "dispatch", "stand_in", "unknown"),
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
"""The fields that are stored as the start and the end of a span."""


NAMES = frozenset(
    {TURN, RUN, UNTIMED, "baton.result.form", USAGE + "cost_from", "baton.source.format"}
    | {
        attribute
        for table in FIELDS.values()
        for field, (attribute, form) in table.items()
        if form is PLAIN and field != "description"
    }
)
"""Attributes that hold ids, names and kinds, and no content of messages."""
_OF_CARD = ("tools", "denied_tools", "model", "kind", "aliases")


def without_texts(
    before: Attributes, after: Attributes, *, tagged: bool, no_message: bool
) -> Attributes:
    """Make one of Baton's spans readable after texts were removed from its attributes.

    ``after`` is what is left of ``before``. If it is ``tagged``, tags replace the texts. With
    ``no_message``, the message of the status was removed. Fields without their texts are named in
    ``unknown``, because their values are no longer known.
    """
    owner = KINDS.get(str(before.get(KIND)))
    if owner is None:
        return after
    left = {key: value for key, value in after.items() if key != "baton.result"}
    # Names of agents and tools, and counts of lost items, are in JSON together with texts.
    for key, short in (("baton.agents", _short_cards), ("baton.dropped", _short_dropped)):
        if key in before:
            left[key] = as_json(short(decode_json(before[key])))
    gone = ["error"] if no_message or (ERROR in before and ERROR not in left) else []
    for field, (key, form) in FIELDS[owner].items():
        is_short = left.get(key) != before.get(key) and key not in ("baton.agents", "baton.dropped")
        if is_short and not (tagged and _can_read(form, key, left)):
            left.pop(key, None)
            gone.append(field)
    if owner is AgentRun and not tagged:
        gone.append("steps.said")
    elif owner is Said and "content" in gone:  # the number of statements is kept
        left.update(ANSWERED.write(FIELDS[Said]["content"][0], Content()))
    names = [field for field in gone if field in NONE_BY_DEFAULT.get(owner, ())]
    if names:
        left["baton.unknown"] = list(dict.fromkeys([*before.get("baton.unknown", ()), *names]))
    return left


def _can_read(form: Form, key: str, attributes: Attributes) -> bool:
    try:
        form.read(key, attributes)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return True


def _short_cards(cards: Any) -> Any:
    return {
        name: {key: card[key] for key in _OF_CARD if key in card} for name, card in cards.items()
    }


def _short_dropped(dropped: Any) -> Any:
    # Defaults are not written, so an item that was lost once has no `count`.
    return [{key: each[key] for key in ("what", "count") if key in each} for each in dropped]


def write_fields(obj: msgspec.Struct) -> Attributes:
    """Write the fields of one object that differ from their defaults."""
    owner = type(obj)
    names, defaults = owner.__struct_fields__, owner.__struct_defaults__
    required = len(names) - len(defaults)
    written: Attributes = {}
    for index, name in enumerate(names):
        value = getattr(obj, name)
        by_default = index >= required and value == _made(defaults[index - required])
        if name in FIELDS[owner] and not by_default:
            attribute, form = FIELDS[owner][name]
            written.update(form.write(attribute, value))
    return written


def _made(default: Any) -> Any:
    """Return a default value, made by its factory if it has one."""
    return default.factory() if hasattr(default, "factory") else default


def read_fields(owner: type[msgspec.Struct], item: Span | Event) -> Attributes:
    """Read what :func:`write_fields` wrote, and the times, as plain data.

    Raises:
        ValueError: the value of an attribute does not fit its field.
    """
    attributes = item.attributes
    fields = {
        field: form.read(attribute, attributes)
        for field, (attribute, form) in FIELDS[owner].items()
        if attribute in attributes
    }
    if ID in attributes:
        fields["id"] = attributes[ID]
    fields.update(_times(owner, item))
    if isinstance(item, Span) and "error" in owner.__struct_fields__:
        error = attributes.get(ERROR, item.message)
        fields.update({} if error is None else {"error": error})
    return fields


def _times(owner: type[msgspec.Struct], item: Span | Event) -> Attributes:
    moments = (item.started, item.ended) if isinstance(item, Span) else (item.at,)
    attributes: Mapping[str, Any] = item.attributes
    untimed = attributes.get(UNTIMED, ())
    return {
        field: attributes.get(f"baton.{field}", moment)
        for field, moment in zip(TIMES[owner], moments, strict=False)
        if field not in untimed
    }


_ByPlace = dict[str, list[tuple[int, Attributes]]]
_STEPS: dict[str, type[msgspec.Struct]] = {"said": Said, "tool_call": ToolCall}


def is_own(span: Span) -> bool:
    """Return whether Baton wrote a span."""
    return span.scope == SCOPE and KIND in span.attributes


def part(conversation: Conversation) -> tuple[list[list[Span]], Conversation]:
    """Separate the spans that Baton wrote, grouped by record, from all others."""
    own: dict[str, list[Span]] = defaultdict(list)
    for span in conversation.spans:
        if is_own(span):
            own[span.trace_id].append(span)
    if not own:
        return [], conversation
    turns = [[span for span in turn if not is_own(span)] for turn in conversation.turns]
    others = msgspec.structs.replace(
        conversation,
        spans=[span for span in conversation.spans if not is_own(span)],
        turns=[turn for turn in turns if turn],
    )
    return list(own.values()), others


def restore(spans: list[Span], location: str | None) -> Trace:
    """Read the record that these spans of one trace were written from.

    Raises:
        InputError: spans are missing or were changed, so they do not form a record.
    """
    by_kind: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_kind[str(span.attributes[KIND])].append(span)
    _check_all_there(by_kind["trace"], spans, location)
    root = by_kind["trace"][0]
    version = root.attributes.get("baton.schema_version")
    if isinstance(version, int) and version not in READ_VERSIONS:
        said = f"schema_version is {version}; this Baton reads {SCHEMA_VERSION}"
        raise _fault(root, location, said)
    try:
        trace = msgspec.convert(_record(root, by_kind, location), Trace)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _fault(root, location, f"its attributes were changed: {error}") from None
    problems = integrity_problems(trace)
    if problems:
        raise InputError(Problem(file=location, message=message) for message in problems)
    return trace


def _check_all_there(roots: list[Span], spans: list[Span], location: str | None) -> None:
    if not roots:
        raise _fault(spans[0], location, "its first span, the one of the conversation, is missing")
    planned = roots[0].attributes.get(SPANS)
    if planned != len(spans):
        raise _fault(spans[0], location, f"{len(spans)} of its {planned} spans were found")


def _fault(span: Span, location: str | None, message: str) -> InputError:
    said = f"trace {span.trace_id}, which Baton wrote, cannot be read back: {message}"
    return InputError(Problem(file=location, message=said))


def _record(root: Span, by_kind: dict[str, list[Span]], location: str | None) -> Attributes:
    steps = _steps(by_kind)
    runs = _placed(by_kind["run"], AgentRun, TURN)
    for placed in runs.values():
        for _, run in placed:
            run["steps"] = _ordered(steps.get(run["id"], []))
    dispatches = _placed(by_kind["dispatch"], Dispatch, TURN)
    turns = [
        (index, {**turn, "runs": _ordered(runs.get(turn["id"], [])),
                 "dispatches": _ordered(dispatches.get(turn["id"], []))})
        for index, turn in _placed(by_kind["turn"], Turn, KIND)["turn"]
    ]  # fmt: skip
    source = {
        name: root.attributes[f"baton.source.{name}"]
        for name in ("format", "framework")
        if f"baton.source.{name}" in root.attributes
    }
    return {
        "id": "",
        **read_fields(Trace, root),
        "source": {**source, "location": location},
        "usage": read_usage(root.attributes),
        "turns": _ordered(turns),
    }


def _steps(by_kind: dict[str, list[Span]]) -> _ByPlace:
    """Return the steps by their run: spans, and events of the span of the run."""
    steps: _ByPlace = defaultdict(list)
    for kind, owner in _STEPS.items():
        for run, placed in _placed(by_kind[kind], owner, RUN).items():
            steps[run] += [(index, {"type": kind, **step}) for index, step in placed]
    for span in by_kind["run"]:
        for event in span.events:
            if event.name in EVENTS:
                kind = event.name.removeprefix("baton.")
                step = {"type": kind, **read_fields(EVENTS[event.name], event)}
                steps[str(span.attributes["baton.id"])].append((event.attributes[INDEX], step))
    return steps


def _placed(spans: list[Span], owner: type[msgspec.Struct], place: str) -> _ByPlace:
    """Read spans of one kind, grouped by the object that contains them."""
    by_place: _ByPlace = defaultdict(list)
    for span in spans:
        fields = read_fields(owner, span)
        if owner is AgentRun:
            fields["usage"] = read_usage(span.attributes)
        by_place[str(span.attributes[place])].append((span.attributes[INDEX], fields))
    return by_place


def _ordered(placed: list[tuple[int, Attributes]]) -> list[Attributes]:
    return [fields for _, fields in sorted(placed, key=lambda each: each[0])]
