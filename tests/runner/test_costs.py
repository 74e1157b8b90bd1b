"""Prices: which one a model gets, what is summed up, and what stays unknown."""

from __future__ import annotations

import copy
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import baton
from baton.evaluators import Cost
from baton.model import (
    AgentCard,
    EvalContext,
    InputError,
    Trace,
    Usage,
    integrity_problems,
)
from baton.runner.costs import ModelPrice, fill_costs, read_prices, unpriced
from baton.testing import build
from baton.testing.build import run

RECORDS = Path(__file__).parent.parent / "records"
ONE = {"m": ModelPrice(input=1.0, output=10.0)}
MILLION = 1_000_000
COUNTED = ("input_tokens", "cache_read_tokens", "output_tokens")


def used(**fields: Any) -> Usage:
    return Usage(**{"input_tokens": MILLION, "output_tokens": MILLION} | fields)


def spends(*runs: tuple[str | None, Usage | None], total: Usage | None = None) -> Trace:
    """One turn with a run of `a0`, `a1`... for each model and usage, in December 2025."""
    made = [
        run(f"a{i}", model=model, usage=usage, started=1764547200.0)
        for i, (model, usage) in enumerate(runs)
    ]
    return build.trace(*made, usage=total)


def cost(filled: Trace) -> float | None:
    assert not integrity_problems(filled)
    return filled.usage.cost_usd if filled.usage else None


@pytest.fixture
def no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be where genai-prices is not installed."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)


def test_tokens_cost_what_a_million_of_their_kind_costs() -> None:
    price = ModelPrice(input=1, output=10, cache_read=0.1, cache_write=2)
    usage = used(cache_read_tokens=3 * MILLION, cache_write_tokens=MILLION // 2)
    filled = fill_costs(spends(("m", usage)), {"m": price})
    assert filled.turns[0].runs[0].usage == msgspec.structs.replace(
        usage, cost_usd=pytest.approx(12.3), cost_from="prices"
    )
    assert cost(filled) == pytest.approx(12.3)


def test_cached_tokens_cost_what_input_does_where_nothing_else_is_stated() -> None:
    usage = used(cache_read_tokens=MILLION, cache_write_tokens=MILLION)
    assert cost(fill_costs(spends(("m", usage)), ONE)) == 13.0


def test_the_trace_given_stays_as_it_was() -> None:
    actual = spends(("m", used()), total=used())
    before = copy.deepcopy(actual)
    fill_costs(actual, ONE)
    assert actual == before


@pytest.mark.parametrize(
    "model",
    [
        "m", "openai/m", "openai:m", "models/m", "openrouter/openai/m", "m-2024-08-06",
        "m-20240806", "m-001", "m@20240801", "m@001", "m-latest", "openai/m-2024-08-06",
    ],
)  # fmt: skip
def test_a_name_is_looked_up_without_its_provider_and_its_version(model: str) -> None:
    assert cost(fill_costs(spends((model, used())), ONE)) == 11.0


@pytest.mark.parametrize("model", ["m-mini", "mm", "m-2", "x-m", "M"])
def test_a_name_that_is_only_alike_has_no_price(model: str) -> None:
    filled = fill_costs(spends((model, used())), ONE)
    assert cost(filled) is None
    assert unpriced(filled) == [model]


def test_the_price_of_the_very_name_goes_before_that_of_a_shorter_one() -> None:
    prices = {
        "m": ModelPrice(input=9, output=9),
        "m-001": ModelPrice(input=8, output=8),
        "openai/m-001": ModelPrice(input=1, output=1),
    }
    assert cost(fill_costs(spends(("openai/m-001", used())), prices)) == 2
    assert cost(fill_costs(spends(("models/m-001", used())), prices)) == 16
    assert cost(fill_costs(spends(("models/m-002", used())), prices)) == 18


def test_a_run_takes_its_own_model_then_its_agents_then_the_default() -> None:
    actual = spends(("m", used()), (None, used()), (None, used()))
    actual.agents = {"a1": AgentCard(model="card")}
    prices = ONE | {
        "card": ModelPrice(input=100, output=0),
        "default": ModelPrice(input=1000, output=0),
    }
    filled = fill_costs(actual, prices, default_model="default")
    assert [r.usage.cost_usd for r in filled.turns[0].runs if r.usage] == [11, 100, 1000]
    assert cost(filled) == 1111


def test_one_model_without_a_price_leaves_the_whole_unknown_and_is_named() -> None:
    actual = spends(("m", used()), ("y", used()), (None, used()), ("y", used()), total=used())
    filled = fill_costs(actual, ONE)
    assert cost(filled) is None
    assert unpriced(filled) == ["y", "(model not recorded)"]


def test_a_model_of_which_no_token_was_used_needs_no_price() -> None:
    filled = fill_costs(spends(("m", used()), ("y", used(input_tokens=0, output_tokens=0))), ONE)
    assert cost(filled) == 11
    assert unpriced(filled) == []


def test_what_the_source_tells_of_costs_stays() -> None:
    told = used(cost_usd=0.5, cost_from="source")
    actual = spends(("m", told), ("m", used()), total=used(cost_usd=7.0, cost_from="source"))
    filled = fill_costs(actual, ONE)
    assert filled.turns[0].runs[0].usage == told
    assert filled.usage == actual.usage
    assert unpriced(filled) == []


def test_a_sum_of_told_and_computed_costs_is_marked_as_computed() -> None:
    told = used(cost_usd=0.5, cost_from="source")
    total = fill_costs(spends(("m", told), ("m", used())), ONE).usage
    assert total is not None
    assert (total.cost_usd, total.cost_from) == (11.5, "prices")


def test_requests_that_reported_nothing_leave_the_sum_incomplete() -> None:
    filled = fill_costs(spends(("m", used()), ("m", Usage(requests=1, complete=False))), ONE)
    assert filled.usage is not None
    assert (filled.usage.cost_usd, filled.usage.complete) == (11.0, False)


def test_the_cost_of_input_alone_is_a_lower_bound() -> None:
    filled = fill_costs(spends(("m", Usage(input_tokens=MILLION))), ONE)
    assert filled.usage is not None
    assert (filled.usage.cost_usd, filled.usage.complete) == (1.0, False)


def test_tokens_that_no_run_tells_of_are_priced_where_all_runs_use_one_model() -> None:
    total = used(input_tokens=3 * MILLION)
    assert cost(fill_costs(spends(("m", used()), ("m", None), total=total), ONE)) == 13
    assert cost(fill_costs(spends(("m", None), total=total), ONE)) == 13
    mixed = fill_costs(spends(("m", used()), ("y", None), total=total), ONE)
    assert cost(mixed) is None
    assert unpriced(mixed) == ["(model not recorded)"]


def test_a_sum_takes_the_place_of_a_usage_that_was_not_known() -> None:
    actual = spends(("m", used()))
    actual.unknown = ["usage", "state"]
    filled = fill_costs(actual, ONE)
    assert cost(filled) == 11
    assert filled.unknown == ["state"]


def test_a_trace_that_tells_no_usage_stays_the_same() -> None:
    actual = spends(("m", None))
    assert fill_costs(actual, ONE) == actual


def test_genai_prices_knows_what_the_config_does_not_and_asks_no_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a price was looked up on the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert cost(fill_costs(spends(("gpt-4o", used())), {})) == 12.5
    assert cost(fill_costs(spends(("openai/gpt-4o-2024-08-06", used())), {})) == 12.5
    assert cost(fill_costs(spends(("openai:gpt-4o", used())), {})) == 12.5


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("anthropic.claude-3-haiku-20240307-v1:0", 1.5),
        ("us.amazon.nova-pro-v1:0", 4.0),
        ("bedrock:us.amazon.nova-pro-v1:0", 4.0),
        ("gpt.nothing-v1:0", None),
    ],
)
def test_ids_of_bedrock_need_no_provider(model: str, dollars: float | None) -> None:
    assert cost(fill_costs(spends((model, used())), {})) == dollars


def test_the_config_goes_before_genai_prices() -> None:
    prices = {"gpt-4o": ModelPrice(input=0, output=1)}
    assert cost(fill_costs(spends(("gpt-4o", used())), prices)) == 1


def test_genai_prices_counts_cached_tokens_once() -> None:
    usage = used(input_tokens=0, cache_read_tokens=MILLION, output_tokens=0)
    assert cost(fill_costs(spends(("gpt-4o", usage)), {})) == 1.25


@pytest.mark.parametrize("requests", [3, 7])
def test_many_small_requests_do_not_cost_what_one_large_one_does(requests: int) -> None:
    small = Usage(input_tokens=100_000, cache_read_tokens=50_000, output_tokens=100, requests=1)
    sums = {name: getattr(small, name) * requests for name in COUNTED}
    one = cost(fill_costs(spends(("gemini-2.5-pro", small)), {}))
    many = cost(fill_costs(spends(("gemini-2.5-pro", Usage(**sums, requests=requests))), {}))
    large = cost(fill_costs(spends(("gemini-2.5-pro", Usage(**sums, requests=1))), {}))
    assert one is not None
    assert many == pytest.approx(one * requests)
    assert many is not None
    assert large is not None
    assert large > many


@pytest.mark.parametrize("model", ["no-such-model", "github-copilot/gpt-4.1", "openai/", ""])
def test_genai_prices_prices_nothing_that_it_does_not_know(model: str) -> None:
    assert cost(fill_costs(spends((model, used())), {})) is None


def test_without_genai_prices_the_config_alone_counts(no_list: None) -> None:
    filled = fill_costs(spends(("m", used()), ("gpt-4o", used())), ONE)
    assert cost(filled) is None
    assert unpriced(filled) == ["gpt-4o"]


@pytest.mark.parametrize("started", [None, 1e18, float("nan")])
def test_a_run_without_a_real_time_has_the_price_of_today(started: float | None) -> None:
    actual = spends(("gpt-4o", used()))
    actual.turns[0].runs[0].started = started
    filled = fill_costs(actual, {})
    assert filled.usage is not None
    assert filled.usage.cost_usd == 12.5


def test_real_records_are_priced_and_scored() -> None:
    data = (RECORDS / "langgraph_supervisor_return.json").read_bytes()
    filled = fill_costs(
        msgspec.json.decode(data, type=Trace), {"gpt-4o-mini": ModelPrice(input=1000, output=1000)}
    )
    (found,) = Cost().evaluate(filled, None, EvalContext())
    assert (found.status, found.value) == ("passed", 1.0)
    assert cost(filled) == pytest.approx((512 + 79) / 1000)


def test_custom_pricing_of_judge_llm_is_in_the_same_unit() -> None:
    pricing = {"gemini-9": {"input": 0.10, "output": 0.40}}
    assert read_prices(pricing) == {"gemini-9": ModelPrice(input=0.10, output=0.40)}


def test_every_wrong_custom_price_is_named() -> None:
    with pytest.raises(InputError) as caught:
        read_prices(
            {
                "m": {"input": 1},
                "n": {"input": -1, "output": 1},
                "o": {"input": 1, "output": 1, "cached": 2},
            }
        )
    assert [problem.path for problem in caught.value.problems] == [
        "custom_pricing.m",
        "custom_pricing.n.input",
        "custom_pricing.o.cached",
    ]


def test_scored_traces_may_be_priced_first() -> None:
    priced = fill_costs(spends(("m", used())), ONE)
    specs = [{"type": "cost", "config": {"max_usd": 11}}]
    assert baton.score(priced, evaluators=specs).status == "passed"


COUNTS = st.one_of(st.none(), st.integers(0, 10_000))
USAGES = st.builds(
    Usage,
    input_tokens=COUNTS,
    cache_read_tokens=COUNTS,
    output_tokens=COUNTS,
    complete=st.booleans(),
)


@given(runs=st.lists(st.tuples(st.sampled_from(["m", "y"]), st.none() | USAGES), max_size=4))
def test_the_trace_costs_the_sum_or_its_missing_models_are_named(
    runs: list[tuple[str, Usage | None]],
) -> None:
    filled = fill_costs(spends(*runs), ONE)
    spent = [
        (model, sum(getattr(usage, name) or 0 for name in COUNTED))
        for model, usage in runs
        if usage is not None
    ]
    missing = any(model == "y" and tokens for model, tokens in spent)
    assert unpriced(filled) == (["y"] if missing else [])
    if missing:
        assert cost(filled) is None
    elif any(tokens for _, tokens in spent):
        wanted = sum(
            (u.input_tokens or 0) + (u.cache_read_tokens or 0) + 10 * (u.output_tokens or 0)
            for _, u in runs
            if u is not None
        )
        assert cost(filled) == pytest.approx(wanted / 1e6)
    assert fill_costs(filled, ONE) == filled


def test_a_computed_cost_follows_the_prices_of_the_day() -> None:
    priced = fill_costs(spends(("m", used())), ONE)
    assert priced.usage is not None
    assert priced.usage.cost_usd is not None
    dearer = {"m": ModelPrice(input=1000, output=1000)}
    again = fill_costs(priced, dearer)
    fresh = fill_costs(spends(("m", used())), dearer)
    assert again == fresh
    assert again.usage != priced.usage
