"""`tool_calls` under the names and options that other tools have for it."""

from __future__ import annotations

from typing import Any

import pytest

import baton
from baton.evaluators import ToolCalls
from baton.model import (
    InputError,
    Score,
)
from baton.runner.plan import make_plan
from baton.testing import build
from baton.testing.build import call, case, run

Call = tuple[str, dict[str, Any]]


def options(type_: str, **config: Any) -> ToolCalls:
    (planned,) = make_plan([{"type": type_, "config": config}]).evaluators
    found = planned.evaluator
    assert isinstance(found, ToolCalls)
    return found


def bare(names: str) -> list[Call]:
    return [(name, {}) for name in names]


def paired(made: list[Call], wanted: list[Call], spec: Any, **overrides: Any) -> Score:
    trace = build.trace(run("helper", *(call(name, arguments) for name, arguments in made)))
    (result,) = baton.score(trace, [case(tool_calls=wanted, evaluators=overrides)], [spec])
    return result.scores[0]


@pytest.mark.parametrize("name", ["trajectory_evaluator", "TrajectoryEvaluator"])
def test_the_defaults_of_judge_llm(name: str) -> None:
    found = options(name)
    assert (found.mode, found.arguments, found.threshold) == ("exact", "ignore", 0.5)
    scored = paired([("f", {"x": 1})], [("f", {"x": 2})], name)
    assert (scored.status, scored.evaluator, scored.type) == (
        "passed",
        name,
        "tool_calls",
    )


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"sequence_match_type": "exact"}, {"mode": "exact"}),
        ({"sequence_match_type": "flexible"}, {"mode": "recall"}),
        ({"sequence_match_type": "subset"}, {"mode": "recall"}),
        ({"sequence_match_type": "superset"}, {"mode": "precision"}),
        ({"sequence_match_type": "partial"}, {"mode": "partial"}),
        ({"compare_arguments": True}, {"arguments": "exact"}),
        ({"compare_arguments": False}, {"arguments": "ignore"}),
        (
            {"argument_match_type": "fuzzy", "compare_arguments": True},
            {"arguments": "similar"},
        ),
        (
            {"compare_arguments": False, "argument_match_type": "fuzzy"},
            {"arguments": "ignore"},
        ),
        ({"argument_match_type": "regex"}, {"arguments": "regex"}),
        ({"argument_similarity_threshold": 0.7}, {"argument_similarity": 0.7}),
        ({"allow_extra_tools": False}, {"allow_extra": False}),
        ({"tool_name_match": "contains"}, {"names": "contains"}),
        ({"min_score_threshold": 0.9}, {"threshold": 0.9}),
    ],
)
def test_the_options_of_judge_llm(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    found = options("trajectory_evaluator", **theirs)
    assert {name: getattr(found, name) for name in ours} == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({}, {"mode": "exact", "arguments": "exact", "threshold": 1.0}),
        ({"trajectory_match_mode": "strict"}, {"mode": "exact"}),
        ({"trajectory_match_mode": "unordered"}, {"mode": "f1", "threshold": 1.0}),
        ({"trajectory_match_mode": "superset"}, {"mode": "any_order"}),
        ({"trajectory_match_mode": "subset"}, {"mode": "precision", "threshold": 1.0}),
        ({"tool_args_match_mode": "ignore"}, {"arguments": "ignore"}),
        ({"tool_args_match_mode": "subset"}, {"arguments": "superset"}),
        ({"tool_args_match_mode": "superset"}, {"arguments": "subset"}),
    ],
)
def test_the_options_of_langchain(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    for name in ("trajectory_match", "TrajectoryMatch"):
        found = options(name, **theirs)
        assert {option: getattr(found, option) for option in ours} == ours


@pytest.mark.parametrize(
    ("mode", "made", "status"),
    [
        ("unordered", "ba", "passed"),
        ("unordered", "abc", "failed"),
        ("superset", "bca", "passed"),
        ("superset", "a", "failed"),
        ("subset", "b", "passed"),
        ("subset", "bc", "failed"),
    ],
)
def test_langchain_modes_pass_and_fail_as_they_say(mode: str, made: str, status: str) -> None:
    spec = {"type": "trajectory_match", "config": {"trajectory_match_mode": mode}}
    assert paired(bare(made), bare("ab"), spec).status == status


@pytest.mark.parametrize(
    ("type_", "config", "said"),
    [
        ("trajectory_evaluator", {"sequence_match_type": "contains"}, "is not known"),
        ("trajectory_evaluator", {"trajectory_match_mode": "strict"}, "unknown key"),
        ("trajectory_match", {"sequence_match_type": "exact"}, "unknown key"),
        ("tool_calls", {"sequence_match_type": "exact"}, "unknown key"),
        ("trajectory_evaluator", {"min_score_threshold": 2}, "config.min_score_threshold"),
    ],
)
def test_a_word_is_accepted_as_its_own_tool_has_it(
    type_: str, config: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        options(type_, **config)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "overrides",
    [
        {"tool_calls": {"mode": "any_order"}},
        {"TrajectoryEvaluator": {"sequence_match_type": "flexible"}},
        {"trajectory_match": {"trajectory_match_mode": "superset"}},
    ],
)
def test_a_case_overrides_options_under_any_of_the_names(overrides: dict[str, Any]) -> None:
    made, wanted = bare("ba"), bare("ab")
    assert paired(made, wanted, "tool_calls").status == "failed"
    assert paired(made, wanted, "tool_calls", **overrides).status == "passed"
