"""A new evaluator is one file in the package of evaluators, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import NO_OTHER_PLUGINS

import baton

EVALUATOR = '''
"""`short_answers`: whether answers are short."""

from collections.abc import Sequence
from typing import Annotated

from baton.model import EvalContext, Score, Trace
from baton.plugins import Alias

from .matching.answers import AnswerDetails, Row, answer_details, answer_text, evidence, mean, reason
from .base_evaluator import Pair, TurnEvaluator, describe


class ShortAnswers(TurnEvaluator[Row], frozen=True, kw_only=True):
    """Counts the words of every answer whose turn states one."""

    type = "short_answers"
    summary = "whether answers are short"
    aliases = (Alias("brevity", "BrevityEvaluator", renames={"limit": "max_words"}),)
    states = ("response",)
    stated_as = "a response"
    needs = ("output",)
    details = AnswerDetails

    max_words: Annotated[int, describe("Words of an answer.")] = 3

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> Row:
        count = len(answer_text(pair.turn).split())
        problem = "" if count <= self.max_words else f"{count} words"
        return Row(pair.number, pair.turn, float(not problem), problem, {"words": count})

    def verdict(self, turns: Sequence[Row]) -> list[Score]:
        wrong = [row for row in turns if row.problem]
        details = answer_details(turns, 1.0)
        said = reason(turns, wrong, "the answer is short")
        return [self.scored(mean(turns), said, details, evidence(wrong))]
'''
TEST = """
import baton
from baton.evaluators import ShortAnswers

def test_a_long_answer_fails():
    evaluation = baton.score("run.json", "cases.yaml", evaluators=[ShortAnswers(max_words=2)])
    assert [score.status for result in evaluation.results for score in result.scores] == ["failed"]
"""
CASES = "cases: [{id: a, input: Hi, response: Good day}]"
RUN = {
    "schema_version": 1,
    "id": "t",
    "case": "a",
    "source": {"format": "baton"},
    "turns": [{"id": "1", "input": {"text": "Hi"}, "output": {"text": "Good day to you"}}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = shutil.copytree(Path(baton.__file__).parent, tmp_path / "src" / "baton")
    (package / "evaluators" / "short_answers.py").write_text(EVALUATOR)
    (tmp_path / "test_short_answers.py").write_text(TEST)
    (tmp_path / "cases.yaml").write_text(CASES)
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(folder / "src"), **NO_OTHER_PLUGINS}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.heavy
def test_a_file_put_into_the_package_is_an_evaluator(folder: Path) -> None:
    scored = run(folder, "-m", "baton", "score", "run.json", "--dataset", "cases.yaml",
                 "-e", "short_answers", "--out", "out")  # fmt: skip
    assert "4 words" in scored.stdout
    assert scored.returncode == 1

    listed = run(folder, "-m", "baton", "list", "BrevityEvaluator").stdout
    assert "short_answers" in listed
    assert "whether answers are short" in listed
    assert "max_words: 3" in listed

    assert run(folder, "-m", "baton.schemas", "schemas").returncode == 0
    schema = json.loads((folder / "schemas" / "config.schema.json").read_text())
    options = schema["$defs"]["ShortAnswersOptions"]["properties"]["max_words"]
    assert options == {"description": "Words of an answer.", "type": "integer", "default": 3}
    names = schema["$defs"]["EvaluatorSpec"]["properties"]["type"]["anyOf"][0]["enum"]
    assert {"short_answers", "brevity", "BrevityEvaluator"} <= set(names)

    tested = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_short_answers.py")
    assert tested.returncode == 0, tested.stdout


def test_a_config_takes_it_by_another_tools_name_and_options(folder: Path) -> None:
    spec = {"type": "BrevityEvaluator", "config": {"limit": 4}}
    (folder / "baton.yaml").write_text(json.dumps({"evaluators": [spec]}))
    scored = run(folder, "-m", "baton", "score", "run.json", "--dataset", "cases.yaml",
                 "--config", "baton.yaml", "--out", "out")  # fmt: skip
    assert scored.returncode == 0, scored.stdout + scored.stderr
    wrong = {"type": "short_answers", "config": {"max_word": 4}}
    (folder / "baton.yaml").write_text(json.dumps({"evaluators": [wrong]}))
    refused = run(folder, "-m", "baton", "score", "run.json", "--dataset", "cases.yaml",
                  "--config", "baton.yaml", "--out", "out")  # fmt: skip
    assert refused.returncode == 2
    assert "did you mean `max_words`?" in refused.stderr
