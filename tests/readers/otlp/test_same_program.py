"""The same program, whoever recorded it and however, has the same chain and gets the same verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.model import Case, ExpectedToolCall, ToolCall, Trace
from baton.testing.build import case, expect

from .truth import CAPTURES

FAMILIES = (
    ("openai-agents", "openai-agents-otel", "openai-agents-otel-genai", "openai-agents-traceloop"),
    ("langgraph", "langgraph-traceloop", "langsmith"),
    ("vercel-ai",),
    ("google-adk",),
    ("strands",),
    ("pydantic-ai",),
    ("microsoft-agent-framework",),
    ("autogen",),
)


def _recorded_twice() -> Iterator[tuple[str, dict[str, Any], list[Path]]]:
    """Yield each program that several recordings are of, with what happened."""
    for family in FAMILIES:
        found: dict[str, tuple[dict[str, Any], list[Path]]] = {}
        for folder in family:
            scenarios = json.loads((CAPTURES / folder / "truth.json").read_text())["scenarios"]
            for name, scenario in scenarios.items():
                turns = scenario.get("turns", [scenario])
                did = [(t["agent_run_chain"], t["domain_tools_called"]) for t in turns]
                same = found.setdefault(f"{name} {did}", (scenario, []))
                untold = scenario.get("untold", {})
                same[1].extend(
                    CAPTURES / folder / file for file in scenario["files"] if not untold.get(file)
                )
        for scenario, files in found.values():
            if len(files) > 1:
                yield f"{family[0]}/{files[0].stem}", scenario, files


PROGRAMS = list(_recorded_twice())


def _parallel(turn: dict[str, Any]) -> bool:
    return bool(turn.get("parallel_runs")) or any(h.get("parallel") for h in turn["handoffs"])


def wants(scenario: dict[str, Any], *, wrong: bool) -> Case:
    """Return what is expected: what happened, or one agent and one call more."""
    turns = []
    for stated in scenario.get("turns", [scenario]):
        calls = [
            ExpectedToolCall(name=one["name"], agent=one["agent"])
            for one in stated["domain_tools_called"]
        ]
        agents = list(stated["agent_run_chain"])
        if wrong:
            agents, calls = [*agents, "nobody"], [*calls, ExpectedToolCall(name="nothing")]
        turns.append(expect("x", agents=agents, tool_calls=calls))
    return case(*turns, id="case")


def recorded(file: Path) -> Trace:
    [trace] = baton.load_traces(file)
    trace.case = "case"
    return trace


def _seen(trace: Trace, *, sort: bool) -> list[tuple[list[str], list[str]]]:
    """Return by turn the agents that ran and the tools called, in order unless some were parallel."""
    seen = []
    for turn in trace.turns:
        chain = [run.agent for run in turn.runs]
        edges = [f"{d.from_agent} {d.kind} {d.to_agent}" for d in turn.dispatches if d.runs]
        steps = [
            f"{run.agent} {step.name} {step.status == 'ok'}"
            for run in turn.runs
            for step in run.steps
            if isinstance(step, ToolCall) and step.dispatch is None
        ]
        seen.append((sorted(chain) if sort else chain, sorted(edges) + sorted(steps)))
    return seen


def _verdicts(trace: Trace, case: Case, *, sort: bool) -> list[tuple[str, str, float | None]]:
    chain = {"sequence_match_type": "contains" if sort else "exact", "min_match_ratio": 1.0}
    calls = {"mode": "any_order" if sort else "exact", "arguments": "ignore", "agents": "all"}
    evaluators = [
        {"type": "agent_chain", "config": chain},
        {"type": "tool_calls", "config": calls | {"dispatch_calls": "exclude"}},
    ]
    [result] = baton.score([trace], [case], evaluators).results
    return [(score.evaluator, score.status, score.value) for score in result.scores]


@pytest.mark.parametrize(
    ("scenario", "files"),
    [(scenario, files) for _, scenario, files in PROGRAMS],
    ids=[name for name, _, _ in PROGRAMS],
)
def test_every_recording_of_a_program_gives_the_same_chain_and_verdicts(
    scenario: dict[str, Any], files: list[Path]
) -> None:
    together = any(_parallel(turn) for turn in scenario.get("turns", [scenario]))
    traces = {str(file.relative_to(CAPTURES)): recorded(file) for file in files}
    seen = {name: _seen(trace, sort=together) for name, trace in traces.items()}
    assert seen == dict.fromkeys(traces, next(iter(seen.values())))
    for wrong in (False, True):
        case = wants(scenario, wrong=wrong)
        verdicts = {name: _verdicts(trace, case, sort=together) for name, trace in traces.items()}
        given = next(iter(verdicts.values()))
        assert verdicts == dict.fromkeys(traces, given)
        passed = [status == "passed" for _, status, _ in given]
        assert not any(passed) if wrong else passed[0], given


def test_programs_of_several_instrumentations_are_among_them() -> None:
    several = [name for name, _, files in PROGRAMS if len({file.parent for file in files}) > 1]
    assert len(several) >= 30
