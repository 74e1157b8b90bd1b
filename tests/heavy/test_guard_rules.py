"""Every rule with every action, in each framework, in each way in which it runs agents."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from baton.guard import Guard, Store
from baton.guard.decide_event import Decision, Event
from baton.guard.policy import Policy
from baton.model.current_guard import DECISIONS
from baton.model.prices import ModelPrice

from .guarded import ANSWER, CHARGES, KEY, LAB_MAY_ANSWER, Calls
from .test_guards import rules

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),
]
LAB: Calls = [("ask_lab", {"task": "Test sample R-77."})]
DEEP: Calls = [("ask_deep", {"task": "Test the rest of R-77."})]
CHARGE: Calls = [("charge", {"order": "7"})]
BOTH = f"{ANSWER} | {ANSWER}"
PRICES = {"scripted": ModelPrice(input=10, output=10)}
"""Of the model that all of them ask; a stream of Pydantic AI's test model estimates its tokens."""


class Row(NamedTuple):
    """A rule, a program that breaks it once, what the desk hears when it may, and why it may not."""

    check: str
    on: str
    calls: Calls
    passed: str
    refused: str
    lab: Any = ()
    together: bool = False


ROWS = {
    "max_depth": Row(
        "max_depth: 1", "dispatch", LAB, "All is well.", "`deep` would work at depth 2", DEEP
    ),
    "max_dispatches": Row(
        "max_dispatches: 1", "dispatch", LAB + LAB, BOTH, "this request has made 1 dispatch"
    ),
    "max_per_parent": Row(
        "max_per_parent: 1", "dispatch", LAB + LAB, BOTH, "`desk` has made 1 dispatch"
    ),
    "max_fan_out": Row(
        "max_fan_out: 1",
        "dispatch",
        LAB + LAB,
        BOTH,
        "`desk` waits for 1 answer",
        together=True,
    ),
    "max_tokens": Row(
        "max_tokens: 10, for: 'on:dispatch'",
        "dispatch",
        LAB,
        ANSWER,
        "tokens, and 10 is the limit",
    ),
    "max_cost_usd": Row(
        "max_cost_usd: 0.0001, for: 'on:dispatch'",
        "dispatch",
        LAB,
        ANSWER,
        "USD, and 0.0001 is the limit",
    ),
    "max_seconds": Row(
        "max_seconds: 60, for: 'tool:charge'",
        "tool",
        CHARGE,
        "charged 7",
        "this request has taken 10",  # 100.2 seconds
    ),
    "max_same_task": Row(
        "max_same_task: 1", "dispatch", LAB + LAB, BOTH, "`lab` was given this task 1 time"
    ),
    "allowed_edges": Row(
        "allowed_edges: {desk: [other]}",
        "dispatch",
        LAB,
        ANSWER,
        "`desk` may not hand work to `lab`, only to `other`",
    ),
    "allowed_tools": Row(
        "allowed_tools: [look_up], for: 'to:desk tool:charge'",
        "tool",
        CHARGE,
        "charged 7",
        "`desk` may not use `charge` like this",
    ),
    "required_context": Row(
        "required_context: ids", "dispatch", LAB, ANSWER, "the prompt lacks `X-99` of the request"
    ),
    "output": Row(
        "output: {any: [{pattern: clean}]}",
        "output",
        LAB,
        ANSWER,
        "the answer of `lab` matches `clean`: it is withheld",
    ),
}
WAYS = {
    "adk": ("run_async", "streamed"),
    "langchain": ("invoke", "ainvoke", "stream", "astream"),
    "openai_agents": ("run", "run_streamed"),
    "pydantic_ai": ("run", "run_stream", "iter", "run_stream_events"),
    "strands": ("call", "invoke_async", "stream_async"),
}


class _LetsTheLabAnswer(Store):
    """Lets the lab answer once two dispatches are decided, so that both are running at once."""

    decided = 0

    def decide(self, policy: Policy, event: Event, **named: Any) -> Decision:
        decision = super().decide(policy, event, **named)
        self.decided += event.on == "dispatch"
        if self.decided == 2:
            LAB_MAY_ANSWER.set()
        return decision


@pytest.fixture
def played(framework: str, way: str) -> Iterator[Any]:
    """Play a row under a policy; what the desk heard at last, and what was noted."""
    program = importlib.import_module(f"tests.heavy.guarded.in_{framework}")
    CHARGES.clear()
    notes: list[dict[str, Any]] = []
    token = DECISIONS.set(notes)

    def play(row: Row, policy: Policy, **named: Any) -> tuple[str, list[dict[str, Any]]]:
        store = _LetsTheLabAnswer() if row.together else Store()
        guard = Guard(policy, store=store, prices=PRICES, **named)
        store.begin("t", time.time() - 100)
        if row.together:
            LAB_MAY_ANSWER.clear()
        asked = "Are samples R-77 and X-99 clean?"
        with guard.run(request=asked, tree="t"):
            desk = program.desk(guard, row.calls, row.lab, together=row.together)
            said = program.PLAYS[way](desk, asked)
        return said, notes

    yield play
    LAB_MAY_ANSWER.set()
    DECISIONS.reset(token)


FIRST_WAYS = pytest.mark.parametrize(
    ("framework", "way"), [(framework, ways[0]) for framework, ways in WAYS.items()]
)
ALL_WAYS = pytest.mark.parametrize(
    ("framework", "way"), [(framework, way) for framework, ways in WAYS.items() for way in ways]
)


@pytest.fixture(params=ROWS)
def row(request: pytest.FixtureRequest) -> Row:
    return ROWS[request.param]


def policy_of(row: Row, action: str) -> Policy:
    return rules(f"{{{row.check}, name: tried, action: {action}}}")


def tried(notes: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    return [(n["on"], n["action"], n["allowed"]) for n in notes if n["rule"] == "tried"]


@ALL_WAYS
def test_it_blocks_and_the_model_reads_why(played: Any, row: Row) -> None:
    said, notes = played(row, policy_of(row, "block"))
    assert row.refused in said
    assert said.count(ANSWER) == row.passed.count(ANSWER) - (row.passed.count("clean") > 0)
    assert CHARGES == []
    assert tried(notes) == [(row.on, "block", False)]


@FIRST_WAYS
@pytest.mark.parametrize("agrees", [True, False])
def test_it_asks_and_does_what_is_answered(played: Any, row: Row, agrees: bool) -> None:
    asked: list[str | None] = []

    def ask(decision: Decision) -> bool:
        asked.append(decision.rule)
        return agrees

    said, notes = played(row, policy_of(row, "ask"), ask=ask)
    assert asked == ["tried"]
    assert tried(notes) == [(row.on, "ask", agrees)]
    assert (row.refused in said) is not agrees
    assert (said == row.passed) is agrees


@FIRST_WAYS
@pytest.mark.parametrize("action", ["warn", "observe"])
def test_it_passes_and_is_noted(played: Any, row: Row, action: str) -> None:
    said, notes = played(row, policy_of(row, action))
    assert said == row.passed
    assert tried(notes) == [(row.on, action, True)]


@ALL_WAYS
def test_it_redacts(played: Any) -> None:
    redacted = Row("output: {any: [{secrets: [secrets]}]}", "output", LAB, "", "")
    said, notes = played(redacted, policy_of(redacted, "redact"))
    assert said.startswith("The sample is clean. The key is [key:")
    assert KEY not in said
    assert tried(notes) == [("output", "redact", True)]


@FIRST_WAYS
def test_it_knows_what_an_agent_did_when_its_caller_reads_the_answer(
    played: Any, framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent has ended by then, and says that it handed work on, which it did not."""
    program = importlib.import_module(f"tests.heavy.guarded.in_{framework}")
    monkeypatch.setattr(
        program, "ANSWER", "It is clean. I've passed the rest on to the `deep` agent."
    )
    said, notes = played(
        Row("", "output", LAB, "", ""),
        rules(
            "{allowed_edges: {desk: [lab], lab: [deep]}}",
            "{output: {any: [{finding: announced_dispatch}]}, name: tried}",
        ),
    )
    assert "`deep` got no work): it is withheld" in said
    assert tried(notes) == [("output", "block", False)]


@FIRST_WAYS
@pytest.mark.parametrize(("answer", "fits"), [('{"clean": true}', True), ("It is clean.", False)])
def test_an_answer_is_its_text_and_not_the_blocks_that_hold_it(
    played: Any, framework: str, monkeypatch: pytest.MonkeyPatch, answer: str, fits: bool
) -> None:
    program = importlib.import_module(f"tests.heavy.guarded.in_{framework}")
    monkeypatch.setattr(program, "ANSWER", answer)
    schema = "{output: {any: [{json_schema: {type: object, required: [clean]}}]}, name: tried}"
    said, _ = played(Row("", "output", LAB, "", ""), rules(schema))
    assert (said == answer) is fits
