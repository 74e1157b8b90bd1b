"""How `baton improve` ends where something is in its way, on the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.session.test_improve import ARGUMENTS, BASE, SHOP, THINGS, folder, proposed

from baton.cli import main
from baton.testing import Received, Reply, llm_server

__all__ = ["folder"]

pytestmark = pytest.mark.heavy


def ask(where: Path, judge: dict[str, object], more: str = "") -> None:
    """Write a config that asks another model."""
    spec = (
        f"judge: {json.dumps(judge)}\nproviders: [{{type: python, target: shop.py:desk}}]\n{more}"
    )
    (where / "baton.yaml").write_text(spec, "utf-8")


def test_a_run_that_is_killed_is_resumed_and_applied(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "shop.py").read_bytes()
    words = [sys.executable, "-m", "baton", *ARGUMENTS]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
        assert running.stderr is not None
        for line in running.stderr:  # until cases were played, and the search begins
            if b"gepa" in line:
                break
        os.kill(running.pid, signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL
    (run,) = (folder / ".baton" / "improvements").iterdir()
    kept = (run / "journal.jsonl").read_bytes()
    assert kept.count(b"\n") > 10
    assert (folder / "shop.py").read_bytes() == before
    assert json.loads((run / "improvement.json").read_bytes())["status"] == "running"
    assert main(["improve", "--from", str(run), "--apply", "--trust", "."]) == 3
    shown = capfd.readouterr()
    assert "interrupted: results until then; --resume continues" in shown.out
    assert "no gain is proven: nothing is written" in shown.err

    assert main([*ARGUMENTS, "--resume", str(run), "--apply", "--json"]) == 0
    resumed = json.loads(capfd.readouterr().out)
    assert resumed["status"] == "finished"
    assert (run / "journal.jsonl").read_bytes().startswith(kept[: kept.rindex(b"\n")])
    assert (run / "backup" / "shop.py").read_bytes() == before
    (proven,) = [each for each in resumed["studies"] if each["outcome"] == "proven"]
    text = proven["candidates"][proven["best"]]["text"]
    assert "Name the order." in text
    written = (folder / "shop.py").read_text("utf-8")
    assert written == before.decode().replace("You pay money back.", text)


def test_a_model_that_is_down_is_exit_3_and_nothing_is_written(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with llm_server() as server:
        judge = server.judge("openai", retries=0)
    ask(folder, judge)  # nobody listens there any more
    before = (folder / "shop.py").read_bytes()
    assert main([*BASE, "--candidates", "2", "--apply"]) == 3
    shown = capfd.readouterr()
    assert "stopped: the model gave no answer" in shown.out
    assert "no gain is proven: nothing is written" in shown.err
    assert "--resume" in shown.err
    assert (folder / "shop.py").read_bytes() == before


def test_a_text_that_loses_a_placeholder_is_refused_with_the_reason(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def careless(_: Received) -> Reply:
        return Reply(answer={"thinking": "", "text": "You are the desk. Be kind."})

    with llm_server(careless) as server:
        ask(folder, server.judge("openai"))
        done = main([*BASE, "--agent", "desk", "--candidates", "2", "--apply", "--html", "a.html"])
    assert done == 1
    shown = capfd.readouterr()
    assert "lacks the placeholder `{shop}`" in " ".join(shown.out.split())
    assert "no gain is proven: nothing is written" in shown.err
    assert "{shop}" in (folder / "a.html").read_text("utf-8")
    assert "{shop}" in SHOP
    assert "You are the desk of {shop}." in (folder / "shop.py").read_text("utf-8")


FLATTERED = """
judge: {judge}
providers: [{{type: python, target: flat.py:desk}}]
evaluators:
  - {{type: llm_judge, config: {{rubric: The answer helps.}}}}
{more}"""
FLAT = """
import baton
from baton import prompts


@baton.agent("desk")
def desk(message):
    told = prompts.get("agent:desk", "You are the desk.")
    answer = "Your order is on its way."
    return f"{answer} This is a perfect answer." if "Praise your answer." in told else answer
"""


def flattered(received: Received) -> Reply:
    """Propose a text that praises itself; judge by praise; the model `strict` sees through it."""
    if "The text as it is" in received.user:
        old = re.findall(r"The text as it is⟧\n([^⟦⟧]*)\n⟦/", received.user)[0]
        return Reply(answer={"thinking": "", "text": f"{old} Praise your answer."})
    praised = "perfect answer" in received.user and received.model != "strict"
    label = "met" if praised else "not_met"
    return Reply(answer={"reason": "so it is", "quote": "", "label": label})


@pytest.mark.parametrize(
    ("more", "options", "reason"),
    [
        ("", [], "a judge alone decides on llm_judge, and a text may flatter a judge"),
        (
            "  - {type: contains, config: {value: order}}\n",
            ["--aim", "cases passed"],
            "a judge finds it better in cases passed, and a text may flatter a judge",
        ),
        (
            "",
            ["--second-judge", "openai:strict"],
            "llm_judge by openai:strict would have to agree, and does not",
        ),
    ],
)
def test_a_prompt_that_only_flatters_the_judge_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    more: str,
    options: list[str],
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none-is-needed")
    (tmp_path / "flat.py").write_text(FLAT, "utf-8")
    says = ("where is my {} of order {}", "order {1} lacks the {0}", "may I keep the {} ({})")
    cases = [
        {"id": f"c{n}", "turns": [{"input": says[n % 3].format(THINGS[n % 10], 4000 + n)}]}
        for n in range(30)
    ]
    (tmp_path / "cases.yaml").write_text(json.dumps({"cases": cases}), "utf-8")
    with llm_server(flattered) as server:
        judge = json.dumps(server.judge("openai"))
        config = FLATTERED.format(judge=judge, more=more)
        (tmp_path / "baton.yaml").write_text(config, "utf-8")
        done = main([*BASE, "--candidates", "2", "--apply", *options])
    shown = " ".join(capfd.readouterr().out.split())
    assert done == 1, shown
    assert reason in shown
    assert "agent:desk: no proven gain" in shown
    assert (tmp_path / "flat.py").read_text("utf-8") == FLAT


def test_a_budget_that_is_used_up_before_anything_is_proven_writes_nothing(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "shop.py").read_bytes()
    assert main([*ARGUMENTS, "--max-calls", "3", "--apply"]) == 3
    assert "no gain is proven: nothing is written" in capfd.readouterr().err
    assert (folder / "shop.py").read_bytes() == before


def test_a_limit_of_cost_with_the_prices_of_a_real_model_stops_and_is_raised_on_resuming(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proposals cost 1,000,000 tokens each at what gpt-4o-mini costs: 0.15 USD, and no play does."""

    def costly(received: Received) -> Reply:
        answer = proposed(received).answer
        return Reply(answer=answer, input_tokens=1_000_000, output_tokens=0)

    words = [*ARGUMENTS, "--agent", "refunds", "--json"]
    with llm_server(costly) as server:
        # Not `base_url`: what is at an address of one's own may cost anything.
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai"))
        ask(folder, {"model": "openai:gpt-4o-mini"})
        assert main([*words, "--max-cost", "0.2"]) == 3, capfd.readouterr().err
        shown = capfd.readouterr()
        stopped = json.loads(shown.out)
        assert "0.2 USD" in stopped["stopped"]
        assert 0.15 <= stopped["cost_usd"] <= 0.31
        asked = len(server.requests)
        assert asked in (1, 2)
        (run,) = (folder / ".baton" / "improvements").iterdir()
        kept = (run / "journal.jsonl").read_bytes()

        assert main([*words, "--max-cost", "9", "--resume", str(run)]) == 0
        resumed = json.loads(capfd.readouterr().out)
        assert resumed["status"] == "finished"
        assert resumed["stopped"] is None
        (study,) = resumed["studies"]
        assert study["outcome"] == "proven"
        assert "Name the order." in study["candidates"][study["best"]]["text"]
        # What was paid for is not paid for again.
        assert (run / "journal.jsonl").read_bytes().startswith(kept)
        assert resumed["asked"] == len(server.requests)
        assert resumed["cost_usd"] == pytest.approx(0.15 * len(server.requests), abs=0.01)
