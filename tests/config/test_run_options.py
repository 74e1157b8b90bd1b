"""How a config says what to play and how: our own words, and judge-llm's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.config import load_config
from baton.model import InputError, RunOptions
from baton.model.mask_known_secrets import masked
from baton.runner.costs import ModelPrice
from baton.runner.plan import MeanRule

Run = Callable[..., Any]


def load(folder: Path, text: str) -> Any:
    path = folder / "baton.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, {})


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(folder, text)
    return [
        f"{problem.line}: {problem.path}: {problem.message}" for problem in caught.value.problems
    ]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("{}", {}),
        (
            "{repeat: 3, concurrency: 7, timeout: 2.5}",
            {"repeat": 3, "concurrency": 7, "timeout": 2.5},
        ),
        ("agent: {num_runs: 3}", {"repeat": 3}),
        ("agent: {max_workers: 9, parallel_execution: true}", {"concurrency": 9}),
        ("agent: {max_workers: 9}", {"concurrency": 9}),
        ("agent: {max_workers: 9, parallel_execution: false}", {"concurrency": 1}),
        ("agent: {parallel_execution: false}", {"concurrency": 1}),
        ("agent: {parallel_execution: true}", {"concurrency": 4}),
        ("{agent: {num_runs: 2}, concurrency: 8}", {"repeat": 2, "concurrency": 8}),
    ],
)
def test_how_to_run_is_read_from_either_tool_s_words(
    tmp_path: Path, text: str, options: dict[str, Any]
) -> None:
    assert load(tmp_path, text).run == RunOptions(**options)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("repeat: 2\nagent: {num_runs: 2}", "2: agent.num_runs: means the same as `repeat`"),
        ("concurrency: 2\nagent: {max_workers: 2}", "agent.max_workers: means the same as `conc"),
        ("concurrency: 2\nagent: {parallel_execution: false}", "agent.parallel_execution: means"),
    ],
)
def test_the_same_said_in_both_words_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    (found,) = problems(tmp_path, text)
    assert said in found
    assert "leave one of them out" in found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("repeat: 0", "1: repeat: expected a whole number >= 1, got 0"),
        ("concurrency: -1", "1: concurrency: expected a whole number >= 1, got -1"),
        ("concurrency: four", '1: concurrency: expected a whole number or null, got "four"'),
        ("timeout: 0", "1: timeout: expected a number > 0, got 0"),
        ("agent:\n  num_runs: 0", "2: agent.num_runs: expected a whole number >= 1, got 0"),
        ("agent:\n  max_workers: 1.5", "2: agent.max_workers: expected a whole number or null"),
        ("agent: {log_level: LOUD}", "1: agent.log_level: "),
        (
            "prices: {gpt: {input: -1, output: 1}}",
            "prices.gpt.input: expected a number >= 0, got -1",
        ),
        ("prices: {gpt: {input: 1}}", "prices.gpt: `output` is missing"),
        ("prices: {gpt: {input: 1, outputs: 1}}", "did you mean `output`?"),
        ("pass_rule: {mean: 1.5}", "pass_rule.mean: expected a number <= 1, got 1.5"),
        ("reporters:\n- type: console\n- type: json", "3: reporters[1]: `output_path` is missing"),
        ("pass_rule: most", "pass_rule: "),
        ("pass_rule: {median: 1}", "pass_rule"),
    ],
)
def test_a_wrong_value_is_named_by_its_line_and_key(tmp_path: Path, text: str, said: str) -> None:
    found = problems(tmp_path, text)
    assert any(said in problem for problem in found), found


def test_every_wrong_value_is_named_at_once(tmp_path: Path) -> None:
    assert (
        len(problems(tmp_path, "repeat: 0\nconcurrency: 0\ntimeout: 0\nagent: {num_runs: 0}")) == 4
    )


def test_a_pass_rule_is_all_or_a_mean(tmp_path: Path) -> None:
    assert load(tmp_path, "{}").plan.pass_rule == "all"
    assert load(tmp_path, "pass_rule: all").plan.pass_rule == "all"
    assert load(tmp_path, "pass_rule: {mean: 0.8}").plan.pass_rule == MeanRule(mean=0.8)


def test_prices_of_the_config_go_before_those_of_a_provider(tmp_path: Path) -> None:
    text = """
providers:
- type: python
  target: a:b
  model: gpt-x
  custom_pricing: {gpt-x: {input: 1, output: 2}, gpt-y: {input: 3, output: 4}}
prices: {gpt-x: {input: 10, output: 20}}
"""
    plan = load(tmp_path, text).plan
    assert plan.prices == {
        "gpt-x": ModelPrice(input=10, output=20),
        "gpt-y": ModelPrice(input=3, output=4),
    }
    assert plan.default_model == "gpt-x"


def test_prices_and_agent_names_hold_for_a_live_run(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "priced.py").write_text(
        "def reply(m):\n"
        "    return {'agents': ['Node-7'], 'usage': {'input_tokens': 1000, 'output_tokens': 500}}\n"
    )
    (tmp_path / "baton.yaml").write_text("""
dataset: cases.yaml
providers: [{type: python, target: 'priced.py:reply', model: gpt-x}]
prices: {gpt-x: {input: 1000, output: 2000}}
agent_names: {Node-7: desk}
evaluators:
- {type: agent_chain}
- {type: cost, config: {max_usd: 2.0}}
""")
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: hi, agents: [desk]}]")
    outcome = baton("eval", "--json")
    (result,) = json.loads(outcome.out)["results"]
    assert outcome.code == 0
    assert result["trace"]["usage"]["cost_usd"] == 2.0
    assert result["trace"]["usage"]["cost_from"] == "prices"


def test_a_file_of_agents_is_read_from_beside_the_config(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "known.py").write_text("def reply(m): return {'agents': ['desk']}")
    (tmp_path / "evals" / "agents.yaml").write_text(
        "agents: {desk: {description: Answers., model: gpt-x, tools: [refund]}}"
    )
    (tmp_path / "evals" / "cases.yaml").write_text("cases: [{id: a, input: hi, agents: [desk]}]")
    config = "dataset: cases.yaml\nproviders: [{type: python, target: 'known.py:reply'}]\nagents: "
    (tmp_path / "evals" / "baton.yaml").write_text(f"{config}agents.yaml\n")
    assert baton("eval", "evals/baton.yaml").code == 0
    (folder,) = (tmp_path / ".baton" / "evaluations").iterdir()
    header = json.loads((folder / "evaluation.json").read_text())
    assert header["agents"][0]["desk"]["model"] == "gpt-x"
    (tmp_path / "evals" / "baton.yaml").write_text(f"{config}gone.yaml\n")
    outcome = baton("eval", "evals/baton.yaml")
    assert outcome.code == 2
    assert "gone.yaml: no such file" in outcome.err


def test_what_is_secret_is_masked_and_what_only_sounds_like_it_stays() -> None:
    config = {
        "endpoint_url": "http://anna:pa@ss@host:1/run", "url": "https://host/ask?key=k1&q={input}&access_token=t",
        "api_key": "k", "auth_token": "t", "password": 7, "username": "anna", "empty_secret": None,
        "headers": {"X-Shop": "s", "Accept": "x"},
        "evaluators": [{"config": {"max_tokens": 500, "input_tokens": 3}}],
        "credentials": {"user": "u", "deep": [{"key": "v"}]},
        "nested": [{"client_secret": ["a", "b"]}],
        "private_key": "p", "accessKey": "a", "auth": {"user": "u"}, "proxy_auth": "x", "auth_type": "basic",
    }  # fmt: skip
    assert masked(config) == {
        "endpoint_url": "http://***@host:1/run", "url": "https://host/ask?key=***&q={input}&access_token=***",
        "api_key": "***", "auth_token": "***", "password": "***", "username": "anna", "empty_secret": None,
        "headers": {"X-Shop": "***", "Accept": "***"},
        "evaluators": [{"config": {"max_tokens": 500, "input_tokens": 3}}],
        "credentials": "***",
        "nested": [{"client_secret": ["***", "***"]}],
        "private_key": "***", "accessKey": "***", "auth": "***", "proxy_auth": "***", "auth_type": "basic",
    }  # fmt: skip
