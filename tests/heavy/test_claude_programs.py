"""A program of one's own that asks the Claude Agent SDK, from nothing to green to red.

The SDK is real; a stand-in for the program that it starts plays a script.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.test_init import alone
from tests.cli.test_record import record
from tests.providers.conftest import Surroundings, make_provider

from baton.model import Trace
from baton.model.views import agent_chain
from baton.readers import load_traces
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


CHAT = """
import asyncio
from claude_agent_sdk import AgentDefinition

options.agents = {"cashier": AgentDefinition(description="Pays.", prompt="Pay.", tools=["pay"])}

async def chat():
    client = ClaudeSDKClient(options)
    await client.connect()
    for text in ("Refund order 42.", "And order 43."):
        await client.query(text)
        async for said in client.receive_response():
            pass
    raise SystemExit(5)

asyncio.run(chat())
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
    call: str = "t-1",
) -> list[Any]:
    """What Claude Code writes: a sub-agent is asked, and its result goes into the answer."""
    asks = {"subagent_type": agent, "description": "Pay back", "prompt": task}
    result = {"type": "tool_result", "tool_use_id": call, "content": RESULT}
    return [
        said({"type": "tool_use", "id": call, "name": "Task", "input": asks}),
        said({"type": "text", "text": task}, by="user", inside=call),
        said({"type": "text", "text": RESULT}, inside=call),
        said(result, by="user"),
        said({"type": "text", "text": answer}),
        {
            "type": "result", "subtype": "success", "is_error": False, "duration_ms": 1,
            "duration_api_ms": 1, "num_turns": 2, "result": answer, "total_cost_usd": 0.5,
            "session_id": "s-1", "uuid": f"r-{call}",
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


@pytest.mark.parametrize(("program", "faults"), [(QUERY, 3), (CLIENT, 1)], ids=["query", "client"])
def test_it_goes_from_nothing_to_green_to_red(
    tmp_path: Path, claude: Path, program: str, faults: int
) -> None:
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
    for broken, says in [
        (turn(agent="warehouse"), "handed to `warehouse`, not to `cashier`"),
        (turn(task="Refund the order."), "the prompt lacks '42'"),
        (turn(answer="All is well."), "the answer lacks 'R-1001'"),
    ][:faults]:
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


@pytest.mark.parametrize("program", [QUERY, CLIENT], ids=["query", "client"])
def test_baton_record_has_what_playing_it_has(tmp_path: Path, claude: Path, program: str) -> None:
    message = "Please refund order 42."
    asks = f"import asyncio\nprint(asyncio.run(answer({message!r})))\n"
    (tmp_path / "program.py").write_text(HEAD + program + asks)
    done = record(tmp_path, sys.executable, "program.py")
    assert (done.returncode, done.stdout) == (0, "Done: R-1001, 19.99 EUR are on their way.\n")
    assert "recorded by claude_agent_sdk (Baton's own)" in done.stderr
    assert "pip install" not in done.stderr
    (recorded,) = load_traces(tmp_path / "run.otlp.jsonl")
    by_playing = played(tmp_path, program, message)
    assert recorded.id == "s-1"
    assert recorded.usage == by_playing.usage
    (turn_,), (twin,) = recorded.turns, by_playing.turns
    assert turn_.input is not None
    assert turn_.input.text == f"A customer writes: {message}"
    for run, other in zip(turn_.runs, twin.runs, strict=True):
        assert (run.agent, run.input, run.output) == (other.agent, other.input, other.output)
        assert [type(step) for step in run.steps] == [type(step) for step in other.steps]
    for made, other_ in zip(turn_.dispatches, twin.dispatches, strict=True):
        assert (made.to_agent, made.prompt, made.result, made.status) == (
            other_.to_agent, other_.prompt, other_.result, other_.status,
        )  # fmt: skip


def test_a_chat_is_one_conversation_also_where_nobody_disconnects(
    tmp_path: Path, claude: Path
) -> None:
    second = turn(task="Refund order 43.", answer="R-1002 is on its way, too.", call="t-2")
    claude.write_text(json.dumps({"turns": [turn(), second]}))
    (tmp_path / "chat.py").write_text(HEAD + CHAT)
    assert record(tmp_path, sys.executable, "chat.py").returncode == 5
    (trace,) = load_traces(tmp_path / "run.otlp.jsonl")
    assert [each.input and each.input.text for each in trace.turns] == [
        "Refund order 42.", "And order 43.",
    ]  # fmt: skip
    dispatches = [dispatch for each in trace.turns for dispatch in each.dispatches]
    assert [each.prompt and each.prompt.text for each in dispatches] == [
        "Refund order 42.", "Refund order 43.",
    ]  # fmt: skip
    assert [each.tools_allowed for each in dispatches] == [["pay"], ["pay"]]


def test_a_program_that_records_itself_needs_one_line(tmp_path: Path, claude: Path) -> None:
    begins = "from baton.otel import record\nrecord('own.otlp.jsonl')\n"
    asks = "import asyncio\nasyncio.run(answer('Please refund order 42.'))\n"
    (tmp_path / "program.py").write_text(begins + HEAD + QUERY + asks)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True, capture_output=True)
    (trace,) = load_traces(tmp_path / "own.otlp.jsonl")
    assert agent_chain(trace, trace.turns[0]) == ["main", "cashier"]


def test_what_continues_in_a_session_is_its_own_trace(tmp_path: Path, claude: Path) -> None:
    asks = (
        "import asyncio\nfor text in ('Refund order 42.', 'And 43.'): asyncio.run(answer(text))\n"
    )
    (tmp_path / "program.py").write_text(HEAD + QUERY + asks)
    assert record(tmp_path, sys.executable, "program.py").returncode == 0
    assert [each.id for each in load_traces(tmp_path / "run.otlp.jsonl")] == ["s-1", "s-1-2"]
