"""Agents of ADK in this process, wherever they are named from."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.cli.test_init import alone
from tests.conftest import ROOT, Baton
from tests.providers.conftest import CaseCancelled, Surroundings, make_provider

import baton
from baton.model import Case, Content, ExpectedTurn, InputError, Said, Trace, known
from baton.model.views import agent_chain

pytestmark = [
    pytest.mark.heavy,
    # ADK's own code warns of its own code.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
CASE = {"id": "ask", "input": "Hi", "response_contains": ["streaming mode NONE"]}


@pytest.mark.parametrize("agent", ["__init__.py", "agent.py", "../mode_teller"])
def test_agents_may_be_named_from_their_own_folder(
    apps: Path, tmp_path: Path, baton: Baton, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    (apps / "mode_teller" / "__init__.py").touch()
    monkeypatch.chdir(apps / "mode_teller")
    ended = baton("eval", agent, cases_in(tmp_path), "--out", tmp_path / "out")
    assert ended.code == 0, ended.out + ended.err


def test_agents_may_be_those_of_the_folder_one_is_in(apps: Path, tmp_path: Path) -> None:
    words = ["eval", ".", str(cases_in(tmp_path)), "--out", str(tmp_path)]
    (apps / "mode_teller" / "__init__.py").touch()
    ended = subprocess.run(
        [sys.executable, "-m", "baton", *words],  # which looks for modules in this folder first
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=apps / "mode_teller",
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def cases_in(folder: Path) -> Path:
    file = folder / "cases.jsonl"
    file.write_text(json.dumps(CASE) + "\n")
    return file


def test_a_config_may_stand_in_the_folder_of_its_agents(apps: Path) -> None:
    case = Case(id="ask", turns=[ExpectedTurn(input=Content(text="Hi"))])

    async def run() -> str | None:
        around = Surroundings(apps / "mode_teller")
        async with make_provider({"type": "adk_local", "path": "."}, around) as provider:
            trace = await provider(case)
        return trace.turns[0].output.text if trace.turns[0].output else None

    assert asyncio.run(run()) == "streaming mode NONE"


def test_a_case_that_is_ended_keeps_what_its_agents_did(apps: Path) -> None:
    turns = [ExpectedTurn(input=Content(text="Please send a courier."))]
    case = Case(id="slow", turns=turns)

    async def run() -> CaseCancelled:
        options = {"type": "adk_local", "path": str(apps / "parcel_desk")}
        async with make_provider(options) as provider:
            await provider(Case(id="first", turns=[ExpectedTurn(input=Content(text="Hi"))]))
            task = asyncio.ensure_future(provider(case))
            await asyncio.sleep(1)  # the courier, who takes 2 seconds, is running
            task.cancel()
            with pytest.raises(CaseCancelled) as raised:
                await task
            return raised.value

    trace = asyncio.run(run()).trace
    assert trace is not None
    (turn,) = trace.turns
    assert (turn.status, turn.error) == ("incomplete", "the case ended before the turn did")
    assert [dispatch.to_agent for dispatch in turn.dispatches] == ["courier_agent"]


def test_agents_in_this_process_tell_what_they_were_given(apps: Path) -> None:
    case = Case(id="report", turns=[ExpectedTurn(input=Content(text="Write the report."))])

    async def run() -> Trace:
        options = {"type": "adk_local", "path": str(apps / "report_pipeline")}
        async with make_provider(options) as provider:
            return await provider(case)

    trace = asyncio.run(run())
    (turn,) = trace.turns
    said = {
        step.id: step.content.plain()
        for run in turn.runs
        for step in run.steps
        if isinstance(step, Said)
    }
    given = [[said[r.id] for r in run.context or [] if r.id in said] for run in turn.runs]
    plan, market, risks, draft, *_ = said.values()
    assert [run.agent for run in turn.runs[:4]] == [
        "planner", "researcher_a", "researcher_b", "writer",
    ]  # fmt: skip
    assert given[:4] == [[], [plan], [plan], [plan, market, risks]]
    assert draft in given[4]
    assert {dispatch.basis for dispatch in turn.dispatches} == {"structure"}
    scores = baton.score([trace], evaluators=["context_carried"]).results[0].scores
    assert {score.status for score in scores} <= {"passed", "skipped"}
    assert "passed" in {score.status for score in scores}


APP = """
from google.adk.apps.app import App
from adk_desk.agent import root_agent as desk
app = App(name="refunds", root_agent=desk)
nothing = 3
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with a module that holds agents of ADK by other names than `root_agent`."""
    shutil.copytree(ROOT / "examples" / "quickstarts" / "adk_desk", tmp_path / "adk_desk")
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.mark.parametrize(
    ("agent", "words"),
    [("app:desk", ["eval"]), ("app:app", ["eval", "app:app", "evals/first.yaml"])],
)
def test_an_agent_or_app_of_a_module_goes_from_green_to_red(
    desk: Path, baton: Baton, agent: str, words: list[str]
) -> None:
    told = ["--agent", agent, "--message", "Please refund order 42.", "--ci", "none"]
    started = alone(desk, "init", *told)
    assert started.returncode == 0, started.stderr
    (case,) = yaml.safe_load((desk / "evals" / "first.yaml").read_text())["cases"]
    assert case["agents"] == ["front_desk", "cashier"]
    (provider,) = yaml.safe_load((desk / "baton.yaml").read_text())["providers"]
    assert provider == {"type": "adk_local", "path": agent}
    green = alone(desk, *words)
    assert green.returncode == 0, green.stdout + green.stderr
    file = desk / "adk_desk" / "agent.py"
    file.write_text(file.read_text().replace('ASKS = "cashier"', 'ASKS = "warehouse"'))
    # In this process, which has imported ADK, and has not read that file before.
    for each in (["eval"], ["eval", agent, "evals/first.yaml"]):
        red = baton(*each)
        assert red.code == 1, red.out + red.err
        assert "handed to `warehouse`, not to `cashier`" in red.out


@pytest.mark.parametrize("workers", [None, "process"])
def test_a_config_that_names_an_agent_as_a_function_plays_it_too(
    desk: Path, workers: str | None
) -> None:
    turns = [ExpectedTurn(input=Content(text="Please refund order 42."))] * 2
    spec = {"type": "python", "target": "app:desk", "workers": workers}

    async def run() -> list[list[str]]:
        async with make_provider(spec, Surroundings(desk)) as provider:
            trace = await provider(Case(id="ask", turns=turns))
        return [agent_chain(trace, turn) for turn in trace.turns]

    assert asyncio.run(run()) == [["front_desk", "cashier"]] * 2


def test_what_is_not_an_agent_is_refused(desk: Path) -> None:
    async def run() -> None:
        async with make_provider({"type": "adk_local", "path": "app:nothing"}, Surroundings(desk)):
            pass

    with pytest.raises(
        InputError, match="`app:nothing` is int, neither an agent nor an App of ADK"
    ):
        asyncio.run(run())


def test_the_record_tells_what_models_were_really_given(
    apps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = tmp_path / "requests.jsonl"
    monkeypatch.setenv("TOLD_AGENTS", str(requests))
    turns = [
        ExpectedTurn(input=Content(text="Message 1")),
        ExpectedTurn(input=Content(text="Message 2")),
        ExpectedTurn(input=Content(text="Message 3"), new_session=True),
    ]

    async def play() -> Trace:
        options = {"type": "adk_local", "path": str(apps / "told_agents")}
        async with make_provider(options) as provider:
            return await provider(Case(id="told", turns=turns))

    trace = asyncio.run(play())
    given: dict[str, list[set[str]]] = {}
    for line in requests.read_text().splitlines():
        request = json.loads(line)
        given.setdefault(request["agent"], []).append(_numbers(" ".join(request["given"])))
    runs = [run for turn in trace.turns for run in turn.runs]
    said = {step.id: step.content for run in runs for step in run.steps if isinstance(step, Said)}
    said |= {turn.id: turn.input for turn in trace.turns if turn.input is not None}
    told: dict[str, list[set[str]]] = {}
    for run in runs:
        contents = [run.input, *(said.get(ref.id or "") for ref in run.context or [])]
        texts = [content.plain() for content in contents if content is not None]
        told.setdefault(run.agent, []).append(_numbers(" ".join(texts)))
    assert len(runs) == 33
    assert all(known(trace, run, "context") for run in runs)
    assert told == given


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"Message \d|\d{4}", text))
