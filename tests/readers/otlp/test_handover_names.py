"""Tool names by which frameworks hand work over, and tools that only look like it."""

from __future__ import annotations

from typing import Any

import pytest

from baton.readers.otlp.handover_calls import by_name, prompt_of
from baton.readers.tool_definitions import targets_of


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("transfer_to_agent", {"agent_name": "billing"}, ("transfer", "billing")),
        ("transfer_to_billing", None, ("transfer", "billing")),
        ("Transfer to Billing", {}, ("transfer", "Billing")),
        ("handoff_to_billing", {}, ("transfer", "billing")),
        ("Handoff-transfer_to_billing", {}, ("transfer", "billing")),
        ("hand_off_to_billing", {}, ("transfer", "billing")),
        ("handoff_to_agent", {"agent_name": "billing", "message": "m"}, ("transfer", "billing")),
        ("handoff", {"to_agent": "billing", "reason": "money"}, ("transfer", "billing")),
        ("transfer_to_agent", None, ("transfer", None)),
        ("Delegate work to coworker", {"coworker": "Writer", "task": "t"}, ("delegate", "Writer")),
        ("ask_question_to_coworker", {"coworker": "Writer"}, ("delegate", "Writer")),
        ("Task", {"subagent_type": "expert", "prompt": "p"}, ("delegate", "expert")),
        ("task", {"title": "Buy milk"}, (None, None)),
        ("transfer_money", {"to": "Ana"}, (None, None)),
        ("handoff", {"ticket": 7}, (None, None)),
        ("delegate_task_to_member", {"member_id": "writer", "task": "t"}, ("delegate", "writer")),
    ],
)
def test_a_name_tells_a_hand_over_and_its_target(name: str, arguments: Any, told: Any) -> None:
    assert by_name(name, arguments) == told


def test_a_prompt_may_come_with_a_short_description_and_context() -> None:
    prompt, description, context = prompt_of(
        {"subagent_type": "x", "description": "Add", "prompt": "Add 1 and 2.", "depth": 2}
    )
    assert prompt is not None
    assert (prompt.text, description, context) == ("Add 1 and 2.", "Add", {"depth": 2})


@pytest.mark.parametrize("arguments", [{"a": "one", "b": "two"}, {"a": 1, "b": 2}])
def test_of_several_arguments_without_a_known_name_none_is_the_prompt(arguments: Any) -> None:
    assert prompt_of(arguments) == (None, None, arguments)


def test_the_only_argument_is_the_prompt_also_when_it_is_no_text() -> None:
    prompt, _, context = prompt_of({"order": {"id": 7}})
    assert prompt is not None
    assert (prompt.data, context) == ({"id": 7}, {})


@pytest.mark.parametrize("key", ["parameters", "parametersJsonSchema", "input_schema"])
def test_the_schema_of_a_tool_may_list_whom_it_hands_work_to(key: str) -> None:
    schema = {"properties": {"agent_name": {"type": "string", "enum": ["billing", "tech"]}}}
    definition = {"name": "transfer_to_agent", key: schema}
    assert targets_of([definition]) == {"transfer_to_agent": ["billing", "tech"]}
    assert targets_of([{"type": "function", "function": definition}]) == targets_of([definition])
    assert targets_of([{"name": "search", key: {"properties": {"mode": {"enum": ["a"]}}}}]) == {}
