"""The trace of a case: what its spans tell, and what the program returned."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from baton.model import (
    SCHEMA_VERSION,
    Case,
    Content,
    Dropped,
    ProviderError,
    Source,
    Trace,
    Turn,
    integrity_problems,
)
from baton.model.views import sum_usage
from baton.providers.answer_turns import Stated
from baton.readers import Catalog
from baton.readers.otlp.span import Span

from .collector import Collected


class PlayedTurn(msgspec.Struct, kw_only=True):
    """A message that was sent. ``stated`` is what the program returned, ``error`` why it broke."""

    input: Content | None
    started: float
    ended: float | None = None
    stated: Stated | None = None
    error: str | None = None


class ProgramSetup(NamedTuple):
    """How a program was set up, and what is said of it in each trace."""

    location: str
    agents: Catalog
    instrumentors: list[str]
    built_in: list[str]


def trace_of(case: Case, played: list[PlayedTurn], seen: Collected, setup: ProgramSetup) -> Trace:
    """Put together what is known of a case.

    Raises:
        ProviderError: the spans cannot be read as one conversation of these turns.
    """
    trace = _read(case, played, seen, setup)
    read_turns = _by_turn(trace.turns, played)
    trace.turns = [
        _turn(number, turn, each, trace)
        for number, (turn, each) in enumerate(zip(read_turns, played, strict=True), 1)
    ]
    trace.id = trace.case = case.id
    framework = trace.source.framework
    trace.source = Source(format="python", framework=framework, location=setup.location)
    if trace.usage is None:
        trace.usage = sum_usage([each.stated.usage if each.stated else None for each in played])
        _settle(trace.unknown, "usage", is_known=trace.usage is not None)
    trace.dropped += [Dropped(what=what, count=n) for what, n in sorted(seen.lost.items())]
    notes = {
        "instrumentors": setup.instrumentors,
        "instrumentation built in": setup.built_in,
        "spans that had not ended": sorted(seen.open),
    }
    trace.attributes |= {name: list(value) for name, value in notes.items() if value}
    _check(trace)
    return trace


def unanswered(trace: Trace, played: list[PlayedTurn]) -> str | None:
    """Tell of a turn for which neither the program nor its spans have an answer."""
    for number, (turn, each) in enumerate(zip(trace.turns, played, strict=True), 1):
        if turn.output is None and turn.status == "completed" and each.stated is None:
            return f"turn {number}: the function returned nothing, and its spans hold no answer"
    return None


def session_of(case: Case) -> str:
    """Return the session that all spans of a case are in."""
    return case.session.id or case.id


def _read(case: Case, played: list[PlayedTurn], seen: Collected, setup: ProgramSetup) -> Trace:
    from baton.readers.otlp.reader import read_spans

    if len(seen.spans) <= len(played):
        return _nothing_seen(setup)  # there is no span but those of the turns
    _hold_together(seen.spans, session_of(case))
    _keep_apart(seen.spans, played)
    traces = read_spans(seen.spans, seen.logs, setup.agents)
    if len(traces) > 1:
        raise ProviderError(f"the spans of the case tell of {len(traces)} conversations, not of 1")
    return traces[0] if traces else _nothing_seen(setup)


def _hold_together(spans: list[Span], session: str) -> None:
    """Put the outermost spans into one session, as all of them are known to be of one case."""
    ids = {(span.trace_id, span.span_id) for span in spans}
    for span in spans:
        if span.parent_id is None or (span.trace_id, span.parent_id) not in ids:
            span.attributes["session.id"] = session


def _keep_apart(spans: list[Span], played: list[PlayedTurn]) -> None:
    """Cut links between turns, as these would make one turn of two."""
    starts: dict[str, float] = {}
    for span in spans:
        at = span.started or 0.0
        starts[span.trace_id] = min(at, starts.get(span.trace_id, at))
    turn = {trace_id: _place(at, played) for trace_id, at in starts.items()}
    for span in spans:
        if span.links:
            here = turn[span.trace_id]
            span.links = [link for link in span.links if turn.get(link.trace_id, here) == here]


def _nothing_seen(setup: ProgramSetup) -> Trace:
    """Return what to fill in when no agent was at work in any span."""
    return Trace(
        schema_version=SCHEMA_VERSION,
        id="",
        source=Source(format="python"),
        turns=[],
        agents=dict(setup.agents),
        unknown=["state", "turn.state", "usage"],
    )


def _by_turn(turns: list[Turn], played: list[PlayedTurn]) -> list[Turn | None]:
    """Find what the spans tell of each message; messages are sent one after the other."""
    by_place: list[Turn | None] = [None] * len(played)
    for turn in turns:
        place = _place(turn.started or 0.0, played)
        if by_place[place] is not None:
            raise ProviderError(
                f"turn {place + 1}: its spans tell of several conversations side by side"
            )
        by_place[place] = turn
    return by_place


def _place(at: float, played: list[PlayedTurn]) -> int:
    """Return which message was the last to be sent by then."""
    return max(sum(each.started <= at for each in played) - 1, 0)


def _turn(number: int, read: Turn | None, played: PlayedTurn, trace: Trace) -> Turn:
    stated = played.stated.turn if played.stated is not None else None
    if read is not None and read.runs:
        turn = read
        _count_unused(stated, trace)
    else:
        turn = stated or Turn(id="", unknown=["output", "runs", "dispatches"])
    turn.id = f"turn{number}"
    turn.input = played.input
    if stated is not None and stated.output is not None:
        turn.output = stated.output
        if turn.status in ("failed", "incomplete"):
            # Whatever became of its agents, the program has given an answer.
            turn.status, turn.error = "completed", None
    for field in ("input", "output"):
        if getattr(turn, field) is not None:
            _settle(turn.unknown, field, is_known=True)
    turn.started, turn.ended = played.started, played.ended
    error = played.error or (stated.error if stated is not None else None)
    if error is not None:
        turn.status, turn.error = "failed", error
    elif played.ended is None:
        turn.status = "incomplete"
    return turn


def _count_unused(stated: Turn | None, trace: Trace) -> None:
    """Count what the program said of its agents; its spans tell it better."""
    if stated is not None and (stated.runs or stated.dispatches):
        count = len(stated.runs) + len(stated.dispatches)
        trace.dropped.append(
            Dropped(what="returned by the program, told by its spans", count=count)
        )


def _settle(unknown: list[str], name: str, *, is_known: bool) -> None:
    if is_known and name in unknown:
        unknown.remove(name)
    elif not is_known and name not in unknown:
        unknown.append(name)


def _check(trace: Trace) -> None:
    problems = integrity_problems(trace)
    if problems:
        raise ProviderError(f"the spans contradict each other: {problems[0]}", trace)
