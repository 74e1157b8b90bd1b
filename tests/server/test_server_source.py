"""`server://HOST` where recordings are named: conversations of a server become a file."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from tests.conftest import Baton

import baton
from baton.cli.app import main
from baton.model import InputError
from baton.server.access import create_key
from baton.server.bodies import day_of
from baton.server.store import Store
from baton.session.server_rows import Records
from baton.testing.build import delegate, run, trace, turn

from .seeding import START, add_conversation
from .serving import api


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BATON_API_KEY", raising=False)


def desk(id_: str, to: str = "refunds") -> baton.Trace:
    return trace(
        turn(
            "Hi.", run("desk", delegate(to, "Refund it.", result="Done.")), run(to, output="Done.")
        ),
        id=id_,
    )


def address(url: str, rest: str = "") -> str:
    return url.replace("http://", "server://") + rest


def files() -> list[Path]:
    return sorted(Path(".baton/recordings").iterdir())


def test_conversations_are_scored_as_those_of_a_file(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    for n in range(5):
        add_conversation(store, desk(f"c{n}"), at=START + n)
    add_conversation(store, desk("open"), state="open")
    with api(store) as url:
        assert main(["score", address(url), "-e", "dispatch_completed", "--jobs", "2", "-q"]) == 0
        assert main(["score", address(url), "-e", "dispatch_completed"]) == 0
    kept = files()
    assert len(kept) == 1
    assert [one.id for one in baton.load_traces(kept[0])] == ["c4", "c3", "c2", "c1", "c0"]
    assert f"5 conversations, kept in {kept[0]}" in capsys.readouterr().err
    assert kept[0].stat().st_mode & 0o777 == 0o600
    # The evaluation names the file: it is scored again without the server.
    stored = next(Path(".baton/evaluations").iterdir())
    assert main(["score", str(stored), "-e", "dispatch_completed"]) == 0


def test_a_filter_chooses_what_is_fetched(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(4):
        add_conversation(store, desk(f"c{n}", "billing" if n == 1 else "refunds"), at=START + n)
    add_conversation(store, desk("open"), state="open")

    def shown(url: str, rest: str) -> list[str]:
        assert main(["show", address(url, rest), "--json"]) == 0
        return [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]

    with api(store) as url:
        assert shown(url, "?to=bill*&to=nobody") == ["c1"]
        assert shown(url, "/default?turns=>=1&limit=2") == ["c3", "c2"]
        assert shown(url, "?since=2026-01-01T00:00:01&until=2026-01-01T00:00:03Z") == ["c2", "c1"]
        assert shown(url, "?state=open") == ["open"]
        assert shown(url, "?filter=conversation:c3") == ["c3"]


def test_what_a_server_refuses_or_does_not_have_is_reported(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_conversation(store, desk("c0"))
    add_conversation(store, desk("old"), at=START - 86_400)
    store.bodies.drop(day_of(START - 86_400))

    def said(words: str, url: str, rest: str = "", code: int = 2) -> None:
        assert main(["show", address(url, rest)]) == code
        err = capsys.readouterr().err
        assert words in err
        assert "\n" not in err.rstrip("\n")

    with api(store) as url:
        said("has no complete conversation that matches", url, "?to=nobody")
        said("retention deleted 1 more", url, "?until=2026-01-01")
        said("there is no project `shop`", url, "/shop")
        said("did you mean `agent`", url, "?agnet=x")
        said("`limit` is a number of conversations", url, "?limit=-1")
        said("write the project after the host", url, "?project=shop")
        key = create_key(store, "default", "reader", ["read"])
    assert not any(Path(".baton/recordings").iterdir())
    with api(store) as url:
        said("needs an API key", url)
        monkeypatch.setenv("BATON_API_KEY", "wrong")
        said("not valid", url)
        monkeypatch.setenv("BATON_API_KEY", key)
        assert main(["show", address(url)]) == 0
    with pytest.raises(InputError, match="is not an address of conversations"):
        baton.score("server://", "dispatch_scope")
    with pytest.raises(InputError, match="contains credentials"):
        baton.score("server://me:secret@localhost", "dispatch_scope")


def test_a_server_that_is_down_ends_a_command_with_one_line_and_exit_code_3(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # it does not listen
        place = f"server://127.0.0.1:{nobody.getsockname()[1]}"
        assert main(["score", place, "-e", "dispatch_completed"]) == 3
    err = capsys.readouterr().err
    assert "is the server running there?" in err
    assert "internal error" not in err
    assert "\n" not in err.rstrip("\n")


def test_a_page_ends_by_its_size(store: Store) -> None:
    traces = [trace(turn("Hi.", run("desk", "x" * (3 << 20))), id=f"c{n}") for n in range(7)]
    for n, each in enumerate(traces):
        add_conversation(store, each, at=START - n)
    with api(store) as url:
        server = baton.connect(url)
        pages = server.pages("/records", Records[baton.Trace], {})
        assert [[one.id for one in page.items] for page in pages] == [
            ["c0", "c1", "c2"], ["c3", "c4", "c5"], ["c6"],
        ]  # fmt: skip
        assert list(server.records()) == traces
        assert list(server.records(conversation="c[12]")) == traces[1:3]


def test_a_conversation_of_a_server_becomes_a_case(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    add_conversation(store, desk("c0"))
    add_conversation(store, desk("c1", "billing"))
    with api(store) as url:
        assert main(["draft", address(url, "?to=billing"), "-o", "cases.yaml"]) == 0
    cases = baton.load_dataset("cases.yaml")
    assert cases.ids == ["c1"]


def test_check_and_rubrics_take_conversations_of_a_server(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    add_conversation(store, desk("c0"))
    add_conversation(store, desk("c1", "billing"))
    with api(store) as url:
        assert main(["check", address(url, "/default")]) == 0
        assert "2 traces, 2 turns" in capsys.readouterr().out
        where = ["--trace", address(url, "?to=billing")]
        assert main(["rubrics", "show", "scope_fidelity", *where]) == 0
        assert "handed work to billing" in capsys.readouterr().out
        assert main(["rubrics", "show", "scope_fidelity", "--trace", address(url, "/shop")]) == 2
        assert "no project `shop`" in capsys.readouterr().err


def test_what_plays_cases_says_what_makes_them_of_conversations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words in (["agents:reply", "server://localhost"], ["a:b", "--dataset", "server://h"]):
        assert main(["watch", *words]) == 2
        assert "`baton draft` makes cases from conversations" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["score", "show", "draft", "issues", "check", "view", "export"])
def test_the_folder_of_a_store_is_refused_with_the_address_to_name(
    store: Store, baton: Baton, tmp_path: Path, command: str
) -> None:
    more = ["-o", "spans.jsonl"] if command == "export" else []
    outcome = baton(command, tmp_path / "server", *more)
    assert outcome.code == 2
    assert f"{tmp_path / 'server'}: is the store of a server" in outcome.err
    assert "start it, and name server://localhost" in outcome.err
