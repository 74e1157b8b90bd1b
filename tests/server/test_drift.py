"""A distilled judge that drifts from its judge steps back, and says so on a page and in an alert."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import insert
from tests.evaluators.judged.test_distilled import RUBRIC, conversation, some_report
from tests.web.asking import ask
from tests.web.serving import web

from baton.evaluators.judging.rubric_files import shipped
from baton.server.alerts import Addresses, alerts_of, deliver
from baton.server.drift import check_drift, condition_of
from baton.server.judging import rules_with_status
from baton.server.rules import DriftAlert, Rules, read_rules
from baton.server.schema import score
from baton.server.settings import load_settings
from baton.server.store import Store
from baton.server.worker_jobs import Live
from baton.testing import LlmServer, llm_server

from .test_alerts import Hook, listening
from .test_judging import NOW, Server

LIMIT = 0.1
NOBODY = {"model": "openai:x", "base_url": "http://127.0.0.1:1"}
"""A judge that is never asked."""


@pytest.fixture
def file(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path / "small.json"
    report = some_report(tmp_path_factory.getbasetemp())
    path.write_bytes(msgspec.json.encode(report.model))
    return path


def stated(file: Path, judge: dict[str, Any], audit: float = 0.2) -> dict[str, Any]:
    small = {"file": str(file), "max_error": LIMIT, "audit": audit}
    evaluator = {"type": RUBRIC, "judge": "x", "config": {"distilled": small}}
    return {"judges": {"x": judge}, "rules": [{"name": "r", "evaluators": [evaluator]}]}


def rules_of(file: Path, llm: LlmServer, audit: float = 0.2) -> Rules:
    return read_rules(None, stated(file, llm.judge(retries=0), audit), channels=["webhook"])


def says(label: str) -> dict[str, str]:
    return {"reason": "r", "quote": "", "label": label}


@pytest.mark.heavy
def test_a_rule_of_a_server_answers_at_once_and_counts_what_was_checked(
    file: Path, store: Store
) -> None:
    with llm_server(says("ignored")) as llm:
        rules = rules_of(file, llm, audit=0.5)
        server = Server(store, rules)
        for number in range(900, 930):
            server.takes(conversation(number, used=True))
        server.judges(NOW)
        (row,) = rules_with_status(store, rules, "default", NOW)
        (told,) = row["distilled"]
        assert told["answered"] + told["audited"] >= 28
        assert len(llm.requests) == 30 - told["answered"]
        assert told["agreed"] == 0
        assert told["differ"]["value"] == 1.0


@pytest.mark.heavy
def test_a_judge_that_changed_its_mind_is_asked_about_everything_until_it_agrees_again(
    file: Path, store: Store
) -> None:
    numbers = iter(range(1_000, 9_000))

    def arrive(server: Server, count: int) -> None:
        for _ in range(count):
            server.takes(conversation(next(numbers), used=True), live=live)
        while server.judges(NOW):
            pass
        check_drift(store, server.rules, NOW)

    with llm_server(says("used")) as llm:
        settings = load_settings(None, stated(file, llm.judge(retries=0)))
        rules = settings.live_rules
        server, live = Server(store, rules), Live(store, settings)
        arrive(server, 60)
        spared = 60 - len(llm.requests)
        assert spared > 30
        assert alerts_of(store, server.project) == []

        llm.script = says("ignored")
        for _ in range(10):
            arrive(server, 30)
            if alerts_of(store, server.project):
                break
        (alert,) = alerts_of(store, server.project)
        assert alert["closed"] is None
        assert (
            f"the distilled judge of {RUBRIC} differs from the judge more often" in alert["message"]
        )
        assert "it steps back" in alert["message"]

        # From now on the judge gives every verdict.
        llm.clear()
        arrive(server, 30)
        assert len(llm.requests) == 30
        (row,) = rules_with_status(store, rules, "default", NOW)
        assert row["distilled"][0]["stepped_back"] is not None

        # The judge is as it was: it is seen, and the distilled judge answers again.
        llm.script = says("used")
        for _ in range(10):
            arrive(server, 30)
            if alerts_of(store, server.project)[0]["closed"]:
                break
        (alert,) = alerts_of(store, server.project)
        assert alert["closed"] is not None
        assert "agrees with the judge again" in alert["message"]
        llm.clear()
        arrive(server, 30)
        assert len(llm.requests) < 20


class Checks:
    """Adds scores that a judge checked, without asking one."""

    def __init__(self, store: Store, rules: Rules) -> None:
        self.store, self.rules, self.number = store, rules, 0
        self.project = store.project("default")
        (self.rule,) = rules.rules
        (self.made,) = self.rule.drift_alerts

    def add(self, agreed: list[bool], **more: Any) -> int:
        rows = []
        for one in agreed:
            self.number += 1
            details = {
                "label": "used",
                "distilled": {"label": "used", "limit": LIMIT, "agreed": one},
            }
            rows.append(
                {
                    "project": self.project,
                    "conversation": self.number,
                    "version": 1,
                    "rule": "r",
                    "sampled": True,
                    "evaluator": RUBRIC,
                    "type": RUBRIC,
                    "evaluator_version": f"{shipped()[RUBRIC].version}+d{self.made.file}",
                    "unit": "dispatch",
                    "subject": '["d1"]',
                    "status": "passed",
                    "value": 1.0,
                    "details": json.dumps(details),
                    "evidence": "[]",
                    "at": NOW,
                    **more,
                }
            )
        with self.store.write() as connection:
            connection.execute(insert(score), rows)
        return check_drift(self.store, self.rules, NOW)


@pytest.fixture
def checks(file: Path, store: Store) -> Checks:
    return Checks(store, read_rules(None, stated(file, NOBODY), channels=["webhook"]))


def changes_of(agreed: list[bool], limit: float = LIMIT) -> int:
    """How often an alert opens or closes over some checked answers, looked at after each."""
    made = DriftAlert(evaluator=RUBRIC, file="f", limit=limit, to=())
    watch = condition_of(made).watch()
    return sum(watch.add(float(one)) for one in agreed)


def drawn(seed: int, count: int, error: float) -> list[bool]:
    chance = random.Random(seed)
    return [chance.random() >= error for _ in range(count)]


@pytest.mark.parametrize("limit", [0.02, 0.1])
def test_without_drift_no_alert_comes_in_20_seeds(limit: float) -> None:
    # Twice as good as it has to be, and just as good (of that one in some 10,000 checks is let
    # through): 2,000 checks stand for 40,000 answers.
    for error, most in ((limit / 2, 0), (limit, 4)):
        opened = [bool(changes_of(drawn(seed, 2_000, error), limit)) for seed in range(20)]
        assert sum(opened) <= most, error


@pytest.mark.parametrize(("error", "within"), [(0.5, 60), (0.3, 150), (0.2, 600)])
def test_drift_is_found_in_20_of_20_seeds(error: float, within: int) -> None:
    assert all(changes_of(drawn(seed, within, error)) for seed in range(20))


@pytest.mark.heavy
def test_without_drift_no_alert_comes_through_the_store(checks: Checks) -> None:
    for seed in range(5):
        agreed = drawn(seed, 1_000, LIMIT / 2)
        assert not any(checks.add(agreed[at : at + 100]) for at in range(0, 1_000, 100))


@pytest.mark.heavy
def test_answers_of_another_file_and_of_rescores_do_not_count(checks: Checks) -> None:
    assert checks.add([False] * 200, evaluator_version="2+d00000000") == 0
    assert checks.add([False] * 200, rescore=1) == 0
    assert checks.add([False] * 200) == 1


@pytest.mark.heavy
def test_a_new_file_closes_the_alert_of_the_old_one(checks: Checks) -> None:
    assert checks.add([False] * 100) == 1
    new = msgspec.structs.replace(checks.made, file="00000001")
    rule = msgspec.structs.replace(checks.rule, drift_alerts=(new,))
    assert check_drift(checks.store, Rules(rules=(rule,)), NOW) == 1
    (alert,) = alerts_of(checks.store, checks.project)
    assert alert["closed"] is not None
    assert "it is no longer used" in alert["message"]
    assert check_drift(checks.store, Rules(rules=(rule,)), NOW) == 0


@pytest.mark.heavy
def test_the_alert_is_sent_to_every_channel_and_shown_on_the_page(
    checks: Checks, file: Path, tmp_path: Path
) -> None:
    assert checks.add([False] * 100) == 1
    hook = Hook()
    with listening(hook) as url:
        where = Addresses(webhook=url, private=["127.0.0.1"])
        assert deliver(checks.store, where, NOW) == 1
    ((_, _, message),) = hook.got
    assert message["event"] == "alert.opened"
    assert (message["figure"], message["limit"]) == (1.0, LIMIT)
    assert "it steps back, and the judge is asked about everything" in message["text"]
    settings = tmp_path / "server.yaml"
    settings.write_text(json.dumps(stated(file, NOBODY)))
    with web(checks.store, file=settings) as address:
        page = ask(address + "/status").text
        (row,) = json.loads(ask(address + "/api/v1/rules").text)["items"]
    assert "Distilled judges" in page
    assert "steps back" in page
    assert "100.0 %" in page
    assert f"baton distill {RUBRIC}" in page
    assert row["distilled"][0]["stepped_back"] is not None


@pytest.mark.heavy
def test_a_distilled_judge_that_agrees_is_shown_as_such(
    checks: Checks, file: Path, tmp_path: Path
) -> None:
    assert checks.add([True] * 99 + [False]) == 0
    settings = tmp_path / "server.yaml"
    settings.write_text(json.dumps(stated(file, NOBODY)))
    with web(checks.store, file=settings) as address:
        page = ask(address + "/status").text
    assert ">agrees<" in page
    assert "1.0 %" in page
    assert "steps back</span>" not in page
