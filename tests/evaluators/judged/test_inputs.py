"""What judges of turns, runs, tool calls and traces are shown, and what is not recorded."""

from __future__ import annotations

from typing import Any

import pytest
from tests.evaluators.judged.scripted import Judged, ScriptedJudge, capture, scores, shipped
from tests.findings.trips import called, said, trip

from baton.evaluators.judging.inputs import INPUTS, Missing, input_of
from baton.evaluators.judging.subject import Subject, subjects
from baton.model import (
    AgentCard,
    Case,
    CaseRubric,
    Content,
    ExpectedToolCall,
    ExpectedTurn,
    ExpectedVisit,
    Said,
    Scenario,
    ToolCall,
    Trace,
    Unit,
)
from baton.testing.build import turn


def only(unit: Unit, trace: Trace, case: Case | None = None) -> Subject:
    (found,) = subjects(unit, trace, case, {})
    return found


def text(name: str, subject: Subject) -> str:
    """Return what an input shows of a subject; a text in brackets if it can't."""
    input_ = input_of(name, subject.unit)
    assert input_ is not None
    found = input_.find(subject)
    if isinstance(found, Missing):
        return f"[{found.says}]"
    return "\n".join(piece.text for piece in found.pieces)


def two_turns() -> Trace:
    trace = trip("r", said("First answer."), user="First?")
    trace.turns.append(turn("Second?", id="t2", output="Second answer."))
    return trace


def test_history_is_what_came_before_and_a_conversation_all_of_it() -> None:
    first, second = subjects("turn", two_turns(), None, {})
    assert text("history", first) == ""
    assert text("history", second) == (
        "the user said:\n    First?\nthe answer was:\n    First answer."
    )
    whole = text("conversation", only("trace", two_turns()))
    assert whole == text("conversation", second)
    assert whole.endswith("the user said:\n    Second?\nthe answer was:\n    Second answer.")
    assert text("answer", only("trace", two_turns())) == "Second answer."


def test_thoughts_are_shown_to_no_judge() -> None:
    secret = Said(id="th", content=Content(text="secret plan"), thought=True)
    subject = only("turn", trip("r", secret, said("Done.")))
    for name in ("transcript", "answers"):
        assert "secret plan" not in text(name, subject)
        assert "Done." in text(name, subject)


def test_tool_calls_and_sources_are_those_of_all_agents_of_a_turn() -> None:
    failed = ToolCall(id="c2", name="search", status="failed", error="no network")
    found = ToolCall(id="c1", name="lookup", arguments={"q": 1}, result=Content(text="42 items"))
    cited = Said(id="s2", content=Content(text="See [1]."), sources=[{"uri": "doc://1"}])
    subject = only("turn", trip("r", cited, child=(found, failed)))
    calls = text("tool_calls", subject)
    assert "helper called the tool lookup with:" in calls
    assert '"q": 1' in calls
    assert "which came back (failed) with:\n    no network" in calls
    sources = text("sources", subject)
    assert "the tool lookup gave:\n    42 items" in sources
    assert "doc://1" in sources
    assert "no network" not in sources


def test_an_agent_whose_work_is_not_recorded_is_a_source_itself() -> None:
    trace = trip("The shop opens at 9.", said("At 9."))
    trace.turns[0].dispatches[0].runs = []
    del trace.turns[0].runs[1]
    assert "the agent helper gave:\n    The shop opens at 9." in text(
        "sources", only("turn", trace)
    )


def test_a_tool_call_is_judged_by_what_its_agent_had_seen() -> None:
    first, second = called("Read", "c1", path="a"), called("Edit", "c2", path="a")
    trace = trip("r", child=(first, second), received="Fix a.")
    found = next(s for s in subjects("tool_call", trace, None, {}) if s.id == "c2")
    assert text("before", found) == (
        'helper was given:\n    Fix a.\ncalled the tool Read with:\n    {\n     "path": "a"\n    }\n'
        "which came back (ok) with:\n    ok"
    )
    assert text("call", found).startswith("called the tool Edit with:")
    assert "which came back" not in text("call", found)
    assert text("result", found) == "ok"


def test_hand_offs_are_no_tool_calls() -> None:
    ids = [
        s.call.name
        for s in subjects("tool_call", capture("01_correct_dispatch"), None, {})
        if s.call
    ]
    assert ids == ["Read", "Read", "Read", "Edit"]


def test_a_run_sees_what_it_was_given_and_what_others_did_before() -> None:
    _, research, refactor = subjects("run", capture("01_correct_dispatch"), None, {})
    assert "[job R-11]" in text("received", research)
    assert "agent research-agent at work" in text("before", refactor)
    assert "agent refactor-agent at work" not in text("before", refactor)
    assert text("answer", refactor).startswith("Renamed retry to with_retry")


def test_definitions_give_catalogue_tools_and_instructions() -> None:
    trace = trip("r", said("Done."))
    trace.agents = {
        "lead": AgentCard(description="Leads.", tools=["Agent"], instructions="Be brief."),
        "helper": AgentCard(tools="all", denied_tools=["Bash"]),
    }
    subject = only("turn", trace)
    assert "agent helper\n    what it is for: (not told)\n    tools: all\n    denied: Bash" in (
        text("catalogue", subject)
    )
    assert text("tools", subject) == "lead has:\n    Agent\nhelper has:\n    all"
    assert text("instructions", subject) == "lead is told:\n    Be brief."


@pytest.mark.parametrize(
    ("unknown", "name", "supply"),
    [
        ("turn.input", "request", "record the messages of users"),
        ("turn.output", "answer", "record the answers of agents"),
        ("run.steps", "transcript", "record the steps of agents"),
        ("run.steps.tool_call", "tool_calls", "record the steps of agents"),
        ("turn.state", "state", "the state of the session is not recorded"),
        ("", "catalogue", "give the agents' definitions as `agents:`"),
        ("", "instructions", "give the agents' definitions as `agents:`"),
        ("", "reference", "score against a case that states `response`"),
    ],
)
def test_what_is_not_known_says_what_would_supply_it(unknown: str, name: str, supply: str) -> None:
    trace = trip("r", said("Done."))
    trace.turns[0].input = trace.turns[0].output = None
    trace.unknown += [unknown] if unknown else []
    assert supply in text(name, only("turn", trace))


def test_a_case_states_what_should_have_happened() -> None:
    case = Case(
        id="c",
        turns=[
            ExpectedTurn(
                input=Content(text="Please help"),
                response=Content(text="Paris"),
                agents=["lead", "helper"],
                tool_calls=[ExpectedToolCall(name="lookup", arguments={"q": 1})],
                interactions=[ExpectedVisit(agent="helper", says=["Paris"])],
                rubrics=[CaseRubric(text="It is booked.", type="assertion")],
            )
        ],
        scenario=Scenario(start="Hi", plan="Ask for Paris."),
        final_state={"booked": True},
    )
    subject = only("turn", trip("r", said("Paris")), case)
    shows = {
        "reference": "Paris",
        "expected_agents": '"helper"',
        "expected_tools": '"name": "lookup"',
        "expected_visits": '"says"',
        "assertion": "It is booked.",
        "expected_state": '"booked": true',
        "scenario": "the plan:\n    Ask for Paris.",
    }
    for name, shown in shows.items():
        assert shown in text(name, subject), name
    lead, helper = subjects("run", trip("r", said("Paris")), case, {})
    assert text("expected_visits", lead).startswith("[no expectation")
    assert "helper" in text("expected_visits", helper)


def test_every_input_of_every_unit_shows_something_or_says_what_is_missing() -> None:
    trace = capture("01_correct_dispatch")
    units: tuple[Unit, ...] = ("trace", "turn", "run", "dispatch", "tool_call")
    for unit in units:
        for name in INPUTS:
            for subject in subjects(unit, trace, None, {}):
                if input_of(name, unit) is not None:
                    assert isinstance(text(name, subject), str)


def test_planned_turns_that_were_not_played_are_an_error() -> None:
    turns = [ExpectedTurn(input=Content(text=t)) for t in ("Please help", "And now?")]
    options: dict[str, Any] = {}
    found = scores(
        Judged(shipped()["task_completion"], **options),
        trip("r", said("Done.")),
        ScriptedJudge("complete"),
        Case(id="c", turns=turns),
    )
    assert [score.status for score in found] == ["passed", "error"]
    assert found[1].reason == "1 of 2 planned turns were played"
