"""Work on issues that a server does: investigations by a scripted model, and what cases say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import insert
from tests.feed.test_investigate import look

import baton
from baton.feed.issue_progress import DIMENSIONS, Promoted, Promotion
from baton.model import Case, InputError, Trace
from baton.model.prices import ModelPrice
from baton.server.access import Caller, create_key
from baton.server.issue_list import Progress, keep_progress, one_issue
from baton.server.issue_work import (
    ask_to_investigate,
    follow_cases,
    work_of,
    work_on_issues,
)
from baton.server.schema import job
from baton.server.settings import Settings, load_settings
from baton.server.store import Store
from baton.server.trials import left_of_budget
from baton.session.evaluate import evaluate_into
from baton.session.server_client import Server
from baton.testing import LlmServer, Received, llm_server
from baton.testing.build import delegate, run, trace, turn

from .serving import api
from .test_issues import NOW, OUTSIDE, arrive, fails, of, rows

ANA = Caller(1, "ana", frozenset({"run"}))


def conclusion(quote: str) -> dict[str, Any]:
    """What a model concludes, with quotes that stand in the record or not."""
    true = {"says": "The desk hands it on.", "quotes": [{"step": "m1.s1", "text": quote}]}
    false = {"says": "It wires money.", "quotes": [{"step": "m1.s1", "text": "sent 900 dollars"}]}
    return {
        "thinking": "",
        "action": "conclude",
        "about": "",
        "start": 0,
        "conclusion": {
            "subtype": "tool_outside_scope",
            "entry": true,
            "scores": {name: {"value": 2, "because": true} for name in DIMENSIONS},
            "summary": [true, false],
            "fix": {
                "kind": "sub_agent_prompt",
                "text": "",
                "pattern": "",
                "why": "It is told what it may not do.",
                "because": true,
                "edits": [],
            },
        },
    }


@pytest.fixture
def llm() -> Iterator[LlmServer]:
    with llm_server(lambda _: conclusion("Refund order 42.")) as running:
        yield running


def settings_for(llm: LlmServer, **more: Any) -> Settings:
    return Settings(judges={"default": llm.judge(retries=0)}, **more)


def one_fails(store: Store) -> str:
    record = of("a")
    arrive(store, [(record, fails(record, OUTSIDE)), (of("b"), [])])
    key: str = rows(store)[0]["key"]
    return key


def test_an_issue_is_investigated_once_and_keeps_what_its_quotes_prove(
    store: Store, llm: LlmServer
) -> None:
    key = one_fails(store)
    settings = settings_for(llm)
    assert work_of(store, 1, key) is None
    ask_to_investigate(store, ANA, key, settings)
    ask_to_investigate(store, ANA, key, settings)
    waits = work_of(store, 1, key)
    assert waits is not None
    assert (waits.state, waits.by) == ("waiting", "ana")
    assert work_on_issues(store, settings, NOW)
    assert not work_on_issues(store, settings, NOW)
    done = work_of(store, 1, key)
    assert done is not None
    assert (done.state, done.error) == ("done", None)
    found = one_issue(store, 1, key).investigation
    assert found is not None
    assert [each.says for each in found.summary] == ["The desk hands it on."]
    assert found.removed >= 1
    assert len(llm.requests) == 1


def test_a_fix_may_change_the_definitions_that_the_settings_name(
    store: Store, tmp_path: Path
) -> None:
    key = one_fails(store)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "refunds.md").write_text(
        "---\nname: refunds\ndescription: Pays back\ntools: Read\n---\nYou may use all tools.\n"
    )
    (tmp_path / "server.yaml").write_text("definitions: {default: agents, other: agents}\n")
    said = conclusion("Refund order 42.")
    edits = [{"find": "use all tools", "replace": "only read"}]
    said["conclusion"]["fix"] |= {"text": "agent:refunds", "edits": edits}
    with llm_server(lambda _: said) as llm:
        judges = {"judges": {"default": llm.judge(retries=0)}}
        settings = load_settings(tmp_path / "server.yaml", judges)
        ask_to_investigate(store, ANA, key, settings)
        assert work_on_issues(store, settings, NOW)
    found = one_issue(store, 1, key).investigation
    assert found is not None
    assert found.fix is not None
    assert (found.fix.text, found.fix.after) == ("agent:refunds", "You may only read.")
    assert settings.definitions_of("a third") == {}
    (tmp_path / "server.yaml").write_text("definitions: agent\n")
    with pytest.raises(InputError, match=r"server.yaml:1: definitions: agent: "):
        load_settings(tmp_path / "server.yaml")


def test_what_was_found_of_other_issues_may_be_read_and_a_cheaper_judge_shortens_long_steps(
    store: Store,
) -> None:
    one = one_fails(store)
    long = trace(
        turn(
            "Refund order 42. " + "The kettle is broken. " * 400,
            run("desk", delegate("billing", "Look into it. " * 800, result="no")),
        ),
        id="long",
    )
    arrive(store, [(long, fails(long, OUTSIDE))])
    (other,) = {row["key"] for row in rows(store)} - {one}

    def read(received: Received) -> Any:
        looked = [message for message in received.messages if message.role == "assistant"]
        if not looked:
            return look("earlier")
        if len(looked) == 1:
            return look("read_step", "m1.s1")
        return conclusion("Look into it.")

    with (
        llm_server(lambda _: conclusion("Refund order 42.")) as first,
        llm_server(read) as second,
        llm_server(lambda _: {"condensed": "It asks to look into it, often."}) as short,
    ):
        settings = Settings(judges={"default": first.judge(retries=0)})
        ask_to_investigate(store, ANA, one, settings)
        assert work_on_issues(store, settings, NOW)
        judges = {"default": second.judge(retries=0), "small": short.judge(retries=0)}
        settings = Settings(judges=judges, condense="small")
        ask_to_investigate(store, ANA, other, settings)
        assert work_on_issues(store, settings, NOW)
        assert "The desk hands it on." in second.requests[1].user
        assert "It asks to look into it, often." in second.requests[2].user
        assert len(short.requests) == 1
    found = one_issue(store, 1, other).investigation
    assert found is not None
    assert found.condensed_by is not None


def test_a_misspelt_judge_that_shortens_is_refused(tmp_path: Path) -> None:
    (tmp_path / "server.yaml").write_text("judges: {small: {model: 'openai:x'}}\ncondense: smal\n")
    with pytest.raises(
        InputError, match=r"condense: there is no judge `smal`; did you mean `small`"
    ):
        load_settings(tmp_path / "server.yaml")


def test_a_model_that_fails_is_reported_and_leaves_no_finding(store: Store) -> None:
    key = one_fails(store)
    with llm_server(lambda _: "no json") as broken:
        settings = settings_for(broken)
        settings.prices = {"scripted": ModelPrice(input=1, output=2)}
        ask_to_investigate(store, ANA, key, settings)
        left = left_of_budget(store, 1, settings, NOW)
        assert work_on_issues(store, settings, NOW)
        paid = left - left_of_budget(store, 1, settings, NOW)
    found = one_issue(store, 1, key).investigation
    assert found is not None
    assert (found.ending, found.summary, found.fix) == ("no answer", [], None)
    # Both answers were of no use, and are paid all the same.
    assert found.requests == len(broken.requests) == 2
    assert found.cost_usd is not None
    assert found.cost_usd == pytest.approx(paid)
    assert paid > 0


def test_without_a_judge_or_money_nothing_is_asked(store: Store, llm: LlmServer) -> None:
    key = one_fails(store)
    with pytest.raises(InputError, match="name one in `judges:`"):
        ask_to_investigate(store, ANA, key, Settings())
    settings = settings_for(llm)
    ask_to_investigate(store, ANA, key, settings)
    assert work_on_issues(store, Settings(), NOW)  # taken out of the settings meanwhile
    failed = work_of(store, 1, key)
    assert failed is not None
    assert failed.state == "failed"
    assert "names no judge" in (failed.error or "")
    assert llm.requests == []


def test_it_is_asked_for_with_the_right_to_run_and_in_its_own_project(
    store: Store, llm: LlmServer
) -> None:
    key = one_fails(store)
    store.project("other", create=True)
    reader = create_key(store, "default", "reader", ["read", "review"])
    ben = create_key(store, "other", "ben", ["read", "run"])
    runner = create_key(store, "default", "ana", ["read", "run"])
    settings = settings_for(llm)
    with api(store, live_settings=lambda: settings) as url:
        with pytest.raises(InputError, match="no right to run"):
            baton.connect(url, reader).investigate_issue(key)
        with pytest.raises(InputError, match="no issue"):
            baton.connect(url, ben).investigate_issue(key)
        server: Server = baton.connect(url, runner)
        work = server.investigate_issue(key).work
        assert work is not None
        assert (work.state, work.by) == ("waiting", "ana")


def played(store: Store, folder: Path, at: float, **verdicts: str) -> None:
    """An evaluation of this server that has ended, with the verdict of each case."""
    path = folder / f"e{at}"
    cases = [{"id": name, "turns": [{"input": "Hi.", "response": "passed"}]} for name in verdicts]
    file = folder / "cases.json"
    file.write_bytes(msgspec.json.encode({"cases": cases}))

    async def answer(case: Case) -> Trace:
        said = verdicts[case.id]
        return trace(turn("Hi.", run("desk", output=said), output=said), id=case.id)

    evaluate_into(path, file, answer, ["response_match"])
    row = {"project": 1, "created": at, "by": "ana", "request": "{}", "state": "done",
           "attempts": 1, "folder": str(path), "ended": at}  # fmt: skip
    with store.write() as connection:
        connection.execute(insert(job).values(row))


def test_cases_that_pass_often_enough_fix_an_issue_and_one_that_fails_opens_it(
    store: Store, tmp_path: Path
) -> None:
    key = one_fails(store)
    cases = [Promoted(case=name, expects="it passes", conversation="a") for name in ("x", "y")]
    promotion = Promotion(dataset="cases/a.yaml", cases=cases, passes=2, at=NOW)
    keep_progress(store, ANA, key, Progress(promotion=promotion))

    def state() -> str:
        follow_cases(store, NOW + 1000)
        return one_issue(store, 1, key).issue.state

    played(store, tmp_path, NOW - 10, x="passed", y="passed")  # before the promotion
    played(store, tmp_path, NOW + 10, x="passed", y="passed")
    assert state() == "new"
    played(store, tmp_path, NOW + 20, x="passed", y="passed")
    assert state() == "fixed"
    assert state() == "fixed"
    played(store, tmp_path, NOW + 30, x="passed", y="failed")
    assert state() == "regressed"
    record = one_issue(store, 1, key)
    assert record.issue.by == "its cases"
    assert [each.kind for each in record.events if each.kind == "cases"] == ["cases", "cases"]
    assert "such as y" in (record.issue.note or "")
