"""Several judges on the same dispatches: how they agree, and what a panel of them says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.labelled import RUBRIC, answer, write_config, write_labels, write_traces

from baton.testing import LlmServer, Received, llm_server

Run = Callable[..., Any]
JUDGE = ["correct"] * 6 + ["wrong"] * 4


def lenient(received: Received) -> dict[str, str]:
    """Let the model `kind` call everything correct."""
    found = answer(received)
    return {**found, "label": "correct"} if received.model == "kind" else found


@pytest.fixture(scope="module")
def server() -> Iterator[LlmServer]:
    with llm_server(lenient) as running:
        yield running


def judged_by(baton: Run, folder: Path, server: LlmServer, model: str) -> Path:
    config = write_config(folder, server.judge(model=model))
    baton("score", write_traces(folder, JUDGE), "-c", config, "--out", "stored", "--name", model)
    (found,) = (folder / "stored").glob(f"*-{model}")
    return found


def test_evaluations_by_two_models_show_how_they_agree_without_any_label(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    strict = judged_by(baton, tmp_path, server, "strict")
    kind = judged_by(baton, tmp_path, server, "kind")
    outcome = baton("calibrate", RUBRIC, strict, kind, "--json")
    assert outcome.code == 0
    report = json.loads(outcome.out)
    assert report["judges"] == []
    (pair,) = report["together"]
    assert (pair["first"], pair["second"], pair["n"]) == ("strict", "kind", 10)
    assert pair["agreement"]["value"] == 0.6
    assert report["split"] == 4
    assert not (tmp_path / ".baton" / "calibrations").exists()
    printed = baton("calibrate", RUBRIC, strict, kind).out
    assert "judges differ on 4 items" in printed


def test_the_same_model_twice_is_refused(baton: Run, tmp_path: Path, server: LlmServer) -> None:
    once = judged_by(baton, tmp_path, server, "strict")
    outcome = baton("calibrate", RUBRIC, once, once)
    assert (outcome.code, "strict judged `d1` of trace `trace0` twice" in outcome.err) == (2, True)


def test_three_models_have_a_majority_that_is_compared_with_people(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    labels, traces = write_labels(tmp_path, JUDGE), write_traces(tmp_path, JUDGE)
    config = write_config(tmp_path, server.judge(model="strict"))
    outcome = baton(
        "calibrate", RUBRIC, labels, traces, "-c", config,
        "--against", "openai:kind", "--against", "openai:third",
    )  # fmt: skip
    rows = [line.split() for line in outcome.out.splitlines()]
    assert ["majority", "people", "10", "1.00"] in [row[:4] for row in rows]
    assert ["kind", "people", "10", "0.60"] in [row[:4] for row in rows]
    assert not [row for row in rows if row[:2] == ["strict", "majority"]]


def test_a_panel_in_a_config_judges_by_the_majority_also_with_ones_own_rubric(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    (tmp_path / "scoped.yaml").write_text(
        "name: scoped\nsummary: is it scoped\nunit: dispatch\nversion: '1'\nthreshold: 0.5\n"
        "inputs: [call]\nprompt: Is it?\nanswer: {choices: {correct: 1, wrong: 0}}\n"
    )
    models = ["openai:strict", "openai:third", "openai:kind"]
    config = tmp_path / "panel.yaml"
    config.write_text(
        json.dumps(
            {
                "judge": server.judge(),
                "rubrics": ["scoped.yaml"],
                "evaluators": [
                    {
                        "type": "panel",
                        "name": "three",
                        "config": {"rubric": "scoped", "models": models},
                    }
                ],
            }
        )
    )
    outcome = baton("score", write_traces(tmp_path, JUDGE), "-c", config, "--json")
    assert outcome.code == 1, outcome.err
    scores = [score for result in json.loads(outcome.out)["results"] for score in result["scores"]]
    assert [score["status"] for score in scores] == ["passed"] * 6 + ["failed"] * 4
    assert scores[9]["details"]["dissent"] == ["openai:kind"]
    assert scores[9]["evaluator_type"] == "three"
    assert scores[0]["judge"]["model"] == "strict, third, kind"


def test_a_panel_with_a_misspelt_rubric_stops_the_run_with_its_line(
    baton: Run, tmp_path: Path
) -> None:
    config = tmp_path / "panel.yaml"
    config.write_text(
        "evaluators:\n  - type: panel\n    config:\n      rubric: scope_fidelty\n"
        "      models: [openai:a, openai:b]\n"
    )
    outcome = baton("score", write_traces(tmp_path, JUDGE), "-c", config)
    assert outcome.code == 2
    assert "panel.yaml:4: evaluators[0].config.rubric" in outcome.err
    assert "scope_fidelity" in outcome.err
