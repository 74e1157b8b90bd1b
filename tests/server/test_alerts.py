"""Alerts: when they open and close, and how their messages reach somebody."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from sqlalchemy import insert, select

from baton.formats.document import Document
from baton.model import InputError
from baton.server.alerts import AGAIN, Addresses, alerts_of, check_alerts, deliver, read_addresses
from baton.server.rules import Rules, read_rules
from baton.server.schema import alert_watch, score
from baton.server.store import Store

from .serving import on_loopback
from .test_issue_notices import Outside
from .test_issue_notices import listening as scripted
from .test_worker_kills import Dying, Killed

DAY = 1_790_000_000.0


def rules_of(
    condition: str = "dispatch_scope by agent < 0.9 over 50", to: str = "webhook"
) -> Rules:
    text = f"rules: [{{name: r, evaluators: [dispatch_scope], alert: {{when: '{condition}', to: {to}}}}}]"
    document = Document("server.yaml", text.encode(), "yaml")
    return read_rules(document, document.value(), channels=("webhook", "slack", "github"))


class Scores:
    """Adds scores of a rule to a store, one conversation each."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.project = store.project("default")
        self.number = 0

    def add(self, values: list[float], *, to: str = "refunds", **more: Any) -> None:
        rows = []
        for value in values:
            self.number += 1
            rows.append(
                {
                    "project": self.project,
                    "conversation": self.number,
                    "version": 1,
                    "rule": "r",
                    "sampled": True,
                    "evaluator": "dispatch_scope",
                    "type": "dispatch_scope",
                    "evaluator_version": "1",
                    "unit": "dispatch",
                    "subject": '["d1"]',
                    "to_agent": to,
                    "status": "passed" if value >= 1 else "failed",
                    "value": value,
                    "details": "{}",
                    "evidence": "[]",
                    "at": DAY,
                    **more,
                }
            )
        with self.store.write() as connection:
            connection.execute(insert(score), rows)


@pytest.fixture
def scores(store: Store) -> Scores:
    return Scores(store)


def test_a_drop_opens_one_alert_of_the_agent_and_its_end_closes_it(scores: Scores) -> None:
    store, rules = scores.store, rules_of()
    scores.add([1.0] * 200)
    scores.add([1.0] * 200, to="billing")
    assert check_alerts(store, rules, DAY) == 0
    scores.add([0.0, 1.0] * 40)
    assert check_alerts(store, rules, DAY + 60) == 1
    scores.add([0.0, 1.0] * 40)
    assert check_alerts(store, rules, DAY + 120) == 0
    (one,) = alerts_of(store, scores.project)
    assert (one["rule"], one["subject"], one["opened"], one["closed"]) == (
        "r", "refunds", "2026-09-21T14:14:20Z", None,
    )  # fmt: skip
    assert (
        "dispatch_scope of refunds is below 0.9: 0.78 [0.66, 0.88] over the last 50 ("
        in one["message"]
    )
    scores.add([1.0] * 300)
    assert check_alerts(store, rules, DAY + 180) == 1
    (one,) = alerts_of(store, scores.project)
    assert one["closed"] == "2026-09-21T14:16:20Z"
    assert "is back: 1.00 over the last 50" in one["message"]


def test_scores_of_a_rescore_are_no_news(scores: Scores) -> None:
    rules = rules_of()
    scores.add([1.0] * 200)
    check_alerts(scores.store, rules, DAY)
    scores.add([0.0] * 200, rescore=1)
    assert check_alerts(scores.store, rules, DAY) == 0
    with scores.store.read() as connection:  # they are passed by, and not looked at every second
        last = connection.execute(
            select(alert_watch.c.score).where(alert_watch.c.project == scores.project)
        )
        assert last.scalar() == 400
    # Of a conversation that only a rescore scored, a late span brings the first live score.
    scores.number -= 200
    scores.add([0.0] * 200, version=2)
    assert check_alerts(scores.store, rules, DAY) == 1


def test_what_was_examined_is_not_examined_again_also_after_a_restart(scores: Scores) -> None:
    rules = rules_of()
    for _ in range(40):  # a score at a time: evidence adds up over looks
        scores.add([1.0])
        check_alerts(scores.store, rules, DAY)
    for _ in range(100):
        assert check_alerts(scores.store, rules, DAY) == 0
    for _ in range(60):
        scores.add([0.0])
        check_alerts(scores.store, rules, DAY)
    assert len(alerts_of(scores.store, scores.project)) == 1


def test_failures_chosen_beyond_a_sample_and_second_versions_do_not_count(scores: Scores) -> None:
    scores.add([1.0] * 100)
    scores.add([0.0] * 100, sampled=False)
    assert check_alerts(scores.store, rules_of(), DAY) == 0
    scores.number = 0
    scores.add([0.0] * 100, version=2)
    assert check_alerts(scores.store, rules_of(), DAY) == 0


def test_a_condition_may_be_about_high_values_and_about_all_agents_together(
    scores: Scores,
) -> None:
    rules = rules_of("dispatch_scope > 0.2 over 50")
    scores.add([0.1] * 100)
    assert check_alerts(scores.store, rules, DAY) == 0
    scores.add([0.9] * 60, to="one")
    scores.add([0.9] * 60, to="two")
    assert check_alerts(scores.store, rules, DAY) == 1
    (one,) = alerts_of(scores.store, scores.project)
    assert one["subject"] == ""
    assert "dispatch_scope is above 0.2: " in one["message"]


class Hook:
    """A webhook on loopback that answers with a list of statuses in turn, the last ever after."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses) or [200]
        self.got: list[tuple[str, str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []


@contextmanager
def listening(hook: Hook) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            hook.got.append((self.command, self.path, body))
            hook.headers.append(dict(self.headers))
            status = hook.statuses.pop(0) if len(hook.statuses) > 1 else hook.statuses[0]
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"http://{self.headers['Host']}/elsewhere")
            self.end_headers()
            self.wfile.write(b'{"number": 7}')

        do_PATCH = do_POST  # noqa: N815 - named by the library

        def log_message(self, *_: object) -> None:
            pass

    with on_loopback(Handler) as url:
        yield url


def open_and_close(scores: Scores, to: str) -> None:
    rules = rules_of(to=to)
    scores.add([1.0] * 100 + [0.0] * 60, to="<refunds>")
    assert check_alerts(scores.store, rules, DAY) == 1
    scores.add([1.0] * 400, to="<refunds>")
    assert check_alerts(scores.store, rules, DAY) == 1


def test_a_webhook_gets_one_message_when_it_opens_and_one_when_it_closes(scores: Scores) -> None:
    hook = Hook()
    with listening(hook) as url:
        where = Addresses(webhook=f"{url}/baton", private=["127.0.0.1"])
        open_and_close(scores, "webhook")
        assert [deliver(scores.store, where, DAY) for _ in range(4)] == [1, 1, 0, 0]
    assert [body["event"] for _, _, body in hook.got] == ["alert.opened", "alert.closed"]
    first = hook.got[0][2]
    assert (first["agent"], first["limit"], first["over"]) == ("<refunds>", 0.9, 50)
    assert [body["project"] for _, _, body in hook.got] == ["default", "default"]
    assert first["opened"] == "2026-09-21T14:13:20Z"
    assert first["low"] is None or first["low"] <= first["figure"] <= first["high"]


def test_what_was_not_delivered_is_sent_again_in_order_after_ever_longer_pauses(
    scores: Scores,
) -> None:
    hook = Hook(503, 500, 200)
    with listening(hook) as url:
        where = Addresses(webhook=url, private=["127.0.0.0/8"])
        open_and_close(scores, "webhook")
        assert deliver(scores.store, where, DAY) == 0
        assert deliver(scores.store, where, DAY + 14) == 0
        (one,) = alerts_of(scores.store, scores.project)
        assert "503" in one["undelivered"][0]["error"]
        assert len(hook.got) == 1
        assert deliver(scores.store, where, DAY + 15) == 0
        assert deliver(scores.store, where, DAY + 44) == 0
        assert deliver(scores.store, where, DAY + 45) == 1
        assert deliver(scores.store, where, DAY + 45) == 1
    events = [body["event"] for _, _, body in hook.got]
    assert events == ["alert.opened"] * 3 + ["alert.closed"]


def test_slack_gets_text_without_markup(scores: Scores) -> None:
    hook = Hook()
    with listening(hook) as url:
        where = Addresses(slack=f"{url}/services/T/B/key", private=["127.0.0.1"])
        open_and_close(scores, "slack")
        assert deliver(scores.store, where, DAY) == 1
    ((_, path, body),) = hook.got
    assert path == "/services/T/B/key"
    assert list(body) == ["text"]
    assert "&lt;refunds&gt;" in body["text"]


class Telling:
    """A webhook that keeps what it gets, and can lose its answer."""

    def __init__(self) -> None:
        self.got: list[tuple[str | None, bytes]] = []
        self.is_silent = False


@pytest.fixture
def telling() -> Iterator[tuple[Telling, str]]:
    there = Telling()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            there.got.append((self.headers["Idempotency-Key"], body))
            if there.is_silent:
                self.close_connection = True
                return
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with on_loopback(Handler) as url:
        yield there, url


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("commit", [1, 2, 3, 4])
def test_a_kill_between_any_two_commits_repeats_a_message_only_with_its_id_and_bytes(
    scores: Scores, telling: tuple[Telling, str], commit: int, after: bool
) -> None:
    there, url = telling
    where = Addresses(webhook=url, private=["127.0.0.1"])
    open_and_close(scores, "webhook")
    dying: Any = Dying(scores.store, commit, after=after)  # taken, delivered; twice

    def until_killed() -> None:
        for _ in range(2):
            deliver(dying, where, DAY)

    with pytest.raises(Killed):
        until_killed()
    for at in range(4):
        deliver(scores.store, where, DAY + 200 + at)
    # Only a kill after sending and before the commit that records it sends it again.
    assert len(there.got) == (3 if commit in (2, 4) and not after else 2)
    once = dict(there.got)
    assert len(set(there.got)) == len(once) == 2
    assert [json.loads(body)["event"] for body in once.values()] == ["alert.opened", "alert.closed"]
    assert [f'"{json.loads(body)["id"]}"' for body in once.values()] == list(once)
    assert not alerts_of(scores.store, scores.project)[0]["undelivered"]


def test_slack_reads_that_a_message_may_be_a_repeated_one_only_where_that_is_not_known(
    scores: Scores, telling: tuple[Telling, str]
) -> None:
    there, url = telling
    open_and_close(scores, "slack")
    nowhere = Addresses(slack="http://127.0.0.1:9/x", private=["127.0.0.1"])
    assert deliver(scores.store, nowhere, DAY) == 0  # no connection: it did not arrive
    there.is_silent = True
    where = Addresses(slack=url, private=["127.0.0.1"])
    assert deliver(scores.store, where, DAY + 100) == 0
    there.is_silent = False
    assert [deliver(scores.store, where, DAY + at) for at in (200, 201)] == [1, 1]
    texts = [json.loads(body)["text"] for _, body in there.got]
    assert [text.endswith(AGAIN) for text in texts] == [False, True, False]
    keys = [key for key, _ in there.got]
    assert keys[0] == keys[1] != keys[2]


def test_a_message_that_was_answered_is_recorded_while_another_one_is_still_waited_for(
    scores: Scores, telling: tuple[Telling, str]
) -> None:
    _, url = telling
    rules = rules_of(to="[webhook, slack]")
    scores.add([1.0] * 100 + [0.0] * 60)
    assert check_alerts(scores.store, rules, DAY) == 1
    slow, seen = threading.Event(), threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.set()
            slow.wait(20)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    def undelivered() -> list[str]:
        (one,) = alerts_of(scores.store, scores.project)
        return [each["channel"] for each in one["undelivered"]]

    with on_loopback(Slow) as other:
        where = Addresses(webhook=url, slack=other, private=["127.0.0.1"])
        sending = threading.Thread(target=deliver, args=(scores.store, where, DAY))
        sending.start()
        try:
            assert seen.wait(20)
            until = time.monotonic() + 20
            while "webhook" in undelivered() and time.monotonic() < until:
                time.sleep(0.01)
            assert undelivered() == ["slack"]
        finally:
            slow.set()
            sending.join()
    assert undelivered() == []


def test_github_gets_an_issue_that_is_closed_when_it_is_over(scores: Scores) -> None:
    hook = Hook()
    with listening(hook) as url:
        text = (
            f"alerts: {{github: {{repository: acme/desk, token: '${{T}}', url: '{url}'}}, "
            "private: [127.0.0.1]}"
        )
        document = Document("server.yaml", text.encode(), "yaml")
        where = read_addresses(document, document.value()["alerts"])
        open_and_close(scores, "github")
        assert [deliver(scores.store, where, DAY) for _ in range(2)] == [1, 1]
    assert [(method, path) for method, path, _ in hook.got] == [
        ("POST", "/repos/acme/desk/issues"),
        ("PATCH", "/repos/acme/desk/issues/7"),
        ("POST", "/repos/acme/desk/issues/7/comments"),
    ]
    assert hook.got[1][2] == {"state": "closed"}
    assert "` <refunds> `" in hook.got[0][2]["body"]
    assert hook.headers[0]["Authorization"] == "Bearer ${T}"


@pytest.fixture
def github() -> Iterator[Outside]:
    there = Outside()
    with scripted(there) as url:
        there.url = url
        yield there


def at_github(there: Outside) -> Addresses:
    spec = {"repository": "acme/desk", "token": "t", "url": there.url}
    return read_addresses(None, {"github": spec, "private": ["127.0.0.1"]})


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("commit", [1, 2, 3, 4])
def test_a_kill_between_any_two_commits_opens_and_closes_one_issue(
    scores: Scores, github: Outside, commit: int, after: bool
) -> None:
    where = at_github(github)
    open_and_close(scores, "github")
    dying: Any = Dying(scores.store, commit, after=after)  # taken, delivered; twice

    def until_killed() -> None:
        for _ in range(2):
            deliver(dying, where, DAY)

    with pytest.raises(Killed):
        until_killed()
    later = [{"state": "open", "comments": [], "body": "another one"} for _ in range(130)]
    github.issues += later
    for at in range(4):
        deliver(scores.store, where, DAY + 200 + at)
    ours = [one for one in github.issues if one not in later]
    assert [one["state"] for one in ours] == ["closed"]
    assert [len(one["comments"]) for one in ours] == [1]
    assert not alerts_of(scores.store, scores.project)[0]["undelivered"]


def test_an_issue_whose_answer_was_lost_is_found_and_one_that_was_refused_is_opened(
    scores: Scores, github: Outside
) -> None:
    where = at_github(github)
    open_and_close(scores, "github")
    github.is_silent = True
    assert deliver(scores.store, where, DAY) == 0
    github.is_silent = False
    assert [deliver(scores.store, where, DAY + at) for at in (15, 16)] == [1, 1]
    assert len(github.issues) == 1
    scores.add([0.0] * 60)
    assert check_alerts(scores.store, rules_of(to="github"), DAY) == 1
    github.fails = 1
    assert [deliver(scores.store, where, DAY + at) for at in (20, 2000)] == [0, 1]
    assert len(github.issues) == 2
    assert [path for method, path, _ in github.got if method == "GET"] == [
        "/repos/acme/desk/issues?state=all&sort=created&direction=desc&per_page=100&page=1"
    ]


@pytest.mark.parametrize(
    ("url", "private", "says"),
    [
        ("http://127.0.0.1:9/x", [], "is a private address that is not listed"),
        ("http://localhost:9/x", [], "is a private address that is not listed"),
        ("http://[::1]:9/x", [], "is a private address that is not listed"),
        ("http://10.0.0.7/x", [], "is a private address that is not listed"),
        ("http://[::ffff:10.0.0.7]/x", [], "is a private address that is not listed"),
        ("http://169.254.169.254/latest", ["169.254.0.0/16", "0.0.0.0/0"], "never connects to"),
        ("http://[::ffff:169.254.169.254]/", ["::/0", "0.0.0.0/0"], "never connects to"),
        ("http://[64:ff9b::a9fe:a9fe]/", ["::/0", "0.0.0.0/0"], "never connects to"),
        ("http://[fe80::1]/", ["::/0"], "never connects to"),
        ("http://[fd00:ec2::254]/", ["::/0"], "never connects to"),
        ("http://100.100.100.200/", ["0.0.0.0/0"], "never connects to"),
        ("http://168.63.129.16/", ["0.0.0.0/0"], "never connects to"),
        ("http://0.0.0.0:9/", ["0.0.0.0/0"], "is not the address of a single machine"),
        ("http://2852039166/", ["0.0.0.0/0"], "never connects to"),
    ],
)
def test_messages_go_to_no_address_of_a_cloud_and_to_private_ones_only_where_listed(
    scores: Scores, url: str, private: list[str], says: str
) -> None:
    open_and_close(scores, "webhook")
    assert deliver(scores.store, Addresses(webhook=url, private=private), DAY) == 0
    (one,) = alerts_of(scores.store, scores.project)
    assert says in one["undelivered"][0]["error"]
    assert "/latest" not in one["undelivered"][0]["error"]


def test_a_redirect_is_not_followed(scores: Scores) -> None:
    hook = Hook(302)
    with listening(hook) as url:
        open_and_close(scores, "webhook")
        assert deliver(scores.store, Addresses(webhook=url, private=["127.0.0.1"]), DAY) == 0
    assert [path for _, path, _ in hook.got] == ["/"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("alerts: {webhok: x}", "1: alerts.webhok: unknown key; did you mean `webhook`?"),
        ("alerts:\n  slack: ftp://x", "2: alerts.slack: `ftp://x` is not a valid address"),
        (
            "alerts: {private: [home]}",
            "1: alerts.private[0]: `home` is neither an address nor a network",
        ),
        ("alerts: {github: {repository: desk, token: '${T}'}}", "`desk` is not a repository"),
        ("alerts: {github: {repository: a/b, token: ghp_1}}", "a token does not belong in a file"),
    ],
)
def test_what_is_wrong_with_addresses_is_reported_with_its_line(text: str, problem: str) -> None:
    document = Document("server.yaml", text.encode(), "yaml")
    value = document.value()["alerts"]
    with pytest.raises(InputError) as raised:
        read_addresses(document, value, value)
    assert problem in str(raised.value)


def test_drops_and_stable_weeks_through_the_store(scores: Scores) -> None:
    """A week of 2,000 dispatches at 0.93, then a drop to 0.7; looked at every 20."""
    generator = random.Random(7)
    rules = rules_of()
    for rate, count in ((0.93, 2000), (0.7, 140)):
        for _ in range(count // 20):
            scores.add([float(generator.random() < rate) for _ in range(20)])
            check_alerts(scores.store, rules, DAY)
        expected = 0 if rate > 0.9 else 1
        assert len(alerts_of(scores.store, scores.project)) == expected
