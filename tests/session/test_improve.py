"""`baton improve`: texts of a program are improved, by the command line and by the function."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec
import pytest
from tests.improvements.world import moments

import baton
from baton.cli import main
from baton.model import Case, InputError, Usage
from baton.replays.cases import dispatch_cases
from baton.runner.costs import read_prices
from baton.runner.plan import make_plan
from baton.session.estimate import estimate_plays
from baton.session.improve import _add_second_judge, _models
from baton.testing import Received, Reply, build, llm_server

SHOP = """
    import baton
    from baton import prompts


    @baton.agent("refunds")
    def refunds(task):
        told = prompts.get("agent:refunds", "You pay money back.")
        number = f" for order {task.split()[-1]}" if "Name the order." in told else ""
        return f"paid back{number}"


    @baton.agent("billing")
    def billing(task):
        return "an invoice was sent"


    @baton.agent("desk")
    def desk(message):
        told = prompts.get("agent:desk", "You are the desk of {shop}.")
        return (refunds if "refund" in message else billing)(message)
"""
SENTENCES = ("Name the order.", "Be kind.", "Be quick.", "Be brave.", "Be calm.")
THINGS = ("kettle", "lamp", "chair", "radio", "clock", "scarf", "mirror", "basket", "drill", "tent")


def proposed(received: Received) -> Reply:
    chance = random.Random(received.number)
    old = re.findall(r"The text as it is⟧\n([^⟦⟧]*)\n⟦/", received.user)[0]
    return Reply(answer={"thinking": "", "text": f"{old} {chance.choice(SENTENCES)}"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "shop.py").write_text(dedent(SHOP), "utf-8")
    cases = []
    for number in range(30):
        thing, order = THINGS[number % 10], 4400 + number
        refund = number % 3 != 2
        said = f"{'refund' if refund else 'invoice'} for my {thing} please, it is order {order}"
        expect = {"agents": ["desk", "refunds" if refund else "billing"]}
        turn = {"input": said, **expect}
        if refund:
            turn["response_contains"] = [str(order)]
        cases.append({"id": f"c{number}", "turns": [turn]})
    (tmp_path / "cases.yaml").write_text(json.dumps({"cases": cases}), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none-is-needed")
    with llm_server(proposed) as server:
        judge = json.dumps(server.judge("openai"))
        (tmp_path / "baton.yaml").write_text(
            f"judge: {judge}\nproviders: [{{type: python, target: shop.py:desk}}]\n", "utf-8"
        )
        yield tmp_path


BASE = ("improve", "cases.yaml", "--trust", ".", "--seed", "1")
ARGUMENTS = (*BASE, "--candidates", "12")


@pytest.mark.heavy
def test_a_gain_is_proven_shown_and_kept_and_no_file_is_changed(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "shop.py").read_bytes()
    assert main([*ARGUMENTS]) == 0
    shown = capfd.readouterr()
    assert "agent:refunds: proven" in shown.out
    assert "+You pay money back. Name the order." in shown.out.replace("\n  ", "\n")
    assert "1 text proven to be better" in shown.out
    assert "kept in .baton/improvements/" in shown.err
    assert (folder / "shop.py").read_bytes() == before
    (run,) = (folder / ".baton" / "improvements").iterdir()
    kept = json.loads((run / "improvement.json").read_bytes())
    assert kept["id"] == run.name
    assert (run / "journal.jsonl").stat().st_mode & 0o077 == 0

    # Done again from its folder: nothing is played or asked, and the result is the same.
    assert main([*ARGUMENTS, "--resume", str(run), "--json"]) == 0
    again = json.loads(capfd.readouterr().out)
    assert again["studies"] == kept["studies"]
    assert again["plays"] == kept["plays"]

    # What has changed is named.
    other = ("improve", "cases.yaml", "--trust", ".", "--seed", "2")
    assert main([*other, "--resume", str(run)]) == 2
    assert "cannot be resumed: the seed changed" in capfd.readouterr().err
    (folder / "shop.py").write_bytes(before.replace(b"pay money back", b"pay money out"))
    assert main([*ARGUMENTS, "--resume", str(run)]) == 2
    assert "the agents' texts changed" in capfd.readouterr().err


@pytest.mark.heavy
def test_no_proven_gain_is_exit_1_and_a_budget_exit_3(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*BASE, "--agent", "desk", "--candidates", "2"]) == 1
    assert "no gain" in capfd.readouterr().out
    assert main([*ARGUMENTS, "--max-calls", "3"]) == 3
    shown = capfd.readouterr()
    stopped = "stopped: the budget of 3 plays (--max-calls) does not suffice: the next step needs"
    assert f"{stopped} 18 plays, and 3 are left" in " ".join(shown.out.split())
    assert "--resume" not in shown.err  # nothing was played


def test_a_second_judge_with_settings_judges_what_is_judged_if_anything_is() -> None:
    second = {"model": "openai:large", "base_url": None, "api_key": None}
    made = moments()
    made.plan = make_plan(["scope_fidelity", "dispatch_routing"])
    named = _add_second_judge(made, "openai:small", second)
    assert named == {"scope_fidelity by openai:large"}
    again = made.plan.all_evaluators["scope_fidelity by openai:large"]
    assert _models(again, "openai:small") == {"openai:large"}
    # A server always names one; an issue that no judge found needs none.
    made.plan = make_plan(["dispatch_routing"])
    assert _add_second_judge(made, "openai:small", second) == set()
    with pytest.raises(InputError, match="none of the evaluators asks a judge"):
        _add_second_judge(made, "openai:small", "openai:large")


def test_a_dry_run_plays_and_asks_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*ARGUMENTS, "--agent", "refunds", "--dry-run"]) == 0
    shown = capfd.readouterr().out
    assert "9 train, 9 select and 12 held-out cases" in shown
    assert "up to 1 component, at most 358 plays\nat least 58 plays for one component" in shown
    assert "at most 12 requests" in shown
    assert "cost of proposals: " in shown
    # Cases that somebody wrote have no recording, and nobody can know what an agent will ask.
    unknown = "unknown, as is the usage of 30 cases without recorded tokens or costs\n"
    ends = f"cost of agents: {unknown}total cost: unknown; `--max-cost` limits it\n"
    assert shown.endswith(ends)
    assert not (folder / ".baton").exists()


def test_a_dry_run_prices_judges_each_by_its_own_model(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    small, large = "openai:gpt-4o-mini", "openai:gpt-4o"

    def judging(default: str, own: str) -> dict[str, Any]:
        config = {
            "judge": {"model": default},
            "providers": [{"type": "python", "target": "shop.py:desk"}],
            "evaluators": [
                {"type": "scope_fidelity"},
                {"type": "result_integration", "config": {"judge": {"model": own}}},
            ],
        }
        (folder / "baton.yaml").write_text(json.dumps(config), "utf-8")
        assert main([*ARGUMENTS, "--agent", "refunds", "--dry-run", "--json"]) == 0
        found: dict[str, Any] = json.loads(capfd.readouterr().out)["dry_run"]
        # One dispatch a case and rubric is assumed; each play asks both judges.
        assert found["judging"]["calls"] == 2 * found["plays"]
        assert found["total_usd"] is None  # what the agents ask is unknown
        return found["judging"]  # type: ignore[no-any-return]

    costs = [
        judging(*each)["cost_usd"] for each in ((small, small), (small, large), (large, large))
    ]
    assert 0 < costs[0] < costs[2] / 10
    assert costs[1] == pytest.approx((costs[0] + costs[2]) / 2)
    assert main([*ARGUMENTS, "--agent", "refunds", "--dry-run"]) == 0
    assert f"cost of judges: at most {costs[2]:.2f} USD" in capfd.readouterr().out


def recorded_cases(*models: str) -> list[Case]:
    """Dispatches of a desk; the model of the desk, which used tokens each time, is recorded."""
    used = Usage(input_tokens=900_000, cache_read_tokens=100_000, output_tokens=100_000)
    traces = [
        build.trace(
            build.turn(
                "Pay it back.",
                build.run("desk", build.delegate("refunds", "Pay."), model=model, usage=used),
                build.run("refunds", output="paid", model="other", usage=used),
                output="paid",
            ),
            id=f"t{number}",
        )
        for number, model in enumerate(models)
    ]
    return dispatch_cases(traces, form="decision")


def test_plays_are_priced_by_what_the_recordings_of_their_cases_used() -> None:
    prices = read_prices({"small": {"input": 1.0, "output": 10.0}})
    plan = msgspec.structs.replace(make_plan(["dispatch_routing"]), prices=prices)
    found = estimate_plays(plan, recorded_cases("small", "small"), 10)
    # A decision is made by the desk alone: what the receiver took is not counted.
    assert found.cost_usd == pytest.approx(10 * (1.0 + 1.0), rel=0.11)
    assert (found.input_tokens, found.output_tokens) == (10_000_000, 1_000_000)
    assert (found.recorded, found.unknown) == (2, [])


def test_what_is_unknown_of_the_cost_of_plays_is_named() -> None:
    prices = read_prices({"small": {"input": 1.0, "output": 10.0}})
    plan = msgspec.structs.replace(make_plan(["dispatch_routing"]), prices=prices)
    cases = [*recorded_cases("small", "nobody-knows-it"), Case(id="written", turns=[])]
    found = estimate_plays(plan, cases, 10)
    assert found.cost_usd is None
    assert found.recorded == 2
    assert found.unknown == [
        "the price of nobody-knows-it",
        "the usage of 1 case without recorded tokens or costs",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--strategie", "gepa"), "--strategie"),
        (("--strategy", "geppa"), "--strategy: there is no strategy `geppa`; did you mean `gepa`"),
        (("--candidates", "0"), "--candidates is at least 1"),
        (("--aim", "tone"), "--aim: nothing scores `tone`"),
        (("--max-cost", "-1"), "--max-cost"),
        (("--agent", "refnds"), "no component `agent:refnds`; did you mean `agent:refunds`"),
        (("--component", "agent:dsk"), "no component `agent:dsk`; did you mean `agent:desk`"),
        (("--issues", "none.jsonl"), "none.jsonl"),
        (("--labels", "none.jsonl"), "none.jsonl"),
        (("--limit", "4"), "too few cases to prove a gain"),
    ],
)
def test_wrong_options_stop_the_run(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert main([*BASE, *arguments]) == 2
    told = capfd.readouterr().err
    assert message in told
    assert "--resume" not in told
    assert not (folder / ".baton").exists()


def test_misspelt_options_of_the_function_and_a_missing_model_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="candidate"):
        baton.improve("cases.yaml", candidate=3)  # type: ignore[call-arg]
    os.environ.pop("OPENAI_API_KEY")
    (folder / "baton.yaml").unlink()
    with pytest.raises(InputError, match="a model proposes texts"):
        baton.improve("cases.yaml", "shop.py:desk", trust=["."])
