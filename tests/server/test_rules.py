"""Rules of `server.yaml`: what is read, and what is refused with its place."""

from pathlib import Path

import pytest

from baton.formats.document import Document
from baton.model import InputError
from baton.server.rules import Rules, listed, read_rules

WHOLE = """\
judges:
  haiku: {model: anthropic:claude-haiku-4-5, samples: 3}
rules:
  - name: dispatches of the refund team
    on: dispatch
    where: {to: [refund-*], kind: delegate, service: support, depth: ">=2"}
    evaluators: [dispatch_scope, result_used, {type: ScopeFidelity, judge: haiku}]
    sample: 10 %
    budget: {cost_usd: 5, per: day}
    alert: {when: "ScopeFidelity by agent < 0.9 over 50", to: slack}
"""


def read(text: str, channels: tuple[str, ...] = ("slack",)) -> Rules:
    document = Document("server.yaml", text.encode(), "yaml")
    return read_rules(document, document.value(), channels=channels)


def test_a_rule_says_what_is_scored_how_often_and_for_how_much() -> None:
    (rule,) = read(WHOLE).rules
    plain, judged = rule.parts
    assert [one.evaluator.name for one in plain.plan.evaluators] == [
        "dispatch_scope",
        "result_used",
    ]
    assert [one.evaluator.type for one in judged.plan.evaluators] == ["scope_fidelity"]
    assert judged.judge is not None
    assert judged.judge.samples == 3
    assert rule.sample == 0.1
    assert rule.where.fields == {"to", "kind", "service", "depth"}
    (alert,) = rule.alerts
    assert alert.when.evaluator == "ScopeFidelity"
    assert (alert.when.sign, alert.when.limit, alert.when.over) == ("<", 0.9, 50)


def test_what_is_listed_is_what_was_written_and_no_address_of_a_judge() -> None:
    (row,) = listed(read(WHOLE.replace("samples: 3", "base_url: http://127.0.0.1:9/secret")))
    assert row["where"]["to"] == ["refund-*"]
    assert row["sample"] == 0.1
    assert row["budget"] == {"cost_usd": 5.0, "per": "day"}
    assert row["alerts"] == [{"when": "ScopeFidelity by agent < 0.9 over 50", "to": ["slack"]}]
    assert [one["judge"] for one in row["evaluators"]] == [
        None,
        None,
        "anthropic:claude-haiku-4-5",
    ]
    assert "secret" not in str(row)


def test_a_server_that_names_no_rules_scores_what_the_record_proves() -> None:
    (rule,) = read_rules().rules
    assert rule.on == "conversation"
    assert "dispatch_scope" in {one["name"] for one in listed(read_rules())[0]["evaluators"]}
    assert read("rules: []").rules == ()


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("on: dispatch", "on: dispach", "5: rules[0].on: `dispach` is not one of conversation"),
        ("sample:", "sampel:", "8: rules[0].sampel: unknown key; did you mean `sample`?"),
        ("to: [refund-*]", "too: x", "6: rules[0].where.too: unknown field; did you mean `tool` or `to`?"),
        ("kind: delegate", "kind: delegat", "6: rules[0].where.kind: no value `delegat`; did you"),
        ("result_used", "result_usd", "7: rules[0].evaluators[1]: unknown evaluator `result_usd`"),
        ("judge: haiku", "judge: hiku", "7: rules[0].evaluators[2]: `judges:` has no `hiku`; did"),
        ("result_used", "latency", "`latency` is about a trace, and the rule is on a dispatch: write `on"),
        ("10 %", "ten", "8: rules[0].sample: expected a share such as `10 %` or 0.1, got `ten`"),
        ("10 %", "10", "8: rules[0].sample: expected a share such as `10 %` or 0.1, got `10`"),
        ("per: day", "per: dya", "9: rules[0].budget.per: `dya` is not one of day, hour, month"),
        ("to: slack", "to: webhook", "10: rules[0].alert.to: `alerts:` has no `webhook`"),
        ("< 0.9", ">= 0.9", "10: rules[0].alert.when: `ScopeFidelity by agent >= 0.9 over 50`: an"),
        ("ScopeFidelity by", "ScopFidelity by", "the rule has no `ScopFidelity`; did you mean"),
        ("samples: 3", "api_key: sk-1", "2: judges.haiku.api_key: a key does not belong in a"),
        ("samples: 3", "sampels: 3", "2: judges.haiku.sampels: unknown key; did you mean"),
        ("dispatch_scope,", "dispatch_scope, dispatch_scope,", "`dispatch_scope` is a duplicate"),
        ("result_used", "{type: result_used, judge: haiku}", "`result_used` asks no judge"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_reported_with_its_line_and_the_nearest_name(
    before: str, after: str, problem: str
) -> None:
    assert before in WHOLE
    with pytest.raises(InputError) as raised:
        read(WHOLE.replace(before, after))
    assert problem in str(raised.value)


def test_all_problems_are_reported_at_once() -> None:
    text = WHOLE.replace("10 %", "ten").replace("result_used", "result_usd")
    with pytest.raises(InputError) as raised:
        read(text + text.partition("rules:\n")[2])
    lines = sorted(problem.line or 0 for problem in raised.value.problems)
    assert lines == [7, 8, 11, 14, 15]


def test_a_sample_is_the_same_for_ever_and_smaller_ones_lie_in_larger_ones() -> None:
    small, large = (read(WHOLE.replace("10 %", share)).rules[0] for share in ("10 %", "30 %"))
    ids = [f"conversation-{number}" for number in range(5000)]
    chosen = {id_ for id_ in ids if small.samples(id_)}
    assert 430 < len(chosen) < 570
    assert chosen < {id_ for id_ in ids if large.samples(id_)}


def test_rules_are_for_a_project_and_tagged_ones_for_programs_that_name_them() -> None:
    rules = read("""\
rules:
  - {name: all, evaluators: [dispatch_scope]}
  - {name: ours, project: support, evaluators: [dispatch_scope]}
  - {name: asked, tagged: true, evaluators: [dispatch_scope]}
""")
    assert [rule.name for rule in rules.for_project("support")] == ["all", "ours"]
    assert [rule.name for rule in rules.for_project("sales", {"asked"})] == ["all", "asked"]


@pytest.mark.parametrize(
    ("per", "period", "ends"),
    [("hour", "2026-12-31T23", 1798761600.0), ("day", "2026-12-31", 1798761600.0),
     ("month", "2026-12", 1798761600.0)],
)  # fmt: skip
def test_a_budget_is_of_an_hour_day_or_month_by_utc(per: str, period: str, ends: float) -> None:
    budget = read(WHOLE.replace("per: day", f"per: {per}")).rules[0].budget
    assert budget is not None
    assert budget.period(ends - 1) == period
    assert budget.next(ends - 1) == ends


def test_own_rubrics_and_evaluators_lie_beside_the_settings(tmp_path: Path) -> None:
    rubric = """\
name: polite
unit: turn
inputs: [answer]
prompt: Is it polite?
version: "1"
threshold: 1
summary: whether it is polite
answer: {choices: {"polite": {score: 1, means: it is}, "rude": {score: 0, means: it is not}}}
"""
    (tmp_path / "polite.yaml").write_text(rubric)
    text = "judges: {x: 'openai:gpt-5'}\nrules: [{name: p, on: turn, evaluators: [polite.yaml]}]"
    file = tmp_path / "server.yaml"
    file.write_text(text)
    document = Document(str(file), text.encode(), "yaml")
    (rule,) = read_rules(document, document.value()).rules
    assert rule.parts[0].plan.evaluators[0].evaluator.name == "polite"
