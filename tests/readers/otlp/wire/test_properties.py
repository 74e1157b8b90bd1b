"""What holds for any spans."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.readers.otlp.wire.conftest import Event, Link, Span

from baton.model import InputError
from baton.readers.otlp.wire.conversations import group
from baton.readers.otlp.wire.sniff import is_otlp

TRACES = st.sampled_from(["t1", "t2", "t3", "t4"])
IDS = st.integers(1, 12)
LABELS = {"session.id": ["s1", "s2"], "gen_ai.conversation.id": ["c1", "c2", "s1"]}


@st.composite
def _attributes(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {"n": draw(st.integers(-5, 5)), "text": draw(st.text(max_size=5))}
    for key, values in LABELS.items():
        if draw(st.integers(0, 3)) == 0:
            found[key] = draw(st.sampled_from(values))
    return found


def _trace_id(trace: str) -> str:
    return f"{int(trace[1:]):032x}"


@st.composite
def _spans(draw: st.DrawFn) -> list[Span]:
    found = {}
    for trace, number in draw(st.lists(st.tuples(TRACES, IDS), max_size=15)):
        start = 1_700_000_000 + draw(st.integers(0, 9))
        links = draw(st.lists(st.tuples(TRACES, IDS), max_size=1))
        parent = draw(st.none() | IDS)
        found[trace, number] = Span(
            trace_id=_trace_id(trace),
            span_id=f"{number:016x}",
            parent_id=None if parent is None else f"{parent:016x}",
            name=f"{trace}/{number}",
            started=float(start),
            ended=float(start + draw(st.integers(0, 5))),
            attributes=draw(_attributes()),
            links=[Link(trace_id=_trace_id(t), span_id=f"{i:016x}") for t, i in links],
            status=draw(st.integers(0, 2)),
            scope=draw(st.sampled_from(["", "a"])),
            resource={"service.name": draw(st.sampled_from(["x", "y"]))},
        )
    return list(found.values())


@st.composite
def _logs(draw: st.DrawFn) -> list[Event]:
    return [
        Event(
            name=f"log {number}",
            at=draw(st.none() | st.just(1_700_000_003.0)),
            trace_id=draw(st.none() | TRACES.map(_trace_id)),
            span_id=draw(st.none() | IDS.map(lambda id_: f"{id_:016x}")),
            attributes=draw(_attributes()),
        )
        for number in range(draw(st.integers(0, 4)))
    ]


@given(_spans(), _logs(), st.randoms())
def test_the_order_of_spans_does_not_matter(
    spans: list[Span], logs: list[Event], random: Any
) -> None:
    expected = group(spans, logs)
    random.shuffle(spans)
    random.shuffle(logs)
    assert group(spans, logs) == expected


@given(_spans(), _logs())
def test_no_span_is_lost_and_none_comes_twice(spans: list[Span], logs: list[Event]) -> None:
    found = group(spans, logs)
    assert Counter(s.name for c in found for s in c.spans) == Counter(s.name for s in spans)
    for conversation in found:
        turns = [id(span) for turn in conversation.turns for span in turn]
        assert sorted(turns) == sorted(id(span) for span in conversation.spans)
    kept = [log for c in found for log in [*c.logs, *(e for s in c.spans for e in s.events)]]
    assert len(kept) == len({id(log) for log in kept}) <= len(logs)
    assert len({conversation.id for conversation in found}) == len(found)


@settings(max_examples=40, deadline=None)
@given(spans=_spans(), logs=_logs(), random=st.randoms())
def test_files_and_lines_and_forms_do_not_matter(
    wire: Any, spans: list[Span], logs: list[Event], random: Any
) -> None:
    expected = group(spans, logs)
    lines = [wire.line(span) for span in spans] + [wire.line(logs=[log]) for log in logs]
    random.shuffle(lines)
    half = len(lines) // 2
    records = wire.line(logs=logs)
    assert wire.read(b"".join(lines) or wire.line()) == expected
    assert wire.read(b"".join(lines[:half]), b"".join(lines[half:])) == expected
    assert wire.read(wire.export(spans, logs)) == expected
    assert wire.read(wire.gzip(wire.protobuf(wire.export(spans))), records) == expected
    assert wire.read(wire.jaeger(spans) if spans else b"", records) == expected


@settings(max_examples=60, deadline=None)
@given(spans=_spans(), cut=st.floats(0, 1), noise=st.binary(max_size=4), form=st.integers(0, 4))
def test_damage_is_an_error_or_counted_and_never_a_crash(
    wire: Any, spans: list[Span], cut: float, noise: bytes, form: int
) -> None:
    export = wire.export(spans)
    whole = [
        b"".join(wire.line(span) for span in spans),
        json.dumps(export, indent=1).encode(),
        wire.protobuf(export),
        wire.gzip(wire.line(*spans)),
        wire.framed([wire.zstd(wire.protobuf(export))]),
    ][form]
    at = int(len(whole) * cut)
    data = whole[:at] + noise + whole[at + len(noise) :]
    is_otlp(wire.file(data))
    with contextlib.suppress(InputError):
        found = wire.read(data, lost=[])
        assert sum(len(conversation.spans) for conversation in found) <= len(spans)
