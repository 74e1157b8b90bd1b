"""Groups of reasons by vectors of an API: cached, within a budget, and by words where it fails."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from tests.server.serving import on_loopback
from tests.server.test_issues import NOW, arrive, judged, of, rows

from baton.feed.failures import Failure
from baton.feed.issues import Collector
from baton.judges.embeddings import Embeddings
from baton.judges.judge_settings import read_settings
from baton.model import InputError, JudgeError
from baton.runner.costs import read_prices
from baton.runner.loop import run_anywhere
from baton.server.issues import ask_for_regrouping
from baton.server.rules import Budget
from baton.server.settings import load_settings
from baton.server.store import open_store
from baton.server.worker_jobs import Live
from baton.session.issues import _in_groups, embedder

pytest.importorskip("sklearn")
# No two of one complaint have a word in common: only a model knows that they say the same.
SAYS = {
    "refund": ["Money was promised back", "Reimbursement got granted", "It repaid the buyer"],
    "tone": ["The wording is rude", "An impolite attitude", "He sounds dismissive"],
}


class Api(BaseHTTPRequestHandler):
    """The embeddings of OpenAI: vectors near to one of two directions, all with a part in common."""

    asked: list[dict[str, Any]]
    status = 200
    short = False

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append({**body, "path": self.path})
        answer: dict[str, Any] = {"error": {"message": "quota is used up", "type": "quota"}}
        if self.status == 200:
            rows = [
                {"object": "embedding", "index": n, "embedding": _vector(text)}
                for n, text in enumerate(body["input"])
            ]
            usage = {"prompt_tokens": 7 * len(rows), "total_tokens": 7 * len(rows)}
            answer = {"object": "list", "data": rows[: len(rows) - self.short],
                      "model": body["model"], "usage": usage}  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _vector(text: str) -> list[float]:
    drawn = random.Random(text)
    kind = next((k for k, said in SAYS.items() for each in said if each.casefold() in text), "")
    vector = [drawn.gauss(0, 0.02) for _ in range(64)]
    vector[0] += 1.0
    if kind:
        vector[1 if kind == "refund" else 2] += 1.0
    return vector


@pytest.fixture
def api() -> Iterator[tuple[str, type[Api]]]:
    handler = type("Own", (Api,), {"asked": []})
    with on_loopback(handler) as address:
        yield f"{address}/v1", handler


def _settings(address: str, **more: Any) -> dict[str, Any]:
    return {"model": "openai:small", "base_url": address, "api_key": "k", "retries": 0, **more}


def _collected() -> Collector:
    """A judge says one of six things of 24 dispatches."""
    collector = Collector()
    texts = [text for said in SAYS.values() for text in said] * 4
    for number, text in enumerate(texts):
        says = f"{text} to {number}@example.com"
        failure = Failure(conversation=f"c{number}", evaluator="polite", type="polite",
                          receiver="desk", says=says, judged=True)  # fmt: skip
        collector.add([failure])
    return collector


def test_wordings_without_a_common_word_are_one_issue_by_their_vectors(
    api: tuple[str, type[Api]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address, server = api
    collector = _collected()
    assert len(collector.issues({})) > 2
    embed = embedder(_settings(address), {})
    found = collector.issues({}, embed)
    assert sorted(issue.count for issue in found) == [12, 12]
    for issue in found:
        assert {m.says.partition(" to ")[0] for m in issue.members} in map(set, SAYS.values())
    (asked,) = server.asked
    assert (asked["model"], asked["path"]) == ("small", "/v1/embeddings")
    assert len(asked["input"]) == 6
    assert "example.com" not in json.dumps(asked)
    # Nothing is asked twice, in another run either.
    again = collector.issues({}, embedder(_settings(address), {}))
    assert [issue.key for issue in again] == [issue.key for issue in found]
    assert len(server.asked) == 1


def test_a_budget_is_kept_and_an_api_that_fails_says_why(api: tuple[str, type[Api]]) -> None:
    address, server = api
    texts = [f"The reply number {'x' * n} is rude" for n in range(250)]
    one = Embeddings(read_settings(_settings(address, max_calls=2)))
    with pytest.raises(JudgeError, match="no more than 2 requests"):
        run_anywhere(one.of(texts))
    assert [len(each["input"]) for each in server.asked] == [100, 100]
    with pytest.raises(InputError, match="max_cost"):
        Embeddings(read_settings(_settings(address)), max_cost=1.0)
    prices = read_prices({"openai:small": {"input": 200.0, "output": 0.0}})
    priced = Embeddings(read_settings(_settings(address)), max_cost=1.0, prices=prices)
    with pytest.raises(JudgeError, match="a request costs about"):
        run_anywhere(priced.of(texts))
    assert priced.spent == 0.14
    server.short = True
    with pytest.raises(JudgeError, match="did not answer with a vector for each text"):
        run_anywhere(Embeddings(read_settings(_settings(address))).of(texts))
    server.status = 429
    with pytest.raises(JudgeError, match="quota is used up"):
        run_anywhere(Embeddings(read_settings(_settings(address))).of(texts))
    with pytest.raises(InputError, match="from OpenAI"):
        Embeddings(read_settings({"model": "anthropic:x", "api_key": "k"}))


def test_issues_are_grouped_by_words_if_there_are_no_vectors(
    api: tuple[str, type[Api]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address, server = api
    server.status = 500
    notes: list[str] = []
    by_words = [issue.key for issue in _collected().issues({})]
    embed = embedder(_settings(address), {})
    found = _in_groups(_collected(), tmp_path / "groups.json", notes.append, embed)
    assert [issue.key for issue in found] == by_words
    assert len(notes) == 1
    assert "no embeddings, so new reasons are compared by their words" in notes[0]


def test_a_server_groups_by_vectors_within_its_budget(
    api: tuple[str, type[Api]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address, server = api
    texts = [text for said in SAYS.values() for text in said] * 2
    made = [of(f"t{n}") for n in range(len(texts))]
    store = open_store(tmp_path / "server")
    arrive(store, [(one, judged(one, text)) for one, text in zip(made, texts, strict=True)])
    given = {"folder": str(tmp_path / "server"), "embeddings": _settings(address)}
    assert Live(store, load_settings(None, {**given, "trials": Budget(cost_usd=0)})).regroup(NOW)
    assert "the budget of `trials:` is used up" in caplog.text
    assert server.asked == []
    ask_for_regrouping(store, 1)
    assert Live(store, load_settings(None, given)).regroup(NOW)
    assert sorted(row["count"] for row in rows(store) if row["text_group"]) == [6, 6]
    store.close()
    with pytest.raises(InputError, match="no provider `opnai`"):
        load_settings(None, {"embeddings": "opnai:small"})


def test_groups_of_vectors_stay_if_there_are_only_words(
    api: tuple[str, type[Api]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address, server = api
    file, notes = tmp_path / "groups.json", list[str]()
    found = _in_groups(_collected(), file, notes.append, embedder(_settings(address), {}))
    keys = [issue.key for issue in found]
    assert len(keys) == 2
    # What works on an issue asks nobody; an API that fails takes no group apart either.
    assert [issue.key for issue in _in_groups(_collected(), file, notes.append)] == keys
    (tmp_path / ".baton" / "verdicts.sqlite").unlink()
    server.status = 500
    failing = embedder(_settings(address), {})
    assert [issue.key for issue in _in_groups(_collected(), file, notes.append, failing)] == keys
    assert len(notes) == 1
