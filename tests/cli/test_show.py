"""`baton show`, `draft`, `check` and `list`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from baton.model import Trace

Run = Callable[..., Any]
RECORDS = sorted((Path(__file__).parent.parent / "records").glob("*.json"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_every_record_draws_its_agents_and_dispatches(baton: Run, record: Path) -> None:
    trace = msgspec.json.decode(record.read_bytes(), type=Trace)
    outcome = baton("show", record)
    assert outcome.code == 0
    for turn in trace.turns:
        for run in turn.runs:
            assert run.agent in outcome.out
        for dispatch in turn.dispatches:
            assert dispatch.id in outcome.out


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_every_record_prints_as_the_json_it_was_read_from(baton: Run, record: Path) -> None:
    printed = json.loads(baton("show", record, "--json").out)
    original = json.loads(record.read_text(encoding="utf-8"))
    printed["source"].pop("location")
    original["source"].pop("location", None)
    assert printed == original


def test_printed_records_are_read_again(baton: Run, tmp_path: Path) -> None:
    printed = baton("show", RECORDS[0], RECORDS[1], "--json").out
    (tmp_path / "records.jsonl").write_text(printed, encoding="utf-8")
    assert baton("show", "records.jsonl", "--json").out.count("\n") == 2


def test_a_hand_off_is_drawn_between_its_agents(baton: Run, recordings: Path) -> None:
    outcome = baton("show", recordings / "support_desk" / "refund.session.json")
    lines = outcome.out.splitlines()
    order = [
        next(i for i, line in enumerate(lines) if mark in line)
        for mark in ("Please refund", "support_router", "→ billing_agent", "lookup_order", "answer")
    ]
    assert order == sorted(order)
    assert "not recorded:" in outcome.out


def test_one_turn_and_one_dispatch_can_be_shown(baton: Run, recordings: Path) -> None:
    run = recordings / "support_desk" / "weather_then_refund.session.json"
    second = baton("show", run, "--turn", "2")
    assert "Please refund order 42." in second.out
    assert "Oslo" not in second.out
    one = baton("show", run, "--dispatch", "dispatch3")
    assert one.out.startswith("→ billing_agent")
    assert baton("show", run, "--turn", "3").code == 2
    missing = baton("show", run, "--dispatch", "dispatch33")
    assert missing.code == 2
    assert "dispatch3" in missing.err


def test_what_was_dropped_is_shown(baton: Run, tmp_path: Path) -> None:
    part = {"hologram": {"uri": "x"}}
    event = {"author": "a", "invocationId": "i", "content": {"parts": [part, {"text": "hi"}]}}
    (tmp_path / "x.json").write_text(json.dumps([event]))
    assert "dropped: key `content.parts.hologram`" in baton("show", "x.json").out


def test_a_drafted_case_passes_with_the_run_it_was_drafted_from(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    sessions = sorted((recordings / "support_desk").glob("*[!d].session.json"))
    for session in sessions:
        drafted = baton("draft", session, "--agents", recordings / "app_info.support_desk.json")
        assert drafted.code == 0
        (tmp_path / "case.yaml").write_text(drafted.out, encoding="utf-8")
        outcome = baton(
            "score", session, "-d", "case.yaml",
            "--agents", recordings / "app_info.support_desk.json",
        )  # fmt: skip
        broke = "is failed" in drafted.err or "is incomplete" in drafted.err
        assert outcome.code == (3 if broke else 0), (session, outcome)


def test_a_draft_says_what_the_recording_does_not_hold(baton: Run, recordings: Path) -> None:
    outcome = baton("draft", recordings / "support_desk" / "refund.sse")
    assert "does not hold the user's message" in outcome.err
    assert "not recorded" in outcome.out


def test_list_takes_names(baton: Run) -> None:
    outcome = baton("list", "trajectory_evaluator", "replay")
    assert outcome.code == 0
    assert "tool_calls" in outcome.out
    assert "replay" in outcome.out
    assert "agent_chain" not in outcome.out
    assert "did you mean `tool_calls` or `tool_called`?" in baton("list", "tool_cals").err


def test_check_tells_what_each_file_is(baton: Run, tmp_path: Path, recordings: Path) -> None:
    examples = recordings.parent
    criteria = tmp_path / "test_config.json"
    criteria.write_text('{"criteria": {"response_match_score": 0.8}}')
    outcome = baton(
        "check",
        criteria,
        examples / "cases.yaml",
        examples / "baton.yaml",
        recordings / "app_info.support_desk.json",
        recordings / "support_desk" / "refund.sse",
        recordings / "support_desk" / "refund.session.json",
        RECORDS[0],
    )
    assert outcome.code == 0, outcome
    kinds = [line.rsplit(": ", 1)[1].split(",")[0] for line in outcome.out.splitlines()]
    assert kinds == [
        "criteria of ADK", "dataset (baton)", "config", "agent definitions", "1 trace", "1 trace", "1 trace",
    ]  # fmt: skip


def test_check_says_all_that_is_wrong_in_all_files(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("cases:\n- {id: a, inptu: hi}\n- {id: b, input: 3}\n")
    (tmp_path / "b.yaml").write_text("evaluators:\n- type: agent_chian\n")
    outcome = baton("check", "a.yaml", "b.yaml")
    assert outcome.code == 2
    assert "a.yaml:2: cases[0].inptu: unknown key; did you mean `input`?" in outcome.err
    assert "a.yaml:3: cases[1].input: expected text or null, got 3" in outcome.err
    assert "b.yaml:2" in outcome.err
    assert "did you mean `agent_chain`?" in outcome.err


def test_list_names_evaluators_with_aliases_and_defaults(baton: Run) -> None:
    outcome = baton("list")
    assert outcome.code == 0
    words = ("agent_chain", "subagent_evaluator", 'sequence_match_type: "contains"', "adk_http")
    for word in words:
        assert word in outcome.out


def test_check_takes_the_same_files_for_cases_as_score_does(baton: Run, tmp_path: Path) -> None:
    line = '{"id": "a", "input": "hi", "agents": ["x"]}\n'
    (tmp_path / "one.jsonl").write_text(line)
    (tmp_path / "list.yaml").write_text("- {id: a, input: hi, agents: [x]}\n")
    (tmp_path / "config.yaml").write_text("dataset: one.jsonl\n")
    outcome = baton("check", "one.jsonl", "list.yaml", "config.yaml")
    assert outcome.code == 0, outcome.err
    assert [text.split(": ")[1].split(",")[0] for text in outcome.out.splitlines()] == [
        "dataset (baton)",
        "dataset (baton)",
        "config",
    ]


def test_check_looks_at_every_file_of_a_folder(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    good = baton("check", recordings.parent)
    assert good.code == 0, good.err
    assert "baton.yaml: config, 1 evaluator" in good.out
    assert "refund.sse: 1 trace, 1 turn" in good.out
    assert "ghost.run.500.txt: not a file that Baton reads" in good.err
    (tmp_path / "f").mkdir()
    assert baton("check", "f").code == 2
    (tmp_path / "f" / "c.yaml").write_text("evaluators: [{type: agent_chian}]\n")
    assert baton("check", "f").code == 2


def test_an_evaluation_of_recordings_is_shown_and_scored_from_these(
    baton: Run, tmp_path: Path
) -> None:
    (tmp_path / "run.json").write_bytes(RECORDS[0].read_bytes())
    assert baton("score", "run.json", "--out", "out").code == 0
    (folder,) = (tmp_path / "out").iterdir()
    by_folder, by_file = baton("show", folder), baton("show", "run.json")
    assert (by_folder.code, by_folder.out) == (0, by_file.out)
    assert "reads the recordings it was made from: run.json" in by_folder.err
    assert baton("score", folder, "--out", "again").code == 0


@pytest.mark.parametrize("verb", ["show", "score"])
def test_recordings_of_an_evaluation_from_elsewhere_have_to_be_named(
    baton: Run, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "run.json").write_bytes(RECORDS[0].read_bytes())
    assert baton("score", "run.json", "--out", "out").code == 0
    (folder,) = (tmp_path / "out").iterdir()
    moved = folder.rename(tmp_path / "theirs")
    outcome = baton(verb, moved)
    assert (outcome.code, outcome.out) == (2, "")
    assert "it was made from run.json" in outcome.err
    assert "name these recordings in place of the folder" in outcome.err


def test_a_dispatch_is_drafted_into_its_own_file_and_scored_as_recorded(
    baton: Run, recordings: Path
) -> None:
    run = recordings / "support_desk" / "wrong_specialist.session.json"
    drafted = baton("draft", run, "--dispatch", "dispatch1", "--expect", "-o", "cases/")
    assert drafted.code == 0
    scored = baton("score", "cases/")
    assert scored.code == 0
    assert re.search(r"dispatch_routing +1 +0 +0 +0", scored.out)


def test_what_the_record_proves_to_be_wrong_is_a_failure_mode_of_a_drafted_dispatch(
    baton: Run, recordings: Path
) -> None:
    run = recordings.parent.parent / "claude" / "scope_bleed"
    drafted = baton("draft", run, "--dispatch", "dispatch1")
    assert "failure_modes:\n    - tool_attempted\n" in drafted.out
    assert "expect:" not in drafted.out


def test_a_dispatch_that_several_recordings_have_is_named_with_its_trace(
    baton: Run, recordings: Path
) -> None:
    runs = [recordings / "support_desk" / f"{name}.session.json" for name in ("refund", "ghost")]
    unclear = baton("draft", *runs, "--dispatch", "dispatch1")
    assert unclear.code == 2
    assert "2 traces have a dispatch `dispatch1`: name one of `refund/dispatch1`" in unclear.err
    clear = baton("draft", *runs, "--dispatch", "ghost/dispatch1", "--dispatch", "refund/dispatch1")
    assert re.findall(r"^- id: (.*)$", clear.out, re.M) == ["ghost-dispatch1", "refund-dispatch1"]


def test_a_misspelt_dispatch_is_named_with_the_one_that_was_meant(
    baton: Run, recordings: Path
) -> None:
    run = recordings / "support_desk" / "refund.session.json"
    outcome = baton("draft", run, "--dispatch", "dispach1")
    assert outcome.code == 2
    assert "no dispatch `dispach1`; did you mean `dispatch1`?" in outcome.err
    assert baton("draft", run, "--expect").code == 2
