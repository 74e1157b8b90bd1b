"""Tools that run an agent again, or another one, after the first attempt failed."""

from __future__ import annotations

import pytest
from tests.readers.otlp.spans import Piece, agent, call, chain, edges, model, read, tool

from baton.model import Content, Turn

FAILED = agent("billing", error="RuntimeError: database is down")


def _asked(*tries: Piece, result: str = "It is paid.") -> Turn:
    """A front desk whose tool makes these attempts."""
    asking = model(calls=[call("ask_billing", "1", request="Is it paid?")])
    ask = tool("ask_billing", *tries, args={"request": "Is it paid?"}, result=result, id_="1")
    return read(agent("desk", asking, ask, model("Done.")))


def test_an_answer_after_a_failure_without_a_second_attempt_has_an_unknown_origin() -> None:
    turn = _asked(FAILED)
    [dispatch] = turn.dispatches
    assert (dispatch.status, dispatch.error) == ("unknown", None)
    assert dispatch.result == Content(text="It is paid.")
    assert [type(step).__name__ for step in turn.runs[0].steps if hasattr(step, "dispatch")] == [
        "ToolCall",
        "HandedOff",
        "GotBack",
    ]


@pytest.mark.parametrize(
    "result",
    [
        "Tool failed: database is down",
        "Sorry, billing is unavailable.",
        "I could not reach billing.",
        "Error: 500",
        "The request timed out.",
    ],
)
def test_an_answer_that_tells_of_the_failure_shows_a_failed_dispatch(result: str) -> None:
    [dispatch] = _asked(FAILED, result=result).dispatches
    assert (dispatch.status, dispatch.error) == ("failed", "RuntimeError: database is down")


def test_a_second_attempt_with_another_prompt_belongs_to_the_same_dispatch() -> None:
    again = agent("billing", model("It is paid.", hears="Is it paid? Answer in JSON."))
    turn = _asked(FAILED, again)
    [dispatch] = turn.dispatches
    assert (dispatch.status, dispatch.runs) == ("completed", [run.id for run in turn.runs[1:]])


def test_another_agent_asked_after_a_failure_has_a_dispatch_of_its_own() -> None:
    turn = _asked(FAILED, agent("ledger", model("It is paid.", hears="Is it paid?")))
    assert edges(turn) == [("desk", "billing", "delegate"), ("desk", "ledger", "delegate")]
    assert [d.status for d in turn.dispatches] == ["failed", "completed"]
    assert [d.result for d in turn.dispatches] == [None, Content(text="It is paid.")]
    assert chain(turn) == ["desk", "billing", "ledger"]
