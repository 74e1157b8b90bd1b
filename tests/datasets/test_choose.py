"""Choosing some cases of a dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton import load_dataset
from baton.datasets.selection import choose
from baton.model import Case, Content, Dataset, ExpectedToolCall, ExpectedTurn, InputError
from baton.testing.build import case

CASES = Dataset(
    [
        case("refund_1", id="refund_1", tags=["money", "smoke"], labels={"tier": "gold"}),
        case(
            "refund_2",
            id="refund_2",
            tags=["money"],
            metadata={"tier": "silver", "n": 7, "ok": True},
        ),
        case(
            "weather[1]",
            id="weather[1]",
            metadata={"owner": {"team": "sky"}, "owner.name": "Anna=1"},
        ),
        case("Weather", id="Weather", metadata={"list": [1, "a"], "none": None}),
    ]
)


def chosen(*filters: str, limit: int | None = None) -> list[str]:
    return list(choose(CASES, filters, limit).ids)


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([], ["refund_1", "refund_2", "weather[1]", "Weather"]),
        (["refund_*"], ["refund_1", "refund_2"]),
        (["refund_?"], ["refund_1", "refund_2"]),
        (["refund_[!1]"], ["refund_2"]),
        (["weather*"], ["weather[1]"]),
        (["weather[1]"], ["weather[1]"]),
        (["tag:money"], ["refund_1", "refund_2"]),
        (["tag:s*"], ["refund_1"]),
        (["tag:money", "*_2"], ["refund_2"]),
        (["metadata.tier=gold"], ["refund_1"]),
        (["metadata.tier=silver"], ["refund_2"]),
        (["metadata.n=7"], ["refund_2"]),
        (["metadata.ok=true"], ["refund_2"]),
        (["metadata.owner.team=sky"], ["weather[1]"]),
        (["metadata.owner.name=Anna=1"], ["weather[1]"]),
        (['metadata.list=[1,"a"]'], ["Weather"]),
        (["metadata.none=null"], ["Weather"]),
    ],
)
def test_a_filter_keeps_what_it_names(filters: list[str], left: list[str]) -> None:
    assert chosen(*filters) == left


def test_a_limit_holds_after_the_filters() -> None:
    assert chosen("refund_*", limit=1) == ["refund_1"]
    assert chosen(limit=3) == ["refund_1", "refund_2", "weather[1]"]
    assert chosen(limit=30) == chosen()


@pytest.mark.parametrize(
    "filters", [["gone"], ["tag:gone"], ["metadata.a=b"], ["refund_1", "refund_2"]]
)
def test_filters_that_nothing_meets_are_an_error_and_no_empty_pass(filters: list[str]) -> None:
    names = " and ".join(f"`{text}`" for text in filters)
    with pytest.raises(InputError) as caught:
        chosen(*filters)
    assert str(caught.value).startswith(f"none of 4 cases matches {names}; a filter is a glob")


@pytest.mark.parametrize("text", ["metadata.tier", "metadata.=x", "metadata."])
def test_a_malformed_filter_says_how_to_write_it(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a filter: write `metadata\.KEY=VALUE`"):
        chosen(text)


def test_what_is_chosen_states_what_its_own_cases_do() -> None:
    turns = [
        ExpectedTurn(input=Content(text="x"), agents=["a"]),
        ExpectedTurn(input=Content(text="x"), tool_calls=[ExpectedToolCall(name="f")]),
    ]
    dataset = Dataset([Case(id=str(n), turns=[turn]) for n, turn in enumerate(turns)])
    assert dataset.stated == {"agents", "tools"}
    assert choose(dataset, ["0"]).stated == {"agents"}
    assert choose(choose(dataset, ["*"]), ["1"]).stated == {"tools"}


def test_what_is_chosen_stands_in_its_own_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        text = f"cases: [{{id: a, input: hi {name}, response: x}}, {{id: {name}, input: ho}}]"
        (tmp_path / f"{name}.yaml").write_text(text)
    dataset = load_dataset(tmp_path)
    assert len(dataset.files) == 2
    only = choose(dataset, ["one/a"])
    assert list(only.files) == [str(tmp_path / "one.yaml")]
    assert only.ids == ["one/a"]
    assert only.places("a") == [0]
    assert only.by_input("hi one") == [0]
    assert dataset.stated_in(str(tmp_path / "two.yaml")) == {"response"}
    picked = load_dataset([f"{tmp_path}/one.yaml:one", tmp_path / "two.yaml"])
    assert picked.stated_in(str(tmp_path / "one.yaml")) == set()
