"""What a record names as unknown is a field of its own that holds nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from baton.model import Trace, integrity_problems

Record = Callable[[str], Trace]
Find = Callable[[Trace, str], Any]


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        ("turn-1", "turn turn-1"),
        ("run-2", "run run-2"),
        ("call-2", "tool call call-2"),
        ("d1", "dispatch d1"),
    ],
)
@pytest.mark.parametrize("field", ["promt", "dispatch.prompt"])
def test_an_object_names_fields_of_its_own_as_unknown(
    record: Record, find: Find, id_: str, name: str, field: str
) -> None:
    trace = record("claude_two_dispatches")
    find(trace, id_).unknown.append(field)
    assert integrity_problems(trace) == [f"{name}: unknown names `{field}`, which is not a field"]


@pytest.mark.parametrize("field", ["promt", "dispatch.promt", "said.content", "input"])
def test_a_trace_names_fields_that_exist_as_unknown(record: Record, field: str) -> None:
    trace = record("claude_two_dispatches")
    trace.unknown.append(field)
    assert integrity_problems(trace) == [
        f"trace {trace.id}: unknown names `{field}`, which is not a field"
    ]


@pytest.mark.parametrize(
    ("id_", "field", "name"),
    [
        ("turn-1", "input", "turn turn-1"),
        ("run-2", "output", "run run-2"),
        ("call-2", "result", "tool call call-2"),
        ("d1", "prompt", "dispatch d1"),
    ],
)
def test_what_an_object_names_as_unknown_has_no_value(
    record: Record, find: Find, id_: str, field: str, name: str
) -> None:
    trace = record("claude_two_dispatches")
    find(trace, id_).unknown.append(field)
    assert integrity_problems(trace) == [
        f"{name}: `{field}` has a value but is listed in `unknown`"
    ]


def test_what_a_trace_names_as_unknown_of_itself_has_no_value(record: Record) -> None:
    trace = record("claude_two_dispatches")
    trace.state, trace.unknown = {}, ["state"]
    assert integrity_problems(trace) == [
        f"trace {trace.id}: `state` has a value but is listed in `unknown`"
    ]


def test_a_list_that_is_named_as_unknown_may_hold_something(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "run-2").unknown.append("steps")
    assert integrity_problems(trace) == []


def test_a_name_for_all_objects_of_a_kind_leaves_room_for_values(record: Record) -> None:
    trace = record("claude_two_dispatches")
    trace.unknown.append("dispatch.prompt")
    assert integrity_problems(trace) == []
