"""`judge:` and `gate:` of a config: checked before anything runs, and no key is written out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.config import load_config
from baton.config.judge_config import CACHE, JudgeConfig, JudgeFlags, ready
from baton.judges.judge import LlmJudge
from baton.model import InputError
from baton.runner.plan import Plan, make_plan

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-tests")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def config(folder: Path, text: str, **environment: str) -> Any:
    path = folder / "baton.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, environment)


def judged(*specs: Any) -> Plan:
    return make_plan(specs or ["scope_fidelity"])


def judge_of(plan: Plan) -> LlmJudge:
    assert isinstance(plan.context.judge, LlmJudge)
    return plan.context.judge


def test_settings_are_read_and_verdicts_are_kept_beside_evaluations(tmp_path: Path) -> None:
    found = config(tmp_path, "judge: {model: 'openai:m', samples: 3}\nevaluators: [scope_fidelity]")
    assert found.judge is not None
    assert (found.judge.model, found.judge.samples) == ("openai:m", 3)
    assert found.judging.cache == CACHE == Path(".baton/verdicts.sqlite")


@pytest.mark.parametrize(
    ("said", "cache"), [("kept/here.db", "kept/here.db"), ("false", None), ("null", None)]
)
def test_the_cache_lies_where_the_config_says(tmp_path: Path, said: str, cache: str | None) -> None:
    found = config(tmp_path, f"judge: {{model: 'openai:m', cache: {said}}}")
    assert found.judging.cache == (tmp_path / cache if cache else None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("judge: {modell: x}", "1: judge.modell: .*did you mean `model`"),
        ("judge: openai:m", "1: judge: .*mapping.*; write `judge: {model: openai:m}`"),
        ("judge: gpt-4", "1: judge: .*; write `judge: {model: openai:gpt-4}`"),
        (
            "evaluators:\n- {type: faithfulness, config: {judge: claude-haiku-4-5}}",
            "2: evaluators.0..config.judge: .*; write `judge: {model: anthropic:claude-haiku-4-5}`",
        ),
        ("judge:\n  model: openai:m\n  samples: 0", "3: judge.samples"),
        ("judge:\n  model: nobody:m", "2: judge.model: there is no provider `nobody`"),
        ("judge:\n  model: openai:m\n  cache: [1]", "3: judge.cache: has to be the path of a file"),
        (
            "judge: {model: 'openai:m'}\nevaluators:\n- type: scope_fidelity\n  config:\n"
            "    judge: {sample: 2}",
            "5: evaluators.0..config.judge.sample: .*`samples`",
        ),
        ("gate: [what]", "1: gate.*`what` is not a rule"),
        (
            "evaluators: [agent_chain]\ngate: [agent_chian >= 1]",
            "2: gate.0.: .*`agent_chian` is not part of this evaluation; did you mean `agent_chain`",
        ),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InputError, match=f"baton.yaml:{problem}"):
        config(tmp_path, text)


def test_a_key_comes_from_the_environment(tmp_path: Path) -> None:
    text = "judge: {model: 'openai:m', api_key: '${MINE}'}"
    found = config(tmp_path, text, MINE="s3cret")
    assert found.judge.api_key == "s3cret"
    assert found.resolved["judge"]["api_key"] == "${MINE}"


@pytest.mark.parametrize(
    "text",
    [
        "judge:\n  model: openai:m\n  api_key: sk-123",
        "judge:\n  model: openai:m\n  fallback:\n  - {model: 'openai:n', api_key: sk-123}",
        "evaluators:\n- type: scope_fidelity\n  config:\n    judge: {api_key: sk-123}",
    ],
)
def test_a_key_that_is_written_out_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="a key does not belong in a file") as refused:
        config(tmp_path, text)
    assert "sk-123" not in str(refused.value)


def test_an_evaluator_that_asks_nobody_needs_no_judge() -> None:
    assert ready(judged("agent_chain")).context.judge is None


def test_every_evaluator_without_a_model_is_named() -> None:
    plan = judged("agent_chain", "scope_fidelity", "result_integration")
    with pytest.raises(InputError) as refused:
        ready(plan)
    said = str(refused.value)
    assert "`scope_fidelity`, `result_integration` ask a judge, but no model is configured" in said
    assert "judge: {model: openai:gpt-4o-mini}" in said
    assert "agent_chain" not in said


def test_an_evaluator_may_name_a_model_for_itself_alone() -> None:
    own = {"type": "scope_fidelity", "config": {"judge": {"model": "openai:own"}}}
    assert judge_of(ready(judged(own))).model == "openai:own"
    with pytest.raises(InputError, match=r"^`result_integration` asks a judge"):
        ready(judged(own, "result_integration"))


def test_the_settings_of_an_evaluator_are_checked_before_the_run() -> None:
    own = {"type": "scope_fidelity", "config": {"judge": {"model": "anthropic:m"}}}
    with pytest.raises(InputError, match=r"`scope_fidelity`: .*`anthropic:m` has no key"):
        ready(judged(own), JudgeConfig(options={"model": "openai:m"}))


def test_a_model_without_a_key_stops_the_run_unless_nobody_is_asked() -> None:
    told = JudgeConfig(options={"model": "anthropic:m"})
    with pytest.raises(InputError, match="ANTHROPIC_API_KEY"):
        ready(judged(), told)
    for flags in (JudgeFlags(cache_only=True), JudgeFlags(rehearsal=True)):
        assert ready(judged(), told, flags).context.judge is not None


def test_the_model_of_the_command_line_goes_before_the_configs() -> None:
    told = JudgeConfig(
        options={"model": "openai:m", "base_url": "http://localhost:1/v1", "api_key": "k"}
    )
    same = judge_of(ready(judged(), told, JudgeFlags(model="openai:n"))).settings
    assert (same.model, same.base_url, same.api_key) == ("openai:n", "http://localhost:1/v1", "k")
    only_read = JudgeFlags(model="anthropic:n", cache_only=True)
    other = judge_of(ready(judged(), told, only_read)).settings
    assert (other.model, other.base_url, other.api_key) == ("anthropic:n", None, None)


def test_a_model_may_come_from_the_command_line_and_all_else_from_the_config() -> None:
    told = JudgeConfig(options={"samples": 5})
    found = judge_of(ready(judged(), told, JudgeFlags(model="openai:m"))).settings
    assert (found.model, found.samples) == ("openai:m", 5)


def test_in_python_a_judge_is_a_model_or_what_a_config_says() -> None:
    with pytest.raises(InputError, match="there is no provider `opnai`: did you mean `openai`"):
        baton.score([], None, ["scope_fidelity"], judge="opnai:m")
    with pytest.raises(InputError, match="did you mean `samples`"):
        baton.score([], None, ["scope_fidelity"], judge={"model": "openai:m", "sample": 3})


def test_the_command_line_says_which_evaluators_lack_a_judge(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps({"schema_version": 1}))
    found = baton("score", tmp_path / "trace.json", "-e", "scope_fidelity")
    assert found.code == 2
    assert "`scope_fidelity` asks a judge, but no model is configured" in found.err
    assert not (tmp_path / ".baton").exists()
