"""Runs as lists of messages: Who&When, Magentic-One, tau-bench."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import ROOT

from baton.model import GotBack, HandedOff, InputError, Said, ToolCall, Trace, known
from baton.readers import load_traces

DATA = ROOT / "tests" / "data" / "chat_history"


def _read(name: str) -> Trace:
    (trace,) = load_traces([DATA / name])
    return trace


def test_speakers_of_a_group_chat_follow_one_another_and_nobody_knows_who_chose_them() -> None:
    trace = _read("group_chat.json")
    (turn,) = trace.turns
    assert [run.agent for run in turn.runs] == ["Ledger_Expert", "Computer_terminal", "Checker"]
    assert {(each.kind, each.basis) for each in turn.dispatches} == {("sequence", "order")}
    assert turn.input is not None
    assert turn.input.text == "How many invoices of March are unpaid?"
    assert turn.output is not None
    assert turn.output.text == "The code counts invoices of April as well, and I take 4."
    assert [step.id for step in turn.runs[2].steps] == ["m2", "m3"]
    assert trace.attributes["mistake_step"] == "0"


def test_an_orchestrator_hands_work_over_and_gets_an_answer_back() -> None:
    (turn,) = _read("orchestrated.json").turns
    leads, works = turn.runs[0], turn.runs[1]
    assert (leads.agent, works.agent) == ("Orchestrator", "Surfer")
    first = turn.dispatches[0]
    assert (first.kind, first.to_agent, first.status) == ("delegate", "Surfer", "completed")
    assert first.prompt is not None
    assert first.prompt.text == "Look up the last train to Lyon."
    assert first.result is not None
    assert first.result.text == "The timetable says 21:58."
    assert [type(step) for step in leads.steps[:4]] == [Said, HandedOff, Said, GotBack]
    thought = leads.steps[0]
    assert isinstance(thought, Said)
    assert thought.thought


def test_an_answer_that_the_log_lacks_is_unknown_and_not_missing() -> None:
    trace = _read("orchestrated.json")
    lost, ambiguous = trace.turns[0].dispatches[1:]
    assert lost.status == "unknown"
    assert not known(trace, lost, "result")
    assert not known(trace, lost, "runs")
    assert (lost.basis, ambiguous.status) == ("order", "completed")


def test_an_agent_with_tools_has_its_calls_with_their_results() -> None:
    trace = _read("one_agent.json")
    assert [len(turn.runs) for turn in trace.turns] == [1, 1]
    call = trace.turns[0].runs[0].steps[0]
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments, call.status) == (
        "m2",
        "find_ticket",
        {"id": 9},
        "ok",
    )
    assert trace.turns[0].output is not None
    assert trace.turns[0].output.text == "Ticket 9 is cancelled."


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
        [{"role": "human", "content": "hi"}],
    ],
)
def test_a_list_of_messages_that_names_no_agents_holds_no_trace(
    messages: list[dict[str, str]], tmp_path: Path
) -> None:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(messages))
    with pytest.raises(InputError, match="holds no trace"):
        load_traces([path])


@pytest.mark.parametrize("name", ["group_chat.json", "orchestrated.json", "one_agent.json"])
def test_what_is_read_holds_together(name: str) -> None:
    from baton.model import integrity_problems

    assert integrity_problems(_read(name)) == []
