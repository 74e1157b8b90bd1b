"""LangGraph and LangChain, recorded by our own handler: the record of the instrumentor, without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.test_init import alone
from tests.cli.test_record import record, shape

from baton.model.views import agent_chain
from baton.readers import load_traces

pytestmark = pytest.mark.heavy
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstarts" / "langgraph_desk.py"
FUNCTIONS = """
import operator
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

class State(TypedDict, total=False):
    request: str
    order: int
    notes: Annotated[list, operator.add]
    answer: str

def router(state):
    return Command(goto=["billing", "stock"], update={"order": 42})

def billing(state):
    return {"notes": [f"paid {state['order']}"]}

def stock(state):
    return {"notes": ["one left"]}

def writer(state):
    return {"answer": "; ".join(state["notes"])}

building = StateGraph(State)
for node in (router, billing, stock, writer):
    building.add_node(node.__name__, node)
building.add_edge(START, "router")
building.add_edge(["billing", "stock"], "writer")
building.add_edge("writer", END)
graph = building.compile()
"""
RUN = 'print(graph.invoke({"request": "Where is order 42?"})["answer"])\n'
NESTED = """
from typing import TypedDict
from langgraph.graph import END, START, StateGraph

class State(TypedDict, total=False):
    text: str
    round: int

def draft(state):
    return {"text": state["text"] + "!", "round": state.get("round", 0) + 1}

def review(state):
    return {"text": state["text"] + "?"}

team = StateGraph(State)
team.add_node("draft", draft)
team.add_node("review", review)
team.add_edge(START, "draft")
team.add_edge("draft", "review")
team.add_edge("review", END)
around = StateGraph(State)
around.add_node("team", team.compile())
around.add_node("check", lambda state: state)
around.add_edge(START, "team")
around.add_edge("team", "check")
around.add_conditional_edges("check", lambda state: "team" if state["round"] < 2 else END)
print(around.compile().invoke({"text": "Hello"})["text"])
"""
STOPS = """
from typing import TypedDict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

class State(TypedDict):
    text: str

building = StateGraph(State)
building.add_node("clerk", lambda state: {"text": state["text"] + "!"})
building.add_node("human", lambda state: {"text": interrupt("Really?")})
building.add_edge(START, "clerk")
building.add_edge("clerk", "human")
config = {"configurable": {"thread_id": "t-1"}}
building.compile(checkpointer=InMemorySaver()).invoke({"text": "Refund"}, config)
"""
FAILS = STOPS.replace('interrupt("Really?")', "1 / 0")


@pytest.fixture
def alone_with_langchain(tmp_path: Path) -> dict[str, str]:
    """An environment in which the instrumentor of LangChain has no entry point."""
    name = "openinference_instrumentation_langchain"
    about = tmp_path / "hides" / f"{name}-0.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0\n")
    paths = [str(about.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def recorded(folder: Path, program: str, **options: Any) -> str:
    """Record a program; return what was said of it."""
    (folder / "app.py").write_text(program)
    (folder / "run.otlp.jsonl").unlink(missing_ok=True)
    return record(folder, sys.executable, "app.py", **options).stderr


def sides_by_name(file: Path) -> Any:
    """Return the shape of a record; what runs in parallel is listed by name, not by time.

    Which of two parallel nodes starts or ends first differs from one run to the next.
    """
    record = shape(file)
    parallel = ("billing", "stock")
    for turn in record["turns"]:
        for listed, name in (
            ("runs", "agent"),
            ("dispatches", "from_agent"),
            ("dispatches", "to_agent"),
        ):
            places = [n for n, each in enumerate(turn[listed]) if each[name] in parallel]
            by_name = sorted((turn[listed][n] for n in places), key=lambda each: each[name])
            for place, each in zip(places, by_name, strict=True):
                turn[listed][place] = each
    return record


@pytest.mark.parametrize(
    "program",
    [FUNCTIONS + RUN, NESTED, STOPS, QUICKSTART.read_text()],
    ids=["functions", "graph in a graph", "a person is asked", "agents of LangChain"],
)
def test_the_record_is_that_of_the_instrumentor(
    tmp_path: Path, alone_with_langchain: dict[str, str], program: str
) -> None:
    assert "recorded by langchain (openinference" in recorded(tmp_path, program)
    theirs = sides_by_name(tmp_path / "run.otlp.jsonl")
    said = recorded(tmp_path, program, env=alone_with_langchain)
    assert "recorded by langchain (Baton's own handler)" in said
    assert sides_by_name(tmp_path / "run.otlp.jsonl") == theirs


def test_nodes_are_agents_with_what_they_were_given_and_made(
    tmp_path: Path, alone_with_langchain: dict[str, str]
) -> None:
    recorded(tmp_path, FUNCTIONS + RUN, env=alone_with_langchain)
    (trace,) = load_traces(tmp_path / "run.otlp.jsonl")
    (turn,) = trace.turns
    assert sorted(agent_chain(trace, turn)) == ["billing", "router", "stock", "writer"]
    assert {(d.kind, d.basis) for d in turn.dispatches} == {("sequence", "stated")}
    assert sorted((d.from_agent, d.to_agent) for d in turn.dispatches) == [
        ("billing", "writer"), ("router", "billing"), ("router", "stock"), ("stock", "writer"),
    ]  # fmt: skip
    said = {run.agent: run.output for run in turn.runs}
    assert said["billing"] is not None
    assert said["billing"].data == {"notes": ["paid 42"]}
    assert turn.input is not None
    assert turn.input.text == "Where is order 42?"
    assert turn.output is not None
    assert turn.output.text == "paid 42; one left"


def test_an_error_of_a_node_is_the_error_of_its_run(
    tmp_path: Path, alone_with_langchain: dict[str, str]
) -> None:
    recorded(tmp_path, FAILS, env=alone_with_langchain)
    (trace,) = load_traces(tmp_path / "run.otlp.jsonl")
    clerk, human = trace.turns[0].runs
    assert clerk.status == "completed"
    assert (human.status, human.error) == ("failed", "ZeroDivisionError: division by zero")


def test_init_and_eval_need_nothing_installed(
    tmp_path: Path, alone_with_langchain: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", alone_with_langchain["PYTHONPATH"])
    (tmp_path / "app.py").write_text(FUNCTIONS)
    words = ["--agent", "app:graph", "--message", "Where is order 42?", "--ci", "none"]
    started = alone(tmp_path, "init", *words)
    assert started.returncode == 0, started.stderr
    (case,) = yaml.safe_load((tmp_path / "evals" / "first.yaml").read_text())["cases"]
    assert case["agents"] == ["router", "billing", "stock", "writer"]
    green = alone(tmp_path, "eval")
    assert green.returncode == 0, green.stdout
    (tmp_path / "app.py").write_text(
        FUNCTIONS.replace('["billing", "stock"], update', '"billing", update')
    )
    red = alone(tmp_path, "eval")
    assert red.returncode == 1, red.stdout
    assert "stock" in red.stdout


@pytest.mark.parametrize("imports", ["before", "after"])
def test_record_of_otel_records_it_too(
    tmp_path: Path, alone_with_langchain: dict[str, str], imports: str
) -> None:
    line = "from baton.otel import record\nrecord('run.otlp.jsonl')\nrecord('twice.otlp.jsonl')\n"
    program = line + FUNCTIONS if imports == "after" else FUNCTIONS + line
    (tmp_path / "app.py").write_text(program + RUN)
    subprocess.run(
        [sys.executable, "app.py"], cwd=tmp_path, check=True, env=alone_with_langchain, timeout=60
    )
    (trace,) = load_traces(tmp_path / "run.otlp.jsonl")
    assert sorted(agent_chain(trace, trace.turns[0])) == ["billing", "router", "stock", "writer"]


def test_a_program_that_records_itself_is_not_recorded_twice(
    tmp_path: Path, alone_with_langchain: dict[str, str]
) -> None:
    by_langsmith = {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}  # fmt: skip
    flushed = (
        RUN + "from langsmith.run_trees import get_cached_client\nget_cached_client().flush()\n"
    )
    recorded(tmp_path, FUNCTIONS + flushed, env=alone_with_langchain | by_langsmith)
    (trace,) = load_traces(tmp_path / "run.otlp.jsonl")
    assert sorted(agent_chain(trace, trace.turns[0])) == ["billing", "router", "stock", "writer"]


def test_the_example_of_langsmith_writes_what_langsmith_records(
    tmp_path: Path, alone_with_langchain: dict[str, str]
) -> None:
    example = QUICKSTART.parents[1] / "frameworks" / "langsmith_agents.py"
    file = tmp_path / "run.otlp.jsonl"
    command = [sys.executable, str(example), str(file)]
    subprocess.run(command, check=True, env=alone_with_langchain, timeout=60)
    (trace,) = load_traces(file)
    assert sorted(agent_chain(trace, trace.turns[0])) == ["guide", "inland_scout", "north_scout"]
