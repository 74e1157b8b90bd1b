"""Strands' graphs: which nodes an agent follows is in the message that it was given."""

from __future__ import annotations

import json

from baton import load_traces

from .spans import Piece, agent, edges, model, piece, read, using
from .truth import CAPTURES


def _node(name: str, answer: str, **given: str) -> Piece:
    """An agent of a graph; ``given`` are the answers it got, by node."""
    blocks = ["Original Task: Plan it."] if given else ["Plan it."]
    blocks += ["\nInputs from previous nodes:"] if given else []
    for node, text in given.items():
        blocks += [f"\nFrom {node}:", f"  - Agent: {text}\n"]
    parts = [{"type": "text", "content": block} for block in blocks]
    asked = [{"role": "user", "parts": parts}]
    made = agent(name, model(answer, hears=asked), **{"gen_ai.input.messages": _json(asked)})
    return using(made, scope="strands.telemetry.tracer")


def _json(value: object) -> str:

    return json.dumps(value)


def _graph(*nodes: Piece) -> Piece:
    made = piece("invoke_graph", *nodes)
    return using(made, "strands.telemetry.tracer", **{"gen_ai.operation.name": "invoke_graph"})


def test_edges_of_a_graph_are_those_that_messages_state_and_not_those_of_time() -> None:
    turn = read(
        _graph(
            _node("intake", "A hall."),
            _node("cook", "Soup.", intake="A hall."),
            _node("florist", "Roses.", intake="A hall."),
            _node("writer", "All set.", cook="Soup.", florist="Roses.", intake="A hall."),
        )
    )
    assert edges(turn) == [
        ("intake", "cook", "sequence"),
        ("intake", "florist", "sequence"),
        ("intake", "writer", "sequence"),
        ("cook", "writer", "sequence"),
        ("florist", "writer", "sequence"),
    ]
    assert {dispatch.basis for dispatch in turn.dispatches} == {"stated"}


def test_a_node_that_is_called_other_than_its_agent_is_the_one_that_answered_so() -> None:
    turn = read(_graph(_node("Head Cook", "Soup."), _node("Writer", "Done.", kitchen="Soup.")))
    assert edges(turn) == [("Head Cook", "Writer", "sequence")]
    assert turn.runs[0].node == "kitchen"


def test_an_answer_that_quotes_the_message_of_a_node_is_no_edge_of_the_node_it_quotes() -> None:
    quoting = "Up.\n\nFrom legal:\n  - Agent: Sue them.\n\nSo says legal."
    turn = read(
        _graph(
            _node("Trader", quoting),
            _node("legal", "All fine."),
            _node("risk", "Low.", **{"market: EU (1)": quoting}),
            _node("writer", "Done.", **{"market: EU (1)": quoting, "risk": "Low."}),
        )
    )
    assert edges(turn) == [
        ("Trader", "risk", "sequence"),
        ("Trader", "writer", "sequence"),
        ("risk", "writer", "sequence"),
    ]
    assert turn.runs[0].node == "market: EU (1)"


def test_nodes_that_were_given_the_task_alone_follow_none() -> None:
    turn = read(_graph(_node("a", "One."), _node("b", "Two."), _node("c", "3", a="One.", b="Two.")))
    assert edges(turn) == [("a", "c", "sequence"), ("b", "c", "sequence")]


def test_each_visit_to_a_node_follows_the_visit_that_it_got_its_input_from() -> None:
    """The nodes of this graph with a cycle have other names than their agents."""
    (trace,) = load_traces(CAPTURES / "strands" / "graph_revisited.json")
    (turn,) = trace.turns
    runs = [run.id for run in turn.runs]
    assert [d.from_run for d in turn.dispatches] == runs[:-1]
    assert [d.runs for d in turn.dispatches] == [[id_] for id_ in runs[1:]]
