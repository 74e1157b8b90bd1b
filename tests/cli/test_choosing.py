"""Choosing cases: `-k`, and `--lf` for what did not pass last time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.desks import passed_on, write_cases

from baton.datasets.selection import choose
from baton.model import Case, Dataset, InputError

Run = Callable[..., Any]
SOME = Dataset(
    [
        Case(id="refund_twice", turns=[], tags=["money"]),
        Case(id="Refund late", turns=[], tags=["money", "slow"]),
        Case(id="weather", turns=[], metadata={"tier": "gold"}),
        Case(id="this and that", turns=[]),
    ]
)
AGENT = """
import json, pathlib
def reply(message):
    right = json.loads(pathlib.Path("right.json").read_text())
    return {"output": "ok", "agents": ["desk", "billing" if message in right else "weather"]}
"""


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("refund", ["refund_twice", "Refund late"]),
        ("REFUND and not twice", ["Refund late"]),
        ("not (refund or that)", ["weather"]),
        ("twice or weather and gold", ["refund_twice"]),
        ("slow", ["Refund late"]),
        ("tag:money", ["refund_twice", "Refund late"]),
        ("not tag:mon", [each.id for each in SOME]),
        ("metadata.tier=gold or 'this and'", ["weather", "this and that"]),
        ('"and"', ["this and that"]),
        ("not not weather", ["weather"]),
    ],
)
def test_words_are_parts_of_ids_and_tags(expression: str, ids: Sequence[str]) -> None:
    assert list(choose(SOME, keyword=expression).ids) == ids


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "a word is missing"),
        ("refund and", "a word is missing"),
        ("(refund", r"a `\)` is missing"),
        ("refund late", "unexpected `late`"),
        ("refund )", r"unexpected `\)`"),
        ("not " * 200 + "x", "is nested too deep"),
    ],
)
def test_an_expression_that_is_malformed_is_said_to_be(expression: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        choose(SOME, keyword=expression)


def test_an_expression_that_nothing_fits_comes_with_the_ids() -> None:
    with pytest.raises(InputError, match="none of 4 cases matches `x`; ids are refund_twice, "):
        choose(SOME, keyword="x")


def ids(outcome: Any) -> list[str]:
    return [each["case_id"] for each in json.loads(outcome.out)["results"]]


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with five cases, their recordings (of which two went wrong), and an agent."""
    write_cases(tmp_path, 5)
    runs = [passed_on(f"c{n:03}", "weather" if n in (1, 3) else "billing") for n in range(5)]
    (tmp_path / "runs.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, runs)) + b"\n")
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "right.json").write_text('["c000", "c002"]')
    return tmp_path


def test_score_leaves_other_cases_and_their_recordings_alone(baton: Run, desk: Path) -> None:
    line = ["score", "runs.jsonl", "-d", "cases.yaml", "--json"]
    assert ids(baton(*line, "-k", "002 or 003")) == ["c002", "c003"]
    assert baton(*line, "-k", "002").code == 0
    assert ids(baton(*line, "-k", "tag:odd")) == ["c001", "c003"]
    none = baton(*line, "-k", "nothing")
    assert (none.code, none.err) == (
        2,
        "baton: none of 5 cases matches -k nothing; ids are c000, c001, c002, c003, c004\n",
    )


def test_recordings_without_cases_are_chosen_by_their_ids(baton: Run, desk: Path) -> None:
    none = baton("score", "runs.jsonl", "-k", "not 00")
    assert (none.code, none.err) == (2, "baton: none of 5 traces is among the selected cases\n")
    assert ids(baton("score", "runs.jsonl", "--json", "-k", "c004")) == ["c004"]


def test_score_repeats_what_did_not_pass_without_any_path(baton: Run, desk: Path) -> None:
    assert baton("score", "--lf").err.endswith("no evaluation of `baton score` here yet\n")
    assert baton("score", "runs.jsonl", "-d", "cases.yaml", "-e", "agent_chain").code == 1
    again = baton("score", "--lf", "--json")
    assert ids(again) == ["c001", "c003"]
    assert [each["evaluator"] for each in json.loads(again.out)["evaluators"]] == ["agent_chain"]
    fixed = [passed_on(f"c{n:03}", "billing") for n in range(5)]
    (desk / "runs.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, fixed)) + b"\n")
    assert baton("score", "--lf").code == 0
    nothing = baton("score", "--lf")
    assert nothing.code == 2
    assert "none of 5 cases matches --lf" in nothing.err


def test_what_a_config_chose_is_named_again(baton: Run, desk: Path) -> None:
    (desk / "own.yaml").write_text("dataset: cases.yaml\nevaluators: [agent_chain]\n")
    assert baton("score", "runs.jsonl", "-c", "own.yaml").code == 1
    refused = baton("score", "--lf")
    assert refused.code == 2
    assert "name it again: baton score --lf --config own.yaml" in refused.err
    assert ids(baton("score", "--lf", "-c", "own.yaml", "--json")) == ["c001", "c003"]


def test_eval_plays_what_did_not_pass_without_any_path(baton: Run, desk: Path) -> None:
    (desk / "baton.yaml").write_text(
        "dataset: cases.yaml\nproviders: [{type: python, target: 'shop.py:reply'}]\n"
    )
    assert baton("eval", "--lf").code == 2
    assert baton("eval").code == 1
    baton("score", "runs.jsonl", "-d", "cases.yaml")  # is newer, and was not played
    (desk / "right.json").write_text('["c000", "c001", "c002", "c003"]')
    again = baton("eval", "--lf", "--json")
    assert ids(again) == ["c001", "c003", "c004"]
    assert ids(baton("eval", "--last-failed", "--json")) == ["c004"]
    both = baton("eval", "--lf", "--only-failed", "x")
    assert "--lf and --only-failed exclude one another" in both.err


def test_eval_plays_the_cases_that_an_expression_fits(baton: Run, desk: Path) -> None:
    outcome = baton("eval", "shop.py:reply", "cases.yaml", "--json", "-k", "tag:odd and not 1")
    assert ids(outcome) == ["c003"]
    by_workers = ["--backend", "local", "--workers", "1"]
    outcome = baton("eval", "shop.py:reply", "cases.yaml", "--json", "-k", "000", *by_workers)
    assert ids(outcome) == ["c000"]


@pytest.mark.parametrize(
    "workers",
    [
        ["--jobs", "2"],
        pytest.param(["--backend", "local", "--workers", "1"], marks=pytest.mark.heavy),
    ],
)
def test_workers_score_the_cases_that_are_chosen(
    baton: Run, desk: Path, workers: list[str]
) -> None:
    line = ["score", "runs.jsonl", "-d", "cases.yaml", "--json", *workers]
    chosen = baton(*line, "-k", "002 or 003")
    assert (chosen.code, chosen.err) == (1, "")
    assert ids(chosen) == ["c002", "c003"]
    assert ids(baton(*line, "-k", "tag:odd")) == ["c001", "c003"]
    assert ids(baton("score", "runs.jsonl", "--json", "-k", "c004", *workers)) == ["c004"]
    none = baton("score", "runs.jsonl", "-k", "not 00", *workers)
    assert (none.code, none.err) == (2, "baton: none of 5 traces is among the selected cases\n")


@pytest.mark.parametrize("cases", [["-d", "cases.yaml"], []])
def test_workers_score_what_did_not_pass_last_time(
    baton: Run, desk: Path, cases: list[str]
) -> None:
    by_record = ["-e", "dispatch_completed"]
    failed = passed_on("c001", "billing")
    failed.turns[0].dispatches[0].status = "failed"
    runs = [passed_on("c000", "billing"), failed]
    (desk / "runs.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, runs)) + b"\n")
    baton("score", "runs.jsonl", *cases, *by_record)
    here = ids(baton("score", "--lf", "--json"))
    baton("score", "runs.jsonl", *cases, *by_record)
    assert ids(baton("score", "--lf", "--json", "--jobs", "2")) == here
    assert "c001" in here
    assert "c000" not in here


def test_a_case_whose_recording_is_missing_is_an_error_by_workers_too(
    baton: Run, desk: Path
) -> None:
    (desk / "runs.jsonl").write_bytes(msgspec.json.encode(passed_on("c000", "billing")) + b"\n")
    line = ["score", "runs.jsonl", "-d", "cases.yaml", "-k", "c004", "--json"]
    here = baton(*line)
    assert ids(baton(*line, "--jobs", "2")) == ids(here) == ["c004"]
