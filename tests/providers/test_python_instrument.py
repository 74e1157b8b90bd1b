"""`python` with `instrument`: the spans of a program tell what its agents did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.model import (
    AgentRun,
    Case,
    CaseResult,
    Content,
    ToolCall,
    Trace,
    integrity_problems,
    known,
)
from baton.model.views import agent_chain
from baton.testing.build import case

PROGRAMS = Path(__file__).parent.parent / "data" / "programs"
Play = Callable[..., list[CaseResult]]
pytestmark = pytest.mark.usefixtures("only_own_instrumentors")


@pytest.fixture(params=["process", "inline"])
def play(request: pytest.FixtureRequest) -> Play:
    """Play cases with a function of the desk, in processes and in this one."""

    def run(function: str, *cases: Case, file: str = "desk", **options: Any) -> list[CaseResult]:
        spec = {
            "type": "python",
            "target": f"{PROGRAMS / file}.py:{function}",
            "instrument": True,
            "workers": request.param,
            **options.pop("spec", {}),
        }
        return list(baton.evaluate(cases or [case(id="a")], spec, ["agent_chain"], **options))

    return run


def seen(result: CaseResult) -> Trace:
    assert result.error is None, result.error
    assert result.trace is not None
    assert not integrity_problems(result.trace)
    return result.trace


def texts(trace: Trace) -> list[str | None]:
    return [turn.output.text if turn.output else None for turn in trace.turns]


def calls(run: AgentRun) -> list[ToolCall]:
    return [step for step in run.steps if isinstance(step, ToolCall)]


def test_spans_tell_agents_tools_and_hand_overs(play: Play) -> None:
    (result,) = play("reply", case("a refund for A-1", id="a", agents=["front", "billing"]))
    trace = seen(result)
    assert result.status == "passed"
    (turn,) = trace.turns
    assert agent_chain(trace, turn) == ["front", "billing"]
    (dispatch,) = turn.dispatches
    assert (dispatch.kind, dispatch.from_agent, dispatch.to_agent) == (
        "transfer", "front", "billing",
    )  # fmt: skip
    (call,) = calls(turn.runs[1])
    assert (call.name, call.arguments, call.result) == (
        "refund", {"order": "A-1"}, Content(text="ok"),
    )  # fmt: skip


def test_the_answer_is_what_the_function_returned_and_the_input_what_was_sent(play: Play) -> None:
    (result,) = play("slow", case("hello there", id="a"))
    (turn,) = seen(result).turns
    assert (turn.input, turn.output) == (
        Content(text="hello there"),
        Content(text="did hello there"),
    )
    assert turn.status == "completed"
    assert turn.started is not None
    assert turn.ended is not None


def test_where_the_function_returns_nothing_the_answer_is_what_the_spans_tell(play: Play) -> None:
    spoken, silent = play("silent", case("say", id="a"), case("nothing", id="b"))
    assert texts(seen(spoken)) == ["Said."]
    assert silent.error == "turn 1: the function returned nothing, and its spans have no answer"


def test_the_turns_of_a_case_are_one_trace_and_the_session_lasts(play: Play) -> None:
    played = case("one", "two", "three", id="a")
    played.turns[2].new_session = True
    (result,) = play("remembers", played)
    trace = seen(result)
    assert texts(trace) == ["one", "one,two", "three"]
    assert [agent_chain(trace, turn) for turn in trace.turns] == [["front"]] * 3
    assert len({run.id for turn in trace.turns for run in turn.runs}) == 3
    assert (trace.id, trace.case, trace.source.format) == ("a", "a", "python")


@pytest.mark.heavy
def test_cases_side_by_side_never_mix_their_spans(play: Play) -> None:
    cases = [case(f"first {n}", f"second {n}", id=f"c{n}") for n in range(12)]
    results = play("slow", *cases, concurrency=4)
    for played, result in zip(cases, results, strict=True):
        for turn, expected in zip(seen(result).turns, played.turns, strict=True):
            assert sorted(run.agent for run in turn.runs) == ["front", "helper0", "helper1"]
            noted = [call.arguments for run in turn.runs for call in calls(run)]
            assert noted == [{"order": expected.input.text}] * 3


@pytest.mark.parametrize("function", ["linked", "leads_there"])
def test_its_own_trace_that_a_link_connects_is_the_cases(play: Play, function: str) -> None:
    (result,) = play(function)
    trace = seen(result)
    (turn,) = trace.turns
    assert sorted(agent_chain(trace, turn)) == ["front", "worker"]


def test_a_message_that_no_agent_worked_on_is_a_turn_among_the_others(play: Play) -> None:
    trace = seen(play("greets", case("hi", "help", "hi", id="a"))[0])
    assert texts(trace) == ["Hello.", "Done.", "Hello."]
    assert [agent_chain(trace, turn) for turn in trace.turns] == [[], ["front"], []]
    assert [known(trace, turn, "runs") for turn in trace.turns] == [False, True, False]


def test_turns_stay_apart_whatever_links_and_sessions_their_spans_name(play: Play) -> None:
    trace = seen(play("looks_back", case("one", "two", "three", id="a"))[0])
    assert texts(trace) == ["one", "two", "three"]
    assert [agent_chain(trace, turn) for turn in trace.turns] == [["front", "worker"]] * 3


def test_an_answer_completes_the_turn_although_an_agent_failed(play: Play) -> None:
    trace = seen(play("recovers", case("A-1", id="a"))[0])
    assert texts(trace) == ["Sorry."]
    assert (trace.turns[0].status, trace.turns[0].runs[0].status) == ("completed", "failed")


def test_a_span_of_no_case_is_the_error_of_the_case_and_is_named(play: Play) -> None:
    fine, stray, after = play(
        "strays", case("hi", id="a"), case("stray", id="b"), case("hi", id="c"), concurrency=1
    )
    assert "1 span(s) belong to no case: `clean up` of scope `tests.desk`" in (stray.error or "")
    assert stray.trace is not None
    assert agent_chain(stray.trace, stray.trace.turns[0]) == ["front"]
    assert [seen(each).id for each in (fine, after)] == ["a", "c"]


def test_a_span_that_has_not_ended_is_reported(play: Play) -> None:
    (result,) = play("leaves_open")
    assert seen(result).attributes["spans that had not ended"] == [
        "`background` of scope `tests.desk`"
    ]


def test_log_records_bring_the_words_of_a_span(play: Play) -> None:
    (result,) = play("whispers", case("hush", id="a"))
    ((run,),) = [turn.runs for turn in seen(result).turns]
    assert run.output == Content(text="said hush")


@pytest.mark.heavy
def test_what_the_function_raises_is_the_error_and_what_was_seen_is_kept(play: Play) -> None:
    fine, broken = play("reply", case(id="a")), play("raises", case("A-1", id="b"))
    assert fine[0].error is None
    (result,) = broken
    assert "the function raised ValueError: the till is empty" in (result.error or "")
    assert result.trace is not None
    (turn,) = result.trace.turns
    assert turn.status == "failed"
    assert [call.status for call in calls(turn.runs[0])] == ["failed"]


def test_agents_that_the_function_states_are_counted_when_spans_tell_them(play: Play) -> None:
    (result,) = play("states")
    trace = seen(result)
    assert agent_chain(trace, trace.turns[0]) == ["front"]
    assert [(each.what, each.count) for each in trace.dropped] == [
        ("returned by the program, but already in its spans", 2)
    ]
    assert trace.usage is not None
    assert trace.usage.input_tokens == 7


def test_without_spans_all_is_as_without_instrument(play: Play, tmp_path: Path) -> None:
    file = tmp_path / "plain.py"
    file.write_text(
        "def text(m): return m.upper()\n"
        "def told(m): return {'output': 'x', 'agents': ['desk'], 'dispatches': []}\n"
    )
    (result,) = play("text", file=str(file.with_suffix("")))
    trace = seen(result)
    assert texts(trace) == ["HI"]
    assert not known(trace, trace.turns[0], "runs")
    assert not known(trace, trace, "usage")
    (result,) = play("told", file=str(file.with_suffix("")))
    assert agent_chain(seen(result), seen(result).turns[0]) == ["desk"]


def test_a_function_of_a_whole_case_plays_one_turn_and_not_several(play: Play) -> None:
    one, two = play("whole", case(id="a"), case("one", "two", id="b"))
    assert texts(seen(one)) == ["case a"]
    assert "one call for several turns cannot be instrumented" in (two.error or "")


def test_hooks_run_beside_the_program_and_their_spans_are_not_its_own(
    play: Play, tmp_path: Path
) -> None:
    code = """
from pathlib import Path
def after(case, turn):
    names = [run.agent for run in turn.runs]
    Path(__file__).with_name(case.id).write_text(f"{names} {turn.output.text}")
"""
    (tmp_path / "hooks.py").write_text(code)
    hooks = {"before_case": f"{PROGRAMS}/desk.py:seed", "after_turn": f"{tmp_path}/hooks.py:after"}
    (result,) = play("remembers", case("one", id="a"), spec={"hooks": hooks})
    trace = seen(result)
    assert texts(trace) == ["a,one"]
    assert agent_chain(trace, trace.turns[0]) == ["front"]
    assert (tmp_path / "a").read_text() == "['front'] a,one"


def test_definitions_of_agents_stand_in_the_trace(tmp_path: Path) -> None:
    from baton.model import AgentCard
    from baton.providers.base_provider import Surroundings
    from baton.providers.registry import make_provider

    spec = {"type": "python", "target": f"{PROGRAMS}/desk.py:reply", "instrument": True}
    provider = make_provider(spec, Surroundings(agents={"front": AgentCard(tools=["x"])}))
    (result,) = baton.evaluate([case(id="a")], provider, ["agent_chain"])
    assert seen(result).agents["front"].tools == ["x"]
