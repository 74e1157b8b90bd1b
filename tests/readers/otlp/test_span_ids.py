"""Ids of spans, however they are written."""

from __future__ import annotations

import pytest

from baton.readers.otlp.span import bytes_value, span_id_of, trace_id_of


@pytest.mark.parametrize("letter", ["\ufffd", "é", "!"])
def test_what_has_the_length_of_an_id_in_base64_and_is_none_is_kept(letter: str) -> None:
    long, short = f"{letter}{'A' * 21}==", f"{letter}{'A' * 10}="
    assert (trace_id_of(long), span_id_of(short)) == (long, short)


def test_bytes_that_are_no_base64_have_a_digest_of_their_own() -> None:
    assert bytes_value("é") == bytes_value("é") != bytes_value("ä")
