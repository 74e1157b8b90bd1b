"""The printed page on one dispatch: its parts, what is shortened, and what is escaped."""

from __future__ import annotations

import io

from tests.cli.labelled import hand_off

from baton.model import Content, Said, ToolCall, Trace, Usage
from baton.reports.trace import print_dispatch_page, print_trace


def page(trace: Trace, *, full: bool = False) -> list[str]:
    out = io.StringIO()
    turn = trace.turns[0]
    print_dispatch_page(trace, turn, turn.dispatches[0], out, full=full)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_page_shows_a_dispatch_from_the_question_to_the_next_turn() -> None:
    shown = page(hand_off(1, "correct"))
    assert [line for line in shown if not line.startswith(" ")] == [
        "user", "before", "main calls", "finder works", "result", "next turn",
    ]  # fmt: skip
    assert "  → finder (delegate, d1)" in shown
    assert shown[-1] == "  said “it is here, as the finder says”"


def test_long_transcripts_are_shortened_unless_full_is_set() -> None:
    trace = hand_off(1, "correct", padding=2000)
    worker = trace.turns[0].runs[1]
    worker.steps[:0] = [ToolCall(id=f"k{n}", name=f"grep{n}") for n in range(20)]
    short, whole = page(trace), page(trace, full=True)
    assert "  … 13 more steps" in short
    assert not any("grep15" in line for line in short)
    assert any("grep15" in line for line in whole)
    assert max(map(len, short)) < 400 < max(map(len, whole))


def test_failed_calls_and_missing_results_are_shown() -> None:
    trace = hand_off(1, "correct")
    turn = trace.turns[0]
    turn.dispatches[0].result, turn.dispatches[0].status = None, "failed"
    turn.dispatches[0].error = "out of time"
    turn.runs[1].steps = [ToolCall(id="k", name="grep", status="failed", arguments={"a": 1})]
    shown = page(trace)
    for line in ("  nothing came back", "  failed", "  out of time", "  grep(a=1) (failed)"):
        assert line in shown


def test_control_characters_and_markup_of_a_trace_have_no_effect() -> None:
    trace = hand_off(1, "correct")
    trace.turns[0].runs[1].steps = [
        Said(id="s", content=Content(text="\x1b[2J\x07 [bold]done[/bold]\nresult\n  used"))
    ]
    shown = page(trace)
    assert not any("\x1b" in line or "\x07" in line for line in shown)
    assert shown.count("result") == 1
    assert any("[bold]done[/bold] result used" in line for line in shown)


def test_answers_of_stand_ins_are_marked() -> None:
    trace = hand_off(1, "correct")
    turn = trace.turns[0]
    turn.dispatches[0].stand_in = "replay"
    turn.runs[1].steps = [ToolCall(id="k", name="grep", arguments={"a": 1}, stand_in="fixture")]
    shown = page(trace)
    assert "  grep(a=1)  answered by a stand-in (fixture)" in shown
    assert "  answered by a stand-in (replay)" in shown
    trace.attributes["stand-ins not in the record"] = ["check"]
    out = io.StringIO()
    print_trace(trace, out)
    drawn = out.getvalue()
    assert "grep(a=1)  answered by a stand-in (fixture)" in drawn
    assert "answered by a stand-in (replay)" in drawn
    assert "answered by stand-ins, but not in the record: check" in drawn


def test_tokens_that_no_request_states_are_not_shown_as_zero() -> None:
    trace = hand_off(1, "correct")
    trace.usage = trace.turns[0].runs[0].usage = Usage(requests=1, complete=False)
    out = io.StringIO()
    print_trace(trace, out)
    assert " 0 tokens" not in out.getvalue()
