"""Eval sets of ADK and judge-llm load as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.model import Case, InputError


def load(folder: Path, value: Any, name: str = "x.evalset.json") -> list[Case]:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return list(baton.load_dataset(path))


def turn(**data: Any) -> dict[str, Any]:
    return {
        "invocation_id": "i",
        "user_content": {"parts": [{"text": "Hi"}], "role": "user"},
        "intermediate_data": data,
    }


def agents(folder: Path, **data: Any) -> Any:
    (case,) = load(folder, {"eval_cases": [{"eval_id": "x", "conversation": [turn(**data)]}]})
    return case.turns[0].agents


def test_both_spellings_may_mix_and_arguments_keep_theirs(tmp_path: Path) -> None:
    value = {
        "eval_set_id": "s",
        "eval_cases": [
            {
                "evalId": "c",
                "conversation": [
                    {
                        "userContent": {"parts": [{"text": "Hi", "videoMetadata": None}]},
                        "final_response": {"parts": [{"text": "Yo"}]},
                        "intermediateData": {
                            "tool_uses": [{"name": "f", "args": {"userId": {"firstName": "A"}}}]
                        },
                    }
                ],
                "sessionInput": {"appName": "app", "user_id": "u", "state": {"camelKey": 1}},
            }
        ],
    }
    (case,) = load(tmp_path, value)
    (expected,) = case.turns
    assert (case.id, case.session.app, case.state) == ("c", "app", {"camelKey": 1})
    assert expected.tool_calls is not None
    assert expected.tool_calls[0].arguments == {"userId": {"firstName": "A"}}
    assert (expected.input.text, expected.response and expected.response.text) == ("Hi", "Yo")


def test_saved_events_state_the_agents_and_who_called_what(tmp_path: Path) -> None:
    call = {"function_call": {"name": "f", "args": {}}}
    events = [
        {"author": "user", "content": {"parts": [{"text": "x"}]}},
        {"author": "desk", "content": {"parts": [call]}},
        {"author": "desk"},
        {"author": "billing", "usage_metadata": {"total_token_count": 3}},
    ]
    value = {"eval_cases": [{"eval_id": "x", "conversation": [turn(invocation_events=events)]}]}
    (case,) = load(tmp_path, value)
    assert case.turns[0].agents == ["desk", "billing"]
    assert [(c.name, c.agent) for c in case.turns[0].tool_calls or ()] == [("f", "desk")]


TRANSFER = {"type": "agent_transfer"}


@pytest.mark.parametrize(
    ("data", "chain"),
    [
        (
            {"intermediate_responses": [{**TRANSFER, "from_agent": "r", "to_agent": "a"},
                                        {**TRANSFER, "from_agent": "a", "to_agent": "b"}]},
            ["r", "a", "b"],
        ),
        ({"intermediate_responses": [{**TRANSFER, "to_agent": "a"}, {**TRANSFER, "from_agent": "x",
                                      "to_agent": "a"}]}, ["a", "a"]),
        ({"intermediate_responses": [{"agent_name": "a"}, {"agent_name": "a"}]}, ["a", "a"]),
        ({"intermediate_responses": [{"type": "function_call", "agent_name": "a"},
                                     {"type": "function_response", "agent_name": "a"}]}, None),
        ({"intermediate_responses": [["a", [{"text": "1"}]], ["a", [{"text": "2"}]],
                                     ["b", []], ["a", []]]}, ["a", "b", "a"]),
        ({"tool_uses": [{"name": "transfer_to_agent", "args": {"agent_name": n}} for n in "aba"]},
         ["a", "b", "a"]),
        ({"tool_uses": [{"name": "transfer_to_agent", "input_data": '{"agent_name": "a"}'}]}, ["a"]),
        ({"tool_uses": [{"name": "transfer_to_agent", "args": {"agent_name": "z"}}],
          "intermediate_responses": [{"agent_name": "a"}]}, ["a"]),
        ({"tool_uses": [{"name": "transfer_to_agent", "args": {"agent_name": "z"}}],
          "intermediate_responses": []}, ["z"]),
        ({"tool_uses": [{"name": "f", "args": {}}], "intermediate_responses": []}, None),
        ({"tool_uses": [{"name": "transfer_to_agent", "args": {"agent_name": "a"}}],
          "invocation_events": []}, ["a"]),
        ({}, None),
    ],
)  # fmt: skip
def test_every_way_to_state_the_agents(
    tmp_path: Path, data: dict[str, Any], chain: list[str] | None
) -> None:
    assert agents(tmp_path, **data) == chain


@pytest.mark.parametrize(
    "data",
    [
        {"tool_uses": [{"name": "transfer_to_agent", "input_data": "{nope"}]},
        {"intermediate_responses": [{"agent_name": 3}]},
    ],
)
def test_agents_that_cannot_be_read_are_refused(tmp_path: Path, data: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"x\.evalset\.json:1: conversation\[0\]"):
        agents(tmp_path, **data)


@pytest.mark.parametrize("args", [{}, None, {"agent_name": " "}, {"agent_name": ["a"]}])
def test_a_recorded_transfer_without_a_name_is_an_expected_call_of_no_agent(
    tmp_path: Path, args: dict[str, Any] | None
) -> None:
    """The model made the call, ADK refused it, and the case was saved from that session."""
    calls = [{"name": "transfer_to_agent", "args": args or {}}]
    retried = [*calls, {"name": "transfer_to_agent", "args": {"agent_name": "a"}}]
    for name, data in {"one": {"tool_uses": calls}, "two": {"tool_uses": retried}}.items():
        file = tmp_path / f"{name}.evalset.json"
        turn = {"user_content": {"parts": [{"text": "Hi"}]}, "intermediate_data": data}
        file.write_text(json.dumps({"eval_cases": [{"eval_id": name, "conversation": [turn]}]}))
        (case,) = baton.load_dataset(file)
        assert case.turns[0].agents == (None if name == "one" else ["a"])
        assert len(case.turns[0].tool_calls or ()) == len(data["tool_uses"])
        (result,) = baton.score(file, file, ["tool_trajectory_avg_score"]).results
        assert result.status == "passed"


def test_calls_in_events_and_in_a_list_beside_them_are_expected_once(tmp_path: Path) -> None:
    call = {"name": "lookup", "args": {"x": 1}}
    event = {"author": "a", "content": {"parts": [{"function_call": call}]}}
    data = {"tool_uses": [call], "invocation_events": [event]}
    turn = {"user_content": {"parts": [{"text": "Hi"}]}, "intermediate_data": data}
    (case,) = load(tmp_path, {"eval_cases": [{"eval_id": "c", "conversation": [turn]}]})
    assert [(made.name, made.agent) for made in case.turns[0].tool_calls or ()] == [("lookup", "a")]


def test_a_flat_test_file_is_one_case_named_after_it(tmp_path: Path) -> None:
    value = [
        {"query": "Hi", "expected_tool_use": [], "reference": "Yo"},
        {
            "query": "Go",
            "expected_tool_use": [
                {"tool_name": "transfer_to_agent", "tool_input": {"agent_name": "a"},
                 "mock_tool_output": "x"}
            ],
            "expected_intermediate_agent_responses": [],
        },
    ]  # fmt: skip
    (case,) = load(tmp_path, value, "trip.test.json")
    assert case.id == "trip"
    assert [t.agents for t in case.turns] == [None, ["a"]]
    assert case.turns[0].tool_calls == []


@pytest.mark.parametrize("key", ["initial_session", "initial_state"])
def test_an_older_eval_set_keeps_its_first_session(tmp_path: Path, key: str) -> None:
    data = [
        {"query": "Hi", "expected_intermediate_agent_responses": [{"author": "a", "text": "x"}]}
    ]
    value = [{"name": "n", "data": data, key: {"state": {"k": 1}, "app_name": "app"}}]
    (case,) = load(tmp_path, value)
    assert (case.id, case.state, case.session.app) == ("n", {"k": 1}, "app")
    assert case.turns[0].agents == ["a"]
    assert [(v.agent, v.says) for v in case.turns[0].interactions or ()] == [("a", ["x"])]


def test_a_scenario_loads_and_says_that_it_needs_a_simulated_user(tmp_path: Path) -> None:
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Ask.", "user_persona": "NOVICE"}
    path = tmp_path / "x.json"
    path.write_text(
        json.dumps({"eval_cases": [{"eval_id": "s", "conversation_scenario": scenario}]})
    )
    dataset = baton.load_dataset(path)
    assert dataset.cases[0].first_input == "Hi"
    assert dataset.notes == [f"{path}: 1 of 1 case needs a simulated user"]


def test_yaml_and_a_bare_list_of_cases_are_read_by_their_content(tmp_path: Path) -> None:
    text = """
- eval_id: a
  conversation:
    - user_content: {parts: [{text: no}]}
- eval_id: 2025-01-01
  conversation:
    - user_content: {parts: [{text: Hi}]}
"""
    cases = load(tmp_path, text, "whatever.txt")
    assert [case.id for case in cases] == ["a", "2025-01-01"]
    assert cases[0].turns[0].input.text == "no"


def test_a_misspelt_key_stops_and_an_unknown_one_is_noted(tmp_path: Path) -> None:
    wrong = {**turn(), "final_respons": {"parts": []}, "reviewer": "me"}
    value = {"eval_cases": [{"eval_id": "x", "conversation": [wrong]}]}
    with pytest.raises(InputError, match=r"final_respons: .*did you mean `final_response`"):
        load(tmp_path, value)
    wrong.pop("final_respons")
    value["eval_cases"][0]["seenBy"] = "you"
    file = tmp_path / "y.json"
    file.write_text(json.dumps(value).replace('"reviewer"', '\n"reviewer"'))
    assert baton.load_dataset(file).notes == [
        f"{file}:2: ignored, because Baton does not know them: `reviewer`, `seenBy`"
    ]
    file.write_text(file.read_text().replace('"seenBy"', '\n"seenBy"'))
    assert "`reviewer`, `seenBy` (line 3)" in baton.load_dataset(file).notes[0]


def test_every_fault_of_every_case_is_said_at_once_with_its_line(tmp_path: Path) -> None:
    text = """{"eval_cases": [
  {"eval_id": "a", "conversation": [{"user_content": {"parts": "Hi"}}]},
  {"eval_id": 7, "conversation": []},
  {"eval_id": "c"}
]}"""
    text = text.replace('{"eval_id": "c"}', '{"eval_id": "c", "conversation": null}')
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4]


@pytest.mark.parametrize(
    ("parts", "stated"),
    [([{"text": ""}], ""), ([], None), ([{"text": "Hm.", "thought": True}], None)],
)
def test_an_empty_answer_is_stated_by_an_empty_text(
    tmp_path: Path, parts: list[Any], stated: str | None
) -> None:
    invocation = {**turn(), "final_response": {"role": "model", "parts": parts}}
    text = json.dumps({"eval_cases": [{"eval_id": "a", "conversation": [invocation]}]})
    (case,) = load(tmp_path, text)
    found = case.turns[0].response
    assert (None if found is None else found.text) == stated


def test_what_is_attached_to_a_message_is_kept_without_its_bytes(tmp_path: Path) -> None:
    parts = [{"text": "Look."}, {"inline_data": {"mime_type": "image/png", "data": "aGk="}}]
    content = {"role": "user", "parts": parts}
    text = json.dumps(
        {"eval_cases": [{"eval_id": "a", "conversation": [{"user_content": content}]}]}
    )
    (case,) = load(tmp_path, text)
    (part,) = case.turns[0].input.parts or []
    assert (part.type, part.mime) == ("inline_data", "image/png")


def test_ids_that_stand_twice_in_a_file_are_refused_with_both_lines(tmp_path: Path) -> None:
    case = {"eval_id": "a", "conversation": [turn()]}
    text = '{"eval_cases": [\n' + json.dumps(case) + ",\n" + json.dumps(case) + "]}"
    with pytest.raises(InputError, match=r":3: the case id `a` is a duplicate, first on line 2"):
        load(tmp_path, text)


def test_a_folder_is_walked_and_ids_that_files_share_get_the_files_name(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        value = {"eval_cases": [{"eval_id": "hi", "conversation": [turn()]}]}
        (tmp_path / folder / "basic.evalset.json").write_text(json.dumps(value))
    (tmp_path / "test_config.json").write_text('{"criteria": {}}')
    (tmp_path / "other.json").write_text('{"a": 1}')
    dataset = baton.load_dataset(tmp_path)
    assert dataset.ids == ["one/basic/hi", "two/basic/hi"]
    assert [case.id for case in dataset] == dataset.ids
    assert dataset.places("hi") == [0, 1]
    assert [note for note in dataset.notes if "test_config" in note] == []
    assert any("other.json: contains no cases" in note for note in dataset.notes)


def test_a_broken_file_in_a_folder_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"eval_cases": [')
    with pytest.raises(InputError, match=r"a\.json:1: not JSON"):
        baton.load_dataset(tmp_path)


def test_cases_are_chosen_behind_a_colon(tmp_path: Path) -> None:
    cases = [{"eval_id": name, "conversation": [turn()]} for name in ("a", "b", "c")]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(cases))
    assert baton.load_dataset(f"{path}:c,a").ids == ["a", "c"]
    with pytest.raises(InputError, match=r"no case `bb`; did you mean `b`"):
        baton.load_dataset(f"{path}:a,bb")


def test_an_eval_set_with_comments_and_a_comma_too_many_is_read(tmp_path: Path) -> None:
    text = """# Shortened for this page.
{
  "eval_set_id": "lights", # one case
  "eval_cases": [
    {
      "eval_id": "off",
      "conversation": [
        {"user_content": {"parts": [{"text": "Off, please."}], "role": "user"},},
      ],
    },
  ],
}
"""
    (case,) = load(tmp_path, text)
    assert (case.id, case.turns[0].input.text) == ("off", "Off, please.")


@pytest.mark.parametrize(
    "lead", ["// Lights.\n", "# Lights.\n", "/* Lights,\n all of them */\n", " \n"]
)
@pytest.mark.parametrize("brackets", [("", ""), ("[", "]")])
def test_comments_may_stand_before_the_first_bracket(
    tmp_path: Path, lead: str, brackets: tuple[str, str]
) -> None:
    turn = {"user_content": {"parts": [{"text": "Off, please."}], "role": "user"}}
    case = {"eval_id": "off", "conversation": [turn]}
    inner = json.dumps({"eval_set_id": "lights", "eval_cases": [case]} if not brackets[0] else case)
    (read,) = load(tmp_path, f"{lead}{brackets[0]}{inner}{brackets[1]}")
    assert read.id == "off"


@pytest.mark.parametrize("text", ['{"eval_cases": [', '{"eval_cases": [NaN]}', '{"a" 1}'])
def test_json_that_is_broken_is_reported_as_json(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"JSON|has to be|expected"):
        load(tmp_path, text)
