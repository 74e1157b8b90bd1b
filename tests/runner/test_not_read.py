"""Notices on content that a reader could not place."""

from pathlib import Path

from baton import score
from baton.model import REPEATED, Dropped
from baton.testing.build import answered


def test_what_a_program_returns_beside_its_spans_is_no_loss() -> None:
    one = answered("Done.")
    one.dropped = [Dropped(what=REPEATED, count=2), Dropped(what="a truncated event")]
    notices = score([one], None, ["latency"]).notices
    lost = [notice for notice in notices if "not read" in notice]
    assert lost == ["not read, so not scored: a truncated event (1 time)"]


def test_only_a_few_kinds_are_listed_and_the_others_are_counted() -> None:
    one = answered("Done.")
    one.dropped = [Dropped(what=f"event `{letter}`") for letter in "abcdef"]
    lost = [each for each in score([one], None, ["latency"]).notices if "not read" in each]
    assert len(lost) == 6
    assert lost[-1] == "not read, so not scored: content of 1 more kind"


def test_unknown_keys_do_not_alarm() -> None:
    one, two = answered("Done."), answered("Done.")
    one.dropped = [Dropped(what="key `plan`", count=3), Dropped(what="a truncated event")]
    notices = score([one], None, ["latency"]).notices
    assert "an unknown key was ignored, and changes no verdict: `plan`" in notices
    assert "not read, so not scored: a truncated event (1 time)" in notices
    two.dropped = [Dropped(what=f"key `{letter}`") for letter in "abcdefg"]
    (said,) = score([two], None, ["latency"]).notices
    listed = "`a`, `b`, `c`, `d`, `e` and 2 more"
    assert said == f"unknown keys were ignored, and change no verdict: {listed}"


def test_a_recording_with_any_number_of_unknown_keys_has_a_short_row_in_the_index(
    tmp_path: Path,
) -> None:
    one = answered("Done.")
    one.dropped = [Dropped(what=f"key `{number}`") for number in range(5000)]
    scored = score([one], None, ["latency"])
    scored.save(tmp_path / "evaluation")
    assert (tmp_path / "evaluation" / "index.jsonl").stat().st_size < 2000
    (said,) = scored.notices
    assert said.endswith(": `0`, `1`, `2`, `3`, `4` and over 16 more")
    one.dropped = [Dropped(what=f"event {number}") for number in range(5000)]
    lost = score([one], None, ["latency"]).notices
    assert lost[-1] == "not read, so not scored: content of over 16 more kinds"


def test_recordings_with_any_number_of_unknown_keys_do_not_fill_the_memory() -> None:
    traces = [answered("Done.") for _ in range(100)]
    for place, one in enumerate(traces):
        one.dropped = [Dropped(what=f"key `{20 * place + number}`") for number in range(20)]
    (said,) = score(traces, None, ["latency"]).notices
    assert said.endswith(": `0`, `1`, `2`, `3`, `4` and over 996 more")
