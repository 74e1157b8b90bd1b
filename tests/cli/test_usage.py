"""What a user is told who left something out, or named the wrong file."""

from __future__ import annotations

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
        (["calibrate"], "name a rubric (`baton rubrics` lists them)"),
        (["export"], "say where to: give one of `-o FILE.jsonl`, `--otlp ADDRESS`"),
        (["baseline"], "say what to do: set or show"),
        (["eval", "--resume"], "`--resume` needs a value"),
        (["eval", "--concurrency", "x"], "`--concurrency` takes a whole number, not `x`"),
        (["score", "a", "--show", "1.5"], "`--show` takes a whole number, not `1.5`"),
        (["compare", "--confidence", "high"], "`--confidence` takes a number, not `high`"),
        (["export", "a", "--otlp", "b", "--only", "c"], "takes spans or results, not `c`"),
        (["report", "a", "b"], "unexpected argument `b`; see `baton report --help`"),
        (["rubrics", "shw"], "no command `shw`; did you mean `show`?"),
        (["rubrics", "request"], "no command `request`; known: list, show, test"),
    ],
)
def test_what_is_missing_or_too_much_is_said_in_words(
    baton: Run, line: list[str], says: str
) -> None:
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
    assert "config, evaluators by what cases state" in baton("check", file).out
