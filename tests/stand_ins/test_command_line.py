"""What stand-ins and dispatch cases are for, from a program to a verdict, by commands alone."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from tests.conftest import Baton

SHOP = """
    import random
    from pathlib import Path

    import baton


    @baton.tool
    def look_up(order):
        return {"order": order, "total": random.randint(1, 10**9)}


    @baton.tool
    def pay_back(order):
        with Path(__file__).with_name("paid.txt").open("a") as file:
            print(order, file=file)
        return f"paid back order {order}"


    @baton.agent("refunds")
    def refunds(task):
        return pay_back(task.split()[-1])


    @baton.agent("desk")
    def desk(message):
        total = look_up("7")["total"] if "7" in message else "unknown"
        try:
            done = refunds("Refund order 7")
        except Exception:  # an agent that hides a failure, and claims success
            done = "The refund is done: 40 EUR went to your card today, transaction TX-4411."
        return f"{done} (total {total})"
"""
REFUND = "cases: [{id: refund, input: refund order 7}]\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(dedent(SHOP))
    (tmp_path / "cases.yaml").write_text(REFUND)
    return tmp_path


def rows(baton: Baton, *words: str) -> list[dict[str, Any]]:
    """Play, and return the results."""
    found: list[dict[str, Any]] = json.loads(baton("eval", "shop.py:desk", *words, "--json").out)[
        "results"
    ]
    return found


def answers(results: list[dict[str, Any]]) -> list[str]:
    return [row["trace"]["turns"][0]["output"]["text"] for row in results]


def calls(row: dict[str, Any]) -> list[dict[str, Any]]:
    steps = [step for run in row["trace"]["turns"][0]["runs"] for step in run["steps"]]
    return [step for step in steps if step["type"] == "tool_call"]


def paid(folder: Path) -> list[str]:
    file = folder / "paid.txt"
    return file.read_text().split() if file.exists() else []


def test_a_flaky_case_is_stable_with_replayed_tools(shop: Path, baton: Baton) -> None:
    flaky = answers(rows(baton, "cases.yaml", "--repeat", "3", "-e", "dispatch_completed"))
    assert len(set(flaky)) == 3
    assert paid(shop) == ["7", "7", "7"]
    (row, *_) = rows(baton, "cases.yaml", "-e", "dispatch_completed")
    recorded = [
        {
            "name": each["name"],
            "input": each["arguments"],
            "result": each["result"].get("data") or each["result"].get("text"),
        }
        for each in calls(row)
        if "dispatch" not in each
    ]
    case = {"id": "refund", "input": "refund order 7", "response": answers([row])[0]}
    stand_ins = {"mode": "replay", "recorded": recorded}
    (shop / "stable.json").write_text(json.dumps({"cases": [case], "stand_ins": stand_ins}))
    before = paid(shop)
    stable = rows(baton, "stable.json", "--repeat", "3", "-e", "response")
    assert [each["status"] for each in stable] == ["passed"] * 3
    assert answers(stable) == answers([row]) * 3
    assert paid(shop) == before


def test_an_agent_that_hides_the_failure_of_a_tool_is_found_with_a_fault(
    shop: Path, baton: Baton
) -> None:
    fault = "{faults: [{kind: error, text: the bank is closed}]}"
    mocked = f"{REFUND}stand_ins: {{mode: mock, tools: {{look_up: {{answers: [{{result: {{total: 40}}}}]}}, pay_back: %s}}}}\n"
    for name, pay_back in (("fine", "{answers: [{result: paid back order 7}]}"), ("fails", fault)):
        (shop / f"{name}.yaml").write_text(mocked % pay_back)
    fine = baton("eval", "shop.py:desk", "fine.yaml", "-e", "result_used").out
    assert "0       0        1      0" in fine  # too short an answer to tell that it was used
    found = baton("eval", "shop.py:desk", "fails.yaml", "-e", "result_used")
    assert found.code == 1
    assert "`refunds` failed, and no agent reported it" in found.out
    assert paid(shop) == []


def test_mock_mode_needs_no_key(shop: Path, baton: Baton, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_API_KEY", raising=False)
    (shop / "cases.yaml").write_text(
        f"{REFUND}stand_ins: {{mode: mock, key: SHOP_API_KEY, tools: "
        "{look_up: {answers: [{result: {total: 40}}]}}}\n"
    )
    (row,) = rows(baton, "cases.yaml", "-e", "dispatch_completed")
    assert row["status"] == "passed"
    assert [(each["name"], each["stand_in"]) for each in calls(row)] == [
        ("look_up", "fixture"),
        ("pay_back", "mock"),
    ]
    assert calls(row)[1]["result"]["data"] == {"status": "success", "data": "mock_response"}
    assert paid(shop) == []


def test_a_dispatch_case_has_one_verdict_recorded_in_its_file_and_played(
    shop: Path, baton: Baton
) -> None:
    assert baton("eval", "shop.py:desk", "cases.yaml", "-e", "dispatch_completed").code == 0
    (recording,) = (shop / ".baton/evaluations").iterdir()
    (row,) = json.loads(baton("report", recording, "--json").out)["results"]
    (made,) = [each["id"] for each in row["trace"]["turns"][0]["dispatches"]]
    before = paid(shop)
    for receiver, code, status in (("refunds", 0, "passed"), ("billing", 1, "failed")):
        file = f"{receiver}.yaml"
        assert baton("draft", recording, "--dispatch", made, "-o", file).code == 0
        drafted = yaml.safe_load((shop / file).read_text())
        drafted["cases"][0]["dispatch"]["expect"] = {"to": [receiver]}
        (shop / file).write_text(json.dumps(drafted))
        scored = [
            baton("score", *words, "-e", "dispatch_routing", "--json")
            for words in ([file], [recording, "--dataset", file])
        ]
        played = baton("eval", "shop.py:desk", file, "-e", "dispatch_routing", "--json")
        assert [each.code for each in (*scored, played)] == [code] * 3
        verdicts = [json.loads(each.out)["results"][0]["scores"][0] for each in (*scored, played)]
        assert [each["status"] for each in verdicts] == [status] * 3
    assert paid(shop) == before
