"""Langfuse: its observations, and the spans they were made from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from baton.formats.otlp_json import (
    Json,
    as_text,
    flat_attributes,
    in_order,
    resource_spans,
    scope_spans,
)

from .trace_pages import Name, NotFound, NotJson, Params, PullError, Query, Store, iso

_NUMBERS = re.compile(r"(?:gen_ai\.(?:aggregated_)?usage|llm\.token_count|llm\.cost)\.")
_HEX = re.compile(r"[0-9a-f]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECTIONS = ("attributes", "resourceAttributes", "scope")


class Observation(msgspec.Struct, rename="camel"):
    """An observation in the API's answer, of any version."""

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
        parent = each.parent_observation_id
        failed = each.level == "ERROR"
        written = {
            "traceId": _hex(each.trace_id or trace.id, 32),
            "spanId": _hex(each.id, 16),
            "parentSpanId": _hex(parent, 16) if parent else None,
            "name": each.name,
            "startTimeUnixNano": _nanoseconds(each.start_time),
            "endTimeUnixNano": _nanoseconds(
                each.start_time if each.type == "EVENT" else each.end_time
            ),
            "attributes": flat_attributes(_attributes(each, trace, kept)),
            "status": {"code": 2, "message": each.status_message or ""} if failed else None,
        }
        groups.setdefault((resource, scope), []).append(
            {key: value for key, value in written.items() if value is not None}
        )
    return {
        "resourceSpans": [
            resource_spans([scope_spans(scope, in_order(spans))], resources[resource])
            for (resource, scope), spans in groups.items()
        ]
    }


def _attributes(each: Observation, trace: Trace, kept: dict[str, Json]) -> Json:
    own = {key: _number(key, value) for key, value in kept["attributes"].items()}
    pair = (_text(each.input), _text(each.output))
    operation = own.get("gen_ai.operation.name")
    names = ("langfuse.observation.input", "langfuse.observation.output")
    if operation == "execute_tool":
        names = ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result")
    elif operation == "invoke_agent" and kept["scope"].get("name", "") == "pydantic-ai":
        names = ("pydantic_ai.all_messages", "final_result")
    elif operation and all(text is None or _are_messages(text) for text in pair):
        names = ("gen_ai.input.messages", "gen_ai.output.messages")
    elif "openinference.span.kind" in own:
        names = ("input.value", "output.value")
    elif "traceloop.span.kind" in own:
        names = ("traceloop.entity.input", "traceloop.entity.output")
    content = dict(zip(names, pair, strict=True))
    attributes: Json = {
        "session.id": each.session_id or trace.session_id,
        "user.id": each.user_id or trace.user_id,
        "langfuse.observation.cost_details": _json(each.cost_details),
        "langfuse.observation.metadata": _json(kept["own"]),
    }
    if "langfuse.observation.input" in content:
        attributes |= {
            "langfuse.observation.type": each.type.lower(),
            "langfuse.observation.level": each.level,
            "langfuse.observation.status_message": each.status_message,
            "langfuse.observation.model.name": each.model,
            "langfuse.observation.model.parameters": _json(each.model_parameters),
            "langfuse.observation.usage_details": _json(each.usage_details),
        }
    if not each.parent_observation_id:
        attributes |= {
            "langfuse.trace.name": trace.name,
            "langfuse.trace.tags": trace.tags or None,
            "langfuse.trace.input": _text(trace.input),
            "langfuse.trace.output": _text(trace.output),
        }
    if not _is_hex(each.id, 16):
        attributes["langfuse.observation.id"] = each.id
    return {
        **attributes,
        **own,
        **{key: text for key, text in content.items() if text is not None},
    }


def _are_messages(text: str) -> bool:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return isinstance(value, list) and all(
        isinstance(each, dict) and "parts" in each for each in value
    )


def _kept(metadata: Any) -> dict[str, Json]:
    """Split the metadata: what Langfuse kept of the span, and the user's ``own``."""
    left = dict(_object(metadata))
    sections: dict[str, Json] = {}
    for name in _SECTIONS:
        section = dict(_object(left.pop(name, None)))
        for key in [key for key in left if key.startswith(f"{name}.")]:
            section[key[len(name) + 1 :]] = left.pop(key)
        sections[name] = section
    return {**sections, "own": left}


def _object(value: Any) -> Json:
    """Return an object, also from its JSON text; else an empty one."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
    return value if isinstance(value, dict) else {}


def _number(key: str, value: Any) -> Any:
    """Convert a text that Langfuse made from a number back to a number."""
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
    """Return an OpenTelemetry id; other ids (of older SDKs) are converted to one."""
    if _is_hex(text, length):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:length]


PAGE = 1000  # observations per answer: Langfuse's maximum
_OBSERVATIONS = "/api/public/v2/observations"
_TRACES = "/api/public/traces"
_FIELDS = "core,basic,time,io,metadata,model,usage,trace_context"
_SHORT = 200  # characters after which a value of the metadata is truncated, unless requested
_NO_SUCH_ROUTE = (404, 405, 501)


class _Cursor(msgspec.Struct):
    cursor: Name | None = None


class _Observations(msgspec.Struct):
    data: list[Observation]
    meta: _Cursor | None = None

    @property
    def next_cursor(self) -> str | None:
        return self.meta.cursor if self.meta else None


class _Listed(msgspec.Struct):
    id: Name


class _Pages(msgspec.Struct, rename="camel"):
    page: int
    total_pages: int = 0


class _Traces(msgspec.Struct):
    data: list[_Listed]
    meta: _Pages

    @property
    def next_cursor(self) -> str | None:
        more = self.data and self.meta.page < self.meta.total_pages
        return str(self.meta.page + 1) if more else None


async def traces(store: Store, query: Query, *, page: int = PAGE) -> AsyncIterator[Json]:
    """Yield the traces with an observation in the time range, oldest first; or those named.

    ``page`` is the number of observations per request.

    Raises:
        PullError: like ``Store.get``; or a named trace does not exist.
    """
    try:
        await store.get(_OBSERVATIONS, _Observations, [("limit", 1), ("fields", "core")])
    except NotFound as error:
        if error.status not in _NO_SUCH_ROUTE:
            raise
        newest = False
    except NotJson:
        newest = False
    else:
        newest = True

    missing: list[str] = []
    ids = list(dict.fromkeys(query.traces))
    if not ids:
        ids = await (_ids_by_v2 if newest else _ids_by_v1)(store, query, page)
    for trace_id in ids:
        trace = await (_by_v2(store, trace_id, page) if newest else _by_v1(store, trace_id))
        if trace is not None and query.session in (None, trace.session_id):
            yield trace_of(trace)
        else:
            missing.append(trace_id)
    if missing and query.traces:
        where = f" of session `{query.session}`" if query.session else ""
        raise PullError(f"{store.url} has no observations of trace {', '.join(missing)}{where}")


async def _ids_by_v2(store: Store, query: Query, size: int) -> list[str]:
    ids: dict[str, None] = {}
    params: Params = [
        ("fields", "core,basic"),
        ("fromStartTime", iso(query.since)),
        ("toStartTime", iso(query.until)),
        ("sessionId", query.session),
    ]
    async for each in _pages(store, params, size, kept=False):
        # a server that does not know the filter `sessionId` returns all
        if each.trace_id and query.session in (None, each.session_id):
            ids[each.trace_id] = None
    return list(ids)[::-1]  # the newest came first


async def _by_v2(store: Store, trace_id: str, size: int) -> Trace | None:
    """Fetch a trace without truncated metadata."""
    params: list[tuple[str, str | int | None]] = [("traceId", trace_id), ("fields", _FIELDS)]
    observations = [each async for each in _pages(store, params, size)]
    cut = sorted({key for each in observations for key in _cut(each.metadata)})
    if cut:
        params.append(("expandMetadata", ",".join(cut)))
        observations = [each async for each in _pages(store, params, size)]
    if not observations:
        return None
    return Trace(
        id=trace_id,
        name=next((each.trace_name for each in observations if each.trace_name), None),
        session_id=next((each.session_id for each in observations if each.session_id), None),
        user_id=next((each.user_id for each in observations if each.user_id), None),
        tags=next((each.tags for each in observations if each.tags), None),
        observations=observations,
    )


def _pages(
    store: Store, params: Params, size: int, *, kept: bool = True
) -> AsyncIterator[Observation]:
    all_params = [*params, ("limit", size)]
    return store.listed(_OBSERVATIONS, _Observations, all_params, kept=kept)


def _cut(metadata: Any, prefix: str = "") -> list[str]:
    """Return what may have been truncated, by Langfuse's paths."""
    if not isinstance(metadata, dict):
        return []
    paths: list[str] = []
    for key, value in metadata.items():
        if isinstance(value, str) and len(value) >= _SHORT:
            paths.append(f"{prefix}{key}")
        paths += _cut(value, f"{prefix}{key}.")
    return paths


async def _ids_by_v1(store: Store, query: Query, size: int) -> list[str]:
    params: Params = [
        ("fromTimestamp", iso(query.since)),
        ("toTimestamp", iso(query.until)),
        ("sessionId", query.session),
        ("orderBy", "timestamp.asc"),
        ("fields", "core"),
        ("limit", min(size, 100)),
    ]
    ids: dict[str, None] = {}
    try:
        async for each in store.listed(_TRACES, _Traces, params, by="page"):
            ids[each.id] = None
    except NotFound as error:
        if error.status not in _NO_SUCH_ROUTE:
            raise
        raise PullError(f"{error}; is {store.url} the address of Langfuse?") from None
    return list(ids)


async def _by_v1(store: Store, trace_id: str) -> Trace | None:
    try:
        trace = await store.get(f"{_TRACES}/{quote(trace_id, safe='')}", Trace)
    except NotFound as error:
        if error.status == 404:
            return None
        raise
    return trace if trace.observations else None
