"""Sessions of the Strands evaluation SDK: spans of agents without names."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.readers.strands.conftest import agent, model, read, session, text, tool, use

from baton.model import Content, GotBack, HandedOff, InputError, Ref, Said, ToolCall, known
from baton.model.views import agent_chain

SWARM = (
    "Context:\n{handed}User Request: Mend my bike\n\n{before}Other agents available for "
    "collaboration:\nAgent name: x.\n\nYou have access to swarm coordination tools if you need help"
)


def prompt(message: str | None = None, *before: str) -> str:
    """Write what a swarm tells an agent."""
    return SWARM.format(
        handed=f"Handoff Message: {message}\n\n" if message else "",
        before=f"Previous agents who worked on this: {' → '.join(before)}\n\n" if before else "",
    )


def hand(to: str, message: str) -> dict[str, str]:
    return {"agent_name": to, "message": message}


def test_an_agent_without_a_name_is_main_and_its_name_unknown(tmp_path: Path) -> None:
    (trace,) = read(tmp_path, session(agent("a", "hi", "hello\n", system="Be kind.")))
    (turn,) = trace.turns
    (run,) = turn.runs
    assert (trace.id, turn.id, run.agent) == ("s1", "t1", "main")
    assert not known(trace, run, "agent")
    assert agent_chain(trace, turn) == []
    assert (turn.input, turn.output) == (Content(text="hi"), Content(text="hello"))
    assert not known(trace, run, "steps.said")
    assert [(d.what, d.count) for d in trace.dropped] == [
        ("the system prompt of an agent whose name is not recorded", 1)
    ]


def test_a_name_that_a_mapper_left_in_the_metadata_is_reported(tmp_path: Path) -> None:
    one = agent("a", "hi", "hello", metadata={"agent_name": "desk"}, system="Be kind.")
    (trace,) = read(tmp_path, session(one))
    assert agent_chain(trace, trace.turns[0]) == ["desk"]
    assert trace.agents["desk"].instructions == "Be kind."


def test_what_the_first_model_call_held_is_the_context_of_a_run(tmp_path: Path) -> None:
    earlier = ("user", [text("My order is 88.")]), ("assistant", [text("Noted.")])
    asked = ("user", [text("Where is it?")])
    called = ("assistant", [use("look", "call-t", {"id": 88})])
    answered = ("user", [{"content_type": "tool_result", "content": "5", "tool_call_id": "call-t"}])
    spans = [
        agent("a", "Where is it?", "On its way.\n"),
        model("m2", "a", *earlier, asked, called, answered, ("assistant", [text("Hm.")]), at=4),
        tool("t", "look", {"id": 88}, "5", "a", at=2),
        model("m1", "a", *earlier, asked, called, at=1),
    ]
    (trace,) = read(tmp_path, session(*spans))
    (run,) = trace.turns[0].runs
    assert run.input == Content(text="Where is it?")
    assert run.context == [Ref(text="My order is 88."), Ref(text="Noted.")]
    (trace,) = read(tmp_path, session(agent("a", "Where is it?", "On its way.\n")))
    assert not known(trace, trace.turns[0].runs[0], "context")


def test_the_context_of_a_run_refers_to_what_earlier_turns_said_and_called(tmp_path: Path) -> None:
    asked, said = ("user", [text("My order is 88.")]), ("assistant", [text("Noted.")])
    first = [agent("a", "My order is 88.", "Noted.\n"), model("m", "a", asked, said, at=1)]
    again = ("user", [text("Where is it?")])
    spans = [
        agent("b", "Where is it?", "There.\n", at=10),
        model("n", "b", asked, said, again, ("assistant", [text("There.")]), at=11),
    ]
    made = session(*first)
    made["traces"].append({"spans": spans, "trace_id": "t2", "session_id": "s1"})
    (trace,) = read(tmp_path, made)
    one, two = trace.turns
    assert one.runs[0].context == []
    assert two.runs[0].context == [Ref(id=one.id), Ref(id=one.runs[0].steps[0].id)]


def test_steps_stand_in_the_order_they_were_made(tmp_path: Path) -> None:
    asked = ("user", [text("hi")])
    called = ("assistant", [text("One moment."), use("look", "call-t", {"id": 7})])
    answered = ("user", [{"content_type": "tool_result", "content": "5", "tool_call_id": "call-t"}])
    spans = [
        agent("a", "hi", "It is 5.\n", tools=["look"]),
        model("m2", "a", asked, called, answered, ("assistant", [text("It is 5.")]), at=4),
        tool("t", "look", {"id": 7}, "5", "a", at=2),
        model("m1", "a", asked, called, at=1),
    ]
    (trace,) = read(tmp_path, session(*spans))
    first, call, last = trace.turns[0].runs[0].steps
    assert isinstance(first, Said)
    assert first.content.text == "One moment."
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments, call.status) == (
        "call-t", "look", {"id": 7}, "ok",
    )  # fmt: skip
    assert call.result == Content(text="5")
    assert isinstance(last, Said)
    assert trace.turns[0].runs[0].tools_offered == ["look"]


def test_a_call_without_a_span_is_answered_by_what_the_model_was_told(tmp_path: Path) -> None:
    told = {"content_type": "tool_result", "content": "no", "error": "error", "tool_call_id": "c1"}
    spans = [
        agent("a", "hi", "Sorry."),
        model("m1", "a", ("assistant", [use("look", "c1"), use("seek", "c2")]), at=1),
        model("m2", "a", ("user", [told]), ("assistant", [text("Sorry.")]), at=2),
    ]
    (trace,) = read(tmp_path, session(*spans))
    look, seek, _ = trace.turns[0].runs[0].steps
    assert isinstance(look, ToolCall)
    assert (look.status, look.error, look.result) == ("failed", "no", None)
    assert not known(trace, look, "at")
    assert isinstance(seek, ToolCall)
    assert seek.status == "unanswered"


def test_an_agent_below_a_call_is_its_delegate(tmp_path: Path) -> None:
    spans = [
        agent("a", "Plan a trip", "Go by train.\n"),
        tool("t", "ask_guide", {"q": "Train or bus?", "days": 2}, "Train.\n", "a", at=1),
        agent("b", "Train or bus?", "Train.\n", "t", at=2),
        tool("u", "timetable", {}, "10:04", "b", at=3),
    ]
    (trace,) = read(tmp_path, session(*spans))
    (turn,) = trace.turns
    (dispatch,) = turn.dispatches
    caller, guide = turn.runs
    assert (dispatch.kind, dispatch.basis, dispatch.to_agent) == (
        "delegate", "structure", "ask_guide",
    )  # fmt: skip
    assert not known(trace, dispatch, "to_agent")
    assert (dispatch.prompt, dispatch.context) == (Content(text="Train or bus?"), {"days": 2})
    assert dispatch.result == Content(text="Train.")
    assert (dispatch.runs, guide.started_by) == ([guide.id], [dispatch.id])
    call, handed, back = caller.steps
    assert isinstance(call, ToolCall)
    assert (call.dispatch, call.result) == (dispatch.id, None)
    assert isinstance(handed, HandedOff)
    assert isinstance(back, GotBack)
    assert [step.name for step in guide.steps if isinstance(step, ToolCall)] == ["timetable"]


def test_agents_that_were_asked_together_are_a_group(tmp_path: Path) -> None:
    both = [use("left", "call-t", {"input": "l"}), use("right", "call-u", {"input": "r"})]
    spans = [
        agent("a", "go", "done"),
        model("m", "a", ("assistant", both)),
        tool("t", "left", {"input": "l"}, "L", "a", at=1),
        tool("u", "right", {"input": "r"}, "R", "a", at=1),
        agent("b", "l", "L", "t", at=2),
        agent("c", "r", "R", "u", at=2),
    ]
    (trace,) = read(tmp_path, session(*spans))
    assert [(d.to_agent, d.group) for d in trace.turns[0].dispatches] == [
        ("left", 1), ("right", 1),
    ]  # fmt: skip


def test_a_delegate_that_broke_has_the_error_of_its_call(tmp_path: Path) -> None:
    spans = [
        agent("a", "go", "Sorry."),
        tool("t", "guide", {"input": "x"}, "Agent error: down", "a", at=1, error="error"),
        agent("b", "x", "", "t", at=2),
    ]
    (trace,) = read(tmp_path, session(*spans))
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.status, dispatch.error) == ("failed", "Agent error: down")
    broken = trace.turns[0].runs[1]
    assert (broken.status, broken.error) == ("failed", "Agent error: down")


def test_a_swarm_names_its_agents_by_what_it_tells_them(tmp_path: Path) -> None:
    spans = [
        agent("a", prompt(), "I pass this on."),
        tool("t", "handoff_to_agent", hand("smith", "Fix the chain"), "Handing off", "a", at=1),
        agent("b", prompt("Fix the chain", "desk"), "Fixed.", at=2),
    ]
    (trace,) = read(tmp_path, session(*spans))
    (turn,) = trace.turns
    assert agent_chain(trace, turn) == ["desk", "smith"]
    assert turn.input == Content(text="Mend my bike")
    (dispatch,) = turn.dispatches
    assert (dispatch.kind, dispatch.from_agent, dispatch.to_agent) == ("transfer", "desk", "smith")
    assert (dispatch.prompt, dispatch.status) == (Content(text="Fix the chain"), "completed")


def test_the_one_who_opens_a_swarm_stays_unknown_where_no_text_names_it(tmp_path: Path) -> None:
    spans = [
        agent("a", prompt(), "I pass this on."),
        tool("t", "handoff_to_agent", hand("smith", "Fix it"), "Handing off", "a", at=1),
        agent("b", prompt("Fix it"), "Fixed.", at=2),
    ]
    (trace,) = read(tmp_path, session(*spans))
    assert agent_chain(trace, trace.turns[0]) == ["smith"]
    assert trace.turns[0].dispatches[0].from_agent == "main"


def test_a_hand_off_that_nobody_took_is_refused_or_unanswered(tmp_path: Path) -> None:
    ghost = tool(
        "t", "handoff_to_agent", hand("ghost", "Help"), "Error: Agent 'ghost' not found in swarm",
        "a", at=1, error="error",
    )  # fmt: skip
    lost = tool("u", "handoff_to_agent", hand("smith", "Fix it"), "Handing off", "a", at=2)
    (trace,) = read(tmp_path, session(agent("a", prompt(), "Hm."), ghost, lost))
    refused, unanswered = trace.turns[0].dispatches
    assert (refused.to_agent, refused.status, refused.runs) == ("ghost", "refused", [])
    assert refused.error == "Error: Agent 'ghost' not found in swarm"
    assert (unanswered.to_agent, unanswered.status) == ("smith", "unanswered")


def test_agents_that_a_program_ran_are_not_linked_by_guessing(tmp_path: Path) -> None:
    spans = [agent("a", "Write a report", "parts"), agent("b", "Original Task: x", "report", at=2)]
    (trace,) = read(tmp_path, session(*spans))
    (turn,) = trace.turns
    assert (len(turn.runs), turn.dispatches) == (2, [])
    assert not known(trace, turn, "dispatches")
    assert not known(trace, turn, "output")


def test_every_trace_of_a_session_is_a_turn(tmp_path: Path) -> None:
    both = session(agent("a", "one", "A"))
    both["traces"].append({**session(agent("b", "two", "B"))["traces"][0], "trace_id": "t2"})
    (trace,) = read(tmp_path, both)
    assert [(turn.id, turn.input) for turn in trace.turns] == [
        ("t1", Content(text="one")), ("t2", Content(text="two")),
    ]  # fmt: skip


def test_calls_without_any_agent_are_kept_with_a_run_of_which_nothing_else_is_known(
    tmp_path: Path,
) -> None:
    (trace,) = read(tmp_path, session(tool("t", "look", {}, "5", "gone")))
    (run,) = trace.turns[0].runs
    assert [step.name for step in run.steps if isinstance(step, ToolCall)] == ["look"]
    assert not any(known(trace, run, name) for name in ("agent", "input", "output", "started"))


def test_what_belongs_to_no_agent_and_what_no_rule_reads_is_counted(tmp_path: Path) -> None:
    stray = tool("t", "look", {}, "5", "gone")
    odd = {**agent("x", "", ""), "span_type": "retrieve", "surprise": {"a": 1}}
    two = [agent("a", "hi", "A"), agent("b", "x", "B", "a")]
    (trace,) = read(tmp_path, session(*two, stray, odd))
    lost = {entry.what: entry.count for entry in trace.dropped}
    assert lost["a span of type `execute_tool`"] == 1
    assert lost["a span of type `retrieve`"] == 1
    assert any("surprise" in what for what in lost)


def test_clocks_that_go_backwards_make_an_end_unknown(tmp_path: Path) -> None:
    one = agent("a", "hi", "A")
    one["span_info"]["end_time"] = "2026-03-01T09:00:00Z"
    (trace,) = read(tmp_path, session(one))
    assert not known(trace, trace.turns[0].runs[0], "ended")


def test_parents_in_a_circle_end_somewhere(tmp_path: Path) -> None:
    spans = [agent(str(n), "hi", "A", str((n + 1) % 5)) for n in range(5)]
    (trace,) = read(tmp_path, session(*spans))
    assert len(trace.turns[0].runs) == 5


def test_a_session_without_spans_is_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"run\.json:1: the session contains no spans: .*session\.id"
    ):
        read(tmp_path, {"traces": [], "session_id": "s1"})


def test_a_broken_span_is_an_error_with_its_line_and_place(tmp_path: Path) -> None:
    broken = session(agent("a", "hi", "A"))
    broken["traces"][0]["spans"][0]["span_info"]["start_time"] = "yesterday"
    with pytest.raises(InputError, match=r"traces\[0\]\.spans\[0\]\.span_info: .*datetime"):
        read(tmp_path, broken)
