"""Was the result of a dispatch used? The facts that the caller repeats from it show this."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from baton.model import Dispatch, Evidence, Said, Step, ToolCall, Trace, Turn, counted, known
from baton.model.views import RoundTrip, TooMuchTextError, broken, index_of, round_trip

from .caller_texts import (
    Piece,
    all_recorded,
    emitted,
    given_out,
    had_before,
    turns_to,
)
from .denied_failures import denies_failure
from .dispatch_completed import reports_failure
from .empty_answers import (
    denies_data,
    finds_nothing,
    is_mainly_negative,
    is_of_this,
    is_pending,
    lacks_answer,
    only_asks,
    only_polite,
    parts_of,
    postpones,
    says_the_opposite,
    speaks_in_general,
    speaks_of_some,
)
from .facts import HARD, Fact, Reading, name_parts, plain_text, read, weight
from .finding import (
    TOO_LONG,
    Answer,
    Clear,
    Finding,
    NotRecorded,
    call_key,
    same_result,
    sender_of,
)
from .lazy_patterns import regex
from .refers_away import (
    asks_for_facts,
    is_unable,
    refers_away,
    refers_somewhere,
)
from .shown_in_part import has_stem, in_other_form, shows_in_part
from .words import gives_verdict, is_negative, wants_verdict


class Repeated(NamedTuple):
    """``all`` calls of the child, and the ids of the caller's calls that repeat half of them.

    ``repeated`` is empty if fewer than half were repeated, or the child's calls were not recorded.
    """

    all: int
    repeated: list[str]


def repeated_calls(trace: Trace, trip: RoundTrip) -> Repeated:
    """Find calls with the same name and arguments on both sides of an answer.

    Reading something before changing it is not repetition: a call does not count if a later call of
    another tool has an identifier or path in common with it.
    """
    if not all(known(trace, run, "steps.tool_call") for run in trip.runs):
        return Repeated(0, [])
    made = [s for run in trip.runs for s in run.steps if isinstance(s, ToolCall)]
    child = {call_key(call): call for call in made if call.dispatch is None}
    after = [s for s in trip.after if isinstance(s, ToolCall) and s.dispatch is None]
    again: dict[bytes, str] = {}
    changed = False
    for i, call in enumerate(after):
        first = child.get(call_key(call))
        if first is None:
            # A caller checks again what another call may have changed: an edit, then tests.
            changed = True
        elif not changed and same_result(first, call) and not _prepares(call, after[i + 1 :]):
            again.setdefault(call_key(call), call.id)
    # Half, because one call in common is normal: the caller opens the file its helper mentioned. A
    # caller that repeats all the work repeats most calls, but may skip a detour of the helper.
    enough = bool(again) and 2 * len(again) >= len(child)
    return Repeated(len(child), list(again.values()) if enough else [])


# `Read(src/retry.py)` by the caller, after a helper read it, and then `Edit(src/retry.py)`: coding
# agents have to read a file themselves before they can change it.
def _prepares(call: ToolCall, later: list[ToolCall]) -> bool:
    target = _targets(call)
    return any(other.name != call.name and target & _targets(other) for other in later)


def _targets(call: ToolCall) -> frozenset[str]:
    facts = read(plain_text(call.arguments)).facts
    return frozenset(key for f in facts if f.kind in ("path", "identifier") for key in f.keys)


# The maximum weight of facts that a caller is expected to use: 7 numbers or names, or 20 words. If
# a helper lists 100 items with a weight of 3 each, the total is 300. A caller that names the one
# that fits would have used 1 % of it; with the bound it is 3 / 20.
LONG = 20
# Repeated calls are a fault only if the caller repeats hardly anything from the result: a caller
# that checks an answer once more, and then passes it on, did well. This share is above
# `ignored_below`, because repeated calls are additional evidence.
REGENERATED_BELOW = 0.2
# It is unknown what a caller used that only answers "All booked.", so it has to state some facts
# itself.
TERSE = 3
# The number of numbers and names in a result about a specific thing.
SPECIFIC = 3
# A result with this many new facts, numbers or names and words among them. If an answer has none of
# its numbers and names, and at most a tenth of its facts, a word that comes up may be chance, so it
# is no proof of use. Nor is it one against it: an answer can be a verdict, or a bedtime story about
# autumn leaves. Answers calculate with tables of numbers, so words are needed as well.
RICH = 15
RICH_WORDS = 5
HARDLY = 0.1


class Limits(NamedTuple):
    """``ignored_below``: with this share or more, a result was used.

    ``facts``: the number it needs.
    """

    # A share below 0.05 is nothing at all, or 1 word of a long result, which may be chance. With
    # 0.1, a result would fail that was used but shows little (1 word of 12).
    ignored_below: float = 0.05
    # The use of "Done, 2 files." can hardly be seen.
    facts: int = 3


class _Case(NamedTuple):
    """One round trip, with the facts and texts that were read."""

    trip: RoundTrip
    facts: list[Fact]
    found: list[Fact]
    had: Reading
    pieces: list[Piece]
    said: Reading
    own: list[Fact]
    """Repeated facts that the caller's own calls had returned before."""
    asked: str
    """The caller's own request."""

    @property
    def share(self) -> float:
        return min(1.0, weight(self.found) / min(weight(self.facts), LONG))


def result_used(
    trace: Trace, turn: Turn, dispatch: Dispatch, limits: Limits | None = None
) -> Answer:
    """Return whether a caller made use of the result.

    ``ignored`` and ``regenerated`` are faults. A failure that is reported was used.
    ``NotRecorded``: nothing came back, fewer facts than ``limits.facts``, the
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
    pieces = _own_words(trace, turn, trip)
    if not index.spend(len(pieces)):
        return NotRecorded(says=TOO_LONG)
    if failed:
        answer = _failure(trip, result, pieces)
        cut = isinstance(answer, list) and _later_is_cut(trace, turn)
        return NotRecorded(says=_CUT) if cut else answer
    before = had_before(trace, turn, dispatch)
    if not index.spend(len(before)):
        return NotRecorded(says=TOO_LONG)
    had = read(*(piece.text for piece in before))
    # A word that was in the prompt comes up again anyway: asked for "a hotel in Paris", the caller
    # speaks of Paris whether it read the answer or not.
    facts = read(result).without(had)
    said = read(*(piece.text for piece in pieces))
    # Loosely, because callers round: 231,800 in the result is "about 232,000" in the answer.
    shown = [fact for fact in facts if said.holds(fact, loosely=True)]
    own = _fetched_itself(trace, trip, shown)
    used = [fact for fact in shown if fact not in own]
    asked_for = _asked_for(trace, turn, dispatch)
    case = _Case(trip, facts, used, had, pieces, said, own, asked_for)
    if len(facts) < limits.facts:
        # "INV-7 was paid" is too little to see its use in an answer, but a caller that looks it up
        # again has repeated work without need. A caller that repeats only the last of several calls
        # may be checking a change.
        again = _regenerated(trace, case, result, whole=True) if facts else None
        if again is not None:
            return [again]
        amount = counted(len(facts), "fact")
        return NotRecorded(
            says=f"the result holds {amount} that the caller did not have before; {limits.facts} "
            "are needed to decide"
        )
    return _judged(trace, turn, case, result, limits)


class FactUse(NamedTuple):
    """A fact of a result, and the ids of the steps that repeat it, in order.

    ``own``: the caller's own calls had returned it by then, so repeating it proves nothing.
    """

    text: str
    ids: list[str]
    own: bool


def fact_uses(trace: Trace, turn: Turn, dispatch: Dispatch) -> list[FactUse] | None:
    """Return the facts of a result that were new to its caller, and the steps that repeat them.

    Numbers, names and paths come before words. ``None``: nothing came back, or the trace is too
    large.
    """
    try:
        index = index_of(trace)
        trip = round_trip(trace, dispatch)
        if trip.result is None:
            return None
        pieces = _own_words(trace, turn, trip)
        before = had_before(trace, turn, dispatch)
        if not index.spend(1 + len(pieces) + len(before)):
            return None
        had = read(*(piece.text for piece in before))
        facts = read(plain_text(trip.result)).without(had)
        said = [(piece.id, read(piece.text)) for piece in pieces]
        uses = {
            fact: [id_ for id_, reading in said if reading.holds(fact, loosely=True)]
            for fact in sorted(facts, key=lambda fact: fact.weight, reverse=True)
        }
        own = _fetched_itself(trace, trip, [fact for fact, ids in uses.items() if ids])
    except TooMuchTextError:
        return None
    return [FactUse(fact.text, list(dict.fromkeys(ids)), fact in own) for fact, ids in uses.items()]


def _own_words(trace: Trace, turn: Turn, trip: RoundTrip) -> list[Piece]:
    """Return what a caller gave out after a result, without calls that the receiver had made."""
    again = _made_again(trip)
    return [piece for piece in given_out(trace, turn, trip) if piece.id not in again]


def _made_again(trip: RoundTrip) -> set[str]:
    """Return the ids of the caller's calls that the receiver had made.

    `get_invoice(INV-7)` is not a use of what a receiver found with the same call.
    """
    made = {call_key(s) for run in trip.runs for s in run.steps if isinstance(s, ToolCall)}
    if not made:
        return set()
    return {s.id for s in trip.after if isinstance(s, ToolCall) and call_key(s) in made}


def _is_fetched(step: Step) -> bool:
    return isinstance(step, ToolCall) and step.dispatch is None and step.result is not None


def _fetched_itself(trace: Trace, trip: RoundTrip, shown: list[Fact]) -> list[Fact]:
    """Return the facts that the caller repeated only after its own calls had returned them.

    They prove no use: a caller that ignores a result and repeats the work states the same facts.
    """
    fetched = [i for i, step in enumerate(trip.after) if _is_fetched(step)]
    if not fetched:
        return []
    again = _made_again(trip)
    # Facts that were repeated before the first of these calls came from the result.
    first = emitted(trace, trip.after[: fetched[0] + 1])
    before = read(*(piece.text for piece in first if piece.id not in again))
    left = [fact for fact in shown if not before.holds(fact, loosely=True)]
    own, results = Reading((), frozenset()), []
    for step in trip.after[fetched[0] :]:
        if not left or not index_of(trace).spend(1 + len(left) // 100):
            return []
        given = ""
        if isinstance(step, Said):
            given = plain_text(step.content)
        elif isinstance(step, ToolCall) and step.id not in again:
            given = f"{step.name}\n{plain_text(step.arguments)}"
        reading = read(given)
        left = [f for f in left if own.holds(f) or not reading.holds(f, loosely=True)]
        if isinstance(step, ToolCall) and _is_fetched(step) and step.result is not None:
            results.append(plain_text(step.result))
            own = read(*results)
    return [fact for fact in left if own.holds(fact)]


def _judged(trace: Trace, turn: Turn, case: _Case, result: str, limits: Limits) -> Answer:
    details = _details(case)
    again = _regenerated(trace, case, result)
    if again is not None:
        return [again]
    away = _refers_away(turn, case, result) or _denies_failure(turn, case, result)
    hidden = case.share < limits.ignored_below or _is_empty(trace, turn, case, result)
    if not (away or hidden):
        if _shows_by_chance(turn, case):
            return NotRecorded(says=f"{_counted(case)}, which may be chance")
        return Clear(says=f"the result was used: {_counted(case)}", details=details)
    if case.own:
        return NotRecorded(
            says=f"{_counted(case)}, but {len(case.own)} of them also came from the caller's own "
            "calls: can't tell which it used"
        )
    # A report on a failed payment is more than a failure, and "that can fail" does not pass it on.
    failed = not away and not _is_rich(case) and reports_failure(result)
    if failed and not _says_that_it_was_ignored(turn, case, result):
        if any(reports_failure(text) for text in _words(turn, case)):
            return Clear(says="the failure or refusal was passed on", details=details)
    doubt = _unrecorded(trace, turn, case) if away else _doubt(trace, turn, case, result)
    if doubt is not None:
        return NotRecorded(says=f"{_counted(case)}, but {doubt}")
    return [
        Finding(
            kind="ignored",
            says=f"the result of `{case.trip.dispatch.to_agent}` was not used: {_counted(case)}",
            share=case.share,
            evidence=_evidence(case, result),
            details=details,
        )
    ]


def _is_rich(case: _Case) -> bool:
    """Return whether a result has so many facts that its use mostly shows."""
    hard = sum(fact.kind in HARD for fact in case.facts)
    return len(case.facts) >= RICH and hard >= SPECIFIC and len(case.facts) - hard >= RICH_WORDS


def _shows_by_chance(turn: Turn, case: _Case) -> bool:
    """Return whether an answer has no number or name of a rich result, and hardly a word."""
    if not _is_rich(case) or any(fact.kind in HARD for fact in case.found):
        return False
    said = " ".join(_words(turn, case)).casefold()
    alike = [fact for fact in case.facts if fact not in case.found and has_stem(fact, said)]
    return len(case.found) + len(alike) <= HARDLY * len(case.facts)


def _regenerated(trace: Trace, case: _Case, result: str, *, whole: bool = False) -> Finding | None:
    """Find work that a caller did again without using the result.

    ``whole``: only if each of the receiver's calls was repeated.
    """
    dispatch, calls = case.trip.dispatch, repeated_calls(trace, case.trip)
    # Checked before `ignored`: if work was done again, that is the more useful message.
    if case.share >= REGENERATED_BELOW or not calls.repeated:
        return None
    if whole and len(calls.repeated) < calls.all:
        return None
    return Finding(
        kind="regenerated",
        says=f"`{dispatch.from_agent}` did the work of `{dispatch.to_agent}` again: "
        f"{len(calls.repeated)} of {calls.all} tool calls; {_counted(case)}",
        share=case.share,
        evidence=[Evidence(ids=[dispatch.id, *calls.repeated], quote=result[:120])],
        details=_details(case),
    )


def _failure(trip: RoundTrip, result: str, pieces: list[Piece]) -> Answer:
    """Judge the reaction to a failure: reporting it counts as use, another attempt may count."""
    said = "\n".join(piece.text for piece in pieces)
    reported = next((piece for piece in pieces if reports_failure(piece.text)), None)
    details = {"failure": result[:200]}
    # The receiver failed, so there is no result to use. Somebody should report it: "Billing could
    # not be reached." Trying another tool may also be right, and can't be judged.
    if reported is not None:
        return Clear(says="the failure was reported", details=details)
    if not said.strip() or any(not isinstance(step, Said) for step in trip.after):
        return NotRecorded(
            says="the dispatch failed, and what the caller did afterwards may be its reaction"
        )
    # "I didn't get through to them" reports it in words that no list contains.
    if is_negative(said):
        return NotRecorded(says="the dispatch failed, and the caller may say so in its own words")
    if len(read(said).facts) < TERSE:
        return NotRecorded(says="the dispatch failed, and the caller said too little to decide")
    return [
        Finding(
            kind="ignored",
            says=f"`{trip.dispatch.to_agent}` failed, and no agent reported it",
            evidence=[Evidence(ids=[trip.dispatch.id, *_ids(pieces)], quote=result[:120])],
            details=details,
        )
    ]


_CUT = "what the caller did in later turns is not recorded"


def _later_is_cut(trace: Trace, turn: Turn) -> bool:
    """Return whether later turns contain only texts, as turns far from a case's dispatch do."""
    later = trace.turns[len(turns_to(trace, turn)) :]
    return not all(known(trace, each, "runs") for each in later)


def _unrecorded(trace: Trace, turn: Turn, case: _Case) -> str | None:
    """Return why a use may not have been recorded."""
    if not all_recorded(trace, turn, case.trip.dispatch):
        return "not all that the caller said was recorded: record its messages and calls"
    if broken(turn) or turn.status != "completed":
        return "the turn did not end"
    if _later_is_cut(trace, turn):
        return _CUT
    if not case.pieces:
        return "the caller said nothing afterwards"
    return None


def _doubt(trace: Trace, turn: Turn, case: _Case, result: str) -> str | None:
    """Return why a result may have been used although the answer shows little of it."""
    # These are the reasons why the use of a result may hardly be visible. Any of them is enough for
    # no verdict, because an evaluator that is on by default must hardly ever be wrong.
    unrecorded = _unrecorded(trace, turn, case)
    if unrecorded is not None:
        return unrecorded
    words = _words(turn, case)
    missing = [fact for fact in case.facts if fact not in case.found]
    if shows_in_part(words, result, case.facts, missing, case.had):
        return "the caller mentions something similar"
    if _says_that_it_was_ignored(turn, case, result):
        return None
    # "As the researcher says, this can't be done": a caller that names the helper has read its
    # answer.
    if any(f"w:{part}" in case.said.keys for part in name_parts(case.trip.dispatch.to_agent)):
        return "the caller mentions the agent that answered"
    asked = case.asked
    # "Are we ready for the release?" - "Not yet." may be based on everything that came back.
    if wants_verdict(asked) and any(gives_verdict(text) for text in words):
        return "the caller was asked a yes-or-no question, and answers it"
    # "They are full that night" passes on "No table: fully booked" without any of its words.
    if is_negative(result) and any(is_negative(text) for text in words):
        return "the result and the answer are both negative"
    # "I would take the earlier one" of two appointments that only the result names.
    if any(speaks_of_some(text) for text in words):
        return "the caller refers to one or some of several things, which may be in the result"
    other_form = next((why for text in words if (why := in_other_form(text, result))), None)
    if other_form is not None:
        return other_form
    spoken, answered = case.said.language, read(result).language
    # Facts are compared as words. A German answer to an English result shares only its numbers.
    if spoken and answered and spoken != answered:
        return "the caller spoke another language"
    if _is_general(turn, case, result):
        return None
    # "Homes are expected to stay scarce" passes on "supply will remain tight" with none of its
    # words, and no number of own words tells it from an answer about something else.
    return "the caller may have said it in its own words"


def _says_that_it_was_ignored(turn: Turn, case: _Case, result: str) -> bool:
    """Return whether the answer only announces a later answer, or asks about the work."""
    answer = _only_answer(turn, case)
    if answer is None:
        return False
    if _is_opposite(case, answer, result):
        return True
    # After a negative result the caller looks for another way: "Which other day would suit you?"
    if is_mainly_negative(result):
        return postpones(answer)
    return (
        postpones(answer)
        or (not is_negative(result) and only_asks(answer))
        or (lacks_answer(answer) and not is_pending(result))
        or (denies_data(answer) and not _ACCESS.search(result))
        or _only_asks_for_work(case, answer)
        or _finds_nothing(case, answer, result)
        or (
            # After a transfer, the receiver itself spoke to the user, so the caller need not add
            # anything.
            case.trip.dispatch.kind == "delegate"
            and only_polite(answer)
            and (_wants_facts(case.asked) or wants_verdict(case.asked))
        )
    )


def _only_answer(turn: Turn, case: _Case) -> str | None:
    """Return what a caller answers, if it did nothing else after the result.

    While a guard checks the answer of an agent below another one, the turn has no output yet.
    """
    if any(not isinstance(step, Said) for step in case.trip.after):
        return None
    words = _words(turn, case)
    return words[-1] if words else None


def _is_opposite(case: _Case, answer: str, result: str) -> bool:
    """Return whether a caller answers no to a question that the receiver answered with yes.

    Both must have got the same question: "Is it safe?" and "Any problems?" have opposite answers.
    """
    prompt = case.trip.dispatch.prompt
    if case.found or prompt is None or not says_the_opposite(answer, result):
        return False
    asked = plain_text(prompt)
    if asked.count("?") != 1 or is_negative(asked) or not wants_verdict(asked):
        return False
    return _WORDS.findall(asked.casefold()) == _WORDS.findall(case.asked.casefold())


_WORDS = regex(r"\w+")


def _finds_nothing(case: _Case, answer: str, result: str) -> bool:
    """Return whether an answer states that nothing of what was requested was found."""
    parts = finds_nothing(answer, result)
    return bool(parts) and not case.found and _is_of_request(case, parts)


def _only_asks_for_work(case: _Case, answer: str) -> bool:
    """Return whether an answer announces the work or asks for what it needs, and shares nothing."""
    parts = parts_of(answer)
    if parts.other or case.found or not (parts.announced or parts.asked):
        return False
    return _is_of_request(case, parts.announced)


# Most of the words count: "I'll look up the rates of the parcel" announces the work that was
# requested, "I'll look up the warranty of the pump" may be the next step for a worn pump.
def _is_of_request(case: _Case, parts: list[str]) -> bool:
    """Return whether texts are about the request, or name nothing."""
    words = [fact for part in parts for fact in read(part).facts]
    asked = read(case.asked)
    shared = [fact for fact in words if asked.holds(fact)]
    return not words or 2 * len(shared) > len(words)


# "Find me a hotel" and "Which is late?" request facts, "Send the reminder" requests an action.
_WANTS_FACTS = regex(
    r"""\b(?:find|show|list|tell|give|summari[sz]e|compare|explain|describe|what|which|who|when|where
        |why|how|suche|finde|zeige|was|welche\w*|wer|wann|wo|warum|wie|quel(?:le)?s?|combien|pourquoi
        |qué|cuál\w*|cuánt\w*|cuándo)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def _wants_facts(asked: str) -> bool:
    return _WANTS_FACTS.search(asked) is not None


# A caller may pass on that there was no access.
_ACCESS = regex(r"access|permission|permitted|forbidden|unauthori[sz]ed|40[13]", re.IGNORECASE)
# The number of plain words that an answer may share with a result by chance: after a request for
# the last quarter, the question "the calendar quarter or the fiscal one?" repeats a word of any
# report.
_CHANCE = 2


def _is_empty(trace: Trace, turn: Turn, case: _Case, result: str) -> bool:
    """Return whether an answer only announces, asks back or denies, even if it shares a word."""
    shares_little = len(case.found) <= _CHANCE and all(f.kind == "word" for f in case.found)
    return (
        shares_little
        and (_says_that_it_was_ignored(turn, case, result) or _is_general(turn, case, result))
        and _doubt(trace, turn, case, result) is None
    )


# A question for a cause is answered by one, maybe without a word of the result: "why is it late?".
# "What is late?" asks for a fact.
_WHY = regex(
    r"\b(?:why|what(?:['’]s| is| could be) wrong|what causes?|warum|wieso|pourquoi|por qué|perché"
    r"|waarom)\b",
    re.IGNORECASE,
)


# "It comes from a leak", "due to rain"; "it rains" states no cause.
_CAUSE = regex(
    r"\b(?:comes? from|caused? by|causes?|due to|means?|because|leads? to|results? (?:from|in)"
    r"|stems? from|kommt|kommen|liegt|vient|viennent|suele\w* (?:deberse|venir)|dipende)\b",
    re.IGNORECASE,
)


def _is_general(turn: Turn, case: _Case, result: str) -> bool:
    """Return whether a caller makes only general statements about a specific thing.

    The result makes none, and has numbers or names that the answer lacks.
    """
    answer = _only_answer(turn, case)
    if answer is None:
        return False
    # "Pale leaves usually come from too much lime" passes on why these leaves are pale.
    if _WHY.search(case.asked) and _CAUSE.search(answer):
        return False
    specific = sum(fact.kind in HARD for fact in case.facts) >= SPECIFIC and is_of_this(case.asked)
    return specific and speaks_in_general(answer) and not speaks_in_general(result)


def _refers_away(turn: Turn, case: _Case, result: str) -> bool:
    """Return whether a caller sends the user elsewhere for what the result has.

    "Delivery times vary. Please check with the shop", after a result with the day.
    """
    answer = _only_answer(turn, case)
    if answer is None or case.trip.dispatch.kind != "delegate" or not refers_away(answer):
        return False
    if case.found or sum(fact.kind in HARD for fact in case.facts) < _TELLS:
        return False
    if refers_somewhere(result) or reports_failure(result):
        return False
    # "Usually not. Please check with the council" answers whether a permit is needed.
    if wants_verdict(case.asked) and gives_verdict(answer):
        return False
    # "I can't tell" passes on that nothing is known.
    if is_unable(answer) and is_negative(result):
        return False
    if not is_unable(answer) and _shows_otherwise(case, answer, result):
        return False
    return asks_for_facts(case.asked)


def _shows_otherwise(case: _Case, answer: str, result: str) -> bool:
    """Return whether an answer gives a thing of the result in another form, or picks some of it.

    "From the summer, with a year and a half for older ones" passes on two dates.
    """
    missing = [fact for fact in case.facts if fact not in case.found]
    return (
        shows_in_part([answer], result, case.facts, missing, case.had)
        or speaks_of_some(answer)
        or in_other_form(answer, result) is not None
    )


def _denies_failure(turn: Turn, case: _Case, result: str) -> bool:
    """Return whether a caller claims what its only delegate could not do."""
    dispatch, answer = case.trip.dispatch, _only_answer(turn, case)
    if answer is None or dispatch.kind != "delegate":
        return False
    if any(fact.kind in HARD for fact in case.found):
        return False
    others = (d for d in turn.dispatches if d.id != dispatch.id and d.kind != "return")
    return not any(d.from_run == dispatch.from_run for d in others) and denies_failure(
        answer, result, case.asked
    )


# The fewest new numbers and names of a result that has something to tell.
_TELLS = 2


def _asked_for(trace: Trace, turn: Turn, dispatch: Dispatch) -> str:
    """Return the caller's own request: its input, else the user's message."""
    run = sender_of(trace, dispatch)
    asked = (run.input if run is not None else None) or turn.input
    return plain_text(asked) if asked is not None else ""


def _words(turn: Turn, case: _Case) -> list[str]:
    """Return the caller's texts. Actions are left out: they too can follow from the result.

    The answer to the user is not that of a caller which another agent set to work.
    """
    texts = [plain_text(step.content) for step in case.trip.after if isinstance(step, Said)]
    caller = case.trip.dispatch.from_run
    is_nested = any(d.kind == "delegate" and caller in d.runs for d in turn.dispatches)
    if turn.output is None or (is_nested and texts):
        return texts
    return [*texts, plain_text(turn.output)]


def _nothing_back(trace: Trace, dispatch: Dispatch) -> str:
    if not known(trace, dispatch, "result"):
        return "the result was not recorded: record what agents say and what calls return"
    if dispatch.kind == "delegate":
        return "nothing came back: see `dispatch_completed`"
    return f"control moved on by a {dispatch.kind}; no result came back"


def _counted(case: _Case) -> str:
    """Count the facts of the result: "2 of its 4 facts came up again"."""
    facts, found = len(case.facts), len(case.found)
    if facts == 1:
        return "its only fact came up again" if found else "its only fact did not come up again"
    share = "all" if found == facts else found or "none"
    return f"{share} of its {facts} facts came up again"


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
