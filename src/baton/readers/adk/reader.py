"""Conversations, sessions, result files and recorded cases of ADK as traces."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from baton.formats.adk import (
    EvalCase,
    Event,
    Invocation,
    Part,
    SessionFile,
    SessionInput,
    WireContent,
)
from baton.formats.document import Document
from baton.formats.spelling import ExtraKey, camel_twin
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
from baton.readers.otlp.values import first

from .stated import NOT_STATED, details_of, note_tools, read_stated, read_stated_turn
from .turn import Session, is_bookkeeping, read_turn
from .wire import Wire, dropped_keys, session_attributes

# The context of a run is told only where `history.py` finds it out from definitions.
_NEVER_TOLD = ["run.context", "run.tools_offered", "run.inside", "turn.state"]


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
    """Turn events, in the order they came, into a trace.

    ADK's own order is kept: events are not sorted by time, since a paused call is answered with an
    earlier time. Partial chunks are left out, as the complete text follows them. ``untold`` names
    what else this source does not record, ``app_details`` are what it says of the agents,
    invocation by invocation, and ``begins`` is the session at its start. ``whole`` tells that
    nothing came before, ``branches`` that events name theirs, and ``first_of_sessions`` are
    invocations that begin another session.
    """
    kept, dropped = _whole_events(wire.events)
    session = Session(catalog, whole=whole and not _rewritten(wire.events), branches=branches)
    groups = _by_invocation(kept)
    for number, (invocation, events) in enumerate(groups, 1):
        torn = wire.torn and number == len(groups)
        another = invocation in first_of_sessions
        read_turn(session, invocation or f"turn{number}", events, torn, another_session=another)
    turns = session.builder.finish()
    note_tools(session.builder, app_details)
    trace = Trace(
        schema_version=SCHEMA_VERSION,
        id=id_,
        case=case,
        source=source,
        turns=turns,
        agents=catalog,
        state=state,
        usage=sum_usage([run.usage for turn in turns for run in turn.runs]),
        unknown=[*_NEVER_TOLD, *untold],
        dropped=[*wire.dropped, *dropped],
        attributes={**session.builder.attributes(), **session_attributes(begins)},
    )
    if state is None:
        trace.unknown.append("state")
    for turn in turns:
        _name_unknown_in(turn)
    return trace


def _rewritten(events: list[Event]) -> bool:
    """Return whether agents get another history than the events: a summary, or only a part."""
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
    # A chunk still tells who was running when the stream ended, and that it ended too early.
    whole += [msgspec.structs.replace(chunks[-1], content=None) for chunks in open_chunks.values()]
    what = "partial chunks without the whole they belong to"
    return whole, [Dropped(what=what, count=len(lost), example=text[:80] or None)]


def _by_invocation(events: list[Event]) -> list[tuple[str | None, list[Event]]]:
    """Group events by invocation; a server's error frame belongs to the one before it."""
    groups: dict[str | None, list[Event]] = {}
    last: str | None = None
    for event in events:
        if event.invocation_id is not None or event.author is not None:
            last = event.invocation_id
        groups.setdefault(last, []).append(event)
    return [
        (invocation, group)
        for invocation, group in groups.items()
        if any(event.author is None or not is_bookkeeping(event) for event in group)
    ]


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
    """Read one case of an eval set; raises InputError with every fault it has."""
    extra_keys: list[ExtraKey] = []
    case = document.decode(EvalCase, extra_keys=extra_keys, spellings=(camel_twin(EvalCase),))
    return recorded_case(case, extra_keys, source, catalog)


def recorded_case(
    case: EvalCase,
    extra_keys: list[ExtraKey],
    source: Source,
    catalog: Catalog,
    session_id: str | None = None,
) -> Trace:
    """Turn a case into a trace, from the events it keeps or else from what it states."""
    id_ = session_id or case.eval_id
    kept = [_has_events(turn) for turn in case.conversation or ()]
    if not any(kept):
        return read_stated(case, extra_keys, id_, source, catalog)
    if not all(kept):
        return _read_mixed(case, extra_keys, id_, source, catalog)
    events: list[Event] = []
    for number, turn in enumerate(case.conversation or (), 1):
        events += _turn_events(turn, turn.invocation_id or f"turn{number}")
    return read_conversation(
        Wire(events, dropped_keys(extra_keys)),
        id_=id_,
        source=source,
        catalog=catalog,
        case=case.eval_id,
        state=case.final_session_state or None,
        untold=_NO_TIMES,
        app_details=details_of(case),
        begins=case.session_input,
        branches=False,
    )


def _has_events(turn: Invocation) -> bool:
    return bool(turn.intermediate_data and turn.intermediate_data.invocation_events)


def _read_mixed(
    case: EvalCase, extra_keys: list[ExtraKey], id_: str, source: Source, catalog: Catalog
) -> Trace:
    """Read a case some of whose turns keep their events, and others only state what was done.

    Somebody added a turn by hand to a recorded session, for example. What is not recorded differs
    from turn to turn, so it is named in the turns' own objects.
    """
    session = Session(catalog, branches=False)
    stated: list[Turn] = []
    dropped = dropped_keys(extra_keys)
    for number, wire in enumerate(case.conversation or ()):
        if not _has_events(wire):
            stated.append(read_stated_turn(case, number, session.builder, source))
            continue
        invocation = wire.invocation_id or f"turn{number + 1}"
        events, lost = _whole_events(list(_turn_events(wire, invocation)))
        dropped += lost
        read_turn(session, invocation, events)
    turns = session.builder.finish()
    note_tools(session.builder, details_of(case))
    of_events = {*_NEVER_TOLD, *_NO_TIMES}
    trace = Trace(
        schema_version=SCHEMA_VERSION,
        id=id_,
        case=case.eval_id,
        source=source,
        turns=turns,
        agents=catalog,
        state=case.final_session_state or None,
        usage=sum_usage([run.usage for turn in turns for run in turn.runs]),
        unknown=[name for name in NOT_STATED if name in of_events],
        dropped=dropped,
        attributes={**session.builder.attributes(), **session_attributes(case.session_input)},
    )
    if not case.final_session_state:
        trace.unknown.append("state")
    for turn in turns:
        if turn in stated:
            _name_in_objects(turn, [name for name in NOT_STATED if name not in of_events])
        else:
            _name_in_objects(turn, [name for name in of_events if name not in NOT_STATED])
            _name_unknown_in(turn)
    return trace


def _name_in_objects(turn: Turn, names: Iterable[str]) -> None:
    """Name what is unknown of a turn, its runs, dispatches and calls in these themselves."""
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


def _turn_events(turn: Invocation, invocation: str) -> Iterator[Event]:
    said = as_content(turn.user_content, "user")
    yield Event(invocation_id=invocation, author="user", content=said)
    kept = (turn.intermediate_data.invocation_events if turn.intermediate_data else None) or []
    final = as_content(turn.final_response, "model")
    for number, event in enumerate(kept, 1):
        content = event.content
        if number == len(kept) and not (content and content.parts):
            content, final = final, None
        yield Event(
            invocation_id=invocation,
            author=event.author,
            content=content,
            usage_metadata=event.usage_metadata,
            model_version=event.model_version,
            grounding_metadata=event.grounding_metadata,
        )
    if (
        final is not None
        and kept
        and not (kept[-1].content and kept[-1].content.text() == final.text())
    ):
        yield Event(invocation_id=invocation, author=kept[-1].author, content=final)


def as_content(wire: WireContent | str | None, role: str) -> WireContent | None:
    """Convert a plain text to content."""
    return WireContent(parts=[Part(text=wire)], role=role) if isinstance(wire, str) else wire


class CaseOutcome(msgspec.Struct, kw_only=True):
    """One case of a result file; what is scored there is not read."""

    eval_id: str
    session_id: str | None = None
    session_details: SessionFile | None = None
    eval_metric_result_per_invocation: list[dict[str, Any]] | None = None


class ResultFile(msgspec.Struct, kw_only=True):
    """What ``adk eval`` writes."""

    eval_case_results: list[CaseOutcome]


def read_session(
    document: Document, source: Source, catalog: Catalog, case: str | None = None
) -> Trace:
    """Read a session, as a server answers it or ADK saves it."""
    extra_keys: list[ExtraKey] = []
    session = document.decode(
        SessionFile, extra_keys=extra_keys, spellings=(camel_twin(SessionFile),)
    )
    return _session_trace(session, extra_keys, source, catalog, case)


def read_result_file(document: Document, source: Source, catalog: Catalog) -> Iterator[Trace]:
    """Read the recorded runs of a result file, one trace a case."""
    value = document.value()
    if isinstance(value, str):
        document = Document(document.file, value.encode(), "json", document.first_line)
    extra_keys: list[ExtraKey] = []
    for index, outcome in enumerate(
        document.decode(ResultFile, extra_keys=extra_keys).eval_case_results
    ):
        path = ("eval_case_results", index, "eval_metric_result_per_invocation")
        entries = outcome.eval_metric_result_per_invocation or []
        if outcome.session_details is not None:
            yield _session_trace(
                outcome.session_details,
                extra_keys,
                source,
                catalog,
                outcome.eval_id,
                [_app_details(entry.get("actual_invocation")) for entry in entries],
            )
            continue
        actual = [
            document.convert(
                entry["actual_invocation"], Invocation, path=path, extra_keys=extra_keys
            )
            for entry in entries
            if entry.get("actual_invocation")
        ]
        case = EvalCase(eval_id=outcome.eval_id, conversation=actual)
        yield recorded_case(case, extra_keys, source, catalog, outcome.session_id)


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
    """Return what the state held before the first event: what no event changed of the last one."""
    changed: set[str] = set()
    for event in session.events:
        changed.update((event.actions.state_delta if event.actions else None) or {})
    return {key: value for key, value in (session.state or {}).items() if key not in changed}
