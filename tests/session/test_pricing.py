"""What a dispatch cost: shown, exported and in details, by the prices of a config."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from tests.conftest import Baton
from tests.reports.test_html import page_of

import baton as package
from baton.model import Trace, Usage
from baton.testing import build

PRICES = {"small": {"input": 1.0, "output": 10.0}, "large": {"input": 3.0, "output": 20.0}}
CONFIG = f"prices: {json.dumps(PRICES)}\nevaluators: [{{type: cost, config: {{max_usd: 100}}}}]\n"


def used() -> Usage:
    return Usage(input_tokens=1_000_000, output_tokens=100_000)


def two_levels() -> Trace:
    """A desk that hands work to a lab, which hands a part of it to a counter."""
    return build.trace(
        build.turn(
            "Count.",
            build.run("desk", build.delegate("lab", "Count."), model="large", usage=used()),
            build.run("lab", build.delegate("counter", "1, 2"), model="small", usage=used()),
            build.run("counter", output="2", model="small", usage=used()),
            output="2",
        )
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    (tmp_path / "baton.yaml").write_text(CONFIG)
    path = tmp_path / "trace.json"
    path.write_bytes(msgspec.json.encode(two_levels()))
    return path


def test_show_prices_each_dispatch_with_all_below_it(
    baton: Baton, recorded: Path, tmp_path: Path
) -> None:
    shown = baton("show", recorded, "-c", tmp_path / "baton.yaml").out
    assert "delegate, d1, $4.0000" in shown
    assert "delegate, d2, $2.0000" in shown
    assert "1,000,000 + 100,000 tokens, $5.0000" in shown
    assert "$" not in baton("show", recorded).out
    one = baton("show", recorded, "-c", tmp_path / "baton.yaml", "--dispatch", "d2").out
    assert "d2, $2.0000" in one


def test_export_prices_by_the_list_where_no_config_says_otherwise(
    baton: Baton, tmp_path: Path
) -> None:
    trace = two_levels()
    for run in trace.turns[0].runs:
        run.model = "gpt-4o"
    (tmp_path / "t.json").write_bytes(msgspec.json.encode(trace))
    # Loading the list takes longer than all else that `show` does.
    assert "$" not in baton("show", tmp_path / "t.json").out
    baton("export", tmp_path / "t.json", "--otlp", tmp_path / "spans.jsonl")
    (priced,) = package.load_traces(tmp_path / "spans.jsonl")
    usages = [run.usage for run in priced.turns[0].runs if run.usage]
    assert [(usage.cost_usd, usage.cost_from) for usage in usages] == [(3.5, "prices")] * 3


def test_show_without_a_config_keeps_what_a_recording_was_priced_with(
    baton: Baton, tmp_path: Path
) -> None:
    trace = two_levels()
    for run in trace.turns[0].runs:
        run.model = "gpt-4o"
        assert run.usage is not None
        run.usage.cost_usd, run.usage.cost_from = 0.5, "prices"
    (tmp_path / "t.json").write_bytes(msgspec.json.encode(trace))
    assert baton("show", tmp_path / "t.json").out.count("tokens, $0.5000") == 3


def test_export_keeps_the_prices_that_recordings_were_scored_with(
    baton: Baton, recorded: Path, tmp_path: Path
) -> None:
    def cost(*options: object) -> list[float | None]:
        out = tmp_path / "spans.jsonl"
        assert baton("export", folder, "--only", "spans", "--otlp", out, *options).code == 0
        (trace,) = package.load_traces(out)
        return [run.usage.cost_usd for run in trace.turns[0].runs if run.usage]

    baton("score", recorded, "-c", tmp_path / "baton.yaml")
    (folder,) = (tmp_path / ".baton" / "evaluations").iterdir()
    assert cost() == [5.0, 2.0, 2.0]
    other = tmp_path / "other.yaml"
    other.write_text("prices: {small: {input: 7.0, output: 0.0}}\n")
    assert cost("-c", other) == [5.0, 7.0, 7.0]


def test_export_prices_spans_and_keeps_their_ids(
    baton: Baton, recorded: Path, tmp_path: Path
) -> None:
    plain, priced, given = (tmp_path / f"{name}.jsonl" for name in ("plain", "priced", "given"))
    assert baton("export", recorded, "--otlp", plain).code == 0
    config = tmp_path / "baton.yaml"
    assert baton("export", recorded, "--otlp", priced, "-c", config).code == 0
    package.export_recordings(recorded, str(given), prices=PRICES)
    assert priced.read_bytes() == given.read_bytes()
    key = "claude_agent.subagent.aggregated_cost_usd"
    assert (key in plain.read_text(), priced.read_text().count(key)) == (False, 2)
    assert span_ids(plain) == span_ids(priced)
    (back,) = package.load_traces(priced)
    assert [run.usage.cost_usd for run in back.turns[0].runs if run.usage] == [5.0, 2.0, 2.0]


def span_ids(path: Path) -> list[str]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        span["spanId"]
        for line in lines
        for resource in line["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def test_details_and_the_page_tell_the_cost_of_a_dispatch(
    baton: Baton, recorded: Path, tmp_path: Path
) -> None:
    outcome = baton("score", recorded, "-c", tmp_path / "baton.yaml", "--json")
    ((score,),) = [result["scores"] for result in json.loads(outcome.out)["results"]]
    assert score["details"]["dispatches"] == {"d1": 4.0, "d2": 2.0}
    (folder,) = (Path(".baton") / "evaluations").iterdir()
    assert json.loads((folder / "evaluation.json").read_text())["prices"]["small"]["input"] == 1
    assert "$4.0000" in json.dumps(page_of(baton, folder).cases)


def test_a_cost_that_is_known_in_part_is_not_one(recorded: Path) -> None:
    trace = two_levels()
    trace.turns[0].runs[2].usage = None
    recorded.write_bytes(msgspec.json.encode(trace))
    evaluation = package.score(recorded, evaluators=["cost"], prices=PRICES)
    ((_, score),) = evaluation.scores("cost")
    assert score.details.get("dispatches", {}) == {}
