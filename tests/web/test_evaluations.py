"""The pages of evaluations: the list, one of them, stopping and starting, and two compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.reports.desk import write_desk

from baton.cli import main
from baton.model import CaseResult, Hop
from baton.server.access import create_key
from baton.server.jobs import add_folder, job_of, submit
from baton.server.settings import Settings
from baton.server.store import Store, open_store
from baton.session.server_client import connect
from baton.testing.build import call, delegate, evaluation, result, run, score, trace, turn

from .asking import Visitor, ask
from .serving import web

EVIL = 'late "order"<script>alert(1)</script>\u202e'
AGENTS = {"support": {"type": "python", "target": "desk.py:answer"}}


def refund(id_: str, passed: bool, tool: str = "refund") -> CaseResult:
    made = trace(
        turn(
            f"Refund {id_}.",
            run("desk", delegate("refunds", "Refund it.")),
            run("refunds", call(tool, {"order": 1}, result="ok"), output="Refunded."),
            output="Done.",
        ),
        id=id_,
    )
    reason = "as it should" if passed else f"`refunds` used `{tool}`"
    verdict = score("passed" if passed else "failed", "tool_calls", reason=reason)
    route = [Hop(1, "delegate", "desk", "refunds", "d1")]
    return result(verdict, id=id_, trace=made, tags=["eu"], route=route)


def save(folder: Path, failing: set[str], name: str = "desk") -> Path:
    ids = [*(f"case {n}" for n in range(8)), EVIL]
    results = [
        refund(id_, id_ not in failing, "pay" if id_ in failing else "refund") for id_ in ids
    ]
    return evaluation(*results, name=name).save(folder)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Visitor, Store]]:
    """A server with two evaluations of the same cases; in the second one, two more fail."""
    folder = tmp_path_factory.mktemp("web")
    store = open_store(folder / "server")
    add_folder(store, 1, save(folder / "old", {"case 1"}), "ann")
    add_folder(store, 1, save(folder / "new", {"case 1", "case 3", EVIL}), "ann")
    with web(store, {"agents": AGENTS}) as address:
        yield Visitor(address), store
    store.close()


def data_of(text: str) -> Any:
    """Return what a page has for its script."""
    there = re.search(r'id="data">(.*?)</script>', text)
    assert there is not None
    return json.loads(there[1])


def answer_of(visitor: Visitor, path: str) -> Any:
    answer = visitor.get(path, accept="application/json")
    assert answer.status == 200, answer.text
    return json.loads(answer.text)


def test_the_list_has_counts_and_is_filtered(shared: tuple[Visitor, Store]) -> None:
    visitor, _ = shared
    page = visitor.get("/evaluations").text
    assert page.index("#2</span>") < page.index("#1</span>")
    assert 'value="2" form="compare"' in page
    assert "No evaluation matches" in visitor.get("/evaluations?name=other").text
    assert "#2</span>" in visitor.get("/evaluations?name=DESK&state=failed").text
    assert "#2</span>" not in visitor.get("/evaluations?state=passed").text
    assert "#2</span>" not in visitor.get("/evaluations?before=2").text
    assert visitor.get("/evaluations?state=odd").status == 400
    assert visitor.get("/evaluations?before=-1").status == 400


def test_the_page_of_one_is_drawn_with_its_first_rows(shared: tuple[Visitor, Store]) -> None:
    visitor, _ = shared
    page = visitor.get("/evaluations/2")
    assert "<script>alert" not in page.text
    data = data_of(page.text)
    assert data["summary"]["cases"] == {"passed": 6, "failed": 3, "error": 0, "skipped": 0}
    assert [row["id"] for row in data["rows"]][-1] == EVIL
    names = data["names"]
    assert [names["agents"][n] for n in data["rows"][0]["agents"]] == ["desk", "refunds"]
    # The worst come first, and what is said of them is in the page, with and without a script.
    numbers = re.findall(r'data-number="(\d+)"', page.text)
    assert numbers[:3] == [str(n) for n, row in enumerate(data["rows"]) if row["status"] == 1]
    assert len(numbers) == 9
    text = unescape(page.text)
    assert '<span class="why" dir="auto">tool_calls: refunds used pay</span>' in text
    assert '<span class="why" dir="auto">Refund case 0.</span>' in text
    assert data["rows"][3]["reason"] == "tool_calls: `refunds` used `pay`"
    words = answer_of(visitor, "/data/evaluations/2/texts?rows=0,3")
    assert words == [
        [0, "Refund case 0.", ""],
        [3, "Refund case 3.", "tool_calls: `refunds` used `pay`"],
    ]
    assert len(answer_of(visitor, "/data/evaluations/2/texts")) == 9
    assert visitor.get("/data/evaluations/2/texts?rows=0,99", accept="*/*").status == 400
    assert visitor.get("/data/evaluations/2/texts?rows=-1", accept="*/*").text == "[]"


def test_a_case_has_an_address_that_a_summary_links_to(shared: tuple[Visitor, Store]) -> None:
    visitor, _ = shared
    link = connect(visitor.address).case_page(2, 3)
    page = ask(link)
    assert page.status == 200
    assert 'data-position="3"' in page.text
    told = answer_of(visitor, "/data/evaluations/2/cases/3")
    assert (told["id"], told["status"], told["scores"][0]["evaluator"]) == (
        "case 3",
        "failed",
        "tool_calls",
    )
    assert told["trace"]["turns"]
    assert visitor.get("/data/evaluations/2/cases/99", accept="*/*").status == 404
    assert visitor.get("/evaluations/99").status == 404
    saved = visitor.get("/evaluations/2/report.html")
    assert saved.headers["Content-Disposition"] == 'attachment; filename="evaluation-2.html"'
    assert "<script>alert" not in saved.text


def test_a_comparison_names_axes_and_cases_that_changed(shared: tuple[Visitor, Store]) -> None:
    visitor, _ = shared
    chosen = visitor.get("/evaluations/compare?of=2&of=1")
    assert (chosen.status, chosen.headers["Location"]) == (
        303,
        "/evaluations/compare?before=1&after=2",
    )
    text = unescape(visitor.get("/evaluations/compare?before=1&after=2").text)
    assert "cases passed" in text
    assert "-0.22" in text
    assert 'Got worse <span class="dim">2</span>' in text
    assert "case=case+3" in text
    assert "<script>alert" not in visitor.get("/evaluations/compare?before=1&after=2").text
    back = unescape(visitor.get("/evaluations/compare?before=2&after=1").text)
    assert 'Passes more often <span class="dim">2</span>' in back
    itself = visitor.get("/evaluations/compare?before=1&after=1").text
    assert "the same evaluation twice" in itself
    assert visitor.get("/evaluations/compare?before=1").status == 400
    assert visitor.get("/evaluations/compare?before=1&after=77").status == 404
    case_page = visitor.get("/evaluations/compare/case?before=1&after=2&case=case+3")
    assert "/data/evaluations/1/cases/3?repeat=0" in case_page.text
    assert "--case &#39;case 3&#39;" in case_page.text
    assert visitor.get("/evaluations/compare/case?before=1&after=2&case=no").status == 404


def test_of_very_many_results_the_worst_are_listed(
    tmp_path: Path, store: Store, address: str
) -> None:
    bad = (5, 8004)
    results = [
        result("failed" if n in bad else "passed", id=f"c{n}", position=n) for n in range(8005)
    ]
    number = add_folder(store, 1, evaluation(*results).save(tmp_path / "many"), "ann")
    page = ask(f"{address}/evaluations/{number}").text
    first = data_of(page)
    # The page starts with the worst ones, and says how many there are of each status.
    assert [row["number"] for row in first["rows"][:3]] == [5, 7999, 0]
    assert len(first["rows"]) == 50
    assert dict(zip(first["names"]["statuses"], first["counts"], strict=True)) == {
        "passed": 7998, "failed": 2, "error": 0, "skipped": 0,
    }  # fmt: skip
    assert len(page) < 100_000
    whole = ask(f"{address}/data/evaluations/{number}/list", accept="application/json").text
    rows = json.loads(whole)["rows"]
    assert len(rows) == 8000
    whole_row = {"input", "reason", "told"}  # words that are fetched for the others
    for row in first["rows"]:
        assert rows[row["number"]] | {name: row[name] for name in whole_row | {"number"}} == row
    assert [row["id"] for row in rows if row["status"] == 1] == ["c5", "c8004"]
    assert [row["position"] for row in rows] == sorted(row["position"] for row in rows)
    assert "5 more are in the saved file" in page
    told = ask(f"{address}/data/evaluations/{number}/cases/8003", accept="application/json")
    assert json.loads(told.text)["id"] == "c8003"


def test_one_that_waits_is_stopped_and_started_again_once(
    shared: tuple[Visitor, Store],
) -> None:
    visitor, store = shared
    cases = [{"name": "cases.yaml", "content": "cases: [{id: a, input: hi}]"}]
    body = msgspec.json.encode({"agent": "support", "dataset": cases})
    made = submit(store, 1, "ann", body, Settings(agents=AGENTS))
    page = visitor.get(f"/evaluations/{made.id}").text
    assert "waiting for a worker" in page
    path = f"/evaluations/{made.id}"
    assert visitor.post(f"{path}/stop", {"csrf": "wrong"}).status == 403
    twice = [visitor.post(f"{path}/again", {}).headers["Location"] for _ in range(2)]
    assert twice == [path, path], "it waits already"
    assert visitor.post(f"{path}/stop", {}).status == 303
    stopped = job_of(store, 1, made.id)
    assert (stopped.state, (stopped.error or "")[:11]) == ("failed", "stopped by ")
    state = answer_of(visitor, f"/data{path}")
    assert (state["state"], state["outcome"]) == ("failed", "stopped")
    again = [visitor.post(f"{path}/again", {}).headers["Location"] for _ in range(2)]
    assert again == [f"/evaluations/{made.id + 1}"] * 2
    visitor.post(f"/evaluations/{made.id + 1}/stop", {})
    assert "stopped" in visitor.get("/evaluations?state=stopped").text
    assert visitor.post("/evaluations/1/again", {}).status == 400, "it was made elsewhere"


def test_a_key_that_only_reads_starts_and_stops_nothing(store: Store, address: str) -> None:
    key = {"Authorization": f"Bearer {create_key(store, 'default', 'bob', ['read'])}"}
    assert ask(f"{address}/evaluations", headers=key).status == 200
    refused = ask(f"{address}/evaluations/1/stop", form={}, headers=key, accept="*/*")
    assert refused.status == 403
    assert "no right to run here" in refused.text


def test_a_folder_that_is_gone_says_so(tmp_path: Path, store: Store, address: str) -> None:
    folder = save(tmp_path / "made", set())
    number = add_folder(store, 1, folder, "ann")
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    page = ask(f"{address}/evaluations/{number}")
    assert page.status == 200
    assert "no longer exists" in page.text
    assert ask(f"{address}/evaluations").status == 200


def test_a_case_of_recorded_traces_shows_what_the_recording_says_now(
    tmp_path: Path, store: Store, address: str
) -> None:
    main([*write_desk(tmp_path, 30), "--show", "0"])
    (folder,) = (tmp_path / "out").iterdir()
    number = add_folder(store, 1, folder, "ann")
    visitor = Visitor(address)

    def runs(position: int) -> str:
        told = answer_of(visitor, f"/data/evaluations/{number}/cases/{position}")
        return json.dumps(told.get("trace")) + (told["untold"] or "")

    first = runs(0)
    assert "billing_agent" in first
    assert runs(29) != first
    assert runs(0) == first
    file = tmp_path / "runs.jsonl"
    file.write_text(file.read_text().replace("billing_agent", "money_agent"))
    assert "money_agent" in runs(0)
    file.unlink()
    assert "no longer where it was read from" in runs(0)
