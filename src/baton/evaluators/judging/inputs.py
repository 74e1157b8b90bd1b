"""All inputs that a rubric can request, by name."""

from __future__ import annotations

from baton.model import Unit

from . import dispatch_inputs as dispatch
from . import turn_inputs as turn
from .material import Given, Input, Missing

__all__ = ["INPUTS", "Given", "Input", "Missing", "input_of", "names_for"]


_ALL: tuple[Unit, ...] = ("trace", "turn", "run", "dispatch", "tool_call")
_TURNS: tuple[Unit, ...] = ("trace", "turn", "run", "tool_call")
_LATER: tuple[Unit, ...] = ("turn", "run", "dispatch", "tool_call")
_D: tuple[Unit, ...] = ("dispatch",)
_R: tuple[Unit, ...] = ("run",)
_T: tuple[Unit, ...] = ("tool_call",)
_NOTHING = "there is nothing"


INPUTS: dict[str, tuple[Input, ...]] = {
    "request": (
        Input("What the user asked", _ALL, turn.request, "the user's message", "no message"),
    ),
    "history": (
        Input(
            "The conversation before",
            _LATER,
            turn.history,
            "the turns before, as user and agents spoke",
            "this is where the conversation starts",
        ),
    ),
    "conversation": (
        Input(
            "The conversation",
            _ALL,
            turn.conversation,
            "what user and agents said, up to and with what is judged",
        ),
    ),
    "answer": (
        Input("The answer", _ALL, turn.answer, "the answer of the run or turn", "no answer"),
    ),
    "answers": (
        Input("What the agents said", _TURNS, turn.answers, "all that was said on the way"),
    ),
    "before": (
        Input(
            "What the caller saw and did before",
            _D,
            dispatch.before,
            "the caller's own input, and its steps up to the dispatch",
            "it handed the work on at once",
        ),
        Input(
            "What the agent saw and did before",
            _T,
            turn.before,
            "the agent's input, and its steps up to the call",
            "it called the tool at once",
        ),
        Input(
            "What the agents before it did",
            _R,
            turn.others,
            "the steps of the agents that started before, in the same turn",
            "it was the first",
        ),
    ),
    "call": (
        Input(
            "The dispatch, word for word",
            _D,
            dispatch.call,
            "prompt, context, tools allowed",
        ),
        Input("The tool call", _T, turn.call, "the tool and its arguments"),
    ),
    "received": (
        Input(
            "What the receiver was really given",
            _D,
            dispatch.received,
            "the receiver's input and instructions",
            "nothing",
        ),
        Input("What the agent was given", _R, turn.received, "the agent's input", "nothing"),
    ),
    "transcript": (
        Input("All that the receiver did", _D, dispatch.transcript, "the receiver's steps"),
        Input("All that the agents did", _TURNS, turn.transcript, "every step of the agents"),
    ),
    "result": (
        Input("What came back", _D, dispatch.result, "the result of the dispatch, or its error"),
        Input("What came back", _T, turn.result, "the result of the call", _NOTHING),
    ),
    "after": (
        Input(
            "What the caller did then",
            _D,
            dispatch.after,
            "the caller's steps once the answer was there, and the answer to the user",
            "it did nothing more",
        ),
    ),
    "siblings": (
        Input(
            "What else the caller handed out in this turn",
            _D,
            dispatch.siblings,
            "the other dispatches of the caller",
            _NOTHING,
        ),
    ),
    "own_tools": (
        Input(
            "Tools of the caller itself",
            _D,
            dispatch.own_tools,
            "the caller's tools",
            "none",
        ),
    ),
    "catalogue": (
        Input(
            "The agents there are",
            _ALL,
            turn.catalogue,
            "descriptions and tools of all agents",
        ),
    ),
    "tools": (
        Input("Tools of the agents", _TURNS, turn.tools, "the tools each agent has", "none"),
    ),
    "tool_calls": (
        Input(
            "Tool calls",
            _ALL,
            turn.tool_calls,
            "the calls with arguments and results",
            "no tool was called",
        ),
    ),
    "sources": (
        Input(
            "What was looked up",
            _ALL,
            turn.sources,
            "results of tools and of dispatches, and what was cited",
            "nothing was looked up",
        ),
    ),
    "instructions": (
        Input(
            "What the agents are told",
            _ALL,
            turn.instructions,
            "the instructions of the agents",
        ),
    ),
    "state": (
        Input(
            "The state of the session",
            _ALL,
            turn.state,
            "after the turn, or at the end",
            "none",
        ),
    ),
    "reference": (
        Input(
            "The expected answer",
            _ALL,
            turn.reference,
            "the `response` that the case states",
        ),
    ),
    "assertion": (
        Input(
            "What has to be true in the end",
            _ALL,
            turn.assertion,
            "rubrics of type `assertion` of the case",
        ),
    ),
    "expected_tools": (
        Input("Expected tool calls", _ALL, turn.expected_tools, "`tool_calls` of the case"),
    ),
    "expected_agents": (
        Input("Expected agents", _ALL, turn.expected_agents, "`agents` of the case"),
    ),
    "expected_dispatches": (
        Input("Expected dispatches", _ALL, turn.expected_dispatches, "`dispatches` of the case"),
    ),
    "expected_visits": (
        Input(
            "What agents were expected to say",
            _ALL,
            turn.expected_visits,
            "`interactions` of the case",
        ),
    ),
    "expected_state": (
        Input("The expected state", _ALL, turn.expected_state, "`final_state` of the case"),
    ),
    "scenario": (
        Input("What the user was to do", _ALL, turn.scenario, "the scenario of the case"),
    ),
}
"""Each name has one input for some units, or several inputs for different units."""


FOREIGN_INPUTS = {
    "supervisor_pre_dispatch_context": "before",
    "task_tool_input": "call",
    "subagent_catalog": "catalogue",
    "subagent_prompt": "call",
    "subagent_allowed_tools": "call",
    "subagent_turn_transcript": "transcript",
    "task_tool_return_value": "result",
    "supervisor_post_dispatch_turn": "after",
}
"""The names of our inputs in ai-evaluation's ``input_mapping``. All are about a dispatch."""


def input_of(name: str, unit: Unit) -> Input | None:
    """Return the input of a unit by name, or ``None`` if the unit has no such input."""
    return next((each for each in INPUTS.get(name, ()) if unit in each.units), None)


def names_for(unit: Unit) -> list[str]:
    """Return the names of a unit's inputs."""
    return [name for name in INPUTS if input_of(name, unit) is not None]
