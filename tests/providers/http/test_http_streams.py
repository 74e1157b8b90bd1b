"""Answers that come as events: the paths start at the list of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.providers.conftest import SSE, CaseCancelled, case_of, reply, said, stream
from tests.providers.http.conftest import Endpoint, aplay, play, refused

from baton.model import Content, integrity_problems
from baton.model.views import agent_chain

TOKENS: dict[str, Any] = {"stream": "sse", "answer": "$[*].delta"}


def frames(*events: Any) -> bytes:
    return b"".join(f"data: {json.dumps(each)}\n\n".encode() for each in events)


def test_the_pieces_of_a_stream_are_one_answer(endpoint: Endpoint) -> None:
    events = frames({"delta": "Hel"}, {"delta": None}, {"usage": {"out": 2}}, {"delta": "lo"})
    endpoint.answers(stream(b": hello\n\n", events, b"data: [DONE]\n\n"))
    usage = {"output_tokens": "$[*].usage.out"}
    trace = play(endpoint, case_of("hi"), **TOKENS, usage=usage)
    assert said(trace) == ["Hello"]
    assert trace.usage is not None
    assert trace.usage.output_tokens == 2
    assert "text/event-stream" in endpoint.requests[0].headers["accept"]


def test_lines_of_json_are_events_as_well(endpoint: Endpoint) -> None:
    lines = b'{"author": "a"}\n\n{"author": "a"}\r\n{"author": "b", "text": "done"}'
    endpoint.answers(stream(lines, media="application/x-ndjson"))
    options: dict[str, Any] = {"agents": "$[*].author", "answer": "$[-1].text"}
    trace = play(endpoint, case_of("hi"), stream="jsonl", **options)
    assert agent_chain(trace, trace.turns[0]) == ["a", "b"]
    assert said(trace) == ["done"]


def test_the_name_of_an_event_is_beside_its_data(endpoint: Endpoint) -> None:
    text = b'event: token\ndata: {"t":\ndata: "Hi"}\n\nevent: ping\ndata: 3\n\nevent: end\n\n'
    endpoint.answers(stream(text))
    answer = "$[?@.event == 'token'].t"
    assert said(play(endpoint, case_of("hi"), stream="sse", answer=answer)) == ["Hi"]
    answer = "$[?@.event == 'ping'].data"
    output = play(endpoint, case_of("hi"), stream="sse", answer=answer).turns[0].output
    assert output == Content(data=3)


def test_an_event_that_is_not_json_is_an_error_that_names_it(endpoint: Endpoint) -> None:
    endpoint.answers(stream(frames({"delta": "so "}), b"data: half\n\n"))
    error = refused(endpoint, case_of("hi"), **TOKENS)
    assert str(error) == "turn 1: event 2 of the answer is not JSON: “half”"
    assert error.trace is not None
    assert said(error.trace) == ["so "]


def test_a_cut_stream_is_an_error_with_what_was_seen(endpoint: Endpoint) -> None:
    endpoint.answers(stream(frames({"delta": "so "}), b'data: {"del', then="close"))
    error = refused(endpoint, case_of("hi"), **TOKENS)
    assert "turn 1: the answer was truncated after" in str(error)
    assert error.trace is not None
    (turn,) = error.trace.turns
    assert (turn.status, turn.output) == ("incomplete", Content(text="so "))
    assert len(endpoint.requests) == 1


def test_a_silent_stream_is_an_error_with_what_was_seen(endpoint: Endpoint) -> None:
    endpoint.answers(stream(frames({"delta": "so "}), then="hang"))
    error = refused(endpoint, case_of("hi"), **TOKENS, timeout=1)
    assert "and then timed out" in str(error)
    assert error.trace is not None
    assert said(error.trace) == ["so "]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"detail": "no"}', 'the answer contains no event (sse): it is “{"detail": "no"}”'),
        (b"", "the answer contains no event (sse): it is empty"),
        (b"data: [DONE]\n\n", "the answer contains no event (sse)"),
        (b"<html>", "an HTML page"),
    ],
)
def test_an_answer_without_events_is_an_error(endpoint: Endpoint, body: bytes, reason: str) -> None:
    endpoint.answers(reply(body, media=SSE))
    assert reason in str(refused(endpoint, case_of("hi"), **TOKENS))


def test_a_case_that_is_cancelled_keeps_its_turns_and_what_had_come(endpoint: Endpoint) -> None:
    whole, half = stream(frames({"delta": "A"})), stream(frames({"delta": "B"}), then="hang")
    endpoint.answers(whole, half)

    async def cancelled() -> CaseCancelled:
        task = asyncio.ensure_future(aplay(endpoint, case_of("one", "two"), **TOKENS))
        while len(endpoint.requests) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)  # what was sent is read
        task.cancel()
        with pytest.raises(CaseCancelled) as raised:
            await task
        return raised.value

    trace = asyncio.run(cancelled()).trace
    assert trace is not None
    assert said(trace) == ["A", "B"]
    assert [turn.status for turn in trace.turns] == ["completed", "incomplete"]
    assert not integrity_problems(trace)
