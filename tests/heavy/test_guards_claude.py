"""The real Claude Code, by its hooks and by the Agent SDK, against a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from baton.guard import Guard
from baton.guard.claude import guard_hooks
from baton.session.hooks import add_guard
from baton.testing import Reply, llm_server

from .guarded import ANSWER, KEY, Calls
from .test_guards import rules

pytestmark = pytest.mark.heavy
AGENT: Calls = [
    (
        "Agent",
        {"description": "test", "prompt": "LAB: test it.", "subagent_type": "general-purpose"},
    )
]
REDACT = "{output: {any: [{secrets: [secrets]}]}, action: redact}"


class Scripted:
    """Makes the calls of the main agent, whose message has DESK in it; else it is the lab."""

    def __init__(self) -> None:
        self.calls: Calls = []
        self.heard: list[str] = []

    def __call__(self, received: Any) -> Reply:
        messages = received.body["messages"]
        if "DESK" not in json.dumps(messages[0]):
            return Reply(answer=ANSWER)
        blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
        self.heard = [json.dumps(b["content"]) for b in blocks if b["type"] == "tool_result"]
        if len(self.heard) < len(self.calls):
            name, arguments = self.calls[len(self.heard)]
            return Reply(tool=name, answer=arguments)
        return Reply(answer="That is all.")


@pytest.fixture
def script() -> Scripted:
    return Scripted()


@pytest.fixture
def surroundings(tmp_path: Path, script: Scripted) -> Iterator[dict[str, str]]:
    (tmp_path / "project").mkdir()
    with llm_server(script) as llm:
        yield {
            "ANTHROPIC_BASE_URL": llm.base_url("anthropic"),
            "ANTHROPIC_API_KEY": "sk-ant-scripted",
            "CLAUDE_CONFIG_DIR": str(tmp_path / "config"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "NO_PROXY": "127.0.0.1",
        }


def test_hooks_of_claude_code_redact_refuse_and_count(
    script: Scripted, surroundings: dict[str, str], tmp_path: Path
) -> None:
    policy, settings = tmp_path / "policy.yaml", tmp_path / "settings.json"
    policy.write_text(
        f"rules:\n  - max_dispatches: 1\n  - {REDACT}\n"
        "  - {allowed_tools: [Read], for: 'to:main tool:Write'}\n"
    )
    add_guard(settings, policy, tmp_path / "guard.db").apply()
    file = tmp_path / "project" / "a.txt"
    write = ("Write", {"file_path": str(file), "content": "x"})
    script.calls = [*AGENT, *AGENT, write]
    import claude_agent_sdk

    claude = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    command = [str(claude), "-p", "DESK: is it clean?", "--settings", str(settings)]
    subprocess.run(
        [*command, "--permission-mode", "acceptEdits"],
        env={**os.environ, **surroundings},
        cwd=tmp_path / "project",
        check=True,
        capture_output=True,
        timeout=60,
    )
    answered, refused, unwritten = script.heard
    assert "The sample is clean. The key is [key:" in answered
    assert KEY not in "".join(script.heard)
    assert "this request has made 1 dispatches, and at most 1 are allowed" in refused
    assert "`main` may not use `Write`" in unwritten
    assert not file.exists()


async def said_to(surroundings: dict[str, str], folder: Path, guard: Guard) -> str:
    from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

    options = ClaudeAgentOptions(
        hooks=guard_hooks(guard),
        env=surroundings,
        cwd=folder / "project",
        permission_mode="acceptEdits",
        setting_sources=[],
    )
    found = [m async for m in query(prompt="DESK: is it clean?", options=options)]
    return str([m.result for m in found if isinstance(m, ResultMessage)][-1])


@pytest.mark.parametrize("agrees", [True, False])
def test_a_program_of_the_agent_sdk_asks_its_own_guard(
    script: Scripted, surroundings: dict[str, str], tmp_path: Path, agrees: bool
) -> None:
    file = tmp_path / "project" / "a.txt"
    script.calls = [*AGENT, ("Write", {"file_path": str(file), "content": "x"})]
    asked: list[str] = []

    def ask(decision: Any) -> bool:
        asked.append(decision.rule)
        return agrees

    policy = rules(
        REDACT,
        "{max_dispatches: 0, action: warn}",
        "{allowed_tools: [], action: ask, for: 'tool:Write'}",
    )
    guard = Guard(policy, ask=ask)
    assert asyncio.run(said_to(surroundings, tmp_path, guard)) == "That is all."
    answered, wrote = script.heard
    assert KEY not in answered
    assert asked == ["allowed_tools"]
    assert file.exists() == agrees
    assert ("`main` may not use `Write`" in wrote) != agrees
