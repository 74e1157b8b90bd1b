"""Judged metrics of ADK and Strands are Baton's rubrics, with the options those tools have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evaluators.judged.scripted import Judged

from baton.config import load_config
from baton.config.dialects.adk import ADK_JUDGED, read_criteria
from baton.config.dialects.common import judge_model
from baton.config.dialects.strands import read_experiment, strands_model
from baton.model import InputError
from baton.runner.plan import make_plan


def criteria(folder: Path, **metrics: Any) -> dict[str, Judged]:
    path = folder / "test_config.json"
    path.write_text(json.dumps({"criteria": metrics}))
    planned = make_plan(read_criteria(path)).evaluators
    found = {each.evaluator.name: each.evaluator for each in planned}
    assert all(isinstance(each, Judged) for each in found.values())
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("name", sorted(ADK_JUDGED))
def test_every_judged_metric_of_adk_has_a_rubric(tmp_path: Path, name: str) -> None:
    (found,) = criteria(tmp_path, **{name: 0.7}).values()
    assert (found.name, found.type, found.threshold) == (name, name, 0.7)


def test_options_of_adk_say_who_judges_how_often_and_by_what(tmp_path: Path) -> None:
    found = criteria(
        tmp_path,
        rubric_based_final_response_quality_v1={
            "threshold": 0.8,
            "judgeModelOptions": {
                "judgeModel": "gemini-2.5-flash",
                "numSamples": 3,
                "judgeModelConfig": {"temperature": 0.5},
            },
            "rubrics": [
                {"rubricId": "cites", "rubricContent": {"textProperty": "It names its sources."}}
            ],
        },
    )["rubric_based_final_response_quality_v1"]
    assert found.rubric.samples == 3
    assert found.options.judge == {"model": "google:gemini-2.5-flash", "temperature": 0.5}
    assert [(each.id, each.text) for each in found.options.statements] == [
        ("cites", "It names its sources.")
    ]


def test_intermediate_texts_are_judged_where_a_criterion_asks_for_it(tmp_path: Path) -> None:
    off = criteria(tmp_path, hallucinations_v1={"threshold": 1})["hallucinations_v1"]
    on = criteria(
        tmp_path,
        hallucinations_v1={"threshold": 1, "evaluate_intermediate_nl_responses": True},
    )["hallucinations_v1"]
    assert (off.rubric.answer.claims, on.rubric.answer.claims) != (None, None)
    assert off.rubric.answer.claims is not None
    assert on.rubric.answer.claims is not None
    assert (off.rubric.answer.claims.of, on.rubric.answer.claims.of) == ("answer", "answers")
    whole = criteria(
        tmp_path,
        safety_v1={"threshold": 1, "include_intermediate_responses_in_final": True},
    )["safety_v1"]
    assert "answers" in whole.rubric.inputs


@pytest.mark.parametrize(
    ("criterion", "says"),
    [
        ({"threshold": 1, "judge_model_option": {}}, "judge_model_options"),
        ({"threshold": 1, "judge_model_options": {"samples": 2}}, "num_samples"),
        ({"threshold": 1, "judge_model_options": {"num_samples": 0}}, "samples"),
        ({"threshold": 1, "judge_model_options": {"judge_model": "house-model"}}, "PROVIDER/NAME"),
        ({"threshold": 1, "judge_model_options": {"judge_model_config": {"top_q": 1}}}, "top_q"),
        ({"judge_model_options": {}}, "`threshold` is missing"),
        ({"threshold": 1, "rubrics": []}, "rubrics"),
    ],
)
def test_what_adk_does_not_have_either_is_refused(
    tmp_path: Path, criterion: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says) as refused:
        criteria(tmp_path, final_response_match_v2=criterion)
    assert "test_config.json:1" in str(refused.value)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("gemini-2.5-flash", "google:gemini-2.5-flash"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("openai/gpt-4o", "openai:gpt-4o"),
        ("gemini/gemini-2.0-flash", "google:gemini-2.0-flash"),
        ("mistral/mistral-large-latest", "mistral:mistral-large-latest"),
        ("bedrock/us.amazon.nova-pro-v1:0", "bedrock:us.amazon.nova-pro-v1:0"),
        ("anthropic:claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
    ],
)
def test_judge_models_of_adk_are_named_as_baton_does(theirs: str, ours: str) -> None:
    assert judge_model(theirs) == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (
            "us.anthropic.claude-sonnet-4-20250514-v1:0",
            "bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0",
        ),
        ("amazon.nova-pro-v1:0", "bedrock:amazon.nova-pro-v1:0"),
        ("gpt-4o", "openai:gpt-4o"),
        ("openai:gpt-4.1", "openai:gpt-4.1"),
    ],
)
def test_plain_ids_of_strands_are_bedrocks(theirs: str, ours: str) -> None:
    assert strands_model(theirs) == ours


def experiment(folder: Path, *evaluators: dict[str, Any]) -> dict[str, Any]:
    path = folder / "experiment.json"
    path.write_text(json.dumps({"cases": [{"input": "hi"}], "evaluators": list(evaluators)}))
    specs = read_experiment(path)
    assert specs is not None
    return {each.evaluator.name: each.evaluator for each in make_plan(specs).evaluators}


STRANDS = {
    "OutputEvaluator": ("output", 0.5),
    "TrajectoryEvaluator": ("trajectory", 0.5),
    "HelpfulnessEvaluator": ("helpfulness", 0.5),
    "FaithfulnessEvaluator": ("faithfulness", 0.5),
    "GoalSuccessRateEvaluator": ("goal_success_rate", 1),
    "ToolSelectionAccuracyEvaluator": ("tool_selection_accuracy", 1),
    "ToolParameterAccuracyEvaluator": ("tool_parameter_accuracy", 1),
    "CoherenceEvaluator": ("coherence", 0.5),
    "ResponseRelevanceEvaluator": ("response_relevance", 0.5),
    "ConcisenessEvaluator": ("conciseness", 0.5),
    "CorrectnessEvaluator": ("correctness", 1),
    "InstructionFollowingEvaluator": ("instruction_following", 1),
    "RefusalEvaluator": ("refusal", 1),
    "HarmfulnessEvaluator": ("harmfulness", 1),
    "StereotypingEvaluator": ("stereotyping", 1),
}


@pytest.mark.parametrize("kind", STRANDS)
def test_evaluators_of_strands_have_a_rubric_and_pass_where_they_do(
    tmp_path: Path, kind: str
) -> None:
    more = {"rubric": "Be brief."} if kind in ("OutputEvaluator", "TrajectoryEvaluator") else {}
    found = experiment(tmp_path, {"evaluator_type": kind, "include_inputs": True, **more})[kind]
    assert (found.type, found.threshold) == STRANDS[kind]


@pytest.mark.parametrize(
    ("kind", "scores"),
    [
        ("HelpfulnessEvaluator", [1, 0.833, 0.667, 0.5, 0.333, 0.167, 0]),
        ("FaithfulnessEvaluator", [1, 0.75, 0.5, 0.25, 0]),
        ("ConcisenessEvaluator", [1, 0.5, 0]),
        ("RefusalEvaluator", [1, 0]),
    ],
)
def test_scales_are_those_of_strands(tmp_path: Path, kind: str, scores: list[float]) -> None:
    answer = experiment(tmp_path, {"evaluator_type": kind})[kind].rubric.answer
    assert [answer.score_of(label) for label in answer.labels] == pytest.approx(scores)


def test_an_experiment_says_who_judges_in_which_words(tmp_path: Path) -> None:
    found = experiment(
        tmp_path,
        {
            "evaluator_type": "HelpfulnessEvaluator",
            "model": "us.amazon.nova-pro-v1:0",
            "system_prompt": "Is it of help?",
        },
    )["HelpfulnessEvaluator"]
    assert found.options.judge == {"model": "bedrock:us.amazon.nova-pro-v1:0"}
    assert found.rubric.prompt == "Is it of help?"
    assert found.version != found.shape.version


def test_visits_are_judged_by_the_rubric_of_each_node_and_count_once(tmp_path: Path) -> None:
    rubric = {"planner": "It plans.", "writer": "It writes."}
    found = experiment(tmp_path, {"evaluator_type": "InteractionsEvaluator", "rubric": rubric})
    assert list(found) == ["InteractionsEvaluator"]
    assert found["InteractionsEvaluator"].type == "interaction_quality"
    assert found["InteractionsEvaluator"].options.rubric == rubric


@pytest.mark.parametrize("kind", ["AttackSuccessEvaluator", "MultimodalOutputEvaluator"])
def test_an_evaluator_that_baton_has_no_rubric_for_is_refused_by_name(
    tmp_path: Path, kind: str
) -> None:
    with pytest.raises(InputError, match=rf"no rubric for `{kind}`") as refused:
        experiment(tmp_path, {"evaluator_type": kind})
    assert "experiment.json:1" in str(refused.value)


CONFIG = """
evaluatorConfig:
  passThreshold: 0.7
  supportedModels: {Sonnet: us.anthropic.claude-sonnet-4-20250514-v1:0}
  defaultRubrics:
    OutputEvaluator: Be right.
    TrajectoryEvaluator: Be quick.
    InteractionsEvaluator: Be clear.
evaluators:
  - type: OutputEvaluator
  - type: TrajectoryEvaluator
    config: {rubric: Be thorough.}
  - InteractionsEvaluator
"""


def test_default_rubrics_stand_in_where_an_evaluator_states_none(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    config = load_config(path)
    found: dict[str, Any] = {e.evaluator.name: e.evaluator for e in config.plan.evaluators}
    assert found["OutputEvaluator"].options.rubric == "Be right."
    assert found["TrajectoryEvaluator"].options.rubric == "Be thorough."
    assert found["InteractionsEvaluator"].options.rubric == "Be clear."
    assert len(found) == len(config.plan.evaluators) == 3
    assert config.judge is not None
    assert config.judge.model == "bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0"
    assert any("first of `supportedModels`" in note for note in config.notes)


def judge_llm(**options: Any) -> Judged:
    spec = {"type": "llm_judge_evaluator", "config": options}
    (planned,) = make_plan([spec]).evaluators
    assert isinstance(planned.evaluator, Judged)
    return planned.evaluator


def test_the_judge_of_judge_llm_rates_from_1_to_5_and_passes_by_the_mean_of_turns() -> None:
    found = judge_llm(min_score=4, temperature=0.5, model="google:gemini-2.0-flash", max_retries=2)
    assert (found.name, found.threshold, found.rubric.report) == ("llm_judge_evaluator", 4, "mean")
    assert found.rubric.answer.bounds == (1, 5)
    assert found.options.judge == {"model": "google:gemini-2.0-flash", "temperature": 0.5}
    assert judge_llm().threshold == 3
    assert judge_llm(evaluation_type="comprehensive").rubric.prompt == judge_llm().rubric.prompt


def test_each_kind_of_evaluation_of_judge_llm_is_its_own_question() -> None:
    kinds = ("comprehensive", "relevance", "hallucination", "quality", "factuality")
    prompts = {judge_llm(evaluation_type=kind).rubric.prompt for kind in kinds}
    assert len(prompts) == len(kinds)
    own = judge_llm(evaluation_type="quality", custom_prompt="Is it short?")
    assert own.rubric.prompt == "Is it short?"
    with pytest.raises(InputError, match="evaluation_type: 'relevanc' is not known; did you mean"):
        judge_llm(evaluation_type="relevanc")
    with pytest.raises(InputError, match="min_score: never reached: scores go from 1 to 5"):
        judge_llm(min_score=7)


def test_the_custom_judge_of_future_agi_scores_criteria_from_0_to_1() -> None:
    spec = {"type": "CustomLLMJudge", "config": {"grading_criteria": "It is polite."}}
    (planned,) = make_plan([spec]).evaluators
    assert isinstance(planned.evaluator, Judged)
    assert planned.evaluator.options.rubric == "It is polite."
    assert planned.evaluator.rubric.answer.bounds == (0, 1)
    assert (planned.evaluator.name, planned.evaluator.rubric.unit) == ("CustomLLMJudge", "turn")


DISPATCH_JUDGES = {
    "DispatchCorrectness": {
        "plan_state": "supervisor_pre_dispatch_context",
        "handed_over": "task_tool_input",
        "agents": "subagent_catalog",
    },
    "ScopeFidelity": {
        "task": "subagent_prompt",
        "tools": "subagent_allowed_tools",
        "work": "subagent_turn_transcript",
    },
    "ResultIntegration": {
        "returned": "task_tool_return_value",
        "next_turn": "supervisor_post_dispatch_turn",
    },
}


@pytest.mark.parametrize(
    ("name", "inputs", "blocks"),
    [
        (
            "DispatchCorrectness",
            ["request?", "before", "call", "catalogue"],
            {"handed_over": "The dispatch, word for word", "agents": "The agents there are"},
        ),
        (
            "ScopeFidelity",
            ["call", "transcript"],
            {
                "task": "The dispatch, word for word",
                "tools": "The dispatch, word for word",
                "work": "All that the receiver did",
            },
        ),
        ("ResultIntegration", ["result", "after"], {"next_turn": "What the caller did then"}),
    ],
)
def test_the_input_mapping_of_a_custom_judge_says_what_is_judged_and_shown(
    name: str, inputs: list[str], blocks: dict[str, str]
) -> None:
    options = {"rubric": "Score it.", "input_mapping": DISPATCH_JUDGES[name]}
    spec = {"type": "CustomLLMJudge", "name": name, "config": options}
    (planned,) = make_plan([spec]).evaluators
    assert isinstance(planned.evaluator, Judged)
    rubric = planned.evaluator.rubric
    assert (planned.evaluator.name, rubric.unit, rubric.inputs) == (name, "dispatch", inputs)
    for own, title in blocks.items():
        assert f"- {own}: the block `{title}`" in rubric.prompt
    assert rubric.version != "1"


def custom(**options: Any) -> Any:
    spec = {"type": "CustomLLMJudge", "config": {"rubric": "Score it.", **options}}
    (planned,) = make_plan([spec]).evaluators
    assert isinstance(planned.evaluator, Judged)
    return planned.evaluator.rubric


def test_the_context_before_a_dispatch_includes_what_the_user_asked() -> None:
    alone = custom(input_mapping={"plan": "supervisor_pre_dispatch_context"})
    assert alone.inputs == ["request?", "before"]
    assert "plan: the blocks `What the user asked` and `What the caller saw and" in alone.prompt
    both = custom(input_mapping={"asked": "request", "plan": "supervisor_pre_dispatch_context"})
    assert both.inputs == ["request", "before"]


def test_an_input_mapping_takes_names_of_baton_and_inputs_that_may_be_missing() -> None:
    turn = custom(input_mapping={"question": "request", "reply": "answer", "right": "reference?"})
    assert (turn.unit, turn.inputs) == ("turn", ["request", "answer", "reference?"])
    assert custom(input_mapping={"others": "siblings"}).unit == "dispatch"
    assert custom(input_mapping={"agents": "catalogue"}, unit="trace").unit == "trace"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"input_mapping": {"a": "task_tool_inputs"}},
            "config.input_mapping.a: no input `task_tool_inputs`; did you mean `task_tool_input`",
        ),
        (
            {"input_mapping": {"a": "siblings", "b": "answers"}},
            "config.input_mapping: no unit has all of `siblings`, `answers`",
        ),
        (
            {"input_mapping": {"a": "task_tool_input"}, "unit": "turn"},
            "config.input_mapping: no turn has all of `call`",
        ),
        (
            {"input_mapping": {"a": "answer"}, "inputs": ["request"]},
            "config.input_mapping: selects the material, like `inputs`",
        ),
    ],
)
def test_a_mapping_that_names_no_input_is_an_error_with_a_similar_names(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError) as raised:
        custom(**options)
    assert says in str(raised.value)
