"""A program's own spans, and how a recording is written, change nothing about what the agents did.

Agents run inside web servers, call functions that the program traces, and send requests with HTTP
clients that trace themselves. Stores return attributes and spans in another order.
"""

from __future__ import annotations

import copy
import json
import random
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from baton import load_traces

from .exports import DATA, FILES, Export, spans_of

Change = Callable[[Export], None]


def times(span: dict[str, Any]) -> tuple[int, int]:
    """Return when a span began and ended, in nanoseconds; one that did not end ends at once."""
    started = int(span["startTimeUnixNano"])
    return started, int(span.get("endTimeUnixNano") or started)


def add(export: Export, scope: str, spans: list[dict[str, Any]]) -> None:
    """Add spans of another scope to an export."""
    scoped = {"scope": {"name": scope}, "spans": spans}
    export["resourceSpans"].append({"resource": {}, "scopeSpans": [scoped]})


def own(trace: str, number: int, name: str, at: tuple[int, int], **attributes: str) -> Export:
    """Return a span of the program."""
    listed = [
        {"key": k.replace("__", "."), "value": {"stringValue": v}} for k, v in attributes.items()
    ]
    return {
        "traceId": trace,
        "spanId": f"{zlib.crc32(name.encode()):08x}{number:08x}",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(at[0]),
        "endTimeUnixNano": str(at[1]),
        "attributes": listed,
    }  # fmt: skip


def around(scope: str, name: str, **attributes: str) -> Change:
    """Return a change: a span around each trace, as of a web server that runs the agents."""

    def change(export: Export) -> None:
        traces: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for span in spans_of(export):
            traces[span["traceId"]].append(span)
        ranges = {
            trace: (min(times(s)[0] for s in spans), max(times(s)[1] for s in spans))
            for trace, spans in traces.items()
        }
        made = []
        for number, (trace, spans) in enumerate(traces.items(), 1):
            ids = {span["spanId"] for span in spans}
            is_torn = any(s.get("parentSpanId") and s["parentSpanId"] not in ids for s in spans)
            first, last = ranges[trace]
            # It is a trace of its own because a thread of the program had lost its context.
            is_inside = any(a <= first and last <= b for t, (a, b) in ranges.items() if t != trace)
            if is_torn or is_inside:
                continue
            made.append(own(trace, number, name, (first, last), **attributes))
            for span in spans:
                if not span.get("parentSpanId"):
                    span["parentSpanId"] = made[-1]["spanId"]
        add(export, scope, made)

    return change


def between(scope: str, name: str, **attributes: str) -> Change:
    """Return a change: a span of a function between each span and its parent."""

    def change(export: Export) -> None:
        made = []
        known = {(span["traceId"], span["spanId"]) for span in spans_of(export)}
        for number, span in enumerate(spans_of(export), 1):
            parent = span.get("parentSpanId")
            if (span["traceId"], parent) in known:
                made.append(own(span["traceId"], number, name, times(span), **attributes))
                made[-1]["parentSpanId"] = parent
                span["parentSpanId"] = made[-1]["spanId"]
        add(export, scope, made)

    return change


def requests_below(export: Export) -> None:
    """Add a span of an HTTP client below each span that has none below it."""
    parents = {span.get("parentSpanId") for span in spans_of(export)}
    made = []
    for number, span in enumerate(spans_of(export), 1):
        if span["spanId"] not in parents:
            request = {"http__request__method": "POST", "server__address": "127.0.0.1"}
            made.append(own(span["traceId"], number, "POST", times(span), **request))
            made[-1]["parentSpanId"] = span["spanId"]
    add(export, "opentelemetry.instrumentation.httpx", made)


def other_order(export: Export) -> None:
    """Shuffle the attributes of spans, and the spans, each with its own resource and scope."""
    order = random.Random(5)
    parts = [
        {**group, "scopeSpans": [{**scoped, "spans": [span]}]}
        for group in export["resourceSpans"]
        for scoped in group["scopeSpans"]
        for span in scoped.get("spans", ())
    ]
    for span in spans_of(export):
        order.shuffle(span.get("attributes") or [])
    order.shuffle(parts)
    export["resourceSpans"] = parts


def sent_twice(export: Export) -> None:
    """Send all spans again, as an exporter does that got no answer."""
    export["resourceSpans"] += copy.deepcopy(export["resourceSpans"])


def other_service(export: Export) -> None:
    """Add attributes that nobody knows to spans and resources, and rename the service."""
    for span in spans_of(export):
        span.setdefault("attributes", []).append({"key": "zone", "value": {"stringValue": "b"}})
    for group in export["resourceSpans"]:
        named = {"key": "service.name", "value": {"stringValue": "checkout-production"}}
        pod = {"key": "k8s.pod.name", "value": {"stringValue": "checkout-7d9"}}
        group["resource"] = {"attributes": [named, pod]}


CHANGES: dict[str, Change] = {
    "a web server around": around(
        "opentelemetry.instrumentation.fastapi", "POST /chat", http__route="/chat"
    ),
    "a function around, marked for OpenInference": around(
        "shop.app", "handle", openinference__span__kind="CHAIN"
    ),
    "a function around, marked for Langfuse": around(
        "langfuse-sdk", "handle", langfuse__observation__type="span"
    ),
    "functions between": between("shop.app", "reserve", code__function__name="reserve"),
    "functions between, marked for OpenInference": between(
        "shop.app", "reserve", openinference__span__kind="CHAIN", input__value="1"
    ),
    "functions between, marked for Traceloop": between(
        "traceloop.tracer", "reserve.task", traceloop__span__kind="task",
        traceloop__entity__name="reserve",
    ),
    "functions between, marked for Langfuse": between(
        "langfuse-sdk", "reserve", langfuse__observation__type="span"
    ),
    "functions between, marked for Logfire": between(
        "logfire", "reserve", logfire__msg="reserve", logfire__span_type="span"
    ),
    "HTTP requests below": requests_below,
    "another order": other_order,
    "sent twice": sent_twice,
    "another service": other_service,
}  # fmt: skip


@cache
def recorded(file: Path) -> list[Any]:
    """Read a recording as it is."""
    return record_of(file)


def record_of(file: Path) -> list[Any]:
    """Read a recording, without what spans of the program may change: when a turn began and ended.

    Data that no rule reads is also left out, because an unknown attribute is such data.
    """
    read = msgspec.to_builtins(load_traces(file))
    for trace in read:
        del trace["source"]
        trace.pop("dropped", None)
        for turn in trace["turns"]:
            turn.pop("started", None)
            turn.pop("ended", None)
    return list(read)


def differing(file: Path, changes: list[Change], folder: Path) -> Iterator[str]:
    """Yield the name of a recording if changes change what is read from it."""
    export = json.loads(file.read_bytes())
    for change in changes:
        change(export)
    changed = folder / file.name
    changed.write_text(json.dumps(export))
    if record_of(changed) != recorded(file):
        yield str(file.relative_to(DATA))


@pytest.mark.heavy
@pytest.mark.parametrize("what", CHANGES)
def test_a_program_with_other_spans_has_the_same_record(what: str, tmp_path: Path) -> None:
    assert len(FILES) > 600
    changes = [CHANGES[what]]
    assert [name for file in FILES for name in differing(file, changes, tmp_path)] == []


def test_a_program_in_a_web_server_with_functions_and_a_client_has_the_same_record(
    tmp_path: Path,
) -> None:
    names = ("functions between", "HTTP requests below", "a web server around", "another order")
    changes = [CHANGES[name] for name in names]
    some = FILES[::7]
    assert [name for file in some for name in differing(file, changes, tmp_path)] == []
