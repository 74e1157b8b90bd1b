"""How `baton improve` ends where something is in its way, on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.session.test_improve import ARGUMENTS, BASE, SHOP, folder

from baton.cli import main
from baton.testing import Received, Reply, llm_server

__all__ = ["folder"]

pytestmark = pytest.mark.heavy


def ask(where: Path, judge: dict[str, object]) -> None:
    """Write a config that asks another model."""
    spec = f"judge: {json.dumps(judge)}\nproviders: [{{type: python, target: shop.py:desk}}]\n"
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

    assert main([*ARGUMENTS, "--resume", str(run), "--apply", "--json"]) == 0
    resumed = json.loads(capfd.readouterr().out)
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


def test_a_budget_that_is_used_up_before_anything_is_proven_writes_nothing(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "shop.py").read_bytes()
    assert main([*ARGUMENTS, "--max-calls", "3", "--apply"]) == 3
    assert "no gain is proven: nothing is written" in capfd.readouterr().err
    assert (folder / "shop.py").read_bytes() == before
