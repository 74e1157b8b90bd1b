"""What agents of ADK were given is told where definitions tell, and never guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from baton import load_traces
from baton.model import AgentRun, Score, Trace, known
from baton.model.views import index_of
from baton.testing import verdict

FOUND = "Order 5521 went out as parcel SPL-88."


def event(author: str, text: str, turn: int = 1, **more: Any) -> dict[str, Any]:
    role = "user" if author == "user" else "model"
    said = {"role": role, "parts": [{"text": text}]}
    return {"author": author, "invocationId": f"i{turn}", "content": said, **more}


def card(*sub_agents: str, **more: Any) -> dict[str, Any]:
    return {"sub_agents": list(sub_agents), **more}


PIPELINE = card("finder", "writer", kind="workflow")


def read(
    folder: Path, events: list[dict[str, Any]], **agents: dict[str, Any]
) -> tuple[Trace, list[AgentRun]]:
    session = {"id": "s", "appName": "app", "userId": "u", "state": {}, "events": events}
    (folder / "s.session.json").write_text(json.dumps(session))
    (folder / "agents.json").write_text(json.dumps({"agents": agents}))
    (trace,) = load_traces(folder / "s.session.json", agents=folder / "agents.json")
    return trace, [run for turn in trace.turns for run in turn.runs]


def given(trace: Trace, run: AgentRun) -> list[str]:
    said = index_of(trace).sayings
    texts = []
    for ref in run.context or []:
        what: Any = said[ref.id or ""]
        texts.append(getattr(what, "content", what).plain())
    return texts


ASKED = [event("user", "Where is order 5521?"), event("finder", FOUND)]


def test_who_shares_the_history_was_given_all_of_the_session(tmp_path: Path) -> None:
    more = [event("writer", "It is on its way."), event("user", "When?", 2)]
    events = [*ASKED, *more, event("writer", "Tomorrow.", 2)]
    trace, runs = read(tmp_path, events, finder=card(), writer=card(shares_history=True))
    assert [known(trace, run, "context") for run in runs] == [False, True, True]
    assert runs[1].input == trace.turns[0].input
    assert given(trace, runs[1]) == [FOUND]
    assert given(trace, runs[2]) == ["Where is order 5521?", FOUND, "It is on its way."]


def test_who_has_no_history_was_given_the_last_words_of_somebody_else(tmp_path: Path) -> None:
    lone = card(shares_history=False)
    more = [event("writer", "Ok."), event("user", "When?", 2), event("writer", "Soon.", 2)]
    trace, runs = read(tmp_path, [*ASKED, *more], finder=lone, writer=lone)
    assert [run.context for run in runs] == [[], [], []]
    assert [run.input and run.input.text for run in runs] == [
        "Where is order 5521?", FOUND, "When?",
    ]  # fmt: skip
    call = {"functionCall": {"id": "c", "name": "look", "args": {}}}
    done = event("finder", FOUND)
    done["content"]["parts"].append(call)
    trace, runs = read(tmp_path, [ASKED[0], done, event("writer", "Ok.")], writer=lone)
    assert not known(trace, runs[1], "context")


def test_agents_side_by_side_were_not_given_what_the_other_said(tmp_path: Path) -> None:
    events = [
        event("user", "Two quotes."),
        event("planner", "Ask both."),
        event("law", "No objection.", branch="both.law"),
        event("cost", "It costs 40.", branch="both.cost"),
        event("letter", "Fine."),
    ]
    names = ("planner", "law", "cost", "letter")
    agents = {name: card(shares_history=True) for name in names}
    trace, runs = read(tmp_path, events, **agents)
    assert given(trace, runs[2]) == ["Ask both."]
    assert given(trace, runs[3]) == ["Ask both.", "No objection.", "It costs 40."]


@pytest.mark.parametrize(
    "first",
    [
        event("finder", "An answer to what is not in the file."),
        event("user", "hi", actions={"rewindBeforeInvocationId": "i0"}),
        event("user", "hi", actions={"compaction": {"compactedContent": {}}}),
    ],
)
def test_of_half_a_session_no_context_is_claimed(tmp_path: Path, first: dict[str, Any]) -> None:
    agents = {name: card(shares_history=True) for name in ("finder", "writer")}
    trace, runs = read(tmp_path, [first, *ASKED, event("writer", "Ok.")], **agents)
    assert not any(known(trace, run, "context") for run in runs)


def carried(trace: Trace) -> Score:
    return verdict("context_carried", trace)


def test_a_sequence_of_a_workflow_is_judged_where_definitions_name_the_workflow(
    tmp_path: Path,
) -> None:
    events = [*ASKED, event("writer", "Your parcel is on its way.")]
    trace, _ = read(tmp_path, events, pipeline=PIPELINE, writer=card(shares_history=True))
    assert trace.turns[0].dispatches[0].basis == "structure"
    score = carried(trace)
    assert (score.status, score.value, score.subject) == ("passed", 1, ["dispatch1"])
    # What the writer was given is unknown: what it repeats, it had; else it is unknown.
    trace, _ = read(tmp_path, events, pipeline=PIPELINE)
    assert carried(trace).status == "skipped"
    trace, _ = read(tmp_path, [*ASKED, event("writer", "SPL-88 is near.")], pipeline=PIPELINE)
    assert carried(trace).status == "passed"


def test_without_a_workflow_a_sequence_is_known_by_order_and_the_skip_says_what_helps(
    tmp_path: Path,
) -> None:
    events = [*ASKED, event("writer", "SPL-88 is near.")]
    desk = card("finder", "writer")
    trace, _ = read(tmp_path, events, desk=desk)
    assert trace.turns[0].dispatches[0].basis == "order"
    score = carried(trace)
    assert score.status == "skipped"
    assert "1 dispatch known only from the order of runs" in score.reason
    assert "`sub_agents`" in score.reason
