"""An observation of Langfuse as the span it was, as far as Langfuse kept it.

Langfuse takes the content out of a span's attributes and keeps the others as texts in the
metadata (under ``attributes``, as an object, a JSON text or dotted names). Spans of conventions
whose names for the content are fixed get it back under these; all others are written with the
attributes of the Langfuse SDK.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from .spans import Json, as_text, attributes, in_order, resource_spans, scope_spans

_NUMBERS = re.compile(r"(?:gen_ai\.(?:aggregated_)?usage|llm\.token_count|llm\.cost)\.")
_HEX = re.compile(r"[0-9a-f]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECTIONS = ("attributes", "resourceAttributes", "scope")


class Observation(msgspec.Struct, rename="camel"):
    """An observation as the API gives it, by whichever version."""

    id: str
    trace_id: Annotated[str, msgspec.Meta(max_length=8192)] | None = None
    type: str = "SPAN"
    name: str | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    parent_observation_id: str | None = None
    level: str | None = None
    status_message: str | None = None
    input: Any = None
    output: Any = None
    metadata: Any = None
    model: str | None = None
    model_parameters: Any = None
    usage_details: Any = None
    cost_details: Any = None
    session_id: str | None = None
    user_id: str | None = None
    trace_name: str | None = None
    tags: list[str] | None = None


class Trace(msgspec.Struct, rename="camel", kw_only=True):
    """A trace with its observations."""

    id: str
    name: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    tags: list[str] | None = None
    input: Any = None
    output: Any = None
    observations: list[Observation]


def trace_of(trace: Trace) -> Json:
    """Write a trace as OTLP JSON."""
    groups: dict[tuple[str, str], list[Json]] = {}
    resources: dict[str, Json] = {}
    for each in trace.observations:
        kept = _kept(each.metadata)
        resource = as_text(kept["resourceAttributes"])
        resources[resource] = kept["resourceAttributes"]
        scope = str(kept["scope"].get("name") or "langfuse-sdk")
        groups.setdefault((resource, scope), []).append(_span(each, trace, kept))
    return {
        "resourceSpans": [
            resource_spans([scope_spans(scope, in_order(spans))], resources[resource])
            for (resource, scope), spans in groups.items()
        ]
    }


def _span(each: Observation, trace: Trace, kept: dict[str, Json]) -> Json:
    parent = each.parent_observation_id
    failed = each.level == "ERROR"
    written = {
        "traceId": _hex(each.trace_id or trace.id, 32),
        "spanId": _hex(each.id, 16),
        "parentSpanId": _hex(parent, 16) if parent else None,
        "name": each.name,
        "startTimeUnixNano": _nanoseconds(each.start_time),
        "endTimeUnixNano": _nanoseconds(each.start_time if each.type == "EVENT" else each.end_time),
        "attributes": attributes(_attributes(each, trace, kept)),
        "status": {"code": 2, "message": each.status_message or ""} if failed else None,
    }
    return {key: value for key, value in written.items() if value is not None}


def _attributes(each: Observation, trace: Trace, kept: dict[str, Json]) -> Json:
    found = {key: _number(key, value) for key, value in kept["attributes"].items()}
    content = _content(each, found, kept["scope"].get("name", ""))
    told: Json = {
        "session.id": each.session_id or trace.session_id,
        "user.id": each.user_id or trace.user_id,
        "langfuse.observation.cost_details": _json(each.cost_details),
        "langfuse.observation.metadata": _json(kept["own"]),
    }
    if "langfuse.observation.input" in content:
        told |= {
            "langfuse.observation.type": each.type.lower(),
            "langfuse.observation.level": each.level,
            "langfuse.observation.status_message": each.status_message,
            "langfuse.observation.model.name": each.model,
            "langfuse.observation.model.parameters": _json(each.model_parameters),
            "langfuse.observation.usage_details": _json(each.usage_details),
        }
    if not each.parent_observation_id:
        told |= {
            "langfuse.trace.name": trace.name,
            "langfuse.trace.tags": trace.tags or None,
            "langfuse.trace.input": _text(trace.input),
            "langfuse.trace.output": _text(trace.output),
        }
    if not _is_hex(each.id, 16):
        told["langfuse.observation.id"] = each.id
    return {**told, **found, **{key: text for key, text in content.items() if text is not None}}


def _content(each: Observation, found: Json, scope: str) -> dict[str, str | None]:
    """Name input and output as the span's convention does."""
    pair = (_text(each.input), _text(each.output))
    operation = found.get("gen_ai.operation.name")
    names = ("langfuse.observation.input", "langfuse.observation.output")
    if operation == "execute_tool":
        names = ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result")
    elif operation == "invoke_agent" and scope == "pydantic-ai":
        names = ("pydantic_ai.all_messages", "final_result")
    elif operation and all(text is None or _are_messages(text) for text in pair):
        names = ("gen_ai.input.messages", "gen_ai.output.messages")
    elif "openinference.span.kind" in found:
        names = ("input.value", "output.value")
    elif "traceloop.span.kind" in found:
        names = ("traceloop.entity.input", "traceloop.entity.output")
    return dict(zip(names, pair, strict=True))


def _are_messages(text: str) -> bool:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return isinstance(value, list) and all(
        isinstance(each, dict) and "parts" in each for each in value
    )


def _kept(metadata: Any) -> dict[str, Json]:
    """Take the metadata apart: what Langfuse kept of the span, and the user's ``own``."""
    left = dict(_object(metadata))
    found: dict[str, Json] = {}
    for name in _SECTIONS:
        section = dict(_object(left.pop(name, None)))
        for key in [key for key in left if key.startswith(f"{name}.")]:
            section[key[len(name) + 1 :]] = left.pop(key)
        found[name] = section
    return {**found, "own": left}


def _object(value: Any) -> Json:
    """Return an object that is one, or the JSON text of one; else an empty one."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
    return value if isinstance(value, dict) else {}


def _number(key: str, value: Any) -> Any:
    """Turn back into a number what Langfuse made a text of."""
    if not isinstance(value, str) or not _NUMBERS.match(key):
        return value
    try:
        number = msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value
    return number if isinstance(number, int | float) else value


def _text(value: Any) -> str | None:
    return None if value is None else as_text(value)


def _json(value: Any) -> str | None:
    return as_text(value) if value else None


def _nanoseconds(when: datetime | None) -> str | None:
    if when is None:
        return None
    passed = (when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH
    return str((passed.days * 86_400 + passed.seconds) * 10**9 + passed.microseconds * 1000)


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and _HEX.fullmatch(text) is not None


def _hex(text: str, length: int) -> str:
    """Return an id of OpenTelemetry; one that is none (of older SDKs) becomes one."""
    if _is_hex(text, length):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:length]
