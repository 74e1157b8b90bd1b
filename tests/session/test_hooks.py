"""Hooks of Claude Code: what changes in its settings, and what stays."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from tests.conftest import Baton

from baton.model import InputError
from baton.session.hooks import EVENTS, add_hook, read_event, remove_hook

OTHERS = {
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}],
    },
}


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Settings with hooks of others."""
    file = tmp_path / ".claude" / "settings.local.json"
    file.parent.mkdir()
    file.write_text(json.dumps(OTHERS, indent=2))
    return file


def commands(file: Path, event: str) -> list[str]:
    """Return the commands that Claude Code runs at an event."""
    groups = json.loads(file.read_text())["hooks"].get(event, [])
    return [hook["command"] for group in groups for hook in group["hooks"]]


def test_a_hook_is_added_beside_those_of_others(settings: Path) -> None:
    add_hook(settings, "http://127.0.0.1:4318", "support").apply()
    for event in EVENTS:
        ours = shlex.split(commands(settings, event)[-1])
        assert ours[:3] == [sys.executable, "-m", "baton"]
        assert ours[-4:] == ["--server", "http://127.0.0.1:4318", "--project", "support"]
    assert commands(settings, "Stop")[0] == "say done"
    assert commands(settings, "PreToolUse") == ["check"]
    assert json.loads(settings.read_text())["model"] == "opus"


def test_adding_it_twice_is_adding_it_once(settings: Path) -> None:
    add_hook(settings, "http://127.0.0.1:1").apply()
    add_hook(settings, "http://127.0.0.1:2").apply()
    assert len(commands(settings, "Stop")) == 2
    assert not add_hook(settings, "http://127.0.0.1:2").changes


def test_taking_it_out_leaves_what_was_there(settings: Path) -> None:
    add_hook(settings).apply()
    remove_hook(settings).apply()
    assert json.loads(settings.read_text()) == OTHERS
    assert not remove_hook(settings).changes


@pytest.mark.parametrize("odd", [{"matcher": "x"}, {"hooks": None}, {"hooks": "x"}, {"hooks": []}])
def test_groups_of_others_stay_whatever_they_are(settings: Path, odd: dict[str, object]) -> None:
    others = {"hooks": {"Stop": [odd], "SessionStart": []}}
    settings.write_text(json.dumps(others))
    add_hook(settings).apply()
    assert json.loads(settings.read_text())["hooks"]["Stop"][0] == odd
    remove_hook(settings).apply()
    assert json.loads(settings.read_text()) == others


def test_settings_that_are_no_text_are_refused(settings: Path) -> None:
    settings.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match="is not text"):
        add_hook(settings)


def test_a_copy_is_kept_and_a_link_stays_one(settings: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    settings.rename(real)
    real.chmod(0o600)
    settings.symlink_to(real)
    copy = add_hook(settings).apply()
    assert copy is not None
    assert json.loads(copy.read_text()) == OTHERS
    assert settings.is_symlink()
    assert len(commands(real, "Stop")) == 2
    assert real.stat().st_mode & 0o777 == 0o600


def test_settings_that_change_meanwhile_are_not_overwritten(settings: Path) -> None:
    change = add_hook(settings)
    settings.write_text("{}")
    with pytest.raises(InputError, match="another program changed"):
        change.apply()
    assert settings.read_text() == "{}"


@pytest.mark.parametrize("text", ["[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "{"])
def test_settings_that_are_something_else_are_refused(settings: Path, text: str) -> None:
    settings.write_text(text)
    with pytest.raises(InputError, match=r"settings\.local\.json"):
        add_hook(settings)
    assert settings.read_text() == text


def test_the_command_shows_the_change_and_asks(baton: Baton, tmp_path: Path) -> None:
    asked = baton("hook", "claude", "push")
    assert asked.code == 2
    assert "give --yes" in asked.err
    assert "+    " in asked.out
    assert not (tmp_path / ".claude").exists()
    done = baton("hook", "claude", "push", "--yes")
    assert done.code == 0
    file = tmp_path / ".claude" / "settings.local.json"
    assert len(commands(file, "Stop")) == 1
    assert baton("hook", "claude", "push", "--uninstall", "--yes").code == 0
    assert json.loads(file.read_text()) == {}


def test_an_event_names_its_transcript() -> None:
    event = read_event(b'{"session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/"}')
    assert event.transcript_path == "/t.jsonl"
    with pytest.raises(InputError, match="not an event of Claude Code"):
        read_event(b"hello")
