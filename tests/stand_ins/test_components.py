"""Components: texts of a program that may be changed, and what a change has to keep."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from baton import components, prompts
from baton.changed_texts import changes_of, faults_of_change
from baton.components import read_examples, to_header
from baton.datasets import load_dataset
from baton.model import Case, Content, ExpectedTurn, InputError, Trace
from baton.providers.base_provider import Surroundings
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


def test_a_program_that_imports_baton_alone_has_its_texts(baton: Any, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import baton\n"
        "def desk(message):\n"
        "    from baton import prompts\n"
        "    return baton.prompts.get('agent:desk', 'Be kind.') + prompts.get('tool:pay', 'Pays.')\n"
    )
    listed = baton("components", "app.py:desk")
    assert [line.split("  ")[0] for line in listed.out.splitlines()] == ["agent:desk", "tool:pay"]


def test_a_text_that_the_program_does_not_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no component `agent:dsek`; did you mean `agent:desk`"):
        play(tmp_path, {"agent:dsek": "You are brief."})


def test_outside_of_a_replay_a_text_is_the_program_s_own() -> None:
    components.use({})
    assert prompts.get("tool:pay", "Pays money.") == "Pays money."
    with pytest.raises(InputError, match="is not a component"):
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


SHOWN = """
cases:
- {id: refund, input: refund order 7, agents: [desk, refunds]}
- {id: parcel, input: where is parcel 9, agents: [desk, shipping], response: 'It left {today}.'}
- id: later
  turns:
  - {input: hello, response: Hello.}
  - {input: refund it, dispatches: [{to: refunds}], tools: [{name: find, arguments: {n: 7}}]}
- {id: chat, input: thanks, agents: [desk], response: You are welcome.}
- {id: bare, input: hello}
- id: moment
  dispatch:
    form: decision
    context: [{user: hi}, {agent: desk, said: What is it?}, {user: refund order 3}]
    call: {from: desk, to: shipping}
    expect: {to: [refunds]}
"""


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    (tmp_path / "cases.yaml").write_text(SHOWN)
    return tmp_path


def examples_of(text: str) -> list[str]:
    return [str(each) for each in read_examples(text)]


def test_examples_are_cases_that_are_chosen_in_an_order(shown: Path) -> None:
    chosen = prompts.chosen("cases.yaml:later,refund,moment,chat,parcel", shown)
    assert examples_of(chosen) == [
        'user: hello\nagent: Hello.\nuser: refund it\ncall: find {"n":7}\nhand to: refunds',
        "user: refund order 7\nhand to: refunds",
        "user: hi\ndesk: What is it?\nuser: refund order 3\nhand to: refunds",
        "user: thanks\nhand to: nobody\nanswer: You are welcome.",
        "user: where is parcel 9\nhand to: shipping\nanswer: It left {today}.",
    ]
    same = load_dataset(shown / "cases.yaml:later,refund,moment,chat,parcel")
    assert {each.id for each in read_examples(prompts.chosen(same))} == {
        each.id for each in read_examples(chosen)
    }


@pytest.mark.parametrize(
    ("choice", "ids"),
    [
        ("from: cases.yaml\nids: [parcel, refund]", ["parcel", "refund"]),
        ("from: cases.yaml\nids: [parcel, refund]\nnumber: 1", ["parcel"]),
        ("from: cases.yaml\nids: []", []),
    ],
)
def test_a_file_chooses_cases_of_a_dataset(shown: Path, choice: str, ids: list[str]) -> None:
    (shown / "choice.yaml").write_text(choice)
    assert [each.id for each in read_examples(prompts.chosen("choice.yaml", shown))] == ids


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("from: cases.yaml\nids: [refunt]", "no case `refunt`; did you mean `refund`"),
        ("from: cases.yaml\nids: [bare]", "the case `bare` cannot be an example"),
        ("from: cases.yaml\nnumber: -1", "number"),
        ("from: cases.yaml\nid: [refund]", "choice.yaml:2: id: unknown key; did you mean `ids`"),
        ("from: gone.yaml", "choice.yaml:1.*no such file"),
        ("from: cases.yaml\nids: [refund, refund]", "chosen twice"),
    ],
)
def test_a_mistake_in_a_choice_of_cases_is_named(shown: Path, choice: str, says: str) -> None:
    (shown / "choice.yaml").write_text(choice)
    with pytest.raises(InputError, match=says):
        prompts.chosen("choice.yaml", shown)


def test_a_choice_of_cases_is_no_text_and_a_text_no_choice(shown: Path) -> None:
    with pytest.raises(InputError, match=r"get it with `baton\.prompts\.examples`"):
        prompts.get("examples:desk", "refund order 7")
    with pytest.raises(InputError, match=r"get it with `baton\.prompts\.get`"):
        prompts.examples("agent:desk", "cases.yaml")
    texts = {"examples:desk": prompts.chosen("cases.yaml:refund", shown)}
    with pytest.raises(InputError, match="this is not a selection of examples"):
        changes_of(texts, {"examples:desk": "refund order 7"})


def test_what_an_example_says_is_not_taken_for_a_placeholder_or_a_tool(shown: Path) -> None:
    texts = {"examples:desk": prompts.chosen("cases.yaml:parcel", shown)}
    other = prompts.chosen("cases.yaml:chat,refund", shown)
    [change] = changes_of(texts, {"examples:desk": other}, tools=["parcel"])
    assert change.cases == ["chat", "refund"]
    assert str(change).endswith(" (chat, refund)")


def test_a_server_takes_chosen_examples_from_a_header(shown: Path) -> None:
    texts = {"examples:desk": prompts.chosen("cases.yaml:refund", shown)}
    asked = f"{shown}/cases.yaml:chat"
    with prompts.handed_over(to_header(texts)):
        assert [each.id for each in prompts.examples("examples:desk", asked)] == ["refund"]
    assert [each.id for each in prompts.examples("examples:desk", asked)] == ["chat"]
