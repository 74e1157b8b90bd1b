"""The walk of capturing a session, by clicks: talk to a real ADK agent, save a case, run it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.test_process import Served

pytestmark = [
    pytest.mark.heavy,
    # ADK's own code warns of its own code.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
TWICE = "Roll a 10 sided dice twice and then check if 9 is a prime or not"


@pytest.fixture
def samples(apps: Path, tmp_path: Path) -> Path:
    """A folder of agents, as `adk web` takes it."""
    folder = tmp_path / "samples"
    for app in ("hello_world", "mode_teller"):
        shutil.copytree(apps / app, folder / app)
    shutil.copy(apps / "scripted_model.py", folder)
    return folder


@pytest.fixture
def served(samples: Path, tmp_path: Path) -> Iterator[Served]:
    server = Served(tmp_path, str(samples), "--no-grpc")
    yield server
    server.end()
    if server.process.stderr is not None:
        server.process.stderr.close()


def test_a_session_becomes_a_case_that_runs(served: Served, samples: Path) -> None:
    from tests.web.browsing import axe_violations, chromium, tab

    address = f"http://127.0.0.1:{served.client.port}"
    with chromium() as browser, tab(browser, address) as (page, wrong):
        page.goto("/playground")
        page.select_option("#agent", "hello_world")
        page.fill("#message", "What can you say?")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=I can roll dice")
        page.fill("#message", TWICE)
        page.keyboard.press("Enter")
        page.wait_for_selector("text=9 is not a prime number")
        # The first message is edited and said again, in a new conversation.
        page.click(".said button >> nth=0", force=True)
        page.fill(".rewrite textarea", "What can you do?")
        page.click("text=Send again")
        page.wait_for_selector(".said >> text=What can you do?")
        page.wait_for_selector("text=I can roll dice")
        page.fill("#message", TWICE)
        page.keyboard.press("Enter")
        page.wait_for_selector("text=9 is not a prime number")
        assert page.locator(".chain-line").nth(1).inner_text().count("check_prime") == 1
        page.click("[data-left=Trace]")
        page.wait_for_selector(".run-view >> text=roll_die >> nth=0")
        page.click("[data-left=Conversation]")

        page.click("text=Create new")
        page.fill("dialog.ask input", "Dice for two")
        page.click("dialog >> text=Create")
        page.wait_for_selector("#cases:not([hidden])")
        page.click("#capture")
        page.fill("dialog.ask input", "dice twice")
        page.click("dialog button.primary")
        page.wait_for_selector(".rows >> text=dice twice")
        page.check(".rows input[type=checkbox]")
        page.click("text=Run 1 selected")
        page.wait_for_selector(".run-progress .status.passed", timeout=60_000)
        page.wait_for_selector(".rows .status.passed")
        assert axe_violations(page) == []

        # The case is changed in its form, with the checks of `baton check`, and runs red.
        page.click(".case-name")
        page.fill("dialog .turn:nth-of-type(2) textarea >> nth=1", "I got nothing.")
        page.click("dialog >> text=Save")
        page.wait_for_selector("dialog.ask", state="detached")
        assert wrong == []
    file = samples / "hello_world" / "Dice_for_two.evalset.json"
    assert "I got nothing." in file.read_text()
    file.write_text(
        re.sub(
            r'"I got nothing\."',
            '"I got 4 and 7 form the dice roll, and 9 is not a prime number."',
            file.read_text(),
        )
    )
    command = [sys.executable, "-m", "baton", "eval", str(samples / "hello_world"), str(file)]
    ended = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=samples.parent, timeout=120
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    _loads_in_adk(file)


def _loads_in_adk(file: Path) -> None:
    from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file

    loaded = load_eval_set_from_file(str(file), "Dice_for_two")
    (case,) = loaded.eval_cases
    assert (loaded.eval_set_id, loaded.name, case.eval_id) == (
        "Dice_for_two",
        "Dice for two",
        "dice twice",
    )
    assert case.conversation is not None
    assert [turn.user_content.parts[0].text for turn in case.conversation] == [
        "What can you do?",
        TWICE,
    ]
    assert case.session_input is not None
    assert case.session_input.app_name == "hello_world"
