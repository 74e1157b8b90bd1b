"""Options of the provider for the Claude Agent SDK, and what follows from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton.formats.explain_mistakes import checked
from baton.model import AgentCard, InputError
from baton.providers.claude_sdk import (
    ClaudeSdk,
    ClaudeSdkOptions,
    agents_of,
    definition,
    known_agents,
    with_prompt,
    working_folder,
)
from baton.providers.registry import provider_entry
from baton.testing import build


def _options(**given: Any) -> ClaudeSdkOptions:
    return checked({"type": "claude_sdk", **given}, ClaudeSdkOptions)


HELPER = {
    "description": "Helps.",
    "prompt": "Help.",
    "tools": ["Read"],
    "disallowed_tools": ["Write"],
}


def test_the_provider_goes_by_its_name() -> None:
    assert provider_entry("claude_sdk").target is ClaudeSdk


def test_without_settings_of_a_machine_unless_they_are_asked_for() -> None:
    options = _options()
    assert options.setting_sources == []
    assert (options.timeout, options.cwd, options.transcripts) == (600, ".", True)


def test_agents_are_given_by_name() -> None:
    options = _options(agents={"helper": HELPER})
    assert agents_of(options, Path()) == {
        "helper": AgentCard(
            description="Helps.", instructions="Help.", tools=["Read"], denied_tools=["Write"]
        )
    }


def test_agents_may_lie_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "app" / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("---\nname: a\ndescription: d\n---\nDo.\n")
    card = AgentCard(description="d", instructions="Do.", tools="all")
    assert agents_of(_options(agents="app"), tmp_path) == {"a": card}
    assert known_agents(_options(cwd="app"), tmp_path) == {}
    assert known_agents(_options(cwd="app", setting_sources=["project"]), tmp_path) == {"a": card}


def test_a_folder_without_agents_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no agent definitions") as error:
        agents_of(_options(agents="."), tmp_path)
    assert error.value.problems[0].path == "agents"


def test_a_working_folder_has_to_be_there(tmp_path: Path) -> None:
    assert working_folder(_options(), tmp_path) == tmp_path.resolve()
    with pytest.raises(InputError, match="no such folder"):
        working_folder(_options(cwd="gone"), tmp_path)


def test_only_what_is_stated_reaches_a_definition() -> None:
    card = AgentCard(description="d", instructions="i", tools="all")
    assert definition(card) == {"description": "d", "prompt": "i"}
    card = AgentCard(tools=[], denied_tools=["Bash"], model="haiku")
    assert definition(card) == {
        "description": "", "prompt": "", "tools": [], "disallowedTools": ["Bash"], "model": "haiku",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"timeout": 0}, "timeout"),
        ({"max_turns": 0}, "max_turns"),
        ({"permission_mode": "maybe"}, "permission_mode"),
        ({"setting_sources": ["everywhere"]}, "setting_sources[0]"),
        ({"agents": {"a": {"description": "d"}}}, "agents.a"),
        ({"alowed_tools": []}, "alowed_tools"),
    ],
)
def test_a_wrong_option_is_an_error_with_its_place(given: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as error:
        _options(**given)
    assert error.value.problems[0].path == path


def test_the_system_prompt_of_the_options_is_what_main_is_told() -> None:
    trace = build.trace(build.turn("Hi.", build.run("main", output="Hi.")))
    assert with_prompt(trace, _options()).agents == {}
    told = with_prompt(trace, _options(system_prompt="Ask the lab."))
    assert told.agents["main"].instructions == "Ask the lab."
    card = AgentCard(instructions="As recorded.", tools=["Task"])
    recorded = build.trace(build.turn("Hi."), agents={"main": card})
    assert with_prompt(recorded, _options(system_prompt="x")).agents == {"main": card}
