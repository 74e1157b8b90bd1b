"""From spans to scores, by the rules of a `server.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from baton import connect
from baton.model import InputError
from baton.server.database import EVERY_PROJECT
from baton.server.schema import conversation, score
from baton.server.settings import load_settings
from baton.server.store import Store
from baton.server.worker import Worker, bounds_of
from baton.server.worker_jobs import Live

from .otlp import Part, body_of, parts_of, recordings, send, work
from .serving import api

NOW = 1_790_000_000.0
RULES = """\
quiet: 0 s
projects_by_tag: [support]
rules:
  - {name: all, evaluators: [dispatch_completed]}
  - {name: asked, tagged: true, project: support, evaluators: [dispatch_target_known]}
"""


def worker_of(store: Store, tmp_path: Path, text: str) -> Worker:
    file = tmp_path / "server.yaml"
    file.write_text(text)
    settings = load_settings(file, {"folder": str(tmp_path)})
    live = Live(store, settings)
    return Worker(store, bounds_of(settings), live.score, settings.limits, settings.projects_by_tag)


def tagged(part: Part, attributes: dict[str, Any]) -> Part:
    """Put attributes on the resource of a part."""
    more = [{"key": name, "value": value} for name, value in attributes.items()]
    key, group = part
    resource = group.get("resource", {})
    changed = {**resource, "attributes": [*resource.get("attributes", []), *more]}
    return key, {**group, "resource": changed}


def rows(store: Store, table: Any) -> list[dict[str, Any]]:
    with store.read() as connection:
        found = connection.execute(select(table), execution_options=EVERY_PROJECT).mappings()
        return [dict(row) for row in found]


def with_dispatches() -> Path:
    return next(file for file in recordings() if file.stem == "agents_as_tools_nested_latest")


def test_what_arrives_is_scored_by_the_rules_for_its_project(store: Store, tmp_path: Path) -> None:
    worker = worker_of(store, tmp_path, RULES)
    send(store, store.project("default"), [body_of(parts_of(with_dispatches()))], NOW)
    work(worker, NOW)
    work(worker, NOW + 400)
    assert {row["rule"] for row in rows(store, score)} == {"all"}
    assert {row["project"] for row in rows(store, conversation)} == {store.project("default")}


def test_a_program_names_its_project_and_the_rules_that_it_asks_for(
    store: Store, tmp_path: Path
) -> None:
    worker = worker_of(store, tmp_path, RULES)
    tags = {
        "baton.project": {"stringValue": "support"},
        "baton.rules": {"arrayValue": {"values": [{"stringValue": "asked"}]}},
    }
    send(
        store,
        store.project("default"),
        [body_of([tagged(each, tags) for each in parts_of(with_dispatches())])],
        NOW,
    )
    work(worker, NOW)
    work(worker, NOW + 400)
    assert {row["rule"] for row in rows(store, score)} == {"all", "asked"}
    assert {row["project"] for row in rows(store, conversation)} == {store.project("support")}


def test_a_rule_that_is_named_and_is_missing_is_reported(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    worker = worker_of(store, tmp_path, RULES)
    tags = {"baton.rules": {"stringValue": "all,al,asked"}}
    parts = [tagged(each, tags) for each in parts_of(with_dispatches())]
    send(store, store.project("default"), [body_of(parts)], NOW)
    work(worker, NOW)
    work(worker, NOW + 400)
    told = [line for line in caplog.messages if "names the rule" in line]
    # `asked` is for another project.
    assert told == [
        "a program of project `default` names the rule `al`, which does not exist; did you mean `all`?",
        "a program of project `default` names the rule `asked`, which does not exist; known: all",
    ]
    settings = load_settings(tmp_path / "server.yaml", {"folder": str(tmp_path)})
    with api(store, live_settings=lambda: settings) as url:
        listed = connect(url).unknown_rules()
    assert [(each.name, each.conversations) for each in listed] == [("al", 1), ("asked", 1)]


def test_a_project_that_may_not_be_named_is_not_gone_to(store: Store, tmp_path: Path) -> None:
    worker = worker_of(store, tmp_path, RULES)
    store.project("sales", create=True)
    tags = {"baton.project": {"stringValue": "sales"}}
    send(
        store,
        store.project("default"),
        [body_of([tagged(each, tags) for each in parts_of(with_dispatches())])],
        NOW,
    )
    work(worker, NOW)
    work(worker, NOW + 400)
    assert {row["project"] for row in rows(store, conversation)} == {store.project("default")}


def test_settings_say_what_is_wrong_with_rules_and_addresses_with_their_lines(
    tmp_path: Path,
) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("alerts: {slack: x}\nrules:\n  - {name: r, evaluators: [dispatch_scop]}\n")
    with pytest.raises(InputError) as raised:
        load_settings(file)
    assert [problem.line for problem in raised.value.problems] == [1, 3]
