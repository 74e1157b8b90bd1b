"""What a plain Python program records of its agents."""

from __future__ import annotations

import asyncio
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import baton
from baton.model import integrity_problems, known
from baton.testing import build, verdict

PROGRAM = """
import baton

FINDING = "The brake line of bus 7 leaks, so bus 7 must stay in the depot until Friday 12 June."


def lab(task):
    with baton.record_agent("lab", task) as lab:
        lab.called("inspect", {{"bus": 7}}, {{"leaks": True}})
        lab.output = FINDING
    return FINDING


def desk(message):
    with baton.record_agent("desk", message) as desk:
        prompt = f"Inspect the brakes of bus 7. {{message}}"
        with baton.record_dispatch("lab", prompt, tools=["inspect"]) as sent:
            sent.result = lab(prompt)
        desk.said("One moment.")
        desk.output = {answer}
    return desk.output
"""
USED = 'f"Bus 7 stays in the depot until Friday 12 June: {FINDING}"'
IGNORED = '"I\'ll look that up first and get back to you shortly."'


def played(folder: Path, answer: str, *evaluators: str, **more: Any) -> baton.Evaluation:
    folder /= f"program{len(list(folder.iterdir()))}"  # a module is loaded once
    folder.mkdir()
    (folder / "depot.py").write_text(PROGRAM.format(answer=answer))
    case = build.case("Can bus 7 drive?", id="bus")
    provider = {"type": "python", "target": f"{folder}/depot.py:desk", **more}
    return baton.evaluate([case], provider, list(evaluators))


@pytest.mark.parametrize("workers", ["inline", "process"])
def test_the_provider_records_agents_dispatches_calls_and_answers(
    tmp_path: Path, workers: str
) -> None:
    more = {"workers": "process"} if workers == "process" else {}
    (result,) = played(tmp_path, USED, "dispatch_scope", **more).results
    trace = result.trace
    assert trace is not None, result.error
    assert integrity_problems(trace) == []
    (turn,) = trace.turns
    desk, lab = turn.runs
    (made,) = turn.dispatches
    assert [type(step).__name__ for step in desk.steps] == ["HandedOff", "GotBack", "Said", "Said"]
    assert [type(step).__name__ for step in lab.steps] == ["ToolCall", "Said"]
    assert (made.from_run, made.runs, made.kind, made.depth) == (desk.id, [lab.id], "delegate", 1)
    assert made.prompt is not None
    assert (made.prompt.text or "").startswith("Inspect the brakes of bus 7.")
    assert (made.result, made.tools_allowed, made.basis) == (lab.output, ["inspect"], "stated")
    assert turn.output == desk.output
    assert [score.status for score in result.scores] == ["passed"]


def test_result_used_is_judged_by_what_the_program_records(tmp_path: Path) -> None:
    ((_, used),) = played(tmp_path, USED, "result_used").scores("result_used")
    assert used.status == "passed", used.reason
    ((_, ignored),) = played(tmp_path, IGNORED, "result_used").scores("result_used")
    assert ignored.status == "failed", ignored.reason


def test_an_agent_that_another_calls_is_its_delegate_without_another_line() -> None:
    with baton.record_turn("Go.") as recorded, baton.record_agent("desk", "Go.") as desk:
        with baton.record_agent("lab", {"bus": 7}) as lab:
            lab.output = ["fine"]
        desk.output = "It is fine."
    (made,) = recorded.turn.dispatches
    assert (made.basis, made.from_agent, made.to_agent) == ("structure", "desk", "lab")
    assert made.prompt is not None
    assert made.result is not None
    assert (made.prompt.data, made.result.data) == ({"bus": 7}, ["fine"])
    assert integrity_problems(recorded.trace) == []
    assert baton.score(recorded.trace, evaluators=["dispatch_completed"]).status == "passed"


def test_agents_that_the_program_starts_one_after_the_other_are_a_sequence() -> None:
    with baton.record_turn("Go.") as recorded:
        for name in ("writer", "reviewer"):
            with baton.record_agent(name, "Go.") as agent:
                agent.output = name
    (made,) = recorded.turn.dispatches
    assert (made.kind, made.from_agent, made.to_agent) == ("sequence", None, "reviewer")
    assert recorded.turn.output is not None
    assert integrity_problems(recorded.trace) == []


def test_an_agent_that_raises_has_failed_and_so_has_what_set_it_to_work() -> None:
    def broken() -> None:
        with (
            baton.record_agent("desk"),
            baton.record_dispatch("lab", "x"),
            baton.record_agent("lab", "x"),
        ):
            raise RuntimeError("no power")

    with pytest.raises(RuntimeError), baton.record_turn("Go.") as recorded:
        broken()
    assert [run.status for run in recorded.turn.runs] == ["failed", "failed"]
    assert (recorded.turn.dispatches[0].status, recorded.turn.status) == ("failed", "failed")
    assert recorded.turn.dispatches[0].error == "RuntimeError: no power"


def test_a_tool_that_no_recorded_agent_called_is_missing_and_one_of_a_delegate_is_not(
    tmp_path: Path,
) -> None:
    (result,) = played(tmp_path, USED, "tool_calls").results
    trace = result.trace
    assert trace is not None

    def calls(*tools: str) -> str:
        return verdict("tool_calls", trace, build.case(tool_calls=list(tools))).status

    assert (calls("inspect"), calls("inspect", "repair")) == ("passed", "failed")


def test_what_does_not_record_is_unknown_and_nothing_is_recorded_outside_a_turn() -> None:
    with baton.record_agent("desk", object()) as desk:  # nobody looks at it
        desk.called("look_up")
        desk.output = "x"
    with (
        baton.record_turn("Go.") as recorded,
        baton.record_agent("desk"),
        baton.record_dispatch("lab", "Go."),
    ):
        pass
    (made,) = recorded.turn.dispatches
    assert {"runs", "result"} <= set(made.unknown)


def test_agents_at_work_at_the_same_time_are_kept_apart() -> None:
    async def lab(name: str) -> None:
        with baton.record_agent(name, "x") as agent:
            await asyncio.sleep(0)
            agent.called(f"tool of {name}")
            await asyncio.sleep(0)

    async def desk() -> None:
        with baton.record_agent("desk", "x"):
            await asyncio.gather(*(lab(name) for name in ("a", "b", "c")))

    with baton.record_turn("Go.") as recorded:
        asyncio.run(desk())
    first, *others = recorded.turn.runs
    assert first.agent == "desk"
    assert [step.name for run in others for step in run.steps if hasattr(step, "name")] == [
        f"tool of {run.agent}" for run in others
    ]
    assert len(recorded.turn.dispatches) == 3


def test_a_function_states_its_agents_in_one_way(tmp_path: Path) -> None:
    text = PROGRAM.format(answer=USED).replace(
        "return desk.output", 'return {"output": "x", "agents": ["desk"]}'
    )
    (tmp_path / "depot.py").write_text(text)
    provider = {"type": "python", "target": f"{tmp_path}/depot.py:desk"}
    (result,) = baton.evaluate([build.case("Go.", id="bus")], provider, ["agent_chain"]).results
    assert "leave one of them out" in (result.error or "")


def passed_on(folder: Path, context: str) -> baton.CaseResult:
    """Play a program whose desk passes control on without the number of the order."""
    folder.mkdir()
    program = f"""
    import baton

    def desk(message):
        with baton.record_agent("desk", message, context=[]) as desk:
            desk.said("One moment.")
            with baton.record_dispatch("cashier", "Refund the order.", kind="transfer"):
                with baton.record_agent("cashier", "Refund the order.", context={context}) as cashier:
                    cashier.output = "Done."
        return cashier.output
    """
    (folder / "shop.py").write_text(dedent(program))
    case = build.case("Please refund order 5521.", id="refund")
    provider = {"type": "python", "target": f"{folder}/shop.py:desk"}
    (result,) = baton.evaluate([case], provider, ["context_carried"]).results
    assert result.trace is not None, result.error
    assert integrity_problems(result.trace) == []
    return result


def test_a_program_states_what_else_its_agents_were_given(tmp_path: Path) -> None:
    told = passed_on(tmp_path / "a", "[message, {'tone': 'kind'}]")
    assert told.trace is not None
    (turn,) = told.trace.turns
    desk, cashier = turn.runs
    assert desk.context == []
    given = [(ref.id, ref.text) for ref in cashier.context or ()]
    assert given == [(turn.id, None), (None, '{"tone":"kind"}')]
    assert [score.status for score in told.scores] == ["passed"]
    lost = passed_on(tmp_path / "b", "[]")
    assert [score.status for score in lost.scores] == ["failed"]
    assert "was not told `5521`" in lost.scores[0].reason
    untold = passed_on(tmp_path / "c", "None")
    assert [score.status for score in untold.scores] == ["skipped"]


def test_what_an_earlier_agent_answered_is_referred_to() -> None:
    with baton.record_turn("Go.") as recorded:
        with baton.record_agent("lab", "Go.", context=[]) as lab:
            lab.output = "It leaks."
        with baton.record_agent("clerk", "Write.", context=["Go.", "It leaks.", "Be kind."]):
            pass
    first, second = recorded.turn.runs
    given = [(ref.id, ref.text) for ref in second.context or ()]
    assert given == [(recorded.turn.id, None), (first.id, None), (None, "Be kind.")]


SPENDS = """
import baton

def desk(message):
    with baton.record_agent("desk", message) as desk:
        desk.asked_model("big", input_tokens=1000, output_tokens=100)
        with baton.record_dispatch("lab", "Inspect bus 7.") as sent:
            with baton.record_agent("lab", "Inspect bus 7.") as lab:
                lab.asked_model("small", input_tokens=1000, output_tokens=0, cache_read_tokens=500)
                lab.asked_model("small", input_tokens=1000, output_tokens=100)
                lab.output = "The brakes are worn."
        desk.output = f"The lab says: {lab.output}"
    return desk.output
"""
PRICES = {"big": {"input": 10, "output": 100}, "small": {"input": 1, "output": 10, "cache_read": 0}}


def test_a_dispatch_has_the_cost_of_the_model_requests_that_its_agent_states(
    tmp_path: Path,
) -> None:
    (tmp_path / "spends.py").write_text(SPENDS)
    limit = {"type": "dispatch_limits", "config": {"max_cost_usd": 0.003}}
    (result,) = baton.evaluate(
        [build.case("Bus 7?")], f"{tmp_path}/spends.py:desk", [limit, "cost"], prices=PRICES
    ).results
    trace = result.trace
    assert trace is not None, result.error
    assert integrity_problems(trace) == []
    desk, lab = trace.turns[0].runs
    assert lab.usage is not None
    assert (lab.model, lab.usage.requests, lab.usage.input_tokens) == ("small", 2, 2000)
    assert lab.usage.cost_usd == pytest.approx(0.003)
    assert known(trace, desk, "usage")
    assert [score.status for score in result.scores] == ["passed", "passed"], result.scores
    assert trace.usage is not None
    assert trace.usage.cost_usd == pytest.approx(0.023)


def test_a_price_needs_one_model_and_figures_are_not_negative() -> None:
    with baton.record_turn("hi") as recorded, baton.record_agent("desk", "hi") as desk:
        desk.asked_model("one", input_tokens=5, output_tokens=1)
        desk.asked_model("two", input_tokens=5)
        with pytest.raises(ValueError, match="input_tokens: -1 is below zero"):
            desk.asked_model("one", input_tokens=-1)
    trace = recorded.trace
    (run,) = trace.turns[0].runs
    assert not known(trace, run, "model")
    assert run.usage is not None
    assert (run.usage.requests, run.usage.complete) == (2, False)
    assert trace.usage is not None
