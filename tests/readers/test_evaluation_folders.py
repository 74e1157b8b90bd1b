"""What a live evaluation kept is read again like any recording."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import Baton

import baton
from baton import load_traces
from baton.model import InputError

CASES = """cases:
  - {id: hello, input: Hello, agents: [router]}
  - {id: bye, input: Bye, agents: [router, billing]}
"""
AGENT = """
def answer(message):
    return {"output": f"You said {message}", "agents": ["router"], "tool_calls": []}
"""


def evaluated(run: Baton, folder: Path, *options: str) -> Path:
    (folder / "cases.yaml").write_text(CASES)
    (folder / "desk.py").write_text(AGENT)
    (folder / "agents.yaml").write_text("agents: {router: {description: It routes.}}\n")
    assert (
        run("eval", "desk.py:answer", "cases.yaml", "--agents", "agents.yaml", *options).code == 1
    )
    (found,) = (folder / ".baton" / "evaluations").iterdir()
    return found


def test_the_traces_come_with_the_definitions_that_are_kept_once(
    baton: Baton, tmp_path: Path
) -> None:
    folder = evaluated(baton, tmp_path)
    header = json.loads((folder / "evaluation.json").read_text())
    assert header["agents"] == [{"router": {"description": "It routes."}}]
    assert "It routes." not in (folder / "bodies.jsonl").read_text()
    traces = {trace.case: trace for trace in load(folder)}
    assert list(traces) == ["hello", "bye"]
    assert traces["bye"].agents["router"].description == "It routes."
    output = traces["bye"].turns[0].output
    assert output is not None
    assert output.text == "You said Bye"


def test_a_case_of_it_is_shown(baton: Baton, tmp_path: Path) -> None:
    folder = evaluated(baton, tmp_path)
    shown = baton("show", folder, "--case", "bye")
    assert shown.code == 0
    assert "You said Bye" in shown.out
    assert "You said Hello" not in shown.out


def test_an_unknown_case_is_refused_with_what_was_meant(baton: Baton, tmp_path: Path) -> None:
    folder = evaluated(baton, tmp_path)
    outcome = baton("show", folder, "--case", "helo")
    assert outcome.code == 2
    assert "did you mean `hello`?" in outcome.err


def test_it_is_scored_again_without_playing_anything(baton: Baton, tmp_path: Path) -> None:
    folder = evaluated(baton, tmp_path)
    (tmp_path / "desk.py").unlink()
    outcome = baton("score", folder, "-d", "cases.yaml", "--json")
    assert outcome.code == 1
    statuses = {r["case_id"]: r["status"] for r in json.loads(outcome.out)["results"]}
    assert statuses == {"hello": "passed", "bye": "failed"}


def test_every_repeat_is_scored_again(baton: Baton, tmp_path: Path) -> None:
    folder = evaluated(baton, tmp_path, "--repeat", "3")
    outcome = baton("score", folder, "-d", "cases.yaml", "--json")
    assert outcome.code == 1
    results = [(r["case_id"], r["repeat"], r["status"]) for r in json.loads(outcome.out)["results"]]
    assert results == [
        *(("hello", repeat, "passed") for repeat in range(3)),
        *(("bye", repeat, "failed") for repeat in range(3)),
    ]


def test_a_repeat_that_has_no_trace_is_an_error_when_it_is_scored_again(
    baton: Baton, tmp_path: Path
) -> None:
    folder = evaluated(baton, tmp_path, "--repeat", "2", "--concurrency", "1")
    # As it is when the last of them was never played.
    for name in ("index.jsonl", "bodies.jsonl"):
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(lines[:-1]))
    header = json.loads((folder / "evaluation.json").read_text()) | {"status": "interrupted"}
    (folder / "evaluation.json").write_text(json.dumps(header))
    outcome = baton("score", folder, "-d", "cases.yaml", "--json")
    assert outcome.code == 3
    errors = [r["error"] for r in json.loads(outcome.out)["results"] if r["status"] == "error"]
    assert errors == ["no trace for case `bye`, repeat 2"]


def test_one_of_recordings_shows_them_while_they_are_there(
    baton: Baton, tmp_path: Path, recordings: Path
) -> None:
    recording = tmp_path / "refund.sse"
    recording.write_bytes((recordings / "support_desk" / "refund.sse").read_bytes())
    assert baton("score", recording, "--out", "kept").code == 0
    (folder,) = (tmp_path / "kept").iterdir()
    outcome = baton("show", folder)
    assert outcome.code == 0
    assert outcome.out.startswith("refund ")
    assert f"reads the recordings it was made from: {recording}" in outcome.err
    recording.unlink()
    outcome = baton("show", folder)
    assert outcome.code == 2
    assert "refund.sse" in outcome.err


def load(folder: Path) -> list[baton.Trace]:
    return baton.load_traces(folder)


def test_a_header_that_is_not_text_and_a_trace_that_is_none_are_reported(tmp_path: Path) -> None:
    (tmp_path / "bodies.jsonl").write_text(
        '{"case_id": "a", "repeat": 0, "scores": [], "trace": 5}\n' * 2
    )
    for header in (b'{"agents": []}', b'{"x": "\xff"}'):
        (tmp_path / "evaluation.json").write_bytes(header)
        with pytest.raises(InputError) as raised:
            load_traces(tmp_path / "bodies.jsonl")
        assert all(problem.file is not None for problem in raised.value.problems)
