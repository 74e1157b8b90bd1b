"""The same run gives the same record and verdict, by whichever source it is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import baton
from baton.model import Case, Content, Dispatch, Evaluation, ExpectedTurn, ToolCall, Trace
from baton.model.views import agent_chain
from baton.testing.build import case

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "adk"
EVALUATORS: list[dict[str, Any] | str] = [
    {"type": "agent_chain", "config": {"sequence_match_type": "exact"}},
    {"type": "tool_calls", "config": {"agents": "all"}},
    {"type": "response", "config": {"regex": "refund|weather", "threshold": 0.5}},
    {"type": "dispatch_limits", "config": {"max_dispatches": 2, "max_depth": 1}},
    {"type": "tokens", "config": {"max_output": 100}},
]
PLAYED = ("http", "http_streaming", "local", "local_streaming")
pytestmark = [
    pytest.mark.heavy,
    # ADK's own code warns of its own code.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class Seen(NamedTuple):
    """Runs of one app, by source, and what was recorded of them."""

    played: dict[str, Evaluation]
    recorded: list[Trace]
    scored: Evaluation


def facts(trace: Trace) -> list[dict[str, Any]]:
    """Return what does not depend on clocks, ids and who was asked."""
    return [
        {
            "status": turn.status,
            "error": turn.error,
            "output": turn.output,
            "chain": agent_chain(trace, turn),
            "dispatches": [
                (d.kind, d.mode, _basis(d), d.from_agent, d.to_agent, d.status, d.result, d.depth)
                for d in turn.dispatches
            ],
            "runs": [(run.agent, run.status, run.output, run.usage) for run in turn.runs],
            "calls": [
                (run.agent, step.name, step.arguments, step.result, step.status)
                for run in turn.runs
                for step in run.steps
                if isinstance(step, ToolCall)
            ],
        }
        for turn in trace.turns
    ]


def _basis(dispatch: Dispatch) -> str | None:
    """Leave out how a sequence is known: only agents in this process tell of their workflow."""
    return None if dispatch.kind == "sequence" else dispatch.basis


def cases_of(recorder: Any, app: str) -> list[Case]:
    """Expect the same of all scenarios: some meet it, some do not, some break."""
    return [
        case(
            *s.messages,
            id=s.name,
            agents=["support_router", "billing_agent"],
            tool_calls=[("lookup_order", {"order_id": "42"})],
        )
        for s in recorder.SCENARIOS
        if s.app == app
    ]


@pytest.fixture(scope="module", params=["support_desk", "report_pipeline"])
def seen(request: pytest.FixtureRequest, recorder: Any, url: str, apps: Path) -> Seen:
    app: str = request.param
    http: dict[str, Any] = {"type": "adk_http", "endpoint_url": url, "app_name": app}
    local: dict[str, Any] = {"type": "adk_local", "path": str(apps / app)}
    providers = (http, {**http, "streaming": True}, local, {**local, "streaming": True})
    cases = cases_of(recorder, app)
    files = [EXAMPLES / "recordings" / app / f"{case.id}.sse" for case in cases]
    info = EXAMPLES / "recordings" / f"app_info.{app}.json"
    recorded = baton.load_traces(files, agents=info if info.is_file() else None)
    return Seen(
        {
            name: baton.evaluate(cases, provider, EVALUATORS)
            for name, provider in zip(PLAYED, providers, strict=True)
        },
        recorded,
        baton.score(recorded, cases, EVALUATORS),
    )


def traces(evaluation: Evaluation) -> list[Trace]:
    return [result.trace for result in evaluation.results if result.trace is not None]


@pytest.mark.parametrize("source", PLAYED)
def test_a_live_run_is_the_record_of_what_was_recorded(seen: Seen, source: str) -> None:
    played = traces(seen.played[source])
    assert len(played) == len(seen.recorded) > 0
    for now, kept in zip(played, seen.recorded, strict=True):
        assert facts(now) == facts(kept), kept.id
        assert now.dropped == []


@pytest.mark.parametrize("source", PLAYED[1:])
def test_live_sources_tell_the_same_messages_states_and_gaps(seen: Seen, source: str) -> None:
    for one, other in zip(traces(seen.played["http"]), traces(seen.played[source]), strict=True):
        assert [turn.input for turn in one.turns] == [turn.input for turn in other.turns]
        assert (one.state, one.unknown) == (other.state, other.unknown)
        assert set(one.agents) <= set(other.agents)  # a server does not tell of every root


def verdicts(evaluation: Evaluation) -> list[Any]:
    """Return all that scores say, and the causes of errors."""
    return [
        (
            result.case_id,
            result.status,
            result.error and result.error.partition(": ")[2],
            [
                (s.evaluator, s.unit, s.status, s.value, s.reason, without_ids(s.details))
                for s in result.scores
            ],
        )
        for result in evaluation.results
    ]


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_ids(item) for key, item in value.items() if key != "id"}
    return [without_ids(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("source", PLAYED)
def test_a_live_run_is_judged_as_its_recording_is(seen: Seen, source: str) -> None:
    assert verdicts(seen.played[source]) == verdicts(seen.scored)
    assert seen.played[source].problems == seen.scored.problems


def test_the_scenarios_pass_fail_and_err(seen: Seen) -> None:
    statuses = {result.status for result in seen.scored}
    assert statuses == ({"failed"} if len(seen.recorded) == 1 else {"passed", "failed", "error"})


@pytest.mark.parametrize(("streaming", "mode"), [(False, "NONE"), (True, "SSE")])
@pytest.mark.parametrize("kind", ["adk_http", "adk_local"])
def test_agents_stream_when_they_are_asked_to(
    url: str, apps: Path, kind: str, streaming: bool, mode: str
) -> None:
    place: dict[str, Any] = {"path": str(apps / "mode_teller")}
    if kind == "adk_http":
        place = {"endpoint_url": url, "app_name": "mode_teller"}
    case = Case(id="ask", turns=[ExpectedTurn(input=Content(text="Hi"))])
    (trace,) = traces(baton.evaluate([case], {"type": kind, "streaming": streaming, **place}))
    assert trace.turns[0].output == Content(text=f"streaming mode {mode}")
