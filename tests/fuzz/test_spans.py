"""Spans in memory, of every convention: nothing is lost quietly, and nothing crashes."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.readers.otlp.spans import Event, Span, read_spans

from baton.model import Trace
from baton.readers.otlp.span import repaired, tame

from .conventions import CONVENTIONS, Made, Story, told
from .corpus import conversations
from .counts import tries
from .harm import ODD, harmed
from .outcome import check

SEEDS = st.integers(0, 2**48)
_IDS = [f"{number:016x}" for number in range(1, 9)]
_TIMES = [None, 0.0, -1.0, 1e300, 1_700_000_000.0, 1_700_000_001.5, 1_700_000_000.0]


def _bent(spans: list[Span], dice: random.Random) -> list[Span]:
    """Change attributes, ids, parents, clocks and order of spans."""
    bent = list(spans)
    for _ in range(dice.choice((1, 1, 2, 5, 9))):
        at = dice.randrange(len(bent))
        span, other = bent[at], dice.choice(bent)
        match dice.randrange(10):
            case 0:
                del bent[at]
            case 1:
                bent.append(msgspec.structs.replace(span, name=other.name))
            case 2:
                bent[at] = msgspec.structs.replace(span, parent_id=other.span_id)
            case 3:
                bent[at] = msgspec.structs.replace(span, span_id=other.span_id)
            case 4:
                bent[at] = msgspec.structs.replace(span, started=dice.choice(_TIMES))
            case 5:
                bent[at] = msgspec.structs.replace(span, ended=dice.choice(_TIMES))
            case 6:
                bent[at] = msgspec.structs.replace(span, scope=other.scope)
            case 7:
                attributes = {**span.attributes, **other.attributes}
                bent[at] = msgspec.structs.replace(span, attributes=attributes)
            case _:
                attributes = sound(_objects(harmed(span.attributes, dice)))
                bent[at] = msgspec.structs.replace(span, attributes=attributes)
        bent = bent or [span]
    if dice.random() < 0.3:
        dice.shuffle(bent)
    return bent


def sound(value: Any) -> Any:
    """Make text Unicode and integers short, as each wire does."""
    if isinstance(value, str):
        return repaired(value)
    if isinstance(value, dict):
        return {repaired(key): sound(item) for key, item in value.items()}
    return [sound(item) for item in value] if isinstance(value, list) else tame(value)


def _objects(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}


@settings(max_examples=tries(6000), suppress_health_check=[HealthCheck.too_slow])
@given(SEEDS)
def test_recorded_spans_bent_in_any_way_make_sound_records(seed: int) -> None:
    dice = random.Random(seed)
    chosen = dice.choice(conversations())
    for trace in read_spans(_bent(chosen.spans, dice), chosen.logs):
        check(trace)


@st.composite
def _any_spans(draw: st.DrawFn) -> list[Span]:
    """Spans whose attributes are those of some convention, with any values in them."""
    keys = sorted({key for make in CONVENTIONS.values() for key in make.keys})
    names = sorted({value for make in CONVENTIONS.values() for value in make.words})
    junk = (
        st.sampled_from(ODD).map(sound)
        | st.sampled_from(names)
        | st.integers(-5, 5)
        | st.text(max_size=4)
    )
    events = st.builds(
        Event,
        name=st.sampled_from(
            ["gen_ai.choice", "exception", "gen_ai.user.message", "", "api_request"]
        ),
        at=st.sampled_from(_TIMES),
        attributes=st.dictionaries(st.sampled_from(keys), junk, max_size=3),
        body=junk,
    )
    spans = st.builds(
        Span,
        trace_id=st.sampled_from(["0" * 31 + "1", "0" * 31 + "2"]),
        span_id=st.sampled_from(_IDS),
        parent_id=st.none() | st.sampled_from(_IDS),
        name=st.sampled_from(names),
        started=st.sampled_from(_TIMES),
        ended=st.sampled_from(_TIMES),
        attributes=st.dictionaries(st.sampled_from(keys), junk, max_size=8),
        events=st.lists(events, max_size=2),
        status=st.sampled_from([0, 1, 2, 7]),
        message=st.none() | st.sampled_from(names),
        scope=st.sampled_from(sorted({make.scope for make in CONVENTIONS.values()})),
    )
    return draw(st.lists(spans, max_size=8))


@settings(
    max_examples=tries(500),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(_any_spans())
def test_attributes_of_any_kind_in_any_span_make_sound_records(spans: list[Span]) -> None:
    for trace in read_spans(spans, []):
        check(trace)


def _assert_all_told(made: Made, traces: list[Trace]) -> None:
    """Check that what was done stands in the records."""
    found = told(traces)
    assert made.agents <= found.agents
    assert made.tools <= found.tools
    assert made.words <= found.words
    assert made.tokens == found.tokens


@settings(max_examples=tries(1400))
@given(SEEDS, st.sampled_from(sorted(CONVENTIONS)))
def test_agents_tools_texts_and_tokens_of_sound_spans_are_all_told(seed: int, name: str) -> None:
    made = Story(CONVENTIONS[name], random.Random(seed)).made()
    traces = read_spans(made.spans, [])
    for trace in traces:
        check(trace)
    _assert_all_told(made, traces)


@settings(max_examples=tries(420))
@given(SEEDS, st.sampled_from(sorted(CONVENTIONS)))
def test_spans_in_any_order_are_the_same_record(seed: int, name: str) -> None:
    dice = random.Random(seed)
    spans = Story(CONVENTIONS[name], dice).made().spans
    expected = read_spans(spans, [])
    assert read_spans(dice.sample(spans, len(spans)), []) == expected
