"""Turn a good run into a case that expects what the run did."""

from __future__ import annotations

import re
from typing import Any

from baton.formats.yaml import dump_yaml
from baton.model import Dispatch, ToolCall, Trace, Turn, known
from baton.model.trace import SESSION
from baton.model.views import agent_chain, tool_calls, turn_tree

_HEAD = """\
# Drafted from a recorded run: the case expects what that run did. Remove what may differ.
# Each part is checked only if an evaluator for it is selected; `agent_chain` checks `agents`.
"""
_NO_INPUT = "not recorded: write the user's message here"


def draft_yaml(traces: list[Trace]) -> str:
    """Write a Baton dataset with one case per trace; cases with the same id get a number."""
    cases: dict[str, dict[str, Any]] = {}
    for trace in traces:
        case = draft_case(trace)
        id_, number = case["id"], 1
        while case["id"] in cases:  # such as `refund`, recorded in two files
            number += 1
            case["id"] = f"{id_}#{number}"
        cases[case["id"]] = case
    return _HEAD + dump_yaml({"cases": list(cases.values())})


def draft_case(trace: Trace) -> dict[str, Any]:
    """Turn a trace into a case, with Baton's own keys; unknown values are left out."""
    case: dict[str, Any] = {"id": trace.case or trace.id}
    begins = trace.attributes.get(SESSION) or {}
    session = {name: begins[name] for name in ("app", "user") if begins.get(name)}
    case |= {"session": session} if session else {}
    case |= {"state": begins["state"]} if begins.get("state") else {}
    questions: list[str] = []
    turns = []
    for turn in trace.turns:
        questions += _facts(turn.input.plain() if turn.input else "")
        turns.append(_turn(trace, turn, questions))
    return case | (turns[0] if len(turns) == 1 else {"turns": turns})


def _turn(trace: Trace, turn: Turn, asked: list[str]) -> dict[str, Any]:
    """Convert a turn to one of a case; ``asked`` are the facts that the user has stated so far."""
    text = turn.input.plain() if turn.input is not None else ""
    spec: dict[str, Any] = {"input": text or _NO_INPUT}
    # An answer without any word says nothing, such as a mask (`***`).
    answer = turn.output.text if turn.output is not None else None
    if answer is not None and (not answer or _WORD.search(answer)):
        spec["response"] = answer
    answer_facts = _facts(answer or "")
    if facts := [
        fact for fact in _of_results(trace, turn) if fact in answer_facts and fact not in asked
    ]:
        spec["response_contains"] = facts[:_MOST_FACTS]
    agents = agent_chain(trace, turn)
    if agents:
        spec["agents"] = agents
    named = {run.id: known(trace, run, "agent") for run in turn.runs}
    # If only the order of runs shows a dispatch, no later run can be expected to repeat it.
    dispatches = [
        dispatch
        for dispatch in turn.dispatches
        if dispatch.basis != "order" and all(named.get(run, True) for run in dispatch.runs)
    ]
    if dispatches:
        spec["dispatches"] = [_dispatch(dispatch, asked) for dispatch in dispatches]
    owners = {step.id: run.agent for run in turn.runs for step in run.steps if named[run.id]}
    # Calls of a delegate can only be found by its name.
    outside = {step.id for node in turn_tree(trace, turn) for step in node.run.steps}
    # In a case, an agent that a delegate transferred to looks like an agent of the main
    # conversation, but ADK would not see its calls.
    started = {d.to_agent for d in turn.dispatches if d.kind == "delegate"}
    taken_over = {d.to_agent for d in turn.dispatches if d.kind not in ("delegate", "return")}
    delegates = started - taken_over
    calls = [
        call
        for call in tool_calls(turn, dispatches="include")
        if call.id in outside or owners.get(call.id) in delegates
    ]
    if calls:
        spec["tools"] = [_tool(call, owners.get(call.id)) for call in calls]
    return spec


def _dispatch(dispatch: Dispatch, asked: list[str]) -> dict[str, Any]:
    spec: dict[str, Any] = {"to": dispatch.to_agent, "kind": dispatch.kind}
    carried = _facts(dispatch.prompt.plain() if dispatch.prompt else "")
    facts = [fact for fact in dict.fromkeys(asked) if fact in carried]
    return spec | ({"prompt_contains": facts[:_MOST_FACTS]} if facts else {})


def _tool(call: ToolCall, owner: str | None) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": call.name}
    if isinstance(call.arguments, dict):
        tool["arguments"] = call.arguments
    return tool | ({"agent": owner} if owner else {})


# Facts that a draft proposes are literal and stable. Literal: a word with a digit in it, or an
# address, with the same spelling in both texts (`R-1001`, `19.99`, `kim@acme.example`). Other words
# may differ in the next run, and a single digit occurs in any text. Stable: what the user stated is
# the same in each run of the case. What a tool returned is assumed to be stable too, except for
# what usually changes each time: times and dates (`2026-03-01T09:00`, `14:30`, `12.05.2026`,
# `12 June 2026`), UUIDs and hashes, and numbers of ten and more digits (`1767225600`).
# A case has few of them, so that a person can check each. Anything longer than an address is data.
_MOST_FACTS = 5
_LONGEST_FACT = 60
_WORD = re.compile(r"[^\W_]")
# A piece of text without blanks, quotes and brackets. A comma belongs to it only in a number:
# `1,204` is one piece, `red,blue` is two.
_PIECE = re.compile(r"(?:[^\s\"'`()\[\]{}<>,;!?=|*\\]|,(?=\d))+")
# `kim@acme.example`, `R-1001` and `19.99`, but not `7` or `tomorrow`.
_FACT = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?=.*\d)(?=.*\w.*\w).+")
# What a tool makes anew each time, as above; not `R-1001` or `19.99`.
_MADE_ANEW = re.compile(
    r"\d{4}-\d\d.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}|.*\d:\d\d.*|(?=.*[\da-f-]{12})[\da-fA-F-]+|.*\d{10}.*"
)


# Months in English, German, French, Spanish and Italian, for a day or a year beside them.
_MONTH = (
    r"(?:jan(?:uary|uar|vier)?|enero|gennaio|feb(?:ruary|ruar|rero|braio)?|février|mar(?:ch|s|zo)?"
    r"|märz|apr(?:ile?)?|avril|abril|ma[iy]|mayo|maggio|june?|juni|juin|junio|giugno|july?|juli"
    r"|juillet|julio|luglio|aug(?:ust)?|août|agosto|sept?(?:ember|embre|iembre)?|settembre"
    r"|o[ck]t(?:ober|obre|ubre)?|ottobre|nov(?:ember|embre|iembre)?|de[cz](?:ember)?|décembre"
    r"|di?ciembre|dicembre)\b"
)
_YEAR = r"(?:19|20)\d\d\b"
# `12 June 2026`, `June 12`, `June 2026`, but not `12 members` or `June` alone.
_DAY = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of| de)? {_MONTH}(?:(?:\.|,| de)? {_YEAR})?"
    rf"|\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? {_YEAR})?|\b{_MONTH}\.? {_YEAR}",
    re.IGNORECASE,
)


def _facts(text: str) -> list[str]:
    pieces = (piece.strip(".:-_/,#") for piece in _PIECE.findall(text))
    # Anything longer is data, such as an image, and not a fact that an agent repeats.
    facts = (piece for piece in pieces if len(piece) <= _LONGEST_FACT and _FACT.fullmatch(piece))
    return list(dict.fromkeys(facts))


def _of_results(trace: Trace, turn: Turn) -> list[str]:
    """Return the facts in the results of tools and other agents, without the unstable ones."""
    calls = tool_calls(turn, dispatches="include")
    results = [c.result for c in calls if c.status == "ok" and known(trace, c, "result")]
    results += [d.result for d in turn.dispatches if d.status == "completed"]
    # The output of a step for the next step of a graph or pipeline is a result that did not come
    # back.
    left = {d.from_run for d in turn.dispatches if d.kind == "sequence"}
    results += [r.output for r in turn.runs if r.id in left and known(trace, r, "output")]
    facts = (fact for result in results if result for fact in _facts(_DAY.sub(" ", result.plain())))
    return [fact for fact in dict.fromkeys(facts) if not _MADE_ANEW.fullmatch(fact)]
