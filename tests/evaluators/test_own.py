"""Evaluators of the user's own, named as `module:function` or `module:Class`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.model import InputError, Score
from baton.testing.build import trace

Run = Callable[..., Any]
CODE = """
from baton.model import Score

def short(trace, case, *, words=5):
    count = len(trace.turns[0].output.plain().split())
    return count <= words, f"{count} words"

def one(trace): return 0.5
def nothing(trace, case, context): return None
def wrong(trace): return "good"
def raises(trace): raise KeyError("x")
def needs(trace, *, limit): return True
def several(trace, case):
    return [
        Score(evaluator="x", type="x", version="3", unit="turn", status="passed", value=1.0, subject=[t.id])
        for t in trace.turns
    ]

class Says:
    def __init__(self, word, loud=False):
        self.word = word.upper() if loud else word
    def evaluate(self, trace, case):
        return self.word in trace.turns[0].output.plain()

class Full:
    type, version, unit = "full", "2", "trace"
    def __init__(self, name, options):
        self.name, self.options = name, options
    def with_options(self, override):
        return Full(self.name, {**self.options, **override})
    def evaluate(self, trace, case, context):
        return [Score(evaluator=self.name, type="full", version="2", status="passed", value=1.0,
                      details=self.options)]

class Half:
    with_options = None
    def __init__(self, name, options): ...

class Idle: ...
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with evaluators, in which we are."""
    (tmp_path / "checks.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scored(recordings: Path, type_: str, name: str | None = None, **options: Any) -> list[Score]:
    run = recordings / "support_desk" / "refund.session.json"
    spec = {"type": type_, "config": options} | ({"name": name} if name else {})
    return baton.score(run, evaluators=[spec]).results[0].scores


@pytest.mark.usefixtures("folder")
def test_a_function_returns_a_number_or_a_truth_value_and_a_reason(recordings: Path) -> None:
    (found,) = scored(recordings, "checks.py:short", "brief", words=2)
    assert (found.evaluator, found.type, found.status) == ("brief", "checks.py:short", "failed")
    assert (found.value, found.threshold, found.details) == (0.0, 1.0, {"words": 2})
    assert found.reason.endswith(" words")
    (half,) = scored(recordings, "checks.py:one", threshold=0.5)
    assert (half.status, half.value, half.evaluator) == ("passed", 0.5, "checks.py:one")


@pytest.mark.usefixtures("folder")
def test_what_is_not_a_verdict_never_passes(recordings: Path) -> None:
    (skipped,) = scored(recordings, "checks.py:nothing")
    assert (skipped.status, skipped.value) == ("skipped", None)
    (wrong,) = scored(recordings, "checks.py:wrong")
    assert (wrong.status, "'good', which is not a finite number" in wrong.reason) == ("error", True)
    (raised,) = scored(recordings, "checks.py:raises")
    assert (raised.status, raised.reason) == ("error", "KeyError: 'x'")


@pytest.mark.usefixtures("folder")
def test_a_function_may_return_scores_of_any_unit(recordings: Path) -> None:
    (found,) = scored(recordings, "checks.py:several", "each")
    assert (found.evaluator, found.type, found.unit) == ("each", "checks.py:several", "turn")


@pytest.mark.usefixtures("folder")
def test_a_class_is_made_from_its_options(recordings: Path) -> None:
    assert scored(recordings, "checks.py:Says", word="R-1001")[0].status == "passed"
    assert scored(recordings, "checks.py:Says", word="R-1001 i", loud=True)[0].status == "failed"
    (full,) = scored(recordings, "checks.py:Full", "mine", x=1)
    assert (full.evaluator, full.details) == ("mine", {"x": 1})


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("type_", "options", "said"),
    [
        ("checks.py:shrt", {}, "did you mean `short`?"),
        ("nowhere:short", {}, "no module `nowhere`"),
        ("checks.py:short", {"word": 1}, "config.word: unknown option; did you mean `words`?"),
        ("checks.py:short", {"threshold": "high"}, "config.threshold: expected a number"),
        ("checks.py:needs", {}, "the option `limit` is missing"),
        ("checks.py:Says", {}, "the option `word` is missing"),
        ("checks.py:Says", {"word": 3, "loud": True}, "raised AttributeError"),
        ("checks.py:Idle", {}, "has no method `evaluate(trace, case, context)`"),
        ("checks.py:Half", {}, "is not an evaluator: it needs `name`"),
    ],
)
def test_what_is_wrong_is_reported_before_anything_runs(
    type_: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        baton.score(trace(), None, [{"type": type_, "config": options}])
    assert said in str(caught.value)


def test_a_config_names_one_of_its_own_folder_and_a_case_overrides_it(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "own_checks.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "conf" / "baton.yaml").write_text(
        "dataset: cases.yaml\nevaluators:\n"
        "- {type: 'own_checks:Says', name: says, config: {word: R-1001}}\n"
    )
    cases = tmp_path / "conf" / "cases.yaml"
    run = recordings / "support_desk" / "refund.session.json"
    for override, code in (("{}", 0), ("{says: {word: nonsense}}", 1), ("{says: {wrd: x}}", 2)):
        cases.write_text(f"cases: [{{id: refund, input: x, evaluators: {override}}}]\n")
        outcome = baton("score", run, "-c", "conf/baton.yaml", "--json")
        assert outcome.code == code, outcome.err
    (tmp_path / "conf" / "baton.yaml").write_text("evaluators: [{type: 'own_checks:Sayz'}]\n")
    outcome = baton("score", run, "-c", "conf/baton.yaml")
    assert (outcome.code, "baton.yaml:1: evaluators" in outcome.err) == (2, True)


def test_the_report_names_it_as_the_config_does(baton: Run, folder: Path, recordings: Path) -> None:
    (folder / "baton.yaml").write_text("evaluators: ['checks:one']\n")
    run = recordings / "support_desk" / "refund.session.json"
    report = json.loads(baton("score", run, "-c", "baton.yaml", "--json").out)
    assert report["results"][0]["scores"][0]["evaluator_type"] == "checks:one"
