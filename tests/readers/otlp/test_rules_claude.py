"""Claude: its own export, and traceAI's spans, flat and nested; what neither records."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import baton
from baton.model import AgentCard, known
from baton.readers.otlp.reader import read_spans

from .spans import (
    Piece,
    agent,
    chain,
    edges,
    model,
    only,
    piece,
    read,
    spans,
    together,
    tool,
    using,
)

DATA = Path(__file__).parents[2] / "data"
EXPORT = DATA / "otel" / "claude-export" / "mcp_parallel.json"
NESTED = DATA / "claude" / "current" / "03_scope_bleed" / "spans_documented_topology.jsonl"


def _scope(path: Path, tools: list[str], **options: Any) -> list[tuple[str, str]]:
    agents = {"librarian": AgentCard(tools=tools), "validator-agent": AgentCard(tools=tools)}
    traces = baton.load_traces(path, agents=agents)
    spec = {"type": "dispatch_scope", "config": options}
    results = baton.score(traces, evaluators=[spec]).results
    return [(score.status, score.reason) for result in results for score in result.scores]


def test_calls_of_a_servers_tools_go_by_the_name_that_definitions_use() -> None:
    found = _scope(EXPORT, ["mcp__docs__search", "mcp__docs__remove"], allow_attempts=True)
    assert [status for status, _ in found] == ["passed", "passed"]
    found = _scope(EXPORT, ["mcp__docs__search"], allow_attempts=True)
    assert [status for status, _ in found] == ["passed", "failed"]
    assert "`mcp__docs__remove`" in found[1][1]


def test_scope_is_unknown_where_refused_calls_are_not_recorded() -> None:
    (status, reason), _ = _scope(EXPORT, ["mcp__docs"])
    assert status == "skipped"
    assert "refused are not recorded" in reason


def test_calls_of_one_request_are_together_in_claudes_own_export() -> None:
    (trace,) = baton.load_traces(EXPORT)
    (turn,) = trace.turns
    assert [dispatch.group for dispatch in turn.dispatches] == [1, 1]
    assert [run.input for run in turn.runs[1:]] == [d.prompt for d in turn.dispatches]


@pytest.mark.parametrize(("name", "spent"), [("dead_child", 0.0006), ("dead_child_at_once", 0.0)])
def test_a_sub_agent_whose_request_failed_for_good_has_failed_with_what_it_cost(
    name: str, spent: float
) -> None:
    (trace,) = baton.load_traces(EXPORT.with_name(f"{name}.json"))
    dead = trace.turns[0].runs[1]
    assert (dead.status, dead.output) == ("failed", None)
    assert "API Error: 400" in (dead.error or "")
    assert dead.usage is not None
    assert dead.usage.cost_usd == pytest.approx(spent)
    assert trace.usage is not None
    assert trace.usage.cost_usd is not None


def test_the_nested_spans_of_a_sub_agent_tell_its_tools_tokens_cost_and_words() -> None:
    (trace,) = baton.load_traces(NESTED)
    assert trace.dropped == []
    (turn,) = trace.turns
    (dispatch,) = turn.dispatches
    assert (dispatch.tools_allowed, dispatch.tools_source) == (["Read", "Bash"], "request")
    assert dispatch.description == "Compile check"
    main, validator = turn.runs
    assert validator.usage is not None
    assert (validator.usage.input_tokens, validator.usage.output_tokens) == (3130, 213)
    assert validator.usage.cost_usd == 0.012585
    assert main.usage is not None
    assert main.usage.cost_usd == pytest.approx(0.019725)
    assert trace.usage is not None
    assert trace.usage.cost_usd == pytest.approx(0.03231)
    assert all(known(trace, run, "steps.said") for run in turn.runs)
    assert all(known(trace, run, "steps.refused") for run in turn.runs)
    assert validator.input == dispatch.prompt
    assert validator.output == dispatch.result
    ((status, reason),) = _scope(NESTED, ["Read", "Bash"])
    assert status == "failed"
    assert "tried to use `Edit`" in reason


def _span(kind: str, name: str, *inside: Piece, **more: Any) -> Piece:
    told = {f"claude_agent.{key.replace('__', '.')}": value for key, value in more.items()}
    return using(piece(name, *inside), **{"claude_agent.span_kind": kind, **told})


def _turn(says: str) -> Piece:
    return _span("assistant_turn", "claude_agent.assistant_turn", message__content=says)


def _sub(type_: str, *inside: Piece, **more: Any) -> Piece:
    return _span(
        "subagent",
        f"claude_agent.subagent.{type_}",
        *inside,
        subagent__type=type_,
        subagent__prompt=f"Do it, {type_}.",
        tool__output="Done.",
        **more,
    )


def test_a_call_that_only_the_words_of_a_nested_turn_show_was_refused() -> None:
    helper = _sub(
        "helper", _turn("I edit.\n[Tool: Edit]"), _turn("No such tool."), tool__use_id="d"
    )
    turn = read(_span("conversation", "c", _turn("[Tool: Task]"), helper, _turn("Fine.")))
    assert chain(turn) == ["main", "helper"]
    assert [(call.name, call.status) for call in _calls(turn.runs[1])] == [("Edit", "unanswered")]


def test_nested_dispatches_lie_one_in_the_other_and_each_has_its_own_cost() -> None:
    spent: dict[str, Any] = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 1}
    inner = using(_sub("inner", _turn("Deep."), cost__total_usd=0.25), **spent)
    outer = using(_sub("outer", _turn("[Tool: Task]"), inner, cost__total_usd=0.5), **spent)
    turn = read(_span("conversation", "c", outer, _turn("Fine."), cost__total_usd=1.0))
    assert edges(turn) == [("main", "outer", "delegate"), ("outer", "inner", "delegate")]
    assert [run.usage.cost_usd if run.usage else None for run in turn.runs] == [0.25, 0.5, 0.25]
    assert [dispatch.depth for dispatch in turn.dispatches] == [1, 2]


def _tokens(run: Any) -> tuple[Any, Any, bool] | None:
    used = run.usage
    return used and (used.input_tokens, used.output_tokens, used.complete)


def test_tokens_of_single_turns_are_those_of_the_agent_that_spoke() -> None:
    def used(read: int, wrote: int) -> dict[str, Any]:
        return {"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": wrote}

    helper = _sub("helper", using(_turn("A."), **used(5, 1)), using(_turn("B."), **used(6, 2)))
    first, last = using(_turn("[Tool: Task]"), **used(10, 3)), using(_turn("Fine."), **used(20, 4))
    nested = using(_span("conversation", "c", first, helper, last), **used(0, 0))
    assert [_tokens(run) for run in read(nested).runs] == [(30, 7, True), (11, 3, True)]
    # Of several turns only the last one has a count, which is then the least there was.
    alone = _span("conversation", "c", using(_turn("Hm."), **used(0, 0)), last)
    assert _tokens(read(alone).runs[0]) == (20, 4, False)
    # The span of the conversation counts the agent's own.
    whole = using(
        _span("conversation", "c", _turn("Hm."), last, cost__total_usd=0.5), **used(33, 9)
    )
    turn = read(whole)
    assert _tokens(turn.runs[0]) == (33, 9, True)
    assert turn.runs[0].usage is not None
    assert turn.runs[0].usage.cost_usd == 0.5


def test_a_cost_that_counts_on_from_turn_to_turn_is_counted_once() -> None:
    def asked(number: int, cost: float) -> list[Any]:
        helper = using(_sub("helper", _turn("Deep."), cost__total_usd=0.25), **tokens)
        turn = _span("conversation", "c", helper, _turn("Fine."), cost__total_usd=cost)
        turn = using(turn, **{"claude_agent.session_id": "s"})
        return spans(turn, trace=f"{number:032x}", at=1000.0 * number)

    tokens: dict[str, Any] = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 1}
    # The third turn was answered by another process, which counts from the start.
    made = [span for number, cost in enumerate((1.0, 1.75, 0.5), 1) for span in asked(number, cost)]
    [trace] = read_spans(made, [])
    spent = [run.usage.cost_usd for turn in trace.turns for run in turn.runs if run.usage]
    assert spent == [0.75, 0.25, 0.5, 0.25, 0.25, 0.25]
    assert trace.usage is not None
    assert trace.usage.cost_usd == pytest.approx(1.75 + 0.5)


def _calls(run: Any) -> list[Any]:
    return [step for step in run.steps if hasattr(step, "refused_by")]


def _flat(type_: str, takes: float) -> Piece:
    asked = f'{{"subagent_type": "{type_}", "prompt": "Go."}}'
    made = _span("tool_execution", "tool.Agent", tool__name="Agent", tool__input=asked)
    made.inside, made.takes = (Piece(takes=takes),), takes
    return made


def test_two_parallel_delegates_of_one_type_are_side_by_side() -> None:
    longer, shorter = _flat("helper", 6.0), _flat("helper", 2.0)
    later = Piece(inside=(Piece(takes=0.5), shorter))
    turn = read(_span("conversation", "c", _turn("[Tool: Agent]"), together(longer, later)))
    assert edges(turn) == [("main", "helper", "delegate")] * 2
    assert [dispatch.group for dispatch in turn.dispatches] == [1, 1]


def test_a_dispatch_before_which_no_model_spoke_is_not_nested_in_another() -> None:
    longer, shorter = _flat("helper", 6.0), _flat("finder", 2.0)
    later = Piece(inside=(Piece(takes=0.5), shorter))
    turn = read(_span("conversation", "c", _turn("[Tool: Agent]"), together(longer, later)))
    assert {edge[0] for edge in edges(turn)} == {"main"}


def test_a_call_while_two_sub_agents_were_at_work_is_given_to_nobody() -> None:
    read_file = _span("tool_execution", "tool.Read", tool__name="Read")
    inside = Piece(inside=(Piece(takes=1.0), read_file))
    both = together(_flat("a", 6.0), _flat("b", 6.0), inside)
    [trace] = read_spans(spans(_span("conversation", "c", _turn("[Tool: Agent]"), both)), [])
    assert [call.name for run in trace.turns[0].runs for call in _calls(run)] == ["Agent", "Agent"]
    lost = "calls whose agent the source does not record"
    assert lost in [dropped.what for dropped in trace.dropped]


def _beside(*said: str, read_at: float, then: tuple[float, ...] = ()) -> list[list[str]]:
    """The calls of main and of its one sub-agent, which asks for reads of its own at ``then``."""

    def after(seconds: float, *pieces: Piece) -> Piece:
        return Piece(inside=(Piece(takes=seconds), *pieces))

    def reads() -> Piece:
        return _span("tool_execution", "tool.Read", tool__name="Read")

    own = [after(at, _turn("[Tool: Read]"), Piece(takes=0.05), reads()) for at in then]
    both = together(_flat("helper", 6.0), after(read_at, reads()), *own)
    asked = [_turn(text) for text in said]
    [trace] = read_spans(spans(_span("conversation", "c", *asked, both)), [])
    lost = sum(each.count for each in trace.dropped if each.what.startswith("calls whose agent"))
    return [*([c.name for c in _calls(run)] for run in trace.turns[0].runs), ["lost"] * lost]


def test_a_call_beside_a_dispatch_is_of_the_agent_that_made_both() -> None:
    found = _beside("[Tool: Agent]", "[Tool: Read]", read_at=0.3)
    assert found == [["Agent", "Read"], [], []]
    found = _beside("[Tool: Read]", "[Tool: Agent]", read_at=0.3, then=(2.0,))
    assert found == [["Agent", "Read"], ["Read"], []]


def test_a_call_that_only_the_sub_agent_asked_for_is_its_own() -> None:
    assert _beside("[Tool: Agent]", read_at=2.2, then=(2.0,)) == [["Agent"], ["Read", "Read"], []]


def test_a_call_that_either_agent_may_have_made_is_given_to_nobody() -> None:
    # Main asked for a read, but none had started when its sub-agent asked for one as well.
    found = _beside("[Tool: Agent]", "[Tool: Read]", read_at=2.3, then=(2.0,))
    assert found == [["Agent"], [], ["lost", "lost"]]


def test_delegates_at_work_at_the_same_time_were_issued_together() -> None:
    first, second = (
        tool(f"ask_{name}", agent(name, model()), args={"q": name}) for name in ("a", "b")
    )
    turn = read(agent("front", model(), together(first, second), model()))
    assert [dispatch.group for dispatch in turn.dispatches] == [1, 1]


def test_a_conversation_continues_in_one_run_when_an_agent_in_the_background_has_answered() -> None:
    folder = DATA / "claude" / "current" / "08_background_dispatch"
    (trace,) = baton.load_traces(folder / "spans.jsonl")
    (turn,) = trace.turns
    assert turn.runs[0].status == "completed"
    assert edges(turn) == [("main", "research-agent", "delegate")]


def test_runs_of_silent_models_do_not_tell_of_refused_calls() -> None:
    turn = read(agent("front", model(), tool("ask", agent("a", model()), args={"q": "x"})))
    assert "steps.refused" in turn.runs[1].unknown
    turn = read(
        agent("front", model("Hi."), tool("ask", agent("a", model("Ho.")), args={"q": "x"}))
    )
    assert "steps.refused" not in turn.runs[1].unknown
    assert only(turn).to_agent == "a"


@pytest.mark.parametrize("name", ["spans.jsonl", "spans_documented_topology.jsonl"])
def test_kinds_of_spans_may_be_in_capitals(tmp_path: Path, name: str) -> None:
    recorded = NESTED.with_name(name)
    shouted, count = re.subn(
        r'(?<="claude_agent\.span_kind": ")\w+',
        lambda kind: kind[0].upper(),
        recorded.read_text("utf-8"),
    )
    assert count > 3
    (tmp_path / name).write_text(shouted, "utf-8")
    (one,), (other,) = baton.load_traces(recorded), baton.load_traces(tmp_path / name)
    other.source.location = one.source.location
    assert msgspec.to_builtins(one) == msgspec.to_builtins(other)
