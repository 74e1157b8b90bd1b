"""What a function says of a message: figures that are none, calls without agents, time-outs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec
import pytest

import baton
from baton.model import (
    Case,
    CaseResult,
    Content,
    ExpectedToolCall,
    ProviderError,
    integrity_problems,
    known,
)
from baton.plugins.user_code import load_object
from baton.providers.answer_turns import stated_turn
from baton.providers.frameworks.program import Program
from baton.testing.build import case

Play = Callable[..., CaseResult]
NAN, INF = float("nan"), float("inf")


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Play a case with the function `reply` of some code."""

    def run(code: str, case: Case, *evaluators: Any, **options: Any) -> CaseResult:
        (tmp_path / "agent.py").write_text(dedent(code), encoding="utf-8")
        spec = {"type": "python", "target": f"{tmp_path}/agent.py:reply"}
        (result,) = baton.evaluate([case], spec, evaluators or ["agent_chain"], **options)
        return result

    return run


@pytest.mark.parametrize(
    "answer",
    [
        {"output": NAN},
        {"output": [1, {"deep": (2, -INF)}]},
        {"price": NAN, "none": None},
        {"agents": ["a"], "usage": {"cost_usd": INF}},
        {"agents": ["a"], "tool_calls": [{"name": "f", "arguments": {"x": NAN}}]},
    ],
)
def test_nan_and_infinity_are_no_json(answer: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match="that is not JSON: nan and infinity"):
        stated_turn(answer, "t")


def test_nothing_is_json() -> None:
    said = stated_turn({"output": {"price": None, "days": [1.5, None]}}, "t")
    assert said.turn.output == Content(data={"price": None, "days": [1.5, None]})


@pytest.mark.parametrize(
    ("field", "figure"), [("input_tokens", -5), ("requests", -1), ("cost_usd", -0.5)]
)
def test_a_negative_figure_is_refused_by_its_name(field: str, figure: float) -> None:
    with pytest.raises(ProviderError, match=rf"usage\.{field}: {figure} is below zero"):
        stated_turn({"agents": ["a"], "usage": {field: figure}}, "t")


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        ("input_tokens=-1", "usage.input_tokens: -1 is below zero or not finite"),
        ("cost_usd=float('nan')", "nan and infinity are not JSON"),
        ("cost_usd=float('inf')", "nan and infinity are not JSON"),
    ],
)
def test_nonsense_figures_of_a_trace_are_refused(play: Play, usage: str, said: str) -> None:
    code = f"""
    from baton.model import Source, Trace, Turn, Usage
    def reply(case):
        return Trace(
            schema_version=1, id="x", source=Source(format="x"), turns=[Turn(id="t")],
            usage=Usage({usage}),
        )
    """
    limit = {"type": "cost", "config": {"max_usd": 1}}
    result = play(code, case(), limit)
    assert result.status == "error"
    assert said in (result.error or "")
    assert not any(score.status == "passed" for score in result.scores)


@pytest.mark.parametrize(
    ("calls", "expected", "status"),
    [
        ([{"name": "f", "arguments": {"x": 1}}], [("f", {"x": 1})], "passed"),
        ([{"name": "f"}], [("g", {})], "failed"),
        ([], [], "passed"),
        ([], [("f", {})], "failed"),
    ],
)
def test_calls_without_agents_are_known_and_only_the_agent_is_not(
    play: Play, calls: list[Any], expected: list[Any], status: str
) -> None:
    wanted = [ExpectedToolCall(name=name, arguments=arguments) for name, arguments in expected]
    code = f"def reply(message): return {{'output': 'x', 'tool_calls': {calls}}}"
    exact = {"type": "tool_calls", "config": {"mode": "exact"}}
    result = play(code, case(agents=["desk"], tool_calls=wanted), "agent_chain", exact)
    assert [score.status for score in result.scores] == ["skipped", status]
    trace = result.trace
    assert trace is not None
    (run,) = trace.turns[0].runs
    assert not known(trace, run, "agent")
    assert integrity_problems(trace) == []


def test_calls_of_an_agent_that_is_not_named_are_not_scored_as_an_agents(play: Play) -> None:
    wanted = [ExpectedToolCall(name="f", arguments={}, agent="desk")]
    code = "def reply(message): return {'tool_calls': [{'name': 'f'}]}"
    result = play(code, case(tool_calls=wanted), "tool_calls")
    assert [score.status for score in result.scores] == ["skipped"]


@pytest.mark.parametrize("limit", ["max_agents", "max_visits", "max_dispatches"])
def test_who_made_calls_without_agents_cannot_be_counted(play: Play, limit: str) -> None:
    code = "def reply(message): return {'tool_calls': [{'name': 'f'}]}"
    result = play(code, case(), {"type": "dispatch_limits", "config": {limit: 1}})
    assert [score.status for score in result.scores] == ["skipped"]


def test_the_turns_before_a_time_out_are_kept(play: Play) -> None:
    code = """
    import asyncio
    async def reply(message):
        await asyncio.sleep(30 if message == "three" else 0)
        return message.upper()
    """
    result = play(code, case("one", "two", "three"), timeout=1)
    assert result.error == "the case did not end within 1 s (`timeout`)"
    assert result.trace is not None
    outputs = [turn.output for turn in result.trace.turns]
    assert outputs == [Content(text="ONE"), Content(text="TWO")]


def test_a_later_turn_that_cancels_itself_is_reported_with_the_turns_before(play: Play) -> None:
    code = """
    import asyncio
    async def reply(message):
        if message == "two":
            asyncio.current_task().cancel()
            await asyncio.sleep(1)
        return message
    """
    result = play(code, case("one", "two"))
    assert (result.error or "").startswith("the provider raised CancelledError")
    assert result.trace is not None
    assert len(result.trace.turns) == 1


def test_a_text_and_structured_output_are_one_answer(play: Play) -> None:
    code = 'def reply(message): return {"output": "Two nights.", "structured": {"nights": 2}}'
    stated = case(response="Two nights.", structured={"nights": 2})
    result = play(
        code, stated, {"type": "response", "config": {"match": "equals"}}, "structured_output"
    )
    assert [score.status for score in result.scores] == ["passed", "passed"], result.scores


def test_structured_output_may_be_a_model_of_pydantic(play: Play) -> None:
    code = """
    import datetime, pydantic
    class Stay(pydantic.BaseModel):
        nights: int
        arrives: datetime.date
    def reply(message):
        stay = Stay(nights=2, arrives="2026-05-03")
        booked = {"name": "book", "result": stay}
        return {"output": "Two nights.", "structured": stay, "tool_calls": [booked]}
    """
    result = play(
        code, case(structured={"nights": 2, "arrives": "2026-05-03"}), "structured_output"
    )
    assert [score.status for score in result.scores] == ["passed"], result.error


def test_structured_output_may_stand_alone_and_only_once() -> None:
    assert stated_turn({"structured": {"a": 1}}, "t").turn.output == Content(data={"a": 1})
    assert stated_turn({"structured": None, "output": "x"}, "t").turn.output == Content(text="x")
    with pytest.raises(ProviderError, match="leave one of them out"):
        stated_turn({"structured": {"a": 1}, "output": {"b": 1}}, "t")


STRANDS = """
    import sys, types

    class State:
        def __init__(self, data): self.data = dict(data)
        def get(self, key=None): return dict(self.data) if key is None else self.data.get(key)
        def set(self, key, value): self.data[key] = value
        def delete(self, key): self.data.pop(key, None)

    class Hooks:
        def __init__(self): self.called = []
        def add_callback(self, event, callback): self.called.append(callback)

    class Event:
        def __init__(self, agent): self.agent = agent

    hooks = types.ModuleType("strands.hooks")
    hooks.BeforeInvocationEvent = Event
    sys.modules["strands.hooks"] = hooks

    class Registry:
        registry = {}

    class Agent:
        name, tool_registry = "desk", Registry()
        def __init__(self): self.messages, self.state, self.hooks = [], State({"plan": "free"}), Hooks()
        async def invoke_async(self, message):
            for callback in self.hooks.called: callback(Event(self))
            self.messages.append(message)
            said = sorted(self.state.get().items())
            self.state.set("seen", len(self.messages))
            return said

    class Node:
        def __init__(self, agent): self.executor = agent

    class MultiAgentBase:
        def __init__(self, agent): self.nodes, self.said = {"a": Node(agent)}, []
        async def invoke_async(self, message):
            agent = self.nodes["a"].executor
            agent.state = State({"plan": "free"})
            self.said.append(await agent.invoke_async(message))

    Agent.__module__ = "strands.agent.agent"
    MultiAgentBase.__module__ = "strands.multiagent.base"
    reply = Agent()
    team = MultiAgentBase(Agent())
"""


def test_the_state_of_a_case_is_in_the_state_of_an_agent_of_strands(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(dedent(STRANDS))
    gold = case("hi", state={"plan": "gold", "seat": 4})
    target = {"type": "python", "target": f"{tmp_path}/one.py:reply"}
    played = baton.evaluate([gold, case("hi", id="b")], target, ["agent_chain"], concurrency=1)
    outputs = [result.trace.turns[0].output for result in played if result.trace]
    assert [output and output.text for output in outputs] == [
        "[('plan', 'gold'), ('seat', 4)]",
        "[('plan', 'free')]",
    ]


def test_the_agents_of_a_swarm_get_the_state_though_it_resets_theirs(tmp_path: Path) -> None:
    (tmp_path / "swarm.py").write_text(dedent(STRANDS))
    program = Program("swarm.py:team", tmp_path)
    team = load_object("swarm.py:team", tmp_path)
    asyncio.run(program.answer("hi", case("hi"), {"seat": 4}))
    asyncio.run(program.answer("hi", case("hi"), {}))
    assert team.said == [[("plan", "free"), ("seat", 4)], [("plan", "free")]]


def test_cases_that_share_an_agent_of_strands_keep_their_own_state_and_history(
    tmp_path: Path,
) -> None:
    (tmp_path / "shared.py").write_text(dedent(STRANDS))
    program = Program("shared.py:reply", tmp_path)
    ann: dict[str, Any] = {"customer": "Ann"}
    bob: dict[str, Any] = {"customer": "Bob"}

    async def played() -> list[Any]:
        return [await program.answer("hi", case("hi"), one) for one in (ann, bob, ann, bob)]

    assert [str(answer) for answer in asyncio.run(played())] == [
        "[('customer', 'Ann'), ('plan', 'free')]",
        "[('customer', 'Bob'), ('plan', 'free')]",
        "[('customer', 'Ann'), ('plan', 'free'), ('seen', 1)]",
        "[('customer', 'Bob'), ('plan', 'free'), ('seen', 1)]",
    ]


def test_the_agents_of_a_graph_begin_a_case_without_the_messages_of_another(tmp_path: Path) -> None:
    program = dedent(STRANDS).replace('agent.state = State({"plan": "free"})', "")
    (tmp_path / "graph.py").write_text(program)
    graph = Program("graph.py:team", tmp_path)
    team = load_object("graph.py:team", tmp_path)
    ann: dict[str, Any] = {"customer": "Ann"}
    for session in (ann, {}, ann):
        asyncio.run(graph.answer("hi", case("hi"), session))
    assert team.said == [
        [("customer", "Ann"), ("plan", "free")],
        [("plan", "free")],
        [("customer", "Ann"), ("plan", "free"), ("seen", 1)],
    ]
    assert len(team.nodes["a"].executor.messages) == 2


TASK = """
    def reply(message):
        return {
            "output": "Refunded.",
            "trajectory": ["desk", "billing"],
            "interactions": [
                {"node_name": "desk", "dependencies": [], "messages": ["Refund order 7."]},
                {"node_name": "billing", "dependencies": ["desk"], "messages": ["Refunded."]},
            ],
            "environment_state": [{"name": "refunds", "state": {"7": "done"}}],
        }
"""


def test_what_a_task_of_strands_returns_is_the_record_that_it_describes(play: Play) -> None:
    stated = case(
        "Refund order 7.", agents=["desk", "billing"], final_state={"refunds": {"7": "done"}}
    )
    result = play(TASK, stated, "agent_chain", "state_equals")
    assert [score.status for score in result.scores] == ["passed", "passed"], result.error
    trace = result.trace
    assert trace is not None
    assert integrity_problems(trace) == []
    (turn,) = trace.turns
    assert turn.output == Content(text="Refunded.")
    assert [run.output and run.output.text for run in turn.runs] == ["Refund order 7.", "Refunded."]
    (dispatch,) = turn.dispatches
    sender, receiver = turn.runs
    assert (dispatch.from_run, dispatch.runs) == (sender.id, [receiver.id])
    assert not known(trace, dispatch, "kind")
    assert not trace.dropped


def test_a_trajectory_of_a_task_may_name_tools_and_their_calls(play: Play) -> None:
    code = """
        def reply(message):
            calls = [{"name": "find", "input": {"id": 7}, "tool_result": "lamp", "is_error": False}]
            return {"output": "A lamp.", "trajectory": [*calls, "tell"]}
    """
    one = case("Order 7?", tool_calls=[("find", {"id": 7}), "tell"])
    again = msgspec.structs.replace(one, turns=one.turns * 2)
    for played in (one, again):
        result = play(code, played, "tool_calls")
        assert [score.status for score in result.scores] == ["passed"], result.error
        assert result.trace is not None
        assert integrity_problems(result.trace) == []


def test_a_session_that_a_task_returns_is_read_as_a_file_of_one_is() -> None:
    span = {
        "span_info": {
            "session_id": "s", "span_id": "a", "trace_id": "t",
            "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z",
        },
        "span_type": "invoke_agent",
        "user_prompt": "Hi", "agent_response": "Hello.", "available_tools": [],
    }  # fmt: skip
    session: dict[str, Any] = {
        "session_id": "s",
        "traces": [{"trace_id": "t", "session_id": "s", "spans": [span]}],
    }

    class Dumped:
        """Stands for the pydantic model of the SDK."""

        def model_dump(self, mode: str) -> dict[str, Any]:
            assert mode == "json"
            return session

    stated = stated_turn({"output": "Hello.", "trajectory": Dumped()}, "turn3")
    assert [run.id.startswith("turn3-") for run in stated.turn.runs] == [True]
    assert stated.turn.runs[0].input == Content(text="Hi")
    session["traces"] *= 2
    with pytest.raises(ProviderError, match="a session of 2 traces"):
        stated_turn({"output": "Hello.", "trajectory": session}, "turn1")


def test_an_answer_with_a_key_of_a_task_alone_is_structured_output() -> None:
    answer = {"trajectory": ["up", "down"]}
    assert stated_turn(answer, "t").turn.output == Content(data=answer)
