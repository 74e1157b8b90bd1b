"""`baton score`: verdicts, exit codes, and nothing lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def own(folder: Path, **agents: str) -> Path:
    """Write a dataset with a case for each keyword: its id and its expected agents."""
    lines = [f"  - {{id: {name}, input: hi, agents: {chain}}}" for name, chain in agents.items()]
    path = folder / "cases.yaml"
    path.write_text("cases:\n" + "\n".join(lines), encoding="utf-8")
    return path


def test_a_good_run_passes(baton: Run, tmp_path: Path, recordings: Path) -> None:
    cases = own(tmp_path, refund="[support_router, billing_agent]")
    outcome = baton("score", recordings / "support_desk" / "refund.sse", "--dataset", cases)
    assert outcome.code == 0
    assert outcome.out.splitlines()[0].split() == [
        "evaluator", "passed", "failed", "skipped", "error",
    ]  # fmt: skip


def test_a_wrong_specialist_fails_with_both_chains_side_by_side(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    cases = own(tmp_path, wrong_specialist="[support_router, billing_agent]")
    run = recordings / "support_desk" / "wrong_specialist.sse"
    outcome = baton("score", run, "-d", cases)
    assert outcome.code == 1
    expected, actual = (s for s in outcome.out.splitlines() if "support_router  " in s)
    assert expected.index("support_router") == actual.index("support_router")
    assert expected.index("billing_agent") == actual.index("weather_agent")
    assert "to fix it" in outcome.out


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_report_says_that_a_recording_is_truncated(
    baton: Run, tmp_path: Path, recordings: Path, jobs: str
) -> None:
    spans = recordings.parent.parent / "frameworks" / "recordings" / "refund.otlp.jsonl"
    torn = tmp_path / "torn.jsonl"
    torn.write_text(spans.read_text() + '{"resourceSpans": [{"resource"')
    line = len(spans.read_text().splitlines()) + 1
    outcome = baton("score", torn, "--jobs", jobs)
    assert "! not read, so not scored: ends of JSON that is truncated (1 time" in outcome.out
    assert f"torn.jsonl: line {line}" in outcome.out
    assert "not read" not in baton("score", spans, "--jobs", jobs).out


def test_a_case_without_its_run_is_an_error_and_is_reported(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    cases = own(tmp_path, refund="[support_router, billing_agent]", never_played="[a]")
    outcome = baton("score", recordings / "support_desk" / "refund.sse", "-d", cases, "--json")
    assert outcome.code == 3
    report = json.loads(outcome.out)
    assert [r["case_id"] for r in report["results"]] == ["refund", "never_played"]
    assert [r["status"] for r in report["results"]] == ["passed", "error"]
    assert report["results"][1]["error"] == "no trace for case `never_played`"


def test_a_trace_without_a_case_is_an_error_that_names_it(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    cases = own(tmp_path, refund="[support_router, billing_agent]")
    desk = recordings / "support_desk"
    outcome = baton("score", desk / "refund.sse", desk / "thought.sse", "-d", cases)
    assert outcome.code == 3
    assert "no case for trace `thought`" in outcome.out


def test_two_traces_for_one_case_are_an_error_that_names_both(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    cases = own(tmp_path, refund="[support_router, billing_agent]")
    desk = recordings / "support_desk"
    outcome = baton(
        "score", desk / "refund.sse", desk / "refund.session.json", "-d", cases, "--json"
    )
    assert outcome.code == 3
    report = json.loads(outcome.out)
    assert report["cases"] == {"passed": 0, "failed": 0, "skipped": 0, "error": 1}
    assert "refund.sse" in report["results"][0]["error"]
    assert "refund.session.json" in report["results"][0]["error"]


def test_a_first_message_that_two_cases_share_is_an_error_that_names_both(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    cases = tmp_path / "c.yaml"
    inputs = {"a": "Please refund order 42.", "b": "Please  refund order 42."}
    cases.write_text(json.dumps({"cases": [{"id": k, "input": v} for k, v in inputs.items()]}))
    outcome = baton("score", recordings / "support_desk" / "refund.session.json", "-d", cases)
    assert outcome.code == 3
    assert "2 cases for trace `refund`" in outcome.out
    assert "`a`, `b`" in outcome.out


def test_scoring_the_same_data_twice_gives_the_same_json(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    cases = own(tmp_path, refund="[support_router, billing_agent]", thought="[x]")
    run = ["score", recordings / "support_desk" / "refund.sse", "-d", cases, "--json"]
    assert baton(*run).out == baton(*run).out
    bodies = sorted((tmp_path / ".baton" / "evaluations").glob("*/*.jsonl"))
    assert len(bodies) == 4
    assert bodies[0].read_bytes() == bodies[2].read_bytes()
    assert bodies[1].read_bytes() == bodies[3].read_bytes()


def test_an_evaluator_that_scored_nothing_is_an_error_unless_it_is_optional(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    run = recordings / "support_desk" / "refund.sse"
    cases = tmp_path / "c.yaml"
    cases.write_text("cases:\n- {id: refund, input: hi}\n")
    config = tmp_path / "b.yaml"
    config.write_text("dataset: c.yaml\nevaluators:\n- {type: agent_chain, optional: true}\n")
    assert baton("score", run, "-d", cases).code == 3
    alone = baton("score", run, "-c", config)
    assert alone.code == 3
    assert "no evaluator scored anything" in alone.out


def test_a_broken_file_does_not_stop_the_others(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    (tmp_path / "runs").mkdir()
    good = (recordings / "support_desk" / "refund.sse").read_bytes()
    (tmp_path / "runs" / "refund.sse").write_bytes(good)
    (tmp_path / "runs" / "broken.sse").write_text('data: {"author": \n\ndata: {}\n\n')
    cases = own(tmp_path, refund="[support_router, billing_agent]")
    outcome = baton("score", "runs", "-d", cases, "--json")
    assert outcome.code == 3
    report = json.loads(outcome.out)
    assert report["results"][0]["status"] == "passed"
    assert "broken.sse:1" in report["problems"][0]
    assert "event 1" in report["problems"][0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["score"], "name the files or folders"),
        (["score", "nowhere.json"], "nowhere.json: no such file or folder"),
        (["score", "x.txt", "-e", "agent_chian"], "did you mean `agent_chain`?"),
        (["score", "x.txt", "--datset", "y"], "did you mean `--dataset`?"),
        (["scor"], "did you mean `score`?"),
        (["score", "x.txt"], "contains no trace"),
        (["score", "x.txt", "-d", "y.yaml"], "y.yaml: no such file or folder"),
        (["score", "x.txt", "-c", "y.yaml"], "y.yaml: no such file or folder"),
        (["score", "x.txt", "--agents", "y.yaml"], "y.yaml: no such file or folder"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(
    baton: Run, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "x.txt").write_text("hello")
    outcome = baton(*arguments)
    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.out == ""
    assert len(outcome.err.strip().splitlines()) == 1
    assert not (tmp_path / ".baton").exists()


def test_the_dataset_in_a_folder_of_recordings_is_not_taken_for_one(
    baton: Run, tmp_path: Path
) -> None:
    turn = {
        "user_content": {"parts": [{"text": "hi"}]},
        "intermediate_data": {"intermediate_responses": [{"agent_name": "a"}]},
    }
    for name in ("expected.evalset.json", "actual.evalset.json"):
        text = json.dumps({"eval_cases": [{"eval_id": "x", "conversation": [turn]}]})
        (tmp_path / name).write_text(text)
    outcome = baton("score", tmp_path, "-d", tmp_path / "expected.evalset.json")
    assert outcome.code == 0, outcome


def test_a_report_of_the_stored_evaluation_is_the_same(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    cases = own(tmp_path, wrong_specialist="[support_router, billing_agent]")
    run = recordings / "support_desk" / "wrong_specialist.sse"
    first = baton("score", run, "-d", cases, "--json")
    again = baton("report", "--format", "json")
    assert (again.code, again.out) == (1, first.out)
    (folder,) = (tmp_path / ".baton" / "evaluations").iterdir()
    assert baton("report", folder).out.splitlines()[0].startswith("evaluator")


def test_a_report_of_what_is_not_an_evaluation_is_bad_input(baton: Run, tmp_path: Path) -> None:
    assert baton("report").code == 2
    assert baton("report", tmp_path).code == 2


def test_hostile_text_does_not_reach_the_terminal(baton: Run, tmp_path: Path) -> None:
    run = tmp_path / "x.json"
    event = {
        "author": "a\u001b[31mred[bold]",
        "invocationId": "i",
        "content": {"parts": [{"text": "\u001b]0;title\u0007[red]hi[/red]"}]},
    }
    run.write_text(json.dumps([event]))
    cases = own(tmp_path, x="[b]")
    for outcome in (baton("score", run, "-d", cases), baton("show", run)):
        assert "\u001b" not in outcome.out
        assert "[bold]" in outcome.out


def test_files_the_wrong_way_round_are_reported(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    cases = own(tmp_path, refund="billing_agent")
    recording = recordings / "support_desk" / "refund.sse"
    for wrong in ([cases], [cases, "-d", recording], [recording, "-d", recording]):
        outcome = baton("score", *wrong)
        assert outcome.code == 2
        assert "baton score RECORDING --dataset DATASET" in outcome.err


def test_what_is_neither_a_recording_nor_a_dataset_is_not_taken_for_one(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    recording = recordings / "support_desk" / "refund.sse"
    assert "contains no cases" in baton("score", recording, "-d", "x.json").err
    assert "contains no trace" in baton("score", "x.json").err


def test_what_a_case_states_and_nobody_checks_is_reported(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    run = recordings / "support_desk" / "refund.sse"
    case = {"id": "refund", "input": "hi", "agents": ["billing_agent"]}
    (tmp_path / "c.json").write_text(
        json.dumps({"cases": [{**case, "response": "no", "tools": ["f"], "final_state": {"x": 1}}]})
    )
    outcome = baton("score", run, "-d", "c.json")
    assert outcome.code == 0
    said = (
        "no evaluator for it is selected: "
        "`final_state` (`state_equals`), `response` (`response`), `tools` (`tool_calls`)"
    )
    assert (said in outcome.out, outcome.err) == (True, "")
    assert said in baton("score", run, "-d", "c.json", "--dry-run").err  # which has no report
    (tmp_path / "c.json").write_text(json.dumps({"cases": [case]}))
    assert baton("score", run, "-d", "c.json").err == ""


def test_a_tolerant_config_says_why_a_failure_is_exit_code_0(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    own(tmp_path, wrong_specialist="[billing_agent]")
    config = "dataset: cases.yaml\nagent: {fail_on_threshold_violation: false}\n"
    (tmp_path / "b.yaml").write_text(config)
    run = recordings / "support_desk" / "wrong_specialist.sse"
    outcome = baton("score", run, "-c", "b.yaml")
    assert outcome.code == 0
    assert "fail_on_threshold_violation" in outcome.err


def test_without_a_dataset_what_the_record_proves_of_hand_offs_is_scored(
    baton: Run, recordings: Path
) -> None:
    session = recordings.parents[1] / "claude" / "scope_bleed"
    outcome = baton("score", session, "--json")
    assert outcome.code == 1
    (result,) = json.loads(outcome.out)["results"]
    failed = [score for score in result["scores"] if score["status"] == "failed"]
    assert [score["type"] for score in failed] == ["dispatch_scope"]
    assert "`Edit`" in failed[0]["reason"]


def test_without_a_dataset_an_evaluator_that_has_nothing_to_score_is_no_error(
    baton: Run, recordings: Path
) -> None:
    outcome = baton("score", recordings / "support_desk" / "refusal.sse")
    assert outcome.code == 0, outcome.err


def test_evaluations_of_a_folder_are_not_read_with_its_recordings(
    baton: Run, tmp_path: Path, recordings: Path
) -> None:
    session = recordings / "support_desk" / "refund.session.json"
    (tmp_path / session.name).write_bytes(session.read_bytes())
    assert baton("score", ".").code == 0
    again = baton("score", ".")
    assert again.code == 0
    assert "bodies.jsonl" not in again.err
