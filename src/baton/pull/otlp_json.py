"""Builds OTLP JSON: attribute values, spans, and the object of one trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

Json = dict[str, Any]


def attributes(values: Mapping[str, Any]) -> list[Json]:
    """Write attributes; those without a value are left out."""
    return [
        {"key": key, "value": any_value(value)}
        for key, value in values.items()
        if value is not None
    ]


def any_value(value: Any) -> Json:
    """Write a value as OTLP does: int64 as text, an object as JSON text."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, list) and not any(isinstance(each, dict | list) for each in value):
        return {"arrayValue": {"values": [any_value(each) for each in value if each is not None]}}
    return {"stringValue": as_text(value)}


def as_text(value: Any) -> str:
    """Return a text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def resource_spans(scopes: list[Json], resource: Mapping[str, Any]) -> Json:
    """Write the spans of one resource."""
    return {"resource": {"attributes": attributes(resource)}, "scopeSpans": scopes}


def scope_spans(name: str, spans: list[Json]) -> Json:
    """Write the spans of one instrumentation."""
    return {"scope": {"name": name} if name else {}, "spans": spans}


def in_order(spans: list[Json]) -> list[Json]:
    """Sort spans by their start."""
    return sorted(spans, key=lambda span: int(span.get("startTimeUnixNano") or 0))
