"""Judges of live rules are shown what people of the same project said against them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sqlalchemy import insert
from tests.feed.test_promote import counted

from baton.feed.issue_progress import Fix
from baton.model import InputError
from baton.server.access import Caller
from baton.server.issue_list import Progress
from baton.server.labels import add_label
from baton.server.rules import read_rules
from baton.server.schema import issue_member, issue_progress, score
from baton.server.store import Store
from baton.testing import LlmServer, llm_server

from .test_judging import INSIDE, NOW, Server

EXAMPLE = "Example 1: people decided `outside`; a judge had said `inside`"


def rules_with(server: LlmServer, config: dict[str, Any]) -> Any:
    evaluator = {"type": "ScopeFidelity", "judge": "x", "config": config}
    rules = [{"name": "r", "evaluators": [evaluator]}]
    return read_rules(None, {"judges": {"x": server.judge(retries=0)}, "rules": rules})


def labelled(server: Server, conversation: str, value: str, note: str | None = None) -> None:
    (row, *_) = (r for r in server.rows(score) if r["to_agent"] == "refunds")
    line = {
        "trace": conversation,
        "subject": row["dispatch"],
        "rubric": "scope_fidelity",
        "value": value,
        "note": note,
    }
    caller = Caller(server.project, "kim", frozenset({"run"}))
    add_label(server.store, caller, msgspec.json.encode(line), NOW)


def asked(llm: LlmServer) -> list[str]:
    return [msgspec.json.encode(request.body).decode() for request in llm.requests]


def test_a_label_against_the_judge_is_shown_with_the_next_conversation(store: Store) -> None:
    with llm_server(INSIDE) as llm:
        server = Server(store, rules_with(llm, {"examples": {}}))
        server.arrives("one")
        server.judges(NOW)
        assert not any("Example 1" in text for text in asked(llm))
        labelled(server, "one", "outside", "It looked up another order.")
        before = len(llm.requests)
        server.arrives("two", words="Please pay order 17 back.")
        server.judges(NOW + 1)
        texts = asked(llm)[before:]
    assert texts
    assert any(EXAMPLE in text and "It looked up another order." in text for text in texts)
    versions = {row["evaluator_version"] for row in server.rows(score)}
    assert any("+x" in version for version in versions)


def test_labels_that_agree_and_those_of_other_projects_are_not_shown(store: Store) -> None:
    with llm_server(INSIDE) as llm:
        rules = rules_with(llm, {"examples": {}})
        other = Server(store, rules)
        other.project = store.project("other", create=True)
        other.arrives("one")
        other.judges(NOW)
        labelled(other, "one", "outside")
        server = Server(store, rules)
        server.arrives("two")
        server.judges(NOW)
        labelled(server, "two", "inside")
        before = len(llm.requests)
        server.arrives("three", words="Please pay order 17 back.")
        server.judges(NOW + 1)
        assert len(llm.requests) > before
        assert not any("Example 1" in text for text in asked(llm)[before:])


def test_an_example_is_never_shown_to_the_conversation_that_it_is_of(store: Store) -> None:
    with llm_server(INSIDE) as llm:
        server = Server(store, rules_with(llm, {"examples": {}}))
        server.arrives("c7f21b90")
        server.judges(NOW)
        labelled(server, "c7f21b90", "outside")
        before = len(llm.requests)
        # The same one, sent again through another exporter; then a third party's.
        server.arrives("export:c7f21b90", words="Please pay order 17 back.")
        server.judges(NOW + 1)
        assert len(llm.requests) > before
        assert not any("Example 1" in text for text in asked(llm)[before:])
        server.arrives("d8a32c01", words="Please pay order 18 back.")
        server.judges(NOW + 2)
        assert any(EXAMPLE in text for text in asked(llm)[before:])


@pytest.mark.parametrize(("state", "shown"), [("proven", True), ("not proven", False)])
def test_a_failure_that_a_proven_fix_confirms_is_an_example(
    store: Store, state: str, shown: bool
) -> None:
    with llm_server({**INSIDE, "label": "outside"}) as llm:
        server = Server(store, rules_with(llm, {"examples": {}}))
        server.arrives("one")
        server.judges(NOW)
        row = next(r for r in server.rows(score) if r["status"] == "failed")
        fixed(store, server.project, row, state)
        before = len(llm.requests)
        server.arrives("two", words="Please pay order 17 back.")
        server.judges(NOW + 1)
        texts = asked(llm)[before:]
        assert texts
        told = "Example 1: people decided `outside`, and a fix of it was proven"
        assert any(told in text for text in texts) == shown


def fixed(store: Store, project: int, row: dict[str, Any], state: str) -> None:
    """Make a score a member of an issue, whose fix was played."""
    fix = Fix(kind="sub_agent_prompt", text="agent:refunds", why="It may not look further.")
    if state == "proven":
        fix = msgspec.structs.replace(fix, proof=counted(7, 9, 0, 30))
    assert (fix.state == "proven") == (state == "proven")
    kept = msgspec.json.encode(Progress(fix=fix)).decode()
    member = {
        "project": project,
        "conversation": row["conversation"],
        "signature": "s",
        "place": row["dispatch"],
        "issue": 1,
        "id": "m",
        "key": "one",
        "evaluators": "[]",
        "evidence": "[]",
        "says": "",
        "agent": "refunds",
        "judged": True,
        "at": NOW,
    }
    with store.write() as connection:
        connection.execute(insert(issue_progress).values(project=project, issue=1, progress=kept))
        connection.execute(insert(issue_member).values(member))


def test_without_the_option_labels_are_not_shown(store: Store) -> None:
    with llm_server(INSIDE) as llm:
        server = Server(store, rules_with(llm, {}))
        server.arrives("one")
        server.judges(NOW)
        labelled(server, "one", "outside")
        server.arrives("two", words="Please pay order 17 back.")
        server.judges(NOW + 1)
        assert not any("Example 1" in text for text in asked(llm))


def test_a_rule_names_no_file_of_examples() -> None:
    with llm_server(INSIDE) as llm, pytest.raises(InputError, match="labels of the project"):
        rules_with(llm, {"examples": {"file": "/etc/passwd"}})
