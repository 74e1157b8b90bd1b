"""The queue of what waits for a judge: delayed, never dropped, and within budgets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import select, update

from baton.formats.document import Document
from baton.model import Trace
from baton.model.subjects import Origin
from baton.server.judging import judge_waiting, rules_with_status
from baton.server.rows import Reading, write
from baton.server.rule_scoring import score as score_now
from baton.server.rules import Rules, read_rules
from baton.server.schema import conversation, judging, rollup, score, spending
from baton.server.store import Store
from baton.server.worker_jobs import Live
from baton.testing import LlmServer, llm_server
from baton.testing.llm import Reply

from .seeding import assert_days_follow
from .test_rule_scoring import conversation as conversation_of

NOW = 1_790_000_000.0
INSIDE = {"reason": "it kept to the order", "quote": "", "label": "inside"}


def rules_for(server: LlmServer, more: str = "", judge: dict[str, Any] | None = None) -> Rules:
    options = server.judge(retries=0, **(judge or {}))
    stated = {"judges": {"x": options}, "rules": []}
    text = f"- {{name: r, evaluators: [{{type: ScopeFidelity, judge: x}}]{more}}}"
    document = Document("rules", text.encode(), "yaml")
    stated["rules"] = document.value()
    return read_rules(None, stated)


class Server:
    """A store with conversations that were read, and the records of them."""

    def __init__(self, store: Store, rules: Rules) -> None:
        self.store, self.rules = store, rules
        self.project = store.project("default")
        self.records: dict[int, Trace] = {}

    def arrives(self, id: str = "one", now: float = NOW, **more: Any) -> None:
        self.takes(conversation_of(id=id, **{"inside": True, **more}), now)

    def takes(self, record: Trace, now: float = NOW, live: Live | None = None) -> None:
        id = record.id
        rows: Sequence[Any]
        waiting: Sequence[str]
        if live is None:
            scored = score_now(record, self.rules.rules, Origin(), now=now)
            rows, waiting = scored.rows, scored.waiting
        else:
            rows, waiting = live.score(self.project, record, None, "complete")
        place = self.store.bodies.put("2026-09-21", [b"x"])[0]
        reading = Reading(
            trace=record,
            place=place,
            state="complete",
            traces=[id],
            spans=1,
            seen=now,
            scores=list(rows),
            waiting=list(waiting),
        )
        with self.store.write() as connection:
            write(connection, self.project, [reading], now, traces=[id])
            query = select(conversation.c.id).where(conversation.c.project == self.project)
            number = connection.execute(query.where(conversation.c.key == id)).scalar_one()
        self.records[number] = record

    def judges(self, now: float, cache: Path | None = None) -> int:
        return judge_waiting(
            self.store,
            self.rules,
            now,
            read=lambda _, __, number: self.records[number],
            cache=cache,
        )

    def rows(self, table: Any) -> list[dict[str, Any]]:
        with self.store.read() as connection:
            query = select(table).where(table.c.project == self.project)
            return [dict(row) for row in connection.execute(query).mappings()]

    @property
    def verdicts(self) -> list[tuple[str, str | None]]:
        return [(row["status"], row["to_agent"]) for row in self.rows(score)]


def test_what_waits_is_judged_once_and_its_scores_are_kept(store: Store) -> None:
    with llm_server(INSIDE) as llm:
        server = Server(store, rules_for(llm))
        server.arrives()
        assert server.verdicts == []
        assert server.judges(NOW) == 1
        assert server.judges(NOW + 1000) == 0
        assert len(llm.requests) == 2
    assert server.verdicts == [("passed", "refunds"), ("passed", "billing")]
    (row,) = server.rows(conversation)
    assert row["verdict"] == "passed"
    judge = msgspec.json.decode(server.rows(score)[0]["judge"])
    assert judge["model"] == "scripted"


def test_a_judge_that_is_down_delays_over_restarts_and_drops_nothing(
    store: Store, tmp_path: Path
) -> None:
    answers: list[Any] = [INSIDE, Reply(status=500, message="down")]
    with llm_server(lambda _: answers.pop(0) if len(answers) > 1 else answers[0]) as llm:
        server = Server(store, rules_for(llm))
        server.arrives()
        assert server.judges(NOW, tmp_path / "verdicts") == 1
        assert len(server.verdicts) == 1
        (row,) = server.rows(judging)
        assert (row["state"], row["attempts"], row["due"]) == ("waiting", 1, NOW + 15)
        assert "down" in row["error"]
        again = Server(store, server.rules)
        again.records = server.records
        assert again.judges(NOW + 14, tmp_path / "verdicts") == 0
        assert again.judges(NOW + 15, tmp_path / "verdicts") == 1
        assert again.rows(judging)[0]["due"] == NOW + 45
        answers[:] = [INSIDE]
        assert again.judges(NOW + 45, tmp_path / "verdicts") == 1
    assert sorted(again.verdicts) == [("passed", "billing"), ("passed", "refunds")]
    assert again.rows(judging)[0]["state"] == "done"


def test_what_was_taken_by_a_worker_that_was_killed_is_taken_again(store: Store) -> None:
    with llm_server(INSIDE) as llm:
        server = Server(store, rules_for(llm))
        server.arrives()
        with store.write() as connection:  # what taking it leaves behind
            mine = judging.c.project == server.project
            connection.execute(update(judging).where(mine).values(due=NOW + 300))
        assert server.judges(NOW + 299) == 0
        assert server.judges(NOW + 300) == 1
    assert len(server.verdicts) == 2


def test_a_budget_that_is_used_up_waits_for_the_next_period_and_is_shown(store: Store) -> None:
    with llm_server(INSIDE) as llm:
        rules = rules_for(llm, ", budget: {cost_usd: 0.01, per: day}")
        server = Server(store, rules)
        server.arrives()
        with store.write() as connection:
            row = {"project": server.project, "rule": "r", "period": "2026-09-21", "cost_usd": 0.01}
            connection.execute(spending.insert().values(row))
        assert server.judges(NOW) == 1
        assert llm.requests == []
        (row,) = server.rows(judging)
        assert row["state"] == "budget"
        assert row["due"] == 1_790_035_200.0  # midnight, UTC
        (listed,) = rules_with_status(store, rules, "default", NOW)
        status = listed["judging"]
        assert (status["over_budget"], status["waiting"]) == (1, 0)
        assert (status["spent_usd"], status["budget_usd"], status["per"]) == (0.01, 0.01, "day")
        assert "the budget of $0.01 per day is used up" in status["error"]


def test_a_new_version_of_a_conversation_is_judged_in_place_of_the_old_one(store: Store) -> None:
    with llm_server(INSIDE) as llm:
        server = Server(store, rules_for(llm))
        server.arrives()
        server.arrives(now=NOW + 1)
        server.judges(NOW + 2)
        assert {row["version"] for row in server.rows(score)} == {2}
        assert len(llm.requests) == 2


def test_an_invalid_answer_is_asked_for_again_and_then_an_error(store: Store) -> None:
    with llm_server("not what was asked for") as llm:
        server = Server(store, rules_for(llm))
        server.arrives()
        for now in (NOW, NOW + 15, NOW + 45):
            assert server.judges(now) == 1
        assert server.judges(NOW + 10_000) == 0
    assert [status for status, _ in server.verdicts] == ["error", "error"]


def test_a_failure_that_a_judge_saw_is_scored_by_rules_beyond_their_samples(store: Store) -> None:
    outside = {"reason": "it did more", "quote": "", "label": "outside"}
    with llm_server(outside) as llm:
        stated = {
            "judges": {"x": llm.judge(retries=0)},
            "rules": [
                {"name": "r", "evaluators": [{"type": "ScopeFidelity", "judge": "x"}]},
                {"name": "dear", "sample": "1 %", "evaluators": ["dispatch_completed"]},
            ],
        }
        rules = read_rules(None, stated)
        dear = rules.rules[1]
        id_ = next(f"c{n}" for n in range(1000) if not dear.samples(f"c{n}"))
        server = Server(store, rules)
        server.arrives(id_)
        server.judges(NOW)
    rows = sorted((row["rule"], row["sampled"]) for row in server.rows(score))
    assert rows == [("dear", False), ("dear", False), ("r", True), ("r", True)]


def test_a_rule_that_is_gone_is_no_longer_waited_for(store: Store) -> None:
    with llm_server(INSIDE) as llm:
        server = Server(store, rules_for(llm))
        server.arrives()
        server.rules = Rules()
        assert server.judges(NOW) == 1
        assert server.rows(judging)[0]["state"] == "done"
        assert llm.requests == []


def test_what_was_scored_beyond_a_sample_is_in_no_rate(store: Store) -> None:
    stated = [
        {"name": "cheap", "evaluators": ["dispatch_scope"]},
        {"name": "dear", "sample": "1 %", "evaluators": ["dispatch_completed"]},
    ]
    rules = read_rules(None, {"rules": stated})
    id_ = next(f"c{n}" for n in range(1000) if not rules.rules[1].samples(f"c{n}"))
    server = Server(store, rules)
    for _ in range(2):  # a second version takes the first one out of the sums
        server.arrives(id_, inside=False)
        assert "dear" in {row["rule"] for row in server.rows(score)}
        assert {row["evaluator"] for row in server.rows(rollup)} == {"", "dispatch_scope"}
        assert_days_follow(server.store)
