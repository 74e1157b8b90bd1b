"""Does a caller state a different value from the result it got?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from baton.model import Dispatch, Evidence, Said, ToolCall, Trace, Turn, known
from baton.model.views import RoundTrip, TooMuchTextError, charge_work, index_of, round_trip

from .caller_texts import Piece, all_recorded, had_before
from .changed_values import is_transposed
from .facts import (
    Fact,
    Reading,
    charge_reading,
    is_spelled_in,
    plain_text,
    read,
    rounded_keys,
)
from .finding import (
    TOO_LONG,
    Answer,
    Clear,
    Finding,
    NotRecorded,
    changes_something,
    sender_of,
)
from .misquoted import has_code, misquoted
from .quantities import days_in_full, measure_key
from .values import (
    Value,
    days_of,
    decimal_places,
    is_converted,
    is_framed_alike,
    is_slip,
    is_tens_apart,
    labels,
    months_of,
    unit_size,
    unit_text,
    values_of,
)
from .words import COMMON

# An answer with more values is a table or a report, and comparing all pairs would take too long.
_MOST = 60
# Words that show that a clause means another value on purpose: "normal is 12 to 16", "Last year it
# was 12.1", "I suggest 60 s", "3 EUR are left". They count only if the result does not contain
# them.
_OTHERWISE = re.compile(
    r"""\b(?:normal\w*|usual\w*|typical\w*|average|last|previous\w*|earlier|former\w*|another|others?
        |would|should|could|might|suggest\w*|recommend\w*|propos\w*|advis\w*|want\w*|need\w*|instead
        |left|remain\w*|rest|free|total|together|altogether|sum|difference|combined|more|less|larger
        |smaller|longer|shorter|above|below|higher|lower|cheaper|dearer|höher|niedriger|teurer
        |günstiger|by\ law|if|once|ago|before|after|until|since|in\ time|warn\w*|again
        |your\ own|our\ own|bring|plus|minus|not\ \w+\ but|wrong\w*|correct\w*|mistake\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# A value computed from many values can have the digits of one of them.
_WORKED_OUT = re.compile(
    r"""\b(?:average|mean|median|total|sum|difference|each|together|altogether|in\ all|per\ \w+
        |durchschnitt\w*|insgesamt|zusammen|en\ moyenne|en\ tout|de\ media|en\ total
        |without|excluding|excl\.?|ohne|sans|sin)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Those of these words that certainly point to another date. "Before" does not: "come before 3
# June".
_ANOTHER = re.compile(
    r"""\b(?:normal\w*|usual\w*|last|next|previous\w*|earlier|later|former\w*|another|others?|again
        |suggest\w*|recommend\w*|propos\w*|instead|if|until|reminder|remind\w*|already)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Step 2" and "option 2" number the caller's own list.
_ENUMERATES = frozenset(
    """
    step option part day week month phase section chapter page point question level version line
    item figure table stage round year grade tier priority task case number example note variant
    schritt punkt teil tag seite frage étape partie point jour paso punto parte
    """.split()  # noqa: SIM905
)
# "Be at pier 4 at 14:15" for the ferry of 14:30.
_COMING = re.compile(
    r"\b(?:be (?:at|there|ready|in|on)|come|arrive|get (?:to|there)|meet|show up|check in|"
    r"leave (?:home|here|the)|set off|go to|wake|start from)\b",
    re.IGNORECASE,
)
_ZONE = re.compile(r"\b(?:UTC|GMT|CES?T|ME[SZ]Z?|[ECMP][SD]T|BST|JST|IST)\b")
# "For 30 kg Icepost is out" is about the user's parcel, not about the limit of 20 kg.
_SUPPOSES = re.compile(
    r"(?<!\W)\W*(?:for|if|with|above|over|under|beyond|für|bei|pour)\b", re.IGNORECASE
)
# "Your 1,845 is ten dollars under the median", "1,845 is right at the median": a value that is
# compared with the result's value is another value. So is a value that belongs to a person.
_OF_SOMEBODY = re.compile(
    r"""\b(?:your|my|our|their|his|her|ihr(?:e[nmrs]?)?|dein(?:e[nmrs]?)?|unser(?:e[nmrs]?)?|votre
        |vos|nos|mon|mes|su|sus|tu|tus|mis?)\s(?:(?:own|current|old|new|planned)\s)?
        (?:[€$£]|EUR\ |USD\ |GBP\ )?\s?$""",
    re.VERBOSE | re.IGNORECASE,
)
_SET_APART = re.compile(
    r"""^\D{0,40}?\b(?:is|are|was|were|would\ be|comes?|lies?|stands?)\b[^.;!?]{0,40}?
        \b(?:(?:less|more|fewer|cheaper|dearer|higher|lower|larger|smaller|shorter|longer|earlier
            |later|faster|slower|better|worse)\ than
        |under|below|over|above|short\ of|ahead\ of|behind|near|around|close\ to|in\ line\ with
        |(?:right|just|exactly|about|almost|well|still)\ (?:at|on|around|within|inside))
        \ (?:the|that|its|their|what)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# A caller that changed something states the new value: "The timeout is now 60".
_CHANGES = re.compile(
    r"\b(?:set|sets|changed?|raised?|lower(?:ed)?|updated?|increased?|reduced?|now|new|switched|moved|"
    r"replaced?|edited|bumped|geändert|gesetzt)\b",
    re.IGNORECASE,
)
# A setting: `MAX_ATTEMPTS`, `pool_size`, `poolSize`.
_SETTING = r"\w*_\w+|[A-Z]{3,}|[a-z]+[A-Z]\w*"
# Something that may not be changed according to a result: "MAX_ATTEMPTS must stay 3", "keep
# MAX_ATTEMPTS at 3". "Keep an eye on pool_size: it is 12" forbids nothing.
_STAYS = re.compile(
    r"\b(?:(?:must|should|has to|have to|needs to) (?:stay|remain)|(?:must|may|can|should) not be"
    r"|unchanged|fixed (?:at|to)|(?:keep|leave) (?:\S+ ){1,3}(?:at|as)\b|muss (?:\S+ ){1,3}bleiben"
    r"|(?:do not|don't|never|must not|may not|darf nicht) (?:\S+ ){0,2}"
    r"(?:change|touch|edit|alter|modify|set|geändert))",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|never|no|nicht|nie|kein\w*)\b|n['’]t\b", re.IGNORECASE)
# "Do not raise pool_size", "must not exceed": the value is a limit in one direction.
_RISES = re.compile(r"\b(?:rais|increas|exceed|grow|go over|erhöh)", re.IGNORECASE)
_FALLS = re.compile(r"\b(?:lower|reduc|decreas|drop|fall|go under|senk)", re.IGNORECASE)
_ABOUT = re.compile(
    r"\b(?:nearly|almost|about|roughly|around|approx\w*|circa|over|above|under|below|some|up to|"
    r"a little|just|(?:more|less|fewer) than|at (?:least|most)|gut|knapp|etwa|rund|fast)\b",
    re.IGNORECASE,
)
# "Eleven samples are below 100 mg/kg" is true of a value of 0.4 mg/kg.
_BELOW = re.compile(
    r"(?:\b(?:under|below|up to|at most|(?:less|fewer|lower|smaller) than|(?:no|not) more than"
    r"|maximum(?: of)?|(?:no|not) later than|at the latest|unter|höchstens|maximal|spätestens"
    r"|(?:kleiner|weniger) als)|[<≤])\s*[€$£]?$",
    re.IGNORECASE,
)
_ABOVE = re.compile(
    r"(?:\b(?:over|above|beyond|exceed|at least|(?:more|greater|higher|larger) than"
    r"|(?:no|not) (?:less|earlier) than|minimum(?: of)?|not before|über|mindestens|frühestens"
    r"|(?:größer|mehr) als)|[>≥])\s*[€$£]?$",
    re.IGNORECASE,
)
# "About 900 EUR" can be 890 EUR.
_APPROXIMATE = re.compile(
    r"(?:\b(?:nearly|almost|about|roughly|around|approx\w*\.?|circa|ca\.|some|etwa|rund|knapp|gut|fast"
    r"|environ|unos)|~)\s*[€$£]?$",
    re.IGNORECASE,
)
# These are limits themselves: the "no" in "no more than 5" reverses nothing.
_WHOLE_LIMIT = re.compile(
    r"\b(?:at (?:most|least)|(?:no|not) (?:more|less|later|earlier) than)\s*$", re.IGNORECASE
)
# The maximum number of words in a clause that are in neither the result nor the request. Three are
# allowed with a number that looks like a slip (`4,130.75` for `4,310.75`), otherwise none: a clause
# with new words may be about something else ("Your train costs 9 GBP" after a flight of 64 GBP).
_NEW_WORDS_OF_SLIP = 3
_NEW_WORDS = 0
_NEW_WORDS_OF_LABEL = 2
# The minutes that times are rounded to, and the largest distance: "half past three" for 15:29.
_QUARTER_HOUR = 15
_MINUTES_ROUNDED = 4
# The minimum number of different digits for comparing values with reordered digits.
_SWAPPED = 3
# The largest distance of a number with "about" from the computed value.
_ROUGHLY = 0.02
# Double, and the numbers of days, weeks, months and hours in one another.
_TIMES = {float(n) for n in range(2, 32)} - {10.0}
_CONSTANTS = (2.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 365.0)


class _Known(NamedTuple):
    """What the caller can state without contradicting the result. ``values`` are the result's."""

    result: str
    said: Reading
    values: list[Value]
    others: list[Value]
    words: frozenset[str]
    texts: list[str]

    def is_known(self, code: str) -> bool:
        """Return whether any text has a code, in any spelling: `TAB-114`, `tab 114`."""
        return any(has_code(code, text) for text in self.texts)


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
        return NotRecorded(says="the result holds no number, time, date or name")
    if len(values) > _MOST:
        return NotRecorded(says=f"the result holds {len(values)} values: too many to compare")
    before = had_before(trace, turn, dispatch)
    others = _results_of_others(trace, turn, dispatch)
    if not index_of(trace).spend(len(before) + len(others) + len(trip.after)):
        return NotRecorded(says=TOO_LONG)
    said = [result, *(days_in_full(text) for text in (*(p.text for p in before), *others))]
    faults = list(_faults(trip, turn, result, values, said))
    told = [fault for fault in faults if not _may_be_from_elsewhere(trace, turn, trip, fault)]
    if told:
        return told
    if faults:
        return NotRecorded(
            says=f"{faults[0].says}, but the result of another call of the caller was not "
            "recorded, and may hold that value"
        )
    # A fault stays a fault, whatever the other texts say. To rule out a fault, all texts are
    # needed.
    if turn.status == "incomplete" or not all_recorded(trace, turn, dispatch):
        return NotRecorded(
            says="not all that the caller said was recorded: record its messages and calls"
        )
    if next(_given_out(trip, turn), None) is None:
        return NotRecorded(says="the caller said nothing afterwards")
    return Clear(says="nothing that the caller says is against the result")


def _faults(
    trip: RoundTrip, turn: Turn, result: str, values: list[Value], said: list[str]
) -> Iterator[Finding]:
    """Check the caller's output in order. Tool results count as known from then on."""
    reported: set[str] = set()
    against = _known_now(result, values, said)
    for each, call in _given_out(trip, turn):
        piece = each._replace(text=days_in_full(each.text))
        mine = list(values_of(piece.text))
        if len(mine) <= _MOST:
            charge_work(1 + len(against.others) * len(mine) // 4)
            found = list(_against(trip.dispatch, piece, mine, against, call))
            if call is not None and not found:
                found = list(_set_by(trip.dispatch, piece, call, against))
            for finding in found:
                if finding.says not in reported:
                    reported.add(finding.says)
                    yield finding
        if call is not None:
            reply = plain_text(call.result) if call.result is not None else ""
            against = _told(against, [piece.text, reply])


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


def _given_out(trip: RoundTrip, turn: Turn) -> Iterator[tuple[Piece, ToolCall | None]]:
    for step in trip.after:
        if isinstance(step, Said) and not step.thought:
            yield Piece(step.id, plain_text(step.content)), None
        elif isinstance(step, ToolCall):
            yield Piece(step.id, plain_text(step.arguments)), step
    if turn.output is not None:
        yield Piece(turn.id, plain_text(turn.output)), None


def _set_by(dispatch: Dispatch, piece: Piece, call: ToolCall, against: _Known) -> Iterator[Finding]:
    """Find settings that a call changed to a value that the result rules out: `set(pool_size=80)`.

    A refused call changed nothing, and a call that only reads may ask about any value.
    """
    if call.status in ("refused", "failed") or not changes_something(call.name):
        return
    for name, number in _settings(call.arguments):
        if name not in against.result:
            continue
        for value in values_of(f"{name} = {number}"):
            limit = _broken_limit(value, against, piece.text)
            if limit is not None:
                yield _finding(dispatch, piece, limit, value, "limit_broken")


def _settings(arguments: Any) -> Iterator[tuple[str, float]]:
    """Yield the numbers in arguments, by name, including nested ones."""
    due = [arguments]
    while due:
        each = due.pop()
        for name, value in each.items() if isinstance(each, dict) else ():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield str(name), value
            else:
                due.append(value)


def _results_of_others(trace: Trace, turn: Turn, dispatch: Dispatch) -> list[str]:
    """Return the results of the turn's other dispatches, as they may state another value."""
    results = (d.result for d in turn.dispatches if d.id != dispatch.id and d.result is not None)
    runs = [run for run in turn.runs if run.id != dispatch.from_run and run.id not in dispatch.runs]
    outputs = (run.output for run in runs if run.output is not None)
    cards = (card.instructions for card in trace.agents.values() if card.instructions)
    return [*map(plain_text, results), *map(plain_text, outputs), *cards]


def _known_now(result: str, values: list[Value], said: list[str]) -> _Known:
    reading = read(*said)
    charge_reading(said, times=4)  # as a whole, and split into clauses for their values
    others = [value for text in said[1:] for value in values_of(text)]
    words = frozenset(key for key in reading.keys if key.startswith("w:"))
    return _Known(result, reading, values, others, words, said)


def _told(known: _Known, texts: list[str]) -> _Known:
    """Return what is known when these texts are added."""
    more = read(*texts)
    charge_work(1 + (len(known.said.keys) + len(known.others)) // 100)
    return known._replace(
        said=known.said.with_all_of(more),
        others=known.others + [value for text in texts for value in values_of(text)],
        words=known.words | {key for key in more.keys if key.startswith("w:")},
        texts=[*known.texts, *texts],
    )


def _against(
    dispatch: Dispatch, piece: Piece, mine: list[Value], against: _Known, call: ToolCall | None
) -> Iterator[Finding]:
    is_call = call is not None
    # `set_rent(1845)` sets the caller's own value. It does not report the median of 1,855.
    written = _WRITTEN_CALL.fullmatch(piece.text)
    name = call.name if call is not None else written[1] if written is not None else ""
    sets = changes_something(name)
    lost = [v for v in against.values if not _is_given(v, piece.text, mine)]
    for value in mine:
        limit = _broken_limit(value, against, piece.text) or _changed_in_spite(value, against)
        if limit is not None:
            yield _finding(dispatch, piece, limit, value, "limit_broken")
            continue
        if _is_set_apart(value) or _is_calculated(value):
            continue
        code = misquoted(value, piece.text, mine, against.values, against.is_known)
        if code is not None and not is_call and not _follows(value, mine, against):
            yield _finding(dispatch, piece, code, value, "contradicted")
            continue
        swapped = _swapped(value, lost, against)
        if swapped is not None and not _keeps_to(value, swapped):
            yield _finding(dispatch, piece, swapped, value, "contradicted")
            continue
        if _is_changed(value.clause, against.result):
            continue
        unit = _other_unit(value, against)
        if unit is not None and not is_call:
            yield _finding(dispatch, piece, unit, value, "contradicted")
            continue
        if against.said.holds(value.fact) or _is_rounded(value, against):
            continue
        if value.kind == "identifier" and is_spelled_in(value.fact.text, against.result):
            continue
        if sets:
            continue
        meant = None if is_call else _in_same_frame(value, mine, against)
        meant = meant or _meant(value, lost, mine, against, is_call=is_call)
        meant = meant or (None if is_call else _only_moment(value, lost, mine, against))
        meant = meant or (None if is_call else _labelled_slip(value, lost, mine, against))
        if meant is None or _keeps_to(value, meant) or _is_same_end(value, meant):
            continue
        yield _finding(dispatch, piece, meant, value, "contradicted")


# Agents that act through code write their calls as text.
_WRITTEN_CALL = re.compile(r"\s{0,8}([A-Za-z_][\w.]{0,80})\([^\n]{0,2000}\)\s{0,8}")


def _is_set_apart(value: Value) -> bool:
    """Return whether a sentence compares a value with the result's, or assigns it to a person."""
    before, found, after = value.sentence.partition(value.fact.text)
    if not found:
        return False
    return _OF_SOMEBODY.search(before) is not None or _SET_APART.search(after) is not None


# "€590 + 25 = €615"
_EQUALS = re.compile(r"[=≈]\s?[€$£]?\s?\Z")
_OPERATION = re.compile(r"\d[^=≈\d]{0,30}(?:[+×*/÷·-]|\bx\b)[^=≈\d]{0,30}\d")


def _is_calculated(value: Value) -> bool:
    """Return whether a caller shows how it calculated a value."""
    before, found, _ = value.sentence.rpartition(value.fact.text)
    shown = before[-150:]
    return bool(found) and _EQUALS.search(shown) is not None and bool(_OPERATION.search(shown))


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
        and (other.kind == value.kind or _near(other.numbers, [largest], 0.1))
        for other in mine
    )


def _swapped(value: Value, lost: list[Value], against: _Known) -> Value | None:
    """Find a value of the result whose digits, three or more, are in another order: 73,180.

    This hardly ever happens by chance, so the words around it do not matter.
    """
    if against.said.holds(value.fact) or value.kind == "date":
        return None
    if value.kind == "time":
        return _minutes_swapped(value, lost)
    own = {word.casefold() for word in _WORKED_OUT.findall(value.clause)}
    if own - {word.casefold() for word in _WORKED_OUT.findall(against.result)}:
        return None
    is_year = any(1900 <= number <= 2100 for number in value.numbers)
    if is_year or len(set(value.digits.strip("0"))) < _SWAPPED:
        return None
    for other in lost:
        alike = other.kind == value.kind or "number" in (other.kind, value.kind)
        # "Some 175 EUR cheaper" has the digits of 7.15 EUR by chance.
        sizes = [(a, b) for a in value.numbers for b in other.numbers if a and b]
        alike = alike and (not sizes or any(max(a, b) < 10 * min(a, b) for a, b in sizes))
        if not alike or value.digits == other.digits or not is_slip(value, other):
            continue
        if sorted(value.digits) == sorted(other.digits):
            return None if _is_sum(value, against) else other
    return None


def _minutes_swapped(value: Value, lost: list[Value]) -> Value | None:
    """Find 8:24 for 8:42: the digits of the minutes are swapped, in the same hour."""
    if _COMING.search(value.clause) or _ABOUT.search(value.clause):
        return None
    mine = {key for key in value.fact.keys if key.startswith("t:")}
    for other in lost:
        turned = {key[:-2] + key[:-3:-1] for key in other.fact.keys if key.startswith("t:")}
        if turned - other.fact.keys and turned & mine and _zone(other) == _zone(value):
            return other
    return None


def _in_same_frame(value: Value, mine: list[Value], against: _Known) -> Value | None:
    alike = [
        v
        for v in against.values
        if v.kind == value.kind
        and not _in_another_unit(v, value)
        and is_framed_alike(value, v, slip=_may_be_slip(value, v))
    ]
    if len(alike) != 1 or read(value.sentence).holds(alike[0].fact):
        return None
    if _speaks_otherwise(value.clause, against.result) or _SUPPOSES.match(value.clause):
        return None
    (other,) = alike
    if _is_rest(value, other):
        return None
    if _may_be_slip(value, other):
        return other
    if _ABOUT.search(value.clause) and _near(value.sizes, other.sizes, 0.15):
        return None
    return None if _follows(value, mine, against) else other


def _is_rest(value: Value, other: Value) -> bool:
    """Return whether a value is the rest of a total: 38 of 41 are fine if 3 are not."""
    wholes = {n for v in values_of(other.sentence) for n in v.numbers}
    wholes &= {n for v in values_of(value.sentence) for n in v.numbers}
    return any(a + b in wholes for a in value.numbers for b in other.numbers)


def _may_be_slip(value: Value, other: Value) -> bool:
    return is_slip(value, other) or _zeros_apart(value, other)


def _is_sum(value: Value, against: _Known) -> bool:
    """Return whether a value is the sum or difference of two known ones: a balance."""
    sizes = {size for v in (*against.values, *against.others) for size in v.sizes}
    near = ((total, size) for total in value.sizes for size in sizes)
    return any(round(abs(a - b), 6) in sizes or round(a + b, 6) in sizes for a, b in near)


def _meant(
    value: Value, lost: list[Value], mine: list[Value], against: _Known, *, is_call: bool
) -> Value | None:
    """Find the value of the result that this value should equal, but does not."""
    alike = [v for v in lost if v.kind == value.kind and not _in_another_unit(v, value)]
    alike = [v for v in alike if not _is_rest(value, v)]
    if value.kind == "time":
        # "Leave home at eleven, then you're there by 11:45" for a boarding at 12:45.
        alike = [v for v in alike if _labels(v) & _labels(value) and _zone(v) == _zone(value)]
        if _COMING.search(value.clause) or _ABOUT.search(value.clause):
            return None
    if not alike or _follows(value, mine, against):
        return None
    new = value.words - against.words
    near = [v for v in alike if _is_telling_slip(value, v, against)]
    if _has_own_name(value, against):
        near = [v for v in near if sorted(value.digits) == sorted(v.digits)]
    if value.kind == "date":
        # "It should be over by 12 December" for 12 September.
        moved = [
            v for v in near if days_of(v) & days_of(value) and not months_of(v) & months_of(value)
        ]
        if any(_is_months_later(value, v, against) for v in moved):
            return None
        # "I remind you on 14 February" of what expires on 14 March.
        if moved and _is_of_another(value, against):
            return None
        if moved and len(new) <= _NEW_WORDS_OF_SLIP:
            return moved[0]
    if _speaks_otherwise(value.clause, against.result):
        return None
    near += [v for v in alike if _is_only(v, against) and _zeros_apart(value, v)]
    if value.kind == "number" and len(new) <= _NEW_WORDS_OF_LABEL:
        near += [v for v in alike if _is_labelled_alike(value, v, against)]
    if near and len(new) <= _NEW_WORDS_OF_SLIP:
        return near[0]
    if is_call or len(new) > _NEW_WORDS or _SUPPOSES.match(value.clause):
        return None
    if _ABOUT.search(value.clause) and any(_near(value.sizes, v.sizes, 0.15) for v in alike):
        return None
    alike = [v for v in alike if not _is_within(v, value)]
    if not alike:
        return None
    # The words around it show which value it should be: "arrival 18:05" for "arrival 19:05".
    shared = sorted(
        ((len(_labels(v) & _labels(value)), i) for i, v in enumerate(alike)), reverse=True
    )
    best = shared[0]
    # The only value of its unit in the result, in a clause that says nothing else: "86 % full".
    # "The penalty for four weeks" does not contradict a notice period of 90 days.
    only = [v for v in against.values if v.kind == value.kind and v.words & value.words]
    only = [v for v in only if not _is_within(v, value)]
    if value.kind not in ("number", "identifier") and only and _is_only(only[0], against):
        return only[0]
    if best[0] == 0 or (len(shared) > 1 and shared[1][0] == best[0]):
        return None
    return alike[best[1]]


# "You arrive at 6 pm", "we remind you at 9:15", "I'd rather go on 3 June": another moment.
_ANOTHER_MOMENT = re.compile(
    r"""\b(?:remind\w*|earlier|later|last|next|previous\w*|former\w*|usual\w*|normal\w*|before|after
        |suggest\w*|recommend\w*|propos\w*|instead|again|rather|would|could|should|might|plan\w*
        |you\ (?:arrive|come|leave|land|start|get)|vor|nach|eher|früher|später|avant|après|antes
        |después|prima|dopo)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def _only_moment(
    value: Value, lost: list[Value], mine: list[Value], against: _Known
) -> Value | None:
    """Return the only time or date of a result, if an answer has one other, similar one instead.

    4:50 pm for 16:30, 27 January for 27 February: half of it is the same, and it occurs nowhere.
    """
    if value.kind not in ("time", "date"):
        return None
    others = [v for v in lost if v.kind == value.kind]
    alike = {v.fact.keys for v in against.values if v.kind == value.kind}
    if len(alike) != 1 or len({v.fact.keys for v in mine if v.kind == value.kind}) != 1:
        return None
    # "Doors open at 19:00" for "20:00": many times are full or half hours.
    new = 0 if _is_round(value) else _NEW_WORDS_OF_MOMENT
    if not others or len(value.words - against.words) > new:
        return None
    (other, *_) = others
    if value.kind == "date" and (
        not days_of(value) & days_of(other) or _is_months_later(value, other, against)
    ):
        return None
    if value.kind == "time" and not is_slip(value, other):
        return None
    clause = value.clause
    if _COMING.search(clause) or _ABOUT.search(clause) or _SUPPOSES.match(clause):
        return None
    if _ANOTHER_MOMENT.search(clause) or _zone(other) != _zone(value):
        return None
    return None if _follows(value, mine, against) else other


_NEW_WORDS_OF_MOMENT = 1


def _labelled_slip(
    value: Value, lost: list[Value], mine: list[Value], against: _Known
) -> Value | None:
    """Return the value of a result that differs like a slip, next to the same word.

    "A deposit of 30 %" for "deposit 20 %", "p is 0.08" for "p = 0.008", and 278.14 EUR for 287.14
    EUR, which needs no word: so many digits are never swapped by chance.
    """
    if value.kind in ("date", "time", "identifier") or _is_set_apart(value):
        return None
    new = len(value.words - against.words)
    if new > _NEW_WORDS_OF_LABELLED or _SUPPOSES.match(value.clause):
        return None
    # "Last year your ferritin was 26", "In the pilot, p was 0.04".
    if any(_is_of_another(v, against) for v in (value, value._replace(clause=value.sentence))):
        return None
    before = value.sentence.partition(value.clause)[0]
    words = (fact for fact in read(before).facts if fact.kind == "word")
    if _ELSEWHERE.match(before) and any(not fact.keys & against.words for fact in words):
        return None
    for other in lost:
        if other.kind != value.kind or value.digits == other.digits:
            continue
        same = {word for word in labels(value) & labels(other) if word != unit_text(value)}
        if not _is_labelled_slip(value, other, same, new, against):
            continue
        if not _follows(value, mine, against) and not _is_sum(value, against):
            return other
    return None


def _is_labelled_slip(
    value: Value, other: Value, same: set[str], new: int, against: _Known
) -> bool:
    digits = value.digits, other.digits
    if decimal_places(value) == decimal_places(other):
        if is_transposed(*digits):
            return len(digits[0]) >= _MANY_DIGITS or (bool(same) and not new)
        # Without a unit, numbers of things differ in one digit by chance.
        one = len(digits[0]) == len(digits[1]) > 1
        one = one and sum(a != b for a, b in zip(*digits, strict=True)) == 1
        said = _speaks_otherwise(value.clause, against.result) or _ABOUT.search(value.clause)
        return one and value.kind != "number" and bool(same) and not new and not said
    small = all(0 < n < 1 for v in (value, other) for n in v.numbers)
    return small and bool(same) and digits[0].strip("0") == digits[1].strip("0")


_NEW_WORDS_OF_LABELLED = 1
_ELSEWHERE = re.compile(
    r"\s?(?:in|at|for|on|with|during|under|by|im|in|bei|für|mit|dans|pour|avec|en|para|con)\b",
    re.IGNORECASE,
)
_MANY_DIGITS = 5


def _is_round(value: Value) -> bool:
    return value.kind == "time" and all(moment % 30 == 0 for moment in _moments(value.fact))


def _is_within(value: Value, bound: Value) -> bool:
    """Return whether a value of a result is within the bound that a caller names."""
    return _is_beyond(value, bound, _before(bound.clause, bound)) is False


def _keeps_to(value: Value, bound: Value) -> bool:
    """Return whether the result allows a value: 850 EUR for "at most 900 EUR".

    A value that is itself a bound ("at most 800 EUR") is compared with the result's bound.
    """
    if _limit(_before(value.clause, value)) is not None:
        return False
    before = _before(bound.clause, bound)
    if _APPROXIMATE.search(before) and _near(value.sizes, bound.sizes, 0.15):
        return not is_slip(value, bound)
    return _is_beyond(value, bound, before) is False


# "Open from 11 to 5" for 11 to 17, and "decide before 2029" for the end of 2028.
_HOUR_TO = re.compile(r"\b\d{1,2}\s?(?:to|until|till|bis|à|a|-|–)\s?$", re.IGNORECASE)
_BEFORE_YEAR = re.compile(r"\b(?:before|vor|avant|antes de)\s?$", re.IGNORECASE)
_END_OF_YEAR = re.compile(r"\b(?:end of|until|by|ende|bis|fin|finales de|hasta)\s?$", re.IGNORECASE)


def _is_same_end(value: Value, other: Value) -> bool:
    """Return whether two numbers are the same hour or the same end of a year."""
    before, theirs = _before(value.clause, value), _before(other.clause, other)
    for mine in value.numbers:
        for number in other.numbers:
            if abs(mine - number) == 12 and max(mine, number) <= 24:
                return _HOUR_TO.search(before) is not None and _HOUR_TO.search(theirs) is not None
            if mine - number == 1 and 1900 <= number <= 2100:
                ends = _END_OF_YEAR.search(theirs) is not None
                return ends and _BEFORE_YEAR.search(before) is not None
    return False


def _before(text: str, value: Value) -> str:
    return text[: max(0, text.rfind(value.fact.text))].rstrip()


def _limit(before: str) -> Literal["most", "least"] | None:
    """Return the kind of bound that the words before a value express."""
    below, above = _BELOW.search(before), _ABOVE.search(before)
    denied = _DENIED.search(before) is not None
    if below or above:
        # "Never below 8" is at least 8, and "must not exceed 20" at most 20.
        turned = denied and not _WHOLE_LIMIT.search(before)
        return "most" if (below is not None) != turned else "least"
    if denied and (_RISES.search(before) or _FALLS.search(before)):
        return "most" if _RISES.search(before) else "least"
    return None


def _is_beyond(value: Value, bound: Value, before: str) -> bool | None:
    """Return whether a value is on the wrong side of a bound, or ``None`` if it is not a bound."""
    limit = _limit(before)
    mine, theirs = [*_moments(value.fact)], [*_moments(bound.fact)]
    if not mine or not theirs:
        mine, theirs = list(value.sizes), list(bound.sizes)
    if limit is None or not mine or not theirs:
        return None
    return min(mine) > max(theirs) if limit == "most" else max(mine) < min(theirs)


def _is_telling_slip(value: Value, other: Value, against: _Known) -> bool:
    """Return whether a difference looks like a slip.

    Round numbers and days of one month often differ in one digit anyway: 300 for 500, or 15 June
    for 6 June, is no slip.
    """
    if not is_slip(value, other):
        return False
    if sorted(value.digits) == sorted(other.digits) or value.kind == "time":
        return True
    if value.kind == "identifier" and _is_in_series(other, against):
        return False
    if value.kind == "date":
        same_day = bool(days_of(value) & days_of(other))
        return same_day or is_tens_apart(value, other) or bool(value.words & other.words)
    sizes = [(a, b) for a in value.sizes for b in other.sizes if a and b]
    if sizes and all(max(a, b) >= 10 * min(a, b) for a, b in sizes):
        return _zeros_apart(value, other)
    return len(other.digits.strip("0")) > 2 or bool(labels(value) & labels(other))


def _has_own_name(value: Value, against: _Known) -> bool:
    """Return whether what is right before a value occurs nowhere else: "the allowance of 1,230"."""
    before = value.sentence.partition(value.fact.text)[0]
    match = re.search(
        r"([^\W\d_]{4,40})\s(?:of|von|de|at|is|ist|zu)\s(?:[€$£]|EUR |USD )?$", before
    )
    return match is not None and not any(against.said.holds(fact) for fact in read(match[1]).facts)


def _is_in_series(value: Value, against: _Known) -> bool:
    """Return whether a name is in a numbered series of the result: valves V-198 and V-201.

    "V-204 stays open" refers to a third valve, and is no slip for one of these.
    """
    names = {v.fact.text.casefold() for v in against.values if v.kind == "identifier"}
    series = re.sub(r"\d", "", value.fact.text.casefold())
    return sum(re.sub(r"\d", "", name) == series for name in names) > 1


def _is_only(value: Value, against: _Known) -> bool:
    return [v for v in against.values if v.kind == value.kind] == [value]


def _zeros_apart(value: Value, other: Value) -> bool:
    """Return whether two values differ by zeros: 100,000 EUR for 10,000 EUR."""
    sizes = [(a, b) for a in value.sizes for b in other.sizes if a and b]
    return value.kind not in ("number", "identifier") and any(
        max(a, b) / min(a, b) in (10.0, 100.0, 1000.0) for a, b in sizes
    )


def _is_labelled_alike(value: Value, other: Value, against: _Known) -> bool:
    """Return whether labels match: `coach 17` for `coach 7`, if the result has only one coach."""
    label = _word_before(value)
    if not label or label in _ENUMERATES or label != _word_before(other):
        return False
    return sum(_word_before(v) == label for v in against.values) == 1


def _word_before(value: Value) -> str:
    match = re.search(rf"([^\W\d_]{{3,}})\s{re.escape(value.fact.text)}(?![\w.,]*\d)", value.clause)
    return "" if match is None or match[1].casefold() in COMMON else match[1].casefold()


def _is_months_later(value: Value, other: Value, against: _Known) -> bool:
    """Return whether a date is off by a stated number of months: "within one month" of 6 Nov."""
    apart = {abs(int(a) - int(b)) for a in months_of(value) for b in months_of(other)}
    return any(
        measure_key("months", months) in against.said.keys
        for each in apart
        for months in (each, 12 - each)
    )


def _is_of_another(value: Value, against: _Known) -> bool:
    own = {word.casefold() for word in _ANOTHER.findall(value.clause)}
    return bool(own - {word.casefold() for word in _ANOTHER.findall(against.result)})


def _zone(value: Value) -> str:
    """Return the time zone named in a clause: 02:40 UTC is 3:40 in Berlin."""
    match = _ZONE.search(value.clause)
    return match[0].upper() if match is not None else ""


def _labels(value: Value) -> frozenset[str]:
    """Return what identifies a value: words of its clause, and other values next to it."""
    beside = (f for f in read(value.clause).facts if f.keys != value.fact.keys)
    return value.words | frozenset(key for fact in beside for key in _largest(fact))


def _largest(fact: Fact) -> frozenset[str]:
    """Return the keys of the largest value of a fact: "18,000 EUR" does not count as an 18."""
    numbers = sorted((float(key[2:]), key) for key in fact.keys if key.startswith("n:"))
    return fact.keys - {key for _, key in numbers[:-1]}


def _speaks_otherwise(clause: str, result: str) -> bool:
    return any(
        {word.casefold() for word in pattern.findall(clause)}
        - {word.casefold() for word in pattern.findall(result)}
        for pattern in (_OTHERWISE, _WORKED_OUT)
    )


def _is_changed(clause: str, result: str) -> bool:
    own = {word.casefold() for word in _CHANGES.findall(clause)}
    return bool(own - {word.casefold() for word in _CHANGES.findall(result)})


def _broken_limit(value: Value, against: _Known, piece: str) -> Value | None:
    """Find a statement of the result about a setting that the caller's value violates."""
    if value.kind != "number" or against.said.holds(value.fact) or not value.numbers:
        return None
    name = re.search(
        rf"({_SETTING})\W+(?:\w+\W+){{0,2}}{re.escape(value.fact.text)}(?!\w)", value.clause
    )
    if name is None:
        return None
    own = _identifiers(piece)
    for other in against.values:
        part = _part_about(other, name[1])
        if part is None:
            continue
        theirs = _identifiers(part)
        # "max_connections of q-7 must stay 40" does not apply to q-8.
        if not (theirs and own and not theirs & own) and _breaks(value, other, part):
            return other
    return None


def _part_about(other: Value, name: str) -> str | None:
    """Return the part of a sentence that states a number for this setting, and for no other."""
    if other.kind != "number":
        return None
    for part in re.split(r"[;:]\s", other.sentence):
        numbers = [v.numbers for v in values_of(part) if v.kind == "number"]
        if set(re.findall(rf"(?<![\w.])(?:{_SETTING})(?!\w)", part)) == {name} and numbers:
            # "Between 8 and 20" has two numbers, and nothing shows which one applies.
            return part if all(each == other.numbers for each in numbers) else None
    return None


def _breaks(value: Value, other: Value, part: str) -> bool:
    """Return whether a value breaks a stated limit: on the wrong side, or a different value."""
    beyond = _is_beyond(value, other, _before(part, other))
    return _STAYS.search(part) is not None if beyond is None else beyond


def _identifiers(text: str) -> frozenset[str]:
    return frozenset(key for v in values_of(text) if v.kind == "identifier" for key in v.fact.keys)


# "I have set the retention to 60 days" reports a change; it is no question or proposal.
_HAS_CHANGED = re.compile(
    r"\b(?:set|changed|raised|lowered|updated|increased|reduced|switched|moved|extended|shortened|cut)\b"
    r"[^.;?!]{0,80}\bto\b",
    re.IGNORECASE,
)
_MUST_STAY = re.compile(
    r"\b(?:must (?:stay|remain)|(?:must|may|can|should) not be (?:changed|raised|lowered|reduced"
    r"|increased|touched|altered|extended)|has to (?:stay|remain)|do(?: not|n't) (?:change|touch)"
    r"|fixed at)\b",
    re.IGNORECASE,
)
_NOT_DONE = re.compile(
    r"\b(?:whether|if|ask\w*|not|n't|would|could|can|may|should|approv\w*|agreed?|consent\w*"
    r"|permission|shall)\b|\?",
    re.IGNORECASE,
)


def _changed_in_spite(value: Value, against: _Known) -> Value | None:
    """Find something that must stay unchanged according to the result, but that changed."""
    if against.said.holds(value.fact) or not _MUST_STAY.search(against.result):
        return None
    if not _HAS_CHANGED.search(value.sentence) or _NOT_DONE.search(value.sentence):
        return None
    words = {key for v in values_of(value.sentence) for key in v.words}
    for other in against.values:
        if other.kind != value.kind or not _MUST_STAY.search(other.sentence):
            continue
        alike = [v for v in values_of(other.sentence) if v.kind == other.kind]
        own = {key for v in values_of(other.sentence) for key in v.words}
        if len(alike) == 1 and words & own:
            return other
    return None


def _other_unit(value: Value, against: _Known) -> Value | None:
    """Find the same number with another unit: `4,310.75 USD` for `4,310.75 EUR`."""
    sizes = {key for key in value.fact.keys if key.startswith("u:")}
    if not sizes or sizes & against.said.keys or len(value.digits) < 2:
        return None
    if len(value.words - against.words) > _NEW_WORDS or _speaks_otherwise(
        value.clause, against.result
    ):
        return None
    for other in against.values:
        theirs = {key for key in other.fact.keys if key.startswith("u:")}
        if not theirs or theirs & sizes or other.digits != value.digits:
            continue
        # "Within 10 minutes" and a job that takes 10 s share a short number by chance.
        named = value.words & other.words or labels(value) & labels(other)
        if len(value.digits.strip("0")) < 2 and not named:
            continue
        # 12 degrees and 12,000 EUR share a number by chance.
        if other.numbers & value.numbers and _family(other) == _family(value):
            return other
    return None


def _family(value: Value) -> str:
    """Return what is measured. All currencies count as one, and so do days and months."""
    kind = "duration" if value.kind == "months" else value.kind
    return "money" if kind.isupper() else kind


def _is_rounded(value: Value, against: _Known) -> bool:
    """Return whether a value is one of the result's, rounded or in another unit."""
    known_values = [*against.values, *against.others]
    rounded = (rounded_keys(key) for other in known_values for key in other.fact.keys)
    if any(keys & value.fact.keys for keys in rounded):
        return True
    if value.kind == "time":
        # "Half past three" for 15:29.
        told = [m for m in _moments(value.fact) if m % _QUARTER_HOUR == 0]
        times = [m for v in known_values if v.kind == "time" for m in _moments(v.fact)]
        return any(abs(a - b) <= _MINUTES_ROUNDED for a in told for b in times)
    # "80 feet" are roughly 24.5 m.
    return any(is_converted(value, other) for other in against.values)


def _near(some: Iterable[float], others: Iterable[float], share: float) -> bool:
    others = list(others)
    return any(abs(a - b) <= share * abs(b) for a in some for b in others)


def _in_another_unit(one: Value, other: Value) -> bool:
    """Return whether values are equal per another unit: 9.8 g/dL are 98 g/L."""
    units = unit_text(one), unit_text(other)
    return units[0] != units[1] and "/" in "".join(units)


_LARGE = 1000.0


def _follows(value: Value, mine: list[Value], against: _Known) -> bool:
    """Return whether a value follows from others: a sum, difference, product or share."""
    if value.kind in ("time", "date"):
        return _is_shifted(value, mine, against)
    base = [*against.values, *against.others, *(v for v in mine if v is not value)]
    if len(base) > 2 * _MOST:
        return True
    same = [size for v in base if v.kind == value.kind for size in v.sizes]
    if value.kind != "number":
        same += [n * unit_size(value) for n in _added(against)]
    counts = [n for v in base if v.kind == "number" for n in v.numbers if n != 1]
    made = [a * b for a in same for b in (*counts, *_CONSTANTS)]
    made += [a / b for a in same for b in (*counts, *_CONSTANTS) if b]
    # Small numbers are often sums of others by chance, but seldom the difference of large ones: 15
    # rows too many, for 1,204,571 in place of 1,204,556.
    small = value.kind == "number" and all(n < 100 for n in value.numbers)
    taken = [size for size in same if size >= _LARGE] if small else same
    made += [abs(a - b) for i, a in enumerate(taken) for b in taken[i + 1 :]]
    if not small:
        made += [a + b for i, a in enumerate(same) for b in same[i + 1 :]]
    # 45 EUR is three nights at 15 EUR; a factor of ten is more likely an extra zero.
    ratios = {max(a, b) / min(a, b) for a in value.sizes for b in same if a and b}
    if value.kind not in ("number", "share", "identifier") and ratios & _TIMES:
        return True
    if _is_with_share(value, base):
        return True
    if value.kind == "number":
        sizes = [n for v in base for n in v.numbers if n != 1]
        made += [a * b for i, a in enumerate(sizes) for b in sizes[i + 1 :]]
        # 48 % of 214 people are 103, and 18 % of 2,715 are "some 490".
        parts = [a * b for a in sizes if a < 1 for b in sizes if b > 1]
        off = _ROUGHLY if _ABOUT.search(value.clause) else 0.0
        within = ((n, part, max(0.5, off * part)) for n in value.numbers for part in parts)
        if any(abs(n - part) <= most for n, part, most in within if n >= 10):
            return True
    if value.kind == "share":
        whole = [(v.kind, size) for v in base for size in v.sizes]
        made += [a / b for kind, a in whole for other, b in whole if kind == other and b > a]
        made += [1 - a for a in same]
        return any(abs(a - b) <= 0.006 for a in value.sizes for b in made)
    if _is_total_or_mean(value, against):
        return True
    if value.kind == "duration" and any(v.kind == "time" for v in base):
        times = [m for v in base if v.kind == "time" for m in _moments(v.fact)]
        made += [60 * abs(a - b) for i, a in enumerate(times) for b in times[i + 1 :]]
    made += _parts_of_rates(value, against)
    return _near(value.sizes, made, _ROUGHLY if _ABOUT.search(value.clause) else 0.002)


# "35 EUR + fuel ~8": what a result adds has the unit of what it adds to.
_ADDED = re.compile(
    r"(?:\+|\bplus\b) ?(?:[^\W\d_]{1,20} ){0,2}(?:[~≈]|(?:ca?|approx|about|around)\b\.?)? ?"
    r"(?P<number>\d[\d.,]{0,12})",
    re.IGNORECASE,
)


def _added(against: _Known) -> Iterator[float]:
    """Yield the plain numbers of a result that it adds to something."""
    added = {match["number"].rstrip(".,") for match in _ADDED.finditer(against.result)}
    for value in against.values:
        if value.kind == "number" and value.fact.text in added:
            yield from value.numbers


# "13.5 g per 100 g", "0.38 EUR/km", "12 % of the turnover"
_RATE = re.compile(r"\b(?:per|each|je|pro|par|por|à)\b|[/%]", re.IGNORECASE)


def _parts_of_rates(value: Value, against: _Known) -> Iterator[float]:
    """Yield the products of the result's values and of amounts, if there are rates.

    60 g of oats with 13.5 g of protein per 100 g have 8.1 g.
    """
    if not any(
        _RATE.search(text) for text in (against.result, *(v.sentence for v in against.others))
    ):
        return
    rates = [size for v in against.values if v.kind == value.kind for size in v.sizes]
    amounts = {n for v in against.others if v.kind != "identifier" for n in v.numbers if n}
    for rate in rates:
        for amount in amounts:
            yield from (rate * amount / base for base in (1.0, 100.0, 1000.0))


# "10.00 net" for 11.90 with 19 % VAT. Shares below 1 % are no taxes and discounts.
_SMALLEST_SHARE = 0.01
# More shares make other values by chance.
_FEW_SHARES = 4
# A rounded amount, such as 34,560 or 1,283.4.
_ROUNDED_AMOUNT = 0.005


def _is_with_share(value: Value, base: list[Value]) -> bool:
    """Return whether an amount is another with a share added or taken off, or before that.

    Net and gross prices, before and after a discount. In two steps only a share of the result:
    34,560 GBP are 60 % of 48,000 GBP with 20 % VAT. Prices often lack their currency.
    """
    if not (
        value.kind.isupper() or (value.kind == "number" and decimal_places(value) == _OF_MONEY)
    ):
        return False
    shares = {a for v in base if v.kind == "share" for a in v.sizes}
    shares = {a for a in shares if _SMALLEST_SHARE <= a < 1}
    if not shares or len(shares) > _FEW_SHARES:
        return False
    sizes = {size for v in base if v.kind in (value.kind, "number") for size in v.sizes}
    steps = {step for a in shares for f in (1 + a, 1 - a) for step in (f, 1 / f)}
    steps |= {(1 + a) * b for a in shares for b in shares if a != b}
    half = 0.51 * 10.0 ** -decimal_places(value) * unit_size(value)
    about = _ABOUT.search(value.clause) is not None
    return any(
        abs(size * step - told) <= (_ROUGHLY if about else _ROUNDED_AMOUNT) * told
        and (about or abs(size * step - told) <= half)
        for told in value.sizes
        for size in sizes
        for step in steps
    )


# 10.00 and 7.95, but not 9.1 seconds.
_OF_MONEY = 2


# Of more values, each group would be too many.
_FEW = 8


def _totals_and_means(sizes: list[float]) -> Iterator[float]:
    """Yield sums and means of values: of each group of a few, else of all that are in a row."""
    count = len(sizes)
    if count <= _FEW:
        groups = (
            [size for place, size in enumerate(sizes) if chosen >> place & 1]
            for chosen in range(1, 1 << count)
        )
        sums = [(sum(group), len(group)) for group in groups]
    else:
        running = [0.0, *accumulate(sizes)]
        sums = [
            (running[end] - running[start], end - start)
            for start in range(count)
            for end in range(start + 1, count + 1)
        ]
    for total, number in sums:
        if number > 1:
            yield total
            yield total / number


def _is_total_or_mean(value: Value, against: _Known) -> bool:
    """Return whether a value is the sum or mean of some of the result's values of its kind.

    As exactly as it is written, or roughly: "about 50 km" for 18.4, 22.1 and 9.7 km.
    """
    # Small numbers are often sums of others by chance.
    if value.kind == "number" and all(n < 100 for n in value.numbers):
        return False
    half = 0.51 * 10.0 ** -decimal_places(value) * unit_size(value)
    about = _ROUGHLY if _ABOUT.search(value.clause) else 0.0
    alike = [v for v in against.values if v.kind == value.kind]
    # "212 fail, 0 ok ... 151 fail, 0 ok": the sum of those with one unit.
    by_unit: dict[str, list[float]] = {}
    for other in alike:
        by_unit.setdefault(unit_text(other), []).extend(other.sizes)
    sizes = [size for v in alike for size in v.sizes]
    return any(
        abs(size - made) <= max(half, about * abs(made))
        for group in (sizes, *by_unit.values())
        for made in _totals_and_means(group)
        for size in value.sizes
    )


def _is_shifted(value: Value, mine: list[Value], against: _Known) -> bool:
    """Return whether a time or date is a known one plus or minus a known number."""
    near = [*against.values, *against.others, *mine]
    spans = {n for other in near for n in other.numbers}
    for moment in _moments(value.fact):
        for known_key in against.said.keys:
            for other in _moment(known_key):
                if value.kind == "time" and known_key.startswith("t:"):
                    apart = abs(moment - other)
                    if apart in spans or apart / 60 in spans:
                        return True
                elif value.kind == "date" and known_key.startswith("d:"):
                    # With frost until 12 May, sowing starts on 13 May.
                    apart = abs(moment - other)
                    if apart == 1 or apart in spans or apart / 7 in spans:
                        return True
    return False


def _moments(fact: Fact) -> Iterator[float]:
    for key in fact.keys:
        yield from _moment(key)


def _moment(key: str) -> Iterator[float]:
    """Yield minutes of the day, or days of a year of 31-day months."""
    if key.startswith("t:"):
        hour, minute = key[2:].split(":")
        yield 60.0 * int(hour) + int(minute)
    elif key.startswith("d:") and key.count("-") == 1:
        month, day = key[2:].split("-")
        yield 31.0 * int(month) + int(day)


def _finding(dispatch: Dispatch, piece: Piece, meant: Value, value: Value, kind: str) -> Finding:
    return Finding(
        kind=kind,
        says=f"`{dispatch.to_agent}` said `{_shown(meant)}`, the caller `{_shown(value)}`",
        evidence=[
            Evidence(ids=[dispatch.id], quote=meant.clause.strip()[:120]),
            Evidence(ids=[piece.id], quote=value.clause.strip()[:120]),
        ],
        details={"result": meant.fact.text, "said": value.fact.text},
    )


def _shown(value: Value) -> str:
    """Return a value with its unit, as written in the text."""
    unit = unit_text(value) if value.sizes != value.numbers else ""
    return f"{value.fact.text} {unit}".strip()
