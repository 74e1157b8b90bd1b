"""Cases of Strands, and the accelerator's test cases exactly as its guide prints them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from baton import load_dataset
from baton.model import AgentCard, Case, Dataset, InputError

DATA = Path(__file__).parent.parent / "data"
EXPERIMENT = DATA / "strands" / "experiment.json"


def load(folder: Path, content: Any, name: str = "cases.json", **options: Any) -> Dataset:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return load_dataset(path, **options)


def printed(name: str) -> Case:
    dataset = load_dataset(DATA / "seeds" / "accelerator" / f"{name}.json")
    assert dataset.format == "strands"
    return dataset.cases[0]


def one(folder: Path, content: Any, **options: Any) -> Case:
    dataset = load(folder, content, **options)
    assert dataset.format == "strands"
    return dataset.cases[0]


def test_a_printed_single_agent_case_states_answer_tools_and_metadata() -> None:
    case = printed("single_agent")
    (turn,) = case.turns
    assert (case.id, case.metadata) == ("weather-query", {"category": "weather"})
    assert turn.input.text == "What is the weather in London?"
    assert turn.response is not None
    assert turn.response.text == "The current weather in London is..."
    assert [call.name for call in turn.tool_calls or ()] == ["get_weather_forecast"]
    assert turn.agents is None


def test_a_printed_structured_case_states_fields() -> None:
    (turn,) = printed("structured_output").turns
    assert turn.structured == {"aws_services": ["Amazon Bedrock"]}
    assert turn.response is None


def test_a_printed_case_with_agent_state_has_the_state_as_an_object() -> None:
    case = printed("agent_state")
    assert case.state == {
        "s3_bucket": "your-bucket",
        "document_s3_key": "reviews/2026-q1-architecture-review.pdf",
    }


def test_a_printed_swarm_case_states_nodes_and_interactions() -> None:
    (turn,) = printed("swarm").turns
    nodes = ["researcher", "architect", "coder", "reviewer"]
    assert turn.agents == nodes
    assert turn.tool_calls is None
    visits = turn.interactions or []
    assert [visit.agent for visit in visits] == nodes
    assert [visit.after for visit in visits] == [[], ["researcher"], ["architect"], ["coder"]]
    assert visits[0].says == ["I've completed the research phase and handed off to the architect"]


def test_an_experiment_of_strands_is_a_dataset() -> None:
    dataset = load_dataset(EXPERIMENT)
    maps, graph = dataset.cases
    assert (maps.id, graph.id) == ("maps", "graph")
    assert maps.turns[0].response is not None
    assert maps.turns[0].response.text == "Two of the three maps of 1872 can be lent out."
    assert maps.turns[0].agents == ["clerk", "archivist", "clerk"]
    assert (maps.turns[0].interactions or [])[0].says == ["Find maps"]
    assert graph.final_state == {"loans": {"open": 2}}
    assert dataset.stated == {"response", "agents", "interactions", "final_state"}


def greets(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "input": "hi", **fields}]


@pytest.mark.parametrize("key", ["expectedOutput", "expected_output"])
def test_an_expected_output_may_be_an_object_a_text_or_an_object_as_text(
    tmp_path: Path, key: str
) -> None:
    for output in ({"a": None}, '{"a": null}'):
        (turn,) = one(tmp_path, greets(**{key: output})).turns
        assert (turn.structured, turn.response) == ({"a": None}, None)
    for output, text in (("It is {}", "It is {}"), ("[1]", "[1]"), ("printed\n", "printed")):
        (turn,) = one(tmp_path, greets(**{key: output})).turns
        assert turn.structured is None
        assert turn.response is not None
        assert turn.response.text == text
    (turn,) = one(tmp_path, greets(**{key: ""})).turns
    assert (turn.structured, turn.response) == (None, None)


def test_a_trajectory_names_agents_where_all_names_are_agents_and_none_a_tool(
    tmp_path: Path,
) -> None:
    cards = {"writer": AgentCard(tools=["save"]), "save": AgentCard(), "reader": AgentCard()}

    def stated(*names: str) -> tuple[Any, list[str] | None]:
        (turn,) = one(tmp_path, greets(expected_trajectory=[*names]), agents=cards).turns
        calls = turn.tool_calls
        return turn.agents, None if calls is None else [call.name for call in calls]

    assert stated("reader", "writer") == (["reader", "writer"], None)
    assert stated("reader", "save") == (None, ["reader", "save"])
    assert stated("reader", "search") == (None, ["reader", "search"])
    assert stated() == (None, None)


def test_nodes_that_other_cases_of_the_file_name_are_agents(tmp_path: Path) -> None:
    visits = [{"node_name": "a", "messages": ["x"]}, {"node_name": "b"}]
    cases = [
        {"name": "c1", "input": "hi", "expected_trajectory": ["b", "a"]},
        {"name": "c2", "input": "hi", "expected_interactions": visits},
    ]
    dataset = load(tmp_path, cases)
    assert dataset.cases[0].turns[0].agents == ["b", "a"]
    assert dataset.notes == []


def test_a_trajectory_that_is_taken_for_tools_unseen_is_noted(tmp_path: Path) -> None:
    (note,) = load(tmp_path, greets(expected_trajectory=["search"])).notes
    assert "1 of 1 case is read as tool calls" in note


def test_a_step_may_tell_the_arguments_of_its_tool(tmp_path: Path) -> None:
    steps = [{"name": "search", "input": {"q": "x"}, "tool_result": "y"}, "save"]
    (turn,) = one(tmp_path, greets(expected_trajectory=steps)).turns
    assert [(c.name, c.arguments) for c in turn.tool_calls or ()] == [
        ("search", {"q": "x"}), ("save", None),
    ]  # fmt: skip


def test_messages_may_be_a_text_a_list_or_messages_with_blocks(tmp_path: Path) -> None:
    for messages, texts in (
        ("one", ["one"]),
        (["one", "two"], ["one", "two"]),
        ([{"role": "assistant", "content": [{"text": "one"}]}], ["one"]),
        ("", None),
        ([], None),
    ):
        visits = [{"node_name": "a", "messages": messages}]
        (turn,) = one(tmp_path, greets(expected_interactions=visits)).turns
        assert (turn.interactions or [])[0].says == texts
        assert (turn.interactions or [])[0].after is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": "{"}, "has to be a JSON object as text"),
        ({"state": "[1]"}, "has to be a JSON object as text"),
        ({"expected_trajectory": [1]}, "a step is the name of a tool or node"),
        ({"expected_trajectory": {"traces": []}}, "a recorded session is not an expectation"),
        ({"expected_interactions": [{"dependencies": []}]}, "`node_name` is missing"),
        ({"expected_trajektory": ["a"]}, "did you mean `expected_trajectory`?"),
        ({"metadata": 1}, "expected a mapping or null, got 1"),
    ],
)
def test_what_is_wrong_with_a_case_is_reported_with_its_line(
    tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    content = json.dumps(greets(**fields), indent=1)
    with pytest.raises(InputError, match=r"cases\.json:\d+: ") as raised:
        load(tmp_path, content)
    assert said in str(raised.value)


def test_a_case_without_a_name_gets_one_from_what_it_says(tmp_path: Path) -> None:
    cases = [{"name": None, "input": text, "expected_output": "x"} for text in "ab"]
    first, second = load(tmp_path, {"cases": cases}).ids
    assert first != second
    assert first.startswith("case-")


def test_cases_may_be_yaml_or_json_lines(tmp_path: Path) -> None:
    yaml = "- name: a\n  input: hi\n  expected_output: {x: 1}\n"
    lines = "".join(json.dumps(greets()[0] | {"name": name}) + "\n" for name in "ab")
    assert load(tmp_path, yaml, "c.yaml").ids == ["a"]
    assert load(tmp_path, lines, "c.jsonl").ids == ["a", "b"]


def test_own_files_and_reports_are_not_taken_for_cases_of_strands(tmp_path: Path) -> None:
    own = {"cases": [{"id": "a", "input": "hi", "response": "x"}]}
    assert load(tmp_path, own).format == "baton"
    with pytest.raises(InputError, match="`id` is missing"):
        load(tmp_path, {"cases": [{"name": "a", "input": "hi", "agents": ["x"]}]})
    report = EXPERIMENT.parent / "report_interactions.json"
    with pytest.raises(InputError, match="contains no cases"):
        load_dataset(report)
