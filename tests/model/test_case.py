"""Cases know themselves by content, datasets find them by id and first message."""

from __future__ import annotations

import pytest

from baton.model import (
    Case,
    CaseIndex,
    Dataset,
    InputError,
    Location,
    Scenario,
)
from baton.testing import build


def refund(id_: str = "c1", says: str = "Refund order 42.", where: Location | None = None) -> Case:
    return build.case(says, id=id_, where=where)


def test_the_content_hash_ignores_where_a_case_stands() -> None:
    here, there = Location(file="a.yaml", line=3), Location(file="b.yaml")
    assert refund(where=here).content_hash() == refund(where=there).content_hash()


def test_the_content_hash_leaves_the_case_as_it_was() -> None:
    placed = refund(where=Location(file="a.yaml"))
    placed.content_hash()
    assert placed.where == Location(file="a.yaml")


def test_the_content_hash_sees_what_a_case_states() -> None:
    assert refund().content_hash() != refund(says="Refund order 43.").content_hash()


def test_the_content_hash_ignores_the_order_of_keys() -> None:
    first, second = refund(), refund()
    first.state, second.state = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert first.content_hash() == second.content_hash()


def test_a_dataset_finds_a_case_by_id() -> None:
    first, second = refund("c1"), refund("c2")
    assert Dataset([first, second]).by_id("c2") is second


def test_a_dataset_finds_nothing_for_an_id_it_does_not_have() -> None:
    assert Dataset([refund("c1")]).by_id("c9") is None


def test_a_local_id_that_files_share_finds_all_their_cases() -> None:
    cases = [refund("a/c1"), refund("b/c1")]
    own, joined = CaseIndex(), CaseIndex()
    own.add(refund("c1"))
    for shared in cases:
        joined.take(own, 0, shared.id)
    dataset = Dataset(cases, index=joined)
    assert dataset.places("c1") == [0, 1]
    with pytest.raises(InputError, match="`c1`: `a/c1`, `b/c1`"):
        dataset.by_id("c1")


def test_a_dataset_finds_cases_by_their_first_message_with_space_folded() -> None:
    dataset = Dataset([refund("c1"), refund("c2", "Hello"), refund("c3")])
    assert dataset.by_input("  Refund\n order 42.") == [0, 2]


def test_a_scenario_is_found_by_how_it_starts() -> None:
    scenario = Case(id="c1", turns=[], scenario=Scenario(start="Hi", plan="Ask for a refund."))
    assert Dataset([scenario]).by_input("Hi") == [0]


def test_a_case_that_opens_with_nothing_is_found_by_no_message() -> None:
    assert Dataset([refund(says="")]).by_input("") == []


def test_a_dataset_refuses_an_id_that_occurs_twice() -> None:
    with pytest.raises(InputError, match="`c1` is a duplicate"):
        Dataset([refund("c1"), refund("c1", "Hello")])


def test_a_dataset_keeps_the_order_of_its_cases() -> None:
    dataset = Dataset([refund("c2"), refund("c1")])
    assert dataset.ids == ["c2", "c1"] == [c.id for c in dataset]
