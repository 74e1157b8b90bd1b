"""How gates are written: rules in words, rules written out, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from baton.gate.read_thresholds import GateRule, Regression, named, read_condition, read_gate
from baton.model import InputError


def rule(text: str) -> GateRule:
    return read_gate(text).rules[0]


def test_a_rule_says_axis_agent_tag_limit_and_how_many_verdicts_it_takes() -> None:
    read = rule("scope_fidelity by agent by tag:checkout >= 0.90 (min 20)")
    assert (read.evaluator, read.by_agent, read.tag) == ("scope_fidelity", True, "checkout")
    assert (read.sign, read.limit, read.least) == (">=", 0.9, 20)


@pytest.mark.parametrize(
    ("text", "measure", "statistic"),
    [
        ("pass_rate >= 0.95", "pass_rate", None),
        ("error_rate == 0", "error_rate", None),
        ("cost_usd.p95 <= 0.10", "cost_usd", "p95"),
        ("seconds.p99.9 <= 30", "seconds", "p99.9"),
        ("tokens.mean <= 5000", "tokens", "mean"),
    ],
)
def test_cases_and_what_they_took_have_measures(
    text: str, measure: str, statistic: str | None
) -> None:
    read = rule(text)
    assert (read.evaluator, read.statistic, read.of_evaluator) == (measure, statistic, False)


def test_written_out_a_rule_is_the_same() -> None:
    told = {"measure": "scope_fidelity", "by": "agent", "at_least": 0.9, "min": 20}
    assert read_gate([told]).rules[0] == rule("scope_fidelity by agent >= 0.9 (min 20)")


def test_a_mapping_has_all_parts() -> None:
    gate = read_gate(
        {
            "thresholds": ["pass_rate >= 0.9"],
            "must_pass": ["refund"],
            "regression": {"baseline": "main", "min_effect": 0.1},
            "for": {"dataset": "abc", "prompts": {"desk": "123"}},
        }
    )
    assert gate.regression == Regression(baseline="main", min_effect=0.1)
    assert (gate.must_pass, gate.on_cases, gate.on_errors) == (("refund",), True, False)
    assert gate.bound is not None
    assert gate.bound.prompts == {"desk": "123"}


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("pass_rate by agent >= 1", "`pass_rate` is measured for cases, not for agents"),
        ("cost_usd <= 1", "name the figure, such as `cost_usd.mean`"),
        ("tool_calls >= 0.9", "an evaluator `tool_calls`, give it a `name` in the config"),
        ("cost_usd.p5x <= 1", "no statistic `p5x`; did you mean"),
        ("values >= 1 (min few)", "is not a rule"),
        ("pass_rate >= 95", "a share from 0 to 1, such as 0.95"),
        ({"measure": "values"}, "give one of `at_least`, `at_most` and `equals`"),
        ({"measure": "values", "at_least": 1, "at_most": 2}, "give one of"),
    ],
)
def test_what_is_not_a_rule_says_what_is(told: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_gate([told])


def test_a_misspelt_part_names_the_nearest() -> None:
    with pytest.raises(InputError, match="must_pass"):
        read_gate({"must_pas": ["refund"]})


def test_a_misspelt_measure_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean `pass_rate`"):
        named(read_gate("pas_rate >= 0.9"), {"values": "values"})


def test_the_condition_of_an_alert_is_a_rule_that_says_what_is_wrong() -> None:
    rule = read_condition("scope_fidelity by agent  < 0.9 over 50")
    assert rule.text == "scope_fidelity by agent < 0.9 over 50"
    assert (rule.evaluator, rule.by_agent, rule.sign) == ("scope_fidelity", True, "<")
    assert (rule.limit, rule.over) == (0.9, 50)
    assert read_condition("toxicity > 0.2").over is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x >= 0.9 over 50", "an alert says what is wrong, with `<` or `>`"),
        ("pass_rate < 0.9", "`pass_rate` is not an evaluator"),
        ("x < 0.9 (min 20)", "`(min 20)` is for gates"),
        ("x by tag:slow < 0.9", "`by tag:slow` is for gates"),
        ("x < 0.9 over 1", "a mean is over at least 2 scores, not 1"),
        ("x < 1 over 50", "has to be between 0 and 1"),
        ("x below 0.9", "is not a rule: write `EVALUATOR < 0.9 over 50`"),
    ],
)
def test_what_is_not_a_condition_is_refused_with_an_example(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_condition(text)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x < 0.9", "`<` is for alerts"),
        (
            "x >= 0.9 over 50",
            "`over` is for alerts; write `(min 50)` for the number of verdicts needed",
        ),
    ],
)
def test_a_gate_refuses_what_only_an_alert_may_say(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_gate(text)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "bounds", "says"),
    [
        ("values >= -0.5", (0, 1), "always passes: values of `own` are from 0 to 1"),
        ("values by agent >= -0.5 (min 3)", (0, 1), "write a limit between these, or remove"),
        ("values <= 1.5", (0, 1), "write a limit between these"),
        ("values <= 20", (0, 1), "write 0.2 for 20 %"),
        ("values <= 6", (1, 5), "are from 1 to 5; write a limit between these"),
        ("values >= 0", (0, 1), None),
        ("values <= 1", (0, 1), None),
        ("values == -1", (0, 1), None),
        ("values >= 2", (0, 1), None),
        ("values >= -5", None, None),
        ("values <= 5", None, None),
        ("values <= 5", (1, 5), None),
    ],
)
def test_a_rule_that_always_passes_is_refused_and_one_that_may_fail_is_not(
    text: str, bounds: tuple[float, float] | None, says: str | None
) -> None:
    known = {} if bounds is None else {"own": bounds}
    if says is None:
        assert named(read_gate(text), {"values": "own"}, known).rules[0].evaluator == "own"
        return
    with pytest.raises(InputError, match=says):
        named(read_gate(text), {"values": "own"}, known)
