"""Guards in programs: plain functions, marked functions, and what is left in the record."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.formats.document import Document
from baton.guard import Guard, Store
from baton.guard.decide_event import Event, Seen, decide
from baton.guard.policy import Policy, Rule, read_policy
from baton.model import InputError, RefusedError

KEY = "sk-proj-Ab3dEf6hIj9kLmN0pQrStUvWxYz12345"


def rules(*lines: str) -> Policy:
    listed = "\n".join(f"  - {line}" for line in lines)
    return read_policy(Document("policy.yaml", f"rules:\n{listed}".encode(), "yaml"))


@baton.tool
def look_up(task: str) -> str:
    return f"rows for {task}"


@baton.agent("lab")
def lab(task: str) -> str:
    return f"{look_up(task)} with {KEY}"


@baton.agent("desk")
def desk(message: str) -> str:
    try:
        return f"The lab says: {lab(f'Test: {message}')}"
    except RefusedError as refused:
        return f"I did it myself, as {refused}"


@baton.agent("runaway")
def runaway(task: str) -> str:
    try:
        return runaway(f"{task}.")
    except RefusedError as refused:
        return f"inline: {refused}"


def test_a_runaway_supervisor_stops_at_depth_ten_and_finishes_inline() -> None:
    guard = Guard(rules("{max_dispatches: 100}"))
    with baton.record_turn("go") as turn, guard.run(request="go"):
        answer = runaway("go")
        assert guard.spent.dispatches == 10
    assert answer.startswith("inline: `runaway` would work at depth 11")
    sent = turn.trace.turns[0].dispatches
    assert [each.status for each in sent] == ["completed"] * 10 + ["refused"]
    assert turn.trace.attributes["guard"][0]["rule"] == "max_depth"


def test_a_leaked_key_never_reaches_the_caller() -> None:
    guard = Guard(rules("{output: {any: [{secrets: [secrets]}]}, action: redact}"))
    with baton.record_turn("x") as turn, guard.run(request="x"):
        answer = desk("x")
    assert KEY not in answer
    assert "The lab says: rows for Test: x with [key:" in answer
    (dispatch,) = turn.trace.turns[0].dispatches
    assert KEY not in repr(dispatch.result)
    assert turn.trace.attributes["guard"][0]["action"] == "redact"


def test_a_refused_tool_does_not_run_and_the_record_says_who_refused() -> None:
    guard = Guard(rules("{allowed_tools: [other], for: 'to:lab'}"))
    with baton.record_turn("x") as turn, guard.run(request="x"):
        assert "may not use `look_up`" in desk("x")
    runs = {run.agent: run for run in turn.trace.turns[0].runs}
    call = runs["lab"].steps[0]
    assert isinstance(call, baton.model.ToolCall)
    assert (call.status, call.refused_by) == ("refused", "policy")


def test_without_a_guard_marked_functions_run_as_before() -> None:
    assert KEY in desk("x")


def test_marked_functions_ask_also_when_nothing_is_recorded() -> None:
    with Guard(rules("{allowed_edges: {desk: [nobody]}}")).run(request="x"):
        assert "may not hand work to `lab`" in desk("x")


def test_functions_that_are_awaited_are_guarded() -> None:
    @baton.agent("slow")
    async def slow(task: str) -> str:
        await asyncio.sleep(0)
        return KEY

    @baton.agent("boss")
    async def boss(task: str) -> list[Any]:
        return await asyncio.gather(
            *(slow(f"{task} {n}") for n in range(3)), return_exceptions=True
        )

    guard = Guard(
        rules("{max_fan_out: 2}", "{output: {any: [{secrets: [secrets]}]}, action: redact}")
    )
    with guard.run(request="x"):
        answers = asyncio.run(boss("x"))
    assert [isinstance(each, RefusedError) for each in answers] == [False, False, True]
    assert answers[0].startswith("[key:")


def test_any_program_can_ask() -> None:
    guard = Guard(rules("{max_per_parent: 1}", "{allowed_tools: [search], for: 'to:lab'}"))
    with guard.run("desk", "Is it safe?") as tree:
        guard.tool("anything")  # of the desk, which no rule is for
        with guard.dispatch("lab", "Test it."):
            assert guard.tool("search", {"query": "x"}).allowed
            with pytest.raises(RefusedError, match="may not use `shell`"):
                guard.tool("shell")
            assert guard.output({"safe": True}) == {"safe": True}
        with (
            pytest.raises(RefusedError, match="made 1 dispatch"),
            guard.dispatch("lab", "x"),
        ):
            pytest.fail("the block of a refused dispatch ran")
        guard.use(tokens=120, cost_usd=0.5)
        assert guard.spent[:3] == (1, 120, 0.5)
    with guard.run("desk", tree=tree):
        assert guard.spent.dispatches == 1


def test_structured_answers_stay_structured_when_a_part_is_replaced() -> None:
    guard = Guard(rules("{output: {any: [{secrets: [secrets]}]}, action: redact}"))
    with guard.run("desk"), guard.dispatch("lab", "x"):
        answer = guard.output({"note": f"use {KEY}", "n": 3})
    assert answer["n"] == 3
    assert KEY not in repr(answer)


@pytest.mark.parametrize("agrees", [True, False])
def test_a_person_is_asked_if_there_is_one(agrees: bool) -> None:
    asked: list[str | None] = []

    def ask(decision: Any) -> bool:
        asked.append(decision.rule)
        return agrees

    guard = Guard(rules("{max_dispatches: 0, action: ask}"), ask=ask)
    with guard.run("desk"):
        if agrees:
            with guard.dispatch("lab", "x"):
                pass
        else:
            with pytest.raises(RefusedError), guard.dispatch("lab", "x"):
                pass
        assert guard.spent.dispatches == int(agrees)
    assert asked == ["max_dispatches"]


def test_what_asks_is_refused_without_a_person() -> None:
    guard = Guard(rules("{max_dispatches: 0, action: ask}"))
    with guard.run("desk"), pytest.raises(RefusedError), guard.dispatch("lab", "x"):
        pass


def test_a_tree_continues_after_a_restart(tmp_path: Path) -> None:
    policy = rules("{max_dispatches: 1}")
    with Guard(policy, store=tmp_path / "g.db").run("desk", tree="t") as _:
        pass
    first = Guard(policy, store=tmp_path / "g.db")
    with first.run("desk", tree="t"), first.dispatch("lab", "x"):
        pass
    again = Guard(policy, store=tmp_path / "g.db")
    with again.run("desk", tree="t"), pytest.raises(RefusedError), again.dispatch("lab", "x"):
        pass


def test_what_fails_in_a_dispatch_ends_it() -> None:
    guard = Guard(rules("{max_fan_out: 1}"), store=Store())
    with guard.run("desk"):
        with pytest.raises(ZeroDivisionError), guard.dispatch("lab", "x"):
            raise ZeroDivisionError
        with guard.dispatch("lab", "y"):
            pass


@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_a_state_that_breaks_stops_a_program_only_where_the_policy_is_closed(
    on_error: str, tmp_path: Path
) -> None:
    policy = read_policy(Document("p", f"on_error: {on_error}\nrules: []".encode(), "yaml"))
    guard = Guard(policy, store=tmp_path / "g.db")
    other = sqlite3.connect(tmp_path / "g.db")
    other.executescript("drop table trees; drop table dispatches;")
    other.close()

    def work() -> str:
        with guard.run("desk"), guard.dispatch("lab", "x"):
            guard.use(tokens=1)
            return str(guard.output("done"))

    with baton.record_turn("x") as turn:
        if on_error == "open":
            assert work() == "done"
        else:
            with pytest.raises(RefusedError, match="could not decide"):
                work()
    assert "no such table" in turn.trace.attributes["guard"][0]["failed"]


def test_a_policy_made_in_python_has_the_usual_depth_and_named_rules() -> None:
    guard = Guard(Policy(rules=[Rule(max_dispatches=100, for_="to:nobody")]))
    with guard.run(request="go"):
        assert "at most 10 is allowed" in runaway("go")
    refused = decide(Policy(rules=[Rule(max_fan_out=0)]), Seen(), Event(on="dispatch", tree="t"))
    assert refused.rule == "max_fan_out"


ANSWER = "The sample is clean, all 14 values are in range. " * 40


@pytest.mark.parametrize("store", ["memory", "file"])
def test_a_decision_takes_less_than_a_millisecond(store: str, tmp_path: Path) -> None:
    """Of the processor: a machine with more to do takes no more of that."""
    policy = Path(__file__).parents[2] / "examples" / "guard" / "policy.yaml"
    guard = Guard(policy, store=tmp_path / "g.db" if store == "file" else None)
    desk = guard.begin("desk", "Is sample R-77 clean?")
    taken: list[float] = []

    def timed(decide: Callable[[], Any]) -> Any:
        began = time.thread_time()  # without threads that other tests left behind
        made = decide()
        taken.append(time.thread_time() - began)
        return made

    for number in range(90):
        lab = timed(lambda n=number: guard.start("lab", f"Test R-77, part {n}.", by=desk))  # type: ignore[misc]
        timed(lambda at=lab: guard.call(at, "Read", {"path": "a.csv"}))  # type: ignore[misc]
        timed(lambda at=lab: guard.answer(at, ANSWER))  # type: ignore[misc]
        guard.used(lab, tokens=1200, cost_usd=1e-6)
        guard.stop(lab)
    assert sorted(taken)[int(len(taken) * 0.95)] < 0.001


def test_outside_of_a_run_it_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"guard\.run"):
        Guard(rules("{max_dispatches: 1}")).tool("x")


def test_decisions_are_spans_where_spans_are_recorded() -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    spans, provider = memory.InMemorySpanExporter(), trace.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(spans))
    guard = Guard(rules("{max_dispatches: 0}"), tracers=provider)
    with guard.run("desk"), pytest.raises(RefusedError), guard.dispatch("lab", "x"):
        pass
    (span,) = spans.get_finished_spans()
    assert span.name == "baton.guard"
    assert span.attributes["baton.guard.rule"] == "max_dispatches"
    assert span.attributes["baton.guard.action"] == "block"


def test_a_limit_of_what_nobody_tells_does_not_pass_unnoticed() -> None:
    guard = Guard(rules("{max_tokens: 100}"))
    with guard.run("desk", "go"):
        with guard.dispatch("lab", "one"):
            pass  # nothing is told of what the lab has used
        with (
            pytest.raises(RefusedError, match="can't tell: nothing reports the tokens here"),
            guard.dispatch("lab", "two"),
        ):
            pass
        guard.use(tokens=10)
        with guard.dispatch("lab", "two"):
            pass


def test_a_cost_is_not_known_where_only_tokens_are_reported() -> None:
    policy = rules("{max_cost_usd: 1}")
    policy.on_error = "open"
    guard = Guard(policy)
    with baton.record_turn("go") as turn, guard.run("desk", "go"):
        guard.use(tokens=10)
        guard.tool("search")
    (note,) = turn.trace.attributes["guard"]
    assert note["allowed"]
    assert "nothing reports the cost" in note["failed"]


@pytest.mark.parametrize("action", ["warn", "observe"])
def test_a_rule_that_only_warns_does_not_block_when_it_fails(action: str) -> None:
    guard = Guard(rules(f"{{max_tokens: 100, action: {action}}}"))
    with guard.run("desk", "go"):
        guard.use(cost_usd=0.1)
        with guard.dispatch("lab", "one"):
            pass
        assert guard.tool("search").allowed


def test_who_is_given_control_reads_the_request_and_one_behind_a_filter_may_not() -> None:
    guard = Guard(rules("{required_context: ids}", "{max_same_task: 0}"))
    desk = guard.begin("desk", "Is R-77 clean?")
    assert guard.start("expert", by=desk, transfer=True).request == "Is R-77 clean?"
    with pytest.raises(RefusedError, match="can't tell: nothing reports the prompt here"):
        guard.start("expert", by=desk, transfer=True, shared=False)


def test_an_agent_without_an_allowed_edge_is_told_that_it_may_ask_nobody() -> None:
    with Guard(rules("{allowed_edges: {clerk: [lab]}}")).run(request="x"):
        said = "`desk` may not hand work to `lab`, nor to any other agent: do it yourself"
        assert said in desk("x")
