"""Which evaluators look at what a file of cases states, where nobody named any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import baton
from baton.testing.build import trace


def evaluators(folder: Path, content: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return the types that score a played file of cases, each with whether it is optional."""
    path = folder / "cases.json"
    path.write_text(json.dumps(content))
    evaluation = baton.evaluate(path, lambda _: trace("hi"))
    return [(counts.type, counts.optional) for counts in evaluation.evaluators]


def test_each_thing_stated_has_an_evaluator(tmp_path: Path) -> None:
    case = {
        "id": "a",
        "input": "hi",
        "response": "done",
        "structured": {"n": 1},
        "interactions": [{"agent": "b", "after": ["a"]}],
        "final_state": {"paid": True},
    }
    assert evaluators(tmp_path, {"cases": [case]}) == [
        ("response", False),
        ("structured_output", False),
        ("interactions", False),
        ("state_equals", False),
        ("dispatch_target_known", True),
        ("dispatch_scope", True),
        ("dispatch_completed", True),
        ("context_carried", True),
        ("result_used", True),
        ("handoff_loops", True),
        ("claims_supported", True),
        ("announced_dispatch", True),
    ]


def test_an_eval_set_of_judge_llm_tells_texts_and_a_state_it_never_compares(
    tmp_path: Path,
) -> None:
    turn = {
        "user_content": "hi",
        "intermediate_data": {"intermediate_responses": [["a", [{"text": "one"}]]]},
    }
    case = {
        "eval_id": "a",
        "conversation": [turn],
        "final_session_state": {"paid": True},
        "evaluator_config": {"cost_evaluator": {"max_cost_per_case": 1}},
    }
    assert evaluators(tmp_path, {"eval_cases": [case]}) == [
        ("agent_chain", False),
        ("intermediate_responses", False),
        ("state_equals", True),
    ]
