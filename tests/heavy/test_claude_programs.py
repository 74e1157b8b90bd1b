"""A program of one's own that asks the Claude Agent SDK, from nothing to green to red.

The SDK is real; a stand-in for the program that it starts plays a script.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.test_init import alone
from tests.providers.conftest import Surroundings, make_provider

from baton.model import Trace
from baton.model.views import agent_chain
from baton.testing.build import case

pytestmark = pytest.mark.heavy
RESULT = "Refund R-1001 over 19.99 EUR for order 42 is paid."
HEAD = """
import os
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, query

options = ClaudeAgentOptions(cli_path=os.environ["CLAUDE"])
"""
QUERY = """
async def answer(message):
    async for said in query(prompt="A customer writes: " + message, options=options):
        if isinstance(said, ResultMessage):
            return said.result
"""
CLIENT = """
async def answer(message):
    async with ClaudeSDKClient(options) as client:
        await client.query("A customer writes: " + message)
        async for said in client.receive_response():
            if isinstance(said, ResultMessage):
                return said.result
"""


def said(*blocks: dict[str, Any], by: str = "assistant", inside: str | None = None) -> Any:
    """A message of the stream; ``inside`` names the call that a sub-agent answers."""
    message = {"role": by, "content": list(blocks)}
    if by == "assistant":
        message |= {"id": f"m-{id(message)}", "type": "message", "model": "m"}
    return {
        "type": by, "message": message, "parent_tool_use_id": inside, "session_id": "s-1",
        "uuid": f"u-{id(message)}",
    }  # fmt: skip


def turn(
    agent: str = "cashier",
    task: str = "Refund order 42.",
    answer: str = "Done: R-1001, 19.99 EUR are on their way.",
) -> list[Any]:
    """What Claude Code writes: a sub-agent is asked, and its result goes into the answer."""
    asks = {"subagent_type": agent, "description": "Pay back", "prompt": task}
    result = {"type": "tool_result", "tool_use_id": "t-1", "content": RESULT}
    return [
        said({"type": "tool_use", "id": "t-1", "name": "Task", "input": asks}),
        said({"type": "text", "text": task}, by="user", inside="t-1"),
        said({"type": "text", "text": RESULT}, inside="t-1"),
        said(result, by="user"),
        said({"type": "text", "text": answer}),
        {
            "type": "result", "subtype": "success", "is_error": False, "duration_ms": 1,
            "duration_api_ms": 1, "num_turns": 2, "result": answer, "total_cost_usd": 0.5,
            "session_id": "s-1", "uuid": "r-1",
        },
    ]  # fmt: skip


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script of the stand-in, which the program starts in place of Claude Code."""
    stand_in = Path(__file__).parent / "fake_claude" / "claude.py"
    command = tmp_path / "claude"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{stand_in}" "$@"\n')
    command.chmod(0o755)
    script = tmp_path / "script.json"
    monkeypatch.setenv("CLAUDE", str(command))
    monkeypatch.setenv("FAKE_CLAUDE", str(script))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    script.write_text(json.dumps({"turns": [turn()]}))
    return script


@pytest.mark.parametrize("program", [QUERY, CLIENT], ids=["query", "client"])
def test_it_goes_from_nothing_to_green_to_red(tmp_path: Path, claude: Path, program: str) -> None:
    (tmp_path / "app.py").write_text(HEAD + program)
    words = ["--agent", "app:answer", "--message", "Please refund order 42.", "--ci", "github"]
    started = alone(tmp_path, "init", *words)
    assert started.returncode == 0, started.stderr
    (provider,) = yaml.safe_load((tmp_path / "baton.yaml").read_text())["providers"]
    assert provider == {"type": "python", "target": "app:answer"}
    (first,) = yaml.safe_load((tmp_path / "evals" / "first.yaml").read_text())["cases"]
    assert first["agents"] == ["main", "cashier"]
    assert first["dispatches"] == [{"to": "cashier", "kind": "delegate", "prompt_contains": ["42"]}]
    assert "[claude]" in (tmp_path / ".github" / "workflows" / "baton.yml").read_text()
    green = alone(tmp_path, "eval")
    assert green.returncode == 0, green.stdout
    for broken, says in (
        (turn(agent="warehouse"), "handed to `warehouse`, not to `cashier`"),
        (turn(task="Refund the order."), "the prompt lacks '42'"),
        (turn(answer="All is well."), "the answer lacks 'R-1001'"),
    ):
        claude.write_text(json.dumps({"turns": [broken]}))
        red = alone(tmp_path, "eval")
        assert red.returncode == 1, red.stdout + red.stderr
        assert says in red.stdout


def played(folder: Path, program: str, *messages: str) -> Trace:
    (folder / "app.py").write_text(HEAD + program)

    async def run() -> Trace:
        spec = {"type": "python", "target": f"{folder}/app.py:answer"}
        async with make_provider(spec, Surroundings(folder)) as provider:
            return await provider(case(*messages, id="case"))

    return asyncio.run(run())


def test_the_record_has_what_passed_and_what_the_program_answered(
    tmp_path: Path, claude: Path
) -> None:
    changed = QUERY.replace("return said.result", "return said.result.upper()")
    trace = played(tmp_path, changed, "Please refund order 42.")
    (first,) = trace.turns
    assert agent_chain(trace, first) == ["main", "cashier"]
    assert first.input is not None
    assert first.input.text == "Please refund order 42."
    assert first.runs[0].input is not None
    assert first.runs[0].input.text == "A customer writes: Please refund order 42."
    assert first.output is not None
    assert first.output.text == "DONE: R-1001, 19.99 EUR ARE ON THEIR WAY."
    assert first.dispatches[0].result is not None
    assert first.dispatches[0].result.text == RESULT


def test_a_program_that_asks_twice_for_one_message_is_known_by_its_answer_alone(
    tmp_path: Path, claude: Path
) -> None:
    twice = QUERY.replace("answer(", "ask(") + (
        "\nasync def answer(message):\n    return await ask(message) + await ask(message)\n"
    )
    trace = played(tmp_path, twice, "Please refund order 42.")
    assert trace.turns[0].runs == []
    assert trace.turns[0].output is not None
