"""Arize Phoenix: the spans of a project as OTLP JSON."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Set
from typing import Any
from urllib.parse import quote

import msgspec

from baton.formats.otlp_json import Json, as_text, flat_value, in_order, resource_spans, scope_spans
from baton.model import BatonError, InputError
from baton.model.option_spelling import option

from .trace_pages import Name, NotFound, NotJson, Params, PullError, Query, Store, iso

_MADE_FROM = {
    r"openinference\.span\.kind": r"gen_ai\.operation\.name",
    r"llm\.(provider|system)": r"gen_ai\.(provider\.name|system)",
    r"session\.id": r"gen_ai\.conversation\.id",
    r"(llm|embedding)\.model_name": r"gen_ai\.(request|response)\.model",
    r"(llm|embedding)\.invocation_parameters": r"gen_ai\.request\..+",
    r"llm\.token_count\.(prompt|completion|total|prompt_details\.cache_(read|write))": (
        r"gen_ai\.usage\..+"
    ),
    r"llm\.input_messages\..+": r"gen_ai\.(input\.messages|system_instructions)",
    r"llm\.output_messages\..+": r"gen_ai\.output\.messages",
    r"llm\.finish_reason": r"gen_ai\.response\.finish_reasons",
    r"llm\.tools\.\d+\.tool\.json_schema": r"gen_ai\.tool\.definitions",
    r"tool\.name": r"gen_ai\.tool\.name",
    r"tool\.description": r"gen_ai\.tool\.description",
    r"tool\.id": r"gen_ai\.tool\.call\.id",
    r"tool\.parameters(\..+)?": r"gen_ai\.tool\.call\.arguments",
    r"output\.(value|mime_type)": r"gen_ai\.(response\.(id|model)|tool\.call\.result)",
}
_RULES = [(re.compile(made), re.compile(source)) for made, source in _MADE_FROM.items()]
_OPENINFERENCE = re.compile(
    r"(openinference|llm|embedding|tool|retrieval|reranker|document|agent|graph|input|output)\..+"
)


def derived(keys: Set[str]) -> Set[str]:
    """Return the attributes of a span that Phoenix added; none if an instrumentation set them.

    An OpenInference instrumentation that keeps OpenTelemetry's attributes is recognised by an
    attribute that Phoenix never adds.
    """
    if "gen_ai.operation.name" not in keys:
        return frozenset()
    sources = [key for key in keys if key.startswith("gen_ai.")]
    rules = [made for made, source in _RULES if any(map(source.fullmatch, sources))]
    made_here = frozenset(key for key in keys if any(made.fullmatch(key) for made in rules))
    native = any(_OPENINFERENCE.fullmatch(key) for key in keys - made_here)
    return frozenset() if native else made_here


_FLAT = re.compile(
    r"(?:metadata|tool\.parameters|llm\.prompt_template\.variables|.*\.document\.metadata)(?=\.)"
)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")


class Value(msgspec.Struct):
    """An attribute's value: at most one field is set."""

    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None
    bytes_value: str | None = None
    array_value: Values | None = None


class Values(msgspec.Struct):
    """The values of a list."""

    values: list[Value] = []


class Attribute(msgspec.Struct):
    """An attribute."""

    key: str
    value: Value | None = None


class Event(msgspec.Struct):
    """A span event."""

    name: str | None = None
    time_unix_nano: int | None = None
    attributes: list[Attribute] | None = None


class Status(msgspec.Struct):
    """How a span ended: 0 (unset), 1 (ok) or 2 (error)."""

    code: int | None = None
    message: str | None = None


class Span(msgspec.Struct):
    """A span."""

    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    name: str | None = None
    start_time_unix_nano: int | None = None
    end_time_unix_nano: int | None = None
    attributes: list[Attribute] | None = None
    events: list[Event] | None = None
    status: Status | None = None


class SpanPage(msgspec.Struct):
    """An answer with spans."""

    data: list[Span]
    next_cursor: str | None = None


def trace_of(spans: list[Span], project: str) -> Json:
    """Write the spans of a trace as OTLP JSON."""
    resource = {"openinference.project.name": project}
    otlp_spans: list[Json] = []
    for span in spans:
        status = span.status or Status()
        ended = {"code": status.code or None, "message": status.message or None}
        fields = {
            "traceId": span.trace_id,
            "spanId": span.span_id,
            "parentSpanId": span.parent_span_id or None,
            "name": span.name,
            "startTimeUnixNano": _nanoseconds(span.start_time_unix_nano),
            "endTimeUnixNano": _nanoseconds(span.end_time_unix_nano),
            "attributes": _attributes(span.attributes),
            "events": [
                {
                    "name": event.name or "",
                    "timeUnixNano": _nanoseconds(event.time_unix_nano) or "0",
                    "attributes": _attributes(event.attributes),
                }
                for event in span.events or ()
            ],
            "status": {key: value for key, value in ended.items() if value},
        }
        otlp_spans.append(
            {key: value for key, value in fields.items() if value not in (None, [], {})}
        )
    written = in_order(otlp_spans)
    return {"resourceSpans": [resource_spans([scope_spans("", written)], resource)]}


def _nanoseconds(value: int | None) -> str | None:
    return None if value is None else str(value)


def _attributes(pairs: list[Attribute] | None) -> list[Json]:
    """Write attributes; those that were one JSON text are joined again."""
    written: list[Json] = []
    texts: dict[str, Json] = {}
    added = derived({pair.key for pair in pairs or ()})
    for pair in pairs or ():
        if pair.key in added:
            continue
        flat = _FLAT.match(pair.key)
        if flat is None:
            written.append({"key": pair.key, "value": _value(pair.value or Value())})
        else:
            parts = texts.setdefault(flat.group(), {})
            parts[pair.key[flat.end() + 1 :]] = _plain(pair.value or Value())
    for key, parts in texts.items():
        tree: Json = {}
        for name, value in parts.items():
            at = tree
            *way, last = name.split(".")
            for step in way:
                below = at.setdefault(step, {})
                at = below if isinstance(below, dict) else {}
            at[last] = value
        written.append({"key": key, "value": flat_value(as_text(_lists(tree)))})
    return written


def _value(value: Value) -> Json:
    if value.array_value is not None:
        return {"arrayValue": {"values": [_value(each) for each in value.array_value.values]}}
    if value.bytes_value is not None and _HEX.fullmatch(value.bytes_value):
        return {"bytesValue": base64.b64encode(bytes.fromhex(value.bytes_value)).decode()}
    plain = _plain(value)
    if value.double_value is not None:
        return {"doubleValue": plain}
    return {} if plain is None else flat_value(plain)


def _plain(value: Value) -> Any:
    if value.array_value is not None:
        return [_plain(each) for each in value.array_value.values]
    if value.int_value is not None:
        return int(value.int_value)
    held = (value.string_value, value.bool_value, value.double_value, value.bytes_value)
    return next((each for each in held if each is not None), None)


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    values = [_lists(value) for value in tree.values()]
    if tree and list(tree) == [str(number) for number in range(len(tree))]:
        return values
    return dict(zip(tree, values, strict=True))


AT_ONCE = 20  # traces per request
PAGE = 1000  # the most that an answer holds


class _Trace(msgspec.Struct):
    trace_id: Name


class _TracePage(msgspec.Struct):
    data: list[_Trace]
    next_cursor: Name | None = None


async def traces(
    store: Store, query: Query, *, project: str = "default", page: int = PAGE
) -> AsyncIterator[Json]:
    """Yield the traces that start in the time range, oldest first; or those that are named.

    ``page`` is the number of traces or spans per request.

    Raises:
        InputError: no such project.
        PullError: as ``Store.get`` does; or a named trace does not exist.
    """
    base = f"/v1/projects/{quote(project, safe='')}"
    missing: list[str] = []
    async for ids in _in_batches(_ids(store, base, query, page)):
        spans: dict[str, list[Span]] = {}
        params: Params = [*(("trace_id", trace_id) for trace_id in ids), ("limit", page)]
        try:
            async for span in store.listed(f"{base}/spans/otlpv1", SpanPage, params, kept=True):
                spans.setdefault(span.trace_id, []).append(span)
        except NotFound as error:
            raise _worded(error) from None
        for trace_id in ids:
            if trace_id in spans:
                yield trace_of(spans[trace_id], project)
            else:
                missing.append(trace_id)
    if missing and query.traces:
        raise PullError(f"project `{project}` of {store.url} has no trace {', '.join(missing)}")


async def _in_batches(ids: AsyncIterator[str]) -> AsyncIterator[list[str]]:
    batch: list[str] = []
    async for each in ids:
        batch.append(each)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


async def _ids(store: Store, base: str, query: Query, size: int) -> AsyncIterator[str]:
    """Name the traces to fetch."""
    if query.traces:
        for trace_id in dict.fromkeys(query.traces):
            yield trace_id.lower()
        return
    params: Params = [
        ("start_time", iso(query.since)),
        ("end_time", iso(query.until)),
        ("session_identifier", query.session),
        ("order", "asc"),
        ("limit", size),
    ]
    try:
        async for each in store.listed(f"{base}/traces", _TracePage, params):
            yield each.trace_id
    except NotJson:
        raise PullError(
            f"{store.url} lists no traces: is that Phoenix, and a recent version? "
            f"With an older one, name each trace with {option('trace')}"
        ) from None
    except NotFound as error:
        raise _worded(error) from None


def _worded(error: NotFound) -> BatonError:
    return InputError(f"{error}; is {option('project')} right?") if error.status == 404 else error
