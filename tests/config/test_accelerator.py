"""`evaluatorConfig` of the accelerator, with its test cases, as its guide prints them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.config import load_config
from baton.config.judge_config import JudgeFlags, make_judge_of
from baton.judges.judge_settings import JudgeSettings
from baton.model import InputError
from baton.runner.plan import MeanRule, judge_options

Run = Callable[..., Any]
PRINTED = Path(__file__).parent.parent / "data" / "seeds" / "accelerator"
CONFIG = PRINTED / "evaluator_config.yaml"
# The printed cases are about a TODO app: the word is theirs, and nothing is left to do.
AGENT = """
NODES = ["researcher", "architect", "coder", "reviewer"]
SAYS = [
    "I've completed the research phase and handed off to the architect.",
    "I've completed a comprehensive system architecture design for the TODO app REST API",
    "So: I've successfully completed the implementation of the TODO app REST API",
    "I'll conduct a comprehensive code review of the TODO app REST API implementation",
]


def swarm(nodes=NODES, says=SAYS):
    from baton.model import AgentRun, Content, Dispatch, Source, Trace, Turn

    turn = Turn(id="t", output=Content(text="Reviewed."))
    for place, (node, said) in enumerate(zip(nodes, says)):
        run = AgentRun(id=f"r{place}", agent=node, output=Content(text=said))
        if place:
            run.started_by = [f"d{place}"]
            turn.dispatches.append(
                Dispatch(id=f"d{place}", kind="sequence", from_run=f"r{place - 1}",
                         from_agent=nodes[place - 1], to_agent=node, runs=[run.id])
            )
        turn.runs.append(run)
    return Trace(schema_version=1, id="x", source=Source(format="test"), turns=[turn])


def good(message, case):
    if "Bedrock" in message:
        return {"output": {"aws_services": ["Amazon Bedrock"], "links": []}}
    if "TODO" in message.upper():
        return swarm()
    assert "internal" not in message or case.state["s3_bucket"] == "your-bucket"
    tool = "summarize_document" if "internal" in message else "get_weather_forecast"
    calls = [{"name": tool, "arguments": {}}]
    return {"output": case.turns[0].response.text, "tool_calls": calls, "agents": ["chat"]}


def half(message, case):
    if "TODO" in message.upper():
        return swarm(NODES[::-1])
    return {"output": "I do not know.", "tool_calls": [], "agents": ["chat"]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "desk.py").write_text(AGENT)
    return tmp_path


def config(folder: Path, agent: str, **more: Any) -> Path:
    """Put the printed section into a config of ours."""
    path = folder / f"{agent}.yaml"
    ours = {"providers": [{"type": "python", "target": f"desk.py:{agent}"}], **more}
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in ours.items()]
    path.write_text(CONFIG.read_text() + "".join(lines))
    return path


@pytest.mark.parametrize(
    ("name", "evaluators"),
    [
        ("single_agent", ["tool_calls", "response"]),
        ("structured_output", ["structured_output"]),
        ("agent_state", ["tool_calls", "response"]),
        ("swarm", ["agent_chain", "interactions"]),
    ],
)
def test_each_printed_file_of_cases_runs_with_the_printed_config(
    baton: Run, folder: Path, name: str, evaluators: list[str]
) -> None:
    cases = PRINTED / f"{name}.json"
    good = baton("eval", config(folder, "good"), cases, "--json")
    assert good.code == 0
    (result,) = json.loads(good.out)["results"]
    assert [score["evaluator_type"] for score in result["scores"]] == evaluators
    assert result["mean"] == 1
    bad = baton("eval", config(folder, "half"), cases, "--json")
    assert bad.code == 1


def test_messages_in_other_words_are_left_to_a_judge(baton: Run, folder: Path) -> None:
    path = config(folder, "reworded")
    said = (folder / "desk.py").read_text()
    said += """
def reworded(message, case):
    return swarm(says=["The research is done.", "Here is the design.", "Built.", "I looked at it."])

def headless(message, case):
    return swarm(NODES[1:], SAYS[1:])
"""
    (folder / "desk.py").write_text(said)
    outcome = baton("eval", path, PRINTED / "swarm.json", "--json")
    (result,) = json.loads(outcome.out)["results"]
    status = {score["evaluator_type"]: score["status"] for score in result["scores"]}
    assert status == {"agent_chain": "passed", "interactions": "skipped"}
    assert outcome.code == 0
    outcome = baton("eval", config(folder, "headless"), PRINTED / "swarm.json", "--json")
    (result,) = json.loads(outcome.out)["results"]
    status = {score["evaluator_type"]: score["status"] for score in result["scores"]}
    assert status["interactions"] == "failed"


def test_the_printed_config_passes_by_average_from_its_threshold_on() -> None:
    read = load_config(CONFIG)
    assert read.plan.pass_rule == MeanRule(mean=0.8)
    assert read.evaluators is None
    rubrics, models = read.notes
    assert "default rubrics apply only to requested evaluators" in rubrics
    assert (
        "replace the placeholder `[REGION-PREFIX]` of `Claude Haiku 4.5`, `Claude Sonnet 4.6`, "
        "`Nova 2 Lite` with the region" in models
    )
    assert "the region of the model: `us`, `eu`, `apac` or `global`" in models
    assert "such as `eu.anthropic.claude-haiku-4-5-20251001-v1:0`" in models
    assert read.judge is None


LABELS = """evaluatorConfig:
  supportedModels:
    Haiku: us.anthropic.claude-haiku-4-5-20251001-v1:0
    Nova: "[REGION-PREFIX].amazon.nova-2-lite-v1:0"
    Sonnet: us.anthropic.claude-sonnet-4-6
"""


def test_judges_are_named_by_the_labels_of_supported_models(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, LABELS)).judge == JudgeSettings(
        model="bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0"
    )
    text = f"""{LABELS}
judge: {{model: Sonnet, fallback: [Haiku]}}
evaluators:
  - type: llm_judge
    config: {{rubric: Be right., judge: {{model: Haiku}}}}
  - type: panel
    config: {{rubric: coherence, models: [Haiku, Sonnet]}}
"""
    read = load_config(written(tmp_path, text))
    haiku, sonnet = (
        "bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "bedrock:us.anthropic.claude-sonnet-4-6",
    )
    assert read.judge is not None
    assert (read.judge.model, read.judge.fallback) == (sonnet, [haiku])
    own = [judge_options(planned.evaluator) for planned in read.plan.evaluators]
    assert [[each["model"] for each in some] for some in own] == [[haiku], [haiku, sonnet]]


def test_a_run_names_its_judge_by_label_too(tmp_path: Path) -> None:
    read = load_config(written(tmp_path, LABELS))
    flags = JudgeFlags(model="Sonnet", rehearsal=True)
    assert make_judge_of(read.judging, flags, read.plan).model.startswith(
        "bedrock:us.anthropic.claude-sonnet-4-6"
    )
    with pytest.raises(
        InputError, match="`Sonet` is not a label in `supportedModels`; did you mean"
    ):
        make_judge_of(read.judging, JudgeFlags(model="Sonet"), read.plan)


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("Nova", "config.yaml:6: judge.model: replace the placeholder `[REGION-PREFIX]` of `Nova`"),
        ("Sonett", "`Sonett` is not a label in `supportedModels`; did you mean `Sonnet`"),
    ],
)
def test_a_judge_that_cannot_be_asked_stops_the_run_with_what_to_write(
    tmp_path: Path, judge: str, said: str
) -> None:
    with pytest.raises(InputError) as raised:
        load_config(written(tmp_path, f"{LABELS}judge: {{model: {judge}}}\n"))
    assert said in str(raised.value)


def test_a_run_whose_only_models_lack_their_region_says_what_to_replace(
    baton: Run, folder: Path
) -> None:
    path = config(folder, "good", evaluators=["OutputEvaluator"])
    outcome = baton("eval", path, PRINTED / "single_agent.json", "-q")
    assert outcome.code == 2
    assert "replace the placeholder `[REGION-PREFIX]` of `Claude" in outcome.err
    assert "no model is configured" not in outcome.err


THEIRS = """prefix: aca
enableGeoRestrictions: false
allowedGeoRegions: []
knowledgeBaseParameters: {dataSourcePrefix: data}
supportedModels: {Sonnet: x}
toolRegistry: []
mcpServerRegistry: []
agentRuntimeConfig: {tools: []}
evaluatorConfig: {passThreshold: 0.6}
"""


def test_the_whole_config_of_the_accelerator_may_stand_beside_providers(
    baton: Run, folder: Path
) -> None:
    path = written(folder, THEIRS + "providers: [{type: python, target: 'desk.py:good'}]\n")
    outcome = baton("eval", path, PRINTED / "single_agent.json")
    assert outcome.code == 0, outcome.err
    assert "about the accelerator itself: `prefix`, `enableGeoRestrictions`" in outcome.err
    assert "`agentRuntimeConfig`" in outcome.err
    path = written(
        folder, THEIRS + "providerz: [{type: python, target: 'desk.py:good'}]\ntimeout: 5\n"
    )
    outcome = baton("eval", path, PRINTED / "single_agent.json")
    assert (outcome.code, "did you mean `providers`" in outcome.err) == (2, True)


def test_the_printed_config_is_checked_and_what_is_not_used_is_reported(
    baton: Run, folder: Path
) -> None:
    assert baton("check", CONFIG).code == 0
    outcome = baton("eval", config(folder, "good"), PRINTED / "swarm.json")
    assert "default rubrics apply only to requested evaluators" in outcome.err


def test_one_score_below_the_threshold_may_be_made_good_by_another(
    baton: Run, folder: Path
) -> None:
    more = {"evaluators": [{"type": "tool_calls"}, {"type": "contains", "config": {"value": "x"}}]}
    cases = PRINTED / "single_agent.json"
    strict = config(folder, "good", **more)
    (result,) = json.loads(baton("eval", strict, cases, "--json").out)["results"]
    assert (result["status"], result["mean"]) == ("failed", 0.5)
    strict.write_text(strict.read_text().replace("passThreshold: 0.8", "passThreshold: 0.5"))
    (result,) = json.loads(baton("eval", strict, cases, "--json").out)["results"]
    assert (result["status"], result["mean"]) == ("passed", 0.5)


def written(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def test_the_threshold_is_that_of_the_accelerator_where_none_is_stated(tmp_path: Path) -> None:
    read = load_config(written(tmp_path, "evaluatorConfig: {}\n"))
    assert read.plan.pass_rule == MeanRule(mean=0.8)
    assert read.notes == []


def test_other_sections_of_the_accelerators_own_config_are_named_and_left(tmp_path: Path) -> None:
    text = "prefix: aca\nknowledgeBase: {}\nevaluatorConfig: {passThreshold: 0.6}\n"
    read = load_config(written(tmp_path, text))
    assert read.plan.pass_rule == MeanRule(mean=0.6)
    assert any("`prefix`, `knowledgeBase`" in note for note in read.notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("evaluatorConfig: {passThreshold: 80}", "expected a number <= 1, got 80"),
        ("evaluatorConfig: {passTreshold: 0.8}", "did you mean `pass_threshold`?"),
        ("evaluatorConfig: 0.8", "has to be a mapping"),
        ("evaluatorConfig: {defaultRubrics: [x]}", "expected a mapping, got a list"),
        ("evaluatorConfig: {}\npass_rule: all", "leave one of them out"),
        ("evaluatorConfig: {}\ntimeout: 5\nfailFsat: true", "did you mean `fail_fast`"),
    ],
)
def test_what_is_wrong_with_the_section_is_reported_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(InputError, match=r"config\.yaml:\d") as raised:
        load_config(written(tmp_path, text))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        "OutputEvaluator", "HelpfulnessEvaluator", "FaithfulnessEvaluator",
        "GoalSuccessRateEvaluator", "ToolSelectionAccuracyEvaluator",
        "ToolParameterAccuracyEvaluator", "InteractionsEvaluator",
    ],
)  # fmt: skip
def test_an_evaluator_that_asks_a_model_wants_one_to_be_named(
    baton: Run, folder: Path, name: str
) -> None:
    ours = "providers: [{type: python, target: 'desk.py:good'}]\n"
    rubrics = "evaluatorConfig: {defaultRubrics: {OutputEvaluator: Be right., InteractionsEvaluator: x}}\n"
    path = written(folder, f"{ours}{rubrics}evaluators: [{name}]\n")
    outcome = baton("eval", path, PRINTED / "single_agent.json")
    assert outcome.code == 2
    assert f"`{name}` asks a judge, but no model is configured" in outcome.err
    assert not (folder / ".baton").exists()


def test_the_evaluator_of_the_accelerator_that_asks_nobody_has_its_name(tmp_path: Path) -> None:
    name = "StructuredOutputEvaluator"
    text = f"evaluatorConfig: {{}}\nevaluators: [{name}]\n"
    (planned,) = load_config(written(tmp_path, text)).plan.evaluators
    assert planned.entry is not None
    assert name in planned.entry.names


@pytest.mark.parametrize("placeholder", ["[region-prefix]", "<REGION-PREFIX>", "{region_prefix}"])
def test_the_placeholder_of_the_region_is_found_however_it_is_written(
    tmp_path: Path, placeholder: str
) -> None:
    labels = LABELS.replace("[REGION-PREFIX]", placeholder)
    with pytest.raises(InputError, match="such as `eu") as raised:
        load_config(written(tmp_path, f"{labels}judge: {{model: Nova}}\n"))
    assert f"replace the placeholder `{placeholder}`" in str(raised.value)
    assert "such as `eu.amazon.nova-2-lite-v1:0`" in str(raised.value)
