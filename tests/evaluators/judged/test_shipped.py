"""The rubrics that come with Baton: whole, named once, askable of any judge, and documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.evaluators.judged.scripted import Judged, shipped

from baton.config import load_config
from baton.evaluators.judging.evidence import FINDINGS
from baton.evaluators.judging.inputs import INPUTS
from baton.evaluators.judging.rubric import Rubric, RubricOptions
from baton.evaluators.judging.rubric_files import FOLDER, checks_of, names_of
from baton.evaluators.judging.verdicts import Item, answer_schema
from baton.evaluators.registry import all_evaluators, evaluator_entries, evaluator_entry
from baton.judges.parse_answer import check_schema
from baton.model.dataset import _STATED

DOCS = (ROOT / "docs" / "rubrics.md").read_text(encoding="utf-8")
RUBRICS = shipped()
SEED_002 = {
    "DispatchCorrectness": ("dispatch_correctness", "dispatch", 0.85),
    "ScopeFidelity": ("scope_fidelity", "dispatch", 0.9),
    "ResultIntegration": ("result_integration", "dispatch", 0.8),
    "TaskCompletion": ("task_completion", "turn", 0.85),
    "EvaluateFunctionCalling": ("function_calling", "turn", 0.75),
    "LLMFunctionCalling": ("function_calling", "turn", 0.75),
    "AnswerRefusal": ("answer_refusal", "turn", 1.0),
    "ConversationCoherence": ("conversation_coherence", "trace", 0.75),
    "CustomerAgentClarificationSeeking": ("customer_agent_clarification_seeking", "trace", 0.75),
    "CustomerAgentContextRetention": ("customer_agent_context_retention", "trace", 0.75),
    "CustomerAgentConversationQuality": ("customer_agent_conversation_quality", "trace", 0.75),
    "CustomerAgentHumanEscalation": ("customer_agent_human_escalation", "trace", 1.0),
    "CustomerAgentInterruptionHandling": ("customer_agent_interruption_handling", "trace", 0.75),
    "CustomerAgentLanguageHandling": ("customer_agent_language_handling", "trace", 1.0),
    "CustomerAgentLoopDetection": ("customer_agent_loop_detection", "trace", 1.0),
    "CustomerAgentObjectionHandling": ("customer_agent_objection_handling", "trace", 0.75),
    "CustomerAgentPromptConformance": ("customer_agent_prompt_conformance", "trace", 1.0),
    "CustomerAgentQueryHandling": ("customer_agent_query_handling", "trace", 0.75),
    "CustomerAgentTerminationHandling": ("customer_agent_termination_handling", "trace", 1.0),
    "PII": ("pii", "turn", 1.0),
    "Toxicity": ("toxicity", "turn", 1.0),
    "Groundedness": ("groundedness", "turn", 0.9),
    "ChunkAttribution": ("chunk_attribution", "turn", 0.5),
}


@pytest.mark.parametrize("name", sorted(SEED_002))
def test_a_rubric_goes_by_the_class_name_of_another_tool(name: str) -> None:
    entry = evaluator_entry(name)
    evaluator = entry.target.from_options(entry.asked_as(name).name, {})
    assert isinstance(evaluator, Judged)
    assert (evaluator.type, evaluator.unit, evaluator.threshold) == SEED_002[name]
    assert entry.asked_as(name).class_name == name


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=list(RUBRICS))
def test_every_name_of_a_rubric_makes_an_evaluator_with_the_options_of_that_name(
    rubric: Rubric,
) -> None:
    entry = evaluator_entry(rubric.name)
    text = {"rubric": "It is fine."} if "{rubric}" in rubric.prompt else {}
    for name in names_of(rubric):
        alias = entry.asked_as(name)
        told = [{}, *({option: value} for option, values in alias.values for value in values)]
        for options in told:
            made = entry.target.from_options(
                name, {**text, **alias.presets, **alias.translate(options)}
            )
            assert (made.name, made.type) == (name, rubric.name)


def test_no_two_evaluators_have_a_name_in_common() -> None:
    names = [name for entry in evaluator_entries() for name in set(entry.names)]
    names += [name for rubric in RUBRICS.values() for name in names_of(rubric)]
    assert sorted({name for name in names if names.count(name) > 1}) == []
    assert len(all_evaluators()) == len(evaluator_entries()) + len(RUBRICS)


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=list(RUBRICS))
def test_a_rubric_is_named_after_its_file_and_its_form_can_be_asked_of_any_judge(
    rubric: Rubric,
) -> None:
    several = rubric.answer.each is not None or rubric.answer.claims is not None
    items = [Item("a", "A"), Item("b", "B")] if several else None
    check_schema(answer_schema(rubric.answer, items))
    assert (FOLDER / f"{rubric.name}.yaml").is_file()
    assert rubric.summary
    assert rubric.prompt.strip()
    for label in (rubric.answer.labels or {}).values():
        assert label.means, "a judge has to be told when a label applies"


def test_the_documentation_lists_every_input_option_and_finding() -> None:
    for name, inputs in INPUTS.items():
        rows = [line.split(" | ") for line in DOCS.splitlines() if line.startswith(f"| `{name}` |")]
        assert [row[2] for row in rows if len(row) == 4] == [each.summary for each in inputs]
    for option in RubricOptions.__struct_fields__:
        assert f"`{option}`" in DOCS
    for field in Rubric.__struct_fields__:
        assert f"`{field}`" in DOCS, field
    for finding, (_, kinds) in FINDINGS.items():
        (row,) = [line for line in DOCS.splitlines() if line.startswith(f"| `{finding}` |")]
        assert set(re.findall(r"`(\w+)`", row)) == {finding, *kinds}


def test_the_rubric_and_the_config_of_the_documentation_are_read_as_they_stand(
    tmp_path: Path,
) -> None:
    config, rubric, own = re.findall(r"```yaml\n(.+?)```", DOCS, re.DOTALL)[:3]
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "asks_before_deleting.yaml").write_text(rubric)
    for text, names in (
        (config, ["dispatch_correctness", "scope_fidelity", "llm_judge"]),
        (own, ["asks_before_deleting"]),
    ):
        (tmp_path / "baton.yaml").write_text(text)
        plan = load_config(tmp_path / "baton.yaml").plan
        assert [planned.evaluator.name for planned in plan.evaluators] == names


def test_what_a_rubric_looks_at_is_named_as_datasets_name_it() -> None:
    known = set(_STATED)
    for rubric in RUBRICS.values():
        assert checks_of(rubric) <= known, rubric.name
    assert checks_of(RUBRICS["function_calling"]) == {"tools"}
    assert "rubrics" in checks_of(RUBRICS["rubric_based_final_response_quality_v1"])


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=list(RUBRICS))
def test_a_judge_is_asked_about_dispatches_and_never_about_hand_offs(rubric: Rubric) -> None:
    titles = [each.title for inputs in INPUTS.values() for each in inputs]
    assert not [text for text in (rubric.prompt, *titles) if "hand-off" in text.lower()]


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=list(RUBRICS))
def test_the_question_of_a_rubric_consists_of_whole_sentences(rubric: Rubric) -> None:
    starts = r"(The|A|If|It|What|Where|Whether|Judge|Take|Count|Look|Put)\b"
    text = " ".join(rubric.prompt.split())
    assert not re.search(rf"[^.?!:)}}\"] {starts}", text)
