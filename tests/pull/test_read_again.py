"""A run is the same run by whichever way it came: its file, or a store and `baton pull`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.pull.conftest import DATA, FakeStore

from baton import load_traces
from baton.model import ToolCall, Trace, Usage

OTEL = DATA / "otel"


def told(trace: Trace) -> Any:
    """What evaluators ask of a trace."""
    usage = trace.usage or Usage()
    spent = (usage.input_tokens, usage.output_tokens, usage.requests)
    return [
        (
            turn.status,
            [(run.agent, run.status, run.output and run.output.text) for run in turn.runs],
            [
                (d.kind, d.from_agent, d.to_agent, d.prompt and d.prompt.text, d.status)
                for d in turn.dispatches
            ],
            [
                (step.name, step.arguments, step.status)
                for run in turn.runs
                for step in run.steps
                if isinstance(step, ToolCall)
            ],
        )
        for turn in trace.turns
    ], spent


def read(*paths: Path) -> dict[str, Any]:
    return {trace.id: told(trace) for path in paths for trace in load_traces(path)}


def test_phoenix_gives_the_run_that_was_sent(
    phoenix: FakeStore, baton: Baton, tmp_path: Path
) -> None:
    trace = "c6e635b5fbc4ff3a4391052234a906e9"
    baton("pull", "phoenix", "--url", phoenix.url, "--project", "desk", "--trace", trace)
    assert read(tmp_path / "traces.jsonl") == read(OTEL / "a2a" / "unreachable.json")


@pytest.mark.parametrize("version", ["langfuse", "old_langfuse"])
def test_langfuse_gives_the_runs_that_were_sent(
    version: str, request: pytest.FixtureRequest, baton: Baton, tmp_path: Path
) -> None:
    server: FakeStore = request.getfixturevalue(version)
    baton("pull", "langfuse", "--url", server.url)
    found = read(tmp_path / "traces.jsonl")
    sent = [OTEL / "langfuse" / name for name in ("routed.json", "wrapped.json")]
    assert found == read(*sent)
