"""Converts a function's answer to one message to a turn: text, or a dict with more."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from baton.formats.explain_mistakes import explain, path_text
from baton.formats.strands import Session, TaskOutput
from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    Dropped,
    GotBack,
    HandedOff,
    ProviderError,
    Said,
    ToolCall,
    Turn,
    Usage,
    suggestion,
    usage_problems,
)
from baton.model.views import sum_usage
from baton.readers.builder import TraceBuilder
from baton.readers.strands.reader import list_turn, state_of
from baton.readers.strands.session import SessionTurns

from .user_functions import NOT_JSON, as_json

_NOT_TOLD = (
    "call", "description", "tools_allowed", "tools_source", "started", "ended", "group", "mode",
)  # fmt: skip


class StatedDispatch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A dispatch: ``to`` an agent, ``from`` another one (by default from the program).

    Without ``prompt`` or ``result``, they are unknown.
    """

    to: str
    sender: str | None = msgspec.field(default=None, name="from")
    kind: Literal["transfer", "delegate", "sequence"] = "transfer"
    prompt: Any = msgspec.UNSET
    result: Any = msgspec.UNSET
    error: str | None = None


def add_dispatches(turn: Turn, stated: list[StatedDispatch], *, runs_told: bool) -> None:
    """Add dispatches, each to the first run of its receiver that nothing has started yet.

    If runs are not stated, senders and receivers are only names.

    Raises:
        ProviderError: a sender is not one of the turn's agents, or the receiver opens the turn.
    """
    for number, one in enumerate(stated, 1):
        untold = [name for name in ("prompt", "result") if getattr(one, name) is msgspec.UNSET]
        dispatch = Dispatch(
            id=f"{turn.id}-dispatch{number}",
            kind=one.kind,
            from_agent=one.sender,
            to_agent=one.to,
            prompt=None if one.prompt is msgspec.UNSET else Content.of(one.prompt),
            result=None if one.result is msgspec.UNSET else Content.of(one.result),
            error=one.error,
            unknown=[*_NOT_TOLD, *untold],
        )
        turn.dispatches.append(dispatch)
        if runs_told:
            _place(turn, dispatch, number)
        else:
            dispatch.unknown += ["from_run", "runs", "depth"]
            dispatch.status = "failed" if one.error is not None else "unknown"


def _place(turn: Turn, dispatch: Dispatch, number: int) -> None:
    """Link a dispatch with the run that made it and the run that it started.

    It started the first free run of the receiver; the last run of the sender before that made it.
    """
    runs = turn.runs
    first = 0  # the program's dispatch, which comes before everything that it starts
    if dispatch.from_agent is not None:
        senders = [place for place, run in enumerate(runs) if run.agent == dispatch.from_agent]
        if not senders:
            hint = suggestion(dispatch.from_agent, {run.agent for run in runs})
            raise ProviderError(
                f"dispatches[{number - 1}]: `{dispatch.from_agent}` is not among `agents`; {hint}"
            )
        first = senders[0]
    receiver = next(
        (run for run in runs[first + 1 :] if run.agent == dispatch.to_agent and not run.started_by),
        None,
    )
    if dispatch.from_agent is None:
        if receiver is None and runs and runs[0].agent == dispatch.to_agent:
            raise ProviderError(
                f"dispatches[{number - 1}]: `{dispatch.to_agent}` is the first of `agents`: the "
                "message starts it, not a dispatch; state `from`, or leave it out"
            )
        sender = None
    else:
        end = runs.index(receiver) if receiver is not None else len(runs)
        sender = [run for run in runs[:end] if run.agent == dispatch.from_agent][-1]
    started_by = sender.started_by if sender else []
    above = max((one.depth for one in turn.dispatches if one.id in started_by), default=0)
    dispatch.depth = above + (dispatch.kind == "delegate")
    if dispatch.error is not None:
        dispatch.status = "failed"
    elif receiver is None and dispatch.result is None:
        dispatch.status = "unanswered"
    else:
        dispatch.status = "completed"
    if receiver is not None:
        dispatch.runs = [receiver.id]
        receiver.started_by.append(dispatch.id)
    if sender is None:
        return
    dispatch.from_run = sender.id
    if dispatch.kind != "sequence":
        sender.steps.append(HandedOff(id=f"{dispatch.id}-sent", dispatch=dispatch.id))
    if dispatch.kind == "delegate" and dispatch.result is not None:
        sender.steps.append(GotBack(id=f"{dispatch.id}-back", dispatch=dispatch.id))


class StatedCall(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A tool call; without ``agent`` the first agent made it.

    Arguments and a result that are left out are unknown.
    """

    name: str
    arguments: Any = msgspec.UNSET
    result: Any = msgspec.UNSET
    agent: str | None = None
    error: str | None = None


class StatedTurn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The stated turn; left-out fields are unknown, empty ones are known.

    ``structured`` is the structured output in addition to a text; ``output`` alone may be either.
    """

    output: Any = msgspec.UNSET
    structured: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET
    agents: list[str] | msgspec.UnsetType = msgspec.UNSET
    tool_calls: list[StatedCall] | msgspec.UnsetType = msgspec.UNSET
    dispatches: list[StatedDispatch] | msgspec.UnsetType = msgspec.UNSET
    usage: Usage | msgspec.UnsetType = msgspec.UNSET
    error: str | None = None


class Stated(NamedTuple):
    """A turn, the usage of all its agents, and values without a place in the turn."""

    turn: Turn
    usage: Usage | None
    dropped: tuple[Dropped, ...] = ()


def stated_turn(answer: Any, id_: str) -> Stated:
    """Turn text or a dict into a turn; a dict with none of our keys is structured output.

    So is what a task function of Strands' evaluation SDK returns: ``output`` with ``trajectory``
    (names of tools, calls, nodes, or a ``Session``), ``interactions`` or ``environment_state``.

    Raises:
        ProviderError: it is neither, or a key or value of the dict is wrong.
    """
    if isinstance(answer, dict) and _is_task_output(answer):
        return _of_task(answer, id_)
    return turn_of(_read(answer), id_)


def _is_task_output(answer: dict[Any, Any]) -> bool:
    """Return whether it is a Strands task's result; ``trajectory`` alone can be structured data."""
    keys = {*TaskOutput.__struct_fields__}
    return {*answer} <= keys and "output" in answer and bool({*answer} - {"output", "input"})


def _of_task(answer: dict[str, Any], id_: str) -> Stated:
    plain = {key: _dumped(value) for key, value in answer.items()}
    try:
        wire = msgspec.convert(msgspec.json.decode(as_json(plain)), TaskOutput)
    except NOT_JSON as error:
        raise ProviderError(f"the function returned a value that is not JSON: {error}") from None
    except msgspec.ValidationError as error:
        raise ProviderError(f"the function returned an invalid dict: {error}") from None
    if isinstance(wire.trajectory, Session):
        read = SessionTurns(wire.trajectory)
        if len(read.turns) != 1:
            raise ProviderError(
                f"the function returned a session of {len(read.turns)} traces: it may hold only "
                "the trace of this message; clear the exporter before each call"
            )
        turn, dropped = read.turns[0], read.dropped()
        if wire.interactions:
            what = "an interaction beside a session"
            dropped.append(Dropped(what=what, count=len(wire.interactions)))
    else:
        turn, dropped = list_turn(wire.trajectory, wire.interactions, TraceBuilder())
    _set_ids(turn, id_)
    turn.state, lost = state_of(wire.environment_state)
    turn.output, turn.status = Content.of(wire.output), "completed"
    turn.unknown = [name for name in turn.unknown if name != "output"]
    if wire.input is not msgspec.UNSET:
        turn.input = Content.of(wire.input)
    return Stated(turn, None, (*dropped, *lost))


def _dumped(value: Any) -> Any:
    """Return the plain data of objects of the SDK, which are pydantic models."""
    if isinstance(value, list):
        return [_dumped(each) for each in value]
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else value


def _set_ids(turn: Turn, id_: str) -> None:
    """Assign unique ids to a turn that was read separately."""

    def own(id__: str | None) -> str | None:
        return id__ if id__ is None else id_ if id__ == turn.id else f"{id_}-{id__}"

    for run in turn.runs:
        run.id, run.started_by = f"{id_}-{run.id}", [f"{id_}-{each}" for each in run.started_by]
        for ref in run.context or ():
            ref.id = own(ref.id)
        for step in run.steps:
            step.id = f"{id_}-{step.id}"
            if not isinstance(step, Said):
                step.dispatch = own(step.dispatch)
    for made in turn.dispatches:
        made.id, made.runs = f"{id_}-{made.id}", [f"{id_}-{each}" for each in made.runs]
        made.from_run, made.call = own(made.from_run), own(made.call)
        made.continues, made.answers = own(made.continues), own(made.answers)
    turn.id = id_


def with_recorded(stated: Stated, recorded: Turn) -> Stated:
    """Fill in what the answer leaves out from the program's recording of its agents.

    Raises:
        ProviderError: the answer states agents, calls or dispatches as well.
    """
    turn = stated.turn
    if not {"runs", "dispatches"} <= {*turn.unknown}:
        raise ProviderError(
            "the function records its agents and returns `agents`, `tool_calls` or `dispatches` as "
            "well: leave one of them out"
        )
    turn.runs, turn.dispatches = recorded.runs, recorded.dispatches
    turn.unknown = [name for name in turn.unknown if name not in ("runs", "dispatches")]
    if "output" in turn.unknown and recorded.output is not None:
        turn.output = recorded.output
        turn.unknown.remove("output")
    usage = stated.usage or sum_usage([run.usage for run in recorded.runs])
    return stated._replace(usage=usage)


def turn_of(said: StatedTurn, id_: str) -> Stated:
    """Make a turn from an answer; raises ProviderError for contradictions."""
    names = said.agents if said.agents is not msgspec.UNSET else None
    turn = Turn(id=id_, error=said.error)
    turn.status = "completed" if said.error is None else "failed"
    if said.output is not msgspec.UNSET:
        turn.output = Content.of(said.output)
    elif said.structured is msgspec.UNSET:
        turn.unknown.append("output")
    if said.structured is not msgspec.UNSET and said.structured is not None:
        if turn.output is not None and turn.output.data is not None:
            raise ProviderError(
                "the function returned an invalid dict: `output` is not a text, and "
                "`structured` also states the structured output: leave one of them out"
            )
        turn.output = turn.output or Content()
        turn.output.data = said.structured
    turn.runs = [AgentRun(id=f"{id_}-run{n}", agent=name) for n, name in enumerate(names or (), 1)]
    calls_told = said.tool_calls is not msgspec.UNSET
    if said.tool_calls or said.usage or (calls_told and names is None):
        # The calls are known, even if there are none.
        turn.runs = turn.runs or [AgentRun(id=f"{id_}-run1", agent="main", unknown=["agent"])]
    if names is None and not calls_told:
        turn.unknown.append("runs")
    for number, stated in enumerate(said.tool_calls or (), 1):
        owner = next((run for run in turn.runs if run.agent == stated.agent), None)
        if owner is None and stated.agent is not None:
            hint = "list the agents that ran under `agents`"
            if said.agents is not msgspec.UNSET:
                hint = suggestion(stated.agent, said.agents)
            raise ProviderError(
                f"tool_calls[{number - 1}]: `{stated.agent}` is not among `agents`; {hint}"
            )
        fields = {
            name: value
            for name, value in (("arguments", stated.arguments), ("result", stated.result))
            if value is not msgspec.UNSET
        }
        call = ToolCall(
            id=f"{turn.id}-call{number}",
            name=stated.name,
            arguments=fields.get("arguments"),
            result=Content.of(fields.get("result")),
            status="ok" if stated.error is None else "failed",
            error=stated.error,
            unknown=[name for name in ("arguments", "result") if name not in fields],
        )
        (owner or turn.runs[0]).steps.append(call)
    if said.dispatches is msgspec.UNSET:
        turn.unknown.append("dispatches")
    else:
        add_dispatches(turn, said.dispatches, runs_told=names is not None)
    calls_told = said.tool_calls is not msgspec.UNSET
    for run in turn.runs:
        run.unknown += ["steps.said", "input", "output", "tools_offered", "model", "inside"]
        if not calls_told:
            run.unknown.append("steps.tool_call")
        run.unknown += ["started", "ended"]
    for made in turn.dispatches if calls_told else ():
        made.unknown.remove("call")  # these are all calls, and none of them hands over
    if len(turn.runs) == 1:
        turn.runs[0].usage = _usage(said)
    for run in turn.runs:
        if run.usage is None:
            run.unknown.append("usage")
    return Stated(turn, _usage(said))


def _read(answer: Any) -> StatedTurn:
    if not isinstance(answer, str | dict):
        kind = "nothing" if answer is None else type(answer).__name__
        raise ProviderError(
            f"the function returned {kind}: it has to return text, a dict or a Trace"
        )
    try:
        answer = msgspec.json.decode(as_json(answer))
    except NOT_JSON as error:
        raise ProviderError(f"the function returned a value that is not JSON: {error}") from None
    if isinstance(answer, str):
        return StatedTurn(output=answer)
    keys = StatedTurn.__struct_fields__
    if not any(key in keys for key in answer):
        return StatedTurn(output=answer)
    for key in answer:
        if key not in keys:
            hint = suggestion(key, keys)
            raise ProviderError(f"the function returned a dict with `{key}`; {hint}")
    try:
        return msgspec.convert(answer, StatedTurn)
    except msgspec.ValidationError:
        faults = explain(answer, StatedTurn)
        problems = "; ".join(f"{path_text(fault.path)}: {fault.message}" for fault in faults)
        raise ProviderError(f"the function returned an invalid dict: {problems}") from None


def _usage(said: StatedTurn) -> Usage | None:
    if said.usage is msgspec.UNSET:
        return None
    usage = said.usage
    for problem in usage_problems(usage):
        raise ProviderError(f"the function returned an invalid dict: {problem}")
    if usage.cost_usd is None or usage.cost_from is not None:
        return usage
    return msgspec.structs.replace(usage, cost_from="source")
