"""The state of trees: shared by processes and threads, and still there after a restart."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.clock import cpu_limit

from baton.guard.decide_event import Event
from baton.guard.policy import Policy, Rule
from baton.guard.state import Store
from baton.model import InputError

MANY = """
import sys, time
from baton.guard.decide_event import Event
from baton.guard.policy import Policy, Rule
from baton.guard.state import Store
store, who = Store(sys.argv[1]), sys.argv[2]
policy = Policy(rules=[Rule(name="all", max_dispatches=200)])
print("ready", flush=True)
sys.stdin.readline()
made = 0
for n in range(200):
    event = Event(on="dispatch", tree="t", id=f"{who}{n}", parent=who, depth=1, to="lab", at=time.time())
    made += store.decide(policy, event).allowed
print(made)
"""


def sent(number: int, parent: str = "p", **fields: object) -> Event:
    given = {"to": "lab", "sender": "desk", "depth": 1, "at": time.time(), **fields}
    return Event(on="dispatch", tree="t", id=f"d{number}", parent=parent, **given)  # type: ignore[arg-type]


def limit(**limits: int) -> Policy:
    return Policy(rules=[Rule(name=name, **{name: value}) for name, value in limits.items()])  # type: ignore[arg-type]


def test_two_processes_with_200_dispatches_each_stop_at_one_limit(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    Store(file).close()
    both = [
        subprocess.Popen(
            [sys.executable, "-c", MANY, str(file), who],
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
    made = [int(each.communicate(timeout=60)[0]) for each in both]
    assert sum(made) == 200
    assert Store(file).spent("t").dispatches == 200


def test_state_survives_a_restart(tmp_path: Path) -> None:
    first = Store(tmp_path / "guard.db")
    assert first.decide(limit(max_dispatches=1), sent(1)).allowed
    first.use("t", tokens=10, cost_usd=0.25)
    first.use("t", tokens=5)
    first.close()
    again = Store(tmp_path / "guard.db")
    assert not again.decide(limit(max_dispatches=1), sent(2)).allowed
    assert again.spent("t")[:3] == (1, 15, 0.25)


def test_threads_stop_at_one_limit_in_memory() -> None:
    store = Store()
    policy = limit(max_dispatches=50)
    allowed: list[bool] = []

    def work(who: int) -> None:
        allowed.extend(store.decide(policy, sent(who * 100 + n)).allowed for n in range(40))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (sum(allowed), len(allowed)) == (50, 160)


def test_what_is_answered_is_no_longer_at_once() -> None:
    store, policy = Store(), limit(max_fan_out=2)
    assert store.decide(policy, sent(1)).allowed
    assert store.decide(policy, sent(2)).allowed
    assert not store.decide(policy, sent(3)).allowed
    assert store.decide(policy, sent(4, parent="another")).allowed
    store.end("t", "d1")
    assert store.decide(policy, sent(5)).allowed


def test_the_same_task_is_counted_whatever_its_spaces() -> None:
    store, policy = Store(), limit(max_same_task=1)
    assert store.decide(policy, sent(1, prompt="Test the  sample")).allowed
    assert not store.decide(policy, sent(2, prompt="test the sample\n")).allowed
    assert store.decide(policy, sent(3, prompt="Test the other sample")).allowed
    assert store.decide(policy, sent(4, to="other", prompt="Test the sample")).allowed


def test_what_was_refused_does_not_count() -> None:
    store = Store()
    assert not store.decide(limit(max_dispatches=0), sent(1)).allowed
    assert store.spent("t").dispatches == 0


def test_trees_do_not_share_limits() -> None:
    store, policy = Store(), limit(max_dispatches=1)
    assert store.decide(policy, sent(1)).allowed
    other = Event(on="dispatch", tree="u", id="d1", parent="p", depth=1, to="lab", at=time.time())
    assert store.decide(policy, other).allowed


def test_texts_are_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "guard.db")
    store.decide(limit(max_dispatches=1), sent(1, prompt="the-secret-plan", request="of kim"))
    store.close()
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"the-secret-plan" not in kept
    assert b"of kim" not in kept


@pytest.mark.parametrize(("on_error", "allowed"), [("closed", False), ("open", True)])
def test_a_state_that_breaks_closes_or_opens_as_the_policy_says(
    on_error: str, allowed: bool, tmp_path: Path
) -> None:
    store = Store(tmp_path / "guard.db")
    with sqlite3.connect(tmp_path / "guard.db") as other:
        other.execute("drop table dispatches")
    other.close()
    policy = Policy(on_error=on_error, rules=[Rule(name="all", max_dispatches=5)])  # type: ignore[arg-type]
    store.begin("t")
    decision = store.decide(policy, sent(1))
    assert decision.allowed is allowed
    assert "state of the tree" in decision.failed["guard"]


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "guard.db").write_text("hello, this is a letter and no database at all\n" * 100)
    with pytest.raises(InputError, match="not a file with the state of guards"):
        Store(tmp_path / "guard.db")


def test_a_dispatch_that_nobody_answers_is_given_up_after_an_hour() -> None:
    store, policy = Store(), limit(max_fan_out=1)
    assert store.decide(policy, sent(1, at=0.0)).allowed
    assert not store.decide(policy, sent(2, at=3_599.0)).allowed
    assert store.decide(policy, sent(3, at=3_600.0)).allowed
    assert store.end("t", "d1")  # late, and counted as given up already
    assert not store.decide(policy, sent(4, at=3_601.0)).allowed
    assert store.end("t", "d3")
    assert store.decide(policy, sent(5, at=3_602.0)).allowed


def test_a_dispatch_that_is_decided_again_counts_once() -> None:
    store, policy = Store(), limit(max_dispatches=2, max_fan_out=2)
    for _ in range(2):
        assert store.decide(policy, sent(1)).allowed
        assert store.end("t", "d1")
    assert store.decide(policy, sent(1)).allowed
    assert store.spent("t").dispatches == 1
    assert store.decide(policy, sent(2)).allowed
    assert not store.decide(policy, sent(3)).allowed


@pytest.mark.parametrize("answered", [True, pytest.param(False, marks=pytest.mark.heavy)])
def test_20_000_dispatches_of_one_request_are_decided_in_seconds(answered: bool) -> None:
    store, policy = Store(), limit(max_depth=3)
    with cpu_limit(20):
        for number in range(20_000):
            assert store.decide(policy, sent(number, at=float(number))).allowed
            if answered:
                store.end("t", f"d{number}")


def test_a_file_takes_no_more_than_it_may(tmp_path: Path) -> None:
    store, policy = Store(tmp_path / "guard.db", most_bytes=100_000), limit(max_dispatches=10_000)
    decisions = (store.decide(policy, sent(n, parent="p" * 900)) for n in range(1000))
    full = next(each for each in decisions if not each.allowed)
    assert "full" in full.failed["guard"]
    assert store.spent("t").dispatches > 10


def test_what_nothing_happened_in_for_a_week_is_forgotten_while_a_program_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, now = Store(), time.time()
    store.begin("old")
    store.use("old", tokens=5)
    monkeypatch.setattr(time, "time", lambda: now + 8 * 86_400)
    store.begin("new")
    assert store.spent("old").tokens is None
