"""Evaluators are made of keywords."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import snapshot
from tests.evaluators.judged.scripted import ScriptedJudge

import baton
from baton import evaluators
from baton.evaluators import AgentChain, Cost, DispatchScope, Judged, Panel, Response, ToolCalls
from baton.evaluators.base_evaluator import EvaluatorTraits
from baton.evaluators.contains import LastAnswerEvaluator
from baton.evaluators.registry import evaluator_entries
from baton.model import InputError
from baton.testing import assert_passes
from baton.testing.build import case, expect, run, trace, turn

MADE = [
    AgentChain(sequence_match_type="exact"),
    Cost(max_usd=0.5),
    DispatchScope(agents=["checker"]),
    Response(regex="a+", match="jaccard"),
    ToolCalls(name="tools", mode="f1", threshold=0.5),
]


def test_every_evaluator_is_exported_by_the_name_of_its_class() -> None:
    for entry in evaluator_entries():
        assert getattr(evaluators, entry.target.__name__) is entry.target
        assert entry.target.__name__ in dir(evaluators)


def test_judged_is_exported_as_the_class_of_all_rubrics() -> None:
    assert "Judged" in dir(evaluators)


@pytest.mark.parametrize("limit", [0.3, 0.7])
def test_a_rubric_is_made_by_its_name_and_scores_like_one_that_was_named(limit: float) -> None:
    played = trace(turn("How many legs do spiders have?", output="Six or eight."))
    judge = ScriptedJudge("partially_correct")
    made = baton.score(played, evaluators=[Judged("correctness", threshold=limit)], judge=judge)
    spec = {"type": "correctness", "config": {"threshold": limit}}
    named = baton.score(played, evaluators=[spec], judge=judge)
    assert [made.results[0].scores, made.status] == [named.results[0].scores, named.status]
    assert made.results[0].scores[0].value == 0.5


def test_a_rubric_is_made_by_its_file_and_by_its_name_in_another_tool(tmp_path: Path) -> None:
    file = tmp_path / "polite.yaml"
    choices = "{polite: {score: 1, means: it is}, rude: {score: 0, means: it is not}}"
    file.write_text(
        "{name: polite, summary: whether the answer is polite, unit: turn, version: '1', "
        f"threshold: 1, inputs: [answer], prompt: Is it polite?, answer: {{choices: {choices}}}}}"
    )
    made = Judged(file, name="manners", samples=3)
    assert (made.name, made.type, made.options.samples) == ("manners", "polite", 3)
    assert Judged(str(file)).shape == made.shape
    assert Judged("CorrectnessEvaluator").type == "correctness"
    assert Judged("correctness").name == "correctness"


@pytest.mark.parametrize(
    ("rubric", "options", "said"),
    [
        ("corectness", {}, "unknown evaluator `corectness`; did you mean `correctness`?"),
        ("correctness", {"treshold": 1}, "treshold: unknown key; did you mean `threshold`?"),
        ("correctness", {"threshold": 2}, "threshold: never reached: scores go from 0 to 1"),
        ("agent_chain", {}, "`agent_chain` is not a rubric; `baton rubrics list` shows all"),
        ("no.yaml", {}, "no.yaml: "),
    ],
)
def test_a_rubric_made_wrongly_is_one_clear_error(
    rubric: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        Judged(rubric, **options)
    assert str(caught.value).startswith(said)


def test_a_rubric_that_was_made_can_be_sent_to_another_process() -> None:
    made = Judged("correctness", threshold=0.7)
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - it was made here
    assert (again.rubric, again.options) == (made.rubric, made.options)


def test_a_snapshot_has_every_evaluator_that_needs_no_case_and_no_options() -> None:
    names = {spec["type"] for spec in snapshot.specs()}
    assert {"guard_decisions", "cost", "result_used", "tokens"} <= names
    assert not names & {"agent_chain", "contains", "panel", "tool_calls"}


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchThing"):
        evaluators.NoSuchThing  # noqa: B018


def test_importing_one_loads_neither_the_others_nor_their_libraries() -> None:
    code = (
        "import sys\nfrom baton.evaluators import AgentChain\n"
        "names = ('numpy', 'jsonschema', 'rouge_score', 'nltk', 'baton.evaluators.tool_calls',\n"
        "         'baton.evaluators.judged', 'baton.judges.llm_client', 'baton.findings.dispatch_scope')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (AgentChain, {"sequence_match_typ": "exact"}, "did you mean `sequence_match_type`?"),
        (AgentChain, {"sequence_match_type": "exat"}, "did you mean `exact`?"),
        (AgentChain, {"min_match_ratio": 2}, "min_match_ratio: expected a number <= 1, got 2"),
        (ToolCalls, {"mode": "single_tool"}, "`mode` single_tool needs `tool`"),
        (Response, {"regex": "("}, "regex: '(' is not a regular expression"),
        (Panel, {"rubrik": "correctness", "models": ["a", "b"]}, "did you mean `rubric`?"),
    ],
)
def test_wrong_options_are_one_clear_error(kind: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        kind(**options)
    assert said in str(caught.value)
    assert "config" not in str(caught.value)


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.type)
def test_one_that_was_made_can_be_sent_to_another_process(made: Any) -> None:
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - it was made here
    assert again == made
    assert again.name == made.name


def test_one_that_was_made_scores_like_one_that_was_named() -> None:
    played = trace(turn(run("desk"), run("clerk")))
    stated = case(expect(agents=["desk", "clerk"]))
    assert_passes(played, stated, evaluators=[AgentChain(sequence_match_type="exact")])
    with pytest.raises(AssertionError):
        assert_passes(
            played,
            case(expect(agents=["clerk"])),
            evaluators=[AgentChain(sequence_match_type="exact")],
        )


def test_its_name_is_the_one_of_its_scores() -> None:
    chain = AgentChain(name="strict", sequence_match_type="exact")
    assert (chain.name, chain.with_options({"min_match_ratio": 1.0}).name) == ("strict", "strict")
    assert baton.evaluators.AgentChain().name == "agent_chain"


@pytest.mark.parametrize("kind", [EvaluatorTraits, LastAnswerEvaluator])
def test_an_evaluator_that_lacks_a_method_cannot_be_made(kind: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        kind(**({} if kind is EvaluatorTraits else {"value": "a"}))
