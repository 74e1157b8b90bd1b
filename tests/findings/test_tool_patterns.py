"""Which calls a tool name or pattern means."""

from __future__ import annotations

from typing import Any

import pytest

from baton.findings.tool_permissions import meant_by
from baton.model import ToolCall
from baton.testing.build import call


def means(pattern: str, name: str, *, every_part: bool = True, **arguments: Any) -> bool | None:
    return meant_by(call(name, arguments or None), [pattern], every_part=every_part)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("Read", "Read", True),
        ("Read", "read", True),
        ("Delegate work to coworker", "delegate_work_to_coworker", True),
        ("Read", "ReadFile", False),
        ("Task", "Agent", True),
        ("*", "anything", True),
        ("mcp__github", "mcp__github__list_issues", True),
        ("mcp__github__*", "mcp__github__list_issues", True),
        ("mcp__github__list_*", "mcp__github__create_issue", False),
        ("mcp__git", "mcp__github__list_issues", False),
        ("mcp__git*", "mcp__github__list_issues", True),
        ("mcp__*", "mcp__github__list_issues", True),
        ("mcp__*", "Bash", False),
        ("mcp__*__read_*", "mcp__docs__read_page", True),
        ("mcp__*__read_*", "mcp__docs__drop_page", False),
        ("mcp__github__", "mcp__github__list_issues", True),
        ("get_[a]", "get_a", False),
    ],
)
def test_names_and_wildcards(pattern: str, name: str, expected: bool) -> None:
    assert means(pattern, name) is expected


@pytest.mark.parametrize(
    ("pattern", "command", "expected"),
    [
        ("Bash(git:*)", "git log -3", True),
        ("Bash(git:*)", "git", True),
        ("Bash(git:*)", "gitk", False),
        ("Bash(git log *)", "git log -3", True),
        ("Bash(git log *)", "git push", False),
        ("Bash(npm test)", "npm test", True),
        ("Bash(npm test)", "npm test --all", False),
        ("Bash(git:*)", "git add . && rm -rf /", False),
        ("Bash(git:*)", "git add . && git commit -m x", True),
        ("Bash", "rm -rf /", True),
        ("Bash(*)", "rm -rf /", True),
    ],
)
def test_a_permission_means_a_command_when_it_means_every_part(
    pattern: str, command: str, expected: bool
) -> None:
    assert means(pattern, "Bash", command=command) is expected


def test_a_ban_means_a_command_when_it_means_any_part() -> None:
    assert means("Bash(rm:*)", "Bash", every_part=False, command="cd x; rm y") is True
    assert means("Bash(rm:*)", "Bash", every_part=False, command="ls | wc") is False


def test_hosts_and_targets() -> None:
    fetch = "WebFetch(domain:example.com)"
    assert means(fetch, "WebFetch", url="https://docs.example.com/a") is True
    assert means(fetch, "WebFetch", url="https://badexample.com/a") is False
    assert means("Agent(helper)", "Agent", subagent_type="helper") is True
    assert means("Agent(helper)", "Agent", subagent_type="other") is False


def test_what_is_said_of_paths_or_of_arguments_nobody_knows_is_not_decided() -> None:
    assert means("Read(./src/**)", "Read", file_path="/x/src/a.py") is None
    assert means("Bash(git:*)", "Bash") is None
    assert meant_by(ToolCall(id="c", name="Bash"), ["Bash(git:*)", "Bash"], every_part=True)


COMMIT = "git commit -m \"$(cat <<'EOF'\nMend it; done\n\nIt's whole.\nEOF\n)\""


@pytest.mark.parametrize(
    ("command", "git", "rm"),
    [
        ("git log 2>&1", True, False),
        ("git log &> out.txt", True, False),
        ('git commit -m "Mend a; b & c | d"', True, False),
        ("git log --format='$(rm x); rm y'", True, False),
        (COMMIT, True, False),
        ("git log \\\n  -3", True, False),
        ("git status # and; rm x", True, False),
        ("(git status)", True, False),
        ("git log $((1 + 2))", True, False),
        ("git log $(rm -rf x)", False, True),
        ('git log "`rm x`"', False, True),
        ('git log "$(git log "$(rm x)")"', False, True),
        ("git log <(rm x)", False, True),
        ("git log & rm x", False, True),
        ("git log <<EOF\nrm x\nEOF\nrm y", False, True),
        ("GIT_PAGER=cat git log", None, False),
        ('git log "unfinished; rm x', None, None),
        ("git log " + 99 * "$(", None, None),
    ],
)
def test_a_line_is_read_as_a_shell_reads_it(
    command: str, git: bool | None, rm: bool | None
) -> None:
    assert means("Bash(git:*)", "Bash", command=command) is git
    assert means("Bash(rm:*)", "Bash", every_part=False, command=command) is rm


def test_each_part_of_a_line_may_be_meant_by_another_pattern() -> None:
    call = ToolCall(id="c", name="Bash", arguments={"command": "cd x && git log"})
    assert meant_by(call, ["Bash(cd:*)", "Bash(git:*)"], every_part=True)
    assert meant_by(call, ["Bash(cd x && git log)"], every_part=True)
    assert meant_by(call, ["Bash(cd:*)", "Bash(ls:*)"], every_part=True) is False


def test_a_tool_recorded_without_its_server_may_be_the_one_that_is_intended() -> None:
    assert means("mcp__docs__search", "search") is None
    assert means("mcp__docs__search", "mcp__web__search") is False
    for of_server in ("mcp__docs", "mcp__docs__*", "mcp__docs__se*", "mcp__*"):
        assert means(of_server, "search") is None, of_server
        assert means(of_server, "Read") is False, of_server
        assert means(of_server, "mcp_tool") is None, of_server
    assert means("mcp__docs__se*", "remove") is False
    assert means("mcp__docs__Search", "Search") is None
