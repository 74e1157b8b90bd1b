"""Cases that are ended before their agents were: what was seen until then is kept."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.providers.conftest import (
    HANG,
    AdkServer,
    CaseCancelled,
    Reply,
    aplay,
    case_of,
    event,
    reply,
    said,
    spec,
    sse,
    stream,
)

import baton
from baton.model import CaseResult

ENDED = "the case ended before the turn did"
FIRST = event("Let me see.")


def cut_short(adk: AdkServer, *messages: str) -> CaseResult:
    """Play a case that takes too long; its session is deleted all the same."""
    evaluation = baton.evaluate([case_of(*messages)], spec(adk), timeout=1)
    (result,) = evaluation.results
    assert (result.status, evaluation.exit_code) == ("error", 3)
    assert result.error == "the case did not end within 1 s (`timeout`)"
    assert not adk.sessions
    return result


@pytest.mark.parametrize(
    "answer",
    [
        stream(sse(FIRST), then="hang"),
        stream(sse(FIRST), b'data: {"author": "su', then="hang"),
        stream(sse(FIRST), "世".encode()[:1], then="hang"),
    ],
    ids=["between events", "in an event", "in a letter"],
)
def test_what_had_come_of_an_answer_is_kept(adk: AdkServer, answer: Reply) -> None:
    adk.always("run_sse", answer)
    trace = cut_short(adk).trace
    assert trace is not None
    assert said(trace) == ["Let me see."]
    assert [(turn.status, turn.error) for turn in trace.turns] == [("incomplete", ENDED)]


def test_the_turns_that_ended_are_kept_and_the_one_that_did_not_is_named(adk: AdkServer) -> None:
    adk.script("run_sse", None, HANG)
    trace = cut_short(adk, "one", "two", "three").trace
    assert trace is not None
    assert said(trace) == ["You said: one", None]
    assert [(turn.status, turn.error) for turn in trace.turns] == [
        ("completed", None),
        ("incomplete", ENDED),
    ]


def test_a_half_answer_of_run_tells_nothing_and_the_turn_is_there(adk: AdkServer) -> None:
    adk.missing = {"run_sse"}
    half = reply(json.dumps([FIRST]).encode()).pieces[0][:-20]
    adk.always("run", Reply((half,), "hang"))
    trace = cut_short(adk).trace
    assert trace is not None
    assert [(turn.runs, turn.error) for turn in trace.turns] == [([], ENDED)]


def test_a_case_that_said_nothing_yet_has_no_trace(adk: AdkServer) -> None:
    adk.script("create", HANG)
    assert cut_short(adk).trace is None


def test_a_case_that_waits_for_a_last_state_has_all_its_turns(adk: AdkServer) -> None:
    adk.script("state", HANG)
    trace = cut_short(adk).trace
    assert trace is not None
    assert [(turn.status, turn.error) for turn in trace.turns] == [("completed", None)]


def test_a_provider_that_is_cancelled_hands_over_what_it_saw(adk: AdkServer) -> None:
    adk.always("run_sse", stream(sse(FIRST), then="hang"))

    async def run() -> CaseCancelled:
        task = asyncio.ensure_future(aplay(adk))
        while not adk.asked("run_sse"):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)  # what was sent is read
        task.cancel()
        with pytest.raises(CaseCancelled) as raised:
            await task
        return raised.value

    trace = asyncio.run(run()).trace
    assert trace is not None
    assert said(trace) == ["Let me see."]
