"""``known`` tells "there was none" from "it was not recorded"."""

from __future__ import annotations

import pytest

from baton.model import AgentRun, Content, Dispatch, Trace, known
from baton.testing import build


def trace_of(
    *,
    unknown: tuple[str, ...] = (),
    run: AgentRun | None = None,
    dispatch: Dispatch | None = None,
) -> Trace:
    parts: list[AgentRun | Dispatch] = [part for part in (run, dispatch) if part is not None]
    return build.trace(build.turn(*parts), unknown=list(unknown))


def test_a_none_that_nothing_names_is_known() -> None:
    run = AgentRun(id="run-1", agent="a")
    assert known(trace_of(run=run), run, "output")


def test_a_name_on_the_object_makes_a_field_unknown() -> None:
    run = AgentRun(id="run-1", agent="a", unknown=["output"])
    assert not known(trace_of(run=run), run, "output")


def test_a_list_that_the_object_names_is_unknown_though_it_holds_something() -> None:
    run = AgentRun(id="run-1", agent="a", inside=["flow"], unknown=["inside"])
    assert not known(trace_of(run=run), run, "inside")


def test_a_name_on_the_trace_makes_a_missing_value_unknown() -> None:
    dispatch = Dispatch(id="d1", kind="transfer", to_agent="b")
    assert not known(trace_of(unknown=("dispatch.prompt",), dispatch=dispatch), dispatch, "prompt")


def test_a_value_wins_over_a_name_on_the_trace() -> None:
    dispatch = Dispatch(id="d1", kind="transfer", to_agent="b", prompt=Content(text="go"))
    assert known(trace_of(unknown=("dispatch.prompt",), dispatch=dispatch), dispatch, "prompt")


@pytest.mark.parametrize("empty", [Content(), Content(text="")])
def test_content_that_was_recorded_as_empty_is_known(empty: Content) -> None:
    run = AgentRun(id="run-1", agent="a", output=empty)
    assert known(trace_of(unknown=("run.output",), run=run), run, "output")


def test_a_state_that_was_recorded_as_empty_is_known() -> None:
    trace = trace_of(unknown=("turn.state",))
    trace.turns[0].state = {}
    assert known(trace, trace.turns[0], "state")


def test_a_time_of_zero_is_known() -> None:
    run = AgentRun(id="run-1", agent="a", started=0.0)
    assert known(trace_of(unknown=("run.started",), run=run), run, "started")


def test_a_name_on_the_trace_wins_over_what_a_list_holds() -> None:
    """A list may be incomplete: calls were recorded, the texts between them were not."""
    run = AgentRun(id="run-1", agent="a", inside=["flow"])
    assert not known(trace_of(unknown=("run.inside",), run=run), run, "inside")


@pytest.mark.parametrize("field", ["agent", "status"])
def test_a_name_on_the_trace_wins_over_names_and_statuses(field: str) -> None:
    run = AgentRun(id="run-1", agent="main")
    assert not known(trace_of(unknown=(f"run.{field}",), run=run), run, field)


def test_a_name_on_the_trace_holds_for_its_own_kind_only() -> None:
    trace = trace_of(unknown=("run.input",))
    assert known(trace, trace.turns[0], "input")


def test_the_trace_names_its_own_fields_without_a_kind() -> None:
    trace = trace_of(unknown=("state",))
    assert not known(trace, trace, "state")
    assert known(trace, trace, "usage")


def test_a_name_on_the_trace_without_a_kind_says_nothing_of_turns() -> None:
    trace = trace_of(unknown=("state",))
    assert known(trace, trace.turns[0], "state")


@pytest.mark.parametrize("field", ["promt", "first_input", "__class__"])
def test_a_field_that_does_not_exist_is_an_error(field: str) -> None:
    trace = trace_of()
    with pytest.raises(AttributeError, match=field):
        known(trace, trace.turns[0], field)


def test_steps_are_known_when_all_kinds_of_them_are() -> None:
    run = AgentRun(id="run-1", agent="a", unknown=["steps.said"])
    trace = trace_of(run=run)
    assert [known(trace, run, f) for f in ("steps", "steps.said", "steps.tool_call")] == [
        False,
        False,
        True,
    ]


def test_unknown_steps_leave_no_kind_of_them_known() -> None:
    run = AgentRun(id="run-1", agent="a")
    trace = trace_of(run=run, unknown=("run.steps",))
    assert not known(trace, run, "steps.tool_call")
    assert known(trace_of(run=run, unknown=("run.steps.said",)), run, "steps.tool_call")


@pytest.mark.parametrize("name", ["turn.output.data", "turn.output"])
def test_the_data_of_an_output_is_unknown_where_a_source_tells_texts_alone(name: str) -> None:
    trace = trace_of(unknown=(name,))
    trace.turns[0].output = Content(text="It is Paris.")
    assert not known(trace, trace.turns[0], "output.data")
    assert known(trace, trace.turns[0], "output")
    assert known(trace_of(), trace.turns[0], "output.data")
