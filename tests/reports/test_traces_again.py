"""Which recorded trace belongs to which result of a page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
from tests.conftest import Baton, report_of
from tests.reports.test_html import Page

from baton.model import Trace
from baton.testing.build import trace, turn


def said(text: str, id_: str = "same", repeat: int = 0) -> Trace:
    about: dict[str, Any] = {"repeat": repeat} if repeat else {}
    return trace(turn("hi", output=text), id=id_, case=id_, attributes=about)


def answers(baton: Baton, folder: Path, traces: list[Trace], *words: str) -> list[str | None]:
    """Score traces, and return what the trace of each result answered."""
    (folder / "runs.jsonl").write_bytes(b"\n".join(msgspec.json.encode(one) for one in traces))
    baton("score", folder / "runs.jsonl", *words, "--out", folder / "out")
    return [
        case["trace"]["turns"][0]["output"] if "trace" in case else case["untold"]
        for case in page_of(baton, folder).cases
    ]


def page_of(baton: Baton, folder: Path) -> Page:
    """Return the page of the only evaluation of a folder."""
    (stored,) = (folder / "out").iterdir()
    return Page(report_of(baton, stored, "html"))


def test_without_cases_it_is_the_one_in_its_place(baton: Baton, tmp_path: Path) -> None:
    assert answers(baton, tmp_path, [said("one"), said("two")]) == ["one", "two"]


def test_repeats_of_a_case_are_distinguished(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text("cases: [{id: same, input: hi, response_contains: [o]}]")
    traces = [said("one"), said("two", repeat=1)]
    words = ("-d", str(tmp_path / "cases.yaml"), "-e", "response")
    assert answers(baton, tmp_path, traces, *words)[0] == "one"


def test_two_that_cannot_be_told_apart_are_not_shown(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text("cases: [{id: same, input: hi, response_contains: [o]}]")
    words = ("-d", str(tmp_path / "cases.yaml"), "-e", "response")
    assert answers(baton, tmp_path, [said("one"), said("two")], *words) == [
        "several traces of this id were read from the same place"
    ]


def test_it_is_read_with_the_definitions_it_was_scored_with(
    baton: Baton, tmp_path: Path, recordings: Path
) -> None:
    words = ("--agents", recordings / "app_info.support_desk.json", "--out", tmp_path / "out")
    baton("score", recordings / "support_desk" / "policy.sse", *words)
    (case,) = page_of(baton, tmp_path).cases
    assert (
        re.findall(r'"agent": "(\w+)"', json.dumps(case["trace"]["turns"]))[-1] == "policy_expert"
    )
