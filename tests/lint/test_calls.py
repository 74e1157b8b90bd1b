"""Warnings about expected calls: tools inside the model, and turns that state none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Check, app, bare, evals, evalset, line_of, turn


@pytest.mark.parametrize(
    "tool",
    [
        "google_search",
        "google_search_retrieval",
        "url_context",
        "code_execution",
        "BuiltInCodeExecutor",
        "vertex_ai_search",
    ],
)
def test_a_tool_inside_the_model_is_no_call_to_expect(
    check: Check, tmp_path: Path, tool: str
) -> None:
    cases = evalset(tmp_path / "s.evalset.json", evals("news", turn("news?", "save", tool)))
    (found,) = check(cases)
    assert (found.rule, found.line) == ("internal-tool", line_of(cases, f'"name": "{tool}"') - 1)
    assert f"`{tool}` is expected in case `news`" in found.text
    assert "remove it, and check the answer" in found.text


def test_all_formats_of_adk_are_examined(check: Check, tmp_path: Path) -> None:
    turns = [{"query": "q", "expected_tool_use": [{"tool_name": "google_search"}], "reference": ""}]
    flat, old = tmp_path / "flat.test.json", tmp_path / "old.evalset.json"
    flat.write_text(json.dumps(turns, indent=1))
    old.write_text(json.dumps([{"name": "a", "data": turns}], indent=1))
    camel = tmp_path / "camel.json"
    camel.write_text(
        '{"eval_set_id": "s", "eval_cases": [{"evalId": "a", "conversation": [{"userContent":\n'
        '{"parts": [{"text": "q"}]}, "intermediateData":\n'
        '{"toolUses": [\n{"name": "google_search"}]}}]}]}'
    )
    assert [(w.rule, w.line) for w in check(flat)] == [("internal-tool", 5)]
    assert [(w.rule, w.line) for w in check(old)] == [("internal-tool", 8)]
    assert [(w.rule, w.line) for w in check(camel)] == [("internal-tool", 4)]


def test_a_call_that_a_run_really_made_is_left_alone(check: Check, tmp_path: Path) -> None:
    recorded = {"id": "adk-1", "name": "google_search", "args": {}}
    call = {"parts": [{"functionCall": {"name": "google_search", "args": {}}}]}
    events = bare() | {
        "intermediate_data": {"invocation_events": [{"author": "a", "content": call}]}
    }
    cases = evalset(tmp_path / "s.json", evals("a", turn("q", recorded)), evals("b", events))
    assert check(cases) == []


def test_a_function_of_the_user_s_own_may_have_that_name(check: Check, tmp_path: Path) -> None:
    cases = evalset(tmp_path / "s.json", evals("a", turn("q", "google_search")))
    folder = app(tmp_path / "desk", "def google_search(query): ...\n")
    assert [w.rule for w in check(cases, folder)] == []


def test_cases_that_are_not_of_adk_may_expect_any_tool(check: Check, tmp_path: Path) -> None:
    cases = tmp_path / "c.yaml"
    cases.write_text("cases:\n- {id: a, input: q, tools: [google_search]}\n")
    assert check(cases) == []
    config = tmp_path / "b.yaml"
    config.write_text(
        "dataset: c.yaml\nevaluators: [tool_calls]\n"
        "providers: [{type: adk_http, endpoint_url: 'http://localhost:1'}]\n"
    )
    assert [(w.rule, w.line) for w in check(config)] == [("internal-tool", 2)]


def test_where_no_calls_are_scored_nothing_is_reported(check: Check, tmp_path: Path) -> None:
    cases = evalset(tmp_path / "s.json", evals("a", turn("q", "google_search"), bare()))
    (tmp_path / "test_config.json").write_text('{"criteria": {"response_match_score": 0.5}}')
    assert check(cases) == []


def test_a_turn_without_tool_uses_beside_one_with_them(check: Check, tmp_path: Path) -> None:
    cases = evalset(tmp_path / "s.json", evals("trip", turn("find", "search"), bare("yes"), bare()))
    (found,) = check(cases)
    assert (found.rule, found.line) == ("bare-turn", line_of(cases, '"yes"') - 5)
    assert "turns 2, 3 of case `trip` without `tool_uses`" in found.text


def test_turns_that_say_they_have_no_calls_are_left_alone(check: Check, tmp_path: Path) -> None:
    cases = evalset(tmp_path / "s.json", evals("a", turn("hi"), turn("find", "search")))
    assert check(cases) == []
    assert check(evalset(tmp_path / "t.json", evals("a", bare(), bare()))) == []


@pytest.mark.parametrize(
    ("criterion", "warned"),
    [
        ("1.0", True),
        ('{"threshold": 0.5, "matchType": "exact"}', True),
        ('{"threshold": 1.0, "match_type": "IN_ORDER"}', False),
        ('{"threshold": 1.0, "match_type": "any-order"}', False),
        ("0", False),
    ],
)
def test_only_exact_matching_asks_for_calls_of_every_turn(
    check: Check, tmp_path: Path, criterion: str, warned: bool
) -> None:
    cases = evalset(tmp_path / "s.json", evals("a", turn("find", "search"), bare()))
    text = f'{{"criteria": {{"tool_trajectory_avg_score": {criterion}, "safety_v1": 1}}}}'
    (tmp_path / "test_config.json").write_text(text)
    assert [w.rule for w in check(cases)] == ["bare-turn"] * warned
