"""`baton baseline`, `baton compare`, `baton trend`: red, green and grey, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from .desks import evaluate, passed_on

Run = Callable[..., Any]
GATE = "evaluators: [agent_chain]\ngate:\n  regression: {baseline: default, min_effect: 0.05, allow_failures: true}\n"


def test_a_true_drop_is_red_and_names_axis_agent_case_and_dispatch(
    baton: Run, tmp_path: Path
) -> None:
    good = evaluate(baton, tmp_path, "good", wrong=[])
    bad = evaluate(baton, tmp_path, "bad", wrong=range(0, 60, 4))
    outcome = baton("compare", good, bad, "--fail-on-regression")
    assert outcome.code == 1
    assert outcome.out.splitlines()[-1] == "worse"
    assert "c004 agent_chain 1.00 → 0.50" in outcome.out
    assert "turn 1: was transfer desk → billing, is transfer desk → weather (d1)" in outcome.out
    assert baton("compare", good, bad).code == 0


def test_the_same_again_is_green(baton: Run, tmp_path: Path) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[3])
    two = evaluate(baton, tmp_path, "two", wrong=[3])
    outcome = baton("compare", one, two, "--fail-on-regression")
    assert (outcome.code, outcome.out.splitlines()[-1], outcome.err) == (0, "no worse", "")


def test_a_drop_that_may_be_chance_is_grey_and_says_how_much_would_tell(
    baton: Run, tmp_path: Path
) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[1, 2], count=20)
    two = evaluate(baton, tmp_path, "two", wrong=[1, 4, 5, 6], count=20)
    outcome = baton("compare", one, two, "--fail-on-regression")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1] == "can't tell"
    assert "cases passed: can't tell: 0.90 → 0.80" in outcome.out
    assert "more cases would decide it" in outcome.out
    assert "no regression is proven, and none is ruled out" in outcome.err


def test_a_single_case_that_fails_now_needs_more_cases_or_repeats(
    baton: Run, tmp_path: Path
) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=1)
    two = evaluate(baton, tmp_path, "two", wrong=[0], count=1)
    out = baton("compare", one, two).out
    assert "cases passed: can't tell: 1.00 → 0.00 (-1.00) over 1 case; add cases or repeats" in out
    alone = baton("compare", two, two).out
    assert "add cases" not in alone
    assert alone.splitlines()[-1] == "nothing compared"


def test_shares_that_differ_are_written_so_that_they_do(baton: Run, tmp_path: Path) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=250)
    two = evaluate(baton, tmp_path, "two", wrong=[7], count=250)
    outcome = baton("compare", one, two, "--markdown", tmp_path / "comment.md")
    (row,) = [line for line in outcome.out.splitlines() if line.startswith("cases passed  ")]
    assert row.split()[2:5] == ["1.000", "0.996", "-0.004"]
    assert "| 1.000 | 0.996 | -0.004" in (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert "pass rate 0.996 [0.97" in baton("report", two).out
    assert " 0.996  0.97" in baton("trend", one, two).out


def test_axes_that_say_the_same_share_a_line(baton: Run, tmp_path: Path) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=1)
    two = evaluate(baton, tmp_path, "two", wrong=[], count=1)
    bad = evaluate(baton, tmp_path, "bad", wrong=[0], count=1)
    lines = [line for line in baton("compare", one, two).out.splitlines() if "can't tell:" in line]
    assert len(lines) == 1
    assert lines[0].startswith("cases passed, agent_chain")
    said = baton("compare", one, bad).out
    assert "1 case that always passed before and always fails now: c000" in said


def test_the_gate_is_red_green_or_grey_by_the_baseline(baton: Run, tmp_path: Path) -> None:
    first = evaluate(baton, tmp_path, "first", wrong=[1, 2], config="evaluators: [agent_chain]")
    assert baton("baseline", "set", first, "--allow-failing").code == 0
    codes = {}
    for name, wrong in {"green": [1, 2], "grey": [1, 2, 3], "red": list(range(20))}.items():
        folder = evaluate(baton, tmp_path, name, wrong=wrong, config=GATE)
        report = json.loads(baton("report", folder, "--json").out)
        codes[name] = (report["exit_code"], {one["status"] for one in report["gate"]})
    assert codes == {"green": (0, {"passed"}), "grey": (0, {"unclear"}), "red": (1, {"failed"})}
    outcome = baton("report", folder)
    assert "✗ gate: no regression from default: cases passed: 0.97 → 0.67" in outcome.out
    assert "c000 0.50 at dispatch d1 (desk → weather)" in outcome.out


STRICT = "evaluators: [agent_chain]\ngate:\n  regression: {baseline: default}\n"


def test_a_suite_of_seven_that_breaks_is_red(baton: Run, tmp_path: Path) -> None:
    good = evaluate(baton, tmp_path, "good", wrong=[], count=7, config="evaluators: [agent_chain]")
    assert baton("baseline", "set", good).code == 0
    for name, config in {"allowed": GATE, "strict": STRICT}.items():
        bad = evaluate(baton, tmp_path, name, wrong=range(7), count=7, config=config)
        report = baton("report", bad)
        assert report.code == 1
        assert "✗ gate: no regression from default: cases passed: 1.00 → 0.00" in report.out
    bad = evaluate(baton, tmp_path, "bad", range(7), 7, config="evaluators: [agent_chain]")
    outcome = baton("compare", good, bad, "--fail-on-regression")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (1, "worse")
    assert "7 cases that always passed before and always fail now: c000" in outcome.out


def test_a_single_failure_fails_the_evaluation_unless_failures_are_allowed(
    baton: Run, tmp_path: Path
) -> None:
    good = evaluate(baton, tmp_path, "good", wrong=[], config="evaluators: [agent_chain]")
    assert baton("baseline", "set", good).code == 0
    codes = {}
    for name, config in {"strict": STRICT, "allowed": GATE}.items():
        folder = evaluate(baton, tmp_path, name, wrong=[7], config=config)
        codes[name] = baton("report", folder).code
    assert codes == {"strict": 1, "allowed": 0}


def test_the_first_use_of_a_gate_runs_and_tells_how_to_keep_a_baseline(
    baton: Run, tmp_path: Path
) -> None:
    (tmp_path / "gate.yaml").write_text(GATE, encoding="utf-8")
    evaluate(baton, tmp_path, "first", wrong=[])
    score = ("score", "first.jsonl", "-d", "cases.yaml", "-c", "gate.yaml")
    outcome = baton(*score)
    assert outcome.code == 0
    assert "? gate: no regression from default: there is no baseline `default` yet" in outcome.out
    assert "`baton baseline set` saves this evaluation as one" in outcome.out
    evaluate(baton, tmp_path, "broken", wrong=[3])
    assert baton("score", "broken.jsonl", *score[2:]).code == 1


def test_a_baseline_that_is_damaged_is_no_first_use(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text(GATE, encoding="utf-8")
    evaluate(baton, tmp_path, "first", wrong=[])
    (tmp_path / ".baton" / "baselines").mkdir()
    (tmp_path / ".baton" / "baselines" / "default.json").write_text("{")
    outcome = baton("score", "first.jsonl", "-d", "cases.yaml", "-c", "gate.yaml")
    assert outcome.code == 2
    assert "no baseline: " in outcome.err


def test_what_failed_becomes_a_baseline_only_when_that_is_reported(
    baton: Run, tmp_path: Path
) -> None:
    folder = evaluate(baton, tmp_path, "one", wrong=[1, 2], count=7)
    refused = baton("baseline", "set", folder)
    assert refused.code == 2
    assert "it failed: 2 of 7 cases did not always pass" in refused.err
    assert not (tmp_path / ".baton" / "baselines").exists()
    kept = baton("baseline", "set", folder, "--allow-failing")
    assert kept.code == 0
    assert "the baseline failed: 2 of 7 cases did not always pass" in kept.err


def test_an_evaluation_compared_with_itself_is_said_to_be(baton: Run, tmp_path: Path) -> None:
    folder = evaluate(baton, tmp_path, "one", wrong=[])
    baton("baseline", "set", folder)
    outcome = baton("compare", "--fail-on-regression")
    assert outcome.code == 3, "a build that wrote no new evaluation must not pass"
    assert "both are the same evaluation, so nothing is compared" in outcome.out
    assert outcome.out.rstrip().endswith("nothing compared")
    assert "no worse" not in outcome.out
    again = baton("compare", "--json", "--markdown", tmp_path / "comment.md")
    assert again.code == 0
    plain = json.loads(again.out)
    assert (plain["itself"], plain["outcome"], plain["axes"]) == (True, "error", [])
    assert "no worse" not in (tmp_path / "comment.md").read_text(encoding="utf-8")


def test_one_case_compared_with_itself_needs_no_more_cases(baton: Run, tmp_path: Path) -> None:
    folder = evaluate(baton, tmp_path, "one", wrong=[], count=1)
    outcome = baton("compare", folder, folder)
    assert "nothing is compared" in outcome.out
    assert "can't tell" not in outcome.out
    assert "more cases" not in outcome.out


def test_another_dataset_is_refused_by_name_unless_forced(baton: Run, tmp_path: Path) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=20)
    two = evaluate(baton, tmp_path, "two", wrong=[], count=21)
    outcome = baton("compare", one, two)
    assert outcome.code == 2
    assert "they cannot be compared: dataset: " in outcome.err
    assert "(20 cases) → " in outcome.err
    forced = baton("compare", one, two, "--force")
    assert forced.code == 0
    assert "1 case only after: c020" in forced.out


def test_other_evaluators_are_refused(baton: Run, tmp_path: Path) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=4)
    two = evaluate(baton, tmp_path, "two", wrong=[], count=4, config="evaluators: [agent_chain]")
    outcome = baton("compare", one, two)
    assert outcome.code == 2
    assert "evaluator dispatch_target_known: 1 → not recorded" in outcome.err


def test_a_case_that_is_missing_now_is_no_pass(baton: Run, tmp_path: Path) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=20)
    two = evaluate(baton, tmp_path, "two", wrong=[], count=20)
    lines = (tmp_path / "two.jsonl").read_text().splitlines()
    (tmp_path / "fewer.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    baton("score", "fewer.jsonl", "-d", "cases.yaml", "-c", "two.yaml", "--name", "fewer")
    fewer = next((tmp_path / ".baton" / "evaluations").glob("*-fewer"))
    outcome = baton("compare", one, fewer, "--fail-on-regression", "--json")
    told = json.loads(outcome.out)
    assert (outcome.code, told["outcome"], told["missing"]) == (3, "error", ["c019"])
    assert baton("compare", one, two, "--fail-on-regression").code == 0


def test_what_changed_is_reported_prompt_by_prompt(baton: Run, tmp_path: Path) -> None:
    one = evaluate(baton, tmp_path, "one", wrong=[], count=4)
    two = evaluate(baton, tmp_path, "two", wrong=[], count=4, prompt="Be brief.", model="m-2")
    told = json.loads(baton("compare", one, two, "--json").out)
    assert {each["what"] for each in told["changed"]} == {
        "agent desk", "agent billing", "agent weather",
        "prompt desk", "prompt billing", "prompt weather", "models",
    }  # fmt: skip
    assert told["after"]["provenance"]["models"] == ["m-2"]


def test_a_baseline_is_small_has_no_texts_and_reads_as_the_evaluation(
    baton: Run, tmp_path: Path
) -> None:
    folder = evaluate(baton, tmp_path, "one", wrong=[5])
    assert baton("baseline", "set", folder, "--name", "main", "--allow-failing").code == 0
    file = tmp_path / ".baton" / "baselines" / "main.json"
    assert file.stat().st_size < 60 * 300 + 4000
    assert "Be kind" not in file.read_text()
    assert baton("compare", "main", folder).code == 0
    shown = baton("baseline", "show", "--name", "main").out
    assert "60, each played once" in shown
    assert "models      m-1" in shown
    prompts = json.loads(file.read_text())["provenance"]["prompts"]
    assert f"desk {prompts['desk']}" in shown, "a gate may be for the prompt of one agent"


def test_a_baseline_that_is_missing_names_the_nearest(baton: Run, tmp_path: Path) -> None:
    folder = evaluate(baton, tmp_path, "one", wrong=[], count=3)
    baton("baseline", "set", folder, "--name", "main")
    outcome = baton("compare", "mian", folder)
    assert outcome.code == 2
    assert "did you mean `main`" in outcome.err


def test_what_was_not_evaluated_whole_becomes_no_baseline(baton: Run, tmp_path: Path) -> None:
    folder = evaluate(baton, tmp_path, "one", wrong=[], count=3)
    header = json.loads((folder / "evaluation.json").read_text())
    (folder / "evaluation.json").write_text(json.dumps({**header, "status": "interrupted"}))
    outcome = baton("baseline", "set", folder)
    assert outcome.code == 2
    assert "it is `interrupted`, so it is incomplete" in outcome.err


def test_a_comparison_is_a_comment_for_a_pull_request(baton: Run, tmp_path: Path) -> None:
    good = evaluate(baton, tmp_path, "good", wrong=[])
    bad = evaluate(baton, tmp_path, "bad", wrong=range(0, 60, 4))
    baton("compare", good, bad, "--markdown", "comment.md")
    text = (tmp_path / "comment.md").read_text()
    assert text.startswith("## ❌ ")
    assert "| `agent_chain` | 1.00 | " in text
    assert "### Cases that got worse" in text


def test_a_trend_has_a_line_a_model_and_marks_what_does_not_compare(
    baton: Run, tmp_path: Path
) -> None:
    evaluate(baton, tmp_path, "one", wrong=[], count=10, model="m-1")
    evaluate(baton, tmp_path, "two", wrong=[1, 2, 3, 4, 5], count=10, model="m-2")
    evaluate(baton, tmp_path, "three", wrong=[1], count=9, model="m-2")
    outcome = baton("trend")
    lines = [line for line in outcome.out.splitlines() if line.startswith("pass_rate")]
    assert [line.split("  ")[1] for line in lines] == ["m-1", "m-2"]
    assert lines[1].split("  ")[2] == "▅▇"
    assert outcome.out.count("≠ dataset") == 2
    assert "≠ cannot be compared with the newest" in outcome.err
    rows = list(csv.DictReader(io.StringIO(baton("trend", "--csv", "--axis", "agent_chain").out)))
    assert [row["value"] for row in rows] == ["1.0", "0.75", rows[2]["value"]]
    points = json.loads(baton("trend", "--json", "--last", "1").out)["points"]
    assert [point["name"] for point in points] == ["three"]


def test_a_trend_marks_evaluations_of_other_recordings(baton: Run, tmp_path: Path) -> None:
    for number, names in enumerate((["a", "b"], ["a", "c"], ["a", "c"])):
        lines = [msgspec.json.encode(passed_on(name, "billing")) for name in names]
        (tmp_path / f"{number}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        evaluators = ("-e", "dispatch_completed", "--name", f"n{number}")
        assert baton("score", f"{number}.jsonl", *evaluators).code == 0
    outcome = baton("trend")
    marked = [line for line in outcome.out.splitlines() if "≠ recordings" in line]
    assert len(marked) == 1
    assert "-n0" in marked[0]
    assert "≠ cannot be compared with the newest: they differ in recordings" in outcome.err


def test_a_trend_marks_traces_that_were_recorded_anew(baton: Run, tmp_path: Path) -> None:
    for number, asked in enumerate(("cook", "billing", "billing")):
        lines = [msgspec.json.encode(passed_on(name, asked)) for name in ("a", "b")]
        (tmp_path / "runs.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        evaluators = ("-e", "dispatch_completed", "--name", f"n{number}")
        assert baton("score", "runs.jsonl", *evaluators).code == 0
    outcome = baton("trend")
    marked = [line for line in outcome.out.splitlines() if "≈ recordings" in line]
    assert len(marked) == 1
    assert "-n0" in marked[0]
    assert "≠" not in outcome.out
    assert "≈ was made from recordings with the same names" in outcome.err
    points = json.loads(baton("trend", "--json").out)["points"]
    assert [point["recorded_anew"] for point in points] == [True, False, False]
    assert points[1]["recordings"] == points[2]["recordings"] != points[0]["recordings"]


def test_a_misspelt_axis_names_the_nearest(baton: Run, tmp_path: Path) -> None:
    evaluate(baton, tmp_path, "one", wrong=[], count=3)
    outcome = baton("trend", "--axis", "agent_chian")
    assert outcome.code == 2
    assert "did you mean `agent_chain`" in outcome.err
