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
    with pytest.raises(InputError, match="contains no trace"):
        load_traces([path])


@pytest.mark.parametrize("name", ["group_chat.json", "orchestrated.json", "one_agent.json"])
def test_what_is_read_holds_together(name: str) -> None:
    from baton.model import integrity_problems

    assert integrity_problems(_read(name)) == []


def _of(tmp_path: Path, value: object) -> Trace:
    file = tmp_path / "run.json"
    file.write_text(json.dumps(value))
    (trace,) = load_traces([file])
    return trace


def test_a_message_of_several_parts_is_its_texts_and_what_is_attached(tmp_path: Path) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://shop.example/cat.png"}}
    bytes_ = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    trace = _of(
        tmp_path,
        [
            {"role": "human", "content": [{"type": "text", "text": "What is it?"}, picture]},
            {"role": "Orchestrator (-> Surfer)", "content": ["Look at this.", picture, bytes_]},
            {"role": "Surfer", "content": [{"type": "text", "text": "A cat."}]},
        ],
    )
    (turn,) = trace.turns
    prompt = turn.dispatches[0].prompt
    assert turn.input is not None
    assert (turn.input.text, len(turn.input.parts or ())) == ("What is it?", 1)
    assert prompt is not None
    assert prompt.text == "Look at this."
    assert [part.uri for part in prompt.parts or ()] == ["https://shop.example/cat.png", None]
    assert turn.output is not None
    assert turn.output.text == "A cat."


def test_assistants_with_names_are_agents_with_their_calls(tmp_path: Path) -> None:
    made = {"id": "c1", "function": {"name": "refund", "arguments": '{"order": 4}'}}
    trace = _of(
        tmp_path,
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Refund order 4."},
            {"role": "assistant", "name": "planner", "content": "Desk, refund it."},
            {"role": "assistant", "name": "desk", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "assistant", "name": "desk", "content": "Refunded."},
        ],
    )
    (turn,) = trace.turns
    assert [run.agent for run in turn.runs] == ["planner", "desk"]
    call, said = turn.runs[1].steps
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments, call.status) == ("refund", {"order": 4}, "ok")
    assert call.result is not None
    assert call.result.text == "ok"
    assert isinstance(said, Said)
    assert known(trace, turn.runs[1], "steps.tool_call")


def test_a_result_without_an_id_answers_the_tool_it_names_and_any_other_is_reported(
    tmp_path: Path,
) -> None:
    made = {"id": "c1", "function": {"name": "look_up", "arguments": "{}"}}
    trace = _of(
        tmp_path,
        {
            "task_id": 7,
            "reward": 0.0,
            "traj": [
                {"role": "user", "content": [{"type": "text", "text": "Where is it?"}]},
                {"role": "assistant", "content": None, "tool_calls": [made]},
                {"role": "function", "name": "look_up", "content": "in Lyon"},
                {"role": "tool", "tool_call_id": "c9", "name": "other", "content": "lost"},
                {"role": "assistant", "content": "In Lyon."},
            ],
        },
    )
    (call, _) = trace.turns[0].runs[0].steps
    assert isinstance(call, ToolCall)
    assert call.result is not None
    assert call.result.text == "in Lyon"
    assert [(each.what, each.count, each.example) for each in trace.dropped] == [
        ("results without a call", 1, "other: lost")
    ]


def test_tools_among_the_items_of_openais_responses_api_are_no_agents(tmp_path: Path) -> None:
    items = [
        {"role": "user", "content": "How big is the roof?"},
        {"type": "function_call", "call_id": "c1", "name": "measure", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "96 m2"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "96"}],
        },
    ]
    path = tmp_path / "items.json"
    path.write_text(json.dumps(items))
    with pytest.raises(InputError, match="contains no trace"):
        load_traces([path])
