"""`baton improve`: texts of a program are improved, by the command line and by the function."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from tests.improvements.world import moments

import baton
from baton.cli import main
from baton.model import InputError
from baton.runner.plan import make_plan
from baton.session.improve import _add_second_judge, _models
from baton.testing import Received, Reply, llm_server

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
    ends = "not priced: what agents ask in these plays; `--max-cost` limits all of it\n"
    assert shown.endswith(ends)
    assert not (folder / ".baton").exists()


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
        (("--limit", "4"), "are too few to prove a gain"),
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
