"""The CSV report: a row a score, and no formula in it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from tests.conftest import Baton, report_of
from tests.reports.desk import write_desk
from tests.reports.hostile import hostile_evaluation, hostile_texts

from baton.reports.csv import COLUMNS, safe


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_every_score_has_a_row(baton: Baton, tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    baton(*write_desk(tmp_path, 6), "--csv", file)
    rows = rows_of(file.read_text("utf-8"))
    assert len(rows) == 6 * 5
    routed = next(row for row in rows if row["evaluator"] == "dispatch_routing")
    assert (routed["case"], routed["repeat"], routed["status"]) == ("refund_0000", "1", "passed")
    assert (routed["value"], routed["agent"]) == ("1.0", "billing_agent")
    assert (Path(routed["file"]).name, routed["line"]) == ("desk.jsonl", "1")
    assert routed["tags"] == "refund;vip"


def test_a_case_without_scores_has_a_row_with_its_error(baton: Baton, tmp_path: Path) -> None:
    arguments = write_desk(tmp_path, 2)
    (tmp_path / "runs.jsonl").write_text((tmp_path / "runs.jsonl").read_text().splitlines()[0])
    baton(*arguments, "--csv", tmp_path / "scores.csv")
    last = rows_of((tmp_path / "scores.csv").read_text("utf-8"))[-1]
    assert (last["case_status"], last["evaluator"]) == ("error", "")
    assert last["case_error"] == "no trace for case `shipping_0001`"


def test_what_is_stated_and_not_checked_comes_last(baton: Baton, tmp_path: Path) -> None:
    arguments = [word for word in write_desk(tmp_path, 1) if word != "agent_chain"]
    arguments.remove("-e")
    baton(*arguments, "--csv", tmp_path / "scores.csv")
    last = rows_of((tmp_path / "scores.csv").read_text("utf-8"))[-1]
    assert (last["case"], last["evaluator"], last["status"]) == ("", "", "notice")
    assert last["reason"].startswith("stated but not checked")


@pytest.mark.parametrize(
    "formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1", "＝1", "=cmd|' /C calc'!A0"]
)
def test_what_a_spreadsheet_takes_for_a_formula_becomes_text(formula: str) -> None:
    cell = safe(formula)
    assert isinstance(cell, str)
    assert cell.startswith("'")
    assert cell.endswith(formula.replace("\r", "\\r"))


def test_figures_and_plain_texts_stay_as_they_are() -> None:
    assert safe(-0.5) == -0.5
    assert safe(None) is None
    assert safe("a - b = c") == "a - b = c"


def test_any_text_comes_out_of_a_csv_reader_whole(baton: Baton, tmp_path: Path) -> None:
    texts = hostile_texts()
    text = report_of(baton, hostile_evaluation(tmp_path, texts), "csv")
    rows = rows_of(text)
    scores = [row for row in rows if row["status"] != "notice"]
    assert [row["reason"] for row in scores] == [safe(text) for text in texts]
    assert set(rows[0]) == set(COLUMNS)
    assert "\0" not in text
