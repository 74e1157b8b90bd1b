"""Chains with agents that may run in any order: `[router, {a, b}, writer]`."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import baton
from baton.evaluators.agent_chain import chain_score, in_best_order, longest_common
from baton.model import (
    AnyOrder,
    Case,
    InputError,
    Score,
)
from baton.testing import verdict
from baton.testing.build import case, run, trace

CHAIN = ["router", AnyOrder(any_order=["a", "b"]), "writer"]


def ordered(*ran: str, stated: Any = CHAIN, **options: Any) -> Score:
    options = {"sequence_match_type": "exact", **options}
    return verdict("agent_chain", trace(*map(run, ran)), case(agents=stated), **options)


@pytest.mark.parametrize("branches", [("a", "b"), ("b", "a")])
def test_any_order_inside_the_fan_out_is_exact(branches: tuple[str, str]) -> None:
    assert ordered("router", *branches, "writer").value == 1.0


@pytest.mark.parametrize(
    "ran",
    [
        ("a", "router", "b", "writer"),
        ("router", "a", "writer", "b"),
        ("router", "a", "writer"),
        ("router", "a", "a", "writer"),
        ("router", "a", "b", "b", "writer"),
    ],
)
def test_what_leaves_the_fan_out_or_its_number_is_not_exact(ran: tuple[str, ...]) -> None:
    assert ordered(*ran).value == 0.0


def test_a_reason_shows_the_chain_as_it_was_stated() -> None:
    found = ordered("router", "b", "writer")
    assert found.reason == "turn 1: expected router → {a, b} → writer, got router → b → writer"
    (turn,) = found.details["invocation_results"]
    assert turn["expected_agents"] == ["router", "b", "a", "writer"]
    assert turn["match_details"]["missing_agents"] == ["a"]


def test_the_other_modes_look_at_the_order_that_fits_best() -> None:
    assert ordered("router", "b", "writer", sequence_match_type="subset").value == 0.75
    assert ordered("b", "x", "a", sequence_match_type="contains").value == 0.5
    assert ordered("router", "b", "a", "writer", allow_extra_agents=False).value == 1.0
    assert ordered("router", "b", "a", "x", "writer", allow_extra_agents=False).value == 0.0


NAMES = st.lists(st.sampled_from("abcd"), max_size=6)


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3), max_size=3), NAMES)
def test_the_order_is_as_good_as_the_best_of_all_orders(
    groups: list[list[str]], actual: list[str]
) -> None:
    orders: list[list[str]] = [[]]
    for group in groups:
        orders = [[*chain, *way] for chain in orders for way in permutations(group)]
    stated = [AnyOrder(any_order=group) for group in groups]
    found = in_best_order(stated, actual)
    assert found in orders
    assert longest_common(found, actual) == max(longest_common(o, actual) for o in orders)
    exact = max(chain_score(order, actual, "exact") for order in orders)
    assert chain_score(found, actual, "exact") == exact


def dataset(tmp_path: Path, agents: str) -> Case:
    file = tmp_path / "cases.yaml"
    file.write_text(f"cases:\n  - id: one\n    input: hi\n    agents: {agents}\n")
    (case,) = baton.load_dataset(file)
    return case


def test_a_case_states_it_in_short_or_in_full(tmp_path: Path) -> None:
    short = dataset(tmp_path, "[router, {a, b}, writer]")
    full = dataset(tmp_path, "[router, {any_order: [a, b]}, writer]")
    assert short.turns[0].agents == CHAIN
    assert short.content_hash() == full.content_hash()
    assert short.content_hash() != dataset(tmp_path, "[router, a, b, writer]").content_hash()


@pytest.mark.parametrize("agents", ["[router, {a}]", "[{any_order: [a]}]", "[{a: [b, c]}]"])
def test_what_is_not_a_fan_out_is_refused(tmp_path: Path, agents: str) -> None:
    with pytest.raises(InputError, match="may run in any order"):
        dataset(tmp_path, agents)
