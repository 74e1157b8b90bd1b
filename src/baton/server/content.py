"""Removes texts of spans, and secrets, from bodies before they are stored.

With ``content: none`` or ``hashed`` only the structure is kept: ids, names, roles, models, kinds,
numbers and times. This is an allow-list, so texts of unknown conventions are removed as well.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from baton.formats.key_case import snake
from baton.formats.otlp_json import any_value, attributes
from baton.model.redact import Redaction, tag
from baton.readers.otlp import record_as_spans as own

from .otlp_bodies import Cleaner, NotOtlp
from .settings import Settings

_STAYS = re.compile(
    r"(?:^|[._])(?:ids?|name|kinds?|type|model|role|system|provider|version|finish_reasons?|reason"
    r"|status|node|language|modality|framework|operation|code|level|sampling|timestamp|event)$"
    r"|^baton\.(?:project|rules)$"
)
"""Ends of names whose texts are kept: `gen_ai.agent.name`, `session.id`, `openinference.span.kind`,
`langgraph_node`. `gen_ai.prompt.0.content`, `input.value` and `exception.message` do not."""
_OF_PEOPLE = re.compile(
    r"(?:^|[._])(?:user|enduser|customer|client|person|contact)[._](?:full_?)?name$"
)
"""Names of people's attributes, which end like those of agents."""
_MESSAGES = re.compile(r"(?:^|[._])(?:messages|tool_calls|message)$")
"""Names of JSON attributes whose structure is kept: who spoke, and which tools were called."""
_INSIDE = frozenset({"parts", "content", "tool_calls", "function", "message", "messages", "kwargs"})
"""Keys of such JSON with nested structure; lists and objects under all other keys are content."""
_NUMBER, _NESTED = bool | int | float, list | dict
"""Made once: Python would create them again in each call of `isinstance`."""
_LONGEST = 300
"""Maximum characters of a name or an id; a longer text is content."""
_BODY, _NAME, _SAID = "\0body", "\0span name", "\0status"
"""Keys for the parts of a record that are not attributes."""


class _Named(NamedTuple):
    """What the name of an attribute implies about its value."""

    stays: bool
    is_messages: bool


@lru_cache(2048)
def _named(key: str) -> _Named:
    """Classify a name; cached, as programs use the same few hundred names for all their spans."""
    name = snake(key)
    stays = key in own.NAMES or bool(_STAYS.search(name) and not _OF_PEOPLE.search(name))
    return _Named(stays, bool(_MESSAGES.search(name)))


class _Part(NamedTuple):
    """Attributes and texts of a record, and a function that replaces them."""

    values: dict[str, Any]
    write: Callable[[dict[str, Any]], None]


def cleaner_of(settings: Settings) -> Cleaner | None:
    """Return the cleaner for these settings; ``None`` if bodies are kept as received."""
    redaction = settings.body_redaction
    if settings.content == "keep" and not redaction.is_on:
        return None
    clean = _Cleaning(settings.content, redaction)
    return Cleaner(clean.protobuf, clean.json)


class _Cleaning:
    def __init__(self, content: str, redaction: Redaction) -> None:
        self._content = content
        self._redaction = redaction

    def protobuf(self, message: Any) -> None:
        """Change an export."""
        message.DiscardUnknownFields()
        parts: list[_Part] = []
        is_trace = hasattr(message, "resource_spans")
        for group in message.resource_spans if is_trace else message.resource_logs:
            parts.append(_attributes(group.resource))
            for scope in group.scope_spans if is_trace else group.scope_logs:
                parts.append(_attributes(scope.scope))
                for record in scope.spans if is_trace else scope.log_records:
                    parts.append(_record(record))
                    if is_trace:
                        parts += map(_attributes, (*record.events, *record.links))
        self._clean(parts)

    def json(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return a changed export, without keys that the protocol does not define."""
        parts: list[_Part] = []
        cleaned: dict[str, Any] = _known(value, "export", parts)
        self._clean(parts)
        return cleaned

    def _clean(self, parts: list[_Part]) -> None:
        before = [part.values for part in parts]
        after = before if self._content == "keep" else [self._without(each) for each in before]
        # All at once: a value that one span marks as secret is removed from the others as well.
        redacted = self._redaction.value(after)
        for part, old, new in zip(parts, before, redacted, strict=True):
            if new is not old and new != old:
                part.write(new)

    def _without(self, values: dict[str, Any]) -> dict[str, Any]:
        kept = {}
        for key, value in values.items():
            if key == _NAME or (
                key == _BODY and value is not None and value == values.get("event.name")
            ):
                kept[key] = value
            else:
                new = self._value(key, value)
                if new is not None:
                    kept[key] = new
        if own.KIND not in values:
            return kept
        try:
            return own.without_texts(
                values, kept, tagged=self._content == "hashed",
                no_message=_SAID in values and _SAID not in kept,
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return kept  # another program wrote attributes of these names

    def _value(self, key: str, value: Any) -> Any:
        """Return the part of a value that is kept; ``None`` if nothing is."""
        if value is None or isinstance(value, _NUMBER):
            return value
        named = _named(key) if len(key) <= _LONGEST else _named.__wrapped__(key)
        if isinstance(value, str):
            if named.stays and len(value) <= _LONGEST:
                return value
            if named.is_messages and value[:1] in ("[", "{"):
                try:
                    return json.dumps(self._form(json.loads(value)), ensure_ascii=False)
                except (ValueError, RecursionError):
                    pass  # it is not JSON, so it is a text like others
            return self._gone(value)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            changed = (self._value(key, item) for item in value)
            items = [item for item in changed if item is not None]
            return items if items or not value else None
        if named.is_messages and isinstance(value, _NESTED):
            return self._form(value)
        return self._gone(json.dumps(value, default=repr, sort_keys=True))

    def _form(self, value: Any) -> Any:
        """Return the structure of messages: objects and lists, with the texts that may be kept."""
        if isinstance(value, list):
            return [self._form(item) for item in value if isinstance(item, _NESTED)]
        if not isinstance(value, dict):
            return self._gone(str(value))
        kept: dict[str, Any] = {}
        for key, item in value.items():
            if isinstance(item, _NESTED) and snake(key) in _INSIDE:
                kept[key] = self._form(item)
            elif isinstance(item, _NESTED):
                kept[key] = self._gone(json.dumps(item, sort_keys=True))
            else:
                kept[key] = self._value(key, item)
        return {key: item for key, item in kept.items() if item is not None}

    def _gone(self, text: str) -> str | None:
        return tag("content", text) if self._content == "hashed" and text else None


def _attributes(holder: Any) -> _Part:
    """Read the attributes of a message; they are written in their order."""

    def write(values: dict[str, Any]) -> None:
        _write_attributes(holder, values)

    return _Part({item.key: _plain(item.value) for item in holder.attributes}, write)


def _write_attributes(holder: Any, values: dict[str, Any]) -> None:
    del holder.attributes[:]
    for key, value in values.items():
        if not key.startswith("\0"):
            item = holder.attributes.add()
            item.key = key
            _assign(item.value, value)


def _record(record: Any) -> _Part:
    """Read a span or log record: its attributes, and its name, status or body."""
    is_span = hasattr(record, "span_id") and hasattr(record, "parent_span_id")
    values = {item.key: _plain(item.value) for item in record.attributes}
    if is_span:
        values[_NAME] = record.name
        if record.status.message:
            values[_SAID] = record.status.message
    elif record.HasField("body"):
        values[_BODY] = _plain(record.body)

    def write(new: dict[str, Any]) -> None:
        _write_attributes(record, new)
        if is_span:
            record.name = new.get(_NAME, "")
            if _SAID in values:
                record.status.message = new.get(_SAID, "")
        elif _BODY in new:
            _assign(record.body, new[_BODY])
        else:
            record.ClearField("body")

    return _Part(values, write)


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _plain(item.value) for item in value.kvlist_value.values}
    return getattr(value, kind)


def _assign(target: Any, value: Any) -> None:
    target.Clear()
    if isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int):
        target.int_value = value
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, str):
        target.string_value = value
    elif isinstance(value, bytes):
        target.bytes_value = value
    elif isinstance(value, list):
        target.array_value.SetInParent()
        for item in value:
            _assign(target.array_value.values.add(), item)
    elif isinstance(value, dict):
        target.kvlist_value.SetInParent()
        for key, item in value.items():
            pair = target.kvlist_value.values.add()
            pair.key = key
            _assign(pair.value, item)


_KEYS: dict[str, dict[str, str]] = {
    # The keys of OTLP JSON by their object. The value is the type: "" for plain ids, numbers and
    # times, or another object of this table.
    "export": {"resource_spans": "group", "resource_logs": "group"},
    "group": {
        "resource": "holder", "scope_spans": "scope", "scope_logs": "scope", "schema_url": "",
        "instrumentation_library_spans": "scope", "instrumentation_library_logs": "scope",
    },
    "scope": {
        "scope": "holder", "instrumentation_library": "holder", "spans": "record",
        "log_records": "record", "logs": "record", "schema_url": "",
    },
    "holder": {"name": "", "version": "", "attributes": "", "dropped_attributes_count": ""},
    "inner": {
        "name": "", "time_unix_nano": "", "trace_id": "", "span_id": "", "trace_state": "",
        "attributes": "", "dropped_attributes_count": "", "flags": "",
    },
    "record": {
        "trace_id": "", "span_id": "", "parent_span_id": "", "trace_state": "", "flags": "",
        "name": "", "kind": "", "start_time_unix_nano": "", "end_time_unix_nano": "",
        "time_unix_nano": "", "observed_time_unix_nano": "", "severity_number": "",
        "severity_text": "", "event_name": "", "body": "", "attributes": "", "events": "inner",
        "links": "inner", "status": "status", "dropped_attributes_count": "",
        "dropped_events_count": "", "dropped_links_count": "",
    },
    "status": {"code": ""},
}  # fmt: skip


def _known(value: Any, of: str, parts: list[_Part]) -> Any:
    """Copy an object of OTLP JSON, without keys that are unknown; its texts go to ``parts``."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_known(item, of, parts) for item in value]
    if not isinstance(value, dict):
        raise NotOtlp(f"a {of} is not an object")
    kept: dict[str, Any] = {}
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for key, item in value.items():
        plain = snake(key)
        if plain not in _KEYS[of]:
            continue
        if _KEYS[of][plain]:
            kept[key] = _known(item, _KEYS[of][plain], parts)
            message = item.get("message") if plain == "status" and isinstance(item, dict) else None
            if message and isinstance(message, str):
                values[_SAID] = message
                names[_SAID] = key
        elif plain == "attributes":
            values |= {name: _plain_json(held) for name, held in _pairs(item)}
            names[""] = key
        elif plain == "body":
            values[_BODY] = _plain_json(item)
            names[_BODY] = key
        elif isinstance(item, _NESTED):
            raise NotOtlp(f"`{key}` is neither a text nor a number")
        elif of == "record" and plain == "name":
            values[_NAME] = item
            names[_NAME] = key
        else:
            kept[key] = item

    def write(new: dict[str, Any]) -> None:
        for name, key in names.items():
            if name == "":
                own = {each: new[each] for each in new if not each.startswith("\0")}
                kept[key] = attributes(own)
            elif name == _SAID:
                kept[key]["message"] = new.get(name) or ""
            elif new.get(name) is None:
                kept.pop(key, None)
            else:
                kept[key] = any_value(new[name]) if name == _BODY else new[name]

    if names:
        write(values)
        parts.append(_Part(values, write))
    return kept


def _pairs(items: Any) -> Iterable[tuple[str, Any]]:
    if items is None:
        return
    if not isinstance(items, list):
        raise NotOtlp("`attributes` is not a list")
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("key"), str):
            raise NotOtlp("an attribute has no key")
        yield item["key"].replace("\0", ""), item.get("value")


def _plain_json(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise NotOtlp("the value of an attribute is not an object such as `stringValue`")
    for key, item in value.items():
        kind = snake(key)
        try:
            if kind == "string_value":
                return str(item)
            if kind == "int_value":
                return int(item)
            if kind == "double_value":
                return float(item)
            if kind == "bool_value":
                return bool(item)
            if kind == "bytes_value":
                return base64.b64decode(item)
            if kind == "array_value":
                return [_plain_json(each) for each in (item or {}).get("values") or ()]
            if kind == "kvlist_value":
                return {k: _plain_json(v) for k, v in _pairs((item or {}).get("values"))}
        except (TypeError, ValueError, OverflowError, AttributeError, binascii.Error):
            raise NotOtlp(f"`{key}` does not hold what its name says") from None
    return None
