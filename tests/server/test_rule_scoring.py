"""Live scoring: which scores of a conversation rules make, at once and from the queue."""

from typing import Any

import msgspec
import pytest

from baton.formats.document import Document
from baton.model import Trace
from baton.model.subjects import Origin
from baton.server.rows import narrow
from baton.server.rule_scoring import score
from baton.server.rules import Rule, Rules, read_rules
from baton.testing.build import call, delegate, run, trace, turn

JUDGED = "{type: ScopeFidelity, judge: x}"


def rules_of(*rules: str) -> list[Rule]:
    text = "judges: {x: 'openai:gpt-5'}\nrules:\n" + "".join(f"  - {{{each}}}\n" for each in rules)
    document = Document("server.yaml", text.encode(), "yaml")
    made: Rules = read_rules(document, document.value())
    return list(made.rules)


def conversation(
    *, id: str = "test", inside: bool = False, words: str = "Refund order 42."
) -> Trace:
    """A desk that sets `refunds` and `billing` to work; `refunds` uses a tool it may not."""
    allowed: dict[str, Any] = {"tools_allowed": ["lookup"], "tools_source": "definition"}
    return trace(
        turn(
            words,
            run(
                "desk",
                delegate("refunds", words, **allowed),
                delegate("billing", "Look up order 42.", **allowed),
                output="Done.",
            ),
            run("refunds", call("lookup" if inside else "delete_order", {"id": 42}), output="ok"),
            run("billing", call("lookup", {"id": 42}), output="ok"),
            output="Done.",
        ),
        id=id,
    )


def short(rows: list[dict[str, Any]]) -> list[tuple[str, str, str | None, str]]:
    return [(row["rule"], row["evaluator"], row["to_agent"], row["status"]) for row in rows]


def test_a_rule_scores_what_its_filter_meets_and_nothing_else() -> None:
    scored = score(
        conversation(), rules_of("name: r, where: {to: refunds}, evaluators: [dispatch_scope]")
    )
    assert short(scored.rows) == [("r", "dispatch_scope", "refunds", "failed")]
    assert scored.waiting == []


def test_a_row_says_of_whom_it_is_by_which_versions_and_what_the_record_proves() -> None:
    (row,) = score(
        conversation(),
        rules_of("name: r, where: {to: refunds}, evaluators: [dispatch_scope]"),
        Origin(versions={"refunds": "v7"}),
    ).rows
    assert (row["from_agent"], row["to_agent"], row["agent_version"]) == ("desk", "refunds", "v7")
    assert row["finding"] == "tool_executed"
    assert row["subject"] == f'["{row["dispatch"]}"]'
    assert row["evaluator_version"] == "1"
    assert "delete_order" in row["reason"]
    assert msgspec.json.decode(row["evidence"])[0]["ids"]


@pytest.mark.parametrize(
    ("where", "agents"),
    [
        ("service: support", ["refunds", "billing"]),
        ("service: sales", []),
        ("version: v7", ["refunds"]),
        ("kind: transfer", []),
        ("from: desk", ["refunds", "billing"]),
        ("agent: '!billing'", ["refunds"]),
        ("depth: '>=2'", []),
    ],
)
def test_a_filter_asks_the_record_and_what_its_spans_tell(where: str, agents: list[str]) -> None:
    origin = Origin(service="support", versions={"refunds": "v7"})
    rules = rules_of(f"name: r, where: {{{where}}}, evaluators: [dispatch_scope]")
    rows = score(conversation(), rules, origin).rows
    assert [row["to_agent"] for row in rows] == agents


def test_a_rule_on_conversations_takes_evaluators_of_all_that_is_in_them() -> None:
    rules = rules_of("name: r, on: conversation, evaluators: [dispatch_scope, handoff_loops]")
    rows = score(conversation(), rules).rows
    assert short(rows)[:2] == [
        ("r", "dispatch_scope", "refunds", "failed"),
        ("r", "dispatch_scope", "billing", "passed"),
    ]
    assert score(conversation(), rules_of("name: r, on: conversation, where: {turns: '>1'}, "
                                          "evaluators: [dispatch_scope]")).rows == []  # fmt: skip


def test_what_the_record_settles_is_scored_at_once_and_the_rest_waits_for_a_judge() -> None:
    scored = score(conversation(), rules_of(f"name: r, evaluators: [{JUDGED}]"))
    assert short(scored.rows) == [("r", "ScopeFidelity", "refunds", "failed")]
    assert scored.rows[0]["finding"] == "tool_executed"
    assert scored.waiting == ["r"]
    assert score(conversation(), rules_of(
        f"name: r, where: {{to: refunds}}, evaluators: [{JUDGED}]"
    )).waiting == []  # fmt: skip


def outside(rule: Rule) -> str:
    return next(f"c{n}" for n in range(1000) if not rule.samples(f"c{n}"))


def test_beyond_its_sample_a_rule_scores_what_another_one_failed_and_says_so() -> None:
    rules = rules_of(
        "name: cheap, evaluators: [dispatch_scope]",
        "name: dear, sample: 1 %, evaluators: [dispatch_completed]",
    )
    id_ = outside(rules[1])
    rows = score(conversation(id=id_), rules).rows
    assert [row["to_agent"] for row in rows if row["rule"] == "dear"] == ["refunds"]
    assert [row["sampled"] for row in rows] == [True, True, False]
    rows = score(conversation(id=id_, inside=True), rules).rows
    assert [row["rule"] for row in rows] == ["cheap", "cheap"]


def test_an_open_conversation_is_scored_by_rules_that_say_so() -> None:
    rules = rules_of(
        "name: later, evaluators: [dispatch_scope]",
        "name: now, open: true, evaluators: [dispatch_scope]",
    )
    rows = score(conversation(), rules, Origin(open=True)).rows
    assert {row["rule"] for row in rows} == {"now"}


def test_a_conversation_without_dispatches_has_no_rows_about_none() -> None:
    alone = trace(turn("hi", run("desk", output="hello"), output="hello"))
    assert short(score(alone, list(read_rules().rules)).rows) == [
        ("proven by the record", "handoff_loops", None, "passed")
    ]


def test_names_in_rows_are_those_of_the_rows_of_dispatches() -> None:
    odd = "re\0funds " + "x" * 5000
    record = trace(
        turn("hi", run("desk", delegate(odd, "go", id="d" * 5000)), run(odd, output="ok"))
    )
    (row,) = score(record, rules_of("name: r, evaluators: [dispatch_completed]")).rows
    assert row["to_agent"] == narrow(odd)
    assert row["dispatch"] == narrow("d" * 5000)
    assert not [name for name, value in row.items() if isinstance(value, str) and "\0" in value]
