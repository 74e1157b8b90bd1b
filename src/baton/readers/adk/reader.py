"""Converts conversations, sessions, result files and recorded cases of ADK to traces."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from baton.formats.adk import (
    AnyEvent,
    EvalCase,
    Event,
    Invocation,
    InvocationEvent,
    Part,
    SessionFile,
    SessionInput,
    WireContent,
)
from baton.formats.document import Document
from baton.formats.key_case import ExtraKey, snake
from baton.model import (
    SCHEMA_VERSION,
    AgentRun,
    Dispatch,
    Dropped,
    Source,
    ToolCall,
    Trace,
    Turn,
)
from baton.model.views import sum_usage
from baton.readers.catalog import Catalog
from baton.readers.otlp.attribute_values import first

from .stated import NOT_STATED, details_of, note_tools, read_stated, read_stated_turn
from .turn import Session, is_bookkeeping, read_turn
from .wire import Wire, dropped_keys, session_attributes

# The context of a run is known only if `history.py` can derive it from definitions.
_NEVER_TOLD = ["run.context", "run.tools_offered", "run.inside", "turn.state"]

_INVOCATION = "e-"
"""How ADK begins the ids of invocations."""


def read_conversation(
    wire: Wire,
    *,
    id_: str,
    source: Source,
    catalog: Catalog,
    case: str | None = None,
    state: dict[str, Any] | None = None,
    untold: Sequence[str] = (),
    app_details: Sequence[Any] = (),
    begins: SessionInput | None = None,
    whole: bool = False,
    branches: bool = True,
    first_of_sessions: Container[str] = (),
) -> Trace:
    """Convert events, in the order they arrived, to a trace.

    ADK's own order is kept: events are not sorted by time, because a paused call is answered with
    an earlier time. Partial chunks are left out, as the complete text follows. ``untold`` names
    what else this source does not record, ``app_details`` is what it says about the agents,
    invocation by invocation, and ``begins`` is the session at its start. ``whole``: the recording
    starts with the session; ``branches``: events name their branch; ``first_of_sessions`` are
    invocations that begin another session.
    """
    kept, dropped = _whole_events(wire.events)
    session = Session(catalog, whole=whole and not _rewritten(wire.events), branches=branches)
    groups = _by_invocation(kept)
    for number, (invocation, events) in enumerate(groups, 1):
        torn = wire.torn and number == len(groups)
        another = invocation in first_of_sessions
        read_turn(session, invocation or f"turn{number}", events, torn, another_session=another)
    note_tools(session.builder, app_details)
    trace = _finished(session, id_, source, case, state, begins, [*wire.dropped, *dropped])
    trace.unknown = [*_NEVER_TOLD, *untold, *trace.unknown]
    for turn in trace.turns:
        _name_unknown_in(turn)
    return trace


def _finished(
    session: Session,
    id_: str,
    source: Source,
    case: str | None,
    state: dict[str, Any] | None,
    begins: SessionInput | None,
    dropped: list[Dropped],
) -> Trace:
    """Return the trace of a session whose turns have been read."""
    turns = session.builder.finish()
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=id_,
        case=case,
        source=source,
        turns=turns,
        agents=session.catalog,
        state=state,
        usage=sum_usage([run.usage for turn in turns for run in turn.runs]),
        unknown=["state"] if state is None else [],
        dropped=dropped,
        attributes={**session.builder.attributes(), **session_attributes(begins)},
    )


def _rewritten(events: list[Event]) -> bool:
    """Return whether agents get something other than the events: a summary, or only a part."""
    return any(
        event.actions is not None
        and (event.actions.compaction or event.actions.rewind_before_invocation_id)
        for event in events
    )


def _whole_events(events: list[Event]) -> tuple[list[Event], list[Dropped]]:
    """Leave out partial chunks and repeated events; count chunks without a complete event."""
    whole: list[Event] = []
    seen: dict[str, Event] = {}
    open_chunks: dict[tuple[str | None, str | None], list[Event]] = {}
    for event in events:
        if event.partial:
            open_chunks.setdefault((event.invocation_id, event.author), []).append(event)
            continue
        if open_chunks:
            open_chunks.pop((event.invocation_id, event.author), None)
        if event.id is None or seen.get(event.id) != event:
            whole.append(event)
        if event.id is not None:
            seen[event.id] = event
    lost = [event for chunks in open_chunks.values() for event in chunks]
    if not lost:
        return whole, []
    text = "".join((event.content.text() if event.content else None) or "" for event in lost)
    # A chunk still shows which agent was running when the stream ended, and that it ended too
    # early.
    whole += [msgspec.structs.replace(chunks[-1], content=None) for chunks in open_chunks.values()]
    what = "partial chunks without their complete event"
    return whole, [Dropped(what=what, count=len(lost), example=text[:80] or None)]


def _by_invocation(events: list[Event]) -> list[tuple[str | None, list[Event]]]:
    """Group events by invocation; a server's error frame belongs to the previous one."""
    groups: dict[str | None, list[Event]] = {}
    last: str | None = None
    for event in events:
        names = event.invocation_id is not None or event.author is not None
        if names and not _has_own_id(event, last):
            last = event.invocation_id
        groups.setdefault(last, []).append(event)
    return [group for group in groups.items() if _has_content(group[1])]


def _has_own_id(event: Event, last: str | None) -> bool:
    """Return whether an event has an id of its own in place of its invocation's.

    Old versions of ADK (1.5, for example) do this for the event that answers several calls at
    once: `Y7kJNS4Z` after `e-abbf42e4-...`.
    """
    own, parts = event.invocation_id, event.content.parts if event.content is not None else None
    if own is None or own.startswith(_INVOCATION) or not (last or "").startswith(_INVOCATION):
        return False
    return bool(parts) and all(part.function_response is not None for part in parts or ())


def _has_content(events: Iterable[AnyEvent]) -> bool:
    """Return whether an invocation is more than bookkeeping."""
    return any(event.author is None or not is_bookkeeping(event) for event in events)


def _name_unknown_in(turn: Turn) -> None:
    if turn.input is None:
        # The first event comes when a model has answered: the turn started before that.
        turn.started = None
        turn.unknown += ["input", "started"]
    for run in turn.runs:
        if run.input is None:
            run.unknown.append("input")
        if run.usage is None and "usage" not in run.unknown:
            run.unknown.append("usage")
        if run.model is None and "model" not in run.unknown:
            run.unknown.append("model")


_NO_TIMES = [
    "tool_call.at",
    "tool_call.ended",
    "run.started",
    "run.ended",
    "turn.started",
    "turn.ended",
]


def read_eval_case(document: Document, source: Source, catalog: Catalog) -> Trace:
    """Read one case of an eval set; raises InputError with all of its errors."""
    extra_keys: list[ExtraKey] = []
    case = document.decode(EvalCase, extra_keys=extra_keys, or_camel=True)
    return recorded_case(case, extra_keys, source, catalog)


def recorded_case(
    case: EvalCase,
    extra_keys: list[ExtraKey],
    source: Source,
    catalog: Catalog,
    session_id: str | None = None,
) -> Trace:
    """Convert a case to a trace, from its events or else from what it states."""
    id_ = session_id or case.eval_id
    kept = [_has_events(turn) for turn in case.conversation or ()]
    if not any(kept):
        return read_stated(case, extra_keys, id_, source, catalog)
    if not all(kept):
        return _read_mixed(case, extra_keys, id_, source, catalog)
    session = Session(catalog, branches=False)
    groups: dict[str, list[InvocationEvent]] = {}
    for number, wire in enumerate(case.conversation or (), 1):
        groups.setdefault(wire.invocation_id or f"turn{number}", []).extend(_turn_events(wire))
    for invocation, events in groups.items():
        if _has_content(events):
            read_turn(session, invocation, events)
    trace = _of_case(session, case, id_, source, dropped_keys(extra_keys))
    trace.unknown = [*_NEVER_TOLD, *_NO_TIMES, *trace.unknown]
    for turn in trace.turns:
        _name_unknown_in(turn)
    return trace


def _of_case(
    session: Session, case: EvalCase, id_: str, source: Source, dropped: list[Dropped]
) -> Trace:
    note_tools(session.builder, details_of(case))
    state, begins = case.final_session_state or None, case.session_input
    return _finished(session, id_, source, case.eval_id, state, begins, dropped)


def _has_events(turn: Invocation) -> bool:
    return bool(turn.intermediate_data and turn.intermediate_data.invocation_events)


def _read_mixed(
    case: EvalCase, extra_keys: list[ExtraKey], id_: str, source: Source, catalog: Catalog
) -> Trace:
    """Read a case in which some turns have events, and others only state agents and calls.

    For example, somebody added a turn by hand to a recorded session. What is not recorded differs
    from turn to turn, so it is named in the objects of each turn.
    """
    session = Session(catalog, branches=False)
    stated: list[Turn] = []
    for number, wire in enumerate(case.conversation or ()):
        if not _has_events(wire):
            stated.append(read_stated_turn(case, number, session.builder, source))
            continue
        invocation = wire.invocation_id or f"turn{number + 1}"
        read_turn(session, invocation, list(_turn_events(wire)))
    of_events = {*_NEVER_TOLD, *_NO_TIMES}
    trace = _of_case(session, case, id_, source, dropped_keys(extra_keys))
    trace.unknown = [*(name for name in NOT_STATED if name in of_events), *trace.unknown]
    for turn in trace.turns:
        if turn in stated:
            _name_in_objects(turn, [name for name in NOT_STATED if name not in of_events])
        else:
            _name_in_objects(turn, [name for name in of_events if name not in NOT_STATED])
            _name_unknown_in(turn)
    return trace


def _name_in_objects(turn: Turn, names: Iterable[str]) -> None:
    """Name what is unknown about a turn, its runs, dispatches and calls in these objects."""
    calls = [step for run in turn.runs for step in run.steps if isinstance(step, ToolCall)]
    kinds: dict[str, Sequence[Turn | AgentRun | Dispatch | ToolCall]] = {
        "turn": [turn],
        "run": turn.runs,
        "dispatch": turn.dispatches,
        "tool_call": calls,
    }
    for name in sorted(names):
        kind, _, field = name.partition(".")
        for each in kinds.get(kind, ()):
            if field not in each.unknown:
                each.unknown.append(field)


def _turn_events(turn: Invocation) -> Iterator[InvocationEvent]:
    """Yield the events of a turn, including the user's message and the final response."""
    yield InvocationEvent(author="user", content=as_content(turn.user_content, "user"))
    kept = turn.intermediate_data.invocation_events if turn.intermediate_data else None
    if not kept:
        return
    *before, last = kept
    yield from before
    final = as_content(turn.final_response, "model")
    if not (last.content and last.content.parts):
        yield msgspec.structs.replace(last, content=final)
        return
    yield last
    if final is not None and last.content.text() != final.text():
        yield InvocationEvent(author=last.author, content=final)


def as_content(wire: WireContent | str | None, role: str) -> WireContent | None:
    """Convert a plain text to content."""
    return WireContent(parts=[Part(text=wire)], role=role) if isinstance(wire, str) else wire


class CaseOutcome(msgspec.Struct, kw_only=True):
    """One case of a result file; its scores are not read."""

    eval_id: str
    session_id: str | None = None
    session_details: SessionFile | None = None
    eval_metric_result_per_invocation: list[dict[str, Any]] | None = None


class ResultFile(msgspec.Struct, kw_only=True):
    """What ``adk eval`` writes, and what a server returns of stored results."""

    eval_case_results: list[CaseOutcome]


class RunResults(msgspec.Struct, kw_only=True):
    """What a server returns of an eval set that it has just run."""

    run_eval_results: list[CaseOutcome]


def read_session(
    document: Document, source: Source, catalog: Catalog, case: str | None = None
) -> Trace:
    """Read a session, as a server returns it or ADK saves it."""
    extra_keys: list[ExtraKey] = []
    session = document.decode(SessionFile, extra_keys=extra_keys, or_camel=True)
    return _session_trace(session, extra_keys, source, catalog, case)


def read_result_file(document: Document, source: Source, catalog: Catalog) -> Iterator[Trace]:
    """Read the recorded runs of a result file, one trace per case."""
    value = document.value()
    if isinstance(value, str):
        document = Document(document.file, value.encode(), "json", document.first_line)
    extra_keys: list[ExtraKey] = []
    # ADK's files are in snake_case, and what its server returns is in camelCase.
    outcomes: list[CaseOutcome]
    if "run_eval_results" in map(snake, value if isinstance(value, dict) else ()):
        key = "run_eval_results"
        outcomes = document.decode(
            RunResults, extra_keys=extra_keys, or_camel=True
        ).run_eval_results
    else:
        key = "eval_case_results"
        file = document.decode(ResultFile, extra_keys=extra_keys, or_camel=True)
        outcomes = file.eval_case_results
    for index, outcome in enumerate(outcomes):
        path = (key, index, "eval_metric_result_per_invocation")
        entries = outcome.eval_metric_result_per_invocation or []
        if outcome.session_details is not None:
            yield _session_trace(
                outcome.session_details,
                extra_keys,
                source,
                catalog,
                outcome.eval_id,
                [_app_details(_actual(entry)) for entry in entries],
            )
            continue
        actual = [
            document.convert(invocation, Invocation, path=path, extra_keys=extra_keys)
            for entry in entries
            if (invocation := _actual(entry))
        ]
        case = EvalCase(eval_id=outcome.eval_id, conversation=actual)
        yield recorded_case(case, extra_keys, source, catalog, outcome.session_id)


def _actual(entry: dict[str, Any]) -> Any:
    return first(entry, "actual_invocation", "actualInvocation")


def _app_details(invocation: Any) -> Any:
    return first(invocation, "app_details", "appDetails") if isinstance(invocation, dict) else None


def _session_trace(
    session: SessionFile,
    extra_keys: list[ExtraKey],
    source: Source,
    catalog: Catalog,
    case: str | None,
    app_details: Sequence[Any] = (),
) -> Trace:
    return read_conversation(
        Wire(session.events, dropped_keys(extra_keys)),
        id_=session.id,
        source=source,
        catalog=catalog,
        case=case,
        state=session.state,
        app_details=app_details,
        begins=SessionInput(
            app_name=session.app_name, user_id=session.user_id, state=_state_before(session)
        ),
        # A server may return only the last events.
        whole=bool(session.events) and session.events[0].author == "user",
    )


def _state_before(session: SessionFile) -> dict[str, Any]:
    """Return the state before the first event: the part of the last state that no event changed."""
    changed: set[str] = set()
    for event in session.events:
        changed.update((event.actions.state_delta if event.actions else None) or {})
    return {key: value for key, value in (session.state or {}).items() if key not in changed}
