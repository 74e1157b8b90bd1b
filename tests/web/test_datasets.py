"""Datasets and the playground over HTTP: what may be done, by whom, and what is told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from baton.server.access import create_key
from baton.server.jobs import Jobs
from baton.server.settings import load_settings
from baton.server.store import Store
from baton.session.agent_under_test import served

from .asking import Visitor, ask
from .serving import web

AGENT = """\
def answer(message, session):
    session["n"] = session.get("n", 0) + 1
    return {"output": f"{session['n']}: {message}", "agents": ["router", "refund_agent"]}
"""
CASES = """\
# Refunds of March
name: Refunds <script>
cases:
  - id: late
    input: Where is my refund?
    agents: [router, refund_agent]
    tags: [gold]
  - {id: "twice'\\"", input: "\\u202Eback", agents: [router, billing]}
"""
NAME = "cases/refunds.yaml"


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """What a server is started with: an agent, and a folder of cases."""
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "refunds.yaml").write_text(CASES)
    config = tmp_path / "baton.yaml"
    config.write_text(
        "dataset: cases/refunds.yaml\n"
        "providers: [{type: python, target: 'desk:answer', agent_id: desk}]\n"
    )
    offered = served(config)
    return {
        "agents": offered.agents,
        "datasets": offered.datasets,
        "folder": str(tmp_path / "server"),
    }


@pytest.fixture
def visitor(store: Store, given: dict[str, Any]) -> Iterator[Visitor]:
    with web(store, given) as address:
        yield Visitor(address)


def told(visitor: Visitor, path: str, form: dict[str, Any]) -> tuple[int, Any]:
    answer = visitor.post(path, form, Accept="application/json")
    return answer.status, json.loads(answer.text)


def looked(visitor: Visitor, path: str) -> Any:
    answer = visitor.get(path, accept="application/json")
    assert answer.status == 200, answer.text
    return json.loads(answer.text)


def test_a_conversation_becomes_a_case(visitor: Visitor, tmp_path: Path) -> None:
    status, made = told(
        visitor, "/do/playground/start", {"agent": "desk", "message": "hello", "user": "kim"}
    )
    assert status == 200, made
    seen = until_waiting(visitor, made["id"])
    assert [turn["output"] for turn in seen["turns"]] == ["1: hello"]
    assert seen["turns"][0]["agents"] == ["router", "refund_agent"]
    assert seen["run"]["turns"]
    told(visitor, "/do/playground/say", {"id": made["id"], "message": "again"})
    assert len(until_waiting(visitor, made["id"], turns=2)["turns"]) == 2
    form = {"id": made["id"], "name": NAME, "case": "two turns"}
    assert told(visitor, "/do/playground/capture", form)[0] == 200
    text = (tmp_path / "cases" / "refunds.yaml").read_text()
    assert text.startswith(CASES)
    assert "two turns" in text
    status, refused = told(visitor, "/do/playground/capture", form)
    assert (status, "there is a case `two turns`" in refused["error"]) == (400, True)
    again = {"agent": "desk", "message": ["hello", "other"], "instead": made["id"]}
    edited = told(visitor, "/do/playground/start", again)[1]
    turns = until_waiting(visitor, edited["id"], turns=2)["turns"]
    assert [turn["output"] for turn in turns] == ["1: hello", "2: other"]
    assert looked(visitor, f"/data/playground/chat?id={made['id']}")["state"] == "ended"


def until_waiting(visitor: Visitor, id_: str, turns: int = 1) -> Any:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        seen = looked(visitor, f"/data/playground/chat?id={id_}")
        if seen["state"] in ("waiting", "failed") and len(seen["turns"]) >= turns:
            return seen
        time.sleep(0.05)
    raise AssertionError(seen)


def test_the_list_is_filtered_by_words(visitor: Visitor) -> None:
    every = visitor.get("/datasets").text.count("<tr data-row>")
    assert every
    assert visitor.get("/datasets?text=baton").text.count("<tr data-row>") <= every
    none = visitor.get("/datasets?text=no+such+words").text
    assert "No dataset matches this filter." in none
    assert "<tr data-row>" not in none


def test_cases_are_filtered_and_counted_by_agent(visitor: Visitor) -> None:
    page = visitor.get(f"/datasets/{NAME}").text
    assert "Refunds &lt;script&gt;" in page
    assert "\u202e" not in page
    chosen = looked(visitor, f"/data/datasets/cases?name={NAME}&agent=billing")
    assert ([case["id"] for case in chosen["cases"]], chosen["total"]) == (["twice'\""], 2)
    found = looked(visitor, f"/data/datasets/cases?name={NAME}&text=REFUND")
    assert ([case["id"] for case in found["cases"]], found["matches"]) == (["late"], 1)
    assert looked(visitor, f"/data/datasets/cases?name={NAME}&status=never")["total"] == 2


def test_a_case_is_changed_checked_and_never_written_over(visitor: Visitor, tmp_path: Path) -> None:
    file = tmp_path / "cases" / "refunds.yaml"
    shown = looked(visitor, f"/data/datasets/case?name={NAME}&id=late")
    form = {**shown["form"], "tags": "gold, urgent"}
    save = {"name": NAME, "id": "late", "hash": shown["hash"], "form": json.dumps(form)}
    assert told(visitor, "/do/datasets/save", save)[0] == 200
    assert file.read_text() == CASES.replace("[gold]", "[gold, urgent]")
    status, conflict = told(visitor, "/do/datasets/save", {**save, "yaml": "id: late\ninput: x\n"})
    assert (status, "someone else changed" in conflict["error"]) == (409, True)
    assert "urgent" in conflict["current"]["yaml"]
    wrong = {**save, "hash": conflict["current"]["hash"], "yaml": "id: late\ninptu: x\n"}
    status, refused = told(visitor, "/do/datasets/save", wrong)
    assert (status, "did you mean `input`" in refused["error"]) == (400, True)
    removed = {"name": NAME, "id": "late", "hash": conflict["current"]["hash"]}
    assert told(visitor, "/do/datasets/remove", removed)[0] == 200
    assert "# Refunds of March" in file.read_text()
    assert "id: late" not in file.read_text()


@pytest.mark.heavy
def test_nothing_waits_for_a_file_that_takes_long_to_read(visitor: Visitor, tmp_path: Path) -> None:
    many = "".join(
        f"- {{id: c{n}, input: hello {n}, agents: [a{n % 9}], tags: [t]}}\n" for n in range(25_000)
    )
    (tmp_path / "cases" / "many.yaml").write_text("cases:\n" + many)
    name = "cases/many.yaml"
    assert "reading the file" in visitor.get("/datasets").text
    assert "The file is large and is being read" in visitor.get(f"/datasets/{name}").text
    assert looked(visitor, f"/data/datasets/cases?name={name}") == {"reading": True}
    form = {"name": name, "agent": "desk", "case": ["c7"], "evaluator": ["agent_chain"]}
    status, made = told(visitor, "/do/datasets/run", form)
    assert status == 200, made
    assert looked(visitor, f"/data/datasets/run?id={made['id']}&name={name}")["results"] == {}
    assert told(visitor, "/do/datasets/run", {**form, "name": "cases/none.yaml"})[0] == 404
    until = time.monotonic() + 60
    while "reading" in (seen := looked(visitor, f"/data/datasets/cases?name={name}")):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert (seen["total"], len(seen["cases"])) == (25_000, 200)
    assert "being read" not in visitor.get(f"/datasets/{name}").text


def test_datasets_are_made_renamed_and_deleted(visitor: Visitor, tmp_path: Path) -> None:
    new = {"place": "cases", "title": "../April!", "kind": "adk"}
    assert told(visitor, "/do/datasets/create", new)[1]["name"] == "cases/April.evalset.json"
    listed = looked(visitor, "/data/datasets/cases?name=cases/April.evalset.json")
    change = {"name": "cases/April.evalset.json", "hash": listed["hash"], "title": "May"}
    assert told(visitor, "/do/datasets/rename", change)[1] == {"name": "cases/May.evalset.json"}
    listed = looked(visitor, "/data/datasets/cases?name=cases/May.evalset.json")
    gone = {"name": "cases/May.evalset.json", "hash": "of before"}
    assert told(visitor, "/do/datasets/delete", gone)[0] == 409
    assert told(visitor, "/do/datasets/delete", {**gone, "hash": listed["hash"]})[0] == 200
    assert [each.name for each in (tmp_path / "cases").iterdir()] == ["refunds.yaml"]
    for name in ("cases/../desk.py", "cases/%2e%2e/baton.yaml", "../baton.yaml"):
        assert visitor.get(f"/datasets/{name}").status == 404
        status, _ = told(visitor, "/do/datasets/delete", {"name": name, "hash": ""})
        assert status == 404


def test_an_evaluation_starts_once_and_its_results_are_those_of_the_cases(
    visitor: Visitor, store: Store, given: dict[str, Any]
) -> None:
    form = {"name": NAME, "agent": "desk", "case": ["late"], "evaluator": ["agent_chain"]}
    first = told(visitor, "/do/datasets/run", form)[1]["id"]
    assert told(visitor, "/do/datasets/run", form)[1]["id"] == first
    jobs = Jobs(store, load_settings(None, given))
    until = time.monotonic() + 60
    while (seen := looked(visitor, f"/data/datasets/run?id={first}&name={NAME}"))["job"][
        "ended"
    ] is None:
        assert time.monotonic() < until
        jobs.work(time.time())
        time.sleep(0.05)
    assert (seen["job"]["status"], seen["results"]) == ("passed", {"late": "passed"})
    cases = looked(visitor, f"/data/datasets/cases?name={NAME}")["cases"]
    assert [(case["id"], case["status"]) for case in cases] == [
        ("late", "passed"),
        ("twice'\"", None),
    ]
    assert f'href="/evaluations/{first}"' in visitor.get(f"/datasets/{NAME}").text
    for wrong, message in (
        ({"agent": "os:system"}, "has no agent `os:system`"),
        ({"evaluator": "os:system"}, "not the name of an evaluator"),
        ({"concurrency": "many"}, "not a whole number"),
    ):
        status, refused = told(visitor, "/do/datasets/run", {**form, **wrong})
        assert (status, message in refused["error"]) == (400, True), refused


@pytest.mark.parametrize("allowed", [False, True])
def test_outside_of_this_machine_it_takes_a_key_and_permission(
    store: Store, given: dict[str, Any], allowed: bool
) -> None:
    readers = create_key(store, "default", "reader", ["read"])
    runners = create_key(store, "default", "runner", ["run", "read"])
    start = {"agent": "desk", "message": "hello"}
    with web(store, {**given, "host": "0.0.0.0", "allow_run": allowed or None}) as address:  # noqa: S104
        for key, status in ((readers, 403), (runners, 200 if allowed else 403)):
            headers = {"Authorization": f"Bearer {key}"}
            token = ask(f"{address}/playground", headers=headers)
            cookie = (token.headers.get("Set-Cookie") or "").partition(";")[0]
            csrf = token.text.partition('name="baton-csrf" content="')[2].partition('"')[0]
            sent = {**headers, "Cookie": cookie, "Origin": address}
            for path, form in (
                ("/do/playground/start", start),
                (
                    "/do/datasets/create",
                    {"place": "cases", "title": f"of {key[-3:]}x", "kind": "baton"},
                ),
            ):
                answer = ask(address + path, form={**form, "csrf": csrf}, headers=sent)
                assert answer.status == status, answer.text
        assert ask(f"{address}/playground").status in (303, 401)


def test_empty_pages_say_what_to_do(address: str) -> None:
    visitor = Visitor(address)
    assert "baton serve path/to/agents" in visitor.get("/playground").text
    assert "baton serve --datasets cases/" in visitor.get("/datasets").text
    assert visitor.get(f"/datasets/{quote('cases/none.yaml')}").status == 404
