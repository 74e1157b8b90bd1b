"""`baton export server://... --parquet FOLDER`: rows as typed tables."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from baton.cli.app import main
from baton.server.store import Store
from baton.session.server_client import connect
from baton.session.server_rows import Parts, Rows
from baton.testing.build import delegate, run, trace, turn

from .seeding import START, add_conversation, add_score
from .serving import api, on_loopback


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BATON_API_KEY", raising=False)


def fill(store: Store, count: int, *, spans: int = 7, details: str = '{"a":[1]}') -> list[int]:
    ids = []
    for n in range(count):
        to = "billing" if n == 0 else "refunds"
        turns = turn("Hi.", run("desk", delegate(to, "Go.")), run(to, output="Done."))
        values: dict[str, Any] = {"cost_usd": 0.5, "spans": spans}
        id_ = add_conversation(store, trace(turns, id=f"c{n}"), at=START + n, **values)
        add_score(store, id_, at=START + n, details=details, threshold=None)
        add_score(store, id_, version=0)  # of an earlier version of the conversation
        ids.append(id_)
    add_conversation(store, trace(turns, id="open"), state="open")
    return ids


def address(url: str, rest: str = "") -> str:
    return url.replace("http://", "server://") + rest


def test_tables_have_typed_columns_and_all_rows(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    details = f'{{"a":["{"x" * (6 << 20)}"]}}'
    ids = fill(store, 5, spans=5000, details=details)  # each conversation is read by itself
    with api(store) as url:
        assert main(["export", address(url), "--parquet", "out"]) == 0
    said = "5 conversations, 10 runs, 5 dispatches, 5 scores in out"
    assert said in capsys.readouterr().err
    tables = {file.stem: parquet.read_table(file) for file in Path("out").iterdir()}
    assert sorted(tables) == ["conversations", "dispatches", "runs", "scores"]
    conversations = tables["conversations"]
    assert conversations["key"].to_pylist() == ["c4", "c3", "c2", "c1", "c0"]
    assert conversations["started"][0].as_py() == datetime.fromtimestamp(START + 4, UTC)
    assert conversations["agents"][0].as_py() == ["desk", "refunds"]
    assert conversations["verdict"].null_count == 5
    types = {field.name: field.type for field in conversations.schema}
    assert types["started"] == pa.timestamp("us", tz="UTC")
    assert (types["turns"], types["cost_usd"], types["gone"]) == (
        pa.int64(),
        pa.float64(),
        pa.bool_(),
    )
    assert "match" not in types
    assert sorted(set(tables["runs"]["conversation_id"].to_pylist())) == ids
    assert tables["dispatches"]["to_agent"].to_pylist().count("billing") == 1
    assert set(tables["scores"]["details"].to_pylist()) == {details}
    assert set(tables["scores"]["version"].to_pylist()) == {1}
    written = parquet.ParquetFile("out/scores.parquet")
    assert written.num_row_groups == 2  # of 18 and 12 MiB
    assert written.metadata.row_group(0).column(0).compression == "ZSTD"


TWICE = """
import sys
from baton.cli.app import main

address, name, *way = sys.argv[1:]
if "ray" in way:
    import ray  # one cluster for both

    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=100 << 20,
             log_to_driver=False, _node_ip_address="127.0.0.1")
for more in (["--parquet", name], ["-o", f"{name}.jsonl"]):
    code = main(["export", address, *more, *way])
    if code:
        sys.exit(code)
"""


@pytest.mark.heavy
def test_each_backend_writes_the_same_bytes(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store, 40, spans=2000)  # parts of three conversations
    ways = {
        "jobs": ["--jobs", "2"],
        "local": ["--backend", "local", "--workers", "2"],
        "ray": ["--backend", "ray", "--workers", "2"],
    }
    with api(store) as url:
        assert main(["export", address(url), "--parquet", "here"]) == 0
        said = capsys.readouterr().err
        assert main(["export", address(url), "-o", "here.jsonl"]) == 0
        for name, way in ways.items():
            command = [sys.executable, "-c", TWICE, address(url), name, *way]
            done = subprocess.run(command, capture_output=True, timeout=200, check=False)
            assert done.returncode == 0, done.stderr.decode()
    assert "40 conversations, 80 runs, 40 dispatches, 40 scores in here" in said
    tables = {
        name: {file.name: file.read_bytes() for file in Path(name).iterdir()}
        for name in ("here", *ways)
    }
    assert len(tables["here"]) == 4
    assert tables["here"] == tables["jobs"] == tables["local"] == tables["ray"]
    lines = [Path(f"{name}.jsonl").read_bytes() for name in tables]
    assert len(lines[0].splitlines()) == 40
    assert len(set(lines)) == 1


def test_parts_cover_each_conversation_once_also_while_others_arrive(store: Store) -> None:
    ids = fill(store, 12, spans=2000)
    with api(store) as url:
        server = connect(url)
        pages = list(server.pages("/rows/parts", Parts, {}, 10))
        cut = [part for page in pages for part in page.items]
        assert sum(part.conversations for part in cut) == 10
        assert len(cut) > 3
        turns = turn("Hi.", run("desk"))
        add_conversation(store, trace(turns, id="newer"), at=START + 100)
        late = add_conversation(store, trace(turns, id="between"), at=START + 8.5)
        found = [
            [one.id for page in read for one in page.conversations]
            for part in cut
            for read in [server.pages("/rows", Rows, {"last": part.last}, None, part.cursor)]
        ]
    every = [id_ for part in found for id_ in part]
    assert sorted(every) == sorted([*ids[2:], late])
    assert every.index(late) == 3  # after those of START + 11, 10 and 9; none newer is a part


def test_what_a_worker_is_refused_or_not_answered_ends_the_export(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store, 3)

    class WithoutRows(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith("/api/v1/rows?"):
                with urllib.request.urlopen(url + self.path) as answer:  # noqa: S310
                    body = answer.read()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with api(store) as url:
        with on_loopback(WithoutRows) as silent:
            assert main(["export", address(silent), "--parquet", "out"]) == 3
        assert "broke before an answer came" in capsys.readouterr().err
        assert not list(Path("out").iterdir())
        assert main(["export", address(url), "--parquet", "out", "--backend", "own:make"]) == 2
        assert "`local` and `ray`" in capsys.readouterr().err
        assert main(["export", address(url), "--parquet", "out", "--jobs", "0"]) == 2
        assert main(["export", "x.jsonl", "-o", "y.jsonl", "--jobs", "2"]) == 2
        assert "--jobs are for conversations of a server" in capsys.readouterr().err


@pytest.mark.heavy
def test_postgresql_has_the_same_tables(postgres_store: Store) -> None:
    fill(postgres_store, 5)
    with api(postgres_store) as url:
        assert main(["export", address(url, "?to=refunds&limit=3"), "--parquet", "out"]) == 0
    rows = {file.stem: parquet.read_table(file).num_rows for file in Path("out").iterdir()}
    assert rows == {"conversations": 3, "runs": 6, "dispatches": 3, "scores": 3}


def test_a_filter_is_of_conversations_and_all_of_their_rows_come(store: Store) -> None:
    fill(store, 3)
    with api(store) as url:
        assert main(["export", address(url, "?to=billing"), "--parquet", "out"]) == 0
        assert main(["export", address(url, "?state=open,complete"), "--parquet", "all"]) == 0
    runs = parquet.read_table("out/runs.parquet")
    assert runs["agent"].to_pylist() == ["desk", "billing"]
    assert parquet.read_table("all/conversations.parquet").num_rows == 4


def test_what_cannot_be_written_leaves_what_was_there(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store, 1)

    def refused(words: str, *arguments: str) -> None:
        assert main(["export", *arguments]) == 2
        assert words in capsys.readouterr().err

    with api(store) as url:
        assert main(["export", address(url), "--parquet", "out"]) == 0
        before = {file.name: file.read_bytes() for file in Path("out").iterdir()}
        refused("no complete conversation", address(url, "?to=nobody"), "--parquet", "out")
        refused("is not a server", "runs.jsonl", "--parquet", "out")
        refused("takes one server", address(url), address(url, "?to=x"), "--parquet", "out")
        refused("not two", address(url), "--parquet", "out", "-o", "x.jsonl")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        refused("Parquet needs pyarrow: pip install", address(url), "--parquet", "out")
    assert {file.name: file.read_bytes() for file in Path("out").iterdir()} == before
