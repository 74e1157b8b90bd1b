"""`baton view`: the pages over what is on disk, to be read only."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Baton

from baton.cli.verbs import TABLE
from baton.server.settings import LiveSettings
from baton.server.store import Store
from baton.web.view import load

from .asking import Visitor, ask
from .serving import web

ROOT = Path(__file__).parents[2]
DESK = ROOT / "examples" / "adk" / "recordings" / "support_desk"


def loaded(store: Store, *paths: Path) -> tuple[int, int, list[str]]:
    return load(store, LiveSettings(None, {}, print), [str(path) for path in paths], print)


def test_recordings_are_read_and_scored_as_uploads_are(store: Store) -> None:
    assert loaded(store, DESK)[:2] == (33, 0)
    with web(store) as address:
        page = ask(address + "/conversations?filter=agent:billing_agent").text
        assert "refund" in page
        failed = ask(address + "/conversations?filter=verdict:failed,error").text
        assert "ghost" in failed


def test_evaluations_are_listed_and_their_traces_are_conversations(
    store: Store, baton: Baton, tmp_path: Path
) -> None:
    out = tmp_path / "evaluations"
    for name in ("refund.sse", "policy.sse"):
        assert baton("score", DESK / name, "--out", out).code == 0
    conversations, evaluations, problems = loaded(store, out)
    assert (conversations, evaluations, problems) == (2, 2, [])
    with web(store) as address:
        jobs = json.loads(ask(address + "/api/v1/evaluations", accept="*/*").text)["items"]
        assert [(each["state"], each["by"]) for each in jobs] == [("done", "baton view")] * 2


def test_an_evaluation_at_an_address_is_shown(store: Store, baton: Baton, tmp_path: Path) -> None:
    assert baton("score", DESK / "refund.sse", "--out", tmp_path / "out").code == 0
    (made,) = (tmp_path / "out").iterdir()
    said: list[str] = []
    place = f"file://{made}"
    assert load(store, LiveSettings(None, {}, print), [place], said.append).evaluations == 1
    assert [line.startswith(f"{place}: {place}: contains no traces") for line in said] == [True]


def test_recordings_beside_evaluations_are_not_left_out_in_silence(
    store: Store, baton: Baton, tmp_path: Path
) -> None:
    baton("score", DESK / "refund.sse", "--out", tmp_path / "all" / "evaluations")
    shutil.copy(DESK / "policy.sse", tmp_path / "all")
    said: list[str] = []
    load(store, LiveSettings(None, {}, print), [str(tmp_path / "all")], said.append)
    assert "name its recordings separately" in said[0]


def test_nothing_to_show_is_reported(baton: Baton, tmp_path: Path) -> None:
    outcome = baton("view")
    assert outcome.code == 2
    assert "name files or folders, such as baton view runs/" in outcome.err
    (tmp_path / "notes.txt").write_text("hello")
    outcome = baton("view", "notes.txt")
    assert outcome.code == 2
    assert "notes.txt" in outcome.err
    assert baton("view", "nowhere").code == 2


@contextmanager
def viewing(folder: Path, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "baton", "view", *arguments]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://" in line, process.communicate()
        yield line.strip(), process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_it_answers_until_it_is_stopped_and_leaves_nothing_behind(tmp_path: Path) -> None:
    shutil.copy(DESK / "refund.sse", tmp_path)
    with viewing(tmp_path, "refund.sse") as (line, process):
        assert re.fullmatch(r"1 conversation: http://127\.0\.0\.1:\d+/conversations", line)
        address = line.partition(": ")[2].removesuffix("/conversations")
        visitor = Visitor(address)
        assert "refund" in visitor.get("/conversations").text
        # To be read only: what would be written would end with the command.
        refused = visitor.post("/conversations/views", {"query": "filter=to:x", "name": "x"})
        assert refused.status == 403
        assert ask(address + "/v1/traces", form={}, accept="*/*").status == 404
    assert process.returncode == 0
    assert [each.name for each in tmp_path.iterdir()] == ["refund.sse"]


def test_it_is_a_command_in_the_help() -> None:
    assert TABLE["view"].group == "look"


@pytest.mark.parametrize("quiet", [False, True])
def test_a_score_says_at_a_terminal_how_to_look_at_it(tmp_path: Path, quiet: bool) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "baton", "score", str(DESK / "refund.sse")]
    done = subprocess.run(
        [*command, *(["-q"] if quiet else [])],
        cwd=tmp_path,
        check=False,
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    os.close(ours)
    assert ("in the browser: baton view .baton/evaluations/" in done.stderr) is not quiet


def test_a_score_in_ci_says_nothing_more(baton: Baton) -> None:
    assert "baton view" not in baton("score", DESK / "refund.sse").err
