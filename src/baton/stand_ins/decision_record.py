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

from .play import Play, Request


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
    answers = {id(answered.request): answered for answered in play.answers}
    # A tool that ran, and called an agent in its body, is here twice: its call is the dispatch.
    inputs = {(each.name, each.id): each.input for each in play.requests if each.kind == "tool"}
    made = {(each.tool, each.id) for each in play.requests if each.kind == "agent" and each.id}
    for number, request in enumerate(play.requests, 1):
        if request.kind == "agent" and id(request) in answers:
            continue  # it was made before the moment of the case, and got the recorded answer
        if request.kind == "agent":
            ran = inputs.get((request.tool or "", request.id)) if request.id is not None else None
            arguments = ran if request.arguments is None else request.arguments
            _hand_off(turn, run, request._replace(arguments=arguments), number)
            continue
        if (request.name, request.id) in made:
            continue
        answered = answers.get(id(request))
        answer = answered.answer if answered is not None else None
        run.steps.append(
            ToolCall(
                id=request.id or f"call{number}",
                name=request.name,
                arguments=request.input,
                result=None if answer is None else Content.of(answer.result),
                status=_status(answer),
                error=answer.error if answer is not None else None,
                stand_in=answered.by if answered is not None else None,
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


def _hand_off(turn: Turn, run: AgentRun, request: Request, number: int) -> None:
    prompt = Content.of(request.input)
    dispatch = Dispatch(
        id=f"dispatch{number}",
        kind=request.dispatch,
        from_run=run.id,
        from_agent=run.agent,
        to_agent=request.name,
        prompt=prompt,
        status="unanswered",
        depth=1 if request.dispatch == "delegate" else 0,
        unknown=["description", "runs", "result", "tools_allowed", "tools_source", "status"],
    )
    turn.dispatches.append(dispatch)
    if request.tool is not None:
        call = ToolCall(
            id=request.id or f"call{number}",
            name=request.tool,
            arguments=request.arguments,
            status="unanswered",
            dispatch=dispatch.id,
            unknown=[*(["arguments"] if request.arguments is None else []), "result", "status"],
        )
        dispatch.call = call.id
        run.steps.append(call)
    else:
        dispatch.unknown.append("call")
    if request.dispatch != "sequence":  # the program starts the next agent, not this one
        run.steps.append(HandedOff(id=f"sent{number}", dispatch=dispatch.id))


def _status(answer: Any) -> Any:
    if answer is None or answer.error is None:
        return "ok"
    return "refused" if answer.refused else "failed"


def _usage(played: Trace | None, sender: str) -> Usage | None:
    runs = [run for turn in played.turns for run in turn.runs] if played is not None else []
    return next((run.usage for run in runs if run.agent == sender), None)
