"""`baton.connect`: a server asked from Python, over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.labelled import RUBRIC, answer, write_config, write_traces

import baton
from baton.model import InputError
from baton.server.access import create_key
from baton.server.bodies import day_of
from baton.server.store import Store
from baton.session.server_client import ServerError
from baton.testing import llm_server
from baton.testing.build import delegate, run, trace, turn

from .seeding import START, add_conversation, add_score, add_sum
from .serving import api


def desk(id_: str, to: str = "refunds") -> baton.Trace:
    return trace(
        turn("Hi.", run("desk", delegate(to, "Refund it.")), run(to, output="Done.")), id=id_
    )


def test_lists_are_walked_through_page_by_page_with_filters(store: Store) -> None:
    for n in range(5):
        id_ = add_conversation(store, desk(f"c{n}", "refunds" if n else "billing"), at=START + n)
        add_score(store, id_, at=START + n)
    with api(store) as url:
        server = baton.connect(url)
        server.page_rows = 2
        assert [one.key for one in server.conversations()] == ["c4", "c3", "c2", "c1", "c0"]
        assert [one.id for one in server.records()] == ["c4", "c3", "c2", "c1", "c0"]
        assert [one.key for one in server.conversations(to=["bill*", "nobody"])] == ["c0"]
        assert [one.conversation for one in server.dispatches(from_="desk", to="billing")] == ["c0"]
        assert len(list(server.scores(evaluator="dispatch_scope", verdict="passed"))) == 5
        newest = next(server.conversations(text="refund it"))
        assert (newest.match, newest.started and newest.started.isoformat()) == (
            "Refund it.",
            "2026-01-01T00:00:04+00:00",
        )
        with pytest.raises(InputError, match="did you mean `agent`"):
            list(server.conversations(agnet="x"))


def test_a_record_is_found_by_number_or_id_and_is_the_one_that_was_kept(store: Store) -> None:
    odd = 'sess "7" [x]*'
    number = add_conversation(store, desk("c0"))
    add_conversation(store, desk(odd))
    add_conversation(store, desk("sess"), at=START - 86400)
    with api(store) as url:
        server = baton.connect(url)
        assert server.conversation(number) == server.conversation("c0") == desk("c0")
        assert server.conversation(odd) == desk(odd)
        with pytest.raises(InputError, match="has no conversation `c1`"):
            server.conversation("c1")
        store.bodies.drop(day_of(START - 86400))
        with pytest.raises(InputError, match="2025-12-31 was deleted by retention"):
            server.conversation("sess")


def test_sums_rules_labels_and_problems(store: Store) -> None:
    add_conversation(store, desk("c0"))
    add_sum(store, int(START // 3600), "refunds")
    with api(store, rules=lambda _: [{"name": "all"}]) as url:
        server = baton.connect(url)
        assert [edge.to_agent for edge in server.edges()] == ["refunds"]
        assert [
            point.count
            for point in server.trends(
                interval="hour", since="2026-01-01T00:00:00Z", until="2026-01-02T00:00:00Z"
            )
        ] == [10]
        assert (server.rules(), server.problems(), server.deletions()) == (
            [{"name": "all"}],
            [],
            [],
        )
        assert server.unread_traces() == []
        given = server.label("c0", "inside", rubric="scope_fidelity", subject="d1", by="kim")
        assert (given.by, given.value, given.at is not None) == ("kim", "inside", True)
        assert list(server.labels(rubric="scope_fidelity")) == [given]
        assert server.label("c0", 0.5, rubric="tone").value == 0.5


def test_a_key_opens_it_and_is_in_no_message(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    key = create_key(store, "default", "reader", ["read"])
    add_conversation(store, desk("c0"))
    with api(store) as url:
        assert [one.key for one in baton.connect(url, key).conversations()] == ["c0"]
        with pytest.raises(InputError, match="needs an API key; set BATON_API_KEY to"):
            baton.connect(url).edges()
        monkeypatch.setenv("BATON_API_KEY", key)
        with pytest.raises(InputError, match="no right to review") as caught:
            baton.connect(url).label("c0", "x", rubric="r")
        assert key not in str(caught.value)
        with pytest.raises(InputError, match="does not belong to project `other`"):
            baton.connect(url, project="other").edges()


def test_what_is_not_a_server_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a valid address"):
        baton.connect("ftp://x")
    with pytest.raises(InputError, match="contains credentials"):
        baton.connect("http://a:b@localhost")
    assert baton.connect("server://box").url == "http://box:4318"
    assert baton.connect("server://[::1]:99/").url == "http://[::1]:99"
    server = baton.connect("http://127.0.0.1:9")
    with pytest.raises(ServerError, match="cannot connect"):
        server.edges()


def test_a_recording_is_pushed_as_a_file_or_a_folder(store: Store, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "run.jsonl").write_text('{"resourceSpans": []}\n')
    with api(store, receives=True) as url:
        server = baton.connect(url)
        sent = server.push(tmp_path / "folder" / "run.jsonl")
        assert (sent.files, sent.new) == (1, True)
        assert not server.push(tmp_path / "folder" / "run.jsonl").new
        assert server.push(tmp_path / "folder").files == 1


def test_a_judge_is_compared_with_the_labels_that_people_gave_on_a_server(
    store: Store, tmp_path: Path
) -> None:
    traces = list(baton.iter_traces([write_traces(tmp_path, ["correct", "wrong", "weak"])]))
    for one in traces:
        add_conversation(store, one)
    with api(store) as url, llm_server(answer) as llm:
        server = baton.connect(url)
        for one, value in zip(traces, ("correct", "wrong", "correct"), strict=True):
            server.label(one.id, value, rubric=RUBRIC, subject="d1", by="kim")
        server.label(traces[2].id, "wrong", rubric=RUBRIC, subject="d1", by="kim")
        server.label(traces[2].id, "never asked", rubric="other", subject="d1", by="kim")
        config = write_config(tmp_path, llm.judge())
        report = baton.calibrate(RUBRIC, url, config=config)
        assert (report.labels, len(report.judges)) == (3, 1)
        # Conversations of a project, or some of them by a filter, are named as for `baton score`.
        where = url.replace("http://", "server://")
        for rest, labels in (
            ("/default", 3),
            (f"?conversation={traces[0].id}", 1),
            ("?limit=2", 2),
        ):
            some = baton.calibrate(RUBRIC, where + rest, config=config)
            assert some.labels == labels, rest
        both = [where + "/default", where + "?limit=3"]
        assert baton.calibrate(RUBRIC, both, config=config).labels == 3
        server.label(traces[0].id, "wrong", rubric=RUBRIC, subject="d9", by="ann")
        with pytest.raises(InputError, match="has no `d9` to judge"):
            baton.calibrate(RUBRIC, url, config=write_config(tmp_path, llm.judge()))
