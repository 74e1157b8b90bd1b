"""What the first model request of a run held beside its input: ``AgentRun.context``."""

from __future__ import annotations

from pathlib import Path

import pytest

import baton
from baton.model import AgentRun, Trace, known

from .spans import agent, call, model, read, tool, using

OTEL = Path(__file__).parents[2] / "data" / "otel"


def run_of(trace: Trace, agent: str) -> AgentRun:
    return next(run for turn in trace.turns for run in turn.runs if run.agent == agent)


def said_by(trace: Trace, agent: str) -> list[str]:
    return [step.id for step in run_of(trace, agent).steps]


@pytest.mark.parametrize("recording", ["sequential_v1_2", "sequential_content"])
def test_adk_tells_the_next_agent_what_others_said(recording: str) -> None:
    trace = baton.load_traces(OTEL / "google-adk" / f"{recording}.json")[0]
    last = run_of(trace, "headline_writer")
    assert last.input is not None
    assert last.input.text == "Write about the bridge"
    assert [ref.id for ref in last.context or []] == [
        *said_by(trace, "reporter"),
        *said_by(trace, "checker"),
    ]


def test_what_adk_retells_is_no_input_of_the_agent_that_gets_control() -> None:
    trace = baton.load_traces(OTEL / "google-adk" / "transfer_content.json")[0]
    run = run_of(trace, "booking_agent")
    assert run.input is not None
    assert run.input.text == "Book a flight to Paris"
    texts = [ref.text or "" for ref in run.context or []]
    assert any("AF1" in text for text in texts)


def test_a_second_turn_was_given_the_first() -> None:
    trace = baton.load_traces(OTEL / "google-adk" / "transfer_two_turns_legacy.json")[0]
    again = trace.turns[1].runs[0]
    assert trace.turns[0].id in [ref.id for ref in again.context or []]


def test_an_agent_with_its_own_history_was_given_nothing_else() -> None:
    trace = baton.load_traces(OTEL / "pydantic-ai" / "delegation.json")[0]
    runs = [run for turn in trace.turns for run in turn.runs]
    assert [run.context for run in runs] == [[] for _ in runs]


def test_records_of_version_1_do_not_tell_it() -> None:
    trace = baton.load_traces(OTEL / "google-adk" / "sequential_v1_2.json")[0]
    run = trace.turns[0].runs[0]
    run.context = None
    assert known(trace, run, "context")
    trace.schema_version = 1
    assert not known(trace, run, "context")


def test_a_history_from_elsewhere_is_no_later_step_that_repeats_it() -> None:
    history = [
        {"role": "user", "content": "Is Hel deep?"},
        {"role": "assistant", "parts": [{"type": "tool_call", **call("pilot", task="Check Hel")}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "response": "Hel is 2 m"}]},
        {"role": "user", "content": "And again?"},
    ]
    turn = read(
        agent(
            "boss",
            model(hears=history, calls=[call("pilot", "c1", task="Check Hel")]),
            tool(
                "pilot",
                agent("pilot", model("Hel is 2 m", hears="Check Hel")),
                id_="c1",
                args={"task": "Check Hel"},
                result="Hel is 2 m",
            ),
            model("Still shallow."),
        )
    )
    refs = turn.runs[0].context or []
    assert [ref.id for ref in refs] == [None, None, None]
    assert [ref.text for ref in refs] == [
        "Is Hel deep?",
        '["pilot",{"task":"Check Hel"}]',
        "Hel is 2 m",
    ]


def test_the_context_that_a_service_keeps_is_unknown() -> None:
    (trace,) = baton.load_traces(OTEL / "microsoft-agent-framework" / "kept_by_service.json")
    first, again = trace.turns
    assert first.runs[0].context == []
    assert again.runs[0].context is None
    assert not known(trace, again.runs[0], "context")


def test_the_context_before_an_answer_that_a_request_continues_is_unknown() -> None:
    traces = baton.load_traces(OTEL / "openai-agents-traceai" / "kept_by_service.json")
    first, again = [trace.turns[0].runs for trace in traces]
    assert [run.context for run in first] == [[], []]
    assert [run.context for run in again] == [None]


def test_an_id_that_a_program_gives_its_conversation_does_not_hide_the_context() -> None:
    kept = f"conv_{'0123456789abcdef' * 3}"
    for id_, told in (("conv_17", True), (kept, False)):
        asked = using(model("Hi.", hears="Hello?"), **{"gen_ai.conversation.id": id_})
        run = read(agent("boss", asked)).runs[0]
        assert ("context" not in run.unknown) is told


def test_messages_of_a_later_request_are_no_context() -> None:
    """OpenInference writes all requests of an agent of Google ADK into one span."""
    (trace,) = baton.load_traces(OTEL / "openinference-added" / "google_adk_nested.json")
    first = trace.turns[0].runs[0]
    assert first.context is None
    assert not known(trace, first, "context")
