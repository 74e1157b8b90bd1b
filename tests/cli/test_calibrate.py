"""`baton calibrate`: a real client asks a scripted judge, and people's labels say how good it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.labelled import RUBRIC, answer, write_config, write_labels, write_traces
from tests.evaluators.judged.scripted import shipped

from baton.reports.calibrate import calibration_line
from baton.testing import LlmServer, Received, llm_server

VERSION = shipped()[RUBRIC].version

Run = Callable[..., Any]
PEOPLE = ["correct"] * 30 + ["wrong"] * 12 + ["weak"] * 8
JUDGE = ["correct"] * 29 + ["weak"] + ["wrong"] * 11 + ["correct"] + ["weak"] * 8


@pytest.fixture(scope="module")
def server() -> Iterator[LlmServer]:
    with llm_server(answer) as running:
        yield running


@pytest.fixture(autouse=True)
def forget(server: LlmServer) -> None:
    server.script = answer
    server.clear()


def report_of(outcome: Any) -> dict[str, Any]:
    assert outcome.out, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_a_judge_is_asked_about_what_has_a_label_and_compared_with_it(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    traces = write_traces(tmp_path, [*JUDGE, "correct", "wrong"])
    labels, config = write_labels(tmp_path, PEOPLE), write_config(tmp_path, server.judge())
    outcome = baton("calibrate", RUBRIC, labels, traces, "-c", config, "--json")
    assert outcome.code == 0
    report = report_of(outcome)
    (judge,) = report["judges"]
    assert len(server.requests) == 50
    assert judge["quality"]["agreement"]["value"] == 0.96
    assert judge["quality"]["kappa"]["value"] == pytest.approx(0.9284, abs=1e-4)
    assert [one["label"] for one in judge["quality"]["classes"]] == ["correct", "weak", "wrong"]
    assert judge["quality"]["effects"]["error_length"] is not None
    assert report["evidence"] is True
    assert calibration_line(RUBRIC, VERSION, judge["model"]) == (
        "agreement 0.96 [0.87, 0.99], kappa 0.93, n=50"
    )


def test_twelve_labels_are_no_evidence(baton: Run, tmp_path: Path, server: LlmServer) -> None:
    labels = write_labels(tmp_path, ["correct"] * 6 + ["wrong"] * 6)
    traces = write_traces(tmp_path, ["correct"] * 6 + ["wrong"] * 6)
    config = write_config(tmp_path, server.judge())
    outcome = baton("calibrate", RUBRIC, labels, traces, "-c", config)
    assert outcome.code == 3
    assert "not evidence: 12 labels, at least 40 are needed" in outcome.out
    assert calibration_line(RUBRIC, VERSION, "scripted").startswith("not calibrated: 12 labels")


def test_what_is_not_evidence_does_not_replace_what_is(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    traces, config = write_traces(tmp_path, JUDGE), write_config(tmp_path, server.judge())
    arguments = ("calibrate", RUBRIC, tmp_path / "labels.jsonl", traces, "-c", config)
    write_labels(tmp_path, PEOPLE)
    assert baton(*arguments).code == 0
    write_labels(tmp_path, ["correct"] * 50)
    assert "the calibration of 50 labels is kept: this one is not evidence: at least 8 of" in (
        baton(*arguments).err
    )
    assert "n=50" in calibration_line(RUBRIC, VERSION, "scripted")


def test_a_second_run_asks_nobody_and_says_the_same(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    labels, traces = write_labels(tmp_path, PEOPLE), write_traces(tmp_path, JUDGE)
    config = write_config(tmp_path, server.judge())
    arguments = ("calibrate", RUBRIC, labels, traces, "-c", config)
    first = baton(*arguments)
    server.clear()
    again = baton(*arguments, "--cache-only")
    assert (again.code, again.out) == (0, first.out)
    assert server.requests == []


def test_stored_verdicts_are_calibrated_without_asking_anybody(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    labels, traces = write_labels(tmp_path, PEOPLE), write_traces(tmp_path, JUDGE)
    config = write_config(tmp_path, server.judge())
    baton("score", traces, "-c", config, "--out", "stored")
    server.clear()
    (evaluation,) = (tmp_path / "stored").iterdir()
    outcome = baton("calibrate", RUBRIC, labels, evaluation, "--json")
    assert outcome.code == 0
    found = report_of(outcome)["judges"][0]["quality"]
    assert (found["n"], found["agreement"]["value"]) == (50, 0.96)
    assert found["effects"]["error_length"] is not None
    assert server.requests == []


def test_verdicts_whose_traces_are_gone_are_calibrated_without_lengths(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    labels, traces = write_labels(tmp_path, PEOPLE), write_traces(tmp_path, JUDGE)
    baton("score", traces, "-c", write_config(tmp_path, server.judge()), "--out", "stored")
    traces.unlink()
    (evaluation,) = (tmp_path / "stored").iterdir()
    outcome = baton("calibrate", RUBRIC, labels, evaluation, "--json")
    assert outcome.code == 0
    assert report_of(outcome)["judges"][0]["quality"]["effects"]["error_length"] is None
    assert "effects of length are left out" in outcome.err
    assert str(traces) in outcome.err


def test_options_that_ask_are_refused_where_verdicts_are_stored(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    labels, traces = write_labels(tmp_path, PEOPLE), write_traces(tmp_path, JUDGE)
    baton("score", traces, "-c", write_config(tmp_path, server.judge()), "--out", "stored")
    (evaluation,) = (tmp_path / "stored").iterdir()
    for option in (["--samples", "3"], ["--reversed"], ["--against", "openai:b"]):
        outcome = baton("calibrate", RUBRIC, labels, evaluation, *option)
        assert (outcome.code, f"{option[0]} asks a judge" in outcome.err) == (2, True)
    named = baton("calibrate", RUBRIC, labels, evaluation, "--judge", "openai:b")
    assert (named.code, "options of a judge ask" in named.err) == (2, True)
    mixed = baton("calibrate", RUBRIC, labels, evaluation, traces)
    assert (mixed.code, "name traces to ask" in mixed.err) == (2, True)
    assert baton("calibrate", RUBRIC).code == 2


def test_two_models_are_compared_with_people_and_with_one_another(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    def by_model(received: Received) -> dict[str, str]:
        return answer(received) if received.model == "good" else {"reason": "", "quote": "", "label": "correct"}  # fmt: skip

    server.script = by_model
    labels, traces = write_labels(tmp_path, PEOPLE), write_traces(tmp_path, JUDGE)
    config = write_config(tmp_path, server.judge(model="good"))
    outcome = baton(
        "calibrate", RUBRIC, labels, traces, "-c", config, "--against", "openai:bad", "--json"
    )
    assert outcome.code == 3, "of the bad one too little is known"
    report = report_of(outcome)
    assert [one["quality"]["agreement"]["value"] for one in report["judges"]] == [0.96, 0.6]
    assert report["judges"][1]["quality"]["kappa"]["value"] == 0
    pairs = {(one["first"], one["second"]): one["agreement"]["value"] for one in report["together"]}
    assert pairs == {("good", "bad"): 0.6, ("good", "people"): 0.96, ("bad", "people"): 0.6}
    assert report["split"] == 20


def test_samples_and_reverse_order_show_what_moves_a_judge(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    def first_choice(received: Received) -> dict[str, str]:
        assert received.schema is not None
        return {"reason": "", "quote": "", "label": received.schema["properties"]["label"]["enum"][0]}  # fmt: skip

    server.script = first_choice
    labels, traces = write_labels(tmp_path, PEOPLE[:12]), write_traces(tmp_path, JUDGE[:12])
    config = write_config(tmp_path, server.judge())
    outcome = baton(
        "calibrate", RUBRIC, labels, traces, "-c", config, "--samples", "2", "--reversed", "--json"
    )
    (judge,) = report_of(outcome)["judges"]
    assert judge["reversed_order"]["changed"]["value"] == 1
    assert judge["reversed_order"]["shift"]["value"] == -1
    assert judge["quality"]["self_agreement"]["unanimous"]["value"] == 1
    assert len(server.requests) == 48


def test_what_the_judge_did_not_answer_is_left_out_and_counted(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    labels, traces = write_labels(tmp_path, PEOPLE), write_traces(tmp_path, [*JUDGE[:40], *["nonsense"] * 10])  # fmt: skip
    config = write_config(tmp_path, server.judge(retries=0))
    outcome = baton("calibrate", RUBRIC, labels, traces, "-c", config)
    assert outcome.code == 3
    assert "40 of 50 labelled (labels); 10 unparsable" in outcome.out
    assert "the judge gave a verdict on 40 of 50" in outcome.out


def test_labels_of_a_dataset_find_their_dispatch_by_case_and_agent(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    said = {RUBRIC: "correct"}, {f"{RUBRIC}/finder": "wrong"}, {f"{RUBRIC}/d1": "weak"}
    cases = [
        {"id": f"trace{number}", "input": "hi", "labels": label}
        for number, label in enumerate(said)
    ]
    dataset = tmp_path / "cases.yaml"
    dataset.write_text(json.dumps({"cases": cases}), encoding="utf-8")
    traces = write_traces(tmp_path, ["correct", "wrong", "weak", "correct"])
    config = write_config(tmp_path, server.judge())
    outcome = baton("calibrate", RUBRIC, dataset, traces, "-c", config, "--json")
    quality = report_of(outcome)["judges"][0]["quality"]
    assert (quality["n"], quality["agreement"]["value"]) == (3, 1.0)
    assert len(server.requests) == 3


def test_wrong_labels_are_named_with_file_and_line(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    traces, config = write_traces(tmp_path, JUDGE), write_config(tmp_path, server.judge())
    labels = write_labels(tmp_path, ["correct", "corect"])
    outcome = baton("calibrate", RUBRIC, labels, traces, "-c", config)
    assert outcome.code == 2
    assert f"{labels}:2: the rubric has no label `corect`" in outcome.err
    labels.write_text('{"trace": "t", "dispatch": "d", "rubric": "x", "lable": "y"}\n')
    outcome = baton("calibrate", RUBRIC, labels, traces, "-c", config)
    assert outcome.code == 2
    assert f"{labels}:1: lable" in outcome.err
    assert "label" in outcome.err


def test_a_label_of_what_is_missing_stops_the_run_with_the_nearest_id(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    traces, config = write_traces(tmp_path, JUDGE), write_config(tmp_path, server.judge())
    labels = write_labels(tmp_path, ["correct"], dispatch="d2")
    outcome = baton("calibrate", RUBRIC, labels, traces, "-c", config)
    assert outcome.code == 2
    assert "labels.jsonl:1: trace `trace0` has no `d2` to judge; known: d1" in outcome.err
    assert server.requests == []


def test_a_rubric_that_asks_no_judge_cannot_be_calibrated(baton: Run, tmp_path: Path) -> None:
    labels, traces = write_labels(tmp_path, PEOPLE), write_traces(tmp_path, JUDGE)
    outcome = baton("calibrate", "agent_chain", labels, traces)
    assert (outcome.code, "asks no judge" in outcome.err) == (2, True)


def test_without_a_model_it_says_how_to_name_one(baton: Run, tmp_path: Path) -> None:
    labels, traces = write_labels(tmp_path, PEOPLE), write_traces(tmp_path, JUDGE)
    outcome = baton("calibrate", RUBRIC, labels, traces)
    assert (outcome.code, "no model is configured" in outcome.err) == (2, True)


def test_reports_say_how_far_a_judge_was_found_to_be_right(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    labels, traces = write_labels(tmp_path, PEOPLE), write_traces(tmp_path, JUDGE)
    config = write_config(tmp_path, server.judge())
    before = baton("score", traces, "-c", config, "--show", "0")
    assert f"{RUBRIC}, scripted: not calibrated" in before.out
    baton("calibrate", RUBRIC, labels, traces, "-c", config)
    line = "agreement 0.96 [0.87, 0.99], kappa 0.93, n=50"
    assert f"{RUBRIC}, scripted: {line}" in baton("report").out
    assert report_of(baton("report", "--json"))["calibrations"] == [
        {"evaluator": RUBRIC, "model": "scripted", "calibration": line}
    ]
