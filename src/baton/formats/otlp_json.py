"""Builds OTLP JSON: attribute values, spans, and the object of one trace.

A value is written in one of two ways. ``any_value`` keeps objects. ``flat_value`` writes them as
JSON text, as the conventions of OpenTelemetry ask for in attributes that Baton itself makes.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import msgspec

Json = dict[str, Any]


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""As written in protobuf's JSON."""


def attributes(values: Mapping[str, Any] | None) -> list[Json]:
    """Write attributes; objects stay objects."""
    return [
        {"key": utf8(str(key)), "value": any_value(value)} for key, value in (values or {}).items()
    ]


def any_value(value: Any) -> Json:
    """Write a value as OTLP does: int64 as text; objects stay objects."""
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, str):
        return {"stringValue": utf8(value)}
    if isinstance(value, int):
        return {"intValue": str(int(value))}
    if isinstance(value, float):
        value = float(value)
        return {"doubleValue": value if math.isfinite(value) else _NOT_FINITE[str(value)]}
    if isinstance(value, bytes | bytearray):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": attributes(value)}}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [any_value(each) for each in value]}}
    return {"stringValue": utf8(str(value))}


def utf8(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode.

    msgspec writes no subclasses of `str`, such as the `AgentText` that smolagents' agents return.
    """
    text = text if type(text) is str else str.__str__(text)
    return text if text.isascii() else text.encode(errors="replace").decode()


def flat_attributes(values: Mapping[str, Any]) -> list[Json]:
    """Write attributes, objects as JSON text; those without a value are left out."""
    return [
        {"key": key, "value": flat_value(value)}
        for key, value in values.items()
        if value is not None
    ]


def flat_value(value: Any) -> Json:
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
        return {"arrayValue": {"values": [flat_value(each) for each in value if each is not None]}}
    return {"stringValue": as_text(value)}


def as_text(value: Any) -> str:
    """Return a text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def resource_spans(scopes: list[Json], resource: Mapping[str, Any]) -> Json:
    """Write the spans of one resource."""
    return {"resource": {"attributes": flat_attributes(resource)}, "scopeSpans": scopes}


def scope_spans(name: str, spans: list[Json]) -> Json:
    """Write the spans of one instrumentation."""
    return {"scope": {"name": name} if name else {}, "spans": spans}


def in_order(spans: list[Json]) -> list[Json]:
    """Sort spans by their start."""
    return sorted(spans, key=lambda span: int(span.get("startTimeUnixNano") or 0))
