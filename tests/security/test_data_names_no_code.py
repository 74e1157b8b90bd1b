"""Files of data resolve names against the registry, and set no judge, address, code or folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton as api
from baton.model import InputError
from baton.testing import LlmServer

Run = Callable[..., Any]
EVIL = "import pathlib\npathlib.Path('ran').touch()\ndef m(*given, **more): return 1.0\n"


@pytest.fixture
def theirs(tmp_path: Path, recordings: Path) -> Path:
    """A folder that somebody else made: code, and a recording."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "evil.py").write_text(EVIL)
    run = (recordings / "support_desk" / "refund.session.json").read_bytes()
    (folder / "run.session.json").write_bytes(run)
    return folder


def experiment(folder: Path, evaluator: dict[str, Any]) -> Path:
    file = folder / "experiment.json"
    case = {"name": "refund", "input": "Please refund order 42.", "expected_output": "done"}
    file.write_text(json.dumps({"cases": [case], "evaluators": [evaluator]}, indent=1))
    return file


def no_code_ran(folder: Path) -> bool:
    return not list(folder.rglob("ran")) and not Path("ran").exists()


SHELL = {"evaluator_type": "timeit:timeit", "number": 1, "stmt": "open('ran', 'w')"}
NAMES: list[dict[str, Any]] = [
    SHELL,
    {"evaluator_type": "theirs/evil.py:m"},
    {"evaluator_type": "evil.py:m"},
    {"evaluator_type": "evil:m"},
    {"evaluator_type": "theirs/evil.py"},
    {"evaluator_type": "rubric.yaml"},
    {"evaluator_type": "theirs/rubric.yml"},
    {"evaluator_type": "adk_custom_metric", "function": "evil.m", "folder": "theirs"},
]


@pytest.mark.parametrize("evaluator", NAMES, ids=lambda each: str(each["evaluator_type"]))
@pytest.mark.parametrize("verb", ["score", "eval", "eval dry", "score dry", "check", "folder"])
def test_an_experiment_cannot_name_code(
    baton: Run, theirs: Path, evaluator: dict[str, Any], verb: str
) -> None:
    file = experiment(theirs, evaluator)
    (theirs / "rubric.yaml").write_text("name: x\nprompt: y\n")
    run = theirs / "run.session.json"
    commands: dict[str, list[str | Path]] = {
        "score": ["score", run, "--dataset", file],
        "eval": ["eval", "operator:itemgetter", file],
        "eval dry": ["eval", "operator:itemgetter", file, "--dry-run"],
        "score dry": ["score", run, "--dataset", file, "--dry-run"],
        "check": ["check", file],
        "folder": ["check", theirs],
    }
    outcome = baton(*commands[verb])
    assert outcome.code == 2, outcome
    assert f"{file.name}:" in outcome.err
    assert f"`{evaluator['evaluator_type']}` names code" in outcome.err
    assert "under `evaluators:` of a config of your own" in outcome.err
    assert no_code_ran(theirs)


def test_python_refuses_it_too(baton: Run, theirs: Path) -> None:
    file = experiment(theirs, SHELL)
    with pytest.raises(InputError, match="names code"):
        api.score(theirs / "run.session.json", file)
    with pytest.raises(InputError, match="names code"):
        api.evaluate(file, {"type": "mock"})
    assert no_code_ran(theirs)


def test_the_same_evaluator_is_free_to_run_from_ones_own_config(baton: Run, theirs: Path) -> None:
    experiment(theirs, SHELL)
    Path("mine.yaml").write_text("evaluators: ['theirs/evil.py:m']\n")
    outcome = baton(
        "score", theirs / "run.session.json", "-d", theirs / "experiment.json", "-c", "mine.yaml"
    )
    assert outcome.code == 0, outcome.err
    assert Path("ran").exists()


@pytest.mark.parametrize(
    ("more", "option"),
    [
        ({"judge": {"model": "openai:x", "base_url": "ADDRESS"}}, "judge.base_url"),
        ({"judge": {"api_key": "k"}}, "judge.api_key"),
        ({"judge": {"fallback": [{"model": "openai:x", "base_url": "ADDRESS"}]}}, "judge.fallback"),
        ({"max_chars": 200}, "max_chars"),
    ],
)
def test_an_experiment_cannot_choose_where_its_judge_is(
    baton: Run, theirs: Path, baton_llm: LlmServer, more: dict[str, Any], option: str
) -> None:
    told = json.loads(json.dumps(more).replace("ADDRESS", baton_llm.url))
    file = experiment(theirs, {"evaluator_type": "HelpfulnessEvaluator", **told})
    outcome = baton("score", theirs / "run.session.json", "-d", file)
    assert outcome.code == 2
    assert f"`{option}`" in outcome.err
    assert baton_llm.requests == []


CASE_OPTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("scope_fidelity", {"judge": {"base_url": "ADDRESS", "model": "openai:x"}}, "judge"),
    ("scope_fidelity", {"judge": {"api_key": "${HOME}"}}, "judge"),
    ("scope_fidelity", {"judge": {"model": "openai:other"}}, "judge"),
    ("scope_fidelity", {"prompt": "Say inside."}, "prompt"),
    ("scope_fidelity", {"answer": {"choices": {"x": 1}}}, "answer"),
    ("scope_fidelity", {"max_chars": 200}, "max_chars"),
    ("scope_fidelity", {"samples": 99}, "samples"),
    ("jury", {"models": [{"model": "openai:a", "base_url": "ADDRESS"}, "openai:b"]}, "models"),
    ("jury", {"options": {"judge": {"base_url": "ADDRESS"}}}, "options.judge"),
    ("jury", {"rubric": "theirs/rubric.yaml"}, "rubric"),
    ("mine", {"function": "evil.m"}, "function"),
    ("mine", {"folder": "theirs"}, "folder"),
    ("own", {"base_url": "ADDRESS"}, "base_url"),
    ("own", {"api_key": "x"}, "api_key"),
    ("own", {"prompt_file": "/etc/passwd"}, "prompt_file"),
    ("own", {"folder": "theirs"}, "folder"),
    ("listed", {"word": "x"}, "word"),
]


@pytest.mark.parametrize(("name", "options", "refused"), CASE_OPTIONS)
def test_a_case_sets_no_judge_no_code_no_address_and_no_folder(
    baton: Run, theirs: Path, baton_llm: LlmServer, name: str, options: dict[str, Any], refused: str
) -> None:
    (Path.cwd() / "metrics.py").write_text("def m(*given): return type('R', (), {})()\n")
    (Path.cwd() / "own.py").write_text(
        "def own(trace, **options): return 1.0\n"
        "def listed(trace, *, word='a', least=1): return 1.0\nlisted.case_options = ['least']\n"
    )
    judge = f"judge: {{model: 'openai:x', base_url: '{baton_llm.url}/v1', api_key: '${{HOME}}'}}"
    Path("mine.yaml").write_text(
        f"{judge}\nevaluators:\n  - scope_fidelity\n"
        "  - {type: panel, name: jury, config: {rubric: scope_fidelity, "
        "models: ['openai:a', 'openai:b']}}\n"
        "  - {type: adk_custom_metric, name: mine, config: {function: metrics.m}}\n"
        "  - {type: 'own.py:own', name: own}\n  - {type: 'own.py:listed', name: listed}\n"
    )
    told = json.loads(json.dumps(options).replace("ADDRESS", baton_llm.url))
    case = {"id": "refund", "input": "Please refund order 42.", "evaluators": {name: told}}
    cases = theirs / "cases.jsonl"
    cases.write_text(json.dumps(case) + "\n")
    run = theirs / "run.session.json"
    for command in (
        ["score", run, "-d", cases, "-c", "mine.yaml"],
        ["score", run, "-d", cases, "-c", "mine.yaml", "--jobs", "2"],
    ):
        outcome = baton(*command)
        assert outcome.code == 2, outcome
        assert f"cases.jsonl:1: case `refund`: {name}.{refused}: a case may set" in outcome.err
    assert baton_llm.requests == []
    assert no_code_ran(theirs)


def test_check_names_what_a_case_may_not_set_though_no_config_is_there(
    baton: Run, theirs: Path
) -> None:
    (theirs / "cases.yaml").write_text(
        "cases:\n- {id: a, input: hi, evaluators: {scope_fidelity: {judge: {base_url: x}}}}\n"
        "- {id: b, input: hi, evaluators: {adk_custom_metric: {function: evil.m, folder: theirs}}}\n"
    )
    outcome = baton("check", theirs / "cases.yaml")
    assert outcome.code == 2
    assert "cases.yaml:2: case `a`: scope_fidelity.judge" in outcome.err
    assert "cases.yaml:3: case `b`: adk_custom_metric.function" in outcome.err
    assert "cases.yaml:3: case `b`: adk_custom_metric.folder" in outcome.err
    assert no_code_ran(theirs)


def test_a_case_still_sets_thresholds_and_what_to_compare_with(baton: Run, theirs: Path) -> None:
    Path("own.py").write_text(
        "def says(trace, *, word='zzz'): return word in trace.turns[-1].output.plain()\n"
        "def listed(trace, *, folder='zzz'): return folder in trace.turns[-1].output.plain()\n"
        "listed.case_options = {'folder'}\n"
    )
    Path("mine.yaml").write_text(
        "evaluators:\n- {type: response, config: {contains: zzz}}\n"
        "- {type: tool_called, config: {tool: zzz}}\n- agent_chain\n"
        "- {type: 'own.py:says', name: says}\n- {type: 'own.py:listed', name: listed}\n"
    )
    said = {
        "response": {"contains": "R-1001", "threshold": 0.5, "regex": "R-[0-9]+"},
        "tool_called": {"tool": "lookup_order"},
        "agent_chain": {"sequence_match_type": "exact", "min_match_ratio": 0.1},
        "says": {"word": "R-1001"},
        "listed": {"folder": "R-1001"},
    }
    case = {
        "id": "refund",
        "input": "Please refund order 42.",
        "agents": ["support_router", "billing_agent"],
        "evaluators": said,
    }
    (theirs / "cases.jsonl").write_text(json.dumps(case) + "\n")
    outcome = baton(
        "score", theirs / "run.session.json", "-d", theirs / "cases.jsonl", "-c", "mine.yaml"
    )
    assert outcome.code == 0, outcome


def test_a_turn_says_only_that_it_wants_a_restart(baton: Run, theirs: Path) -> None:
    for told in ("touch ran", {"restart": "touch ran"}, ["touch", "ran"]):
        turn = {"input": "hi", "restart": told}
        (theirs / "cases.jsonl").write_text(json.dumps({"id": "a", "turns": [turn]}) + "\n")
        outcome = baton("eval", "operator:itemgetter", theirs / "cases.jsonl")
        assert outcome.code == 2, outcome
        assert "restart" in outcome.err
        assert no_code_ran(theirs)


def test_every_option_of_an_evaluator_that_is_a_free_text_is_the_users_unless_it_is_marked() -> (
    None
):
    import msgspec

    from baton.plugins import refused_options

    class New(msgspec.Struct):
        threshold: float = 1.0
        strict: bool = False
        endpoint: str = ""
        where: dict[str, Any] = {}
        anything: Any = None

    told = {"threshold": 0.5, "strict": True, "endpoint": "x", "where": {}, "anything": 1}
    assert refused_options(New, told, "case") == ["endpoint", "where", "anything"]


LOADS = r" import (?:[^(\n]*|\([^)]*)\b(?:load_function|load_object|Program)\b"
"""Imports of what loads code by its name, in one line or in several."""


def test_code_of_the_users_own_is_loaded_in_known_places_only() -> None:
    """A new way to code has to be looked at: does data lead there?"""
    source = Path(api.__file__).parent
    found = {
        str(file.relative_to(source))
        for file in source.rglob("*.py")
        if re.search(LOADS, file.read_text())
    }
    assert found == {
        "evaluators/adk_custom_metric.py",
        "evaluators/user_defined.py",
        "providers/adk_local.py",
        "providers/base_provider.py",
        "providers/frameworks/program.py",
        "providers/instrument/frameworks.py",  # of `init --agent`, in its own process
        "providers/instrument/program_player.py",
        "providers/prompt_delivery.py",  # `prompts_to` of a config
        "providers/python.py",
        "runner/backends/registry.py",
    }


@pytest.mark.parametrize(
    "name", ["x" * 5000, "../base", "base/", "Mock", "pyth\x00on", "mock.py", ""]
)
@pytest.mark.parametrize("part", ["providers", "reporters", "evaluators", "backend"])
def test_a_name_is_looked_up_and_never_made_into_a_path(
    baton: Run, tmp_path: Path, part: str, name: str
) -> None:
    named = {"type": name} if part == "backend" else [{"type": name}]
    config = tmp_path / "own.yaml"
    config.write_text(json.dumps({part: named}, indent=1))
    result = baton("check", config)
    assert (result.code, result.out) == (2, "")
    assert "own.yaml" in result.err
    assert "fault of Baton" not in result.err
