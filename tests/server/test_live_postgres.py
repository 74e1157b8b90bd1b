"""Live scoring with PostgreSQL: the queue of judges, alerts, and several workers at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from baton.server.alerts import Addresses, alerts_of, check_alerts, deliver
from baton.server.schema import judging
from baton.server.store import Store
from baton.testing import llm_server

from .test_alerts import DAY, Hook, Scores, listening, rules_of
from .test_judging import INSIDE, NOW, Server, rules_for
from .test_judging import (
    test_a_budget_that_is_used_up_waits_for_the_next_period_and_is_shown as budget,
)
from .test_judging import test_what_waits_is_judged_once_and_its_scores_are_kept as judged

pytestmark = pytest.mark.heavy


def test_what_waits_is_judged_and_budgets_hold(postgres_store: Store) -> None:
    judged(postgres_store)


def test_a_budget_that_is_used_up_waits(postgres_store: Store) -> None:
    budget(postgres_store)


def test_several_workers_score_nothing_twice(postgres_store: Store) -> None:
    with llm_server(INSIDE) as llm, ThreadPoolExecutor(4) as workers:
        server = Server(postgres_store, rules_for(llm))
        for number in range(12):
            server.arrives(f"c{number}")
        for each in [workers.submit(server.judges, NOW + 1) for _ in range(4)]:
            each.result()
        server.judges(NOW + 2)
    assert len(server.verdicts) == 24
    assert {row["state"] for row in server.rows(judging)} == {"done"}


def test_several_workers_open_one_alert_and_send_one_message(postgres_store: Store) -> None:
    scores, rules, hook = Scores(postgres_store), rules_of(), Hook()
    scores.add([1.0] * 100 + [0.0] * 60)
    with listening(hook) as url, ThreadPoolExecutor(4) as workers:
        where = Addresses(webhook=url, private=["127.0.0.1"])
        looks = [workers.submit(check_alerts, postgres_store, rules, DAY + 10) for _ in range(4)]
        assert sum(each.result() for each in looks) == 1
        sent = [workers.submit(deliver, postgres_store, where, DAY + 11) for _ in range(4)]
        assert sum(each.result() for each in sent) == 1
    assert len(hook.got) == 1
    assert len(alerts_of(postgres_store, scores.project)) == 1


def test_a_score_of_which_earlier_ones_may_yet_come_is_not_examined(
    postgres_store: Store,
) -> None:
    scores, rules = Scores(postgres_store), rules_of()
    scores.add([1.0] * 100 + [0.0] * 60)
    assert check_alerts(postgres_store, rules, DAY + 1) == 0
    assert check_alerts(postgres_store, rules, DAY + 6) == 1
