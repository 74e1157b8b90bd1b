"""Where stand-ins come from: a config, files of Strands and ADK, mock mode, an LLM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import baton
from baton.model import CaseResult, InputError, ToolCall
from baton.plugins.user_code import load_object
from baton.testing.llm import LlmServer, Reply

Run = Callable[..., Any]
SHOP = """
    import random

    import baton

    PAID = []


    @baton.tool
    def look_up(order):
        return {"order": order, "total": random.randint(1, 10**9)}


    @baton.tool
    async def pay_back(order, amount):
        PAID.append(order)
        return {"paid": amount, "order": order}


    @baton.agent("refunds")
    async def refunds(task):
        order = task.split()[-1]
        try:
            done = await pay_back(order, 40)
        except Exception:  # the fault that the test looks for: a failure is reported as done
            return f"Order {order} was refunded in full: 40 EUR paid to the card by transaction TX-4411."
        return f"refund: {done}"


    @baton.agent("desk")
    async def desk(message):
        found = look_up(message.split()[-1])
        return f"Total {found}. " + await refunds(f"Refund order {message.split()[-1]}")
"""
CASE = "cases: [{id: refund, input: refund order 7}]\n"
PLAYED = (
    "evaluators: [{type: dispatch_completed}]\nproviders: [{type: python, target: 'shop:desk'}]\n"
)


def shop(folder: Path, **files: str) -> Path:
    (folder / "shop.py").write_text(dedent(SHOP))
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (folder / f"{stem}.{suffix}").write_text(dedent(text))
    return folder


def played(folder: Path, case: str = CASE, **options: Any) -> CaseResult:
    (folder / "cases.yaml").write_text(dedent(case))
    own = options.pop("spec", {})
    target = {"type": "python", "target": f"{folder}/shop.py:desk", **own}
    evaluators = options.pop("evaluators", ["dispatch_completed"])
    done = baton.evaluate(folder / "cases.yaml", target, evaluators, **options)
    return done.results[0]


def calls(result: CaseResult) -> list[tuple[str, str | None, Any]]:
    """The calls of a play: the tool, what answered, and the result."""
    assert result.trace is not None, result.error
    runs = [run for turn in result.trace.turns for run in turn.runs]
    steps = [step for run in runs for step in run.steps if isinstance(step, ToolCall)]
    plain = [step for step in steps if step.dispatch is None]
    return [
        (s.name, s.stand_in, s.error if s.result is None else s.result.data or s.result.text)
        for s in plain
    ]


def paid(folder: Path) -> list[str]:
    return load_object(f"{folder}/shop.py:PAID", folder)  # type: ignore[no-any-return]


def test_stand_ins_of_a_config_hold_where_dataset_and_case_say_nothing(
    tmp_path: Path, baton: Run
) -> None:
    own = """
        stand_ins: {tools: {look_up: {answers: [{result: of the file}]}}}
        cases:
        - {id: plain, input: refund order 7}
        - {id: own, input: refund order 7, stand_ins: {tools: {pay_back: {answers: [{result: of the case}]}}}}
    """
    of_config = "stand_ins: {mode: mock, tools: {look_up: {mode: mock}, pay_back: {mode: mock}}}\n"
    shop(tmp_path, cases_yaml=own, baton_yaml=f"{PLAYED}dataset: cases.yaml\n{of_config}")
    report = json.loads(baton("eval", "baton.yaml", "--json").out)
    answers = {
        row["case_id"]: [
            step["stand_in"]
            for run in row["trace"]["turns"][0]["runs"]
            for step in run["steps"]
            if step["type"] == "tool_call"
        ]
        for row in report["results"]
    }
    assert answers == {"plain": ["fixture", "mock"], "own": ["fixture", "fixture"]}


def test_mock_mode_answers_without_a_key_and_with_the_dummy_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop(tmp_path)
    case = f"{CASE}stand_ins: {{mode: mock, key: SHOP_KEY}}\n"
    for key in ("", "dummy_key"):
        monkeypatch.setenv("SHOP_KEY", key)
        made_up = {"status": "success", "data": "mock_response"}
        assert calls(played(tmp_path, case)) == [
            ("look_up", "mock", made_up),
            ("pay_back", "mock", made_up),
        ]
    assert paid(tmp_path) == []
    monkeypatch.setenv("SHOP_KEY", "a-real-key")
    assert [by for _, by, _ in calls(played(tmp_path, case))] == [None, None]


def test_only_a_live_tool_runs_and_a_misspelt_one_stops_the_run(tmp_path: Path) -> None:
    shop(tmp_path)
    case = f"{CASE}stand_ins: {{tools: {{look_up: {{mode: mock}}, pay_back: {{mode: mock}}}}}}\n"
    with pytest.raises(InputError, match="no tool `pay_bak`; did you mean `pay_back`"):
        played(tmp_path, case, live_tools=["pay_bak"])
    assert paid(tmp_path) == []
    result = played(tmp_path, case, live_tools=["pay_back"])
    assert [(name, by) for name, by, _ in calls(result)] == [
        ("look_up", "mock"),
        ("pay_back", None),
    ]
    assert paid(tmp_path) == ["7"]


def test_a_tool_that_may_run_is_known_though_no_case_names_it(tmp_path: Path, baton: Run) -> None:
    mocked = {"cases_yaml": f"stand_ins: {{mode: mock}}\n{CASE}"}
    shop(tmp_path, baton_yaml=f"dataset: cases.yaml\n{PLAYED}", **mocked)
    done = baton("eval", "--live-tools", "pay_bak")
    assert done.code == 2
    assert "--live-tools: no tool `pay_bak`; did you mean `pay_back`?" in done.err
    assert not (tmp_path / ".baton").exists()
    assert baton("eval", "--live-tools", "pay_back").code == 0
    other = baton("eval", "--live-tools", "teleport")
    assert "--live-tools: unknown tool `teleport`" in other.err


def test_a_flaky_case_is_stable_once_its_tools_are_replayed(tmp_path: Path) -> None:
    shop(tmp_path)
    first, second = (calls(played(tmp_path))[0][2] for _ in range(2))
    assert first != second  # the tool is random
    recorded = f"""
        cases: [{{id: refund, input: refund order 7}}]
        stand_ins:
          mode: replay
          recorded:
          - {{name: look_up, input: {{order: '7'}}, result: {json.dumps(first)}}}
          - {{name: pay_back, input: {{order: '7', amount: 40}}, result: {{paid: 40}}}}
    """
    again = [calls(played(tmp_path, recorded)) for _ in range(3)]
    assert again[0] == again[1] == again[2]
    assert again[0][0] == ("look_up", "replay", first)


HIDES = """
    import baton


    @baton.agent("refunds")
    def refunds(task):
        return "paid 40"


    @baton.agent("desk")
    def desk(message):
        try:
            refunds("Refund order 7")
        except Exception:
            pass
        return "The refund is done: 40 EUR went to your card today, transaction TX-4411."
"""


def test_an_agent_that_hides_the_failure_of_another_is_found_with_a_fault(tmp_path: Path) -> None:
    shop(tmp_path)
    (tmp_path / "shop.py").write_text(dedent(HIDES))
    fault = f"{CASE}stand_ins: {{agents: {{refunds: {{faults: [{{kind: error}}]}}}}}}\n"
    result = played(tmp_path, fault, evaluators=["result_used"])
    assert "`refunds` failed, and no agent reported it" in result.scores[0].reason


CHAOS = {
    "cases": [
        {"name": "baseline", "input": "refund order 7", "effects": {}},
        {
            "name": "timeout",
            "input": "refund order 7",
            "effects": {"tool_effects": {"look_up": [{"effect_type": "timeout"}]}},
        },
        {
            "name": "removed",
            "input": "refund order 7",
            "effects": {"tool_effects": {"look_up": [{"effect_type": "remove_fields"}]}},
        },
        {
            "name": "wrong",
            "input": "refund order 7",
            "effects": {
                "tool_effects": {"look_up": [{"effect_type": "corrupt_values", "corrupt_ratio": 1}]}
            },
        },
    ],
    "evaluators": [],
}


def test_chaos_cases_of_strands_are_played_with_their_effects(tmp_path: Path) -> None:
    shop(tmp_path)
    (tmp_path / "chaos.json").write_text(json.dumps(CHAOS))
    target = {"type": "python", "target": f"{tmp_path}/shop.py:desk"}
    done = baton.evaluate(tmp_path / "chaos.json", target, ["dispatch_completed"])
    baseline, timeout, removed, wrong = done.results
    assert calls(baseline)[0][1] is None
    assert "Tool call timed out" in str(timeout.error)
    assert calls(removed)[0] == ("look_up", "fault: partial", {"order": "7"})
    name, by, answer = calls(wrong)[0]
    assert (name, by) == ("look_up", "fault: wrong_type")
    assert [type(value) for value in answer.values()] == [list, str]


SIMULATION = {
    "tool_simulation_configs": [
        {
            "tool_name": "look_up",
            "injection_configs": [
                {"match_args": {"order": "7"}, "injected_response": {"order": "7", "total": 3}},
                {
                    "injected_error": {
                        "injected_http_error_code": 404,
                        "error_message": "no such order",
                    }
                },
            ],
        },
        {
            "tool_name": "pay_back",
            "injection_configs": [
                {
                    "injection_probability": 0.5,
                    "random_seed": 1,
                    "injected_response": {"paid": 0},
                }
            ],
        },
    ]
}


def test_an_environment_simulation_of_adk_answers_as_it_says(tmp_path: Path) -> None:
    shop(tmp_path)
    (tmp_path / "simulation.json").write_text(json.dumps(SIMULATION))
    case = """
        stand_ins: {from: simulation.json}
        cases: [{id: known, input: refund order 7}, {id: other, input: refund order 8}]
    """
    known = played(tmp_path, case)
    assert calls(known)[0] == ("look_up", "fixture", {"order": "7", "total": 3})
    # Whether it happens to the first call is drawn from the seed: the same in each play.
    assert calls(played(tmp_path, case))[1][1] == calls(known)[1][1]


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ({"tool_effects": {"look_up": [{"effect_type": "timeot"}]}}, "timeot"),
        ({"tool_effects": {}, "modl_effects": {}}, "unknown key; did you mean `model_effects`"),
        ({"tool_effects": {}, "model_effects": {"*": [{}]}}, "change what models say"),
        ({"tool_simulation_configs": [{"tool_name": "a", "mock_strategy": 1}]}, "mock_strategy"),
        ({"tool_simulation_configs": [{"tool_name": "a"}]}, "needs `injection_configs`"),
        ({"tools": {}}, "does not mention tools"),
    ],
)
def test_a_mistake_in_a_file_of_another_tool_is_one_clear_message(
    tmp_path: Path, file: Any, says: str
) -> None:
    shop(tmp_path)
    (tmp_path / "more.json").write_text(json.dumps(file))
    with pytest.raises(InputError, match=says) as raised:
        played(tmp_path, f"{CASE}stand_ins: {{from: more.json}}\n")
    assert len(raised.value.problems) == 1
    assert "more.json" in str(raised.value)


@pytest.mark.parametrize("name", ["../secret.json", "/etc/hosts", "gone.json"])
def test_a_dataset_has_no_file_read_that_is_not_beside_it(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (tmp_path / "secret.json").write_text('{"tool_effects": {}}')
    with pytest.raises(InputError, match=r"is outside the folder of|no such file beside"):
        played(shop(folder), f"{CASE}stand_ins: {{from: {name}}}\n")


@pytest.mark.parametrize("workers", [None, pytest.param("process", marks=pytest.mark.heavy)])
def test_an_llm_answers_for_a_tool_and_knows_what_it_said_before(
    tmp_path: Path, baton_llm: LlmServer, workers: str | None
) -> None:
    shop(tmp_path)
    said = [
        Reply(answer={"result": '{"order": "7", "total": 12}', "failed": False}),
        Reply(answer={"result": "the card has expired", "failed": True}),
    ]
    baton_llm.script = said
    case = f"{CASE}stand_ins: {{mode: llm, about: 'Order 7 has two items.'}}\n"
    result = played(tmp_path, case, judge=baton_llm.judge(), spec={"workers": workers})
    assert calls(result) == [
        ("look_up", "llm", {"order": "7", "total": 12}),
        ("pay_back", "llm", "StandInError: the card has expired"),
    ]
    assert paid(tmp_path) == []
    first, second = (str(each.messages) for each in baton_llm.requests)
    assert "Order 7 has two items." in first
    assert "earlier calls" not in first.partition("look_up")[2]
    assert "total" in second
    assert "earlier calls" in second


@pytest.mark.heavy
def test_an_llm_that_gives_no_answer_is_the_error_of_its_case_in_a_process_too(
    tmp_path: Path, baton_llm: LlmServer
) -> None:
    shop(tmp_path)
    baton_llm.script = [Reply(status=400)] * 9
    case = f"{CASE}stand_ins: {{mode: llm}}\n"
    result = played(tmp_path, case, judge=baton_llm.judge(), spec={"workers": "process"})
    assert result.error is not None
    assert (
        "the tool `look_up` was not run: the LLM that is to answer gave no answer" in result.error
    )


def test_an_llm_that_is_to_answer_and_is_not_named_stops_the_run(tmp_path: Path) -> None:
    shop(tmp_path)
    with pytest.raises(InputError, match=r"stand-ins have an LLM answer .* no model is configured"):
        played(tmp_path, f"{CASE}stand_ins: {{mode: llm}}\n")
