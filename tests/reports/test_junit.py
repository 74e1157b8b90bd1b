"""The JUnit report: XML that any reader takes, and nothing told as passed that was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from baton.model import CaseResult, Location, Score, Status
from baton.testing import build


def scored(status: Status, value: float | None = None, reason: str = "because") -> Score:
    return build.score(status, value=value, threshold=0.5, reason=reason)


def junit(folder: Path, *results: CaseResult, **fields: Any) -> ET.Element:
    """Return the report on results, parsed."""
    path = folder / "junit.xml"
    build.evaluation(*results, **{"name": "my set", **fields}).to_junit(path)
    return ET.parse(path).getroot()  # noqa: S314 - written a line above


def test_each_status_has_its_own_element_and_is_counted(tmp_path: Path) -> None:
    root = junit(
        tmp_path,
        CaseResult(case_id="good", status="passed", scores=[scored("passed", 1.0)]),
        CaseResult(case_id="bad", status="failed", scores=[scored("failed", 0.25, "wrong agent")]),
        CaseResult(case_id="none", status="skipped", scores=[scored("skipped")]),
        CaseResult(case_id="broke", status="error", error="the stream was cut"),
        status="error",
        problems=("1 of 4 cases could not be evaluated",),
    )
    (suite,) = root
    assert root.tag == "testsuites"
    for element in (root, suite):
        assert element.attrib == {
            "name": "my set", "tests": "5", "failures": "1", "errors": "2", "skipped": "1",
        }  # fmt: skip
    told = {case.get("name"): [child.tag for child in case] for case in suite}
    assert told == {
        "good": [], "bad": ["failure"], "none": ["skipped"], "broke": ["error"],
        "the evaluation": ["error"],
    }  # fmt: skip
    failure = suite[1][0]
    assert failure.get("message") == "agent_chain failed 0.25, needs 0.50: wrong agent"
    assert suite[3][0].get("message") == "the stream was cut"
    assert suite[4][0].get("message") == "1 of 4 cases could not be evaluated"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a <b> & 'c' \"d\" ]]> --", "a <b> & 'c' \"d\" ]]> --"),
        ("naïve 東京 🎉", "naïve 東京 🎉"),
        ("bell\a nul\0 escape\x1b[31m", "bell\\u0007 nul\\u0000 escape\\u001b[31m"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
    ],
)
def test_any_text_makes_valid_xml_and_comes_out_as_it_went_in(
    tmp_path: Path, text: str, shown: str
) -> None:
    wrong = CaseResult(case_id=text, status="failed", scores=[scored("failed", 0.0, text)])
    broken = CaseResult(case_id="x", status="error", error=text)
    root = junit(tmp_path, wrong, broken, name=text, problems=(text,), notices=(text,))
    (suite,) = root
    properties, first, second, whole = suite
    assert root.get("name") == shown
    assert properties[0].attrib == {"name": "notice", "value": shown}
    assert first.get("name") == shown
    assert (first[0].text or "").endswith(shown)
    assert second[0].get("message") == shown
    assert whole[0].get("message") == shown


def test_repeats_are_distinguished(tmp_path: Path) -> None:
    results = [CaseResult(case_id="a", repeat=n, status="passed") for n in range(3)]
    (suite,) = junit(tmp_path, *results)
    assert [case.get("name") for case in suite] == ["a [1]", "a [2]", "a [3]"]


def test_the_time_of_a_case_is_that_of_its_play(tmp_path: Path) -> None:
    live = CaseResult(case_id="a", status="passed", timings={"started": 1.0, "seconds": 1.23456})
    recorded = CaseResult(case_id="b", status="passed")
    (suite,) = junit(tmp_path, live, recorded)
    assert [case.get("time") for case in suite] == ["1.235", None]


def test_a_score_without_a_threshold_is_reported_without_one(tmp_path: Path) -> None:
    bare = scored("failed", 0.25)
    bare.threshold = None
    (suite,) = junit(tmp_path, CaseResult(case_id="a", status="failed", scores=[bare]))
    assert suite[0][0].get("message") == "agent_chain failed 0.25: because"


def test_a_case_is_linked_to_its_file_and_line(tmp_path: Path) -> None:
    stated = Location(file="cases & more.yaml", line=7)
    there = CaseResult(case_id="a", status="passed", where=stated)
    (suite,) = junit(tmp_path, there, CaseResult(case_id="b", status="passed"))
    assert [(case.get("file"), case.get("line")) for case in suite] == [
        ("cases & more.yaml", "7"), (None, None),
    ]  # fmt: skip
