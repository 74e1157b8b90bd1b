"""Guards of programs that count on a server: one limit for all, restarts, projects, servers away."""

from __future__ import annotations

import json
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from baton.guard import Guard, Policy, ServerStore
from baton.guard.claude import answer
from baton.guard.decide_event import Event
from baton.guard.policy import Rule
from baton.guard.state import FAILURES, State
from baton.guard.state import Store as GuardStore
from baton.model import InputError, RefusedError
from baton.server.access import create_key
from baton.server.guards import GuardStores
from baton.server.store import Store

from .sending import Client
from .serving import api

MANY = """
import sys, time
from baton.guard.decide_event import Event
from baton.guard.policy import Policy, Rule
from baton.guard.state import open_state
store, who = open_state(sys.argv[1]), sys.argv[2]
policy = Policy(rules=[Rule(name="all", max_dispatches=200)])
store.spent("t")
print("ready", flush=True)
sys.stdin.readline()
made = failed = 0
for n in range(200):
    sent = Event(on="dispatch", tree="t", id=f"{who}{n}", parent=who, to="lab", at=time.time())
    decision = store.decide(policy, sent)
    made += decision.allowed
    failed += bool(decision.failed)
print(made, failed)
store.close()
"""


class AskedStores(GuardStores):
    """Counts the requests."""

    asked = 0

    def of(self, project: int) -> GuardStore:
        self.asked += 1
        return super().of(project)


@contextmanager
def counting(store: Store, folder: Path, guards: GuardStores | None = None) -> Iterator[str]:
    """Serve the API, with the state of guards below a folder."""
    guards = guards or GuardStores(folder)
    try:
        with api(store, guards=guards) as url:
            yield url
    finally:
        guards.close()


@contextmanager
def asking(url: str, key: str | None = None, project: str | None = None) -> Iterator[State]:
    state = ServerStore(url, key=key, project=project)
    try:
        yield state
    finally:
        state.close()


def limit(on_error: str = "closed", **limits: int) -> Policy:
    rules = [Rule(name=name, **{name: value}) for name, value in limits.items()]  # type: ignore[arg-type]
    return Policy(on_error=on_error, rules=rules)  # type: ignore[arg-type]


def sent(number: int, parent: str = "p", **fields: object) -> Event:
    given = {"to": "lab", "sender": "desk", "depth": 1, "at": time.time(), **fields}
    return Event(on="dispatch", tree="t", id=f"d{number}", parent=parent, **given)  # type: ignore[arg-type]


def test_two_processes_with_200_dispatches_each_stop_at_one_limit(
    store: Store, tmp_path: Path
) -> None:
    with counting(store, tmp_path) as url:
        both = [
            subprocess.Popen(
                [sys.executable, "-c", MANY, url, who],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for who in "ab"
        ]
        for each in both:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for each in both:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        told = [list(map(int, each.communicate(timeout=60)[0].split())) for each in both]
        assert [failed for _, failed in told] == [0, 0]
        assert sum(made for made, _ in told) == 200
        with asking(url) as state:
            assert state.spent("t").dispatches == 200


def test_each_figure_is_counted_and_survives_a_restart_of_the_server(
    store: Store, tmp_path: Path
) -> None:
    policy = limit(max_per_parent=3, max_fan_out=2, max_same_task=1)
    with counting(store, tmp_path) as url, asking(url) as state:
        state.begin("t")
        assert state.decide(policy, sent(1, prompt="one")).allowed
        assert state.decide(policy, sent(2, prompt="ONE ")).rule == "max_same_task"
        assert state.decide(policy, sent(3, prompt="two")).allowed
        assert state.decide(policy, sent(4, prompt="three")).rule == "max_fan_out"
        state.rename("t", "d1", "another")
        assert (state.knows("t", "d1"), state.end("t", "d1")) == (False, False)
        assert (state.knows("t", "another"), state.end("t", "another")) == (True, True)
        state.use("t", tokens=10, cost_usd=0.25)
    with counting(store, tmp_path) as url, asking(url) as state:
        state.use("t", tokens=5)
        assert state.spent("t")[:3] == (2, 15, 0.25)
        assert state.decide(policy, sent(4, prompt="three")).allowed
        assert state.end("t", "d4")
        assert state.decide(policy, sent(5, prompt="four")).rule == "max_per_parent"
        assert state.decide(limit(max_tokens=15), sent(6)).rule == "max_tokens"


def test_a_limit_that_others_reach_meanwhile_is_met_when_it_counts(
    store: Store, tmp_path: Path
) -> None:
    with counting(store, tmp_path) as url, asking(url) as state, asking(url) as other:
        policy = limit(max_dispatches=1)
        count = state.count
        asked: list[int] = []

        def first_comes_another(*given: object) -> object:
            if not asked:
                asked.append(1)
                assert other.decide(policy, sent(2)).allowed
            return count(*given)  # type: ignore[arg-type]

        state.count = first_comes_another  # type: ignore[method-assign, assignment]
        decision = state.decide(policy, sent(1))
        assert (decision.allowed, decision.rule) == (False, "max_dispatches")
        assert other.spent("t").dispatches == 1


def test_another_project_sees_nothing_and_a_key_needs_the_right(
    store: Store, tmp_path: Path
) -> None:
    store.project("other", create=True)
    own = create_key(store, "default", "program", ["ingest"])
    foreign = create_key(store, "other", "program", ["ingest"])
    reader = create_key(store, "default", "reader", ["read"])
    policy = limit(max_dispatches=1)
    with counting(store, tmp_path) as url:
        with asking(url, own) as state:
            assert state.decide(policy, sent(1)).allowed
            assert not state.decide(policy, sent(2)).allowed
        with asking(url, foreign) as state:
            assert state.spent("t").dispatches == 0
            assert not state.end("t", "d1")
            assert state.decide(policy, sent(2)).allowed
        for key, project, reason in (
            (reader, None, "no right to ingest"),
            (None, None, "needs an API key"),
            (foreign, "default", "does not belong to project"),
        ):
            with asking(url, key, project) as state:
                decision = state.decide(policy, sent(3))
                assert (decision.allowed, decision.rule) == (False, "guard")
                assert reason in decision.failed["guard"]


def test_texts_stay_in_the_program(store: Store, tmp_path: Path) -> None:
    with counting(store, tmp_path) as url, asking(url) as state:
        guard = Guard(limit(max_dispatches=9), store=state)
        with guard.run("desk", "the-request"), guard.dispatch("lab", "the-secret-plan"):
            assert guard.output("the-answer") == "the-answer"
        assert guard.store is state
    kept = b"".join(file.read_bytes() for file in (tmp_path / "guards").iterdir())
    assert kept
    assert not [text for text in (b"the-request", b"secret", b"the-answer") if text in kept]


@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_a_server_that_is_away_closes_or_opens_as_the_policy_says(on_error: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with asking(url) as state:
            decision = state.decide(limit(on_error, max_dispatches=9), sent(1))
            assert decision.allowed is (on_error == "open")
            assert "cannot connect" in decision.failed["guard"]
            guard = Guard(limit(on_error, max_dispatches=9), store=state)
            if on_error == "closed":
                with pytest.raises(RefusedError), guard.run("desk"):
                    pass
            else:
                with guard.run("desk"), guard.dispatch("lab", "x"):
                    guard.use(tokens=1)
            with pytest.raises(FAILURES):
                state.spent("t")


def test_a_server_that_does_not_answer_is_given_up_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with asking(url) as state:
            began = time.monotonic()
            decision = state.decide(limit(max_dispatches=9), sent(1))
            assert not decision.allowed
            assert time.monotonic() - began < 30


def test_hooks_of_claude_code_count_on_a_server(store: Store, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("rules: [{max_dispatches: 1}]")
    told = {
        "session_id": "s",
        "hook_event_name": "PreToolUse",
        "prompt_id": "p",
        "tool_name": "Agent",
        "tool_input": {"subagent_type": "lab", "prompt": "x"},
    }
    with counting(store, tmp_path) as url:
        first, second = (
            answer(policy, url, json.dumps({**told, "tool_use_id": each}).encode())
            for each in ("a", "b")
        )
    assert first is None
    assert "at most 1 are allowed" in json.dumps(second)
    away = answer(policy, url, json.dumps({**told, "tool_use_id": "c"}).encode())
    assert '"deny"' in json.dumps(away)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("seen", {"tree": "t" * 1001}, 400),
        ("seen", {"tree": "t", "task": "x"}, 400),
        ("count", {"tree": "t", "id": "d", "below": {"dispatches": "many"}}, 400),
        ("use", {"tree": "t", "tokens": -1}, 400),
        ("use", {"tree": "t", "tokens": 10**13}, 400),
        ("end", {"tree": "t"}, 400),
        ("begin", {"tree": "t", "prompt": "x"}, 400),
        ("begin", {"tree": "t", "pad": "x" * 40_000}, 413),
    ],
)
def test_what_does_not_fit_is_refused(
    path: str, body: dict[str, object], status: int, store: Store, tmp_path: Path
) -> None:
    with counting(store, tmp_path) as url:
        client = Client(int(url.rpartition(":")[2]))
        sent_body = json.dumps(body).encode()
        told = client.post(f"/api/v1/guard/{path}", sent_body, "application/json")
        client.close()
    assert told.status == status, told.body


@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_a_file_that_is_broken_closes_or_opens_as_the_policy_says(
    on_error: str, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "guards").mkdir()
    (tmp_path / "guards" / f"{store.project('default')}.db").write_text("no database\n" * 500)
    with counting(store, tmp_path) as url, asking(url) as state:
        decision = state.decide(limit(on_error, max_dispatches=9), sent(1))
        assert decision.allowed is (on_error == "open")
        assert "503" in decision.failed["guard"]


@pytest.mark.parametrize("url", ["http://", "http://key@host", "http://host?key=1"])
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="store"):
        Guard(limit(), store=url)


@contextmanager
def answering(*pieces: bytes, pause: float = 0.0) -> Iterator[tuple[str, list[int]]]:
    """Answer each request with these pieces, and end the connection; gives the address."""
    connections: list[int] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            connections.append(1)
            try:
                # The whole request: a socket that is closed with some of it unread is reset, and
                # what was sent is lost with it.
                head, _, body = self.request.recv(65536).partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                while len(body) < length:
                    body += self.request.recv(65536)
                for piece in pieces:
                    self.request.sendall(piece)
                    over.wait(pause)
            except OSError:
                pass  # whoever asked has gone

    over = threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", connections
        finally:
            over.set()
            server.shutdown()
            thread.join()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: "


def test_a_connection_that_the_server_ended_is_opened_again() -> None:
    body = b'{"known": true}'
    with answering(OK + b"15\r\n\r\n" + body) as (url, connections), asking(url) as state:
        assert state.knows("t", "d")
        for _ in range(20):  # the end of a connection may arrive before the next request, or after
            assert state.knows("t", "d")
        assert len(connections) == 21


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ((b"HTTP/1.1 302 Found\r\nLocation: /login?key=1\r\n\r\n",), "redirects to /login:"),
        ((OK + b"2000000\r\n\r\n" + b" " * 2_000_000,), "the answer is longer than 1 MiB"),
        ((OK + b"5\r\n\r\nhello",), "is it a server of Baton?"),
        ((b"hello\r\n\r\n",), "the connection broke before an answer came"),
        ((OK + b"9\r\n\r\n", b""), "the connection broke before an answer came"),
    ],
)
def test_an_invalid_answer_fails_the_decision(pieces: tuple[bytes, ...], reason: str) -> None:
    with answering(*pieces) as (url, _), asking(url) as state:
        decision = state.decide(limit(max_dispatches=9), sent(1))
        assert not decision.allowed
        assert reason in decision.failed["guard"]
        assert "key=1" not in decision.failed["guard"]


def test_an_answer_that_comes_a_byte_at_a_time_is_given_up_soon() -> None:
    slow = (OK + b"99\r\n\r\n", *[b" "] * 99)
    with answering(*slow, pause=0.2) as (url, _), asking(url) as state:
        began = time.monotonic()
        decision = state.decide(limit(max_dispatches=9), sent(1))
        assert "no answer within 2 s" in decision.failed["guard"]
        assert time.monotonic() - began < 15  # all of it takes 20 s


def test_what_needs_no_figures_asks_no_server() -> None:
    with answering() as (url, connections), asking(url) as state:
        policy = Policy(rules=[Rule(name="a", allowed_tools=["Read"]), Rule(max_dispatches=1)])
        tool = Event(on="tool", tree="t", to="lab", tool="Read", arguments={})
        assert state.decide(policy, tool).allowed
        answered = Event(on="output", tree="t", to="lab", output="x")
        assert state.decide(limit(max_tokens=1), answered).allowed
        assert not connections


def test_a_policy_that_counts_nothing_asks_no_server_at_all() -> None:
    with answering() as (url, connections), asking(url) as state:
        quiet = Policy(rules=[Rule(allowed_edges={"desk": ["lab"]}), Rule(max_depth=2)])
        for store in (state, url):
            guard = Guard(quiet, store=store)
            with guard.run("desk", "Is it clean?"):
                guard.use(tokens=7)
                guard.tool("search", {})
                with guard.dispatch("lab", "Test it."):
                    assert guard.output("Yes.") == "Yes."
                assert guard.spent[:2] == (1, 7)  # what this program had
                with pytest.raises(RefusedError), guard.dispatch("expert", "Test it."):
                    pass
        assert not connections


def test_a_dispatch_below_all_limits_asks_a_server_once(store: Store, tmp_path: Path) -> None:
    guards = AskedStores(tmp_path)
    with counting(store, tmp_path, guards) as url, asking(url) as state:
        state.begin("t")
        state.use("t", tokens=1)
        assert guards.asked == 2
        assert state.decide(limit(max_dispatches=2, max_tokens=9), sent(1)).allowed
        assert guards.asked == 3


def test_a_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"known": true}'
    with answering(OK + b"15\r\n\r\n" + body) as (proxy, connections):
        monkeypatch.setenv("http_proxy", proxy.replace("http://", "http://me:secret@"))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with asking("http://baton.example.com:4318") as state:
            assert state.knows("t", "d")
        assert len(connections) == 1
