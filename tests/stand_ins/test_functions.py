"""Stand-ins in programs of plain functions, and dispatch cases that are played with them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from baton.model import (
    Case,
    Content,
    DispatchCase,
    ExpectedTurn,
    MadeDispatch,
    Message,
    ProviderError,
    StandIns,
    ToolCall,
    Trace,
)
from baton.model.stand_ins import Fault, Fixture, RecordedAnswer, StandIn
from baton.providers.base_provider import Surroundings, refuse_unplayable
from baton.providers.python import Python, PythonOptions
from baton.stand_ins import Play, Request

SHOP = """
    import baton

    PAID = []


    @baton.tool
    def look_up(order):
        return {"order": order, "total": 40}


    @baton.tool
    async def pay_back(order, amount):
        PAID.append(order)
        return f"paid {amount}"


    @baton.agent("refunds")
    async def refunds(task):
        return await pay_back(task.split()[-1], 40)


    @baton.agent("desk")
    async def desk(message):
        found = look_up(message.split()[-1])
        if found["total"] > 10:
            return "Refund: " + await refunds(f"Refund order {found['order']}")
        return "Too little to refund."
"""


def play(folder: Path, case: Case, target: str = "desk") -> Trace:
    (folder / "shop.py").write_text(dedent(SHOP))
    options = PythonOptions(type="python", target=f"{folder}/shop.py:{target}")
    return asyncio.run(_play(Python(options, Surroundings(folder)), case))


async def _play(provider: Python, case: Case) -> Trace:
    async with provider:
        return await provider(case)


def asked(text: str, **more: Any) -> Case:
    return Case(id="c", turns=[ExpectedTurn(input=Content(text=text))], **more)


def calls(trace: Trace) -> list[ToolCall]:
    runs = [run for turn in trace.turns for run in turn.runs]
    return [step for run in runs for step in run.steps if isinstance(step, ToolCall)]


def paid(folder: Path) -> list[str]:
    from baton.plugins.user_code import load_object

    return load_object(f"{folder}/shop.py:PAID", folder)  # type: ignore[no-any-return]


def test_a_marked_tool_runs_and_is_recorded_where_nothing_stands_in_for_it(tmp_path: Path) -> None:
    trace = play(tmp_path, asked("refund order 7"))
    assert [(c.name, c.stand_in) for c in calls(trace)] == [("look_up", None), ("pay_back", None)]
    assert [d.to_agent for d in trace.turns[0].dispatches] == ["refunds"]
    assert paid(tmp_path) == ["7"]


def test_a_written_answer_comes_in_place_of_the_tool_and_is_marked(tmp_path: Path) -> None:
    answers = [Fixture(when={"order": "7"}, result={"order": "7", "total": 3})]
    ins = StandIns(tools={"look_up": StandIn(answers=answers)})
    trace = play(tmp_path, asked("refund order 7", stand_ins=ins))
    assert [(c.name, c.stand_in) for c in calls(trace)] == [("look_up", "fixture")]
    assert trace.turns[0].output == Content(text="Too little to refund.")


RECORDED = [
    RecordedAnswer(name="look_up", input={"order": "7"}, result={"order": "7", "total": 40}),
    RecordedAnswer(name="pay_back", input={"order": "7", "amount": 40}, result="paid 40"),
]


def test_a_replayed_refund_pays_nothing(tmp_path: Path) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED)
    trace = play(tmp_path, asked("refund order 7", stand_ins=ins))
    assert [c.stand_in for c in calls(trace)] == ["replay", "replay"]
    assert trace.turns[0].output == Content(text="Refund: paid 40")
    assert paid(tmp_path) == []


def test_a_tool_that_nothing_answers_is_refused_by_name(tmp_path: Path) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED[:1])
    with pytest.raises(ProviderError, match=r"`pay_back` was not run.*`live: .pay_back.`"):
        play(tmp_path, asked("refund order 7", stand_ins=ins))
    assert paid(tmp_path) == []


@pytest.mark.parametrize(
    ("ins", "says"),
    [
        (StandIns(tools={"pay_bak": StandIn(mode="mock")}), r"tool `pay_bak`.*mean `pay_back`"),
        (StandIns(agents={"refund": StandIn(mode="mock")}), r"agent `refund`.*mean `refunds`"),
    ],
)
def test_a_misspelt_stand_in_lets_nothing_run(tmp_path: Path, ins: StandIns, says: str) -> None:
    with pytest.raises(ProviderError, match=says):
        play(tmp_path, asked("refund order 7", stand_ins=ins))
    assert paid(tmp_path) == []


def test_a_stand_in_for_a_name_like_another_holds_where_both_are_stated(tmp_path: Path) -> None:
    tools = {"pay_bak": StandIn(mode="mock"), "pay_back": StandIn(mode="live")}
    play(tmp_path, asked("refund order 7", stand_ins=StandIns(tools=tools)))
    assert paid(tmp_path) == ["7"]


def test_only_a_tool_that_is_named_runs_in_a_replay(tmp_path: Path) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED[:1], live=["pay_back"])
    play(tmp_path, asked("refund order 7", stand_ins=ins))
    assert paid(tmp_path) == ["7"]


def test_an_agent_is_tested_without_the_agent_it_hands_work_to(tmp_path: Path) -> None:
    ins = StandIns(agents={"refunds": StandIn(answers=[Fixture(when="order 7", result="done")])})
    trace = play(tmp_path, asked("refund order 7", stand_ins=ins))
    [dispatch] = trace.turns[0].dispatches
    assert (dispatch.to_agent, dispatch.stand_in) == ("refunds", "fixture")
    assert trace.turns[0].output == Content(text="Refund: done")
    assert paid(tmp_path) == []


@pytest.fixture
def hurried_threads() -> Iterator[None]:
    """Threads that give way as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_each_of_the_calls_that_threads_make_side_by_side_gets_its_own_answer(
    hurried_threads: None,
) -> None:
    request = Request("look_up", {"order": "7"})
    recorded = [RecordedAnswer(name="look_up", input={"order": "7"}, result=n) for n in range(200)]
    for _ in range(20):  # one of three such plays goes wrong where threads are not kept apart
        play = Play(StandIns(mode="replay", recorded=recorded))
        with ThreadPoolExecutor(8) as threads:
            futures = [threads.submit(play.tool_now, request, list) for _ in recorded]
        assert sorted(future.result() for future in futures) == list(range(200))


@pytest.mark.parametrize("kind", ["timeout", "error", "refused"])
def test_a_fault_comes_in_place_of_an_answer(tmp_path: Path, kind: Any) -> None:
    ins = StandIns(tools={"look_up": StandIn(faults=[Fault(kind=kind)])})
    with pytest.raises(Exception, match="look_up") as raised:
        play(tmp_path, asked("refund order 7", stand_ins=ins))
    assert not isinstance(raised.value, AssertionError)


def moment(form: Any, **call: Any) -> DispatchCase:
    made = MadeDispatch(
        **{"sender": "desk", "to": "refunds", "prompt": Content(text="Refund order 7"), **call}
    )
    said = [Message(role="user", text="refund order 7")]
    return DispatchCase(form=form, context=said, call=made)


def test_a_decision_ends_at_the_dispatch(tmp_path: Path) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED[:1])
    trace = play(tmp_path, asked("refund order 7", dispatch=moment("decision"), stand_ins=ins))
    [turn] = trace.turns
    assert [(d.from_agent, d.to_agent, d.prompt) for d in turn.dispatches] == [
        ("desk", "refunds", Content(text="Refund order 7"))
    ]
    assert [c.name for c in calls(trace)] == ["look_up"]
    assert paid(tmp_path) == []


def test_the_receiver_gets_the_same_prompt(tmp_path: Path) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED)
    trace = play(tmp_path, asked("Refund order 7", dispatch=moment("child"), stand_ins=ins))
    assert trace.turns[0].output == Content(text="paid 40")
    assert [run.agent for run in trace.turns[0].runs] == ["refunds"]


def test_the_sender_goes_on_from_the_recorded_result(tmp_path: Path) -> None:
    answer = RecordedAnswer(kind="agent", name="refunds", input="Refund order 7", result="later")
    ins = StandIns(
        mode="replay",
        recorded=[*RECORDED, answer],
        agents={"refunds": StandIn(mode="replay")},
    )
    dispatch = moment("integration", tool="refunds", result=Content(text="later"))
    trace = play(tmp_path, asked("refund order 7", dispatch=dispatch, stand_ins=ins))
    assert trace.turns[0].output == Content(text="Refund: later")
    assert paid(tmp_path) == []


PLAIN = "def reply(message):\n    return 'paid'\n"


def stood_in_for(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> Trace:
    """Play a program with a stand-in, where packages `crewai` and `vendor` are installed."""
    elsewhere = folder / "elsewhere"
    (elsewhere / "crewai").mkdir(parents=True)
    (elsewhere / "crewai" / "__init__.py").write_text("")
    (elsewhere / "vendor.py").write_text("import crewai\n")
    monkeypatch.syspath_prepend(str(elsewhere))
    home = folder / "home"
    home.mkdir()
    (home / "crew.py").write_text(program)
    (home / "tools.py").write_text("import crewai\n")
    options = PythonOptions(type="python", target="crew:reply", workers="process")
    ins = StandIns(tools={"pay": StandIn(mode="mock")})
    return asyncio.run(_play(Python(options, Surroundings(home)), asked("hi", stand_ins=ins)))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "program",
    [
        f"import crewai\n{PLAIN}",
        f"import vendor\n{PLAIN}",  # which loads it
        f"import tools\n{PLAIN}",
        PLAIN.replace("    return", "    import crewai\n    return"),
        PLAIN.replace("    return", "    import tools\n    return"),
    ],
)
def test_a_program_of_a_framework_that_stand_ins_cannot_answer_for_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    with pytest.raises(ProviderError, match="stand-ins cannot answer for the tools of `crewai`"):
        stood_in_for(tmp_path, monkeypatch, program)


def test_a_file_of_the_program_with_the_name_of_a_framework_is_not_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "agents.py").write_text("DESK = 1\n")
    (tmp_path / "home" / "desk.py").write_text(f"import agents\n{PLAIN}")
    options = PythonOptions(type="python", target="desk:reply", workers="process")
    ins = StandIns(tools={"pay": StandIn(mode="mock")})
    provider = Python(options, Surroundings(tmp_path / "home"))
    trace = asyncio.run(_play(provider, asked("hi", stand_ins=ins)))
    assert trace.turns[0].output == Content(text="paid")


def test_what_something_else_has_loaded_is_not_the_program_s_framework(tmp_path: Path) -> None:
    import pydantic_ai

    assert pydantic_ai  # as a judge of Baton loads it
    ins = StandIns(mode="replay", recorded=RECORDED)
    trace = play(tmp_path, asked("refund order 7", stand_ins=ins))
    assert trace.turns[0].output == Content(text="Refund: paid 40")


def test_a_provider_that_cannot_let_stand_ins_answer_refuses_the_case() -> None:
    with pytest.raises(ProviderError, match="has stand-ins, and this provider cannot"):
        refuse_unplayable(asked("hi", stand_ins=StandIns(mode="mock")))
