"""`baton.testing`: one fault in a copy that is a sound record still."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import msgspec
import pytest

import baton
from baton.model import Trace, integrity_problems
from baton.testing import (
    FAULTS,
    Seeded,
    build,
    changed_value,
    dead_child,
    ignored_result,
    loop,
    unknown_target,
)

DATA = Path(__file__).parents[1] / "data"
FILES = (
    *sorted((DATA / "otel" / "a2a").glob("[dnp]*[a-z].json")),
    *sorted((DATA / "otel" / "pydantic-ai").glob("deleg*.json")),
    *sorted((DATA / "otel" / "strands").glob("swarm*.json")),
    DATA / "claude" / "current" / "01_correct_dispatch",
)


@cache
def traces() -> tuple[Trace, ...]:
    paths = [path for path in FILES if not path.stem.endswith("_bare")]
    return tuple(trace for path in paths for trace in baton.load_traces(path))


def delegate() -> Trace:
    (trace,) = baton.load_traces(DATA / "otel" / "a2a" / "delegate.json")
    return trace


def seeded(kind: str) -> Iterator[tuple[Trace, Trace, Seeded]]:
    for number, trace in enumerate(traces()):
        made = FAULTS[kind](trace, Random(number))
        if made is not None:
            yield trace, *made


@pytest.mark.parametrize("kind", FAULTS)
def test_a_trace_with_a_fault_is_a_sound_record(kind: str) -> None:
    made = list(seeded(kind))
    assert made
    for _, faulty, fault in made:
        assert integrity_problems(faulty) == []
        assert fault.kind == kind
        ids = msgspec.json.encode(faulty).decode()
        assert all(f'"{id_}"' in ids for id_ in fault.subject)


@pytest.mark.parametrize("kind", FAULTS)
def test_the_good_trace_is_not_changed(kind: str) -> None:
    before = [msgspec.json.encode(trace) for trace in traces()]
    differ = [
        msgspec.json.encode(good) != msgspec.json.encode(bad) for good, bad, _ in seeded(kind)
    ]
    assert all(differ)
    assert [msgspec.json.encode(trace) for trace in traces()] == before


@pytest.mark.parametrize("kind", FAULTS)
def test_the_same_seed_gives_the_same_fault(kind: str) -> None:
    once = [msgspec.json.encode(bad) for _, bad, _ in seeded(kind)]
    assert once == [msgspec.json.encode(bad) for _, bad, _ in seeded(kind)]


@pytest.mark.parametrize("kind", FAULTS)
def test_a_trace_without_hand_offs_has_no_place_for_a_fault(kind: str) -> None:
    bare = msgspec.structs.replace(delegate(), turns=[])
    assert FAULTS[kind](bare, Random(0)) is None


def test_an_ignored_result_gives_way_to_an_answer_of_ones_own() -> None:
    made = ignored_result(delegate(), Random(0), instead=["Ask again tomorrow."])
    assert made is not None
    (turn,) = made[0].turns
    assert turn.output is not None
    assert turn.output.text == "Ask again tomorrow."
    assert turn.dispatches[0].result == delegate().turns[0].dispatches[0].result


def test_a_loop_is_the_same_dispatch_four_times_or_more() -> None:
    made = loop(delegate(), Random(0))
    assert made is not None
    (turn,) = made[0].turns
    assert len(turn.dispatches) == len(made[1].subject) >= 4
    assert {d.to_agent for d in turn.dispatches} == {"billing"}


def test_a_misspelt_target_sets_nobody_to_work() -> None:
    made = unknown_target(delegate(), Random(0))
    assert made is not None
    (turn,) = made[0].turns
    assert [run.agent for run in turn.runs] == ["front_desk"]
    assert turn.dispatches[0].to_agent != "billing"
    assert turn.dispatches[0].status == "refused"


def test_a_dead_child_dies_in_four_ways() -> None:
    says = {found[1].says for seed in range(30) if (found := dead_child(delegate(), Random(seed)))}
    assert {words.rsplit(": ", 1)[1] for words in says} == {
        "failed",
        "unanswered",
        "empty",
        "error_text",
    }


@pytest.mark.parametrize("value", ["09:12", "17:40", "23:05:59", "22:22", "8:00"])
def test_a_changed_time_is_another_time(value: str) -> None:
    for seed in range(20):
        good = delegate()
        (turn,) = good.turns
        turn.dispatches[0].result = build.content(f"Departs at {value}")
        turn.output = build.content(f"Your train leaves at {value}")
        made = changed_value(good, Random(seed))
        assert made is not None
        said = made[0].turns[0].output
        assert said is not None
        assert said.text is not None
        changed = said.text.removeprefix("Your train leaves at ")
        assert changed != value
        hours, *others = (int(part) for part in changed.split(":"))
        assert hours < 24
        assert all(other < 60 for other in others)
