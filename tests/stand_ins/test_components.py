"""Components: texts of a program that may be changed, and what a change has to keep."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from baton import components, prompts
from baton.components import faults_of_change
from baton.model import Case, Content, ExpectedTurn, InputError, Trace
from baton.providers.base import Surroundings
from baton.providers.python import Python, PythonOptions

PROGRAM = """
from baton import prompts

TEXT = prompts.get("agent:desk", "You are kind.")


def reply(message):
    return TEXT
"""


def play(folder: Path, texts: dict[str, str]) -> str:
    (folder / "kind.py").write_text(PROGRAM)
    options = PythonOptions(type="python", target=f"{folder}/kind.py:reply", workers="process")

    async def played() -> Trace:
        async with Python(options, Surroundings(folder, texts=texts)) as provider:
            return await provider(Case(id="c", turns=[ExpectedTurn(input=Content(text="hi"))]))

    output = asyncio.run(played()).turns[0].output
    return output.plain() if output is not None else ""


def test_a_program_plays_with_a_changed_text(tmp_path: Path) -> None:
    assert play(tmp_path, {}) == "You are kind."
    assert play(tmp_path, {"agent:desk": "You are brief."}) == "You are brief."


def test_a_text_that_the_program_does_not_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no component `agent:dsek`; did you mean `agent:desk`"):
        play(tmp_path, {"agent:dsek": "You are brief."})


def test_outside_of_a_replay_a_text_is_the_program_s_own() -> None:
    components.use({})
    assert prompts.get("tool:pay", "Pays money.") == "Pays money."
    with pytest.raises(InputError, match="names no component"):
        prompts.get("pay", "Pays money.")


@pytest.mark.parametrize(
    ("old", "new", "tools", "fault"),
    [
        ("Greet {user}.", "Greet them.", [], "lacks the placeholder `{user}`"),
        ("Greet them.", "Greet {user}.", [], "nothing fills the placeholder `{user}`"),
        ("Pay $amount.", "Pay it.", [], "lacks the placeholder `$amount`"),
        ("Call pay_back once.", "Pay once.", ["pay_back"], "no longer names the tool `pay_back`"),
        ('```json\n{"total": 1}\n```', "Answer.", [], "lacks the JSON"),
        ("Be kind.", " ", [], "is empty"),
    ],
)
def test_a_change_that_breaks_a_text_is_refused(
    old: str, new: str, tools: list[str], fault: str
) -> None:
    assert any(fault in each for each in faults_of_change(old, new, tools))


@pytest.mark.parametrize(
    ("old", "new", "tools"),
    [
        ("Greet {user}.", "Say hello to {user}, kindly.", []),
        ('Answer as {"total": 3}.', 'Answer with JSON such as {"total": 7}.', []),
        ("Call pay_back once.", "Use pay_back at most once.", ["pay_back", "look_up"]),
    ],
)
def test_a_change_that_keeps_what_it_has_to_is_fine(old: str, new: str, tools: list[str]) -> None:
    assert faults_of_change(old, new, tools) == []
