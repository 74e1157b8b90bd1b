"""Cases of an eval set as recordings of what happened."""

from __future__ import annotations

from collections.abc import Iterator

from baton.formats.adk_events import Event
from baton.formats.document import Document
from baton.formats.evalset import EvalCase, Invocation, InvocationEvent, Part, WireContent
from baton.formats.prune import Stray
from baton.formats.spelling import camel_twin
from baton.model import Source, Trace
from baton.readers.catalog import Catalog

from .conversation import read_conversation
from .stated import read_stated
from .wire import Wire, dropped_keys

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
    strays: list[Stray] = []
    case = document.decode(EvalCase, strays=strays, spellings=(camel_twin(EvalCase),))
    return recorded_case(case, strays, source, catalog)


def recorded_case(
    case: EvalCase,
    strays: list[Stray],
    source: Source,
    catalog: Catalog,
    session_id: str | None = None,
) -> Trace:
    """Turn a case into a trace, from the events it keeps or else from what it states."""
    id_ = session_id or case.eval_id
    shapes = [turn.intermediate_data for turn in case.conversation or ()]
    if not any(shape is not None and shape.invocation_events for shape in shapes):
        return read_stated(case, strays, id_, source, catalog)
    events: list[Event] = []
    for number, turn in enumerate(case.conversation or (), 1):
        events += _turn_events(turn, turn.invocation_id or f"turn{number}")
    return read_conversation(
        Wire(events, dropped_keys(strays)),
        id_=id_,
        source=source,
        catalog=catalog,
        case=case.eval_id,
        state=case.final_session_state or None,
        untold=_NO_TIMES,
    )


def _turn_events(turn: Invocation, invocation: str) -> Iterator[Event]:
    said = as_content(turn.user_content, "user")
    yield Event(invocation_id=invocation, author="user", content=said)
    kept = (turn.intermediate_data.invocation_events if turn.intermediate_data else None) or []
    final = as_content(turn.final_response, "model")
    for number, event in enumerate(kept, 1):
        content = event.content
        if number == len(kept) and not (content and content.parts):
            content, final = final, None
        yield _event(event, invocation, content)
    if (
        final is not None
        and kept
        and not (kept[-1].content and kept[-1].content.text() == final.text())
    ):
        yield Event(invocation_id=invocation, author=kept[-1].author, content=final)


def as_content(wire: WireContent | str | None, role: str) -> WireContent | None:
    """Spell a plain text out."""
    return WireContent(parts=[Part(text=wire)], role=role) if isinstance(wire, str) else wire


def _event(wire: InvocationEvent, invocation: str, content: WireContent | None) -> Event:
    return Event(
        invocation_id=invocation,
        author=wire.author,
        content=content,
        usage_metadata=wire.usage_metadata,
        model_version=wire.model_version,
        grounding_metadata=wire.grounding_metadata,
    )
