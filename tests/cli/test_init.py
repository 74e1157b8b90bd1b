"""`baton init`: what it writes passes at once, and nothing is overwritten."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest
import yaml
from tests.conftest import Baton
from tests.processes import run_baton

from baton.plugins.origin import requirement

WITH_FLAGS = ["--agent", "sample", "--message", "Please refund order 42."]


@pytest.mark.parametrize(
    ("ci", "workflow"),
    [("github", ".github/workflows/baton.yml"), ("gitlab", ".gitlab-ci.yml"), ("none", None)],
)
def test_what_it_writes_passes_at_once(
    baton: Baton, tmp_path: Path, ci: str, workflow: str | None
) -> None:
    written = baton("init", *WITH_FLAGS, "--ci", ci)
    assert written.code == 0, written.err
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    files = {name for name in files if "__pycache__" not in name}  # of Python
    assert files - {"desk.py"} == {"baton.yaml", "evals/first.yaml"} | (
        {workflow} if workflow else set()
    )
    assert baton("check", ".").code == 0
    outcome = baton("eval")
    assert outcome.code == 0, outcome.err
    assert "agent_chain" in outcome.out


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ('prompt = f"A user writes: {message}"', 'prompt = "A user has a question"', "42"),
        ('f"Our {name} desk says: {result}"', '"Done."', "R-7781"),
        ('name, specialist = "billing"', 'name, specialist = "forecasts"', "billing"),
    ],
)
def test_a_fault_in_the_agents_turns_it_red_and_names_the_dispatch(
    baton: Baton, tmp_path: Path, right: str, wrong: str, says: str
) -> None:
    assert baton("init", *WITH_FLAGS, "--ci", "none").code == 0
    desk = tmp_path / "desk.py"
    text = desk.read_text()
    assert right in text
    desk.write_text(text.replace(right, wrong))
    done = alone(tmp_path, "eval")
    assert done.returncode == 1, done.stderr
    assert says in done.stdout


@pytest.mark.parametrize("name", [".github/workflows/baton.yml", ".gitlab-ci.yml"])
def test_the_workflow_runs_a_command_that_passes(baton: Baton, tmp_path: Path, name: str) -> None:
    ci = "github" if "github" in name else "gitlab"
    assert baton("init", *WITH_FLAGS, "--ci", ci).code == 0
    workflow = yaml.safe_load((tmp_path / name).read_text())
    steps = workflow["jobs"]["evaluate"]["steps"] if ci == "github" else workflow["baton"]["script"]
    commands = [step.get("run", "") if isinstance(step, dict) else step for step in steps]
    (command,) = [line for line in commands if line.startswith("baton ")]
    assert baton(*command.split()[1:]).code == 0
    assert any(line.startswith(f"pip install {quote(requirement())}") for line in commands)


def test_agents_of_ones_own_are_asked_and_expected_to_do_the_same(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        'def reply(message):\n    return {"agents": ["boss", "clerk"], "output": message}\n'
    )
    assert baton("init", "--agent", "mine.py:reply", "--message", "hi", "--ci", "none").code == 0
    (case,) = yaml.safe_load((tmp_path / "evals" / "first.yaml").read_text())["cases"]
    assert (case["input"], case["agents"]) == ("hi", ["boss", "clerk"])
    assert "response" not in case
    assert "response_contains" not in case
    assert baton("eval").code == 0


def test_files_that_are_there_stay_unless_force_is_given(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "baton.yaml").write_text("mine: yes\n")
    refused = baton("init", *WITH_FLAGS, "--ci", "none")
    assert refused.code == 2
    assert "baton.yaml: already exists" in refused.err
    assert (tmp_path / "baton.yaml").read_text() == "mine: yes\n"
    assert not (tmp_path / "evals").exists()
    assert baton("init", *WITH_FLAGS, "--ci", "none", "--force").code == 0


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([], "give --agent: there is no terminal to ask on"),
        (["--agent", "sample"], "give --message"),
        (["--agent", "nowhere", "--message", "x", "--ci", "none"], "`nowhere` is not an agent"),
        ([*WITH_FLAGS, "--ci", "jenkins"], "choose from github, gitlab, none"),
        (["--agent", "", "--message", "x", "--ci", "none"], "--agent is empty"),
        (["--agent", "gone.py:reply", "--message", "x", "--ci", "none"], "gone"),
    ],
)
def test_bad_answers_are_one_message_and_write_nothing(
    baton: Baton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], says: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    outcome = baton("init", *flags)
    assert outcome.code == 2
    assert says in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_agents_that_fail_when_asked_are_reported_with_their_error(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("def reply(message):\n    raise ValueError('no key')\n")
    outcome = baton("init", "--agent", "mine.py:reply", "--message", "x", "--ci", "none")
    assert outcome.code == 2
    assert "no key" in outcome.err
    assert not (tmp_path / "baton.yaml").exists()


def test_in_a_terminal_it_asks_three_questions(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"sample\n\nnone\n")
    done = subprocess.run(
        [sys.executable, "-m", "baton", "init"],
        cwd=tmp_path, stdin=theirs, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("]: ") == 3
    assert "Please refund order 42." in (tmp_path / "evals" / "first.yaml").read_text()


AGENTS = """
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


def saying(*parts):
    def speak(messages, info):
        # One answer for each request of the run, whatever was asked before.
        return ModelResponse(parts=[parts[sum(m.kind == "response" for m in messages) % len(parts)]])

    return FunctionModel(speak)


clerk = Agent(saying(TextPart("Order 42 is refunded: 19.90 EUR, reference R-7781.")), name="clerk")
desk = Agent(
    saying(
        ToolCallPart("ask_clerk", {"task": "Refund order 42."}),
        TextPart("Done: 19.90 EUR are on their way, reference R-7781."),
    ),
    name="desk",
)


@desk.tool_plain
async def ask_clerk(task: str) -> str:
    return (await clerk.run(task)).output
"""


@pytest.mark.parametrize(
    ("agent", "more"),
    [
        ("app:desk", ""),
        pytest.param(
            "app:answer",
            "async def answer(message):\n    return (await desk.run(message)).output\n",
            marks=pytest.mark.heavy,
        ),
        pytest.param(
            "later:answer",
            "async def answer(message):\n    import app\n    return (await app.desk.run(message)).output\n",
            marks=pytest.mark.heavy,
        ),
    ],
    ids=["object", "function", "imported late"],
)
def test_agents_of_a_framework_are_recorded_without_a_word_in_the_config(
    tmp_path: Path, agent: str, more: str
) -> None:
    (tmp_path / "app.py").write_text(AGENTS + (more if agent.startswith("app") else ""))
    (tmp_path / "later.py").write_text(more)
    started = alone(tmp_path, "init", "--agent", agent, "--message", "Refund 42", "--ci", "github")
    assert started.returncode == 0, started.stderr
    (case,) = yaml.safe_load((tmp_path / "evals" / "first.yaml").read_text())["cases"]
    assert case["agents"] == ["desk", "clerk"]
    (provider,) = yaml.safe_load((tmp_path / "baton.yaml").read_text())["providers"]
    assert provider == {"type": "python", "target": agent, "instrument": True}
    assert "baton-evals[otel]" in (tmp_path / ".github" / "workflows" / "baton.yml").read_text()
    assert alone(tmp_path, "eval").returncode == 0


COUNTED = "with open('loads.txt', 'a') as loads: print('loaded', file=loads)\n"


@pytest.mark.parametrize(
    ("agent", "program"),
    [
        ("app:answer", "def answer(message): return {'output': 'Paid.', 'agents': ['desk']}\n"),
        ("app.py:answer", "def answer(message): return {'output': 'Paid.', 'agents': ['desk']}\n"),
        ("app:desk", AGENTS),
        ("later:answer", "def answer(message):\n    from app import desk\n    return desk.run_sync(message).output\n"),
    ],
    ids=["function", "file", "framework", "framework imported late"],
)  # fmt: skip
def test_the_program_is_loaded_once(tmp_path: Path, agent: str, program: str) -> None:
    """Importing it may take long, open a port or write something."""
    (tmp_path / "app.py").write_text(AGENTS)
    (tmp_path / f"{agent.partition(':')[0].removesuffix('.py')}.py").write_text(COUNTED + program)
    started = alone(tmp_path, "init", "--agent", agent, "--message", "Refund 42", "--ci", "none")
    assert started.returncode == 0, started.stderr
    assert (tmp_path / "loads.txt").read_text() == "loaded\n"


def test_an_installed_package_called_agents_is_not_taken_for_the_sdk(tmp_path: Path) -> None:
    """A project's own code is often installed from `src/agents`."""
    package = tmp_path / "src" / "agents"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def reply(message): return 'Paid.'\n")
    here = tmp_path / "here"
    here.mkdir()
    (here / "app.py").write_text(
        "from agents import reply\n"
        "def answer(message): return {'output': reply(message), 'agents': ['desk']}\n"
    )
    words = ["init", "--agent", "app:answer", "--message", "hi", "--ci", "none"]
    paths = os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "baton", *words],
        cwd=here,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (provider,) = yaml.safe_load((here / "baton.yaml").read_text())["providers"]
    assert provider == {"type": "python", "target": "app:answer"}


@pytest.mark.parametrize("agent", ["app:desks", "nowhere:desk"])
def test_an_agent_of_a_framework_that_is_not_there_is_one_message(
    tmp_path: Path, agent: str
) -> None:
    (tmp_path / "app.py").write_text(AGENTS)
    outcome = alone(tmp_path, "init", "--agent", agent, "--message", "hi", "--ci", "none")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert {"app:desks": "did you mean `desk`", "nowhere:desk": "no module `nowhere`"}[agent] in (
        outcome.stderr
    )


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("crewai", "uses CrewAI, and what its agents do is known from its spans. Install what "
         "records them, then do this again: pip install openinference-instrumentation-crewai\n"),
        ("llama_index", "pip install openinference-instrumentation-llama-index\n"),
        # These need nothing beside themselves; here they do nothing.
        ("autogen_agentchat", "the run does not tell which agents worked"),
        ("langgraph", "the run does not tell which agents worked"),
    ],
)  # fmt: skip
def test_what_records_a_framework_is_named_where_it_is_not_installed(
    tmp_path: Path, module: str, says: str
) -> None:
    (tmp_path / f"{module}.py").write_text("")
    (tmp_path / "app.py").write_text(f"import {module}\ndef answer(message): return message\n")
    # The instrumentor that the tests' own environment has.
    name = "openinference_instrumentation_langchain"
    hides = tmp_path / f"{name}-0.0.dist-info"
    hides.mkdir()
    (hides / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0\n")
    outcome = alone(tmp_path, "init", "--agent", "app:answer", "--message", "hi", "--ci", "none")
    assert outcome.returncode == 2
    assert says in outcome.stderr
    assert not (tmp_path / "baton.yaml").exists()


@pytest.mark.parametrize(
    ("said", "is_told"), [("R-7781 is paid.", False), ("All is well.", True)], ids=["facts", "none"]
)
def test_a_case_that_expects_nothing_of_the_answer_is_reported(
    baton: Baton, tmp_path: Path, said: str, is_told: bool
) -> None:
    (tmp_path / "app.py").write_text(
        "def answer(message):\n"
        "    paid = {'from': 'desk', 'to': 'clerk', 'kind': 'delegate', 'prompt': message,\n"
        f"            'result': {said!r}}}\n"
        f"    return {{'output': {said!r}, 'agents': ['desk', 'clerk'], 'dispatches': [paid]}}\n"
    )
    outcome = baton("init", "--agent", "app.py:answer", "--message", "Refund it.", "--ci", "none")
    assert outcome.code == 0, outcome
    case = (tmp_path / "evals" / "first.yaml").read_text()
    assert ("response_contains:" in case.partition("cases:")[2]) is not is_told
    assert ("add `response_contains: [...]`" in outcome.err.lower()) is is_told


def test_a_function_that_tells_of_no_agents_is_told_what_to_return(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text("def answer(message):\n    return 'Done.'\n")
    outcome = baton("init", "--agent", "app.py:answer", "--message", "hi", "--ci", "none")
    assert outcome.code == 2
    assert 'have `app.py:answer` return {"output": ANSWER, "agents": [NAME, ...]}' in outcome.err


def alone(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in its own process: what it imports stays there."""
    return run_baton(*words, folder=folder, seconds=120)
