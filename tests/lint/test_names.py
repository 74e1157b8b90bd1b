"""Warnings about rubrics, names of apps, and chains without the agent that opens the turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Check, app, evals, evalset, line_of, turn

RUBRIC = {"rubricId": "r", "rubricContent": {"textProperty": "It is polite."}}
QUALITY = "rubric_based_final_response_quality_v1"


def criteria(path: Path, criterion: Any) -> Path:
    path.write_text(
        json.dumps({"criteria": {"response_match_score": 1, QUALITY: criterion}}, indent=1)
    )
    return path


@pytest.mark.parametrize("criterion", [0.8, {"threshold": 0.8}, {"threshold": 0.8, "rubrics": []}])
def test_a_rubric_metric_without_rubrics(check: Check, tmp_path: Path, criterion: Any) -> None:
    path = criteria(tmp_path / "test_config.json", criterion)
    (found,) = check(path)
    assert (found.rule, found.line) == ("no-rubrics", line_of(path, QUALITY))
    assert "nor has a case: ADK then evaluates nothing" in found.text


def test_rubrics_of_the_criterion_or_of_a_case_will_do(check: Check, tmp_path: Path) -> None:
    path = criteria(tmp_path / "test_config.json", {"threshold": 0.8, "rubrics": [RUBRIC]})
    assert check(path) == []
    path = criteria(path, 0.8)
    typed = {**RUBRIC, "type": "FINAL_RESPONSE_QUALITY"}
    evalset(tmp_path / "s.json", {**evals("a"), "rubrics": [typed]})
    assert check(path) == []
    evalset(tmp_path / "s.json", evals("a", {**turn(), "rubrics": [typed]}))
    assert check(path) == []


def test_rubrics_of_cases_count_by_their_type(check: Check, tmp_path: Path) -> None:
    path = criteria(tmp_path / "test_config.json", 0.8)
    evalset(tmp_path / "s.json", {**evals("a"), "rubrics": [RUBRIC]})
    (found,) = check(path)
    assert "rubrics of cases count only with `type` FINAL_RESPONSE_QUALITY" in found.text


ROUTER = """
from google.adk.agents import Agent
from google.adk.apps import App

billing = Agent(name="billing")
router = Agent(name="router", sub_agents=[billing])
root_agent = router
"""


def test_an_app_name_that_no_folder_bears(check: Check, tmp_path: Path) -> None:
    folder = app(tmp_path / "support_desk", ROUTER)
    cases = evalset(
        tmp_path / "s.json",
        evals("a", app_name="support_desk"),
        evals("b", app_name="suport_desk"),
        evals("c", app_name="suport_desk"),
    )
    (found,) = check(cases, folder)
    assert (found.rule, found.line) == ("app-name", line_of(cases, "suport_desk"))
    assert "did you mean `support_desk`?" in found.text


def test_an_app_that_is_named_unlike_its_folder(check: Check, tmp_path: Path) -> None:
    code = ROUTER + 'app = App(root_agent=root_agent, name="flight_booking")\n'
    app(tmp_path / "app", code)
    app(tmp_path / "ok", code.replace("flight_booking", "ok"))
    cases = evalset(tmp_path / "sets" / "s.json", evals("a", app_name="app"))
    (found,) = check(cases)
    assert (found.rule, found.line) == ("app-name", 8)
    assert 'write `name="app"`' in found.text


def test_where_no_folder_is_known_any_name_will_do(check: Check, tmp_path: Path) -> None:
    assert check(evalset(tmp_path / "s.json", evals("a", app_name="anything"))) == []


def config(path: Path, *lines: str, **options: Any) -> Path:
    spec = json.dumps([{"type": "agent_chain", "config": options}])
    path.write_text("\n".join(("dataset: cases.yaml", f"evaluators: {spec}", *lines)) + "\n")
    return path


EXACT = {"sequence_match_type": "exact"}
NO_EXTRA = {"allow_extra_agents": False}
AGENTS = "agents:\n  router: {sub_agents: [billing, weather]}\n  billing: {}\n  weather: {}\n"


@pytest.mark.parametrize("options", [EXACT, NO_EXTRA])
def test_a_strict_chain_without_the_agent_that_opens_the_turn(
    check: Check, tmp_path: Path, options: dict[str, Any]
) -> None:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    (tmp_path / "cases.yaml").write_text(
        "cases:\n- id: good\n  input: hi\n  agents: [router, billing]\n"
        "- id: bad\n  input: hi\n  agents: [billing]\n"
    )
    (found,) = check(config(tmp_path / "b.yaml", "agents: agents.yaml", **options))
    assert (found.rule, found.line) == ("chain-opener", 7)
    assert "turn 1 of case `bad` states `[billing]` without `router`, which opens it" in found.text


@pytest.mark.parametrize(
    ("more", "options", "chain"),
    [
        ("agents: agents.yaml", {}, "[billing]"),
        ("", EXACT, "[billing]"),
        ("agents: agents.yaml", EXACT, "[planner, writer]"),
        ("agents: agents.yaml", NO_EXTRA, "[billing, router]"),
    ],
)
def test_a_chain_that_may_well_match_is_left_alone(
    check: Check, tmp_path: Path, more: str, options: dict[str, Any], chain: str
) -> None:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    (tmp_path / "cases.yaml").write_text(f"cases: [{{id: a, input: hi, agents: {chain}}}]\n")
    assert check(config(tmp_path / "b.yaml", more, **options)) == []


def test_a_later_turn_may_open_with_whoever_answered_last(check: Check, tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    (tmp_path / "cases.yaml").write_text(
        "cases:\n- id: a\n  turns:\n  - {input: hi, agents: [router, billing]}\n"
        "  - {input: more, agents: [billing]}\n"
        "  - {input: again, new_session: true, agents: [billing]}\n"
    )
    (found,) = check(config(tmp_path / "b.yaml", "agents: agents.yaml", **EXACT))
    assert "turn 3 of case `a`" in found.text


def test_names_are_those_that_cases_use(check: Check, tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: hi, agents: [desk, billing]}]\n")
    more = ("agents: agents.yaml", "agent_names: {router: desk}")
    assert check(config(tmp_path / "b.yaml", *more, **EXACT)) == []


def test_the_root_of_an_app_opens_its_turns(check: Check, tmp_path: Path) -> None:
    folder = app(tmp_path / "desk", ROUTER)
    strict = {"evaluator_config": {"subagent_evaluator": EXACT}, "metadata": {"by": "me"}}
    agents = {"intermediate_responses": [{"agent_name": "billing"}]}
    cases = evalset(tmp_path / "s.json", evals("a", turn("hi", **agents), app_name="desk") | strict)
    (found,) = check(cases, folder)
    assert "without `router`, which opens it" in found.text


def test_hand_offs_alone_never_name_who_opens(check: Check, tmp_path: Path) -> None:
    strict = {"evaluator_config": {"subagent_evaluator": EXACT}, "metadata": {"by": "me"}}
    call = {"name": "transfer_to_agent", "args": {"agent_name": "billing"}}
    record = {"type": "agent_transfer", "to_agent": "billing"}
    complete = {**record, "from_agent": "router"}
    cases = evalset(
        tmp_path / "s.json",
        evals("called", turn("hi", call)) | strict,
        evals("told", turn("hi", intermediate_responses=[record])) | strict,
        evals("complete", turn("hi", intermediate_responses=[complete])) | strict,
        evals("loose", turn("hi", call)),
    )
    found = check(cases)
    assert [w.rule for w in found] == ["chain-opener", "chain-opener"]
    assert ["`called`" in found[0].text, "`told`" in found[1].text] == [True, True]


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ({}, True),
        ({"mode": "recall"}, True),
        ({"mode": "exact"}, False),
        ({"mode": "f1"}, False),
        ({"allow_extra": False}, False),
    ],
)
def test_a_case_that_expects_no_calls_and_allows_all(
    check: Check, tmp_path: Path, options: dict[str, Any], warned: bool
) -> None:
    (tmp_path / "cases.yaml").write_text(
        "cases:\n- id: bad\n  input: hi\n  tools: []\n"
        "- id: some\n  turns: [{input: hi, tools: [a]}, {input: hi, tools: []}]\n"
        "- {id: nothing, input: hi}\n"
    )
    spec = json.dumps([{"type": "tool_calls", "config": options}])
    (tmp_path / "b.yaml").write_text(f"dataset: cases.yaml\nevaluators: {spec}\n")
    found = check(tmp_path / "b.yaml")
    assert [(w.rule, w.line) for w in found] == [("no-calls", 4)] * warned
    assert all("case `bad` expects no calls" in w.text for w in found)
