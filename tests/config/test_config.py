"""Configs: everything is checked before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.config import load_config
from baton.evaluators import AgentChain
from baton.model import InputError
from baton.providers.adk_options import AdkHttpOptions


def write(folder: Path, text: str) -> Path:
    path = folder / "baton.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str, **environment: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_config(write(folder, text), environment)
    return [f"{problem.line}: {problem.message}" for problem in caught.value.problems]


def test_the_documented_shape_loads_with_paths_relative_to_the_config(tmp_path: Path) -> None:
    text = """
agent: {num_runs: 2, parallel_execution: true, max_workers: 8, log_level: DEBUG}
dataset: {loader: directory, paths: [evals]}
providers:
  - {type: adk_http, agent_id: a, endpoint_url: "http://localhost:8000/run"}
evaluators:
  - type: subagent_evaluator
    enabled: true
    config: {sequence_match_type: contains, allow_extra_agents: true, min_match_ratio: 0.8}
  - {type: agent_chain, enabled: false}
reporters:
  - {type: console}
  - {type: json, output_path: out/report.json}
"""
    config = load_config(write(tmp_path, text), {})
    assert config.dataset == [str(tmp_path / "evals")]
    assert config.reporters[1].output_path == str(tmp_path / "out" / "report.json")
    assert [p.evaluator.name for p in config.plan.evaluators] == ["subagent_evaluator"]


def test_every_unknown_word_is_said_at_once_with_its_line_and_what_was_meant(
    tmp_path: Path,
) -> None:
    text = """evaluators:
  - type: subagent_evaluatr
  - type: agent_chain
    config: {sequence_match_type: fuzzy}
  - type: agent_chain
    name: b
    config: {min_match_ration: 1}
providers:
  - {type: adk_htpp}
reporters:
  - {type: htlm}
"""
    found = problems(tmp_path, text)
    assert any(p.startswith("2:") and "`subagent_evaluator`" in p for p in found)
    assert any(p.startswith("4:") and "exact, flexible, subset" in p for p in found), found
    assert any(p.startswith("7:") and "did you mean `min_match_ratio`?" in p for p in found)
    assert any(p.startswith("9:") and "did you mean `adk_http`?" in p for p in found)
    assert any(p.startswith("11:") and "unknown reporter" in p for p in found)


def test_an_unknown_key_stops_at_every_level(tmp_path: Path) -> None:
    found = problems(tmp_path, "evaluator: []\nagent: {num_run: 1}\n")
    assert "1: unknown key; did you mean `evaluators`?" in found
    assert "2: unknown key; did you mean `num_runs`?" in found


def test_a_provider_option_is_checked_too(tmp_path: Path) -> None:
    text = "providers:\n- {type: adk_http, endpoint: x}\n"
    found = problems(tmp_path, text)
    assert "2: unknown key; did you mean `endpoint_url`?" in found
    assert "2: `endpoint_url` is missing" in found


def test_variables_are_put_in_and_numbers_stay_numbers(tmp_path: Path) -> None:
    text = """
evaluators:
  - type: agent_chain
    config: {min_match_ratio: "${RATIO}", sequence_match_type: "${MODE:-exact}"}
dataset: "${FOLDER}/cases-$${x}.yaml"
"""
    config = load_config(write(tmp_path, text), {"RATIO": "0.5", "FOLDER": "evals"})
    options = config.plan.evaluators[0].evaluator
    assert isinstance(options, AgentChain)
    assert (options.min_match_ratio, options.sequence_match_type) == (0.5, "exact")
    assert config.dataset == [str(tmp_path / "evals" / "cases-${x}.yaml")]


def test_a_variable_that_is_not_set_is_an_error_with_its_line(tmp_path: Path) -> None:
    text = "evaluators:\n- type: agent_chain\n  config: {min_match_ratio: '${RATIOO}'}\n"
    (found,) = problems(tmp_path, text, RATIO="0.5")
    assert found == "3: the environment variable RATIOO is not set; did you mean `RATIO`?"


def test_secrets_are_masked_in_what_is_stored(tmp_path: Path) -> None:
    text = """
providers:
  - {type: adk_http, endpoint_url: "http://u", api_key: "${KEY}", password: hunter2}
"""
    config = load_config(write(tmp_path, text), {"KEY": "sk-123"})
    assert "sk-123" not in str(config.resolved)
    assert "hunter2" not in str(config.resolved)
    (provider,) = config.providers
    assert isinstance(provider, AdkHttpOptions)
    assert provider.api_key == "sk-123"


def test_the_same_evaluator_twice_needs_names(tmp_path: Path) -> None:
    text = "evaluators:\n- {type: agent_chain}\n- {type: agent_chain}\n"
    assert "is a duplicate" in problems(tmp_path, text)[0]
    named = text.replace("- {type: agent_chain}\n", "- {type: agent_chain, name: b}\n", 1)
    assert len(load_config(write(tmp_path, named), {}).plan.evaluators) == 2


def test_a_pattern_chooses_among_the_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "evals" / "deep").mkdir(parents=True)
    for name in ("a.test.json", "deep/b.test.json", "c.json"):
        (tmp_path / "evals" / name).write_text("{}")
    text = "dataset: {loader: directory, paths: [evals], pattern: '*.test.json'}\n"
    config = load_config(write(tmp_path, text), {})
    assert [Path(path).name for path in config.dataset] == ["a.test.json", "b.test.json"]
    assert (
        "no file in evals matches the pattern"
        in problems(tmp_path, text.replace("test", "evalset"))[0]
    )


@pytest.mark.parametrize(
    ("evaluator", "option"),
    [
        ("agent_chain", "sequence_match_type"),
        ("trajectory_evaluator", "sequence_match_type"),
        ("dispatch_correctness", "threshold"),
    ],
)
def test_an_option_beside_its_evaluators_type_is_told_to_go_under_config(
    tmp_path: Path, evaluator: str, option: str
) -> None:
    text = f"evaluators:\n  - type: {evaluator}\n    {option}: exact\n    colour: red\n"
    found = problems(tmp_path, text)
    assert found[0] == f"3: is an option of `{evaluator}`: put it under `config:`"
    assert found[1].startswith(f"4: unknown key; options of `{evaluator}` go under `config:`: ")


def test_rules_of_a_gate_that_always_pass_are_refused_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def distance(trace):\n    return 3\n")
    text = """evaluators:
- agent_chain
- type: custom_judge
  name: stars
  config: {rubric: Is it kind?, answer: {scale: {min: 1, max: 5, normalise: false}}}
- own.py:distance
gate:
  thresholds:
  - agent_chain >= 0.9
  - agent_chain >= -0.5
  - {measure: agent_chain, by: agent, at_most: 50}
  - pass_rate <= 1.5
  - stars <= 6
  - stars >= 4
  - own.py:distance >= -0.5
  - own.py:distance <= 7
"""
    judge = "judge: {model: 'openai:gpt-4o-mini', api_key: '${KEY}'}\n"
    assert problems(tmp_path, text + judge, KEY="k") == [
        "12: `pass_rate <= 1.5`: `pass_rate` is a share from 0 to 1, such as 0.95",
    ]
    text = text.replace("  - pass_rate <= 1.5\n", "")
    between = "write a limit between these, or remove the rule"
    assert problems(tmp_path, text + judge, KEY="k") == [
        "10: `agent_chain >= -0.5` always passes: values of "
        f"`agent_chain` are from 0 to 1; {between}",
        "11: `agent_chain by agent <= 50` always passes: values of "
        "`agent_chain` are from 0 to 1; write 0.5 for 50 %",
        f"12: `stars <= 6` always passes: values of `stars` are from 0 to 5; {between}",
    ]


def test_rubrics_that_are_not_there_are_reported_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.yaml").write_text("name: polite\nprompt: 3\n")
    text = "evaluators: [agent_chain]\nrubrics:\n- empty\n- nowhere\n- no.yaml\n- broken.yaml\n"
    with pytest.raises(InputError) as caught:
        load_config(write(tmp_path, text), {})
    assert sorted(str(each).removeprefix(f"{tmp_path}/") for each in caught.value.problems)[:3] == [
        "baton.yaml:3: rubrics[0]: empty: no rubric (*.yaml) in this folder",
        "baton.yaml:4: rubrics[1]: nowhere: no such folder",
        "baton.yaml:5: rubrics[2]: no.yaml: no such file or folder",
    ]
    others = [problem.file for problem in caught.value.problems[3:]]
    assert set(others) == {str(tmp_path / "broken.yaml")}
