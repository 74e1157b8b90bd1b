"""Answers that are cut, garbled, written in another encoding, or spelt as SSE allows."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest
from tests.providers.conftest import (
    SSE,
    AdkServer,
    Reply,
    case_of,
    event,
    play,
    refused,
    reply,
    said,
    spec,
    sse,
    stream,
)

import baton
from baton.http.responses import Body
from baton.model import Trace
from baton.providers.adk_options import AdkHttpOptions
from baton.providers.adk_server import AdkClient, access

GREETING = event("Grüße, 世界!")
BOM = b"\xef\xbb\xbf"


def whole(*pieces: bytes, media: str = SSE, **headers: str) -> Reply:
    """Answer with all of it at once, with its length."""
    return reply(b"".join(pieces), 200, media, **headers)


def answered(adk: AdkServer, answer: Reply) -> Trace:
    adk.always("run_sse", answer)
    return play(adk)


def broken(adk: AdkServer, answer: Reply) -> tuple[str, Trace]:
    """Return the reason and what was seen; a stream that broke is never asked for again."""
    adk.always("run_sse", answer)
    error = refused(adk)
    assert error.trace is not None
    assert str(error).startswith("turn 1: ")
    assert error.trace.turns[0].status == "incomplete"
    assert len(adk.asked("run_sse")) == 1
    assert not adk.sessions
    return str(error), error.trace


def short(data: bytes, missing: int) -> Reply:
    """Promise more bytes than come."""
    (piece,) = whole(data, b" " * missing).pieces
    return Reply((piece[:-missing],), "close")


TWO = sse(event("Let me see."), GREETING)
IN_A_LETTER = TWO[: TWO.index("世".encode()) + 1]


@pytest.mark.parametrize(
    "answer",
    [
        stream(sse(event("Let me see.")), then="close"),
        stream(sse(event("Let me see.")), b'data: {"author": "su', then="close"),
        stream(IN_A_LETTER, then="close"),
        short(sse(event("Let me see.")), 10),
        short(IN_A_LETTER, 40),
    ],
    ids=["between events", "in an event", "in a letter", "short", "short, in a letter"],
)
def test_a_cut_stream_is_an_error_with_what_was_seen(adk: AdkServer, answer: Reply) -> None:
    reason, trace = broken(adk, answer)
    assert "the answer was truncated after" in reason
    assert said(trace) == ["Let me see."]


def test_what_was_cut_in_two_is_counted(adk: AdkServer) -> None:
    _, trace = broken(adk, stream(IN_A_LETTER, then="close"))
    assert [lost.what for lost in trace.dropped] == ["a truncated event at the end of the stream"]


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"], ids=["CR", "CRLF", "LF"])
def test_a_cut_stream_keeps_what_was_seen_whatever_ends_its_lines(adk: AdkServer, end: str) -> None:
    data = IN_A_LETTER.replace(b"\n", end.encode())
    assert said(broken(adk, stream(data, then="close"))[1]) == ["Let me see."]


def test_a_stream_that_is_cut_in_another_encoding_keeps_what_was_seen(adk: AdkServer) -> None:
    data = TWO.decode().encode("utf-16")
    answer = stream(data[:-51], media="text/event-stream; charset=utf-16", then="close")
    assert said(broken(adk, answer)[1]) == ["Let me see."]


def test_a_cut_answer_of_run_is_an_error(adk: AdkServer) -> None:
    adk.missing = {"run_sse"}
    adk.always("run", short(json.dumps([GREETING]).encode(), 10))
    assert "turn 1: the answer was truncated after" in str(refused(adk))
    assert len(adk.asked("run")) == 1


def test_a_half_event_at_a_clean_end_is_an_error(adk: AdkServer) -> None:
    reason, trace = broken(adk, stream(IN_A_LETTER))
    assert "the stream was truncated before the turn ended" in reason
    assert said(trace) == ["Let me see."]


def test_a_last_event_needs_no_blank_line(adk: AdkServer) -> None:
    assert said(answered(adk, stream(sse(GREETING).rstrip()))) == ["Grüße, 世界!"]


def test_a_clean_end_without_a_last_word_is_scored(adk: AdkServer) -> None:
    thought = {"text": "Nothing to say to this.", "thought": True}
    adk.always("run_sse", stream(sse(event(content={"parts": [thought], "role": "model"}))))
    evaluation = baton.evaluate([case_of(agents=["support"])], spec(adk))
    (result,) = evaluation.results
    assert (result.status, result.error) == ("passed", None)
    assert result.trace is not None
    assert result.trace.turns[0].status == "incomplete"
    assert said(result.trace) == [None]


def test_an_end_before_a_tool_has_answered_is_no_end(adk: AdkServer) -> None:
    asked = {"functionCall": {"id": "c1", "name": "look_up", "args": {}}}
    adk.always("run_sse", stream(sse(event(content={"parts": [asked], "role": "model"}))))
    (result,) = baton.evaluate([case_of(agents=["support"])], spec(adk))
    assert result.status == "error"
    assert "ends before `look_up` is answered" in (result.error or "")


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b": heartbeat\n\n", sse({}), sse({"foo": 1}, {"id": "e1"})],
    ids=["nothing", "blank", "heartbeat", "empty", "strange"],
)
def test_no_event_of_an_agent_is_an_error(adk: AdkServer, data: bytes) -> None:
    reason, trace = broken(adk, whole(data))
    assert reason == "turn 1: the answer contains no event of an agent"
    assert trace.turns[0].error == "the answer contains no event of an agent"


def test_no_events_of_run_are_an_error(adk: AdkServer) -> None:
    adk.missing = {"run_sse"}
    adk.always("run", reply([]))
    assert "turn 1: the answer contains no event of an agent" in str(refused(adk))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"dta: {}", "answer:3: no part of an event stream: “dta: {}”; lines start with `data:`"),
        (b"Internal Server Error", "no part of an event stream: “Internal Server Error”"),
        (b"data: oops", "answer:3: event 2: not JSON"),
        (b"data: 5", "answer:3: event 2: expected a mapping, got 5"),
        (b"data: null", "answer:3: event 2: expected a mapping"),
        (b'data: {"author": 5}', "answer:3: author: event 2: expected text or null, got 5"),
    ],
)
def test_a_broken_line_is_an_error_with_its_number(
    adk: AdkServer, line: bytes, reason: str
) -> None:
    data = sse(event("Let me see.")) + line + b"\n\n" + sse(event("Done."))
    told, trace = broken(adk, stream(data))
    assert reason in told
    assert said(trace) == ["Let me see."]


@pytest.mark.parametrize("start", [b"<!DOCTYPE html>\n", b"\n <HTML>"])
def test_a_page_that_is_called_a_stream_is_reported_as_a_page(adk: AdkServer, start: bytes) -> None:
    reason, _ = broken(adk, stream(start, b"<title>Sign in</title></html>"))
    assert "turn 1: the server answered an HTML page (a login page?" in reason


def test_text_that_is_not_a_stream_is_quoted(adk: AdkServer) -> None:
    reason, _ = broken(adk, whole(b"the agent is asleep", media="text/plain"))
    assert reason == "turn 1: the server answered “the agent is asleep”, not events"


@pytest.mark.parametrize("body", [[5], [{"author": 5}], ["x"]])
def test_an_answer_of_run_that_is_not_events_is_an_error(adk: AdkServer, body: Any) -> None:
    adk.missing = {"run_sse"}
    adk.always("run", reply(body))
    assert "turn 1: the answer is not events of ADK: answer:1: [0]" in str(refused(adk))


@pytest.mark.parametrize("charset", ["iso-8859-1", "LATIN1", "utf-16", "utf-16-le", "cp1252"])
def test_an_encoding_that_is_named_is_read(adk: AdkServer, charset: str) -> None:
    data = sse(event("Grüße!")).decode().encode(charset)
    trace = answered(adk, stream(data, media=f"text/event-stream; charset={charset}"))
    assert said(trace) == ["Grüße!"]


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-16"])
@pytest.mark.parametrize("media", ["text/event-stream", SSE])
def test_an_encoding_that_is_not_named_is_an_error(
    adk: AdkServer, charset: str, media: str
) -> None:
    data = sse(event("Grüße!")).decode().encode(charset)
    reason, _ = broken(adk, stream(data, media=media))
    assert "turn 1: the answer is not utf-8: " in reason


@pytest.mark.parametrize("charset", ["klingon", "base64", "utf-16"])
def test_an_encoding_that_is_not_the_answers_own_is_an_error(adk: AdkServer, charset: str) -> None:
    answer = stream(sse(GREETING)[:-1], media=f"text/event-stream; charset={charset}")
    assert f"turn 1: the answer is not {charset}" in broken(adk, answer)[0]


@pytest.mark.parametrize("route", ["run_sse", "run"])
def test_a_byte_order_mark_is_not_part_of_the_answer(adk: AdkServer, route: str) -> None:
    if route == "run":
        adk.missing = {"run_sse"}
        adk.always("run", reply(BOM + json.dumps([GREETING]).encode()))
    else:
        adk.always("run_sse", stream(BOM, sse(GREETING)))
    assert said(play(adk)) == ["Grüße, 世界!"]


WRITTEN = json.dumps(GREETING, ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        f"data: {WRITTEN}\r\n\r\n",
        f"data: {WRITTEN}\r\r",
        f"data:{WRITTEN}\n\n",
        f"event: message\nid: 7\nretry: 100\ndata: {WRITTEN}\n\n",
        f": heartbeat\n\n:\n\ndata: {WRITTEN}\n\n: bye\n\n",
        f"\n\n\ndata: {WRITTEN}\n\n\n\n",
        "".join(f"data: {line}\n" for line in json.dumps(GREETING, indent=1).split("\n")) + "\n",
        f"data: {WRITTEN.replace('世', chr(0x2028) + '世')}\n\n",
        f"data:\n\ndata: \n\ndata\n\ndata: {WRITTEN}\n\ndata:\n",
        f"data: {WRITTEN}\n\ndata: [DONE]\n\n",
        f"data: {WRITTEN}\n\ndata: [DONE]",
    ],
    ids=[
        *("CRLF", "CR", "no space", "fields", "comments", "blanks", "many lines", "U+2028"),
        *("empty data", "done", "done at the end"),
    ],
)
def test_a_stream_may_be_spelt_in_every_way_that_sse_allows(adk: AdkServer, text: str) -> None:
    (answer,) = said(answered(adk, stream(text.encode())))
    assert (answer or "").replace("\u2028", "") == "Grüße, 世界!"


def test_chunks_may_end_anywhere(adk: AdkServer) -> None:
    data = sse(event("Let me see."), GREETING).replace(b"\n", b"\r\n")
    pieces = [data[at : at + 1] for at in range(len(data))]
    assert said(answered(adk, stream(*pieces))) == ["Grüße, 世界!"]


@pytest.mark.parametrize("media", ["text/plain", "application/octet-stream", "text/event-stream"])
def test_a_stream_is_recognised_by_its_text_whatever_it_is_called(
    adk: AdkServer, media: str
) -> None:
    assert said(answered(adk, stream(sse(GREETING), media=media))) == ["Grüße, 世界!"]


def test_events_of_run_sse_may_come_as_a_list(adk: AdkServer) -> None:
    assert said(answered(adk, reply([event("a"), event("b")]))) == ["b"]


def test_a_packed_answer_is_unpacked(adk: AdkServer) -> None:
    packed = gzip.compress(sse(GREETING))
    assert said(answered(adk, whole(packed, content_encoding="gzip"))) == ["Grüße, 世界!"]


@pytest.mark.parametrize(
    "data",
    [b"not packed at all", gzip.compress(sse(GREETING))[:40]],
    ids=["not packed", "cut"],
)
def test_an_answer_that_cannot_be_unpacked_is_an_error(adk: AdkServer, data: bytes) -> None:
    broken(adk, whole(data, content_encoding="gzip"))


@pytest.mark.parametrize("field", ["error", "detail", "errorMessage"])
def test_an_error_frame_is_the_error_of_its_turn(adk: AdkServer, field: str) -> None:
    adk.always("run_sse", stream(sse(event("Let me see."), {field: "quota used up"})))
    error = refused(adk)
    assert str(error) == "turn 1: quota used up"
    assert error.trace is not None
    (turn,) = error.trace.turns
    assert (turn.status, turn.error) == ("failed", "quota used up")
    assert said(error.trace) == ["Let me see."]


def test_an_error_frame_alone_is_the_error_of_its_turn(adk: AdkServer) -> None:
    adk.always("run_sse", stream(sse({"error": "model not found"})))
    assert str(refused(adk)) == "turn 1: model not found"


def test_an_event_with_an_error_code_is_the_error_of_its_run(adk: AdkServer) -> None:
    failed = {"author": "support", "errorCode": "SAFETY", "errorMessage": "blocked"}
    adk.always("run_sse", stream(sse(failed, {"error": "blocked", "error_details": {}})))
    error = refused(adk)
    assert str(error) == "turn 1: blocked"
    assert error.trace is not None
    assert [(run.agent, run.status) for run in error.trace.turns[0].runs] == [("support", "failed")]


def test_an_error_that_was_got_over_is_not_one(adk: AdkServer) -> None:
    failed = {"author": "support", "errorCode": "429", "errorMessage": "busy"}
    assert said(answered(adk, stream(sse(failed, event("Here I am."))))) == ["Here I am."]


def test_keys_that_no_rule_reads_are_counted(adk: AdkServer) -> None:
    odd = [event("a", mood="good"), event("b", mood="bad")]
    trace = answered(adk, stream(sse(*odd)))
    assert [(lost.what, lost.count) for lost in trace.dropped] == [("key `mood`", 2)]


def test_an_answer_without_end_is_not_read_to_its_end(adk: AdkServer) -> None:
    adk.always("run_sse", stream(*[b": on and on\n"] * 2000, then="hang"))
    options = AdkHttpOptions(**spec(adk), max_answer_mib=2**-6)

    async def run() -> Body:
        client = AdkClient(options, access(options))
        try:
            return await client.run("/run_sse", {"sessionId": "s1"})
        finally:
            await client.close()

    body = asyncio.run(run())
    assert body.cut == "the answer is longer than 0.015625 MiB (`max_answer_mib`)"
    assert len(body.data) < 2**17


def test_an_answer_that_breaks_off_the_first_message_ends_the_case(adk: AdkServer) -> None:
    adk.script("run_sse", stream(sse(event("so")), then="close"))
    refused(adk, case_of("one", "two"))
    assert len(adk.asked("run_sse")) == 1
