"""Baton's own datasets: few words, and every mistake said at once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import baton
from baton.datasets.baton_cases import DatasetSpec
from baton.formats.yaml import dump_yaml, load_yaml
from baton.model import Case, InputError


def load(folder: Path, text: str, name: str = "cases.yaml") -> list[Case]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return list(baton.load_dataset(path))


def said(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(folder, text)
    return [str(p).removeprefix(f"{folder}/") for p in caught.value.problems]


def test_one_turn_needs_only_an_input(tmp_path: Path) -> None:
    (case,) = load(tmp_path, "cases: [{id: a, input: Hi}]")
    (turn,) = case.turns
    assert turn.input.text == "Hi"
    assert (turn.agents, turn.dispatches, turn.tool_calls, turn.response) == (None,) * 4


def test_short_and_long_forms_mean_the_same(tmp_path: Path) -> None:
    short = "{id: a, input: Hi, dispatches: [b], tools: [f], rubrics: [Polite.]}"
    long = """{id: a, turns: [{input: Hi, dispatches: [{to: b}], tools: [{name: f}],
               rubrics: [{text: Polite.}]}]}"""
    (first,) = load(tmp_path, f"cases: [{short}]")
    (second,) = load(tmp_path, f"cases: [{long}]", "other.yaml")
    assert first.turns == second.turns
    assert first.content_hash() == second.content_hash()


def test_all_that_a_case_may_state(tmp_path: Path) -> None:
    text = """
name: n
cases:
  - id: a
    turns:
      - input: Hi
        new_session: true
        response_contains: yes
        structured: {k: 1}
        dispatches: [{to: b, kind: delegate, prompt_contains: order 42, tools: [f], parallel: true}]
        interactions: [{agent: b, after: a, says: [x, y]}]
    session: {app: app, user: u, id: s}
    state: {k: 1}
    final_state: {k: 2}
    rubrics: [{text: t, id: r, type: TOOL_USE_QUALITY}]
    evaluators: {agent_chain: {min_match_ratio: 1}}
    labels: {team: x}
    tags: [t]
    metadata: {m: [1]}
"""
    (case,) = load(tmp_path, text)
    (turn,) = case.turns
    assert turn.response_contains == ["yes"]
    assert turn.dispatches is not None
    assert turn.dispatches[0].prompt_contains == ["order 42"]
    assert turn.interactions is not None
    assert turn.interactions[0].after == ["a"]
    assert (case.session.app, case.final_state, case.tags) == ("app", {"k": 2}, ["t"])


def test_no_agents_are_refused_with_what_to_write_instead(tmp_path: Path) -> None:
    assert said(tmp_path, "cases:\n- id: a\n  input: Hi\n  agents: []\n") == [
        "cases.yaml:4: cases[0].agents: `agents: []` is not possible: an agent always runs; "
        "for no dispatch write `dispatches: []`"
    ]


def test_every_mistake_is_said_at_once_with_line_and_suggestion(tmp_path: Path) -> None:
    text = """cases:
  - id: a
    inputs: Hi
  - id: 3
    input: Hi
  - id: c
    turns:
      - input: Hi
        dispatches: [{too: b, kind: transfr}]
        agents: desk
  - id: d
    input: Hi
    turns: [{input: Hi}]
  - id: e
    turns: []
"""
    mistakes = [
        "cases.yaml:3: cases[0].inputs: unknown key; did you mean `input`?",
        "cases.yaml:4: cases[1].id: expected text, got 3; write it in quotes",
        "cases.yaml:9: cases[2].turns[0].dispatches[0].too: unknown key; did you mean `to` or `tools`?",
        "cases.yaml:9: cases[2].turns[0].dispatches[0].kind: `transfr` is not one of delegate, "
        "return, sequence, transfer; did you mean `transfer`?",
        "cases.yaml:9: cases[2].turns[0].dispatches[0]: `to` is missing",
        'cases.yaml:10: cases[2].turns[0].agents: expected a list or null, got "desk"; write `[desk]`',
        "cases.yaml:12: cases[3].input: `input` belongs in one of the `turns`, because the case has `turns`",
        "cases.yaml:15: cases[4].turns: `turns` is empty; a case needs at least one user message",
    ]
    assert said(tmp_path, text) == mistakes


def test_an_unknown_key_beside_the_cases_is_refused(tmp_path: Path) -> None:
    assert said(tmp_path, "case_name: x\ncases: [{id: a, input: Hi}]\n")[0].startswith(
        "cases.yaml:1: case_name: unknown key"
    )


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("cases:\n\t- id: a\n", "cases.yaml:2: not YAML:"),
        ("cases: [{id: a, input: Hi}\n", "cases.yaml:2: not YAML:"),
        ('{"cases": [{"id": "a", "input" "Hi"}]}', "cases.yaml:1: not JSON:"),
        ("cases:\n- id: a\n  input: Hi\n  id: b\n", "cases.yaml:4: duplicate key `id`"),
        ("cases: 3\n", "cases.yaml:1: cases: has to be a list"),
        ("cases: []\n", "cases.yaml: contains no cases"),
        ("cases:\n- {id: a, input: x}\n- {id: a, input: y}\n", "cases.yaml:3: the case id `a`"),
        ("hello: world\n", "cases.yaml: contains no cases: an eval set has"),
        ("", "cases.yaml: contains no cases"),
    ],
)
def test_a_file_that_is_none_says_where_and_why(tmp_path: Path, text: str, start: str) -> None:
    assert said(tmp_path, text)[0].startswith(start)


def test_words_that_yaml_once_took_for_something_else_stay_words(tmp_path: Path) -> None:
    (case,) = load(tmp_path, "cases: [{id: 2025-01-01, input: no, agents: [on, off, 1e3, 0x1f]}]")
    assert (case.id, case.turns[0].input.text) == ("2025-01-01", "no")
    assert case.turns[0].agents == ["on", "off", "1e3", "0x1f"]


def test_the_schema_for_editors_names_every_key() -> None:
    schema = msgspec.json.schema(DatasetSpec)
    keys = schema["$defs"]["CaseSpec"]["properties"]
    assert {"id", "input", "agents", "dispatches", "tools", "turns"} <= set(keys)
    assert schema["$defs"]["CaseSpec"]["additionalProperties"] is False


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)


@given(JSON)
def test_what_is_written_as_yaml_is_read_back_the_same(value: object) -> None:
    assert load_yaml(dump_yaml({"v": value}), "x") == {"v": value}
