"""The routing matrix of 200 made-up cases: what the reports say is what was put in."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.conftest import Baton

from baton.model import Trace
from baton.testing import build

AGENTS = ("billing", "customs & duty", "orders", "refunds", "shipping", "weather")
MISTAKES = {"none": 120, "wrong": 30, "under": 18, "over": 16, "error": 7, "skipped": 9}
Routed = tuple[str | None, str | None]


class Made(NamedTuple):
    """A case: what it expects, to whom work went, and what the matrix should say of that."""

    mistake: str
    expected: list[str]
    actual: list[str]
    cells: list[Routed]


def made_cases(seed: int) -> list[Made]:
    random = Random(seed)
    kinds = [kind for kind, count in MISTAKES.items() for _ in range(count)]
    random.shuffle(kinds)
    return [made_case(random, kind) for kind in kinds]


def made_case(random: Random, mistake: str) -> Made:
    """Expect one to three agents, of whom, in a case with a mistake, one is not served right."""
    least = 0 if mistake in {"none", "over"} else 1
    expected = random.sample(AGENTS, random.randint(least, 3))
    others = [name for name in AGENTS if name not in expected]
    actual, cells = list(expected), [(name, name) for name in expected]
    place = random.randrange(len(expected)) if expected else 0
    stranger = random.choice(others)
    told: list[Routed] = list(cells)
    if mistake == "wrong":
        actual[place], told[place] = stranger, (expected[place], stranger)
    elif mistake == "under":
        told[place] = (actual.pop(place), None)
    elif mistake == "over":
        actual.insert(random.randint(0, len(actual)), stranger)
        told.append((None, stranger))
    elif mistake in {"error", "skipped"}:
        actual, told = [], []
    return Made(mistake, expected, actual, told)


def trace_of(name: str, made: Made) -> Trace:
    router = build.run("router", *(build.delegate(agent) for agent in made.actual))
    turn = build.turn(router, *(build.run(agent) for agent in made.actual))
    if made.mistake == "error":
        turn.status, turn.error = "failed", "the model did not answer"
    if made.mistake == "skipped":
        turn.unknown = ["dispatches"]
    return build.trace(turn, id=name, case=name)


@pytest.fixture(scope="module")
def made() -> list[Made]:
    return made_cases(seed=5)


@pytest.fixture
def command(tmp_path: Path, made: list[Made]) -> list[str]:
    """Write cases and recorded traces; return what scores them."""
    named = [(f"case{n}", each) for n, each in enumerate(made)]
    cases = [{"id": name, "input": "hi", "dispatches": each.expected} for name, each in named]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    traces = [msgspec.json.encode(trace_of(*each)) for each in named]
    (tmp_path / "traces.jsonl").write_bytes(b"\n".join(traces))
    return ["score", "traces.jsonl", "-d", "cases.jsonl", "-e", "dispatch_routing"]


def counted(made: list[Made]) -> Counter[Routed]:
    return Counter(cell for each in made for cell in each.cells)


def figures(cells: Counter[Routed], agent: str) -> dict[str, Any]:
    """Work out precision and recall of an agent from single decisions."""
    decisions = list(cells.elements())
    went = [expected for expected, actual in decisions if actual == agent]
    meant = [actual for expected, actual in decisions if expected == agent]
    return {
        "agent": agent,
        "expected": len(meant),
        "actual": len(went),
        "right": went.count(agent),
        "precision": went.count(agent) / len(went),
        "recall": meant.count(agent) / len(meant),
    }


def test_the_cases_hold_each_mistake_and_every_agent(made: list[Made]) -> None:
    assert len(made) == 200
    cells = counted(made)
    assert {expected for expected, _ in cells} == {actual for _, actual in cells} == {*AGENTS, None}
    wrong = sum(n for (one, other), n in cells.items() if one and other and one != other)
    under = sum(n for (_, other), n in cells.items() if other is None)
    over = sum(n for (one, _), n in cells.items() if one is None)
    assert (wrong, under, over) == (30, 18, 16)


def test_json_has_the_matrix_and_the_figures_of_each_agent(
    baton: Baton, command: list[str], made: list[Made]
) -> None:
    outcome = baton(*command, "--json")
    report = json.loads(outcome.out)
    cells = counted(made)
    routing = report["routing"]
    assert {(c["expected"], c["actual"]): c["count"] for c in routing["matrix"]} == cells
    assert routing["agents"] == [figures(cells, agent) for agent in AGENTS]
    status = {"none": "passed", "error": "error", "skipped": "skipped"}
    assert [result["status"] for result in report["results"]] == [
        status.get(each.mistake, "failed") for each in made
    ]
    assert outcome.code == 3  # seven cases could not be evaluated


def rows(text: str) -> Iterator[list[str]]:
    """Yield the lines of the matrix, cell by cell; agents have a number before their names."""
    lines = iter(text.splitlines())
    next(line for line in lines if line.startswith("routing: expected"))
    for line in lines:
        if not line.strip():
            return
        yield re.split(r"\s{2,}", line.strip())


def test_the_terminal_has_the_same_matrix_and_figures(
    baton: Baton, command: list[str], made: list[Made]
) -> None:
    cells = counted(made)
    expected = []
    for number, agent in enumerate(AGENTS, 1):
        told = figures(cells, agent)
        expected.append(
            [
                f"{number} {agent}",
                *(str(cells[agent, other] or "·") for other in (*AGENTS, None)),
                f"{told['recall']:.2f} ({told['right']}/{told['expected']})",
                f"{told['precision']:.2f} ({told['right']}/{told['actual']})",
            ]
        )
    expected.append(["none", *(str(cells[None, other] or "·") for other in (*AGENTS, None))])
    assert list(rows(baton(*command).out)) == expected


def test_a_stored_evaluation_says_the_same_again(
    baton: Baton, command: list[str], tmp_path: Path
) -> None:
    report = json.loads(baton(*command, "--json").out)
    (folder,) = (tmp_path / ".baton" / "evaluations").iterdir()
    assert json.loads(baton("report", folder, "--json").out)["routing"] == report["routing"]
