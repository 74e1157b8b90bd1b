"""The real Claude Code, by its hooks and by the Agent SDK, against a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from baton.formats.document import Document
from baton.guard import Guard
from baton.guard.claude import guard_hooks
from baton.guard.policy import read_policy
from baton.model.views import decisions_of
from baton.readers import load_traces
from baton.session.hooks import add_guard
from baton.testing import Reply, llm_server

from .guarded import ANSWER, KEY, Calls
from .test_guards import rules

pytestmark = pytest.mark.heavy
REDACT = "{output: {any: [{secrets: [secrets]}]}, action: redact}"


def asks(agent: str, prompt: str = "LAB: test R-77 and X-99.") -> tuple[str, dict[str, Any]]:
    given = {"description": "test", "prompt": prompt, "subagent_type": agent}
    return ("Agent", {**given, "run_in_background": False})


class Rule(NamedTuple):
    """A rule, the calls of the main agent by which it is broken once, and what is read then."""

    check: str
    calls: Calls
    refused: str


RULES = {
    "max_depth": Rule(
        "max_depth: 1, for: 'to:a-deep'",
        [asks("a-nest", "NEST: go on.")],
        "`a-deep` would work at depth 2, and at most 1 is allowed",
    ),
    "max_dispatches": Rule(
        "max_dispatches: 1, for: 'to:a-more'",
        [asks("a-more")],
        "and at most 1 are allowed: do not hand",
    ),
    "max_per_parent": Rule(
        "max_per_parent: 1, for: 'to:a-parent'",
        [asks("a-parent")],
        "`main` has made",
    ),
    "max_tokens": Rule(
        "max_tokens: 1, for: 'to:a-tokens'", [asks("a-tokens")], "tokens, and 1 is the limit"
    ),
    "max_cost_usd": Rule(
        "max_cost_usd: 0, for: 'to:a-cost'", [asks("a-cost")], "USD, and 0 is the limit"
    ),
    "max_seconds": Rule(
        "max_seconds: 0, for: 'to:a-late'", [asks("a-late")], "seconds, and 0 is the limit"
    ),
    "max_same_task": Rule(
        "max_same_task: 1, for: 'to:a-same'",
        [asks("a-same"), asks("a-same")],
        "`a-same` was given this task 1 time",
    ),
    "allowed_edges": Rule(
        "allowed_edges: {main: [other]}, for: 'to:a-edge'",
        [asks("a-edge")],
        "`main` may not hand work to `a-edge`",
    ),
    "allowed_tools": Rule(
        "allowed_tools: [Read], for: 'tool:Write'",
        [("Write", {"file_path": "a.txt", "content": "x"})],
        "`main` may not use `Write` like this",
    ),
    "required_context": Rule(
        "required_context: ids, for: 'to:a-ids'",
        [asks("a-ids", "LAB: test R-77.")],
        "the prompt lacks `X-99` of the request",
    ),
    "output": Rule(
        "output: {any: [{pattern: clean}]}, for: 'to:a-out'",
        [asks("a-out")],
        "the answer of `a-out` matches `clean`",
    ),
}
CALLS = [(name, call) for name, rule in RULES.items() for call in rule.calls]
AGENTS = {
    arguments["subagent_type"]: {"description": "Tests samples.", "prompt": "Test it."}
    for _, (name, arguments) in [
        *CALLS,
        *(("", asks(f"a-{name}")) for name in ("deep", "fan", "fork")),
    ]
    if name == "Agent"
}


def policy_of(action: str, names: Sequence[str] = tuple(RULES)) -> str:
    lines = [f"  - {{{RULES[name].check}, name: {name}, action: {action}}}" for name in names]
    return "\n".join(["rules:", *lines])


class Scripted:
    """Makes the calls of the main agent, whose message has DESK in it; else it is a sub-agent.

    One that is asked with NEST asks another; one with FAN works until the main agent's calls are
    answered.
    """

    def __init__(self) -> None:
        self.calls: Calls = []
        self.heard: list[str] = []
        self.asked: list[str] = []
        """What requests of sub-agents said, each without an answer so far."""
        self.wait: Callable[[], None] = lambda: None
        """Waits before the main agent continues with what it has heard."""

    def __call__(self, received: Any) -> Reply:
        messages = received.body["messages"]
        asked = json.dumps(messages[0])
        if len(messages) == 1 and "DESK" not in asked:
            self.asked.append(asked)
        blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
        heard = [json.dumps(b["content"]) for b in blocks if b["type"] == "tool_result"]
        if "DESK" not in asked:
            if "NEST" in asked and not heard:
                return _call(asks("a-deep"))
            if "FAN" in asked and len(self.heard) < len(self.calls) and len(messages) < 100:
                return Reply(tool="Read", answer={"file_path": "missing.txt"}, delay=0.2)
            return Reply(answer=" | ".join(heard) or ANSWER)
        self.heard = self.heard if len(self.heard) > len(heard) else heard
        if heard:
            self.wait()
        if len(heard) < len(self.calls):
            name, given = self.calls[len(heard)]
            if name == "SendMessage":
                given = {**given, "to": re.findall(r"agentId: (\w+)", heard[0])[0]}
            return _call((name, given))
        return Reply(answer="That is all.")


def _call(call: tuple[str, dict[str, Any]]) -> Reply:
    return Reply(tool=call[0], answer=call[1])


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


def run_claude(
    surroundings: dict[str, str], folder: Path, policy: str, *more: str
) -> subprocess.CompletedProcess[str]:
    """Ask Claude Code itself, with the hooks as they are installed."""
    import claude_agent_sdk

    file, settings = folder / "policy.yaml", folder / "settings.json"
    file.write_text(policy)
    add_guard(settings, file, folder / "guard.db").apply()
    claude = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    asked = [str(claude), "-p", "DESK: are R-77 and X-99 clean?", "--settings", str(settings)]
    chosen = ["--permission-mode", "acceptEdits", "--model", "claude-sonnet-4-5"]
    return subprocess.run(
        [*asked, *chosen, "--agents", json.dumps(AGENTS), *more],
        env={**os.environ, **surroundings},
        cwd=folder / "project",
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_every_rule_blocks_in_claude_code_and_the_record_has_it(
    script: Scripted, surroundings: dict[str, str], tmp_path: Path, baton: Any
) -> None:
    script.calls = [call for _, call in CALLS]
    run_claude(surroundings, tmp_path, policy_of("block"))
    heard = dict(zip([name for name, _ in CALLS], script.heard, strict=True))
    for name, rule in RULES.items():
        assert rule.refused in heard[name], (name, heard[name])
    assert not (tmp_path / "project" / "a.txt").exists()
    assert {(n["rule"], n["action"]) for n in recorded(tmp_path)} == {
        (name, "block") for name in RULES
    }
    shown = baton("show", tmp_path / "config" / "projects").out
    assert "guard: blocked main to a-edge by allowed_edges: `main` may not hand work" in shown


def test_claude_code_asks_redacts_warns_and_observes(
    script: Scripted, surroundings: dict[str, str], tmp_path: Path
) -> None:
    policy = [
        "rules:",
        "  - {allowed_tools: [Read], for: 'tool:Write', action: ask}",
        "  - {allowed_edges: {}, for: 'to:a-edge', action: warn}",
        "  - {required_context: ids, for: 'to:a-ids', action: observe}",
        f"  - {REDACT}",
    ]
    script.calls = [
        ("Bash", {"command": "echo hello", "description": "say hello"}),
        ("Write", {"file_path": "a.txt", "content": "x"}),
        asks("a-edge"),
        asks("a-ids", "LAB: test R-77."),
    ]
    run_claude(surroundings, tmp_path, "\n".join(policy), "--allowedTools", "Bash(echo:*)")
    said, unwritten, edge, ids = script.heard
    assert "hello" in said
    assert "`main` may not use `Write`" in unwritten  # nobody is there to be asked
    assert not (tmp_path / "project" / "a.txt").exists()
    for answer in (edge, ids):
        assert "The sample is clean. The key is [key:" in answer
        assert KEY not in answer
    notes = [(n["on"], n["rule"], n["action"]) for n in recorded(tmp_path)]
    assert {
        ("tool", "allowed_tools", "ask"),
        ("dispatch", "allowed_edges", "warn"),
        ("dispatch", "required_context", "observe"),
        ("output", "output", "redact"),
    } == set(notes)


FORKS = """---
name: look
description: looks
context: fork
agent: a-fork
---
FORK: look at it.
"""


@pytest.mark.parametrize("way", ["command", "sdk"])
def test_sub_agents_that_skills_and_messages_set_to_work_are_dispatches(
    script: Scripted, surroundings: dict[str, str], tmp_path: Path, way: str
) -> None:
    skill = tmp_path / "project" / ".claude" / "skills" / "look" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(FORKS)
    again = {"to": "", "summary": "go on with the test", "message": "LAB: go on."}
    forks: tuple[str, dict[str, Any]] = ("Skill", {"skill": "look", "args": ""})
    script.calls = [asks("a-edge"), ("SendMessage", again), forks, forks, asks("a-more")]
    check = "rules:\n  - max_dispatches: 3\n  - " + REDACT
    if way == "command":
        run_claude(surroundings, tmp_path, check, "--allowedTools", "Skill", "SendMessage")
    else:
        policy = read_policy(Document("policy.yaml", check.encode(), "yaml"))
        more: dict[str, Any] = {
            "allowed_tools": ["Skill", "SendMessage"],
            "setting_sources": ["project"],
        }
        play(surroundings, tmp_path, Guard(policy), **more)
    _, resumed, first, second, refused = script.heard
    assert "Resuming agent" in resumed
    for answer in (first, second):  # of the sub-agents that the skill started
        # The report of the resumed sub-agent, which no hook can change, may arrive beside it.
        own = re.sub(r"<system-reminder>.*?</system-reminder>", "", answer)
        assert "The key is [key:" in own
        assert KEY not in own
    assert "this request has made 4 dispatches" in refused
    told = [each for each in script.asked if "FORK: look at it" in each]
    assert ["A policy of your user says" in each for each in told] == [False, True]
    rules_broken = [(n["rule"], n["action"], n["to"]) for n in recorded(tmp_path)]
    assert ("output", "block", "a-edge") in rules_broken  # the resumed one was asked again
    assert ("max_dispatches", "warn", "a-fork") in rules_broken
    assert ("max_dispatches", "block", "a-more") in rules_broken


@pytest.mark.parametrize("way", ["command", "sdk"])
def test_tools_of_an_mcp_server_keep_to_the_rules_in_claude_code(
    script: Scripted, surroundings: dict[str, str], tmp_path: Path, way: str
) -> None:
    server = Path(__file__).parent / "guarded" / "mcp_server.py"
    charged = tmp_path / "charged"
    servers = {
        name: {"command": sys.executable, "args": [str(server), str(charged)]}
        for name in ("shop", "bank")
    }
    script.calls = [(f"mcp__{name}__charge", {"order": name}) for name in servers]
    check = "rules:\n  - allowed_tools: ['mcp__shop__*']"
    allowed = [name for name, _ in script.calls]
    if way == "command":
        given = ["--mcp-config", json.dumps({"mcpServers": servers})]
        run_claude(surroundings, tmp_path, check, *given, "--allowedTools", *allowed)
    else:
        policy = read_policy(Document("policy.yaml", check.encode(), "yaml"))
        more: dict[str, Any] = {"mcp_servers": servers, "allowed_tools": allowed}
        play(surroundings, tmp_path, Guard(policy), **more)
    shop, bank = script.heard
    assert "charged shop" in shop
    assert "`main` may not use `mcp__bank__charge`" in bank
    assert charged.read_text() == "shop"
    (note,) = recorded(tmp_path)
    assert (note["tool"], note["rule"]) == ("mcp__bank__charge", "allowed_tools")


def recorded(folder: Path) -> list[dict[str, Any]]:
    """Return the decisions in the record of the only session."""
    (trace,) = load_traces([folder / "config" / "projects"])
    return decisions_of(trace)


def play(
    surroundings: dict[str, str],
    folder: Path,
    guard: Guard,
    model: str = "claude-sonnet-4-5",
    **more: Any,
) -> str:
    """Ask the main agent in a program of the SDK; its last answer."""
    from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, ResultMessage, query

    options = ClaudeAgentOptions(
        hooks=guard_hooks(guard),
        env=surroundings,
        cwd=folder / "project",
        permission_mode="acceptEdits",
        model=model,
        **{"setting_sources": [], **more},
        agents={name: AgentDefinition(**told) for name, told in AGENTS.items()},
    )

    async def asked() -> str:
        found = [m async for m in query(prompt="DESK: are R-77 and X-99 clean?", options=options)]
        return str([m.result for m in found if isinstance(m, ResultMessage)][-1])

    return asyncio.run(asked())


ACTIONS = [("block", None), ("ask", True), ("ask", False), ("warn", None), ("observe", None)]


@pytest.mark.parametrize(("action", "agrees"), ACTIONS)
def test_every_rule_with_every_action_in_a_program_of_the_agent_sdk(
    script: Scripted,
    surroundings: dict[str, str],
    tmp_path: Path,
    action: str,
    agrees: bool | None,
) -> None:
    script.calls = [call for _, call in CALLS]
    guard = Guard(
        read_policy(Document("policy.yaml", policy_of(action).encode(), "yaml")),
        ask=None if agrees is None else lambda _: agrees,
    )
    assert play(surroundings, tmp_path, guard) == "That is all."
    heard = dict(zip([name for name, _ in CALLS], script.heard, strict=True))
    refuses = action == "block" or agrees is False
    for name, rule in RULES.items():
        assert (rule.refused in heard[name]) is refuses, (name, heard[name])
    assert (tmp_path / "project" / "a.txt").exists() is not refuses
    notes = [each for each in recorded(tmp_path) if each["rule"] in RULES]
    assert {each["rule"] for each in notes} == set(RULES)
    assert {(each["action"], each["allowed"]) for each in notes} == {(action, not refuses)}


@pytest.mark.parametrize(("action", "agrees"), ACTIONS)
def test_agents_in_the_background_are_at_work_at_once(
    script: Scripted,
    surroundings: dict[str, str],
    tmp_path: Path,
    action: str,
    agrees: bool | None,
) -> None:
    name, arguments = asks("a-fan", "FAN: test it.")
    script.calls = [(name, {**arguments, "run_in_background": True})] * 2
    guard = Guard(
        rules(f"{{max_fan_out: 1, action: {action}}}"),
        ask=None if agrees is None else lambda _: agrees,
    )
    play(surroundings, tmp_path, guard)
    refuses = action == "block" or agrees is False
    assert ("`main` waits for 1 answer" in script.heard[1]) is refuses
    (note,) = recorded(tmp_path)
    assert (note["rule"], note["action"]) == ("max_fan_out", action)
    assert note["allowed"] is not refuses


def test_agents_in_the_background_are_at_work_at_once_for_the_hook_of_claude_code_too(
    script: Scripted, surroundings: dict[str, str], tmp_path: Path
) -> None:
    name, arguments = asks("a-fan", "FAN: test it.")
    script.calls = [(name, {**arguments, "run_in_background": True})] * 2
    run_claude(surroundings, tmp_path, "rules: [{max_fan_out: 1}]")
    assert "`main` waits for 1 answer" in script.heard[1]
    (note,) = recorded(tmp_path)
    assert (note["rule"], note["action"]) == ("max_fan_out", "block")


@pytest.mark.parametrize("agrees", [True, False])
def test_where_the_guard_asks_nobody_claude_code_asks_by_its_permissions(
    script: Scripted, surroundings: dict[str, str], tmp_path: Path, agrees: bool
) -> None:
    from claude_agent_sdk import (
        AgentDefinition,
        ClaudeAgentOptions,
        ClaudeSDKClient,
        PermissionResultAllow,
        PermissionResultDeny,
        ResultMessage,
    )

    asked: list[str] = []

    async def person(tool: str, _: dict[str, Any], context: Any) -> Any:
        asked.append(f"{tool}: {context.decision_reason}")
        return PermissionResultAllow() if agrees else PermissionResultDeny(message="Not now.")

    guard = Guard(rules("{max_dispatches: 0, action: ask}"))
    script.calls = [asks("a-more")]
    options = ClaudeAgentOptions(
        hooks=guard_hooks(guard),
        can_use_tool=person,
        env=surroundings,
        cwd=tmp_path / "project",
        setting_sources=[],
        model="claude-sonnet-4-5",
        agents={name: AgentDefinition(**told) for name, told in AGENTS.items()},
    )

    async def play() -> None:
        async with ClaudeSDKClient(options) as client:
            await client.query("DESK: are R-77 and X-99 clean?")
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    return

    asyncio.run(play())
    (question,) = asked
    assert question.startswith("Agent: ")
    assert "at most 0 are allowed" in question
    (heard,) = script.heard
    assert (ANSWER[:20] in heard) is agrees
    assert ("Not now." in heard) is not agrees


def wait_for_usage(config: Path) -> None:
    """Wait until Claude Code has written what a request used, which it does some time later."""
    end = time.monotonic() + 60
    while not any('"usage"' in file.read_text() for file in config.rglob("projects/*/*.jsonl")):
        assert time.monotonic() < end, "no usage was written"
        time.sleep(0.01)


@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_what_nobody_tells_is_decided_as_the_policy_says(
    script: Scripted, surroundings: dict[str, str], tmp_path: Path, on_error: str
) -> None:
    """The model has no price, so that it is unknown what was spent."""
    script.calls = [("Write", {"file_path": f"{name}.txt", "content": "x"}) for name in "ab"]
    policy = rules("{max_cost_usd: 100}")
    policy.on_error = on_error  # type: ignore[assignment]
    script.wait = lambda: wait_for_usage(tmp_path / "config")
    play(surroundings, tmp_path, Guard(policy), model="unpriced")
    told = "can't tell: nothing reports the cost here"
    for heard, name in zip(script.heard, "ab", strict=True):
        assert (told in heard) is (on_error == "closed")
        assert (tmp_path / "project" / f"{name}.txt").exists() is (on_error == "open")
    assert all(told in each["failed"] for each in recorded(tmp_path))
