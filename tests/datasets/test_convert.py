"""Files of one dialect become files of another, and what has no place there is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.datasets.convert_cases import Loss, Target, convert
from baton.model import Case, InputError


def written(folder: Path, value: Any, name: str = "in.json") -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def turned(path: Path, to: Target, suffix: str = ".json") -> tuple[Any, list[Case], list[Loss]]:
    """Convert a file; return the plain data, the cases read from it, and the losses."""
    out = path.with_name(f"out{suffix}")
    done = convert(baton.load_dataset(path), to, out)
    out.write_text(done.text, encoding="utf-8")
    value = json.loads(done.text) if suffix == ".json" else done.text
    return value, list(baton.load_dataset(out)), done.losses


def fields(losses: list[Loss]) -> list[str]:
    return [loss.field for loss in losses]


PICTURE = {"mime_type": "image/png", "data": "iVBORw0KGgo="}


def eval_set(*turns: dict[str, Any], **case: Any) -> dict[str, Any]:
    """Return an eval set with one case."""
    return {
        "eval_set_id": "s",
        "eval_cases": [{"eval_id": "c", "conversation": list(turns), **case}],
    }


def message(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"user_content": {"parts": [{"text": "Hi"}, *parts]}, **more}


def test_the_oldest_eval_sets_become_modern_ones(tmp_path: Path) -> None:
    value = [
        {
            "name": "devices",
            "data": [
                {
                    "query": "Lights off",
                    "expected_tool_use": [
                        {"tool_name": "f", "tool_input": {"a": 1}, "mock_tool_output": "done"}
                    ],
                    "expected_intermediate_agent_responses": [{"author": "home", "text": "Off."}],
                    "reference": "They are off.",
                }
            ],
            "initial_session": {"state": {"k": 1}, "app_name": "app", "user_id": "u"},
        }
    ]
    path = written(tmp_path, value)
    data, cases, losses = turned(path, "adk")
    assert [case.content_hash() for case in cases] == [
        case.content_hash() for case in baton.load_dataset(path)
    ]
    (turn,) = data["eval_cases"][0]["conversation"]
    assert turn["intermediate_data"] == {
        "tool_uses": [{"name": "f", "args": {"a": 1}}],
        "intermediate_responses": [["home", [{"text": "Off."}]]],
    }
    assert fields(losses) == ["data[0].expected_tool_use[0].mock_tool_output"]


def test_a_flat_test_file_becomes_one_case_named_after_it(tmp_path: Path) -> None:
    path = written(tmp_path, [{"query": "Hi", "expected_tool_use": [], "reference": ""}], "a.json")
    data, (case,), losses = turned(path, "adk")
    assert (data["eval_set_id"], case.id, losses) == ("a", "a", [])
    assert case.turns[0].tool_calls == []


def test_what_only_adk_knows_stays_in_adk_and_is_named_elsewhere(tmp_path: Path) -> None:
    turn = message(
        {"inlineData": PICTURE},
        invocationId="i-1",
        appDetails={"agent_details": {}, "more": "x"},
        intermediate_data={
            "tool_uses": [{"name": "f", "args": {}, "id": "t-1"}],
            "tool_responses": [{"name": "f", "response": {"ok": 1}}],
        },
    )
    path = written(tmp_path, eval_set(turn, creation_timestamp=5.0))
    data, _, losses = turned(path, "adk")
    (case,) = data["eval_cases"]
    assert losses == []
    assert case["creation_timestamp"] == 5.0
    assert case["conversation"][0]["invocation_id"] == "i-1"
    assert case["conversation"][0]["intermediate_data"] == turn["intermediate_data"]
    assert case["conversation"][0]["user_content"]["parts"][1] == {"inline_data": PICTURE}

    _, _, losses = turned(path, "baton")
    assert fields(losses) == [
        "conversation[0].appDetails",
        "conversation[0].intermediate_data.tool_responses",
        "turns[0].input.parts",
    ]


def test_attachments_keep_their_bytes_between_eval_sets(tmp_path: Path) -> None:
    link = {"file_data": {"file_uri": "gs://b/x.pdf", "mime_type": "application/pdf"}}
    events = {"invocation_events": [{"author": "desk"}]}
    turn = message({"inline_data": PICTURE}, link, intermediate_data=events)
    path = written(tmp_path, eval_set(turn))
    data, (case,), losses = turned(path, "judge-llm")
    parts = data["eval_cases"][0]["conversation"][0]["user_content"]["parts"]
    assert parts == [{"text": "Hi"}, {"inline_data": PICTURE}, link]
    assert [part.type for part in case.turns[0].input.parts or ()] == ["inline_data", "file_data"]
    assert losses == []


def test_calls_with_their_agents_become_events(tmp_path: Path) -> None:
    text = """cases:
  - {id: a, input: Hi, agents: [desk, cashier], tools: [{name: f, agent: cashier}]}
  - {id: b, input: Hi, agents: [desk, cashier], tools: [{name: f, agent: cashier}, g]}"""
    data, cases, losses = turned(written(tmp_path, text, "in.yaml"), "adk")
    first, second = (case["conversation"][0] for case in data["eval_cases"])
    assert [e["author"] for e in first["intermediate_data"]["invocation_events"]] == [
        "desk",
        "cashier",
    ]
    assert second["intermediate_data"]["intermediate_responses"] == [["desk", []], ["cashier", []]]
    assert [(loss.case, loss.field) for loss in losses] == [("b", "turns[0].tool_calls[0].agent")]
    assert [case.turns[0].agents for case in cases] == [["desk", "cashier"]] * 2


def test_judge_llm_gets_the_agents_as_it_reads_them_and_all_it_cannot_do_without(
    tmp_path: Path,
) -> None:
    text = "cases: [{id: a, input: Hi, agents: [x, y, x], tools: [f], evaluators: {cost: {}}}]"
    data, _, losses = turned(written(tmp_path, text, "in.yaml"), "judge-llm")
    (case,) = data["eval_cases"]
    (turn,) = case["conversation"]
    assert turn["intermediate_data"]["intermediate_responses"] == [
        {"agent_name": name} for name in "xyx"
    ]
    assert turn["intermediate_data"]["tool_uses"] == [{"id": "call-1", "name": "f", "args": {}}]
    assert {"eval_set_id", "name", "creation_timestamp"} <= data.keys()
    assert {"creation_timestamp", "session_input", "evaluator_config"} <= case.keys()
    assert {"invocation_id", "creation_timestamp", "final_response"} <= turn.keys()
    assert [(loss.field, loss.is_added) for loss in losses] == [
        ("turns[0].tool_calls[0].arguments", True)
    ]


def test_a_case_of_the_accelerator_keeps_its_shape_and_moves_whole(tmp_path: Path) -> None:
    value = [
        {
            "name": "todo",
            "input": "Build it",
            "state": '{"bucket": "b"}',
            "expected_trajectory": ["researcher", "coder"],
            "expected_interactions": [
                {"node_name": "researcher", "dependencies": [], "messages": "done"},
                {"node_name": "coder", "dependencies": ["researcher"], "messages": "coded"},
            ],
            "expected_output": {"service": "x", "gone": None},
            "metadata": {"category": "workflow"},
        }
    ]
    path = written(tmp_path, value)
    data, _, losses = turned(path, "strands")
    assert (data, losses) == (value, [])
    _, (case,), losses = turned(path, "baton", ".yaml")
    assert losses == []
    assert case.content_hash() == baton.load_dataset(path).cases[0].content_hash()
    _, _, losses = turned(path, "adk")
    assert fields(losses) == [
        "turns[0].structured",
        "turns[0].interactions[0].after",
        "turns[0].interactions[1].after",
        "session.app",
        "session.user",
    ]


def test_an_experiment_keeps_its_evaluators_and_loses_them_elsewhere(tmp_path: Path) -> None:
    value = {
        "cases": [{"name": "a", "input": "Hi", "session_id": "0-1", "expected_output": "Yo"}],
        "evaluators": [{"evaluator_type": "OutputEvaluator", "rubric": "Be kind."}],
    }
    path = written(tmp_path, value)
    data, _, losses = turned(path, "strands")
    assert (data, losses) == (value, [])
    _, _, losses = turned(path, "baton")
    assert [(loss.case, loss.field) for loss in losses] == [("", "evaluators")]


def test_agents_alone_stand_as_nodes_so_that_they_are_not_taken_for_tools(tmp_path: Path) -> None:
    path = written(tmp_path, "cases: [{id: a, input: Hi, agents: [x, y]}]", "in.yaml")
    data, (case,), losses = turned(path, "strands")
    (wire,) = data["cases"]
    assert wire["expected_trajectory"] == ["x", "y"]
    assert wire["expected_interactions"] == [{"node_name": "x"}, {"node_name": "y"}]
    assert (case.turns[0].agents, case.turns[0].tool_calls) == (["x", "y"], None)
    assert [(loss.field, loss.is_added) for loss in losses] == [("turns[0].interactions", True)]


def test_a_simulated_user_has_a_place_in_adk_only(tmp_path: Path) -> None:
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Ask.", "user_persona": "NOVICE"}
    value = eval_set(message())
    value["eval_cases"] += [{"eval_id": "d", "conversation_scenario": scenario}]
    path = written(tmp_path, value)
    data, _, losses = turned(path, "adk")
    assert data["eval_cases"][1]["conversation_scenario"] == scenario
    assert losses == []
    for to in ("judge-llm", "strands", "baton"):
        _, cases, losses = turned(path, to)
        assert [case.id for case in cases] == ["c"]
        assert [loss.field for loss in losses if loss.case == "d"] == [
            "conversation_scenario.user_persona",
            "scenario",
        ]
    with pytest.raises(InputError, match="no case can be written: a simulated user"):
        turned(Path(f"{path}:d"), "baton")


def test_cases_of_several_files_go_into_one_under_the_ids_they_then_have(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    written(tmp_path / "d", eval_set(message()), "one.json")
    written(tmp_path / "d", eval_set(message()), "two.json")
    out = tmp_path / "out.json"
    done = convert(baton.load_dataset(tmp_path / "d"), "adk", out)
    assert [case["eval_id"] for case in json.loads(done.text)["eval_cases"]] == ["one/c", "two/c"]


def test_judge_llms_own_words_are_no_adk_and_become_it(tmp_path: Path) -> None:
    turn: dict[str, Any] = {
        "user_content": "Hi",
        "intermediate_data": {
            "tool_uses": [{"name": "f", "input_data": '{"a": 1}'}],
            "intermediate_responses": [
                {"type": "agent_transfer", "from_agent": "r", "to_agent": "a", "reason": "why"}
            ],
        },
    }
    path = written(tmp_path, eval_set(turn, evaluator_config={"SubAgentEvaluator": {"x": 1}}))
    data, (case,), losses = turned(path, "adk")
    (written_turn,) = data["eval_cases"][0]["conversation"]
    assert written_turn["user_content"] == {"parts": [{"text": "Hi"}], "role": "user"}
    assert written_turn["intermediate_data"] == {
        "tool_uses": [{"name": "f", "args": {"a": 1}}],
        "intermediate_responses": [["r", []], ["a", []]],
    }
    assert case.evaluators == {"SubAgentEvaluator": {"x": 1}}
    assert fields(losses) == ["conversation[0].intermediate_data.intermediate_responses[0].reason"]
    data, _, losses = turned(path, "judge-llm")
    kept = data["eval_cases"][0]["conversation"][0]["intermediate_data"]
    assert kept["intermediate_responses"] == turn["intermediate_data"]["intermediate_responses"]
    assert kept["tool_uses"][0]["args"] == {"a": 1}
    assert losses == []


def test_a_key_of_a_call_that_nobody_knows_is_a_loss(tmp_path: Path) -> None:
    data = {"tool_uses": [{"id": "1", "name": "f", "args": {"a": 1}, "note": 2}]}
    path = written(tmp_path, eval_set(message(intermediate_data=data)))
    (_, (case,), losses) = turned(path, "judge-llm")
    (call,) = case.turns[0].tool_calls or []
    assert (call.name, call.arguments) == ("f", {"a": 1})
    assert "conversation[0].intermediate_data.tool_uses[0].note" in fields(losses)


def test_a_file_is_json_or_yaml(tmp_path: Path) -> None:
    path = written(tmp_path, eval_set(message()))
    with pytest.raises(InputError, match=r"\.json, \.yaml or \.yml"):
        convert(baton.load_dataset(path), "adk", tmp_path / "out.txt")
    done = convert(baton.load_dataset(path), "adk", tmp_path / "out.yaml")
    assert done.notes == [f"{tmp_path / 'out.yaml'}: ADK itself reads only JSON"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("in.jsonl", '{"id": "a", "input": "Hi"}\n{"id": "b", "input": "Ho"}\n'),
        ("in.yaml", "# mine\n- {id: a, input: Hi}\n- {id: b, input: Ho}\n"),
        ("in.json", '{"cases": [{"id": "a", "input": "Hi"}, # mine\n{"id": "b", "input": "Ho"}]}'),
    ],
)
def test_however_a_file_is_written_its_cases_come_along(
    tmp_path: Path, name: str, text: str
) -> None:
    path = written(tmp_path, text, name)
    for to in ("baton", "adk", "judge-llm", "strands"):
        _, cases, losses = turned(path, to, ".yaml")
        assert [case.id for case in cases] == ["a", "b"]
        assert losses == []


@pytest.mark.parametrize("mark", ["#", "//"])
def test_what_is_beside_cases_is_seen_through_comments(tmp_path: Path, mark: str) -> None:
    text = f'{{"description": "d", {mark} mine\n"cases": [{{"id": "a", "input": "Hi"}}]}}'
    _, _, losses = turned(written(tmp_path, text), "strands")
    assert fields(losses) == ["description"]


OLD = [{"query": "Lights off", "expected_tool_use": [], "reference": "Done."}]
START = {"appName": "home", "userId": "u1", "state": {"room": "hall"}, "id": "s9", "events": []}


@pytest.mark.parametrize("start", [START, {"session": START}])
def test_cases_without_a_session_start_with_the_one_that_is_given(
    tmp_path: Path, start: dict[str, Any]
) -> None:
    old = written(tmp_path, OLD, "lights.test.json")
    own = eval_set(message(), session_input={"app_name": "b", "user_id": "v", "state": {}})
    own["eval_cases"].append({"eval_id": "bare", "conversation": [message()]})
    files = [old, written(tmp_path, own, "own.evalset.json")]
    notes: list[str] = []
    done = baton.convert(
        files,
        "adk",
        tmp_path / "new.evalset.json",
        initial_session=written(tmp_path, start, "initial.session.json"),
        note=notes.append,
    )
    (kept_theirs,) = [text for text in notes if "session" in text]
    assert kept_theirs.startswith("1 case already had a session and kept it: ")
    merged, kept, bare = baton.load_dataset(tmp_path / "new.evalset.json").cases
    assert (merged.id, merged.session.app, merged.session.user) == ("lights", "home", "u1")
    assert merged.state == bare.state == {"room": "hall"}
    assert merged.session.id is None
    assert (kept.session.app, kept.session.user, kept.state) == ("b", "v", {})
    assert bare.session == merged.session
    assert not any(loss.case for loss in done.losses)


def test_a_file_that_is_not_a_session_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"events": []}, "x.json")
    old = written(tmp_path, OLD, "lights.test.json")
    with pytest.raises(InputError, match="contains no session"):
        baton.convert(old, "adk", tmp_path / "new.json", initial_session=path)
