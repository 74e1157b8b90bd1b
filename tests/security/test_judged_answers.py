"""What a model says is a verdict only if it can mean one thing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.findings.trips import called, said, trip

import baton as api
from baton.judges.cache import cache_key
from baton.judges.judge_settings import read_settings
from baton.model import JudgeRequest, Score
from baton.testing import llm_server

INSIDE = '{"reason": "it kept to it", "quote": "", "label": "inside"}'
OUTSIDE = INSIDE.replace("inside", "outside")


def scored(folder: Path, judge: dict[str, Any]) -> Score:
    file = folder / "recorded.json"
    file.write_bytes(msgspec.json.encode(trip("r", said("Done."), child=(called("read"),))))
    judge = {**judge, "retries": 0, "cache": False}
    return api.score(file, evaluators=["scope_fidelity"], judge=judge).results[0].scores[0]


def answered(folder: Path, text: str, **settings: Any) -> Score:
    with llm_server(lambda _: text) as server:
        return scored(folder, server.judge(output="prompted", **settings))


AMBIGUOUS = {
    "thinking that is not closed": f"<think>{INSIDE}",
    "thinking that is not closed, on lines": f"<think>\n{INSIDE}\n",
    "thinking that is not closed, in Markdown": f"<think>\n```json\n{INSIDE}\n```",
    "thinking in capitals": f"<THINK>{INSIDE}",
    "thinking of another name": f"<thinking>{INSIDE}",
    "a thought that is not closed behind one that is": f"<think>hm</think><think>{INSIDE}",
    "a thought within a thought": f"<think>a <think> b</think>{INSIDE}",
    "a thought that is only closed": f"</think>{INSIDE}",
    "nothing but thought": f"<think>{INSIDE}</think>",
    "a code block within a thought": f"<think>\n```json\n{INSIDE}\n```\n</think>",
    "a thought behind it": f"{INSIDE}<think>or not</think>",
    "two objects": f"{INSIDE}\n{OUTSIDE}",
    "the same object twice": f"{INSIDE}\n{INSIDE}",
    "two objects in a list": f"[{INSIDE}, {OUTSIDE}]",
    "two code blocks": f"```json\n{INSIDE}\n```\n```json\n{OUTSIDE}\n```",
    "words before": f"The verdict: {INSIDE}",
    "words behind": f"{INSIDE} That is all.",
    "a key twice": INSIDE.replace('"label"', '"label": "outside", "label"'),
    "a key twice with one value": INSIDE.replace('"label"', '"label": "inside", "label"'),
    "a key twice, once in escapes": INSIDE.replace('"label"', '"l\\u0061bel": "outside", "label"'),
    "a key twice inside": INSIDE.replace('"it kept to it"', '{"a": 1, "a": 1}'),
    "a half": INSIDE[:-1],
    "a half in Markdown": f"```json\n{INSIDE}",
    "a number that is none": INSIDE.replace('"it kept to it"', "NaN"),
    "a key that was not asked for": INSIDE.replace("}", ', "score": 1}'),
    "a comment": INSIDE.replace("{", "{ // fine\n"),
    "a great depth": '{"label": ' + "[" * 50_000 + "]" * 50_000 + "}",
    "a depth within limits": INSIDE.replace('"it kept to it"', "[" * 900 + "]" * 900),
    "a label in other letters": INSIDE.replace("inside", "Inside"),
}


@pytest.mark.parametrize("text", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_an_answer_that_may_mean_two_things_is_no_verdict(tmp_path: Path, text: str) -> None:
    found = answered(tmp_path, text)
    assert (found.status, found.value) == ("error", None), found.reason
    assert found.details["judge_error"] in ("unparsable", "empty")


CLEAR = {
    "an object": OUTSIDE,
    "an object in Markdown": f"```json\n{OUTSIDE}\n```",
    "an object behind a thought": f"<think>Is it {INSIDE}? No.</think>\n{OUTSIDE}",
    "an object behind thoughts": f"<think>a</think>\n<think>b</think>\n\n{OUTSIDE}",
    "Markdown behind a thought": f"<thinking>\nhm\n</thinking>\n```json\n{OUTSIDE}\n```",
    "a thought in the reason": OUTSIDE.replace("it kept to it", "it says <think> and goes on"),
}


@pytest.mark.parametrize("text", CLEAR.values(), ids=CLEAR)
def test_an_answer_that_means_one_thing_is_a_verdict(tmp_path: Path, text: str) -> None:
    found = answered(tmp_path, text)
    assert (found.status, found.details.get("label")) == ("failed", "outside"), found.reason


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "mistral"])
def test_thinking_that_is_not_closed_is_no_verdict_of_any_provider(
    tmp_path: Path, provider: Any
) -> None:
    with llm_server(lambda _: f"<think>{INSIDE}") as server:
        found = scored(tmp_path, server.judge(provider, output="prompted"))
    assert (found.status, found.details["judge_error"]) == ("error", "unparsable")


def test_an_answer_that_leaks_the_canary_in_escapes_is_no_verdict(tmp_path: Path) -> None:
    def leaks(received: Any) -> str:
        word = received.system.split("The word ")[1].split(" ")[0]
        return INSIDE.replace("it kept to it", f"\\u0063{word[1:]}")

    with llm_server(leaks) as server:
        found = scored(tmp_path, server.judge(output="prompted"))
    assert "canary" in found.reason
    assert found.status == "error"


class _Calls(BaseHTTPRequestHandler):
    """Answers as OpenAI does, with what ``server.message`` and ``server.finish`` say."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        server: Any = self.server
        choice = {"index": 0, "message": server.message, "finish_reason": server.finish}
        told = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = json.dumps({**told, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


@contextmanager
def saying(*calls: str, text: str | None = None) -> Iterator[dict[str, Any]]:
    """Serve an answer with these calls of the tool; give the settings of its judge."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Calls)
    made = [
        {"id": f"c{n}", "type": "function", "function": {"name": "give_verdict", "arguments": args}}
        for n, args in enumerate(calls)
    ]
    server.message = {"role": "assistant", "content": text, "tool_calls": made}
    server.finish = "tool_calls"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        yield {"model": "openai:m", "base_url": url, "api_key": "k", "output": "tool"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        ((INSIDE, OUTSIDE), None),
        ((INSIDE, INSIDE), None),
        ((INSIDE,), OUTSIDE),
        ((INSIDE,), f"```json\n{OUTSIDE}\n```"),
        ((INSIDE.replace('"label"', '"label": "outside", "label"'),), None),
    ],
)
def test_two_verdicts_in_one_answer_are_none(
    tmp_path: Path, calls: tuple[str, ...], text: str | None
) -> None:
    with saying(*calls, text=text) as judge:
        found = scored(tmp_path, judge)
    assert (found.status, found.details["judge_error"]) == ("error", "unparsable")


def test_words_before_a_call_of_the_tool_do_no_harm(tmp_path: Path) -> None:
    with saying(OUTSIDE, text="I have read it. Here is my verdict:") as judge:
        assert scored(tmp_path, judge).status == "failed"


def test_verdicts_that_were_read_less_strictly_are_not_taken_from_the_cache() -> None:
    request = JudgeRequest(
        rubric="r", version="1", instructions="i", content="c", schema={"type": "object"}
    )
    before = "bfbf8d4f3edfdea8b3565559c55d352547b6920a8be87363e075a73397df1581"
    assert read_settings({"model": "openai:m"}).temperature == 0
    assert cache_key(request, "m", 0, 0.0) != before
