"""`baton compare BEFORE AFTER --case ID`: one case, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from baton.gate.case_side_by_side import CaseStep, align, steps_of
from baton.model import Step, Trace
from baton.testing.build import call, delegate, run, said, trace, turn

from .desks import evaluate

Run = Callable[..., Any]


def test_the_first_step_that_differs_is_marked_and_verdicts_say_what_changed(
    baton: Run, tmp_path: Path
) -> None:
    good = evaluate(baton, tmp_path, "good", wrong=[], count=5)
    bad = evaluate(baton, tmp_path, "bad", wrong=[2], count=5)
    outcome = baton("compare", good, bad, "--case", "c002")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"before passed, {good.name}" in outcome.out
    assert f"after  failed, {bad.name}" in outcome.out
    assert "agent_chain: passed 1.00 → failed 0.50" in outcome.out
    assert "unchanged: dispatch_target_known passed 1.00" in outcome.out
    first = next(line for line in outcome.out.splitlines() if "← first difference" in line)
    assert first.split() == ["−", "desk", "handed", "to", "billing:", "←", "first", "difference"]
    assert "+ desk handed to weather:" in outcome.out


def test_equal_runs_say_so(baton: Run, tmp_path: Path) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=3)
    two = evaluate(baton, tmp_path, "two", wrong=[], count=3)
    outcome = baton("compare", one, two, "--case", "c001")
    assert "both runs took the same steps, with the same texts" in outcome.out
    assert "first difference" not in outcome.out


def test_the_newest_evaluation_is_the_default_and_json_has_all_steps(
    baton: Run, tmp_path: Path
) -> None:
    good = evaluate(baton, tmp_path, "good", wrong=[], count=3)
    evaluate(baton, tmp_path, "bad", wrong=[1], count=3)
    outcome = baton("compare", good, "--case", "c001", "--json")
    plain = json.loads(outcome.out)
    assert (plain["before"]["status"], plain["after"]["status"]) == ("passed", "failed")
    changes = [step["change"] for step in plain["steps"]]
    assert changes == ["same", "gone", "new"]
    assert plain["first_difference"] == 1
    assert plain["steps"][2]["after"]["name"] == "weather"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--case", "c002x"], "neither evaluation has a case `c002x`; did you mean `c002`?"),
        (["--case", "c002", "--before-repeat", "2"], "1 repeat of the case, and no repeat 2"),
        (["--case", "c002", "--after-repeat", "0"], "--after-repeat is counted from 1, got 0"),
        (["--case", "c002", "--fail-on-regression"], "`--fail-on-regression` compares whole"),
        (["--case", "c002", "--min-effect", "0.1"], "`--min-effect` compares whole evaluations"),
        (["--case", "c002", "--show", "3"], "`--show` compares whole evaluations"),
        (["--after-repeat", "1"], "`--before-repeat` and `--after-repeat` need `--case`"),
    ],
)
def test_mistakes_are_named(baton: Run, tmp_path: Path, options: list[str], message: str) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=3)
    outcome = baton("compare", one, one, *options)
    assert outcome.code == 2
    assert message in outcome.err


def test_a_baseline_keeps_no_runs(baton: Run, tmp_path: Path) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=3)
    baton("baseline", "set", one)
    outcome = baton("compare", "default", one, "--case", "c001")
    assert outcome.code == 2
    assert "`default` is a baseline, which keeps no runs" in outcome.err


def test_a_case_of_one_evaluation_alone_has_its_verdicts(baton: Run, tmp_path: Path) -> None:
    few = evaluate(baton, tmp_path, "few", wrong=[], count=2)
    more = evaluate(baton, tmp_path, "more", wrong=[], count=3)
    outcome = baton("compare", few, more, "--case", "c002")
    assert "before the evaluation does not have this case" in outcome.out
    assert "agent_chain: not asked → passed 1.00" in outcome.out
    assert "the steps cannot be compared: this needs two recorded runs" in outcome.out


def test_a_run_that_is_gone_is_no_difference(baton: Run, tmp_path: Path) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=2)
    two = evaluate(baton, tmp_path, "two", wrong=[], count=2)
    (tmp_path / "two.jsonl").unlink()
    outcome = baton("compare", one, two, "--case", "c001")
    assert "no run after: " in outcome.out
    assert "the steps cannot be compared" in outcome.out
    assert "first difference" not in outcome.out
    assert json.loads(baton("compare", one, two, "--case", "c001", "--json").out)["steps"] is None


def test_hostile_texts_are_inert(baton: Run, tmp_path: Path) -> None:
    hostile = "\x1b[31mred\u202e[bold]"
    one = evaluate(baton, tmp_path, "one", wrong=[], count=2)
    file = tmp_path / "hostile.jsonl"
    record = trace(turn(hostile, run("desk", said(hostile))), id="c000", case="c000")
    file.write_bytes(msgspec.json.encode(record) + b"\n")
    baton("score", file, "-d", tmp_path / "cases.yaml", "-e", "agent_chain", "--name", "hostile")
    outcome = baton("compare", one, "--case", "c000")
    assert outcome.code == 0
    assert "[bold]" in outcome.out
    assert not {"\x1b", "\u202e"} & set(outcome.out)


def _pairs(before: Trace, after: Trace) -> list[tuple[str, str]]:
    def name(step: CaseStep | None) -> str:
        return "" if step is None else f"{step.agent} {step.kind} {step.name}".strip()

    aligned = align(steps_of(before), steps_of(after))
    return [(name(step.before), name(step.after)) for step in aligned]


def test_a_step_that_was_added_shifts_no_other() -> None:
    ask = delegate("search", prompt="find it", result="found")
    before = trace(run("lead", ask, said("done")), run("search", call("look", {}, "x")))
    ask = delegate("search", prompt="find it", result="found")
    looks = call("plan", {}, "p"), call("look", {}, "x")
    after = trace(run("lead", ask, said("all done")), run("search", *looks))
    pairs = _pairs(before, after)
    assert ("", "search call plan") in pairs
    assert [one for one, other in pairs if one != other] == [""]
    assert ("search call look", "search call look") in pairs


def test_thousands_of_different_steps_take_no_time() -> None:
    def many(name: str) -> list[CaseStep]:
        return [
            CaseStep(id=f"{n}", agent="a", kind="call", name=name, text="") for n in range(5000)
        ]

    aligned = align(many("x"), many("y"))
    assert [step.change for step in aligned] == ["gone"] * 5000 + ["new"] * 5000


def test_the_answer_of_a_function_is_compared_and_shown_once() -> None:
    def answered(answer: str, *steps: Step) -> Trace:
        return trace(turn("How big is Bern?", run("geo", *steps), output=answer))

    before = answered("134,000 people")
    assert _changes(before, answered("134,000 people")) == ["same", "same"]
    assert _changes(before, answered("no idea")) == ["same", "other"]
    said_too = answered("134,000 people", said("134,000 people"))
    assert [step.kind for step in steps_of(said_too)] == ["user", "said"]


def test_each_turn_ends_with_its_answer() -> None:
    made = trace(
        turn("Bern?", run("geo", id="r1"), output="134,000", id="t1"),
        turn("And Kyiv?", run("geo", id="r2"), output="3 million", id="t2"),
    )
    texts = [step.text for step in steps_of(made)]
    assert texts == ["Bern?", "answered: 134,000", "And Kyiv?", "answered: 3 million"]


def _changes(before: Trace, after: Trace) -> list[str]:
    return [step.change for step in align(steps_of(before), steps_of(after))]
