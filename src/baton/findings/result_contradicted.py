"""Does a caller state a different value from the result it got?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from baton.model import Dispatch, Evidence, HandedOff, Said, ToolCall, Trace, Turn, known
from baton.model.views import RoundTrip, TooMuchTextError, charge_work, index_of, round_trip

from .another_value import is_calculated, is_set_apart, reports_change
from .broken_limits import (
    broken_limit,
    changed_in_spite,
    is_same_end,
    keeps_to,
    limits_broken_by,
)
from .caller_texts import Piece, all_recorded, dispatch_of, had_before
from .converted_values import may_be_converted
from .derived_values import follows, is_price_of_known, is_rounded
from .facts import is_spelled_in, plain_text, read, rounded_keys
from .finding import (
    TOO_LONG,
    Answer,
    Clear,
    Finding,
    NotRecorded,
    changes_something,
    sender_of,
)
from .known_values import MOST_VALUES, CallerText, Known, known_from
from .lazy_patterns import regex
from .misquoted import misquoted
from .misstated_values import in_other_unit, misstated, with_swapped_digits
from .normalise_values import days_in_full
from .replaced_words import weekdays_of
from .same_row import in_same_words_of_row, rows_of
from .text_values import Value, are_near, is_present, unit_text, values_of
from .words import in_other_script


def result_contradicted(trace: Trace, turn: Turn, dispatch: Dispatch) -> Answer:
    """Compare the numbers, times, dates and names of a caller with those of a result.

    Faults: ``contradicted`` (another value of the same thing) and ``limit_broken`` (something
    changed that must stay according to the result). A value that occurred before, that follows
    from others, or that can belong to something else is not a fault.
    """
    try:
        return _judged(trace, turn, dispatch)
    except TooMuchTextError:
        return NotRecorded(says=TOO_LONG)


def _judged(trace: Trace, turn: Turn, dispatch: Dispatch) -> Answer:
    trip = round_trip(trace, dispatch)
    run = sender_of(trace, dispatch)
    if trip.result is None:
        return NotRecorded(says="nothing came back that could be contradicted")
    if run is None or not known(trace, run, "steps.said"):
        return NotRecorded(says="what the caller said was not recorded: record its messages")
    result = days_in_full(plain_text(trip.result))
    values = list(values_of(result))
    if not values:
        return NotRecorded(says="the result contains no number, time, date or name")
    if len(values) > MOST_VALUES:
        return NotRecorded(says=f"the result holds {len(values)} values: too many to compare")
    before = had_before(trace, turn, dispatch)
    others = _results_of_others(trace, turn, dispatch)
    if not index_of(trace).spend(len(before) + len(others) + len(trip.after)):
        return NotRecorded(says=TOO_LONG)
    said = [days_in_full(text) for text in (*(p.text for p in before), *others)]
    given_out = _given_out(trace, trip, turn)
    rows = tuple(days_in_full(row) for row in rows_of(trip.result))
    findings = list(_faults(trip.dispatch, given_out, known_from(result, values, said, rows)))
    beside = _results_beside(turn, dispatch) if findings else []
    findings = [_unless_added_up(each, beside) for each in findings]
    faults = [each for each in findings if each.kind not in _IN_DOUBT]
    sure = [fault for fault in faults if not _may_be_from_elsewhere(trace, turn, trip, fault)]
    if sure:
        return sure
    if faults:
        return NotRecorded(
            says=f"{faults[0].says}, but the result of another call of the caller was not "
            "recorded, and may hold that value"
        )
    if findings:
        return NotRecorded(says=f"{findings[0].says}: {_IN_DOUBT[findings[0].kind]}")
    # A fault stays a fault, whatever the other texts say. To rule out a fault, all texts are
    # needed.
    if turn.status == "incomplete" or not all_recorded(trace, turn, dispatch):
        return NotRecorded(
            says="not all that the caller said was recorded: record its messages and calls"
        )
    texts = [given.piece.text for given in given_out]
    if not texts:
        return NotRecorded(says="the caller said nothing afterwards")
    most = max(len(values_of(days_in_full(text))) for text in texts)
    if most > MOST_VALUES:
        return NotRecorded(says=f"the caller states {most} values at once: too many to compare")
    moved = _other_weekday(result, said, texts)
    if moved is not None:
        return NotRecorded(says=f"can't tell whether `{moved[1]}` is in place of `{moved[0]}`")
    return Clear(says="nothing that the caller says contradicts the result")


def _other_weekday(result: str, said: list[str], texts: list[str]) -> tuple[str, str] | None:
    """Return a weekday that only the result names, and one that only the caller names.

    "Thursday at 9:30" for "Tuesday 9:30". The caller may have worked it out: "a day earlier".
    """
    theirs, mine = weekdays_of(result), weekdays_of("\n".join(texts))
    lost = [day for number, day in theirs.items() if number not in mine]
    new = mine.keys() - theirs.keys()
    if lost and new:
        new -= weekdays_of("\n".join(said)).keys()
    return (lost[0], mine[min(new)]) if lost and new else None


def _faults(dispatch: Dispatch, given_out: list[_Given], against: Known) -> Iterator[Finding]:
    """Check the caller's output in order. Prompts and tool results count as known from then on."""
    reported: set[str] = set()
    for each in given_out:
        given = each._replace(piece=each.piece._replace(text=days_in_full(each.piece.text)))
        for finding in _faults_of(dispatch, given, against):
            if finding.says not in reported:
                reported.add(finding.says)
                yield finding
        if not given.is_message:
            call = given.call
            reply = plain_text(call.result) if call is not None and call.result is not None else ""
            against = against.and_texts([given.piece.text, reply])


def _faults_of(dispatch: Dispatch, given: _Given, against: Known) -> list[Finding]:
    piece, call = given.piece, given.call
    mine = [value for value in values_of(piece.text) if not is_present(value)]
    if len(mine) > MOST_VALUES:
        return []
    charge_work(1 + len(against.others) * len(mine) // 4)
    missing = [v for v in against.values if not _is_given(v, piece.text, mine)]
    stated = CallerText(piece.text, mine, missing, not given.is_message, given.is_prompt)
    sets_own = changes_something(_called(piece.text, call))
    findings = [
        _finding(dispatch, piece, _unless_converted(fault, stated, against))
        for value in mine
        if (fault := _fault_of(value, stated, against, sets_own=sets_own)) is not None
    ]
    if call is None or findings:
        return findings
    broken = limits_broken_by(call, piece.text, against)
    return [_finding(dispatch, piece, _Fault("limit_broken", *pair)) for pair in broken]


def _may_be_from_elsewhere(trace: Trace, turn: Turn, trip: RoundTrip, fault: Finding) -> bool:
    """Return whether a call or dispatch whose result is missing may have returned the value.

    The caller of a fault by a call gave that value itself, so only earlier calls count.
    """
    run = sender_of(trace, trip.dispatch)
    stated_by = fault.evidence[-1].ids[-1]
    for step in run.steps if run is not None else ():
        if step.id == stated_by:
            break
        if isinstance(step, ToolCall) and step.dispatch is None and _is_open(trace, step):
            return True
    return any(
        other.id != trip.dispatch.id
        and other.kind == "delegate"
        and other.from_run == trip.dispatch.from_run
        and _is_open(trace, other)
        for other in turn.dispatches
    )


def _is_open(trace: Trace, made: ToolCall | Dispatch) -> bool:
    """Return whether something may have come back that was not recorded."""
    if made.result is not None or made.status in ("failed", "refused"):
        return False
    return made.status in ("unanswered", "waiting", "unknown") or not known(trace, made, "result")


class _Given(NamedTuple):
    """A text of a caller after an answer: a message, the arguments of a call, or a prompt."""

    piece: Piece
    call: ToolCall | None
    is_message: bool

    @property
    def is_prompt(self) -> bool:
        """Whether it is for another agent."""
        return not self.is_message and (self.call is None or self.call.dispatch is not None)


def _given_out(trace: Trace, trip: RoundTrip, turn: Turn) -> list[_Given]:
    """Return the texts of a caller after an answer, in order."""
    given_out = []
    by_call = {s.dispatch for s in trip.after if isinstance(s, ToolCall)}
    for step in trip.after:
        if isinstance(step, Said) and not step.thought:
            piece = Piece(step.id, plain_text(step.content))
            given_out.append(_Given(piece, None, is_message=True))
        elif isinstance(step, ToolCall):
            piece = Piece(step.id, plain_text(step.arguments))
            given_out.append(_Given(piece, step, is_message=False))
        elif isinstance(step, HandedOff) and step.dispatch not in by_call:
            dispatch = dispatch_of(trace, step.dispatch)
            if dispatch is not None and dispatch.prompt is not None:
                piece = Piece(dispatch.id, plain_text(dispatch.prompt))
                given_out.append(_Given(piece, None, is_message=False))
    if turn.output is not None:
        given_out.append(_Given(Piece(turn.id, plain_text(turn.output)), None, is_message=True))
    return given_out


def _results_of_others(trace: Trace, turn: Turn, dispatch: Dispatch) -> list[str]:
    """Return the results of the turn's other dispatches, as they may state another value."""
    results = (d.result for d in turn.dispatches if d.id != dispatch.id and d.result is not None)
    runs = [run for run in turn.runs if run.id != dispatch.from_run and run.id not in dispatch.runs]
    outputs = (run.output for run in runs if run.output is not None)
    cards = (card.instructions for card in trace.agents.values() if card.instructions)
    return [*map(plain_text, results), *map(plain_text, outputs), *cards]


def _results_beside(turn: Turn, dispatch: Dispatch) -> list[list[Value]]:
    """Return the values of each other result of the dispatches that were issued together."""
    if dispatch.group is None:
        return []
    together = (
        d
        for d in turn.dispatches
        if d.group == dispatch.group and d.id != dispatch.id and d.from_run == dispatch.from_run
    )
    return [
        list(values_of(days_in_full(plain_text(d.result))))
        for d in together
        if d.result is not None
    ]


# So many sums at most, of results that hold many values.
_MOST_SUMS = 1000


def _unless_added_up(fault: Finding, beside: list[list[Value]]) -> Finding:
    """Return a fault, marked if the value is one of each result of the batch, added up.

    One agent found 3 pens and another 7, and the caller says that there are 10.
    """
    if fault.kind != "contradicted" or not beside:
        return fault
    meant, said = (
        {number for value in values_of(str(fault.details[key])) for number in value.numbers}
        for key in ("result", "said")
    )
    sums = meant
    for values in beside:
        numbers = {number for value in values for number in value.numbers}
        if len(sums) * len(numbers) > _MOST_SUMS:
            return fault
        sums = {round(one + other, 6) for one in sums for other in numbers}
    return msgspec.structs.replace(fault, kind=_ADDED) if sums & said else fault


class _Fault(NamedTuple):
    kind: str
    meant: Value
    """The value of the result."""
    value: Value
    """The value that the caller states."""


def _fault_of(value: Value, stated: CallerText, against: Known, *, sets_own: bool) -> _Fault | None:
    """Return how a value is against the result, if it is.

    ``sets_own``: `set_rent(1845)` sets the caller's own value. It does not report the median of
    1,855.
    """
    limit = broken_limit(value, against, stated.text) or changed_in_spite(value, against)
    if limit is not None:
        return _Fault("limit_broken", limit, value)
    if is_set_apart(value) or is_calculated(value):
        return None
    meant = misquoted(value, stated.text, stated.values, against.values, against.is_known)
    if meant is not None and not stated.is_call and not follows(value, stated.values, against):
        return _Fault("contradicted", meant, value)
    meant = with_swapped_digits(value, stated, against)
    if meant is not None and not keeps_to(value, meant):
        return _Fault("contradicted", meant, value)
    if reports_change(value, against.result):
        return None
    meant = in_other_unit(value, against)
    if meant is not None and not stated.is_call and not is_price_of_known(value, against):
        return _Fault("contradicted", meant, value)
    if sets_own:
        return None
    meant = in_same_words_of_row(value, stated, against)
    if meant is not None and not keeps_to(value, meant):
        return _fault(value, meant, stated)
    if against.said.holds(value.fact) or is_rounded(value, against):
        return None
    if value.kind == "identifier" and is_spelled_in(value.fact.text, against.result):
        return None
    meant = misstated(value, stated, against)
    if meant is None or keeps_to(value, meant) or is_same_end(value, meant):
        return None
    return _fault(value, meant, stated)


def _fault(value: Value, meant: Value, stated: CallerText) -> _Fault:
    """Return a contradiction, or a doubt where words can't be read or another value is wanted."""
    if in_other_script(value.sentence):
        return _Fault(_UNREAD, meant, value)
    return _Fault(_CHOSEN if stated.is_prompt else "contradicted", meant, value)


# No faults: the caller may have converted the value, may want another one from the next agent
# ("test it with a pool of 16" for "the pool has 14"), or used words that no rule knows.
_CONVERTED, _CHOSEN, _UNREAD, _ADDED = "converted", "chosen", "unread", "added"
_IN_DOUBT = {
    _ADDED: "can't tell whether it added up the results that came back together",
    _CONVERTED: "can't tell whether it converted that value",
    _CHOSEN: "can't tell whether it chose another value for the next agent",
    _UNREAD: "can't tell whether that is the same, as the words of its language are not known",
}


def _unless_converted(fault: _Fault, stated: CallerText, against: Known) -> _Fault:
    """Return a fault, marked if the value may be the result's in another zone, currency or unit."""
    if fault.kind != "contradicted":
        return fault
    texts = [stated.text, *against.texts]
    if may_be_converted(fault.meant, fault.value, stated.values, against.values, texts):
        return fault._replace(kind=_CONVERTED)
    return fault


# Agents that act through code write their calls as text.
_WRITTEN_CALL = regex(r"\s{0,8}([A-Za-z_][\w.]{0,80})\([^\n]{0,2000}\)\s{0,8}")


def _called(text: str, call: ToolCall | None) -> str:
    """Return the name of a call, or of a call that is written as a text, or nothing."""
    if call is not None:
        return call.name
    written = _WRITTEN_CALL.fullmatch(text)
    return written[1] if written is not None else ""


def _is_given(value: Value, text: str, mine: list[Value]) -> bool:
    """Return whether a value of the result comes up, possibly rounded.

    18,640 EUR can be 18.64 in another country, but "week 19" does not state it.
    """
    answer = read(text)
    if answer.holds(value.fact, loosely=value.fact.kind != "number"):
        return True
    if value.kind == "identifier" and is_spelled_in(value.fact.text, text):
        return True
    rounded = frozenset[str]().union(*(rounded_keys(key) for key in value.fact.keys))
    largest = max(value.numbers, default=0.0)
    return any(
        rounded & other.fact.keys
        and (other.kind == value.kind or are_near(other.numbers, [largest], 0.1))
        for other in mine
    )


def _finding(dispatch: Dispatch, piece: Piece, fault: _Fault) -> Finding:
    meant, value = fault.meant, fault.value
    shown = _shown(meant), _shown(value)
    if shown[0] == shown[1]:  # 104 EUR and 104 GBP
        shown = _with_kind(meant), _with_kind(value)
    return Finding(
        kind=fault.kind,
        says=f"`{dispatch.to_agent}` said `{shown[0]}`, the caller `{shown[1]}`",
        evidence=[
            Evidence(ids=[dispatch.id], quote=meant.clause.strip()[:120]),
            Evidence(ids=[piece.id], quote=value.clause.strip()[:120]),
        ],
        details={"result": meant.fact.text, "said": value.fact.text},
    )


def _shown(value: Value) -> str:
    """Return a value with its unit, as written in the text."""
    unit = unit_text(value) if value.sizes != value.numbers else ""
    return value.fact.text if value.fact.text.endswith(unit) else f"{value.fact.text} {unit}"


def _with_kind(value: Value) -> str:
    """Return a value with its currency, or with its unit as written."""
    return f"{value.fact.text} {value.kind if value.kind.isupper() else unit_text(value)}".strip()
