"""The server itself: what it keeps, how fast it is, and that it ends."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time

import httpx2
import pytest

from baton.model import InputError
from baton.testing import Api, LlmServer, Reply, llm_server

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def post(llm: LlmServer, path: str = "/v1/chat/completions", **more: object) -> httpx2.Response:
    return httpx2.post(llm.url + path, json={**BODY, **more})


async def post_many(llm: LlmServer, count: int, at_once: int) -> float:
    """Return how many seconds it took."""
    limits = httpx2.Limits(max_connections=at_once)
    async with httpx2.AsyncClient(limits=limits, timeout=30) as client:
        url = llm.base_url() + "/chat/completions"
        start = time.perf_counter()
        await asyncio.gather(*(client.post(url, json=BODY) for _ in range(count)))
        return time.perf_counter() - start


def test_it_listens_on_loopback_alone(llm: LlmServer) -> None:
    assert llm.url == f"http://127.0.0.1:{llm.port}"
    socket.create_connection(("127.0.0.1", llm.port)).close()
    with pytest.raises(OSError, match=r"refused|assign"):
        socket.create_connection(("127.0.0.2", llm.port))


def test_it_ends_with_its_context_with_answers_under_way() -> None:
    before = threading.active_count()
    with llm_server(lambda _: Reply(answer="late", delay=60)) as llm:
        waiting = socket.create_connection(("127.0.0.1", llm.port))
        text = json.dumps(BODY)
        head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(text)}\r\n\r\n"
        waiting.sendall((head + text).encode())
        while not llm.in_flight:
            time.sleep(0.01)
    waiting.settimeout(20)
    with waiting:
        assert waiting.recv(1) == b""
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", llm.port))


def test_a_port_that_is_taken_is_reported(llm: LlmServer) -> None:
    words = f"cannot listen to port {llm.port}"
    with pytest.raises(InputError, match=words), llm_server("x", port=llm.port):
        pass


def test_a_new_script_starts_from_its_beginning(llm: LlmServer) -> None:
    for _ in range(2):
        llm.script = ["one", "two"]
        answers = [post(llm).json()["choices"][0]["message"]["content"] for _ in range(2)]
        assert answers == ["one", "two"]
    assert [request.number for request in llm.requests] == [1, 2, 3, 4]
    llm.clear()
    assert (llm.requests, llm.max_in_flight) == ([], 0)


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/chat/completions", "openai"),
        ("/mistral/v1/chat/completions", "mistral"),
        ("/v1/responses", "openai_responses"),
        ("/v1/messages?beta=true", "anthropic"),
        ("/v1beta/models/gemini:generateContent", "google"),
        ("/v1/publishers/google/models/gemini:streamGenerateContent?alt=sse", "google"),
        ("/model/a%3Ab%2Fc/converse", "bedrock"),
    ],
)
def test_a_path_tells_the_api(llm: LlmServer, path: str, api: Api) -> None:
    llm.script = ["fine"]
    assert post(llm, path).status_code == 200
    assert llm.requests[0].api == api
    assert llm.requests[0].model == {"google": "gemini", "bedrock": "a:b/c"}.get(api, "m")


def test_what_is_not_a_request_is_refused_and_not_remembered(llm: LlmServer) -> None:
    assert post(llm, "/v1/embeddings").status_code == 404
    assert httpx2.get(llm.url + "/v1/messages").status_code == 404
    assert post(llm, messages="hello").status_code == 400
    assert httpx2.post(llm.url + "/v1/messages", content=b"{").status_code == 400
    with socket.create_connection(("127.0.0.1", llm.port)) as made:
        made.sendall(b"this is no HTTP\r\n\r\n")
        assert made.recv(100) == b""
    assert llm.requests == []


def test_requests_may_come_in_pieces_and_answers_keep_the_connection(llm: LlmServer) -> None:
    llm.script = ["one", "two"]

    def pieces() -> object:
        for letter in json.dumps(BODY):
            yield letter.encode()

    with httpx2.Client() as client:
        url = llm.base_url() + "/chat/completions"
        for word in ("one", "two"):
            body = client.post(url, content=pieces()).json()  # type: ignore[arg-type]
            assert body["choices"][0]["message"]["content"] == word


def sent_and_got(llm: LlmServer, *pieces: str, until: bytes) -> bytes:
    """Send pieces one after the other, each when something has come back."""
    got = b""
    with socket.create_connection(("127.0.0.1", llm.port), timeout=30) as made:
        for piece in pieces:
            made.sendall(piece.encode())
            got += made.recv(4096)
        while until not in got and (more := made.recv(4096)):
            got += more
    return got


def test_requests_may_come_all_at_once(llm: LlmServer) -> None:
    llm.script = [f"word {number};" for number in range(1, 51)]
    text = json.dumps(BODY)
    one = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(text)}\r\n\r\n{text}"
    got = sent_and_got(llm, one * 50, until=b"word 50;")
    assert got.index(b"word 1;") < got.index(b"word 2;") < got.index(b"word 50;")


def test_a_client_that_waits_to_be_let_in_is_let_in(llm: LlmServer) -> None:
    llm.script = ["fine"]
    text = json.dumps(BODY)
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(text)}\r\n"
    ends = "expect: 100-continue\r\nconnection: close\r\n\r\n"
    got = sent_and_got(llm, head + ends, text, until=b"no such text")
    assert got.startswith(b"HTTP/1.1 100")
    assert b'"text":"fine"' in got


def test_secrets_are_not_kept(llm: LlmServer) -> None:
    llm.script = ["fine"]
    names = ("authorization", "x-api-key", "x-goog-api-key", "x-amz-security-token", "cookie")
    headers = dict.fromkeys(names, "hush") | {"x-trace": "shown"}
    httpx2.post(llm.url + "/v1/messages?key=hush", json=BODY, headers=headers)
    kept = llm.requests[0]
    assert [kept.headers[name] for name in names] == ["***"] * len(names)
    assert kept.headers["x-trace"] == "shown"
    assert "hush" not in str(kept)


def test_a_judge_is_pointed_to_it(llm: LlmServer) -> None:
    assert llm.judge("anthropic", "claude", samples=3) == {
        "model": "anthropic:claude",
        "base_url": llm.url,
        "samples": 3,
    }
    assert llm.judge() == {"model": "openai:scripted", "base_url": f"{llm.url}/v1"}


def test_slow_answers_are_slow_side_by_side(llm: LlmServer) -> None:
    llm.script = lambda _: Reply(answer="fine", delay=0.2)
    seconds = asyncio.run(post_many(llm, 100, 20))
    assert seconds >= 1.0
    assert llm.max_in_flight == 20
    assert llm.in_flight == 0
    assert len(llm.requests) == 100


def test_a_client_that_goes_away_is_not_in_flight(llm: LlmServer) -> None:
    llm.script = lambda _: Reply(answer="late", delay=60)
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(llm.base_url() + "/chat/completions", json=BODY, timeout=0.1)
    end = time.monotonic() + 60
    while llm.in_flight and time.monotonic() < end:
        time.sleep(0.01)
    assert (llm.in_flight, llm.max_in_flight) == (0, 1)


def test_what_only_looks_whether_it_is_there_gets_no_body(llm: LlmServer) -> None:
    with httpx2.Client() as client:
        answers = [client.head(llm.url), client.get(llm.url)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert [len(answer.content) > 0 for answer in answers] == [False, True]
