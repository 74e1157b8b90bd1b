"""What a user is told who left something out, or named the wrong file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
CASES = "cases:\n  - {id: a, input: hi, response: hello}\n"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["convert", "cases.yaml"], "name a dialect: `--to` adk, judge-llm, strands or baton"),
        (["convert", "cases.yaml", "--to", "adk"], "name the file to write: `-o FILE`"),
        (["convert", "cases.yaml", "--to"], "`--to` needs a value: adk, judge-llm, strands or bat"),
        (["pull"], "name the store to fetch from: phoenix or langfuse"),
        (["calibrate"], "name a rubric (`baton rubrics list`)"),
        (["export"], "say where to write: give one of `-o FILE.jsonl`, `--otlp ADDRESS`"),
        (["baseline"], "say what to do: set or show"),
        (["serve", "rescore"], "`--rule` is missing"),
        (["eval", "--resume"], "`--resume` needs a value"),
        (["eval", "--concurrency", "x"], "`--concurrency` takes a whole number, not `x`"),
        (["score", "a", "--show", "1.5"], "`--show` takes a whole number, not `1.5`"),
        (["compare", "--confidence", "high"], "`--confidence` takes a number, not `high`"),
        (["export", "a", "--otlp", "b", "--only", "c"], "takes spans or results, not `c`"),
        (["report", "a", "b"], "unexpected argument `b`; see `baton report --help`"),
        (["--versio"], "no option `--versio`; did you mean `--version`?"),
        (["rubrics", "shw"], "no command `shw`; did you mean `show`?"),
        (["rubrics", "request"], "no command `request`; known: examples, list, show, test"),
    ],
)
def test_what_is_missing_or_too_much_is_reported_in_words(
    baton: Run, line: list[str], says: str
) -> None:
    outcome = baton(*line)
    assert outcome.code == 2
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["run", "cases.yaml"], "no command `run`; did you mean `eval`?"),
        (
            ["eval", "shop:fine", "cases.yaml", "--output", "x.html"],
            "`--html FILE`, `--junit FILE`",
        ),
        (["score", "x", "--baseline", "main"], "`baton compare` compares with a baseline"),
        (["eval", "shop.fine", "cases.yaml"], "did you mean `shop:fine`?"),
        (["eval", "own.yml"], "own.yml: no such file; did you mean `own.yaml`?"),
        (["eval", "shop:fine", "cases.yaml", "-e", "response:strict"], "as `response:0.8`, other"),
        (
            ["eval", "shop:fine", "cases.yaml", "-e", "agent_chain:0.9"],
            "`agent_chain:0.9`: it has no threshold; in a config it takes `sequence_match_type`",
        ),
        (
            ["eval", "shop:fine", "cases.yaml", "-e", "response,agent_chain"],
            "names several evaluators",
        ),
        (["eval", "shop:fine", "text.yaml"], 'got "router"; write `[router]`'),
        (["eval", "shop:fine", "words.yaml"], "unknown key; did you mean `input`?"),
    ],
)
def test_what_other_tools_call_otherwise_is_reported_in_words(
    baton: Run, tmp_path: Path, line: list[str], says: str
) -> None:
    (tmp_path / "shop.py").write_text("def fine(message):\n    return 'hello'\n")
    (tmp_path / "cases.yaml").write_text(CASES)
    (tmp_path / "own.yaml").write_text("dataset: cases.yaml\n")
    (tmp_path / "text.yaml").write_text("cases:\n  - {id: a, input: hi, agents: router}\n")
    (tmp_path / "words.yaml").write_text("cases:\n  - {id: a, query: hi, agents: [router]}\n")
    outcome = baton(*line)
    assert outcome.code == 2
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


def test_commands_run_one_after_another_in_one_process(baton: Run) -> None:
    # `baton list` imports a module whose name is that of a built-in function.
    assert baton("list").code == 0
    assert baton("rubrics").code == 0


@pytest.mark.parametrize("verb", ["show", "draft", "score"])
def test_a_dataset_given_for_a_recording_is_called_one(
    baton: Run, tmp_path: Path, verb: str
) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(CASES)
    outcome = baton(verb, file)
    assert outcome.code == 2
    assert "cases.yaml: is a dataset" in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("text", ["", "\n \n"])
@pytest.mark.parametrize("verb", ["show", "draft", "score", "check"])
def test_an_empty_file_is_called_empty(baton: Run, tmp_path: Path, verb: str, text: str) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    outcome = baton(verb, file)
    assert outcome.code == 2
    assert outcome.err == f"baton: {file}: is empty\n"


def test_a_config_without_evaluators_leaves_them_to_the_cases(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(CASES)
    file = tmp_path / "baton.yaml"
    file.write_text("dataset: cases.yaml\nrepeat: 2\n")
    assert "config, evaluators chosen by what cases state" in baton("check", file).out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["score", "app.py"], "is a program, not a recording: `baton record -- python app.py`"),
        (["show", "app.py"], "`baton eval app.py:FUNCTION DATASET` plays it"),
        (["show", "s3://bucket/runs"], "s3://bucket/runs: cannot be read: Install s3fs"),
        (["show", "file:///none/runs"], "an address are read only by `baton score`; copy them"),
        (["check", "gone.yaml"], "gone.yaml: providers[0].target: no module `gone_agents`"),
        (["check", "file.yaml"], "gone.py: no such file"),
    ],
)
def test_what_is_not_a_recording_or_not_there_is_reported_with_what_to_do(
    baton: Run, tmp_path: Path, line: list[str], says: str
) -> None:
    (tmp_path / "app.py").write_text("print('hi')\n")
    for name, target in (("gone", "gone_agents:answer"), ("file", "gone.py:answer")):
        (tmp_path / f"{name}.yaml").write_text(
            f"providers: [{{type: python, target: '{target}'}}]\n"
        )
    outcome = baton(*line)
    assert outcome.code == 2
    assert says in outcome.err


def test_a_module_that_is_there_is_not_imported_to_check_a_config(
    baton: Run, tmp_path: Path
) -> None:
    (tmp_path / "here.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "here.yaml").write_text("providers: [{type: python, target: 'here:answer'}]\n")
    assert baton("check", "here.yaml").code == 0


def test_where_interrupts_are_ignored_another_way_to_end_it_is_reported(
    baton: Run, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text("def answer(message): return 'hello'\n")
    (tmp_path / "cases.yaml").write_text(CASES)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        outcome = baton("eval", "app.py:answer", "cases.yaml")
    finally:
        signal.signal(signal.SIGINT, before)
    assert outcome.code == 0
    assert f"interrupts are ignored here, as in the background of a shell: kill {os.getpid()}" in (
        outcome.err
    )


def test_a_python_that_is_too_old_is_named() -> None:
    code = "import sys; sys.version_info = (3, 10, 13); import baton"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: Baton needs Python 3.11 or later; this is" in done.stderr
