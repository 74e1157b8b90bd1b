"""Recorded dispatches of plain functions, played again as they are and with a text changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec
import pytest

import baton
from baton.cli import main
from baton.datasets.dispatch_cases import dispatch_case
from baton.model import (
    Case,
    ExpectedHandling,
    InputError,
    RunOptions,
    StandIns,
    ToolCall,
    Trace,
)
from baton.model.stand_ins import Fixture, StandIn
from baton.providers.base_provider import ConfiguredProvider, Surroundings
from baton.providers.python import Python, PythonOptions
from baton.replays.cases import safe
from baton.replays.replay import Moments, replay
from baton.runner.plan import make_plan

# The model is in the functions: what it does hangs on its instructions and on what tools answer.
pytestmark = pytest.mark.heavy  # each replay starts processes

SHOP = """
    import random
    from pathlib import Path

    import baton
    from baton import prompts

    PAID = Path(__file__).with_name("paid.txt")


    @baton.tool
    def look_up(order):
        return {"order": order, "total": 40, "asked": random.random()}


    @baton.tool
    def pay_back(order, amount):
        with PAID.open("a") as file:
            file.write(f"{order}\\n")
        return f"paid {amount}"


    @baton.agent("refunds")
    def refunds(task):
        text = pay_back(task.split()[-1], 40)
        return text if "be brief" in prompts.get("agent:refunds", "be brief") else f"Gladly: {text}"


    @baton.agent("billing")
    def billing(task):
        return "an invoice was sent"


    @baton.agent("desk")
    def desk(message):
        found = look_up(message.split()[-1])
        rule = prompts.get("agent:desk", "refunds: billing, invoices: billing, say: result")
        topic = "refunds" if "refund" in message else "invoices"
        to = rule.split(f"{topic}: ")[1].split(",")[0]
        result = {"refunds": refunds, "billing": billing}[to](f"{message} {found['order']}")
        return f"Done: {result}" if "say: result" in rule else "Done."
"""
RIGHT = "refunds: refunds, invoices: billing, say: result"
BROKEN = "refunds: refunds, invoices: refunds, say: result"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(dedent(SHOP))
    (tmp_path / "paid.txt").write_text("")
    (tmp_path / "right.md").write_text(f"{RIGHT}\n")
    return tmp_path


def recorded(folder: Path, text: str, name: str) -> Trace:
    """Run the shop as it is, for real, and keep the recording as a file."""
    played = baton.evaluate(
        [Case(id=name, turns=[baton.load_dataset(_cases(folder, text)).cases[0].turns[0]])],
        "shop.py:desk",
        ["agent_chain"],
    )
    trace = played.results[0].trace
    assert trace is not None
    (folder / "runs").mkdir(exist_ok=True)
    (folder / "runs" / f"{name}.json").write_bytes(msgspec.json.encode(trace))
    return trace


def _cases(folder: Path, text: str) -> Path:
    file = folder / "asked.yaml"
    file.write_text(f"cases:\n- {{id: asked, input: {text}}}\n")
    return file


def moment(trace: Trace, form: Any, **expected: Any) -> Case:
    """Make a case of the dispatch of the desk."""
    made = trace.turns[0].dispatches[0]
    return dispatch_case(trace, made.id, form=form, expected=ExpectedHandling(**expected))


def paid(folder: Path) -> list[str]:
    return (folder / "paid.txt").read_text().split()


def moments(folder: Path, cases: list[Case], evaluators: Any = None, **options: Any) -> Moments:
    def make(texts: Mapping[str, str]) -> ConfiguredProvider[Any]:
        target = PythonOptions(type="python", target=f"{folder}/shop.py:desk")
        return Python(target, Surroundings(folder, texts=texts))

    live = options.pop("live_tools", ())
    plan = make_plan(evaluators or ["dispatch_routing"])
    return Moments(cases, make, plan, RunOptions(**options), live_tools=live)


def test_a_wrong_dispatch_is_wrong_again_and_right_with_the_changed_text(shop: Path) -> None:
    trace = recorded(shop, "refund order 7", "wrong")
    [dispatch] = trace.turns[0].dispatches
    assert dispatch.to_agent == "billing"
    ready = moments(shop, [moment(trace, "decision", to=["refunds"])], repeat=2)
    as_it_is = asyncio.run(replay(ready))
    assert as_it_is.status == "failed"
    assert [seen.to for seen in as_it_is.cases[0].unchanged] == [["billing"]] * 2
    assert as_it_is.cases[0].recorded is not None
    assert as_it_is.cases[0].recorded.status == "failed"  # the recording, by the same evaluators
    assert (as_it_is.as_recorded.count, as_it_is.as_recorded.of) == (1, 1)
    fixed = asyncio.run(replay(ready, {"agent:desk": RIGHT}))
    assert fixed.status == "passed"
    [case] = fixed.cases
    assert case.outcome == "fixed"
    assert case.differs == ["billing → refunds"] * 2
    assert [seen.to for seen in case.changed] == [["refunds"]] * 2
    assert (fixed.fixed.count, fixed.fixed.of, fixed.broke.of) == (1, 1, 0)
    assert fixed.unchanged is as_it_is.unchanged  # it is played once for all changes


def test_the_receiver_answers_in_other_words_with_the_changed_text(shop: Path) -> None:
    trace = recorded(shop, "invoices of order 7", "invoice")
    ready = moments(shop, [moment(trace, "child")], ["response"])
    played = asyncio.run(replay(ready))
    assert [seen.answer for seen in played.cases[0].unchanged] == ["an invoice was sent"]
    assert played.cases[0].differs == [""]


def test_the_sender_continues_from_the_recorded_result_with_the_changed_text(shop: Path) -> None:
    trace = recorded(shop, "invoices of order 7", "invoice")
    ready = moments(shop, [moment(trace, "integration", follow_through=["Done."])], ["response"])
    silent = "refunds: billing, invoices: billing, say: nothing"
    played = asyncio.run(replay(ready, {"agent:desk": silent}))
    [case] = played.cases
    assert [seen.answer for seen in case.unchanged] == ["Done: an invoice was sent"]
    assert [seen.answer for seen in case.changed] == ["Done."]
    assert (case.outcome, case.differs) == ("fixed", ["another answer"])


def paying(folder: Path) -> Case:
    """Make a case of the receiver that pays: it was recorded once, and so paid once."""
    recorded(folder, "refund order 7", "wrong")
    played = baton.evaluate(
        baton.load_dataset(_cases(folder, "refund order 7")),
        "shop.py:desk",
        ["agent_chain"],
        texts={"agent:desk": RIGHT},
    )
    trace = played.results[0].trace
    assert trace is not None
    assert paid(folder) == ["7"]
    return moment(trace, "child")


def test_a_tool_that_pays_is_called_no_more_however_often_it_is_replayed(shop: Path) -> None:
    ready = moments(shop, [paying(shop)], ["response"], repeat=100, concurrency=1)
    played = asyncio.run(replay(ready, {"agent:refunds": "be wordy"}))
    [case] = played.cases
    assert {seen.answer for seen in case.unchanged} == {"paid 40"}
    assert {seen.answer for seen in case.changed} == {"Gladly: paid 40"}
    assert (len(case.unchanged), len(case.changed)) == (100, 100)
    assert paid(shop) == ["7"]


def test_a_tool_without_a_recorded_answer_is_refused_by_name_and_counts_in_no_rate(
    shop: Path,
) -> None:
    trace = recorded(shop, "refund order 7", "wrong")
    case = moment(trace, "child", to=["refunds"])
    assert case.dispatch is not None
    case.dispatch.call.to = (
        "refunds"  # which pays, and the recording does not contain a call of that
    )
    played = asyncio.run(replay(moments(shop, [case], ["response"])))
    assert played.status == "error"
    assert "the tool `pay_back` was not run" in (played.cases[0].unchanged[0].error or "")
    assert played.cases[0].outcome == "error"
    assert (played.fixed.of, played.broke.of, played.as_recorded.of) == (0, 0, 0)
    assert paid(shop) == []


def test_only_a_tool_that_is_named_runs(shop: Path) -> None:
    case = paying(shop)
    asyncio.run(replay(moments(shop, [case], ["response"], live_tools=["pay_back"])))
    assert paid(shop) == ["7", "7"]
    ready = moments(shop, [case], ["response"], live_tools=["pay_bakc"])
    with pytest.raises(InputError, match="no tool `pay_bakc`; did you mean `pay_back`"):
        asyncio.run(replay(ready))


def test_what_a_case_says_of_live_tools_does_not_count_in_a_replay() -> None:
    written = StandIns(
        mode="live",
        on_unmatched="live",
        live=["pay_back"],
        tools={
            "look_up": StandIn(mode="live"),
            "search": StandIn(mode="mock", key="SEARCH_KEY"),
            "mail": StandIn(answers=[Fixture(when={"to": "kim"}, result="sent")]),
        },
        agents={"refunds": StandIn(tools={"pay_back": StandIn(on_unmatched="live")})},
    )
    played = safe(Case(id="c", turns=[], stand_ins=written)).stand_ins
    assert played is not None
    assert (played.mode, played.on_unmatched, played.live) == ("replay", None, [])
    assert played.tools["look_up"].mode is None
    assert played.tools["search"].key is None
    assert played.agents["refunds"].tools["pay_back"].on_unmatched is None
    assert safe(Case(id="c", turns=[]), ["mail"]).stand_ins == StandIns(
        mode="replay", live=["mail"]
    )


def test_a_change_that_fixes_one_case_and_breaks_another_is_counted_pairwise(shop: Path) -> None:
    wrong = moment(recorded(shop, "refund order 7", "wrong"), "decision", to=["refunds"])
    good = moment(recorded(shop, "invoices of order 8", "good"), "decision", to=["billing"])
    ready = moments(shop, [wrong, good], repeat=3)
    played = asyncio.run(replay(ready, {"agent:desk": BROKEN}))
    assert [case.outcome for case in played.cases] == ["fixed", "broken"]
    assert (played.fixed.count, played.fixed.of) == (1, 1)
    assert (played.broke.count, played.broke.of) == (1, 1)
    assert played.broke.share is not None
    assert played.broke.share.low is not None
    assert played.broke.share.low < 0.3  # one case proves little
    assert played.status == "failed"
    assert played.comparison is not None
    assert played.comparison.axes[0].difference.difference.value == 0
    better = asyncio.run(replay(ready, {"agent:desk": RIGHT}))
    assert [case.outcome for case in better.cases] == ["fixed", "passes"]
    assert (better.broke.count, better.broke.of) == (0, 1)


def test_a_change_that_breaks_a_text_is_refused_before_anything_is_played(shop: Path) -> None:
    ready = moments(shop, [moment(recorded(shop, "refund order 7", "wrong"), "decision")])
    with pytest.raises(InputError, match=r"nothing fills the placeholder `\{user\}`"):
        asyncio.run(replay(ready, {"agent:desk": "refunds: {user}"}))
    assert ready.spent == 0


def test_the_command_says_what_was_fixed_and_keeps_both_plays(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(shop, "refund order 7", "wrong")
    [dispatch] = trace.turns[0].dispatches
    one = ["replay", "shop.py:desk", "runs", "--dispatch", dispatch.id]
    assert main(one) == 0
    out = capsys.readouterr().out
    assert "1 of 1" in out
    assert "no verdict" in out
    assert main([*one, "--expect", "refunds"]) == 1
    capsys.readouterr()
    assert main([*one, "--expect", "refunds", "--with", "agent:desk=right.md", "-o", "kept"]) == 0
    out = capsys.readouterr().out
    assert "the change fixed 1 of 1 [0.21, 1.00], and broke 0 of 0" in out
    assert main(["compare", "kept/unchanged", "kept/changed"]) == 0
    assert "component agent:desk" in capsys.readouterr().out
    assert main([*one, "--expect", "refunds", "--with", "agent:desk=right.md", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["cases"][0]["outcome"] == "fixed"
    assert [change["name"] for change in said["changes"]] == ["agent:desk"]


def test_an_evaluation_holds_its_dispatches_to_what_its_cases_stated(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "cases.yaml").write_text(
        "cases:\n"
        "- {id: money, input: refund order 7, dispatches: [{to: refunds, kind: delegate}]}\n"
        "- {id: paper, input: the invoice of order 8, dispatches: [{to: billing, kind: delegate}]}\n"
    )
    assert main(["eval", "shop.py:desk", "cases.yaml", "-e", "dispatch_routing"]) == 1
    (folder,) = (shop / ".baton" / "evaluations").iterdir()
    capsys.readouterr()
    again = ["replay", "shop.py:desk", str(folder), "--json"]
    assert main([*again, "--with", "agent:desk=right.md"]) == 0
    said = json.loads(capsys.readouterr().out)
    outcomes = {case["id"].partition("-")[0]: case["outcome"] for case in said["cases"]}
    assert outcomes == {"money": "fixed", "paper": "passes"}


def test_a_whole_conversation_is_played_again_and_a_random_tool_is_stable(shop: Path) -> None:
    recorded(shop, "invoices of order 7", "invoice")
    played = baton.replay("runs", "shop.py:desk", form="conversation", repeat=5)
    [case] = played.cases
    assert case.recorded is not None
    assert case.recorded.to == ["desk", "billing"]
    assert {seen.answer for seen in case.unchanged} == {"Done: an invoice was sent"}
    results = {
        json.dumps(msgspec.to_builtins(step.result))
        for result in played.unchanged.results
        if result.trace is not None
        for step in result.trace.turns[0].runs[0].steps
        if isinstance(step, ToolCall)
    }
    assert len(results) == 1
    assert (played.as_recorded.count, case.outcome) == (1, "no verdict")


def test_cases_of_a_file_are_played_in_the_form_that_is_asked_for(shop: Path) -> None:
    case = moment(recorded(shop, "invoices of order 7", "invoice"), "decision", to=["billing"])
    played = baton.replay([case], "shop.py:desk")
    assert (played.status, played.cases[0].form) == ("passed", "decision")
    child = baton.replay([case], "shop.py:desk", form="child")
    assert (child.cases[0].form, child.cases[0].unchanged[0].answer) == (
        "child",
        "an invoice was sent",
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--dispatch", "nowhere"], "no dispatch `nowhere`"),
        (["--expect", "refunds"], "can only be used with --dispatch"),
        (["--with", "agent:dsek=right.md"], "did you mean `agent:desk`"),
        (["--live-tools", "nothing"], "no tool `nothing`"),
        (["--form", "decison"], "decison"),
        (["cases.yaml"], "these are both recordings and cases"),
        (["--form", "conversation", "--dispatch", "d"], "plays them all"),
    ],
)
def test_a_mistake_stops_a_replay_before_anything_is_played(
    shop: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    recorded(shop, "invoices of order 7", "invoice")
    (shop / "cases.yaml").write_text("cases:\n- {id: a, input: hello}\n")
    assert main(["replay", "shop.py:desk", "runs", *words]) == 2
    assert says in capsys.readouterr().err


def test_an_id_that_several_recordings_have_is_named_once(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(shop, "invoices of order 7", "invoice")
    recorded(shop, "invoices of order 8", "another")
    assert main(["replay", "shop.py:desk", "runs", "--dispatch", "nowhere"]) == 2
    ids = capsys.readouterr().err.strip().partition("there are ")[2].split(", ")
    assert ids
    assert len(ids) == len(set(ids))
