"""Token counts mean the same whoever wrote them: input without cache, output with thinking."""

from __future__ import annotations

from typing import Any

import pytest

from baton.model import Usage
from baton.readers.otlp.attribute_values import usage, usage_of


def _counts(found: Usage | None) -> tuple[int | None, ...]:
    assert found is not None
    return (
        found.input_tokens, found.cache_read_tokens, found.cache_write_tokens, found.output_tokens,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "counts"),
    [
        ({"input_tokens": 10, "output_tokens": 2}, (10, None, None, 2)),
        ({"prompt_tokens": 10, "completion_tokens": 2}, (10, None, None, 2)),
        ({"input_tokens": 10, "prompt_tokens": 10, "output_tokens": 2, "completion_tokens": 2},
         (10, None, None, 2)),
        ({"input_tokens": "10", "output_tokens": "2"}, (10, None, None, 2)),
        ({"input_tokens": 10, "output_tokens": 2, "cache_read.input_tokens": 4,
          "cache_creation.input_tokens": 1}, (5, 4, 1, 2)),
        ({"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 4,
          "cache_creation_input_tokens": 1}, (5, 4, 1, 2)),
        ({"input_tokens": 10, "output_tokens": 2, "cache_read_tokens": 4, "cache_write_tokens": 1},
         (5, 4, 1, 2)),
        ({"input_tokens": 10, "output_tokens": 2, "cache_read.input_tokens": 0}, (10, 0, None, 2)),
    ],
)  # fmt: skip
def test_counts_are_read_under_every_name(attributes: dict[str, Any], counts: Any) -> None:
    named = {f"gen_ai.usage.{key}": value for key, value in attributes.items()}
    assert _counts(usage_of(named, "gen_ai.usage.")) == counts


def test_cached_tokens_beside_the_input_are_told_by_the_total() -> None:
    """Anthropic counts the input without what came from the cache."""
    assert _counts(usage(input=10, output=2, read=4, total=16)) == (10, 4, None, 2)


def test_cached_tokens_within_the_input_are_told_by_the_total() -> None:
    assert _counts(usage(input=10, output=2, read=4, total=12)) == (6, 4, None, 2)


def test_more_cached_tokens_than_input_stand_beside_it() -> None:
    assert _counts(usage(input=3, output=2, read=400)) == (3, 400, None, 2)


def test_thinking_within_the_output_is_not_added() -> None:
    assert _counts(usage(input=10, output=8, thinking=6, total=18)) == (10, None, None, 8)


@pytest.mark.parametrize("output", [2, 9])
def test_thinking_beside_the_output_is_added_when_the_total_has_it(output: int) -> None:
    """Gemini counts its thoughts beside its answer."""
    found = usage(input=10, output=output, thinking=6, total=16 + output)
    assert _counts(found) == (10, None, None, output + 6)


@pytest.mark.parametrize("told", [{}, {"gen_ai.usage.total_tokens": 12}])
def test_no_counts_are_no_usage(told: dict[str, Any]) -> None:
    assert usage_of(told, "gen_ai.usage.") is None


def test_half_of_the_counts_are_a_lower_bound() -> None:
    found = usage_of({"gen_ai.usage.output_tokens": 2}, "gen_ai.usage.")
    assert found is not None
    assert (found.input_tokens, found.output_tokens, found.complete) == (None, 2, False)


@pytest.mark.parametrize("bad", [-1, "many", float("nan"), float("inf"), True, [], {}])
def test_what_is_not_a_count_is_not_known(bad: Any) -> None:
    found = usage_of(
        {"gen_ai.usage.input_tokens": bad, "gen_ai.usage.output_tokens": 2}, "gen_ai.usage."
    )
    assert found is not None
    assert found.input_tokens is None


def test_the_cost_is_the_sources_own() -> None:
    found = usage(input=10, output=2, cost=0.25)
    assert (found.cost_usd, found.cost_from) == (0.25, "source")


def test_more_thinking_than_output_is_beside_it() -> None:
    assert _counts(usage(input=10, output=2, thinking=6)) == (10, None, None, 8)


def test_cached_and_thinking_tokens_are_distinguished_by_the_total() -> None:
    gemini = usage(input=10, output=2, read=4, thinking=6, total=18)
    both_beside = usage(input=10, output=2, read=4, thinking=6, total=22)
    assert _counts(gemini) == (6, 4, None, 8)
    assert _counts(both_beside) == (10, 4, None, 8)


@pytest.mark.parametrize("total", [0, None])
def test_zero_tokens_in_and_out_were_not_counted(total: int | None) -> None:
    # OpenAI's SDK has zeros for a stream whose server sends no counts.
    found = usage(input=0, output=0, total=total)
    assert _counts(found) == (None, None, None, None)
    assert not found.complete


def test_an_answer_without_tokens_is_possible() -> None:
    assert _counts(usage(input=3, output=0)) == (3, None, None, 0)
