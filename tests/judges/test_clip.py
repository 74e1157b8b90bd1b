"""Long material is shortened in the middle, and what is left out is counted."""

from __future__ import annotations

from baton.judges.shorten_texts import NOTE, clip, shares


def test_a_short_text_stays_whole() -> None:
    assert clip("abc", 3) == ("abc", 0)
    assert clip("", 0) == ("", 0)


def test_two_thirds_stay_of_the_start_and_one_of_the_end() -> None:
    text, cut = clip("a" * 60 + "b" * 60, 30)
    assert cut == 90
    assert text == "a" * 20 + "\n⟨... 90 characters left out here ...⟩\n" + "b" * 10


def test_a_limit_of_nothing_leaves_the_note() -> None:
    assert clip("abc", 0) == ("\n⟨... 3 characters left out here ...⟩\n", 3)


def test_what_follows_a_note_is_indented_like_the_text() -> None:
    text, _ = clip("    " + "said: " * 100, 60, "\n    ")
    assert all(line.startswith("    ") for line in text.splitlines())


def test_a_note_takes_no_more_room_than_is_counted() -> None:
    assert len(clip("x" * 10**8, 0, "\n        ").text) <= NOTE


def test_short_texts_stay_whole_and_long_ones_share_what_is_left() -> None:
    assert shares([10, 50, 500], 130) == [10, 50, 70]
    assert shares([500, 10, 100], 130) == [60, 10, 60]


def test_texts_that_fit_together_stay_whole() -> None:
    assert shares([60, 40], 100) == [60, 40]
    assert shares([], 10) == []
    assert shares([5, 5], -1) == [0, 0]
