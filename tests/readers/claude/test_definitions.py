"""Definitions of Claude's sub-agents as a catalogue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baton import load_traces, score
from baton.model import AgentCard, InputError
from baton.readers import load_catalog
from baton.readers.claude.started_agents import listed_agent

HELPER = """---
name: helper
description: "Helps: with anything"
tools: Read, Grep, Bash(git log:*, git diff:*)
disallowedTools: [Write]
model: haiku
---

Help as you can.
"""


def test_a_folder_of_definitions_is_a_catalogue(tmp_path: Path) -> None:
    agents = tmp_path / ".claude" / "agents" / "team"
    agents.mkdir(parents=True)
    (agents / "helper.md").write_text(HELPER)
    (agents / "free.md").write_text("---\nname: free\ndescription: d\n---\nDo all.\n")
    (agents / "README.md").write_text("# Notes\n")
    helper = AgentCard(
        description="Helps: with anything",
        tools=["Read", "Grep", "Bash(git log:*, git diff:*)"],
        denied_tools=["Write"],
        instructions="Help as you can.",
        model="haiku",
    )
    free = AgentCard(description="d", tools="all", instructions="Do all.")
    for path in (tmp_path, tmp_path / ".claude", tmp_path / ".claude" / "agents", agents):
        assert load_catalog(path) == {"helper": helper, "free": free}
    assert load_catalog(agents / "helper.md") == {"helper": helper}


def test_front_matter_that_is_not_yaml_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("---\r\nname: a\r\ndescription: Use it when: always. <x>: y\r\n---\r\nHi.\r\n")
    assert load_catalog(file) == {
        "a": AgentCard(description="Use it when: always. <x>: y", tools="all", instructions="Hi.")
    }


@pytest.mark.parametrize(
    "text", ["no front matter", "---\ndescription: d\n---\nx", "---\nname: a\n"]
)
def test_a_file_that_names_no_agent_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.md"
    file.write_text(text)
    with pytest.raises(InputError, match="no agent definition"):
        load_catalog(file)
    with pytest.raises(InputError, match="no agent definitions"):
        load_catalog(tmp_path)


AGENTS = {
    "one": {"description": "d", "prompt": "p", "tools": ["Read"], "model": "opus"},
    "two": {"description": "e", "prompt": "q", "disallowedTools": ["Bash"]},
}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_the_agents_of_the_sdk_are_a_catalogue(tmp_path: Path, wrapped: bool, suffix: str) -> None:
    file = tmp_path / f"agents{suffix}"
    file.write_text(json.dumps({"agents": AGENTS} if wrapped else AGENTS))
    assert load_catalog(file) == {
        "one": AgentCard(description="d", instructions="p", tools=["Read"], model="opus"),
        "two": AgentCard(description="e", instructions="q", tools="all", denied_tools=["Bash"]),
    }


def test_batons_own_catalogue_reads_as_before(tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text("agents:\n  one:\n    tools: [Read]\n    instructions: p\n")
    assert load_catalog(file) == {"one": AgentCard(tools=["Read"], instructions="p")}


@pytest.mark.parametrize(
    ("line", "tools", "denied"),
    [
        ("- a: Does x. (Tools: Read, Grep)", ["Read", "Grep"], None),
        ("- a: Does x. (Tools: *)", "all", None),
        ("- a: Does x. (Tools: All tools)", "all", None),
        ("- a: Does x. (Tools: All tools except Edit, Write)", "all", ["Edit", "Write"]),
        ("- a: Does x. (Tools: None)", [], None),
        (
            "- a: Does x. (Tools: Bash(git:*), mcp__desk__ask)",
            ["Bash(git:*)", "mcp__desk__ask"],
            None,
        ),
        ("- a: Does x. (see b)", None, None),
    ],
)
def test_a_line_of_a_listing_tells_the_tools(line: str, tools: object, denied: object) -> None:
    found = listed_agent(line)
    assert found is not None
    name, card = found
    assert (name, card.tools, card.denied_tools) == ("a", tools, denied)
    assert (card.description or "").startswith("Does x.")


def test_a_line_that_is_not_an_entry_is_not_read_as_one() -> None:
    assert listed_agent("[redacted 746 chars]") is None


def test_the_system_prompt_of_a_recorded_request_is_what_main_is_told(tmp_path: Path) -> None:
    lines = [
        {
            "type": "user", "uuid": "u1", "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z",
            "message": {"role": "user", "content": "Hi."},
        },
        {
            "type": "api-request-shape", "sessionId": "s",
            "shape": {"system": [{"type": "text", "text": "You lead."}, {"text": "Ask the lab."}]},
        },
        {"type": "api-request-shape", "sessionId": "s", "agentId": "a1", "shape": {"system": "No."}},
        {
            "type": "assistant", "uuid": "u2", "parentUuid": "u1", "sessionId": "s",
            "timestamp": "2026-01-01T00:00:01Z",
            "message": {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": "Hi."}]},
        },
    ]  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (trace,) = load_traces(path)
    assert trace.agents["main"].instructions == "You lead.\n\nAsk the lab."
    header = score(path, evaluators=[{"type": "handoff_loops", "optional": True}]).header
    assert header.provenance is not None
    assert list(header.provenance.prompts) == ["main"]
