# ruff: noqa: E501 - rows are read as tables
"""How long the lists of a server take over a million dispatches.

    python benchmarks/server_queries.py [FOLDER | postgresql://...] [--dispatches 1000000]

Fills a store (once; it is used again), then asks each list as the API does, and prints the median
of some tries in milliseconds. Rows are made up: 20 agents, 5 % of the dispatches fail, one agent
is rare, and one conversation in ten has 30 dispatches.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Table, func, insert, select

from baton.model.filter import filter_of
from baton.server import queries, sums
from baton.server.bodies import day_of
from baton.server.database import EVERY_PROJECT
from baton.server.schema import conversation, dispatch, rollup, run, score
from baton.server.store import Store, open_store
from baton.testing.build import call, delegate, trace, turn
from baton.testing.build import run as agent_run

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.server.seeding import add_days

AGENTS = [f"agent-{n:02}" for n in range(20)]
RARE = "rare-agent"
NOW = 1_780_000_000.0
DAYS = 30


def rows(count: int) -> Iterator[dict[Table, list[dict[str, Any]]]]:
    """Yield rows of 2,000 conversations at a time, the oldest first."""
    chance = random.Random(7)
    made = number = 0
    while made < count:
        batch: dict[Table, list[dict[str, Any]]] = {
            t: [] for t in (conversation, run, dispatch, score)
        }
        for _ in range(2000):
            number += 1
            many = 30 if number % 10 == 0 else chance.randint(1, 4)
            at = NOW - DAYS * 86_400 * (1 - made / count)
            failed_here = 0
            agents = [chance.choice(AGENTS)]
            common = {"project": 1, "conversation": number}
            for n in range(many):
                to = RARE if chance.random() < 0.0002 else chance.choice(AGENTS)
                failed = chance.random() < 0.05
                failed_here += failed
                verdict = "failed" if failed else "passed"
                times = {"started": at + n, "ended": at + n + chance.random() * 5}
                tokens = {"input_tokens": 900, "output_tokens": 80, "cost_usd": 0.002}
                batch[run].append({**common, **times, **tokens, "id": f"r{n}", "turn": 0, "agent": to, "status": "completed", "tool_calls": 2})  # fmt: skip
                batch[dispatch].append({**common, **times, **tokens, "id": f"d{n}", "turn": 0, "from_agent": agents[0], "to_agent": to, "kind": "delegate", "mode": "foreground", "basis": "stated", "status": "completed", "depth": 1 + n % 3, "verdict": verdict})  # fmt: skip
                batch[score].append({**common, "version": 1, "rule": "all", "evaluator": "dispatch_scope", "type": "dispatch_scope", "evaluator_version": "1", "unit": "dispatch", "subject": f'["d{n}"]', "dispatch": f"d{n}", "from_agent": agents[0], "to_agent": to, "status": verdict, "value": float(not failed), "finding": "scope_exceeded" if failed else None, "details": "{}", "evidence": "[]", "at": at + n})  # fmt: skip
                agents.append(to)
            made += many
            batch[conversation].append({"id": number, "project": 1, "key": f"session-{number}", "version": 1, "state": "complete", "source": "otlp", "service": f"service-{number % 5}", "agents": msgspec.json.encode(list(dict.fromkeys(agents))).decode(), "preview": "Refund my order.", "started": at, "ended": at + many, "seen": at + many, "read": at + many, "status": "completed", "turns": 1, "runs": many, "dispatches": many, "spans": 4 * many, "input_tokens": 900 * many, "output_tokens": 80 * many, "cost_usd": 0.002 * many, "verdict": "failed" if failed_here else "passed", "failed": failed_here, "day": day_of(at), "place": 0})  # fmt: skip
        yield batch


def record(number: int) -> Any:
    """A record of four runs with some 20 texts, as most conversations are."""
    words = f"Order {number}: " + "the customer wants the money back for the broken lamp. " * 8
    steps = [call(f"look_up_{n}", {"order": number, "why": words[:80]}) for n in range(8)]
    runs = [agent_run("desk", *(delegate(f"agent-{n:02}", words) for n in range(3)))]
    runs += [agent_run(f"agent-{n:02}", *steps, output=words) for n in range(3)]
    return trace(turn(words, *runs, output=words), id=f"session-{number}")


def fill(store: Store, count: int) -> None:
    for batch in rows(count):
        with_bodies = batch[conversation]
        by_day: dict[str, list[dict[str, Any]]] = {}
        for row in with_bodies:
            by_day.setdefault(row["day"], []).append(row)
        for day, some in by_day.items():
            bodies = [msgspec.msgpack.encode(record(row["id"])) for row in some]
            for row, place in zip(some, store.bodies.put(day, bodies), strict=True):
                row["place"] = place.number
        with store.write() as connection:
            for table, values in batch.items():
                connection.execute(insert(table), values)
    hours = range(int(NOW // 3600) - DAYS * 24, int(NOW // 3600))
    with store.write() as connection:
        for hour in hours:
            connection.execute(insert(rollup), [{"project": 1, "hour": hour, "from_agent": one, "to_agent": other, "agent_version": "", "evaluator": evaluator, "count": 9, "passed": 8, "failed": 1, "errors": 0, "skipped": 0, "value_sum": 8.0, "value_count": 9, "input_tokens": 9, "output_tokens": 9, "cost_usd": 0.1, "seconds": 9.0} for one in AGENTS[:5] for other in AGENTS[:10] for evaluator in ("", "dispatch_scope", "result_used")])  # fmt: skip
    add_days(store)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("where", nargs="?", default=Path(tempfile.gettempdir()) / "baton-queries")
    parser.add_argument("--dispatches", type=int, default=1_000_000)
    options = parser.parse_args()
    where = options.where if "://" in str(options.where) else Path(options.where)
    store = open_store(where)
    with store.read() as connection:
        query = select(func.count()).select_from(dispatch)
        there = connection.execute(query, execution_options=EVERY_PROJECT).scalar() or 0
    if there < options.dispatches:
        started = time.perf_counter()
        fill(store, options.dispatches)
        print(f"filled in {time.perf_counter() - started:.0f} s")

    def of_conversations(**params: Any) -> Callable[[], object]:
        text = params.pop("text", None)
        chosen = filter_of(params, queries.CONVERSATION_FIELDS)
        return lambda: queries.conversations(store, 1, chosen, text=text)

    def of_dispatches(**params: Any) -> Callable[[], object]:
        chosen = filter_of(params, queries.DISPATCH_FIELDS)
        return lambda: queries.dispatches(store, 1, chosen)

    def of_scores(**params: Any) -> Callable[[], object]:
        chosen = filter_of(params, queries.SCORE_FIELDS)
        return lambda: queries.scores(store, 1, chosen)

    newest = queries.conversations(store, 1, filter_of({}, {})).items[0].id
    asked: dict[str, Callable[[], object]] = {
        "conversations": of_conversations(),
        "conversations, failed": of_conversations(verdict="failed"),
        "conversations, agent": of_conversations(agent="agent-03"),
        "conversations, rare agent": of_conversations(agent="rare*"),
        "conversations, edge": of_conversations(**{"from": "agent-01", "to": "agent-02"}),
        "conversations, evaluator failed": of_conversations(evaluator="dispatch_scope", verdict="failed"),
        "conversations, evaluator errors": of_conversations(evaluator="dispatch_scope", verdict="error"),
        "conversations, cost": of_conversations(cost=">=0.05"),
        "conversations, text of one": of_conversations(text="order 77777:"),
        "conversations, text of all": of_conversations(text="broken lamp"),
        "dispatches": of_dispatches(),
        "dispatches, to": of_dispatches(to="agent-03"),
        "dispatches, to glob": of_dispatches(to="agent-0*"),
        "dispatches, to failed": of_dispatches(to="agent-03", verdict="failed"),
        "dispatches, rare": of_dispatches(to=RARE),
        "dispatches, rare failed": of_dispatches(to=RARE, verdict="failed"),
        "dispatches, edge failed": of_dispatches(**{"from": "agent-01", "to": "agent-02", "verdict": "failed"}),
        "dispatches, finding": of_dispatches(finding="scope_*"),
        "dispatches, none": of_dispatches(status="refused"),
        "dispatches, depth": of_dispatches(depth=">=3", to="agent-05"),
        "scores": of_scores(),
        "scores, failed": of_scores(evaluator="dispatch_scope", verdict="failed"),
        "scores, finding": of_scores(finding="scope_exceeded"),
        "scores, error": of_scores(evaluator="dispatch_scope", verdict="error"),
        "one conversation": lambda: msgspec.json.encode(queries.one_conversation(store, 1, newest)),
        "edges, 30 days": lambda: sums.edges(store, 1, since=NOW - DAYS * 86_400),
        "trends, 30 days": lambda: sums.trends(store, 1, interval="hour", evaluator="dispatch_scope", since=NOW - DAYS * 86_400, until=NOW),
    }  # fmt: skip
    for name, ask in asked.items():
        taken = []
        for _ in range(5):
            started = time.perf_counter()
            ask()
            taken.append((time.perf_counter() - started) * 1000)
        print(f"{name:34} {statistics.median(taken):8.1f} ms   first {taken[0]:8.1f} ms")
    store.close()


if __name__ == "__main__":
    main()
