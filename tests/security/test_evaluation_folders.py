"""An evaluation folder is data: it opens no file of the user, and takes no more than it has."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT, Baton

SECRET = "my private agenda"
PRIVATE = {
    "schema_version": 1, "id": "private", "source": {"format": "test"},
    "turns": [{"id": "t", "input": {"text": SECRET}, "output": {"text": "noted"}}],
}  # fmt: skip
AGENT = """
def answer(message):
    return {"output": f"You said {message}", "agents": ["desk"], "tool_calls": []}
"""


@pytest.fixture
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of the user's own, which nobody named."""
    file = tmp_path_factory.mktemp("private") / "notes.json"
    file.write_text(json.dumps(PRIVATE))
    return file


@pytest.fixture
def played(baton: Baton, tmp_path: Path) -> Path:
    """A finished evaluation of four cases, with their traces in it."""
    (tmp_path / "desk.py").write_text(AGENT)
    cases = [{"id": f"c{n}", "input": f"hi {n}", "agents": ["desk"]} for n in range(4)]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)) + "\n")
    (tmp_path / "baton.yaml").write_text(
        "providers: [{type: python, target: 'desk.py:answer'}]\ndataset: cases.jsonl\n"
        "evaluators: [agent_chain]\nconcurrency: 1\n"
    )
    outcome = baton("eval")
    assert outcome.code == 0, outcome.err
    return only(tmp_path / ".baton" / "evaluations")


def only(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def scored(baton: Baton, recording: Path, *words: str) -> Path:
    """Score a recording in a way that leaves an evaluation folder."""
    assert baton("score", recording, "--out", "kept", *words).code in (0, 3)
    return only(Path("kept"))


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the header of a folder, as somebody who made it could."""
    file = folder / "evaluation.json"
    header = json.loads(file.read_text())
    change(header)
    file.write_text(json.dumps(header))


def edit_rows(folder: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the index of a folder; it is one of an earlier format then, without a digest."""
    file = folder / "index.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    change(rows)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    edit(folder, lambda header: header.pop("contents", None))


def limited(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line with 1 GB of address space and 20 s."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    return subprocess.run(
        [sys.executable, "-m", "baton", *map(str, words)],
        preexec_fn=limit, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip


# Places


@pytest.mark.parametrize("way", ["absolute", "up", "link", "glob", "address", "device"])
def test_a_place_that_a_folder_names_is_not_opened(
    baton: Baton, tmp_path: Path, recordings: Path, private: Path, way: str
) -> None:
    folder = scored(baton, recordings / "support_desk" / "refund.sse")
    (tmp_path / "link.json").symlink_to(private)
    place = {
        "absolute": str(private),
        "up": os.path.relpath(private),
        "link": "link.json",
        "glob": f"{private.parent}/*.json",
        "address": f"file://{private}",
        "device": "/dev/zero",
    }[way]
    edit(folder, lambda header: header.update(traces=[place]))
    page = tmp_path / "page.html"
    outcome = baton("report", folder, "--html", page)
    assert f"{place} was not opened: name the recordings with --traces PATH" in outcome.err
    exported = baton("export", folder, "--otlp", "out.jsonl")
    assert exported.code == 2
    assert "was not opened" in exported.err
    assert SECRET not in outcome.out + page.read_text()
    assert not Path("out.jsonl").exists() or SECRET not in Path("out.jsonl").read_text()


def test_definitions_that_a_folder_names_are_not_opened(
    baton: Baton, tmp_path: Path, recordings: Path
) -> None:
    folder = scored(baton, recordings / "support_desk" / "refund.sse")
    os.mkfifo("waits")  # whoever opens it waits for ever
    edit(folder, lambda header: header.update(definitions="waits", dataset=["waits"]))
    outcome = limited("report", folder, "--html", tmp_path / "page.html")
    assert "was not opened" in outcome.stderr


def test_what_was_named_when_it_was_scored_is_opened_again(
    baton: Baton, tmp_path: Path, private: Path
) -> None:
    folder = scored(baton, private)
    page = tmp_path / "page.html"
    outcome = baton("report", folder, "--html", page)
    assert "was not opened" not in outcome.err
    assert in_page(page, SECRET)


def test_a_copy_of_a_folder_says_how_its_recordings_are_named(
    baton: Baton, tmp_path: Path, private: Path
) -> None:
    folder = scored(baton, private)
    copy, page = tmp_path / "copy", tmp_path / "page.html"
    shutil.copytree(folder, copy)
    assert "name the recordings with --traces" in baton("report", copy, "--html", page).err
    assert not in_page(page, SECRET)
    baton("report", copy, "--html", page, "--traces", private)
    assert in_page(page, SECRET)
    moved = private.rename(tmp_path / "notes.json")
    baton("report", copy, "--html", page, "--traces", moved)
    assert in_page(page, SECRET)


def test_named_recordings_open_no_other_place(
    baton: Baton, tmp_path: Path, recordings: Path, private: Path
) -> None:
    mine = recordings / "support_desk" / "refund.sse"
    folder = scored(baton, mine)
    edit(folder, lambda header: header.update(traces=[str(mine), str(private)]))
    page = tmp_path / "page.html"
    baton("report", folder, "--html", page, "--traces", mine)
    assert in_page(page, "refund")
    assert not in_page(page, SECRET)


def test_a_key_that_others_could_read_seals_nothing(
    baton: Baton, tmp_path: Path, private: Path, state_home: Path
) -> None:
    folder = scored(baton, private)
    key = state_home / "baton" / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    try:
        assert "was not opened" in baton("report", folder, "--html", "page.html").err
    finally:
        key.chmod(0o600)


def in_page(page: Path, text: str) -> bool:
    """Tell whether a page holds a text, in one of its packed blocks or outside."""
    import base64
    import gzip
    import re

    told = page.read_text()
    blocks = re.findall(r'type="application/octet-stream"[^>]*>([^<]*)<', told)
    return text in told or any(
        text.encode() in gzip.decompress(base64.b64decode(block)) for block in blocks
    )


@pytest.mark.parametrize("name", ["evaluation.json", "index.jsonl", "bodies.jsonl"])
def test_links_in_a_folder_are_not_followed(
    baton: Baton, played: Path, tmp_path: Path, name: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (played / name).rename(elsewhere)
    (played / name).symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    for words in (("report", played), ("score", played, "-d", "cases.jsonl"), ("show", played)):
        outcome = baton(*words)
        assert outcome.code in (2, 3)
        assert " link" in outcome.err + outcome.out
    assert baton("eval", "--resume", played).code in (2, 3)
    assert elsewhere.read_bytes() == before


def test_a_link_in_the_way_of_a_draft_is_not_written_through(baton: Baton, played: Path) -> None:
    precious = Path("precious").absolute()
    precious.write_text("keep me")
    (played / "evaluation.json.tmp").symlink_to(precious)
    edit_rows(played, lambda rows: rows.pop())
    edit(played, lambda header: header.update(status="interrupted"))
    outcome = baton("eval", "--resume", played)
    assert outcome.code == 0, outcome.err
    assert precious.read_text() == "keep me"


def test_links_out_of_a_folder_of_recordings_are_reported(baton: Baton, private: Path) -> None:
    Path("theirs").mkdir()
    Path("theirs/run.json").symlink_to(private)
    for jobs in ("1", "2"):
        outcome = baton("score", "theirs", "--jobs", jobs)
        assert outcome.code == 2
        assert "theirs/run.json: is a link that leads out of its folder" in outcome.err
    assert baton("show", "theirs").code == 2
    assert SECRET in baton("show", "theirs/run.json").out


def test_links_out_of_a_folder_of_cases_are_reported(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("cases: [{id: a, input: hi}]")
    Path("theirs").mkdir()
    Path("theirs/cases.yaml").symlink_to(tmp_path / "mine.yaml")
    (tmp_path / "desk.py").write_text(AGENT)
    outcome = baton("eval", "desk.py:answer", "theirs")
    assert outcome.code == 2
    assert "is a link that leads out of its folder" in outcome.err


def test_a_session_id_is_no_path(baton: Baton, private: Path) -> None:
    aim = private.with_suffix(".jsonl")
    line = {
        "type": "user",
        "sessionId": "s",
        "uuid": "u",
        "message": {"role": "user", "content": SECRET},
    }
    aim.write_text(json.dumps(line) + "\n" + json.dumps(line | {"uuid": "v"}) + "\n")
    Path("theirs").mkdir()
    id_ = os.path.relpath(aim.with_suffix(""), "theirs")
    side = {
        **line,
        "isSidechain": True,
        "sessionId": id_,
        "message": {"role": "user", "content": "x"},
    }
    Path("theirs/agent-1.jsonl").write_text(json.dumps(side) + "\n")
    assert SECRET not in baton("show", "theirs").out


# Numbers


def test_a_position_of_two_billion_takes_no_memory(played: Path) -> None:
    edit_rows(played, lambda rows: rows[3].update(position=2_000_000_000))
    outcome = limited("report", played)
    assert outcome.returncode == 0, outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.mark.heavy
@pytest.mark.parametrize(
    "changed",
    [
        {"position": -1}, {"position": 2**63}, {"repeat": -5}, {"repeat": 2**40},
        {"offset": -1}, {"offset": 2**62}, {"offset": 10**30}, {"offset": 0},
        {"length": -1}, {"length": 2**61}, {"length": 1}, {"length": 0},
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit_the_files_are_damage_with_its_case(
    baton: Baton, played: Path, changed: dict[str, int]
) -> None:
    edit_rows(played, lambda rows: rows[2].update(changed))
    for words in (("report", played), ("score", played, "-d", "cases.jsonl")):
        outcome = baton(*words)
        assert outcome.code == 3
        assert "index.jsonl:3: " in outcome.out + outcome.err
        assert "lost: `c2`" in outcome.out + outcome.err
    outcome = baton("compare", played, played)
    assert outcome.code == 3
    assert "lost: `c2`" in outcome.err


@pytest.mark.parametrize(
    "changed",
    [
        {"repeats": 0}, {"repeats": 10**12}, {"planned": -1}, {"cases": {"passed": -4}},
        {"id": None}, {"agents": 5}, {"traces": "x"}, {"timings": []},
    ],
)  # fmt: skip
def test_a_header_that_cannot_be_is_refused(
    baton: Baton, played: Path, changed: dict[str, Any]
) -> None:
    edit(played, lambda header: header.update(changed))
    for words in (("report", played), ("show", played), ("eval", "--resume", played)):
        outcome = baton(*words)
        assert outcome.code == 2
        assert "evaluation.json: " in outcome.err


def test_a_body_that_is_none_is_reported_and_never_a_crash(baton: Baton, played: Path) -> None:
    bodies = played / "bodies.jsonl"
    lines = bodies.read_bytes().splitlines(keepends=True)
    lines[1] = b'{"case_id":"c1","repeat":0,"scores":[5]}'.ljust(len(lines[1]) - 1) + b"\n"
    bodies.write_bytes(b"".join(lines))
    edit_rows(played, lambda rows: [row.pop("crc32") for row in rows])
    outcome = baton("report", played, "--junit", "out.xml")
    assert outcome.code == 3
    assert "the result of case `c1` is damaged" in outcome.err


def test_a_repeat_of_two_billion_in_a_recording_takes_neither_time_nor_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trace = {**PRIVATE, "case": "a", "attributes": {"repeat": 2_000_000_000}}
    Path("run.json").write_text(json.dumps(trace))
    Path("cases.yaml").write_text("cases: [{id: a, input: hi, agents: [x]}, {id: b, input: ho}]")
    outcome = limited("score", "run.json", "-d", "cases.yaml")
    assert outcome.returncode in (1, 3)
    assert "Traceback" not in outcome.stderr


ODD = [None, -1, 0, 2**31, 2**70, 1.5, "", "\0", "[/red]", [], {}, [None], {"a": 1}, True]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values within a value."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    return [path, *(found for key, each in inner for found in places(each, (*path, key)))]


def harm(folder: Path, dice: random.Random) -> str:
    """Put something odd in place of one value of a folder, whose places still fit."""
    header = json.loads((folder / "evaluation.json").read_text())
    header.pop("contents", None)
    rows, bodies = (
        [json.loads(line) for line in (folder / name).read_text().splitlines()]
        for name in ("index.jsonl", "bodies.jsonl")
    )
    target = dice.choice([header, rows, bodies])
    path = dice.choice([p for p in places(target) if len(p) > (target is not header)])
    odd, holder = dice.choice(ODD), target
    for key in path[:-1]:
        holder = holder[key]
    if dice.random() < 0.3:
        del holder[path[-1]]
    else:
        holder[path[-1]] = odd
    start = 0
    texts = [json.dumps(body).encode() + b"\n" for body in bodies]
    for row, text in zip(rows, texts, strict=False):
        if target is not rows:
            row.update(offset=start, length=len(text) - 1)
            row.pop("crc32")
        start += len(text)
    (folder / "evaluation.json").write_text(json.dumps(header))
    (folder / "index.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "bodies.jsonl").write_bytes(b"".join(texts))
    return f"{path}: {odd!r}"


@pytest.mark.heavy
def test_whatever_a_folder_holds_is_a_report_or_a_clear_error(
    baton: Baton, played: Path, tmp_path: Path
) -> None:
    dice = random.Random(5)
    for _ in range(40):
        shutil.rmtree("theirs", ignore_errors=True)
        shutil.copytree(played, "theirs")
        what = harm(Path("theirs"), dice)
        files = ("--html", "o.html", "--markdown", "o.md", "--csv", "o.csv", "--junit", "o.xml")
        for words in (
            ("report", "theirs", *files), ("report", "theirs", "--json"),
            ("compare", "theirs", played), ("show", "theirs"),
            ("export", "theirs", "--otlp", "o.jsonl"),
        ):  # fmt: skip
            outcome = baton(*words)
            assert outcome.code in (0, 1, 2, 3), what
            assert outcome.code not in (2, 3) or outcome.err or outcome.out, what
