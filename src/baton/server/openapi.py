"""The OpenAPI document of the API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from baton import __version__
from baton.model.filter import Field
from baton.session.server_rows import Failure

from .endpoints import API, Endpoint


def openapi(endpoints: Sequence[Endpoint], outside: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI document of endpoints below ``/api/v1``, and of those ``outside``."""
    types = [each.answer for each in (*endpoints, *outside)] + [
        each.body for each in endpoints if each.body is not None
    ]
    reference = "#/components/schemas/{name}"
    shapes, parts = msgspec.json.schema_components([*types, Failure], ref_template=reference)
    schemas = dict(zip(map(_key, types), shapes, strict=False))
    failure = {"description": "What is wrong, and what to do", "content": _content(shapes[-1])}
    paths: dict[str, Any] = {}
    for each, base in [*((one, API) for one in endpoints), *((one, "") for one in outside)]:
        path = base + each.path.replace(":int", "")
        media = each.media.partition(";")[0]
        operation: dict[str, Any] = {
            "summary": each.summary,
            "parameters": _parameters(each),
            "responses": {
                "200": {
                    "description": each.summary,
                    "content": _content(schemas[_key(each.answer)], media),
                },
                "default": failure,
            },
            "security": [] if each.right is None else [{"key": []}],
        }
        if each.body is not None:
            body = {"required": True, "content": _content(schemas[_key(each.body)])}
            operation["requestBody"] = body
        paths.setdefault(path, {})[each.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Baton",
            "version": __version__,
            "description": "Conversations of agents, their dispatches and scores.",
        },
        "paths": paths,
        "components": {
            "schemas": parts,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _key(type_: Any) -> str:
    return repr(type_)


def _content(schema: Any, media: str = "application/json") -> dict[str, Any]:
    return {media: {"schema": schema}}


_FORMS = {
    "text": "A name or a glob; commas separate alternatives, `!` excludes one.",
    "number": "A number, or a comparison such as `>=2`.",
    "seconds": "A duration, such as `>=2s`.",
    "time": "A comparison with a time, such as `>=2026-01-31`.",
}


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for name, is_number in re.findall(r"\{(\w+)(:int)?\}", endpoint.path):
        schema = {"type": "integer" if is_number else "string"}
        made.append({"name": name, "in": "path", "required": True, "schema": schema})
    if endpoint.right is None:
        return made
    shape = msgspec.json.schema(endpoint.params)
    for definition in shape["$defs"].values():
        for name, schema in definition["properties"].items():
            made.append({"name": name, "in": "query", "schema": schema})
    for name, field in endpoint.fields.items():
        made.append({"name": name, "in": "query", "schema": _field_schema(field)})
    return made


def _field_schema(field: Field) -> dict[str, Any]:
    values = f" One of {', '.join(field.values)}." if field.values else ""
    return {"type": "string", "description": _FORMS[field.kind] + values}
