"""Subjects of rules, lists and scores, each with its fields for filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple, get_args

import msgspec

from .filter import NUMBER, SECONDS, TEXT, TIME, Field, Fields, Filter, Value
from .trace import (
    AgentRun,
    CallStatus,
    Dispatch,
    DispatchKind,
    DispatchStatus,
    RunStatus,
    ToolCall,
    Trace,
    Turn,
    TurnStatus,
    Usage,
    known,
)
from .views import child_runs, dispatched_runs, indexed, sum_usage, token_count

On = Literal["conversation", "turn", "run", "dispatch", "tool_call"]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The data that the spans of a conversation state in addition to its record.

    ``versions`` are those of agents, by name; ``rules`` are those that the program itself named.
    """

    service: str | None = None
    versions: Mapping[str, str] = {}
    rules: frozenset[str] = frozenset()
    open: bool = False


NOWHERE = Origin()


class At(NamedTuple):
    """An object of a trace with its turn; for a conversation ``turn`` is the first one."""

    trace: Trace
    turn: Turn | None
    run: AgentRun | None
    dispatch: Dispatch | None
    call: ToolCall | None
    origin: Origin


Read = Callable[[At], Value]
_Table = Mapping[str, tuple[Field, Read]]


class Subject(NamedTuple):
    """The subject of a rule: its id, its turn, and the ids of its parts."""

    on: On
    id: str
    turn: str | None
    ids: frozenset[str]


def subjects(trace: Trace, on: On, where: Filter, origin: Origin = NOWHERE) -> Iterator[Subject]:
    """Yield the subjects of a trace that match a filter over ``FIELDS[on]``.

    The parts of a conversation and a turn are everything in them; of a run its calls and
    dispatches; of a dispatch the runs that it started, and their calls. A return is part of the
    dispatch that it answers, and not a subject.
    """
    table = _TABLES[on]
    with indexed(trace):
        for at in _places(trace, on, origin):
            if where.meets(lambda field, at=at: table[field][1](at)):  # type: ignore[misc]
                yield _subject(on, at)


def _places(trace: Trace, on: On, origin: Origin) -> Iterator[At]:
    if on == "conversation":
        yield At(trace, None, None, None, None, origin)
        return
    for turn in trace.turns:
        if on == "turn":
            yield At(trace, turn, None, None, None, origin)
        elif on == "dispatch":
            for dispatch in turn.dispatches:
                if dispatch.kind != "return":
                    yield At(trace, turn, None, dispatch, None, origin)
        else:
            for run in turn.runs:
                if on == "run":
                    yield At(trace, turn, run, None, None, origin)
                    continue
                for step in run.steps:
                    # A call that makes a dispatch counts as the dispatch.
                    if isinstance(step, ToolCall) and step.dispatch is None:
                        yield At(trace, turn, run, None, step, origin)


def _subject(on: On, at: At) -> Subject:
    turn = at.turn.id if at.turn is not None else None
    if at.call is not None:
        return Subject(on, at.call.id, turn, frozenset({at.call.id}))
    if at.dispatch is not None:
        runs = child_runs(at.trace, at.dispatch)
        ids = {at.dispatch.id, *(run.id for run in runs)}
        ids.update(id_ for run in runs for id_ in _calls(run))
        return Subject(on, at.dispatch.id, turn, frozenset(ids))
    if at.run is not None and at.turn is not None:
        made = (each.id for each in at.turn.dispatches if each.from_run == at.run.id)
        return Subject(on, at.run.id, turn, frozenset({at.run.id, *_calls(at.run), *made}))
    turns = at.trace.turns if at.turn is None else [at.turn]
    ids = {at.trace.id} if at.turn is None else set()
    for each in turns:
        ids.add(each.id)
        ids.update(dispatch.id for dispatch in each.dispatches)
        for run in each.runs:
            ids.add(run.id)
            ids.update(_calls(run))
    return Subject(on, at.trace.id if at.turn is None else at.turn.id, turn, frozenset(ids))


def _calls(run: AgentRun) -> Iterator[str]:
    return (step.id for step in run.steps if isinstance(step, ToolCall))


# The values of the fields. Each is computed only when a filter names its field.


def _runs(at: At) -> list[AgentRun]:
    """Return the runs of a subject: for a dispatch those that it started."""
    if at.run is not None:
        return [at.run]
    if at.dispatch is not None:
        return child_runs(at.trace, at.dispatch)
    turns = at.trace.turns if at.turn is None else [at.turn]
    return [run for turn in turns for run in turn.runs]


def _agents(at: At) -> list[str]:
    if at.dispatch is not None:
        return [name for name in (at.dispatch.from_agent, at.dispatch.to_agent) if name is not None]
    return list(dict.fromkeys(run.agent for run in _runs(at)))


def _tools(at: At) -> list[str]:
    """Return the names of called tools; for a dispatch the tool that made it."""
    dispatch = at.dispatch
    if dispatch is None:
        return [s.name for run in _runs(at) for s in run.steps if isinstance(s, ToolCall)]
    runs = at.turn.runs if at.turn is not None else []
    return [
        step.name
        for run in runs
        for step in run.steps
        if isinstance(step, ToolCall) and step.id == dispatch.call
    ]


def _models(at: At) -> list[str]:
    return [run.model for run in _runs(at) if run.model is not None]


def _versions(at: At) -> list[str] | None:
    agents = [at.dispatch.to_agent] if at.dispatch is not None else _agents(at)
    versions = [at.origin.versions[name] for name in agents if name in at.origin.versions]
    return versions or None


def _usage(at: At) -> Usage | None:
    """Return the usage; for a dispatch with everything below it."""
    if at.dispatch is not None:
        return sum_usage([run.usage for run in dispatched_runs(at.trace, [at.dispatch])])
    if at.turn is None and at.trace.usage is not None:
        return at.trace.usage
    return sum_usage([run.usage for run in _runs(at)])


def _tokens(at: At) -> Value:
    return token_count(_usage(at))


def _cost(at: At) -> Value:
    usage = _usage(at)
    return usage.cost_usd if usage is not None else None


def _times(at: At) -> tuple[float | None, float | None]:
    if at.call is not None:
        return at.call.at, at.call.ended
    one = at.dispatch or at.run or at.turn
    if one is not None:
        return one.started, one.ended
    started = [turn.started for turn in at.trace.turns if turn.started is not None]
    ended = [turn.ended for turn in at.trace.turns if turn.ended is not None]
    return min(started, default=None), max(ended, default=None)


def _duration(at: At) -> Value:
    started, ended = _times(at)
    return None if started is None or ended is None else ended - started


def _of_dispatch(name: str) -> Read:
    return lambda at: (
        getattr(at.dispatch, name)
        if at.dispatch is not None and known(at.trace, at.dispatch, name)
        else None
    )


def _status(at: At) -> Value:
    one = at.call or at.dispatch or at.run or at.turn
    if one is None:
        one = at.trace.turns[-1] if at.trace.turns else None
    return None if one is None or not known(at.trace, one, "status") else one.status


def _sum_of(name: Literal["runs", "dispatches"]) -> Read:
    def count(at: At) -> Value:
        turns = at.trace.turns if at.turn is None else [at.turn]
        if name == "runs":
            return sum(len(turn.runs) for turn in turns)
        return sum(made.kind != "return" for turn in turns for made in turn.dispatches)

    return count


def _words(alias: object) -> Field:
    return Field(values=get_args(alias))


_EVERYWHERE: dict[str, tuple[Field, Read]] = {
    "conversation": (TEXT, lambda at: at.trace.id),
    "service": (TEXT, lambda at: at.origin.service),
    "source": (TEXT, lambda at: at.trace.source.format),
    "framework": (TEXT, lambda at: at.trace.source.framework),
    "agent": (TEXT, _agents),
    "version": (TEXT, _versions),
    "tool": (TEXT, _tools),
    "model": (TEXT, _models),
    "started": (TIME, lambda at: _times(at)[0]),
    "duration": (SECONDS, _duration),
    "tokens": (NUMBER, _tokens),
    "cost": (NUMBER, _cost),
}
_TABLES: dict[On, _Table] = {
    "conversation": {
        **_EVERYWHERE,
        "status": (_words(TurnStatus), _status),
        "turns": (NUMBER, lambda at: len(at.trace.turns)),
        "runs": (NUMBER, _sum_of("runs")),
        "dispatches": (NUMBER, _sum_of("dispatches")),
    },
    "turn": {
        **_EVERYWHERE,
        "status": (_words(TurnStatus), _status),
        "runs": (NUMBER, _sum_of("runs")),
        "dispatches": (NUMBER, _sum_of("dispatches")),
    },
    "run": {**_EVERYWHERE, "status": (_words(RunStatus), _status)},
    "dispatch": {
        **_EVERYWHERE,
        "to": (TEXT, lambda at: at.dispatch.to_agent if at.dispatch else None),
        "from": (TEXT, _of_dispatch("from_agent")),
        "kind": (
            Field(values=tuple(k for k in get_args(DispatchKind) if k != "return")),
            _of_dispatch("kind"),
        ),
        "mode": (Field(values=("foreground", "background", "unknown")), _of_dispatch("mode")),
        "basis": (Field(values=("stated", "structure", "order")), _of_dispatch("basis")),
        "status": (_words(DispatchStatus), _status),
        "depth": (NUMBER, _of_dispatch("depth")),
    },
    "tool_call": {
        **{name: _EVERYWHERE[name] for name in _EVERYWHERE if name not in ("tokens", "cost")},
        "tool": (TEXT, lambda at: at.call.name if at.call else None),
        "status": (_words(CallStatus), _status),
        "refused_by": (
            Field(values=("runtime", "policy", "user")),
            lambda at: at.call.refused_by if at.call else None,
        ),
    },
}
FIELDS: Mapping[On, Fields] = {
    on: {name: field for name, (field, _) in table.items()} for on, table in _TABLES.items()
}
"""The fields for filters of each subject."""
