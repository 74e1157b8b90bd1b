"""What is made of texts is kept while it is asked for again, in a memory that does not grow."""

from __future__ import annotations

from baton.findings.text_cache import text_cached


def test_a_text_that_is_asked_for_again_is_made_once() -> None:
    made: list[str] = []

    @text_cached
    def longer(text: str) -> str:
        made.append(text)
        return f"{text}!"

    assert [longer("a"), longer("b"), longer("a")] == ["a!", "b!", "a!"]
    assert made == ["a", "b"]


def test_texts_are_forgotten_when_they_are_long_together_and_what_is_used_stays() -> None:
    made: list[str] = []

    def read(text: str) -> int:
        made.append(text)
        return len(text)

    reading = text_cached(read, characters=10_000)
    for number in range(100):
        assert reading("x" * 400 + str(number)) == 400 + len(str(number))
        assert reading("asked for all the time") == 22
    assert made.count("asked for all the time") == 1
    assert len(made) == 101
    reading("x" * 400 + "99")
    assert len(made) == 101
    reading("x" * 400 + "0")
    assert len(made) == 102
