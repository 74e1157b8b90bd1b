"""Was the result of a dispatch used? Shown by the facts of it that the caller gave out again."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from baton.model import Dispatch, Evidence, Said, ToolCall, Trace, Turn, counted, known
from baton.model.views import RoundTrip, TooMuchTextError, broken, index_of, round_trip

from .caller_texts import Piece, all_recorded, given_out, had_before
from .dispatch_completed import reports_failure
from .facts import NUMBER, Fact, Reading, name_parts, number_keys, plain_text, read, weight
from .finding import TOO_LONG, Answer, Clear, Finding, NotRecorded, sender_of
from .words import COMMON, UNITS, gives_verdict, wants_verdict

_STATED = re.compile(
    rf"(?<![\w-])(?P<label>[^\W\d][\w-]{{0,60}})\s?(?:\(\))?\s?(?::|=|\bis\b|\bare\b|\bwas\b|\bwere\b|\bcosts?\b|"
    rf"\bist\b|\bkostet\b|\best\b|\bcoûte\b|\bes\b|\bcuesta\b)\s?(?:now\s|only\s|still\s)?"
    rf"(?P<sign>[$€£¥]?)\s?(?P<value>{NUMBER})(?![\w:/-])(?P<unit>\s?%|\s?[^\W\d]+)?"
)


class Contradiction(NamedTuple):
    """What is said against what, and the answer's words."""

    says: str
    quote: str


def contradictions(trip: RoundTrip, result: str, turn: Turn) -> list[Contradiction]:
    """Compare ``label: number`` statements of a result with those of the turn's answer.

    Only where the caller did nothing in between that may have changed the value, and the
    answer does not give the result's value as well.
    """
    if turn.output is None or any(not isinstance(step, Said) for step in trip.after):
        return []
    answer = plain_text(turn.output)
    numbers = read(answer).keys
    stated = _statements(answer)
    found = []
    for (label, unit), value in _statements(result).items():
        other = stated.get((label, unit))
        if other is not None and not number_keys(value) & numbers:
            says = f"the result says {label} {value}, the answer {other}"
            found.append(Contradiction(says, answer[:120]))
    return found


def _statements(text: str) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for match in _STATED.finditer(text):
        label = match["label"].casefold()
        if label not in COMMON:
            after = (match["unit"] or "").strip().casefold()
            unit = match["sign"] or (after if after in UNITS or after == "%" else "")
            found.setdefault((label, unit), match["value"])
    return found


class Repeated(NamedTuple):
    """``all`` calls that the child made; ids of the caller's calls that repeat half of them.

    ``repeated`` is empty when fewer than half were, or the child's calls were not recorded.
    """

    all: int
    repeated: list[str]


def repeated_calls(trace: Trace, trip: RoundTrip) -> Repeated:
    """Find calls with the same name and arguments on both sides of an answer.

    Reading what is changed afterwards is no repetition: a call that a later one of another
    tool has an identifier or path in common with.
    """
    if not all(known(trace, run, "steps.tool_call") for run in trip.runs):
        return Repeated(0, [])
    made = [s for run in trip.runs for s in run.steps if isinstance(s, ToolCall)]
    child = {_same(call) for call in made if call.dispatch is None}
    after = [s for s in trip.after if isinstance(s, ToolCall) and s.dispatch is None]
    again: dict[bytes, str] = {}
    for i, call in enumerate(after):
        if _same(call) in child and not _prepares(call, after[i + 1 :]):
            again.setdefault(_same(call), call.id)
    enough = bool(again) and 2 * len(again) >= len(child)
    return Repeated(len(child), list(again.values()) if enough else [])


def _same(call: ToolCall) -> bytes:
    return msgspec.json.encode((call.name, call.arguments), order="deterministic")


def _prepares(call: ToolCall, later: list[ToolCall]) -> bool:
    target = _targets(call)
    return any(other.name != call.name and target & _targets(other) for other in later)


def _targets(call: ToolCall) -> frozenset[str]:
    facts = read(plain_text(call.arguments)).facts
    return frozenset(key for f in facts if f.kind in ("path", "identifier") for key in f.keys)


LONG = 20
REGENERATED_BELOW = 0.2
TERSE = 3


class Limits(NamedTuple):
    """``ignored_below``: the share from which on a result is used. ``facts`` it has to have."""

    ignored_below: float = 0.05
    facts: int = 3


class _Case(NamedTuple):
    """One round trip as read."""

    trip: RoundTrip
    facts: list[Fact]
    found: list[Fact]
    had: Reading
    pieces: list[Piece]
    said: Reading

    @property
    def share(self) -> float:
        return min(1.0, weight(self.found) / min(weight(self.facts), LONG))


def result_used(
    trace: Trace, turn: Turn, dispatch: Dispatch, limits: Limits | None = None
) -> Answer:
    """Tell whether a caller made anything of what came back.

    ``ignored`` and ``regenerated`` are faults, ``contradicted`` is a warning. A failure that is
    reported was used. ``NotRecorded``: nothing came back, fewer facts than ``limits.facts``, the
    caller's words were not recorded, or are too few to tell.
    """
    try:
        return _used(trace, turn, dispatch, limits or Limits())
    except TooMuchTextError:
        return NotRecorded(says=TOO_LONG)


def _used(trace: Trace, turn: Turn, dispatch: Dispatch, limits: Limits) -> Answer:
    index, run = index_of(trace), sender_of(trace, dispatch)
    if not index.spend(1 + len(run.steps if run is not None else ())):
        return NotRecorded(says=TOO_LONG)
    trip = round_trip(trace, dispatch)
    failed = dispatch.status in ("failed", "refused", "unanswered")
    if trip.result is None and not (failed and dispatch.error):
        return NotRecorded(says=_nothing_back(trace, dispatch))
    result = plain_text(trip.result) if trip.result is not None else str(dispatch.error)
    pieces = given_out(trace, turn, trip)
    if not index.spend(len(pieces)):
        return NotRecorded(says=TOO_LONG)
    if failed:
        return _failure(trip, result, pieces)
    before = had_before(trace, turn, dispatch)
    if not index.spend(len(before)):
        return NotRecorded(says=TOO_LONG)
    had = read(*(piece.text for piece in before))
    facts = read(result).without(had)
    if len(facts) < limits.facts:
        amount = counted(len(facts), "fact")
        return NotRecorded(
            says=f"the result holds {amount} that the caller had not already; "
            f"{limits.facts} are needed to tell"
        )
    said = read(*(piece.text for piece in pieces))
    found = [fact for fact in facts if said.holds(fact, loosely=True)]
    case = _Case(trip, facts, found, had, pieces, said)
    return _judged(trace, turn, case, result, limits)


def _judged(trace: Trace, turn: Turn, case: _Case, result: str, limits: Limits) -> Answer:
    details = _details(case)
    again = _regenerated(trace, case, result)
    if again is not None:
        return [again]
    if case.share < limits.ignored_below:
        doubt = _doubt(trace, turn, case, result)
        if doubt is not None:
            return NotRecorded(says=f"{_told(case)}, but {doubt}")
        return [
            Finding(
                kind="ignored",
                says=f"the result of `{case.trip.dispatch.to_agent}` was not used: {_told(case)}",
                share=case.share,
                evidence=_evidence(case, result),
                details=details,
            )
        ]
    against = [
        Finding(
            kind="contradicted",
            says=one.says,
            share=case.share,
            warning=True,
            evidence=[Evidence(ids=[case.trip.dispatch.id, turn.id], quote=one.quote)],
            details=details,
        )
        for one in contradictions(case.trip, result, turn)
    ]
    return against or Clear(says=f"the result was used: {_told(case)}", details=details)


def _regenerated(trace: Trace, case: _Case, result: str) -> Finding | None:
    """Find work that was done again by a caller that shows nothing of the result."""
    dispatch, calls = case.trip.dispatch, repeated_calls(trace, case.trip)
    if case.share >= REGENERATED_BELOW or not calls.repeated:
        return None
    return Finding(
        kind="regenerated",
        says=f"`{dispatch.from_agent}` did the work of `{dispatch.to_agent}` again: "
        f"{len(calls.repeated)} of {calls.all} tool calls; {_told(case)}",
        share=case.share,
        evidence=[Evidence(ids=[dispatch.id, *calls.repeated], quote=result[:120])],
        details=_details(case),
    )


def _failure(trip: RoundTrip, result: str, pieces: list[Piece]) -> Answer:
    """Judge what was made of a failure: saying so is using it, trying otherwise may be."""
    said = "\n".join(piece.text for piece in pieces)
    reported = next((piece for piece in pieces if reports_failure(piece.text)), None)
    details = {"failure": result[:200]}
    if reported is not None:
        return Clear(says="the failure was reported", details=details)
    if not said.strip() or any(not isinstance(step, Said) for step in trip.after):
        return NotRecorded(
            says="the dispatch failed, and what the caller did then may be its answer"
        )
    if len(read(said).facts) < TERSE:
        return NotRecorded(says="the dispatch failed, and the caller said too little to tell")
    return [
        Finding(
            kind="ignored",
            says=f"`{trip.dispatch.to_agent}` failed, and nobody said so",
            evidence=[Evidence(ids=[trip.dispatch.id, *_ids(pieces)], quote=result[:120])],
            details=details,
        )
    ]


def _doubt(trace: Trace, turn: Turn, case: _Case, result: str) -> str | None:
    """Say why a result may have been used although little of it shows."""
    if not all_recorded(trace, turn, case.trip.dispatch):
        return "not all that the caller said was recorded: record its messages and calls"
    if broken(turn) or turn.status != "completed":
        return "the turn did not come to its end"
    if not case.pieces:
        return "the caller said nothing afterwards"
    if len(read(*_words(turn, case)).without(case.had)) < TERSE:
        return "the caller said too little to tell"
    if any(f"w:{part}" in case.said.keys for part in name_parts(case.trip.dispatch.to_agent)):
        return "the caller speaks of the agent that it heard"
    asked = _asked_for(trace, turn, case.trip.dispatch)
    if wants_verdict(asked) and any(gives_verdict(text) for text in _words(turn, case)):
        return "the caller was asked whether something is so, and says so"
    spoken, answered = case.said.language, read(result).language
    if spoken and answered and spoken != answered:
        return "the caller spoke another language"
    return None


def _asked_for(trace: Trace, turn: Turn, dispatch: Dispatch) -> str:
    """Return what the caller itself was asked: its input, else the user's message."""
    run = sender_of(trace, dispatch)
    asked = (run.input if run is not None else None) or turn.input
    return plain_text(asked) if asked is not None else ""


def _words(turn: Turn, case: _Case) -> list[str]:
    """Return what the caller put into words; what it only did may follow from the result."""
    texts = [plain_text(step.content) for step in case.trip.after if isinstance(step, Said)]
    return texts if turn.output is None else [*texts, plain_text(turn.output)]


def _nothing_back(trace: Trace, dispatch: Dispatch) -> str:
    if not known(trace, dispatch, "result"):
        return "the result was not recorded: record what agents say and what calls return"
    if dispatch.kind == "delegate":
        return "nothing came back: see `dispatch_completed`"
    return f"control moved on by a {dispatch.kind}; no result came back"


def _told(case: _Case) -> str:
    return f"{len(case.found)} of {len(case.facts)} facts of it came up again"


def _details(case: _Case) -> dict[str, Any]:
    missing = [fact.text for fact in case.facts if fact not in case.found]
    return {
        "used": round(case.share, 4),
        "facts": len(case.facts),
        "found": [fact.text for fact in case.found][:20],
        "missing": missing[:20],
    }


def _evidence(case: _Case, result: str) -> list[Evidence]:
    quote = next((p.text for p in case.pieces if p.text.strip()), "")
    return [
        Evidence(ids=[case.trip.dispatch.id], quote=result[:120]),
        Evidence(ids=_ids(case.pieces), quote=quote[:120] or None),
    ]


def _ids(pieces: list[Piece]) -> list[str]:
    return list(dict.fromkeys(piece.id for piece in pieces))
