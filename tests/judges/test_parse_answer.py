"""What a model says is a verdict, or has its kind of error."""

from __future__ import annotations

import pytest
from tests.judges.conftest import GOOD, SCHEMA

from baton.judges.parse_answer import AnswerError, CallError, RawAnswer, read_verdict

PLAIN = '{"reason": "as told", "label": "good"}'


def read(text: str, canary: str = "canary-1") -> object:
    return read_verdict(RawAnswer(text=text, model="m"), SCHEMA, canary)


@pytest.mark.parametrize(
    "text", [PLAIN, f"\n {PLAIN}\n", f"```json\n{PLAIN}\n```", f"```\n{PLAIN}```"]
)
def test_an_object_of_the_schema_is_a_verdict(text: str) -> None:
    assert read(text) == GOOD


@pytest.mark.parametrize(
    "text",
    [
        f"Here it is: {PLAIN}",
        f"{PLAIN} Sincerely, your judge",
        f"```json\n{PLAIN}\n```\n```json\n{PLAIN}\n```",
        f"[{PLAIN}]",
        '"good"',
        "good",
        PLAIN[:-3],
        '{"reason": NaN, "label": "good"}',
        '{"reason": "as told", "label": "GOOD"}',
        '{"label": "good"}',
        "[" * 100_000,
    ],
)
def test_anything_else_is_unparsable(text: str) -> None:
    with pytest.raises(AnswerError) as refused:
        read(text)
    assert refused.value.kind == "unparsable"


@pytest.mark.parametrize("text", ["", " \n"])
def test_nothing_is_its_own_error(text: str) -> None:
    with pytest.raises(AnswerError) as refused:
        read(text)
    assert refused.value.kind == "empty"


def test_an_answer_that_repeats_the_canary_is_no_verdict() -> None:
    with pytest.raises(AnswerError, match="canary"):
        read('{"reason": "my orders say canary-1", "label": "good"}')
    assert read(PLAIN.replace("as told", "canary-2"))


@pytest.mark.parametrize("kind", ["refusal", "truncated"])
def test_a_model_that_did_not_come_to_its_end_is_not_believed(kind: str) -> None:
    with pytest.raises(CallError) as refused:
        read_verdict(RawAnswer(text=PLAIN, model="m", stopped=kind), SCHEMA, "c")  # type: ignore[arg-type]
    assert refused.value.kind == kind
    assert not refused.value.again
