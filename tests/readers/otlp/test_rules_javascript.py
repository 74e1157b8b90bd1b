"""What OpenInference writes in JavaScript, where it differs from Python."""

from __future__ import annotations

import json

import pytest

from baton.readers.otlp.span import thrown_in_javascript

from .spans import (
    Piece,
    agent,
    chain,
    edges,
    model,
    only,
    piece,
    read,
    read_trace,
    spans,
    tool,
    tools,
    using,
    workflow,
)

_OF = "@arizeai/openinference-instrumentation-"
_STACK = "\n    at run (app.js:3:1)\n    at main (app.js:9:1)"


def _span(package: str, kind: str, name: str, *inside: Piece, **told: str) -> Piece:
    error = told.pop("error", None)
    made = piece(name, *inside, error=error)
    return using(made, _OF + package, **{"openinference.span.kind": kind}, **told)


@pytest.mark.parametrize(
    ("status", "thrown"),
    [
        (f"boom\n\nError: boom{_STACK}", ("Error", "boom")),
        (f"\n\nParentCommand{_STACK}", ("ParentCommand", "")),
        (f"[\n  1\n]\n\nGraphInterrupt: [\n  1\n]{_STACK}", ("GraphInterrupt", "[\n  1\n]")),
        (f"{'long ' * 500}\n\nTypeError: {'long ' * 500}{_STACK}", ("TypeError", "long " * 500)),
        (f"two\n\nparts\n\nError: two\n\nparts{_STACK}", ("Error", "two\n\nparts")),
        ("boom", None),
        (f"boom{_STACK}", None),
        (f"boom\n\nError: other{_STACK}", None),
        ("", None),
    ],
)
def test_class_and_message_of_an_error_are_found_in_its_stack(
    status: str, thrown: tuple[str, str] | None
) -> None:
    assert thrown_in_javascript(status) == thrown


def test_the_message_of_a_failed_tool_has_no_stack() -> None:
    failed = _span("langchain", "TOOL", "stock", error=f"locked\n\nError: locked{_STACK}")
    [call] = tools(read(_span("langchain", "AGENT", "buyer", failed)).runs[0])
    assert (call.status, call.error) == ("failed", "locked")


def test_a_hand_off_has_the_names_of_both_agents() -> None:
    passing = _span(
        "openai-agents",
        "TOOL",
        "handoff to Clerk",
        **{
            "tool.name": "handoff_to_Clerk",
            "input.value": '{"from_agent":"Usher"}',
            "output.value": '{"to_agent":"Clerk"}',
        },
    )
    agents = [
        _span("openai-agents", "AGENT", "Usher", passing),
        _span("openai-agents", "AGENT", "Clerk"),
    ]
    turn = read(_span("openai-agents", "CHAIN", "Agent workflow", *agents))
    assert chain(turn) == ["Usher", "Clerk"]
    assert edges(turn) == [("Usher", "Clerk", "transfer")]


@pytest.mark.parametrize(
    ("first", "second", "followed"),
    [
        ((1.003, 1.022045), 1.022, True),
        ((1.003, 1.0232), 1.022, False),  # a whole millisecond later
        ((1.022, 1.022045), 1.022, False),  # both started together
        ((1.0031, 1.022045), 1.0214, False),  # another clock, which counts fractions
    ],
)
def test_an_agent_may_start_in_the_millisecond_in_which_the_one_before_it_ends(
    first: tuple[float, float], second: float, followed: bool
) -> None:
    made = spans(workflow("watch", agent("first", model("Four.")), agent("second", model("Five."))))
    for each in made:
        at = 1e9 + second
        if each.name == "invoke_agent second":
            each.started, each.ended = at, at + 0.01
        elif each.name == "invoke_agent first":
            each.started, each.ended = (1e9 + time for time in first)
        elif each.name == "invoke_workflow watch":
            each.started, each.ended = 1e9 + 1, 1e9 + 2
        else:
            each.started, each.ended = at, at
    [turn] = read_trace(made).turns
    assert edges(turn) == ([("first", "second", "sequence")] if followed else [])


def test_google_adk_names_the_target_of_a_transfer_in_camel_case() -> None:
    called = tool("transfer_to_agent", args={"agentName": "pilot"})
    turn = read(agent("captain", model("", calls=[]), called))
    assert (only(turn).to_agent, only(turn).prompt) == ("pilot", None)


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [('{"error": "no sensor"}', "failed", "no sensor"), ('{"result": 4}', "ok", None)],
)
def test_a_tool_of_google_adk_that_says_nothing_fails_if_its_answer_is_an_error(
    answer: str, status: str, error: str | None
) -> None:
    def request(heard: str, said: str, *inside: Piece) -> Piece:
        told = {
            "gen_ai.request.model": "gemini",
            "gcp.vertex.agent.llm_request": f'{{"contents": [{heard}]}}',
            "gcp.vertex.agent.llm_response": f'{{"content": {said}}}',
        }
        return using(piece("call_llm", *inside), "gcp.vertex.agent", **told)

    asked = '{"role": "user", "parts": [{"text": "Tide?"}]}'
    called = '{"role": "model", "parts": [{"functionCall": {"name": "tide", "args": {}}}]}'
    response = f'{{"functionResponse": {{"name": "tide", "response": {answer}}}}}'
    answered = f'{{"role": "user", "parts": [{response}]}}'
    bare = using(piece("execute_tool tide"), "gcp.vertex.agent")
    said = '{"role": "model", "parts": [{"text": "Done."}]}'
    made = agent(
        "captain",
        request(asked, called, bare),
        request(f"{asked}, {called}, {answered}", said),
    )
    [call] = tools(read(using(made, "gcp.vertex.agent")).runs[0])
    assert (call.status, call.error) == (status, error)


def test_an_agent_of_a_graph_without_tools_is_itself_although_its_start_has_a_span() -> None:
    def at(kind: str, name: str, place: str, *inside: Piece, **told: str) -> Piece:
        metadata = json.dumps({"langgraph_node": name, "langgraph_checkpoint_ns": place})
        return _span("langchain", kind, name, *inside, metadata=metadata, **told)

    said = {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Written.",
    }
    inner = [
        at("CHAIN", "__start__", "writer:1|__start__:2"),
        at("CHAIN", "agent", "writer:1|agent:3", at("LLM", "agent", "writer:1|agent:3", **said)),
    ]
    graph = at("CHAIN", "writer", "writer:1", at("CHAIN", "writer", "writer:1", *inner))
    turn = read(_span("langchain", "CHAIN", "LangGraph", graph))
    assert chain(turn) == ["writer"]
