"""Inputs that a case states: what should have happened."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.evaluators.judging.subject import Subject
from baton.evaluators.judging.texts import block, piece, plain, raw, value

from .given import Given, Missing, given


def reference(subject: Subject) -> Given | Missing:
    """Return the expected answer."""
    texts = [plain(turn.response) for turn in subject.expected if turn.response is not None]
    return _stated(subject, texts, "response")


def assertion(subject: Subject) -> Given | Missing:
    """Return what the case says has to be true in the end: its rubrics of type ``assertion``."""
    rubrics = [rubric for turn in subject.expected for rubric in turn.rubrics or ()]
    rubrics += subject.case.rubrics if subject.case is not None else []
    texts = [rubric.text for rubric in rubrics if rubric.type == "assertion"]
    return _stated(subject, texts, "rubrics` of type `assertion")


def expected_tools(subject: Subject) -> Given | Missing:
    """Return the tool calls that should happen, in order."""
    return _of_turns(subject, "tool_calls")


def expected_agents(subject: Subject) -> Given | Missing:
    """Return the agents that should run, in order."""
    return _of_turns(subject, "agents")


def expected_dispatches(subject: Subject) -> Given | Missing:
    """Return the hand-offs that should happen."""
    return _of_turns(subject, "dispatches")


def expected_visits(subject: Subject) -> Given | Missing:
    """Return which agents should have their say; of a run those that are its own."""
    visits = [visit for turn in subject.expected for visit in turn.interactions or ()]
    if subject.run is not None:
        visits = [visit for visit in visits if visit.agent in subject.names]
    return _stated(subject, [_json(visit) for visit in visits], "interactions")


def expected_state(subject: Subject) -> Given | Missing:
    """Return the state in which the session should end."""
    state = subject.case.final_state if subject.case is not None else None
    return _stated(subject, [] if state is None else [value(state)], "final_state")


def scenario(subject: Subject) -> Given | Missing:
    """Return what a simulated user was to do: how to start, and the plan."""
    found = subject.case.scenario if subject.case is not None else None
    if found is None:
        return Missing("the case has no scenario: state how the user starts, and the plan", True)
    start, plan = block("the first message:", found.start), block("the plan:", found.plan)
    return given(piece((), *start), piece((), *plan))


def _of_turns(subject: Subject, field: str) -> Given | Missing:
    stated = [getattr(turn, field) for turn in subject.expected]
    return _stated(subject, [_json(each) for each in stated if each is not None], field)


def _json(thing: Any) -> str:
    return value(msgspec.to_builtins(thing))


def _stated(subject: Subject, texts: list[str], field: str) -> Given | Missing:
    if subject.case is None:
        return Missing(f"no expectation: score against a case that states `{field}`", True)
    if not texts:
        where = f"turn {subject.number} of the case" if subject.number else "the case"
        return Missing(f"no expectation: {where} states no `{field}`", True)
    return given(*(raw((), text) for text in texts))
