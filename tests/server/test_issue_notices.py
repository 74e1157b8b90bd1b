"""Notices about issues over webhooks, Slack, GitHub and Linear: sent once each, and kept up to date."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

import pytest
from sqlalchemy import select

from baton.formats.document import Document
from baton.http.responses import Refused
from baton.model import InputError
from baton.server.access import Caller
from baton.server.alerts import AGAIN, Addresses, read_addresses, wait_of
from baton.server.issue_list import StateChange, change_state
from baton.server.issue_notices import filled, note_events, tell_of_issues
from baton.server.schema import issue_notice
from baton.server.store import Store

from .serving import on_loopback
from .test_issues import DEAD, NOW, OUTSIDE, arrive, fails, of, rows
from .test_worker_kills import Dying, Killed

ANA = Caller(1, "ana", frozenset({"review"}))


class Outside:
    """GitHub's issues, Linear's GraphQL and a webhook on loopback, as these document them."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.issues: list[dict[str, Any]] = []
        self.fails = 0
        self.url = ""
        self.wait = ""
        self.is_silent = False

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if self.fails:
            self.fails -= 1
            if path.startswith("/repos/"):
                self.wait = "900"
                return 403, {"message": "You have exceeded a secondary rate limit."}
            return 500, {"message": "down"}
        if path == "/graphql":
            return 200, self.linear(body["query"], body["variables"])
        if path.startswith("/repos/acme/desk/issues"):
            return self.github(method, path.removeprefix("/repos/acme/desk/issues"), body)
        return 200, {}

    def github(self, method: str, rest: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            what, query = rest.split("?")
            first = 100 * (int(parse_qs(query)["page"][0]) - 1)
            if what:
                comments = self.issues[int(what.split("/")[1]) - 1]["comments"]
                return 200, [{"body": one} for one in comments][first : first + 100]
            assert query.startswith("state=all&sort=created&direction=desc&per_page=100&")
            listed = [{"number": n, **one} for n, one in enumerate(self.issues, 1)]
            there = [one for one in reversed(listed) if "deleted" not in one]
            return 200, there[first : first + 100]
        if rest == "":
            self.issues.append({"state": "open", "comments": [], **body})
            return 201, {"number": len(self.issues), "html_url": "https://github.com/x"}
        number, _, what = rest.strip("/").partition("/")
        one = self.issues[int(number) - 1]
        if one.get("deleted"):
            return 410, {"message": "This issue was deleted"}
        if what == "comments" and method == "POST":
            one["comments"].append(body["body"])
            return 201, {"id": 1}
        assert method == "PATCH"
        one.update(body)
        return 200, {"number": int(number)}

    def linear(self, query: str, variables: Any) -> Any:
        by_id = {one["id"]: one for one in self.issues}
        if query.startswith("query"):
            if variables["id"] in by_id:
                return {"data": {"issue": {"id": variables["id"]}}}
            return {"errors": [{"message": "Entity not found: Issue"}], "data": None}
        given = variables["input"]
        if "issueCreate(" in query:
            if given["teamId"] != "team-1":
                return {"errors": [{"message": "Entity not found: Team"}]}
            assert str(uuid.UUID(given["id"], version=4)) == given["id"]
            if given["id"] in by_id:
                return {"errors": [{"message": "Entity already exists"}], "data": None}
            self.issues.append({"comments": [], **given})
            return {"data": {"issueCreate": {"success": True, "issue": {"id": given["id"]}}}}
        if "issueUpdate(" in query:
            if by_id[variables["id"]].get("deleted"):
                said = {"message": "Entity not found: Issue",
                        "extensions": {"userPresentableMessage": "Could not find it."}}  # fmt: skip
                return {"errors": [said], "data": None}
            by_id[variables["id"]].update(given)
            return {"data": {"issueUpdate": {"success": True}}}
        assert "commentCreate(" in query
        by_id[given["issueId"]]["comments"].append(given["body"])
        return {"data": {"commentCreate": {"success": True}}}


@pytest.fixture
def outside() -> Iterator[Outside]:
    there = Outside()
    with listening(there) as url:
        there.url = url
        yield there


@contextmanager
def listening(there: Outside) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(sent) if sent else None
            there.got.append((self.command, self.path, body))
            there.headers.append(dict(self.headers))
            status, answer = there.answer(self.command, self.path, body)
            self.send_response(status)
            if there.wait:
                self.send_header("Retry-After", there.wait)
                there.wait = ""
            if there.is_silent:
                self.close_connection = True
                return
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_PATCH = do_GET = do_POST  # noqa: N815 - named by the library

        def log_message(self, *_: object) -> None:
            pass

    with on_loopback(Handler) as url:
        yield url


def told(outside: Outside, to: str, **issues: Any) -> Addresses:
    """The addresses of `server.yaml` that lead there."""
    return read_addresses(
        None,
        {
            "webhook": f"{outside.url}/hook/secret",
            "slack": f"{outside.url}/slack/secret",
            "github": {"repository": "acme/desk", "token": "t", "url": outside.url},
            "linear": {"team": "team-1", "token": "lin_key", "url": f"{outside.url}/graphql",
                       "done": "state-done", "open": "state-open"},
            "private": ["127.0.0.1"],
            "issues": {"to": [to], "least": 1, "link": "https://baton.example.org", **issues},
        },
    )  # fmt: skip


def tell(store: Store, addresses: Addresses, now: float = NOW) -> int:
    assert addresses.issues is not None
    note_events(store, addresses.issues, now + 10)
    return tell_of_issues(store, addresses, now + 10)


def one_fails(store: Store, id_: str = "a", to: str = "refunds", **more: Any) -> None:
    record = of(id_, to, **{key: more.pop(key) for key in ("at",) if key in more})
    arrive(store, [(record, fails(record, OUTSIDE))], **more)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.heavy)])
def either(request: pytest.FixtureRequest) -> Store:
    name = "store" if request.param == "sqlite" else "postgres_store"
    opened: Store = request.getfixturevalue(name)
    return opened


def test_a_webhook_is_reported_once_of_a_new_issue(either: Store, outside: Outside) -> None:
    addresses = told(outside, "webhook")
    one_fails(either)
    assert tell(either, addresses) == 1
    one_fails(either, "b")
    assert tell(either, addresses) == 0
    ((_, path, body),) = outside.got
    assert (path, body["event"], body["count"], body["state"]) == (
        "/hook/secret", "issue.new", 1, "new",
    )  # fmt: skip
    key = rows(either)[0]["key"]
    assert body["link"] == f"https://baton.example.org/issues/{key}"
    assert body["text"] == (
        "A new issue: Tool outside of the scope: desk → refunds (tool=Edit) "
        "(1 failure, 1000.0 of 1,000 dispatches)"
    )


def test_a_notice_that_may_have_arrived_is_sent_again_with_the_same_id(
    either: Store, outside: Outside
) -> None:
    addresses = told(outside, "slack", text="{id} {title}")
    one_fails(either)
    outside.is_silent = True
    assert tell(either, addresses) == 0
    outside.is_silent = False
    assert tell(either, addresses, NOW + 100) == 1
    texts = [body["text"] for _, _, body in outside.got]
    assert [text.endswith(AGAIN) for text in texts] == [False, True]
    ids = [text.split()[0] for text in texts]
    assert ids[0] == ids[1] == str(uuid.UUID(ids[0]))
    assert [each["Idempotency-Key"] for each in outside.headers] == [f'"{ids[0]}"'] * 2
    change_state(either, ANA, rows(either)[0]["key"], StateChange(state="fixed"), NOW + 110)
    one_fails(either, "b", at=NOW + 120, now=NOW + 120)
    assert tell(either, addresses, NOW + 200) == 1
    last = outside.got[-1][2]["text"]
    assert last.split()[0] != ids[0]
    assert not last.endswith(AGAIN)


def test_an_issue_of_github_is_opened_once_closed_when_it_is_fixed_and_opened_again(
    either: Store, outside: Outside
) -> None:
    addresses = told(outside, "github")
    one_fails(either, to="<b>refunds`</b>")
    assert tell(either, addresses) == 1
    (one,) = outside.issues
    assert one["title"].startswith("Tool outside of the scope: desk → <b>refunds`</b>")
    assert "`` A new issue: Tool outside of the scope: desk → <b>refunds`</b>" in one["body"]
    assert outside.headers[0]["Authorization"] == "Bearer t"
    key = rows(either)[0]["key"]
    change_state(either, ANA, key, StateChange(state="fixed"), NOW + 20)
    assert tell(either, addresses, NOW + 30) == 1
    assert (one["state"], one["state_reason"], len(one["comments"])) == ("closed", "completed", 1)
    one_fails(either, "b", to="<b>refunds`</b>", at=NOW + 60, now=NOW + 70)
    assert tell(either, addresses, NOW + 80) == 1
    assert (len(outside.issues), one["state"], len(one["comments"])) == (1, "open", 2)
    assert "Failed again after it was fixed" in one["comments"][-1]
    change_state(either, ANA, key, StateChange(state="muted"), NOW + 90)
    tell(either, addresses, NOW + 100)
    assert (one["state"], one["state_reason"]) == ("closed", "not_planned")


@pytest.mark.parametrize("where", ["github", "linear"])
def test_an_issue_that_somebody_deleted_is_opened_again(
    store: Store, outside: Outside, where: str
) -> None:
    addresses = told(outside, where)
    one_fails(store)
    tell(store, addresses)
    outside.issues[0]["deleted"] = True
    change_state(store, ANA, rows(store)[0]["key"], StateChange(state="fixed"), NOW + 20)
    tell(store, addresses, NOW + 30)
    assert tell(store, addresses, NOW + 60) == 0
    assert len(outside.issues) == 1
    one_fails(store, "b", at=NOW + 60, now=NOW + 70)
    assert tell(store, addresses, NOW + 80) == 1
    assert len(outside.issues) == 2


@pytest.mark.parametrize("where", ["github", "linear"])
@pytest.mark.parametrize("how", ["answer lost", "crash"])
def test_an_issue_of_which_nobody_knows_whether_it_was_opened_is_not_opened_twice(
    store: Store, outside: Outside, where: str, how: str
) -> None:
    addresses = told(outside, where, text="Look: {text}")
    one_fails(store)
    if how == "crash":
        # The event is recorded, it is recorded that it is being sent, and the kill comes before
        # the third commit, that of the result.
        dying: Any = Dying(store, 3, after=False)
        with pytest.raises(Killed):
            tell(dying, addresses)
    else:
        outside.is_silent = True
        assert tell(store, addresses) == 0
        outside.is_silent = False
    assert len(outside.issues) == 1
    assert tell(store, addresses, NOW + 300) == 1
    (one,) = outside.issues
    assert one["comments"] == []
    change_state(store, ANA, rows(store)[0]["key"], StateChange(state="fixed"), NOW + 320)
    assert tell(store, addresses, NOW + 330) == 1
    assert (len(outside.issues), len(one["comments"])) == (1, 1)


@pytest.mark.parametrize("where", ["github", "linear"])
def test_what_was_refused_is_opened_later_once(store: Store, outside: Outside, where: str) -> None:
    addresses = told(outside, where)
    one_fails(store)
    outside.fails = 1
    assert tell(store, addresses) == 0
    assert tell(store, addresses, NOW + 1000) == 1
    assert len(outside.issues) == 1


@pytest.mark.parametrize("to", ["slack", "webhook"])
def test_a_hook_that_asks_for_patience_is_left_alone(
    store: Store, outside: Outside, to: str
) -> None:
    addresses = told(outside, to)
    one_fails(store)
    outside.fails, outside.wait = 1, "700"
    assert tell(store, addresses) == 0
    assert tell(store, addresses, NOW + 690) == 0
    assert tell(store, addresses, NOW + 730) == 1


def test_who_asks_for_patience_is_left_alone_for_so_long(store: Store, outside: Outside) -> None:
    addresses = told(outside, "github")
    one_fails(store)
    outside.fails = 1
    assert tell(store, addresses) == 0
    assert tell(store, addresses, NOW + 890) == 0
    assert len(outside.got) == 1
    assert tell(store, addresses, NOW + 930) == 1


def test_an_issue_of_linear_is_opened_and_changed_by_its_id(store: Store, outside: Outside) -> None:
    addresses = told(outside, "linear", title="[agents] {title}", text="Seen {count} times: {edge}")
    one_fails(store)
    assert tell(store, addresses) == 1
    (one,) = outside.issues
    assert one["title"] == "[agents] Tool outside of the scope: desk → refunds (tool=Edit)"
    assert one["description"] == "Seen ` 1 ` times: ` desk → refunds `"
    assert outside.headers[0]["Authorization"] == "lin_key"
    key = rows(store)[0]["key"]
    change_state(store, ANA, key, StateChange(state="fixed"), NOW + 20)
    tell(store, addresses, NOW + 30)
    assert (one["stateId"], len(one["comments"]), len(outside.issues)) == ("state-done", 1, 1)
    one_fails(store, "b", at=NOW + 60, now=NOW + 70)
    tell(store, addresses, NOW + 80)
    assert (one["stateId"], len(one["comments"]), len(outside.issues)) == ("state-open", 2, 1)


def test_what_graphql_refuses_with_a_200_is_no_success(store: Store, outside: Outside) -> None:
    addresses = told(outside, "linear")
    linear = addresses.linear
    assert linear is not None
    wrong = read_addresses(None, {
        "linear": {"team": "other", "token": "x", "url": linear.url},
        "private": ["127.0.0.1"], "issues": {"to": ["linear"], "least": 1},
    })  # fmt: skip
    one_fails(store)
    assert tell(store, wrong) == 0
    (notice,) = [row for row in rows(store, issue_notice) if row["issue"]]
    assert notice["error"] == "Linear refused it: Entity not found: Team"
    assert (notice["attempts"], notice["outside"]) == (1, None)


def test_slack_gets_text_in_which_nothing_is_markup(store: Store, outside: Outside) -> None:
    one_fails(store, to="<!channel>")
    tell(store, told(outside, "slack"))
    ((_, path, body),) = outside.got
    assert (path, set(body)) == ("/slack/secret", {"text"})
    assert "&lt;!channel&gt;" in body["text"]


def test_what_fails_to_be_sent_is_sent_later_and_its_key_is_in_no_error(
    store: Store, outside: Outside
) -> None:
    addresses = told(outside, "webhook")
    outside.fails = 1
    one_fails(store)
    assert tell(store, addresses) == 0
    (notice,) = [row for row in rows(store, issue_notice) if row["issue"]]
    assert "secret" not in notice["error"]
    assert tell(store, addresses) == 0  # not at once
    assert tell(store, addresses, NOW + 20) == 1
    assert [body["event"] for _, _, body in outside.got] == ["issue.new", "issue.new"]


def test_a_new_issue_waits_until_it_failed_often_enough(store: Store, outside: Outside) -> None:
    addresses = told(outside, "webhook", least=3)
    for n, id_ in enumerate("abc"):
        assert tell(store, addresses, NOW + n * 100) == 0
        one_fails(store, id_)
    tell(store, addresses, NOW + 300)
    assert tell(store, addresses, NOW + 400) + len(outside.got) >= 1
    assert [body["count"] for _, _, body in outside.got] == [3]


def test_a_burst_over_many_agents_is_reported(store: Store, outside: Outside) -> None:
    quiet = [(of(f"q{n}", at=NOW - 40_000 + n * 300), ()) for n in range(100)]
    arrive(store, quiet)
    hit = [of(f"x{n}", ("refunds", "billing", "mail")[n % 3], at=NOW - 60) for n in range(12)]
    arrive(store, [(each, fails(each, DEAD, by="dispatch_completed")) for each in hit])
    tell(store, told(outside, "webhook", on=["burst"]))
    assert {body["event"] for _, _, body in outside.got} == {"issue.burst"}
    assert {body["receiver"] for _, _, body in outside.got} == {"refunds", "billing", "mail"}


def test_what_a_webhook_gets_may_be_the_json_of_another_tool(
    store: Store, outside: Outside
) -> None:
    jira = {
        "fields": {
            "project": {"key": "AG"},
            "summary": "{title}",
            "labels": ["baton", "issue-{issue}"],
            "description": "{edge} failed {count} times",
            "customfield_1": "{per_1000}",
        }
    }
    one_fails(store, to='x", "y": "{count}')
    tell(store, told(outside, "webhook", webhook=jira))
    ((_, _, body),) = outside.got
    fields = body["fields"]
    assert fields["project"] == {"key": "AG"}
    assert fields["customfield_1"] == 1000.0
    assert fields["description"] == 'desk → x", "y": "{count} failed 1 times'
    assert fields["labels"] == ["baton", f"issue-{rows(store)[0]['key']}"]


@pytest.mark.parametrize("to", ["github", "slack", "linear", "webhook"])
def test_a_name_of_a_megabyte_makes_no_message_that_nobody_takes(
    store: Store, outside: Outside, to: str
) -> None:
    one_fails(store, to="refunds " * 100_000)
    assert tell(store, told(outside, to)) == 1
    ((_, _, body),) = outside.got
    assert len(json.dumps(body)) < 4_000


def test_github_is_left_alone_until_it_has_requests_again() -> None:
    error = Refused("x", 403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99"}, "")
    assert wait_of(error) == 0.0
    reset = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{time.time() + 600:.0f}"}
    assert 590 < wait_of(Refused("x", 403, reset, "")) <= 601
    for odd in ("soon", "-1", "9" * 400, ""):
        odd_reset = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": odd}
        assert wait_of(Refused("x", 403, odd_reset, "")) == 0.0
    assert wait_of(Refused("x", 429, {"retry-after": "7", **reset}, "")) == 7.0


def test_what_comes_with_traces_calls_nobody_in_the_markup_of_other_tools(
    store: Store, outside: Outside
) -> None:
    one_fails(store, to="@everyone <!channel> [~admin]")
    tell(store, told(outside, "webhook", webhook={"content": "{receiver}", "n": "{count}"}))
    ((_, _, body),) = outside.got
    assert body == {"content": "@\u200beveryone <\u200b!channel> [\u200b~admin]", "n": 1}


def test_a_template_is_filled_once() -> None:
    assert filled("{a} {b}", {"a": "{b}", "b": 1}) == "{b} 1"


def test_what_is_wrong_in_the_settings_is_reported_with_its_line() -> None:
    text = (
        "alerts:\n  webhook: https://hooks.example.org/x\n"
        "  linear: {team: t, token: written-out}\n"
        "  issues:\n    to: [webhook, slack]\n    title: '{titel}'\n"
    )
    document = Document("server.yaml", text.encode(), "yaml")
    value: Any = document.value()
    with pytest.raises(InputError) as raised:
        read_addresses(document, value["alerts"], value["alerts"])
    said = str(raised.value)
    assert "`alerts.slack` has no address" in said
    assert "there is no field `titel`; did you mean `title`" in said
    assert "a token does not belong in a file" in said
    assert "server.yaml:3" in said


def test_nothing_leaves_for_an_address_that_is_not_allowed(store: Store, outside: Outside) -> None:
    addresses = read_addresses(None, {
        "webhook": f"{outside.url}/hook", "issues": {"to": ["webhook"], "least": 1},
    })  # fmt: skip
    one_fails(store)
    assert tell(store, addresses) == 0
    assert outside.got == []


def test_each_project_is_reported_by_its_name(store: Store, outside: Outside) -> None:
    other = store.project("other", create=True)
    one_fails(store, project=other)
    tell(store, told(outside, "webhook"))
    ((_, _, body),) = outside.got
    assert body["project"] == "other"
    assert body["link"].endswith("?project=other")
    with store.read() as connection:
        query = select(issue_notice).where(issue_notice.c.project == 1)
        assert connection.execute(query).all() == []
