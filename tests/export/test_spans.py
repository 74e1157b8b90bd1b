"""What the spans of a record look like to other tools."""

from __future__ import annotations

from typing import Any

from tests.conftest import ROOT
from tests.readers.otlp.spans import ERROR, Span

from baton import load_traces
from baton.export.spans import spans_of
from baton.model import AgentCard, ToolCall, Trace, Usage
from baton.testing import build

KIND = "claude_agent.span_kind"


def record(name: str) -> Trace:
    (trace,) = load_traces(ROOT / "tests" / "records" / f"{name}.json")
    return trace


def kind_of(span: Span) -> str:
    kind: str = span.attributes.get(KIND) or span.attributes["baton.kind"]
    return kind


def dispatch_costs(trace: Trace) -> list[float | None]:
    spans = [span for span in spans_of(trace) if kind_of(span) == "subagent"]
    return [span.attributes.get("claude_agent.subagent.aggregated_cost_usd") for span in spans]


def tree(spans: list[Span], parent: str | None = None) -> list[Any]:
    """Return names with what stands in them, texts left out."""
    return [
        (span.name, kind_of(span), tree(spans, span.span_id))
        for span in spans
        if span.parent_id == parent and kind_of(span) != "assistant_turn"
    ]


def test_a_delegate_stands_in_its_call_and_its_agent_in_the_dispatch() -> None:
    spans = spans_of(record("claude_nested_depth_3"))
    at = tree(spans)
    path = []
    while at:
        name, kind, at = max(at, key=lambda each: len(str(each)))
        path.append((name.split()[0], kind))
    dispatched = [
        ("execute_tool", "tool_execution"),
        ("invoke_agent", "subagent"),
        ("invoke_agent", "run"),
    ]
    opened = [("conversation", "conversation"), ("turn", "turn"), ("invoke_agent", "run")]
    assert path[:12] == [*opened, *dispatched, *dispatched, *dispatched]


def test_the_conversation_tells_what_its_first_agent_is_told_and_which_tools_it_has() -> None:
    handed = build.delegate("lab", "Test it.")
    first = build.run("desk", handed, tools_offered=["Task", "Read"])
    asked = build.turn("Is it safe?", first, build.run("lab", output="Yes."))
    told = AgentCard(instructions="Ask the lab.", tools=["Task"])
    root = spans_of(build.trace(asked, id="s-1", agents={"desk": told, "lab": AgentCard()}))[0]
    assert kind_of(root) == "conversation"
    assert root.attributes["claude_agent.session_id"] == "s-1"
    assert root.attributes["claude_agent.system_prompt"] == "Ask the lab."
    assert root.attributes["claude_agent.allowed_tools"] == '["Task"]'
    offered = spans_of(build.trace(asked))[0].attributes
    assert offered["claude_agent.allowed_tools"] == '["Task","Read"]'
    assert "claude_agent.system_prompt" not in offered


def test_a_relay_of_transfers_is_no_deep_tree() -> None:
    spans = spans_of(record("adk_transfer_two_turns"))
    (root,) = tree(spans)
    for _, _, below in root[2]:
        assert {kind for _, kind, _ in below} == {"run"}
        assert len(below) >= 2


def test_every_dispatch_has_one_span_that_leads_to_the_runs_it_started() -> None:
    trace = record("graph_diamond")
    spans = {span.attributes.get("baton.id"): span for span in spans_of(trace)}
    for dispatch in trace.turns[0].dispatches:
        span = spans[dispatch.id]
        assert span.attributes["claude_agent.subagent.type"] == dispatch.to_agent
        assert [link.span_id for link in span.links] == [spans[r].span_id for r in dispatch.runs]


def test_a_dispatch_is_sent_with_prompt_tools_and_the_call_around_it() -> None:
    trace = record("claude_nested_depth_3")
    by_id = {d.id: d for turn in trace.turns for d in turn.dispatches}
    found = [span for span in spans_of(trace) if kind_of(span) == "subagent"]
    assert len(found) == len(by_id) == 3
    for span in found:
        dispatch = by_id[span.attributes["baton.id"]]
        assert dispatch.prompt is not None
        assert span.attributes["claude_agent.subagent.prompt"] == dispatch.prompt.text
    calls = [span.attributes.get("claude_agent.parent_tool_use_id") for span in found]
    assert calls[0] is None
    assert calls[1:] == [by_id[span.attributes["baton.id"]].call for span in found[:2]]


def test_tokens_and_cost_of_nested_dispatches_add_up_to_the_conversation() -> None:
    trace = record("claude_nested_depth_3")
    spans = spans_of(trace)
    runs = [run.usage for turn in trace.turns for run in turn.runs]
    outputs = [usage.output_tokens for usage in runs if usage and usage.output_tokens is not None]
    assert len(outputs) == 4
    (root, main, *_), subs = (
        [span for span in spans if kind_of(span) in ("conversation", "run")],
        [span for span in spans if kind_of(span) == "subagent"],
    )
    for span in (root, main):
        assert span.attributes["gen_ai.aggregated_usage.output_tokens"] == sum(outputs)
    sums = [span.attributes["claude_agent.subagent.aggregated_output_tokens"] for span in subs]
    assert sorted(sums, reverse=True) == [sum(outputs[1:]), sum(outputs[2:]), outputs[3]]


def test_what_a_dispatch_cost_is_known_only_when_every_run_below_it_tells() -> None:
    trace = record("claude_nested_depth_3")
    runs = [run for turn in trace.turns for run in turn.runs]
    for number, run in enumerate(runs):
        run.usage = Usage(output_tokens=10, cost_usd=number + 1, cost_from="source")
    assert dispatch_costs(trace) == [9, 7, 4]
    runs[3].usage = Usage(output_tokens=10)
    assert dispatch_costs(trace) == [None, None, None]


def test_the_conversation_costs_what_its_source_says() -> None:
    trace = record("claude_two_dispatches")
    assert trace.usage is not None
    assert trace.usage.cost_usd is not None
    root, turn, *_ = spans_of(trace)
    assert root.attributes["claude_agent.cost.total_usd"] == trace.usage.cost_usd
    assert "baton.aggregated_cost_usd" not in turn.attributes


def test_input_tokens_of_spans_have_the_cached_ones_in_them() -> None:
    trace = record("claude_two_dispatches")
    run = next(run for run in trace.turns[0].runs if run.usage and run.usage.cache_read_tokens)
    span = next(s for s in spans_of(trace) if s.attributes.get("baton.id") == run.id)
    usage = run.usage
    assert usage is not None
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    assert span.attributes["gen_ai.usage.input_tokens"] == (usage.input_tokens or 0) + cached


def test_a_tool_of_an_mcp_server_is_distinguished_from_others() -> None:
    trace = record("claude_two_dispatches")
    steps = [step for run in trace.turns[0].runs for step in run.steps]
    call = next(step for step in steps if isinstance(step, ToolCall))
    call.name = "mcp__issue_tracker__find"
    (span,) = [span for span in spans_of(trace) if kind_of(span) == "mcp_tool"]
    assert span.attributes["claude_agent.mcp.server_name"] == "issue_tracker"
    assert span.attributes["claude_agent.mcp.tool_name"] == "find"


def test_what_failed_is_a_span_that_failed() -> None:
    spans = spans_of(record("claude_dead_child"))
    failed = [span for span in spans if span.status == ERROR]
    assert {kind_of(span) for span in failed} >= {"subagent", "run"}
    assert all(span.message for span in failed if kind_of(span) == "subagent")


def test_a_span_never_ends_before_it_starts_and_stands_in_one_that_is_there() -> None:
    for trace in load_traces(ROOT / "tests" / "records"):
        spans = spans_of(trace)
        ids = {span.span_id for span in spans}
        assert len(ids) == len(spans)
        for span in spans:
            assert span.started is not None
            assert span.ended is not None
            assert span.started <= span.ended
            assert (span.parent_id in ids) == (span is not spans[0])
