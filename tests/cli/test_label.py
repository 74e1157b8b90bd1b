"""`baton label` in a real terminal: keys, undo, and going on where somebody left off."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.labelled import RUBRIC, answer, write_config, write_traces

from baton.testing import llm_server

Run = Callable[..., Any]
ASKED = "q quit"
JUDGE = ["correct", "wrong", "weak"]


class Terminal:
    """A command in a terminal: what is on the screen, and somebody who presses keys."""

    def __init__(self, process: subprocess.Popen[bytes], place: int) -> None:
        self.process = process
        self._place = place
        self.screen = ""

    def until(self, text: str) -> str:
        """Wait for a text; return what came up to it."""
        end = time.monotonic() + 60
        while text not in self.screen:
            assert time.monotonic() < end, f"no {text!r} in {self.screen!r}"
            if select.select([self._place], [], [], 0.1)[0]:
                self.screen += self._read()
        before, _, self.screen = self.screen.partition(text)
        return before + text

    def press(self, keys: str) -> None:
        os.write(self._place, keys.encode())

    def end(self) -> int:
        """Wait for the end of the command, and return its exit code."""
        while self.process.poll() is None:
            if select.select([self._place], [], [], 0.1)[0]:
                self.screen += self._read()
        return self.process.returncode

    def _read(self) -> str:
        try:
            return os.read(self._place, 65536).decode()
        except OSError:
            return ""


@contextmanager
def terminal(folder: Path, *arguments: str | Path) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "baton", "label", *map(str, arguments)]
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "200"}
    process = subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture
def evaluation(baton: Run, tmp_path: Path) -> Path:
    """Three dispatches that were judged; the findings say of all of them that nothing is wrong."""
    with llm_server(answer) as server:
        config = write_config(tmp_path, server.judge())
        baton("score", write_traces(tmp_path, JUDGE), "-c", config, "--out", "stored")
    (found,) = (tmp_path / "stored").iterdir()
    return found


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]


def said(folder: Path) -> Sequence[tuple[str, str]]:
    return [(line["trace"], line["value"]) for line in lines(folder)]


def test_it_asks_first_where_judge_and_findings_disagree_and_writes_each_label_at_once(
    evaluation: Path, tmp_path: Path
) -> None:
    with terminal(tmp_path, evaluation, "--by", "kim") as shown:
        first = shown.until(ASKED)
        assert "1 of 3   trace1   judge and findings disagree" in first
        for told in ("where is file 1?", "→ finder (delegate, d1)", "find file 1", "finder works"):
            assert told in first
        assert re.search(r"result\r\n +“it is here”", first)
        assert re.search(r"next turn\r\n +said “it is here, as the finder says”", first)
        assert "1 correct: right target" in first
        shown.press("3")
        assert "2 of 3   trace2" in shown.until(ASKED)
        (line,) = lines(tmp_path)
        assert line["at"].startswith("20")
        assert {**line, "at": ""} == {
            "trace": "trace1",
            "subject": "d1",
            "rubric": RUBRIC,
            "value": "wrong",
            "by": "kim",
            "at": "",
            "origin": "baton label",
        }
        shown.press("q")
        assert shown.end() == 0
    assert "1 of 3 are labelled, 2 are left: labels.jsonl" in shown.screen


def test_the_verdict_of_the_judge_is_not_shown(evaluation: Path, tmp_path: Path) -> None:
    with terminal(tmp_path, evaluation) as shown:
        assert "it says so" not in shown.until(ASKED)
        shown.press("v")
        assert "it says so" not in shown.until(ASKED)


def test_it_continues_where_one_left_off_and_takes_labels_back(
    evaluation: Path, tmp_path: Path
) -> None:
    with terminal(tmp_path, evaluation) as shown:
        shown.until(ASKED)
        shown.press("1")
        shown.until(ASKED)
        shown.press("q")
        shown.end()
    with terminal(tmp_path, evaluation) as shown:
        start = shown.until(ASKED)
        assert "1 of 3 are labelled already" in start
        assert "2 of 3   trace2" in start
        shown.press("u")
        assert "undone: correct" in shown.until("1 of 3   trace1")
        shown.until(ASKED)
        assert lines(tmp_path) == []
        shown.press("3")
        shown.until(ASKED)
        shown.press("s")
        assert "trace0" in shown.until(ASKED)
        shown.press("1")
        assert "trace2" in shown.until(ASKED)
        shown.press("2")
        shown.until("any other key quits")
        shown.press("u")
        shown.until(ASKED)
        shown.press("3")
        shown.until("any other key quits")
        shown.press("x")
        assert shown.end() == 0
    assert said(tmp_path) == [("trace1", "wrong"), ("trace0", "correct"), ("trace2", "wrong")]


def test_two_people_label_the_same_in_one_file(evaluation: Path, tmp_path: Path) -> None:
    for who in ("kim", "ada"):
        with terminal(tmp_path, evaluation, "--by", who) as shown:
            assert "1 of 3" in shown.until(ASKED)
            shown.press("1")
            shown.until(ASKED)
            shown.press("q")
            shown.end()
    assert [line["by"] for line in lines(tmp_path)] == ["kim", "ada"]


def test_keys_that_mean_nothing_do_nothing_and_the_terminal_is_put_back(
    evaluation: Path, tmp_path: Path
) -> None:
    with terminal(tmp_path, evaluation) as shown:
        shown.until(ASKED)
        shown.press("x9é\r")
        shown.press("\x04")
        assert shown.end() == 0
    assert not (tmp_path / "labels.jsonl").exists()


def test_scales_are_answered_with_a_number(evaluation: Path, tmp_path: Path) -> None:
    (tmp_path / "tone.yaml").write_text(
        "name: tone\nsummary: how friendly\nunit: dispatch\nversion: '1'\nthreshold: 0.5\n"
        "inputs: [call]\nprompt: How friendly is the call?\nanswer: {scale: {min: 1, max: 5}}\n"
    )
    (tmp_path / "own.yaml").write_text("rubrics: [tone.yaml]\n")
    with terminal(tmp_path, evaluation, "--rubric", "tone", "-c", "own.yaml") as shown:
        assert "a number from 1 to 5, then Enter" in shown.until(ASKED)
        shown.press("7\r")
        shown.until("`7` is not a number of this scale")
        shown.press("45\x7f.5\r")
        shown.until(ASKED)
        shown.press("q")
        assert shown.end() == 0
    (line,) = lines(tmp_path)
    assert (line["rubric"], line["value"]) == ("tone", 4.5)


def test_labels_that_were_given_so_calibrate_the_judge(
    baton: Run, evaluation: Path, tmp_path: Path
) -> None:
    with terminal(tmp_path, evaluation) as shown:
        for key in "132":
            shown.until(ASKED)
            shown.press(key)
        shown.until("any other key quits")
        shown.press("\r")
        shown.end()
    outcome = baton("calibrate", RUBRIC, "labels.jsonl", evaluation)
    assert outcome.code == 3
    assert "3 of 3 labelled" in outcome.out


def test_without_a_terminal_it_refuses(baton: Run, evaluation: Path) -> None:
    outcome = baton("label", evaluation)
    assert (outcome.code, "labelling needs a terminal" in outcome.err) == (2, True)


def test_a_broken_labels_file_is_not_written_to(evaluation: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text("{}\n")
    with terminal(tmp_path, evaluation) as shown:
        assert shown.end() == 2
        assert "labels.jsonl:1" in shown.screen
    assert (tmp_path / "labels.jsonl").read_text() == "{}\n"
