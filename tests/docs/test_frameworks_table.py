"""The table of docs/frameworks.md says what the readers find in the recordings, no more."""

from __future__ import annotations

import pytest

from .facts import FACTS
from .happened import DATA, recordings
from .table import PAGE, cell, judged, table, written


def test_the_table_in_the_docs_is_that_of_the_recordings() -> None:
    assert written() == table(), f"{PAGE.name} is out of date: `make frameworks` writes it"


def test_every_folder_with_a_truth_is_in_the_table() -> None:
    told = {path.parent for path in DATA.rglob("truth.json")}
    seen = [recording.path for recording in recordings()]
    unused = {folder for folder in told if not any(folder in path.parents for path in seen)}
    assert unused == {DATA / "adk"}  # its recordings are those of the examples


def test_every_fact_has_its_meaning_below_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [fact for fact in FACTS if f"| {fact} | " not in page] == []


def test_each_fact_is_judged_by_recordings_of_several_sources() -> None:
    judging: dict[str, set[str]] = {fact: set() for fact in FACTS}
    for each in judged():
        for fact, known in each.facts.items():
            if known:
                judging[fact].add(each.recording.source)
    assert [fact for fact, sources in judging.items() if len(sources) < 2] == []


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "not proven"),
        ([(True, None), (False, None)], "not proven"),
        ([(True, True), (False, True)], "yes"),
        ([(True, True), (False, False)], "when content is on"),
        ([(True, True)], "when content is on"),
        ([(True, True), (True, False), (False, False)], "in 1 of 2"),
        ([(True, False), (False, False)], "no"),
        ([(False, True), (False, False)], "in 1 of 2"),
    ],
)
def test_a_cell_sums_up_what_was_found(rows: list[tuple[bool, bool | None]], text: str) -> None:
    assert cell(rows) == text


def test_a_file_that_always_has_content_needs_no_recording_without() -> None:
    assert cell([(True, True)], switch=False) == "yes"


def test_a_recording_of_nothing_that_was_said_has_its_content_off() -> None:
    off = {
        f"{recording.source}/{recording.path.stem}"
        for recording in recordings()
        if not recording.has_content()
    }
    named = {name for name in off if "nocontent" in name or "noruntime" in name}
    assert len(named) > 20
    assert "google-adk/transfer" in off  # ADK's default
    assert "google-adk/transfer_content" not in off
