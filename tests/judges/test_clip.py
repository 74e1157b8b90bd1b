"""Long material is cut in the middle, and the cut is reported."""

from __future__ import annotations

from baton.judges.clip import clip, clip_all


def test_a_short_text_stays_whole() -> None:
    assert clip("abc", 3) == ("abc", 0)
    assert clip("", 0) == ("", 0)


def test_two_thirds_stay_of_the_start_and_one_of_the_end() -> None:
    text, cut = clip("a" * 60 + "b" * 60, 30)
    assert cut == 90
    assert text == "a" * 20 + "\n[... 90 characters left out here ...]\n" + "b" * 10


def test_a_limit_of_nothing_leaves_the_note() -> None:
    assert clip("abc", 0) == ("\n[... 3 characters left out here ...]\n", 3)


def test_short_texts_stay_whole_and_long_ones_share_what_is_left() -> None:
    clipped = clip_all(["s" * 10, "m" * 50, "l" * 500], 130)
    assert [found.cut for found in clipped] == [0, 0, 430]
    clipped = clip_all(["s" * 10, "m" * 100, "l" * 500], 130)
    assert [found.cut for found in clipped] == [0, 40, 440]


def test_texts_that_fit_together_stay_whole() -> None:
    assert [found.cut for found in clip_all(["a" * 60, "b" * 40], 100)] == [0, 0]
    assert clip_all([], 10) == []
