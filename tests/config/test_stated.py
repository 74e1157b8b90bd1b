"""Which evaluators look at what a file of cases states, where nobody named any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from baton import load_dataset
from baton.config.evaluators import plan_for
from baton.runner.plan import Plan, make_plan


def plan_of(folder: Path, content: dict[str, Any]) -> Plan:
    path = folder / "cases.json"
    path.write_text(json.dumps(content))
    return plan_for(load_dataset(path), make_plan)


def types(plan: Plan) -> list[str]:
    return [planned.evaluator.type for planned in plan.evaluators]


def test_each_thing_stated_has_an_evaluator(tmp_path: Path) -> None:
    case = {
        "id": "a",
        "input": "hi",
        "response": "done",
        "structured": {"n": 1},
        "interactions": [{"agent": "b", "after": ["a"]}],
        "final_state": {"paid": True},
    }
    plan = plan_of(tmp_path, {"cases": [case]})
    assert types(plan) == ["response", "structured_output", "interactions", "state_equals"]
    assert not any(planned.optional for planned in plan.evaluators)


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
    plan = plan_of(tmp_path, {"eval_cases": [case]})
    assert types(plan) == ["agent_chain", "intermediate_responses", "state_equals"]
    assert [planned.optional for planned in plan.evaluators] == [False, False, True]
