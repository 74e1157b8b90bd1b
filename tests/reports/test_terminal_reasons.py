"""Reasons in the terminal and in JUnit: each once, in one line, with the dispatch it is about."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
from tests.conftest import Baton

from baton.testing import build

DATA = Path(__file__).parents[1] / "data"


def printed(baton: Baton, *arguments: str | Path) -> list[str]:
    return [line.strip() for line in baton("score", *arguments).out.splitlines()]


def test_a_reason_names_the_dispatch_that_a_drawing_of_the_trace_shows(baton: Baton) -> None:
    path = DATA / "otel/langgraph/supervisor_two_transfers.json"
    assert "dispatch2: `math_expert` never took over" in printed(baton, path)
    assert "dispatch2  unanswered" in baton("show", path).out


def test_junit_names_it_as_well(baton: Baton, tmp_path: Path) -> None:
    path = DATA / "otel/langgraph/supervisor_two_transfers.json"
    baton("score", path, "--junit", tmp_path / "junit.xml")
    (failure,) = ET.parse(tmp_path / "junit.xml").getroot().iter("failure")  # noqa: S314 - ours
    assert (failure.get("message") or "").endswith(
        "(lead → math_expert), step call_11 (lead): `math_expert` never took over"
    )


def test_what_broke_a_case_is_reported_once_for_all_evaluators(baton: Baton) -> None:
    lines = printed(baton, DATA / "strands/graph_nested_failed_state.json")
    assert sum("model endpoint refused the request" in line for line in lines) == 1
    (told,) = [line for line in lines if line.startswith("not scored for this reason: ")]
    assert told.endswith("dispatch_target_known, dispatch_scope, dispatch_completed, "
                         "context_carried, result_used, handoff_loops, "
                         "claims_supported, announced_dispatch")  # fmt: skip


def test_the_same_advice_is_given_once_for_a_case(baton: Baton, tmp_path: Path) -> None:
    """The chain and the dispatch of a turn fail, because work went to the wrong agent."""
    run = {
        "cases": [
            {
                "id": "leak",
                "input": "My roof leaks.",
                "agents": ["desk", "roofer"],
                "dispatches": [{"to": "roofer"}],
            }
        ]
    }
    (tmp_path / "cases.json").write_text(json.dumps(run), encoding="utf-8")
    went = build.trace("leak", build.run("desk", build.transfer("florist")), build.run("florist"),
                       id="leak", case="leak")  # fmt: skip
    (tmp_path / "run.json").write_bytes(msgspec.json.encode(went))
    comment = tmp_path / "comment.md"
    files: list[str | Path] = [tmp_path / "run.json", "-d", tmp_path / "cases.json"]
    evaluators = ["-e", "agent_chain", "-e", "dispatch_routing"]
    lines = printed(baton, *files, *evaluators, "--markdown", comment)
    assert [line for line in lines if line.startswith("to fix it: ")] == [
        "to fix it: `desk` handed to `florist`, not to `roofer`: look at its instructions and at "
        "the descriptions of both"
    ]
    assert any(line.startswith("dispatch_routing failed 0.00") for line in lines)
    advice = "`desk` handed to `florist`, not to `roofer`"
    assert comment.read_text(encoding="utf-8").count(advice) == 1


def test_what_several_could_not_tell_is_reported_once(baton: Baton) -> None:
    lines = printed(baton, DATA / "strands/graph_result.json")
    assert lines.count("no dispatch to judge") == 1
    assert (
        "dispatch_target_known, dispatch_scope, dispatch_completed, context_carried, result_used "
        "skipped"
    ) in lines


def test_a_traceback_is_left_to_the_record(baton: Baton) -> None:
    out = baton("score", DATA / "otel/langgraph/tool_raises.json").out
    assert "dispatch1: `payer` failed: RuntimeError('bank is closed')\n" in out
    assert "turn 1 failed: RuntimeError('bank is closed')\n" in out
    assert "Traceback" not in out
