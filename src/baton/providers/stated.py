"""What a function says of one message, as a turn: text, or a dict that tells more."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from baton.formats.explain import explain, path_text
from baton.model import AgentRun, ProviderError, ToolCall, Turn, Usage, suggestion, usage_problems

from .plain import NOT_JSON, as_json
from .stated_dispatches import StatedDispatch, add_dispatches, content_of


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
    """What happened; what is left out is unknown, what is empty is not."""

    output: Any = msgspec.UNSET
    agents: list[str] | msgspec.UnsetType = msgspec.UNSET
    tool_calls: list[StatedCall] | msgspec.UnsetType = msgspec.UNSET
    dispatches: list[StatedDispatch] | msgspec.UnsetType = msgspec.UNSET
    usage: Usage | msgspec.UnsetType = msgspec.UNSET
    error: str | None = None


class Stated(NamedTuple):
    """A turn, and what all its agents used together."""

    turn: Turn
    usage: Usage | None


def stated_turn(answer: Any, id_: str) -> Stated:
    """Turn text or a dict into a turn; a dict with none of our keys is structured output.

    Raises:
        ProviderError: it is neither, or a key or value of the dict is wrong.
    """
    return turn_of(_read(answer), id_)


def turn_of(said: StatedTurn, id_: str) -> Stated:
    """Make a turn of what was said; raises ProviderError where that contradicts itself."""
    names = said.agents if said.agents is not msgspec.UNSET else None
    turn = Turn(id=id_, error=said.error)
    turn.status = "completed" if said.error is None else "failed"
    if said.output is msgspec.UNSET:
        turn.unknown.append("output")
    else:
        turn.output = content_of(said.output)
    turn.runs = [AgentRun(id=f"{id_}-run{n}", agent=name) for n, name in enumerate(names or (), 1)]
    calls_told = said.tool_calls is not msgspec.UNSET
    if said.tool_calls or said.usage or (calls_told and names is None):
        # Somebody made them, or is known to have made none.
        turn.runs = turn.runs or [AgentRun(id=f"{id_}-run1", agent="main", unknown=["agent"])]
    if names is None and not calls_told:
        turn.unknown.append("runs")
    _add_calls(turn, said)
    if said.dispatches is msgspec.UNSET:
        turn.unknown.append("dispatches")
    else:
        add_dispatches(turn, said.dispatches, runs_told=names is not None)
    _name_unknown(turn, said)
    return Stated(turn, _usage(said))


def _read(answer: Any) -> StatedTurn:
    if not isinstance(answer, str | dict):
        kind = "nothing" if answer is None else type(answer).__name__
        raise ProviderError(
            f"the function returned {kind}: it has to return text, a dict or a Trace"
        )
    answer = _plain(answer)
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
        said = "; ".join(f"{path_text(fault.path)}: {fault.message}" for fault in faults)
        raise ProviderError(f"the function returned a dict with faults: {said}") from None


def _add_calls(turn: Turn, said: StatedTurn) -> None:
    for number, stated in enumerate(said.tool_calls or (), 1):
        owner = next((run for run in turn.runs if run.agent == stated.agent), None)
        if owner is None and stated.agent is not None:
            hint = "list the agents that ran under `agents`"
            if said.agents is not msgspec.UNSET:
                hint = suggestion(stated.agent, said.agents)
            raise ProviderError(
                f"tool_calls[{number - 1}]: `{stated.agent}` is none of `agents`; {hint}"
            )
        given = {
            name: value
            for name, value in (("arguments", stated.arguments), ("result", stated.result))
            if value is not msgspec.UNSET
        }
        call = ToolCall(
            id=f"{turn.id}-call{number}",
            name=stated.name,
            arguments=given.get("arguments"),
            result=content_of(given.get("result")),
            status="ok" if stated.error is None else "failed",
            error=stated.error,
            unknown=[name for name in ("arguments", "result") if name not in given],
        )
        (owner or turn.runs[0]).steps.append(call)


def _name_unknown(turn: Turn, said: StatedTurn) -> None:
    calls_told = said.tool_calls is not msgspec.UNSET
    for run in turn.runs:
        run.unknown += ["steps.said", "input", "output", "tools_offered", "model", "inside"]
        if not calls_told:
            run.unknown.append("steps.tool_call")
        run.unknown += ["started", "ended"]
    if len(turn.runs) == 1:
        turn.runs[0].usage = _usage(said)
    for run in turn.runs:
        if run.usage is None:
            run.unknown.append("usage")


def _usage(said: StatedTurn) -> Usage | None:
    if said.usage is msgspec.UNSET:
        return None
    usage = said.usage
    for problem in usage_problems(usage):
        raise ProviderError(f"the function returned a dict with faults: {problem}")
    if usage.cost_usd is None or usage.cost_from is not None:
        return usage
    return msgspec.structs.replace(usage, cost_from="source")


def _plain(value: Any) -> Any:
    try:
        return msgspec.json.decode(as_json(value))
    except NOT_JSON as error:
        raise ProviderError(f"the function returned what is no JSON: {error}") from None
