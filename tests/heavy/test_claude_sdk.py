"""The real Claude Agent SDK, with a stand-in for the program that it starts.

Needs the extra ``claude``, which brings a program of 377 MB along; that one is not run.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.providers.conftest import Surroundings, make_provider

from baton.model import (
    Content,
    InputError,
    ProviderError,
    Trace,
    integrity_problems,
)
from baton.model.views import agent_chain
from baton.testing.build import case

pytestmark = pytest.mark.heavy
DATA = Path(__file__).parents[1] / "data" / "claude"
Play = Callable[..., Trace]


@pytest.fixture
def cli(tmp_path: Path) -> Path:
    """An executable that runs the stand-in with this interpreter."""
    path = tmp_path / "claude"
    script = Path(__file__).parent / "fake_claude" / "claude.py"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def play(tmp_path: Path, cli: Path) -> Play:
    """Play messages against scripted turns; options are those of a config."""

    def plays(messages: list[str], turns: list[list[dict[str, Any]]], **options: Any) -> Trace:
        script = tmp_path / "script.json"
        script.write_text(json.dumps({"turns": turns, "log": str(tmp_path / "log.json")}))
        env = {"FAKE_CLAUDE": str(script), "CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
        spec = {"type": "claude_sdk", "cli_path": str(cli), "env": env, "timeout": 20, **options}
        provider = make_provider(spec, Surroundings(folder=tmp_path))

        async def run() -> Trace:
            async with provider:
                return await provider(case(*messages, id="case"))

        trace = asyncio.run(run())
        assert integrity_problems(trace) == []
        return trace

    return plays


def _capture(name: str) -> list[dict[str, Any]]:
    lines = (DATA / name / "messages.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def _says(text: str, id_: str) -> list[dict[str, Any]]:
    content = [{"type": "text", "text": text}]
    message = {"id": id_, "type": "message", "role": "assistant", "model": "m", "content": content}
    common = {"session_id": "s-1", "uuid": f"u-{id_}"}
    result = {
        "type": "result", "subtype": "success", "is_error": False, "duration_ms": 1,
        "duration_api_ms": 1, "num_turns": 1, "result": text, "total_cost_usd": 0.5, **common,
    }  # fmt: skip
    assistant = {"type": "assistant", "message": message, "parent_tool_use_id": None, **common}
    return [assistant, {**result, "uuid": f"r-{id_}"}]


def test_a_recorded_run_with_two_dispatches_becomes_the_record_of_the_case(play: Play) -> None:
    trace = play(["Rename it."], [_capture("current/01_correct_dispatch")])
    (turn,) = trace.turns
    assert agent_chain(trace, turn) == ["main", "research-agent", "refactor-agent"]
    assert turn.input == Content(text="Rename it.")
    assert [d.call for d in turn.dispatches] == ["toolu_s01_d1", "toolu_s01_d2"]
    assert trace.usage is not None
    assert trace.usage.cost_usd == pytest.approx(0.05208)
    assert trace.case == "case"


@pytest.mark.parametrize(
    "name", ["08_background_dispatch", "09_continued", "13_killed", "19_background_failed"]
)
def test_a_turn_waits_for_agents_in_the_background(play: Play, name: str) -> None:
    truth = json.loads((DATA / "current" / name / "truth.json").read_text())
    trace = play(["Go."], [_capture(f"current/{name}")])
    (turn,) = trace.turns
    assert turn.output is not None
    assert turn.output.text == (truth.get("final_texts") or [truth["final_text"]])[-1]
    assert [d.status for d in turn.dispatches] == [d["status"] for d in truth["dispatches"]]


def test_a_tool_outside_the_subset_is_seen_as_refused(play: Play) -> None:
    agents = {"validator-agent": {"description": "d", "prompt": "p", "tools": ["Read", "Bash"]}}
    trace = play(["Check."], [_capture("current/03_scope_bleed")], agents=agents)
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.tools_allowed, dispatch.tools_source) == (["Read", "Bash"], "definition")
    statuses = [getattr(step, "refused_by", None) for step in trace.turns[0].runs[1].steps]
    assert statuses == [None, "runtime", None, None]


def test_all_turns_of_a_case_are_one_conversation(play: Play, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    trace = play(
        ["one", "two"], [_says("a", "m1"), _says("b", "m2")], cwd="work", model="opus",
        agents={"helper": {"description": "d", "prompt": "p", "tools": ["Read"]}},
        allowed_tools=["Read"], permission_mode="plan", system_prompt="Be brief.", max_turns=3,
    )  # fmt: skip
    assert [turn.output.text for turn in trace.turns if turn.output] == ["a", "b"]
    told = json.loads((tmp_path / "log.json").read_text())
    assert told["heard"] == ["one", "two"]
    assert told["cwd"] == str(tmp_path / "work")
    assert told["agents"] == {"helper": {"description": "d", "prompt": "p", "tools": ["Read"]}}
    argv = " ".join(told["argv"])
    for option in ("--model opus", "--permission-mode plan", "--max-turns 3", "Be brief."):
        assert option in argv


def test_the_sessions_own_files_complete_the_record(play: Play, tmp_path: Path) -> None:
    source = DATA / "current" / "16_two_turns" / "session" / "projects"
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "projects").symlink_to(source)
    lines = _capture("current/16_two_turns")
    half = next(n for n, line in enumerate(lines) if line["type"] == "result") + 1
    prompts = ["[ticket SHOP-26] Find retry.", "And the timeout?"]
    trace = play(prompts, [lines[:half], lines[half:]])
    helper = trace.turns[0].runs[1]
    assert helper.usage is not None
    assert (helper.usage.output_tokens, helper.usage.complete) == (40, True)
    assert helper.tools_offered == ["Read", "Grep"]
    alone = play(prompts, [lines[:half], lines[half:]], transcripts=False)
    assert alone.turns[0].runs[1].tools_offered is None


def test_a_program_that_dies_is_an_error_with_what_was_seen(play: Play) -> None:
    with pytest.raises(ProviderError, match="turn 1: ") as error:
        play(["go"], [[*_says("I try.", "m1")[:1], {"exit": 3}]])
    assert error.value.trace is not None
    assert error.value.trace.turns[0].status == "incomplete"


def test_a_result_that_is_an_error_fails_the_case(play: Play) -> None:
    said, result = _says("I try.", "m1")
    failed = {**result, "subtype": "error_max_turns", "is_error": True, "result": None}
    with pytest.raises(ProviderError, match="turn 1: error_max_turns"):
        play(["go"], [[said, failed]])


def test_a_program_that_is_missing_is_an_error(play: Play) -> None:
    with pytest.raises(ProviderError, match="Claude Code does not start"):
        play(["go"], [[]], cli_path="/nowhere/claude")


def test_options_are_checked_before_anything_starts(play: Play) -> None:
    with pytest.raises(InputError, match="no such folder"):
        play(["go"], [[]], cwd="gone")
