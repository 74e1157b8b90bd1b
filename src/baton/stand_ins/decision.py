"""The record of a decision: what an agent did up to its dispatch, from the calls to stand-ins.

The play ends before the receiver starts, so a framework's spans or events may not show the dispatch
at all.
"""

from __future__ import annotations

from typing import Any

from baton.model import (
    SCHEMA_VERSION,
    AgentRun,
    Case,
    Content,
    Dispatch,
    HandedOff,
    ProviderError,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
    Usage,
)

from .play import Asked, Play


def decision_trace(case: Case, play: Play, played: Trace | None) -> Trace:
    """Make the trace of a decision.

    Args:
        case: the dispatch case.
        play: the calls to stand-ins.
        played: the framework's own record: the source, the usage, and the answer if the agent made
            no dispatch.

    Raises:
        ProviderError: the case names no sender.
    """
    if case.dispatch is None or case.dispatch.call.sender is None:
        raise ProviderError("the case does not say who made the dispatch: it has no `from`")
    sender = case.dispatch.call.sender
    run = AgentRun(
        id="run1",
        agent=sender,
        input=case.turns[0].input,
        usage=_usage(played, sender),
        unknown=["context", "tools_offered", "model"],
    )
    turn = Turn(id="turn1", input=case.turns[0].input, runs=[run])
    answers = {id(given.asked): given for given in play.given}
    # A tool that ran, and called an agent in its body, is here twice: its call is the dispatch.
    inputs = {(each.name, each.id): each.input for each in play.asked if each.kind == "tool"}
    made = {(each.tool, each.id) for each in play.asked if each.kind == "agent" and each.id}
    for number, asked in enumerate(play.asked, 1):
        if asked.kind == "agent" and id(asked) in answers:
            continue  # it was made before the moment of the case, and got the recorded answer
        if asked.kind == "agent":
            ran = inputs.get((asked.tool or "", asked.id)) if asked.id is not None else None
            arguments = ran if asked.arguments is None else asked.arguments
            _hand_off(turn, run, asked._replace(arguments=arguments), number)
            continue
        if (asked.name, asked.id) in made:
            continue
        given = answers.get(id(asked))
        answer = given.answer if given is not None else None
        run.steps.append(
            ToolCall(
                id=asked.id or f"call{number}",
                name=asked.name,
                arguments=asked.input,
                result=None if answer is None else Content.of(answer.result),
                status=_status(answer),
                error=answer.error if answer is not None else None,
                stand_in=given.by if given is not None else None,
                unknown=["result"] if answer is None else [],
            )
        )
    said = played.turns[-1].output if played is not None and played.turns else None
    if turn.dispatches:
        turn.unknown = ["output"]
        run.unknown.append("output")
    elif said is not None:
        turn.output = run.output = said
        run.steps.append(Said(id="said1", content=said))
    else:
        turn.status = "incomplete"
        turn.unknown = ["output"]
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=case.id,
        case=case.id,
        source=played.source if played is not None else Source(format="python"),
        turns=[turn],
        agents=played.agents if played is not None else {},
        usage=played.usage if played is not None else None,
        unknown=["state", "turn.state"],
    )


def _hand_off(turn: Turn, run: AgentRun, asked: Asked, number: int) -> None:
    prompt = Content.of(asked.input)
    dispatch = Dispatch(
        id=f"dispatch{number}",
        kind=asked.dispatch,
        from_run=run.id,
        from_agent=run.agent,
        to_agent=asked.name,
        prompt=prompt,
        status="unanswered",
        depth=1 if asked.dispatch == "delegate" else 0,
        unknown=["description", "runs", "result", "tools_allowed", "tools_source", "status"],
    )
    turn.dispatches.append(dispatch)
    if asked.tool is not None:
        call = ToolCall(
            id=asked.id or f"call{number}",
            name=asked.tool,
            arguments=asked.arguments,
            status="unanswered",
            dispatch=dispatch.id,
            unknown=[*(["arguments"] if asked.arguments is None else []), "result", "status"],
        )
        dispatch.call = call.id
        run.steps.append(call)
    else:
        dispatch.unknown.append("call")
    if asked.dispatch != "sequence":  # the program starts the next agent, not this one
        run.steps.append(HandedOff(id=f"sent{number}", dispatch=dispatch.id))


def _status(answer: Any) -> Any:
    if answer is None or answer.error is None:
        return "ok"
    return "refused" if answer.refused else "failed"


def _usage(played: Trace | None, sender: str) -> Usage | None:
    runs = [run for turn in played.turns for run in turn.runs] if played is not None else []
    return next((run.usage for run in runs if run.agent == sender), None)
