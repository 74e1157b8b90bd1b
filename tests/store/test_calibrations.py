"""Calibrations are kept by rubric, version and model, and reports say what was found."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from baton.model import InputError
from baton.reports.calibrate import calibration_line
from baton.stats.intervals import Estimate
from baton.store.calibrations import (
    Calibration,
    keep_calibration,
    kept_calibration,
    kept_calibrations,
)

MODEL = "openai:gpt/5 mini"
FOUND = Calibration(
    rubric="scope_fidelity",
    version="1",
    model=MODEL,
    n=210,
    agreement=Estimate(value=0.91, low=0.86, high=0.94, n=210),
    kappa=Estimate(value=0.78, low=0.7, high=0.86, n=210),
)


def test_a_rubric_says_how_far_its_judge_can_be_trusted(tmp_path: Path) -> None:
    keep_calibration(FOUND, tmp_path)
    line = calibration_line("scope_fidelity", "1", MODEL, tmp_path)
    assert line == "agreement 0.91 [0.86, 0.94], kappa 0.78, n=210"


@pytest.mark.parametrize(
    ("rubric", "version", "model"),
    [("scope_fidelity", "2", MODEL), ("scope_fidelity", "1", "other"), ("scope", "1", MODEL)],
)
def test_another_version_model_or_rubric_is_not_calibrated(
    rubric: str, version: str, model: str, tmp_path: Path
) -> None:
    keep_calibration(FOUND, tmp_path)
    assert calibration_line(rubric, version, model, tmp_path) == "not calibrated"


def test_what_is_not_evidence_is_not_calibrated_and_says_why(tmp_path: Path) -> None:
    lacking = ["12 labels, at least 40 are needed"]
    keep_calibration(
        Calibration(rubric="r", version="1", model="m", n=12, lacking=lacking), tmp_path
    )
    line = calibration_line("r", "1", "m", tmp_path)
    assert line == "not calibrated: 12 labels, at least 40 are needed"


def test_a_later_calibration_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    keep_calibration(FOUND, tmp_path)
    more = msgspec.structs.replace(FOUND, n=211)
    keep_calibration(more, tmp_path)
    keep_calibration(Calibration(rubric="scope_fidelity", version="2", model=MODEL, n=8), tmp_path)
    found = kept_calibration("scope_fidelity", "1", MODEL, tmp_path)
    assert found is not None
    assert found.n == 211
    assert {one.n for one in kept_calibrations("scope_fidelity", tmp_path)} == {8, 211}


def test_a_later_calibration_that_says_less_does_not_replace_a_better_one(tmp_path: Path) -> None:
    keep_calibration(FOUND, tmp_path)
    for less in ({"n": 60}, {"n": 500, "lacking": ["all labels are alike"]}):
        keep_calibration(msgspec.structs.replace(FOUND, **less), tmp_path)
        found = kept_calibration("scope_fidelity", "1", MODEL, tmp_path)
        assert found is not None
        assert found.n == 210


def test_names_that_look_alike_as_files_are_kept_apart(tmp_path: Path) -> None:
    for model, n in (("a/b", 1), ("a-b", 2), ("a b", 3)):
        keep_calibration(Calibration(rubric="r", version="1", model=model, n=n), tmp_path)
    found = kept_calibration("r", "1", "a-b", tmp_path)
    assert found is not None
    assert found.n == 2


def test_a_damaged_one_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    file = keep_calibration(FOUND, tmp_path)
    file.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="make it again") as caught:
        calibration_line("scope_fidelity", "1", MODEL, tmp_path)
    assert caught.value.problems[0].file == str(file)
    assert kept_calibrations("scope_fidelity", tmp_path) == []


def test_a_place_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be stored here"):
        keep_calibration(FOUND, tmp_path / "taken")
