"""Does a dispatch carry the numbers, identifiers and limits of a request?

A sentence of the request concerns a dispatch if enough of its words are in the prompt. For these
sentences, carried = facts that the receiver got / facts that no other dispatch, call or text of
the caller took up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from baton.model import AgentRun, Dispatch, Evidence, Said, ToolCall, Trace, Turn, known
from baton.model.views import TooMuchTextError, charge_work, index_of

from .asked_back import asked_back, offers
from .caller_texts import Piece, asked, dispatch_of, given_besides, had_before, shown_by
from .changed_values import (
    copied_except,
    counted_otherwise,
    cut_out,
    in_another_unit,
    in_place_of,
    is_transposed,
    keeps_limit,
    keeps_to,
    limit_changed,
    misspelt,
    swapped_digits,
)
from .copied_prompts import Gap, gaps, numbers_of, renamed
from .facts import (
    HARD,
    Fact,
    Reading,
    as_json,
    charge_reading,
    hours_of,
    is_spelled_in,
    number_keys,
    plain_text,
    read,
    without_list_numbers,
    word_key,
)
from .finding import TOO_LONG, Answer, Clear, Finding, NotRecorded, receivers_of, sender_of
from .opposites import opposites, other_basis, turned_bounds
from .quantities import SHARE_OF, in_digits, share_keys
from .replaced_words import Replaced, repeats, replaced
from .reversed_limits import reversed_limits
from .substituted_values import substituted
from .values import Value, unit_text, values_of
from .waived_limits import waived
from .words import (
    asides,
    clauses,
    excuses,
    forbids,
    is_callers,
    is_claimed,
    is_condition,
    is_courtesy,
    is_deadline,
    is_known_anyway,
    is_of_birth,
    is_rough,
    kept_back,
    only_questions,
    refers_to_others,
    remains,
    sentences,
    sets_limit,
)

# "the 88", "under 200" and "find 3": every prompt has prepositions, articles and verbs. If they
# counted, every prompt would mention what the number belongs to. "order 88" has a noun.
_SMALL = frozenset(
    """
    and are for from the was with over under than least most about only into until before after
    within give book pay send find get take check does did has had und oder für von bis mit nach
    über pour avec dans les des del los las para con por que
    """.split()  # noqa: SIM905
)
"""Words before a number or name that do not state what it belongs to."""


_DEFINITE = (
    "the|this|that|my|our|your|his|her|their|its|for|of|to|about|in|at|der|die|das|den|dem|des|für|"
    "von|zur?|zum|le|la|les|du|el|los|las|del"
)
_RELATIVE_YEAR = re.compile(
    r"\b(?:this|last|next|previous|current|same|each|every|past|one|a) year"
    r"|\byear[- ](?:before|over|on|earlier|ago)|\bvorjahr|\b(?:dieses|letztes|nächstes) jahr",
    re.IGNORECASE,
)


# Number words that describe what happened, not what is to be done: "rounds twice", "both".
_TELLS_STORY = frozenset("both twice third fourth".split())  # noqa: SIM905
# A request with more sentences is a document. Each sentence is compared with the whole prompt.
_SENTENCES = 200
# See `_is_retold`. Set on texts by another author (see docs/accuracy.md). With 0.4 for the first
# value, one of 96 good prompts failed and one more of 72 losses was found. With 0.6, five fewer
# were found.
RETOLD = 0.5
RETOLD_ALONE = 0.8
# The number of words in a prompt with only one point: "Is a refund due for the order?"
SHORT = 16


class Limits(NamedTuple):
    """See the options of the evaluator."""

    # The share of its words from which on a sentence concerns the dispatch: "Find the rate of NOK."
    # shares a word or two with "Convert 50 EUR to NOK and tell me whether I can buy 3 chairs.", and
    # rightly leaves out the 50 and the 3.
    shared_words: float = 0.5
    # A request with many numbers and names is a table, a log or a document. A receiver gets the
    # part it has to work on, and words can't show which part that is. The requests in
    # benchmarks/accuracy are short and the figures are the same from 4 to 100, so this is a guard
    # for other input.
    facts: int = 12


class _Sent(NamedTuple):
    """What the receiver was given, what the caller took up elsewhere, and the request."""

    dispatch: Dispatch
    request: Piece
    given: Reading
    look_elsewhere: Callable[[], Reading]
    """Reads the other dispatches and calls of the caller, which few prompts need."""
    alone: bool
    retold: bool
    """The prompt repeats most of the request, and says little else."""
    values: list[Value]
    """Values of the prompt."""
    new: list[Value]
    """Values that are neither in the request nor in anything the caller had."""
    has_source: Callable[[str], bool]
    """Whether a word of the prompt is in a text that the caller had, other than the request."""
    known_before: Callable[[], Reading]
    """Reads the texts that the caller had, other than the request and the prompt."""
    received: Sequence[Piece]
    """The texts that the receiver was given, or wrote, as far as recorded."""

    @property
    def elsewhere(self) -> Reading:
        """What the caller took up in other dispatches and calls."""
        return self.look_elsewhere()

    @property
    def prompt(self) -> str:
        """The sender's prompt, as a text."""
        return "" if self.dispatch.prompt is None else plain_text(self.dispatch.prompt)


def context_carried(
    trace: Trace, turn: Turn, dispatch: Dispatch, limits: Limits | None = None
) -> Answer:
    """Compare a prompt, and the receiver's input, with the request to the caller.

    Faults: ``not_received`` (in the prompt, but not in the receiver's input), ``dropped``
    (a number or identifier), ``dropped_constraint``, ``output_not_carried`` (of the agent
    whose work is passed on). The receiver knew whatever it wrote or used in calls.
    ``NotRecorded``: prompt or request were not recorded, or contain nothing to compare.
    """
    try:
        return _carried(trace, turn, dispatch, limits or Limits())
    except TooMuchTextError:
        return NotRecorded(says=TOO_LONG)


def _carried(trace: Trace, turn: Turn, dispatch: Dispatch, limits: Limits) -> Answer:
    lost = _lost_on_the_way(trace, dispatch)
    if lost is not None:
        return [lost]
    if _begins_anew(trace, dispatch) and dispatch.prompt is None:
        return NotRecorded(says="the prompt was not recorded: record the arguments of calls")
    request = _request(trace, turn, dispatch)
    # Charge this before reading, as texts of receivers can be long.
    if isinstance(request, NotRecorded) and dispatch.kind != "sequence":
        return request
    given, unseen = _given(trace, dispatch)
    output = _of_output(trace, turn, dispatch, given)
    if isinstance(output, Finding):
        return NotRecorded(says=unseen) if unseen else [output]
    answer: Answer = request if isinstance(request, NotRecorded) else []
    if not isinstance(request, NotRecorded):
        answer = _of_request(trace, turn, dispatch, limits, request, given)
        # Any part of the input can prove that something arrived. Only the full input can prove that
        # it did not.
        if unseen and not isinstance(answer, Clear):
            answer = NotRecorded(says=unseen)
    return output if output is not None and isinstance(answer, NotRecorded) else answer


def _of_request(
    trace: Trace, turn: Turn, dispatch: Dispatch, limits: Limits, request: Piece, given: Reading
) -> Answer:
    is_data = request.id == turn.id and _is_data(turn)
    facts = [fact for fact in read(request.text).facts if fact.kind in HARD]
    if len(facts) > limits.facts and not is_data:
        return NotRecorded(
            says=f"the request holds {len(facts)} numbers and names: can't tell which ones the "
            "receiver needs"
        )
    others = cache(lambda: _elsewhere(trace, turn, dispatch))
    sent_by = index_of(trace).sent_by.get((turn.id, dispatch.from_agent), ())
    alone = not any(d.id != dispatch.id and d.from_run == dispatch.from_run for d in sent_by)
    prompt = "" if dispatch.prompt is None else plain_text(dispatch.prompt)

    @cache
    def known_before() -> Reading:
        own = (dispatch.id, dispatch.call)
        had = [p.text for p in had_before(trace, turn, dispatch) if p.id not in own]
        charge_work(len(had))
        return read(*had)

    retold = _is_retold(read(request.text), read(prompt), given)
    values = [] if all(_went_along(fact, given) for fact in facts) else list(values_of(prompt))
    new = [value for value in values if not read(request.text).holds(value.fact)]
    if new:
        # If no work is left, do not join thousands of texts to find that out.
        if not index_of(trace).spend(0):
            return NotRecorded(says=TOO_LONG)
        # An order that the caller looked up, or that a user named before, is not a wrong order.
        new = [value for value in new if not known_before().holds(value.fact)]

    def has_source(word: str) -> bool:
        return _was_read(trace, turn, dispatch, word)

    received = _received(trace, dispatch)
    sent = _Sent(
        dispatch, request, given, others, alone, retold, values, new, has_source, known_before,
        received,
    )  # fmt: skip
    return _of_data(sent) if is_data else _judged(sent, limits)


def _was_read(trace: Trace, turn: Turn, dispatch: Dispatch, word: str) -> bool:
    """Return whether a word is in any text that a caller had before a dispatch."""
    own = (dispatch.id, dispatch.call)
    had = [piece.text for piece in had_before(trace, turn, dispatch) if piece.id not in own]
    charge_reading(had)
    # "Male" is not in "female".
    same = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    return any(same.search(text) is not None for text in had)


def _is_data(turn: Turn) -> bool:
    """Return whether a request comes from a program: `{"customer": 4711, "items": [...]}`."""
    text = None if turn.input is None else turn.input.text
    return text is None or as_json(text) is not None


def _of_data(sent: _Sent) -> Answer:
    """Look for names and numbers of data with swapped digits.

    Data has no sentences to compare a prompt with, so nothing else can be checked.
    """
    asked = list(values_of(sent.request.text))
    facts = [fact for fact in read(sent.request.text).facts if fact.kind in HARD]
    gone = [fact for fact in facts if not sent.given.holds(fact)]
    wrong = [(fact, "") for fact in gone if misspelt(fact, asked, sent.new) is not None]
    if not wrong:
        return NotRecorded(says="the request is data, without words")
    return [_dropped(sent, facts, wrong)]


def _went_along(fact: Fact, given: Reading) -> bool:
    """Return whether a fact was given, with its unit, or as a time or date if it is one."""
    sizes = {key for key in fact.keys if key.startswith(("u:", "t:", "d:"))}
    return given.holds(fact) and (not sizes or bool(sizes & given.keys))


def _is_retold(request: Reading, prompt: Reading, given: Reading) -> bool:
    """Return whether a prompt repeats most of a request, and little else.

    A planner that dispatches part of the work leaves out what that part does not need, and adds
    its own ideas: "You are a hotel scout. ... Another agent looks after restaurants." Words can't
    show what is missing from such a prompt.
    """
    words = [fact for fact in request.facts if fact.kind not in HARD]
    own = [fact for fact in prompt.facts if fact.kind not in HARD]
    if not words or not own:
        return bool(words) is bool(own)
    there = sum(given.holds(fact) for fact in words) / len(words)
    back = sum(request.holds(fact) for fact in own) / len(own)
    hard = [fact for fact in request.facts if _has_to_come(fact)]
    kept = sum(given.holds(fact) for fact in hard)
    mostly = 2 * kept >= len(hard) and there >= RETOLD and back >= RETOLD
    # "Recommend charities" has none of the numbers of a donation, because it comes first.
    return mostly or (there >= RETOLD_ALONE and back >= RETOLD)


def _has_to_come(fact: Fact) -> bool:
    """Return whether a receiver may need a number or name. `twice` and `both` are narrative."""
    return fact.kind in HARD and fact.text.casefold() not in _TELLS_STORY


def _judged(sent: _Sent, limits: Limits) -> Answer:
    asked_for: list[Fact] = []
    dropped: list[tuple[Fact, str]] = []
    limits_lost: list[str] = []
    doubtful: list[Fact] = []
    unsaid: list[tuple[Fact, str]] = []
    parts = sentences(without_list_numbers(in_digits(sent.request.text)))
    if len(parts) > _SENTENCES:
        return NotRecorded(
            says=f"the request has {len(parts)} sentences: can't tell which ones the receiver needs"
        )
    secret = kept_back(parts)
    for sentence in parts:
        if is_courtesy(sentence):
            # "Hi, it's Bruno's owner (41.5 kg)" asks for nothing, but can still be passed on wrong.
            slips = _misspelt(sentence, sent)
            dropped += [(fact, sentence) for fact in slips]
            asked_for += slips
            continue
        part = _of_sentence(sentence, sent, limits)
        if sentence in secret:
            part = part._replace(lost=[], doubtful=part.lost + part.doubtful, unsaid=[])
        unsaid += [(fact, sentence) for fact in part.unsaid]
        asked_for += part.kept + part.lost
        dropped += [(fact, sentence) for fact in part.lost]
        doubtful += part.doubtful
        nothing_left = part.words_only and _limit_lost(sentence, part.words, sent, limits)
        if nothing_left or _excluded_lost(sentence, sent) or _is_reversed(sentence, sent):
            limits_lost.append(sentence)
    if not dropped and len(unsaid) == len(doubtful) and _is_only_gap(unsaid, sent):
        dropped, asked_for = unsaid, asked_for + doubtful
    if not dropped and sent.dispatch.kind == "delegate" and sent.dispatch.result is not None:
        reply = plain_text(sent.dispatch.result)
        asked = asked_back(sent.request.text, reply, sent.given)
        wanted = {f.keys: (f, s) for f, s in asked if in_digits(s) not in secret}
        dropped += wanted.values()
        asked_for += [fact for fact, _ in wanted.values()]
    if not dropped:
        slip = _substituted(sent)
        dropped += slip
        asked_for += [fact for fact, _ in slip]
    cut = [] if dropped or limits_lost else _cut_from_copy(sent)
    limits_lost += cut
    if not dropped and not limits_lost:
        named = _referred_to(sent)
        dropped += named
        asked_for += [fact for fact, _ in named]
    if not dropped and not limits_lost and not doubtful:
        limits_lost += _only_words_missing(sent)
    if not dropped and not limits_lost and len(unsaid) == len(doubtful):
        whole = _only_clause_missing(unsaid, sent)
        dropped += whole
        asked_for += [fact for fact, _ in whole]
    findings = []
    others = [] if dropped or limits_lost else _replaced(sent)
    swapped = [each for each in others if each.sure]
    if swapped:
        findings.append(_replacement(sent, swapped))
    if dropped:
        findings.append(_dropped(sent, asked_for, dropped))
    findings += [_constraint(sent, sentence) for sentence in limits_lost]
    if findings:
        return findings
    if others:
        each = others[0]
        return NotRecorded(
            says=f"can't tell whether `{each.new}` is another name or a part of `{each.old}`"
        )
    if doubtful:
        names = ", ".join(f"`{fact.text}`" for fact in doubtful[:5])
        return NotRecorded(says=f"can't tell whether the receiver needs {names} of the request")
    if not asked_for:
        return NotRecorded(says="the request has no number, name or limit that concerns the prompt")
    names = ", ".join(f"`{fact.text}`" for fact in asked_for[:5])
    more = f" and {len(asked_for) - 5} more" if len(asked_for) > 5 else ""
    return Clear(says=f"the prompt carries what the request names: {names}{more}")


def _substituted(sent: _Sent) -> list[tuple[Fact, str]]:
    """Return the value that a prompt replaces, with its sentence, if it carries the others."""
    if not sent.alone or not sent.values or refers_to_others(sent.prompt):
        return []
    if only_questions(sent.prompt) and not only_questions(sent.request.text):
        return []
    if max(len(sent.request.text), len(sent.prompt)) > _COMPARED:
        return []
    asked = values_of(sent.request.text)
    found = substituted(asked, sent.values, sent.given.keys, lambda: sent.known_before().keys)
    if found is None:
        return []
    lost = found.lost
    if keeps_limit(lost, found.value) or _may_be_worked_out(lost.fact, lost.sentence, sent):
        return []
    # "Bay 3" and 19 °C make no 16 °C, as no one adds a temperature to a count.
    if lost.kind not in _NOT_ADDED and _reworded(lost.fact, sent):
        return []
    if sent.elsewhere.holds(lost.fact):
        return []
    return [(lost.fact, lost.sentence)]


_NOT_ADDED = frozenset({"temperature", "share", "speed", "date", "time"})


def _misspelt(text: str, sent: _Sent) -> list[Fact]:
    """Return facts that the prompt has with two digits swapped, or copies with a changed value."""
    asked = list(values_of(text))
    gone = [f for f in read(text).facts if f.kind in HARD and not sent.given.holds(f)]
    wrong = [f for f in gone if misspelt(f, asked, sent.new) is not None]
    if sent.alone:
        wrong += [f for f in gone if f not in wrong and copied_except(f, asked, sent.new)]
    return wrong


def _by_chance(fact: Fact, sent: _Sent) -> bool:
    """Return whether only numbers of other things can carry a full hour, or the day of a date.

    "Two shifts of 18" does not carry 6 pm, and "3 teachers" does not carry 3 December, if the
    request has these numbers as well.
    """
    if fact.keys & sent.given.keys:
        return False
    days = {f"n:{key.rpartition('-')[2]}" for key in fact.keys if _is_day_key(key)}
    numbers = hours_of(fact.keys) | days
    if not numbers or any(f"in:{number}" in sent.given.keys for number in numbers):
        return False
    asked = [f for f in read(sent.request.text).facts if f.kind == "number" and f.keys != fact.keys]
    alone = [number for number in numbers if f"alone:{number}" in sent.given.keys]
    return bool(alone) and all(any(number in f.keys for f in asked) for number in alone)


def _is_day_key(key: str) -> bool:
    return key.startswith("d:") and key.count("-") == 1


class _Part(NamedTuple):
    """The facts of a sentence that were carried, lost, or are in doubt."""

    words: list[Fact]
    kept: list[Fact]
    lost: list[Fact]
    doubtful: list[Fact]
    unsaid: list[Fact]
    """The doubtful facts that nothing in the prompt can stand for."""

    @property
    def words_only(self) -> bool:
        return not (self.kept or self.lost or self.doubtful)


def _of_sentence(sentence: str, sent: _Sent, limits: Limits) -> _Part:
    reading = read(sentence)
    spared = read(*asides(sentence)).facts
    spared_keys = {fact.keys for fact in spared if fact.kind == "number"}
    # "3 out of 4" can be passed on as 75 %.
    for share in SHARE_OF.finditer(sentence):
        if int(share[2]) and share_keys(int(share[1]) / int(share[2])) & sent.given.keys:
            spared_keys |= {number_keys(share[1]), number_keys(share[2])}
    # Mail addresses are left out: "tell legal@example.org" is usually something the caller itself
    # does with the answer.
    hard = [
        f
        for f in reading.facts
        if _has_to_come(f) and "@" not in f.text and f.keys not in spared_keys
    ]
    words = [fact for fact in reading.facts if fact.kind not in HARD]
    kept = [
        fact
        for fact in hard
        if (sent.given.holds(fact) and not _by_chance(fact, sent)) or _is_spelled(fact, sent)
    ]
    changed = [f for f in kept if in_another_unit(f, sent.given, sent.values) is not None]
    # "Convert 50 EUR and buy 3 chairs" can go to two agents, one of which gets the 3.
    gone = [f for f in hard if f not in kept and not sent.elsewhere.holds(f)]
    if changed:
        return _Part(words, [f for f in kept if f not in changed], changed, [], [])
    if not gone:
        return _Part(words, kept, [], [], [])
    lost: list[Fact] = []
    unsaid: list[Fact] = []
    parts = [(clause, read(clause)) for clause in clauses(sentence)]
    asked = list(values_of(sentence))
    for fact in gone:
        if misspelt(fact, asked, sent.new) is not None:
            lost.append(fact)
            continue
        if sent.alone and copied_except(fact, asked, sent.new) is not None:
            lost.append(fact)
            continue
        every = list(values_of(sent.request.text))
        if sent.alone and swapped_digits(fact, every, sent.new) is not None:
            lost.append(fact)
            continue
        if _is_asked_back(fact, sentence, sent):
            lost.append(fact)
            continue
        # Only names: "run the smoke tests" can be enough for "run the 3 smoke tests".
        if fact.kind != "number" and cut_out(fact, sentence, sent.prompt):
            lost.append(fact)
            continue
        if sent.retold and sent.alone and limit_changed(fact, every, sent.new) is not None:
            lost.append(fact)
            continue
        if _reworded(fact, sent) or _is_for_caller(fact, sentence, sent):
            continue
        if _counts_other(fact, every, sent):
            lost.append(fact)
            continue
        other = in_place_of(fact, asked, sent.new, retold=sent.retold and sent.alone)
        told = is_rough(fact.text, sentence) or is_known_anyway(fact.text, sentence)
        if other is None and (told or remains(fact.text, sentence)):
            continue
        if other is not None or _is_missing(fact, sentence, parts, words + kept, sent, limits):
            lost.append(fact)
        else:
            unsaid.append(fact)
    return _Part(words, kept, lost, [fact for fact in gone if fact not in lost], unsaid)


def _is_for_caller(fact: Fact, sentence: str, sent: _Sent) -> bool:
    """Return whether a number may tell only the caller something, and not the receiver.

    The birth of a person, a condition that the caller can decide on from an earlier result ("if
    it's above 20 degrees"), or a value that the receiver itself reports ("Finance shows 81.2k").
    """
    if is_of_birth(fact.text, sentence):
        return True
    if is_condition(fact.text, sentence):
        found = sent.known_before().without(read(sent.request.text))
        return any(each.kind == "number" for each in found)
    if sent.dispatch.result is None or not is_claimed(fact.text, sentence):
        return False
    claimed = [value for value in values_of(sentence) if value.fact.keys == fact.keys]
    # "The courier says that order 55120 weighs 14 kg" claims no order.
    return any(
        _is_about(claim, value) if claim.kind == "number" else value.kind == claim.kind
        for claim in claimed
        for value in values_of(plain_text(sent.dispatch.result))
    )


def _is_about(claim: Value, value: Value) -> bool:
    """Return whether two numbers are nearly equal, and so count the same: 1,204 and 1,188."""
    return any(
        abs(a - b) <= _NEARLY * max(a, b) for a in claim.numbers for b in value.numbers if a != b
    ) or any(a == b and a >= _LARGE for a in claim.numbers for b in value.numbers)


_NEARLY = 0.2
_LARGE = 1000


# "Which order is it?", "Could you send me the order number?", "Please provide the order."
_ASKS_FOR = (
    r"(?:\b(?:which|what|welche\w*|quel(?:le)?|cuál)\b(?=[^.!\n]{{0,80}}\?)"
    r"|\b(?:please|kindly|bitte|(?:could|can|would) you) (?:\w+ )?"
    r"(?:provide|share|send|give|tell|specify|confirm)(?: (?:me|us))?"
    r"|\b(?:[Ii]|[Ww]e) (?:still )?(?:need|require|lack|have no)"
    r"|\b(?:missing|brauche|benötige|fehlt|manque|necesito|falta)"
    r"|\bwithout(?=[^.!?\n]{{0,40}} (?:number|code|id)\b))"
    r"\s(?:is\s|are\s|ist\s|est\s|es\s)?(?:(?:the|your|their|an?|any|die|das|der|den|le|la|el|l['’])\s?){{0,2}}"
    r"(?:[\w'’]{{1,20}}\s){{0,2}}{label}"
)


def _is_asked_back(fact: Fact, sentence: str, sent: _Sent) -> bool:
    """Return whether a receiver asks for the thing that a fact identifies: order 88.

    What it asks for, it needed and did not get.
    """
    result = sent.dispatch.result
    if result is None or fact.kind not in ("number", "identifier"):
        return False
    match = re.search(
        rf"([^\W\d_]{{4,40}})(?:[ ](?:no\.?|number|nr\.?|code|id|is|ist)){{0,2}}[ :#]{{1,2}}"
        rf"{re.escape(fact.text)}(?!\w)",
        sentence,
        re.IGNORECASE,
    )
    if match is None or match[1].casefold() in _SMALL:
        return False
    asks = _ASKS_FOR.format(label=re.escape(match[1]))
    text = plain_text(result)[:_LONGEST_REPLY]
    # "I have two lists. Which list should I use?" asks for a choice of its own.
    text = " ".join(part for part in sentences(text) if not offers(part))
    return re.search(asks, text, re.IGNORECASE) is not None


# A receiver that asks back says little else.
_LONGEST_REPLY = 1000


def _counts_other(fact: Fact, asked: list[Value], sent: _Sent) -> bool:
    """Return whether a prompt has another number of the things that a fact counts."""
    if not sent.alone or refers_to_others(sent.prompt) or only_questions(sent.prompt):
        return False
    other = counted_otherwise(fact, asked, sent.new)
    return other is not None and not _may_be_worked_out(fact, sent.request.text, sent)


def _is_missing(
    fact: Fact,
    sentence: str,
    parts: list[tuple[str, Reading]],
    others: list[Fact],
    sent: _Sent,
    limits: Limits,
) -> bool:
    """Return whether a prompt that leaves a fact out needs it."""
    # "Convert the amounts of the other agent's table", "your part is the hotel": other agents get
    # what such a prompt leaves out.
    if refers_to_others(sent.prompt):
        return False
    if _may_be_said_otherwise(fact, sent) or _may_be_worked_out(fact, sentence, sent):
        return False
    # "Was the account charged twice?" for account DE-4411 can't be answered without the number.
    names = fact.kind == "identifier" and (sent.retold or _is_short(sent.prompt))
    if names and _named_in(fact, sentence, sent):
        return True
    # "Does Medix have gloves of size 8?" comes before an order of five boxes.
    if only_questions(sent.prompt) and not only_questions(sent.request.text):
        return False
    # 150 EUR keeps a limit of 160, and 19:00 UTC is 20:00 in Paris.
    kinds = {v.kind for v in values_of(sentence) if v.fact.keys == fact.keys}
    if any(value.kind in kinds for value in sent.new):
        return False
    # A sentence can be about something else as a whole, but a prompt that mentions "the order" has
    # to state which order: "Is a refund due for the order?" for order 88.
    if (sent.retold or _is_short(sent.prompt)) and _named_in(fact, sentence, sent):
        return True
    # "12-15 Sept." are three nights from the 12th on.
    if re.fullmatch(r"\d{1,3}-\d{1,3}", fact.text):
        return False
    # "It had 52 fps" and "in 2023 the price was 980" are about the past, and "below 45 fps" has the
    # number of fps that counts.
    if fact.kind == "number" and (_was_so(fact, sentence) or _has_its_unit(fact, sentence, sent)):
        return False
    # "Two more positions" can be "further positions", and a planner can keep a deadline to itself.
    if fact.text.isalpha() or is_deadline(fact.text, sentence):
        return False
    return sent.retold and _needed(fact, parts, others, sent, limits)


_WAS = re.compile(
    r"\b(?:was|were|had|used to|paid|cost(?! (?:at|no|up))|war|waren|hatte\w*|kostete\w*"
    r"|bezahlte\w*|était|étaient|avait|coûtait|era|eran|fue|fueron|tenía|costaba|aveva)\b"
    # "p99 went from 180 ms to 2 s", "ist von 5 auf 9 % gestiegen": what a change began with.
    r"|\b(?:went|rose|fell|dropped|jumped|climbed|grew|shrank|sank|moved|(?:in|de)creased)"
    r"(?: (?:up|down))? from\b|\b(?:stieg\w*|fiel\w*|sank\w*|ging\w*|wuchs\w*)(?: \w+)? von\b"
    r"|\bvon\b[^.!?\n]{1,40}\bauf\b[^.!?\n]{1,40}\b(?:ge(?:stiegen|fallen|sunken|gangen|wachsen))\b"
    r"|\b(?:passée?s?|pasó|subió|bajó|cayó) de\b",
    re.IGNORECASE,
)


def _was_so(fact: Fact, sentence: str) -> bool:
    """Return whether a number belongs to a statement about the past."""
    return any(fact.text in clause and _WAS.search(clause) for clause in clauses(sentence))


def _has_its_unit(fact: Fact, sentence: str, sent: _Sent) -> bool:
    """Return whether a prompt carries another number of the request with the unit of this one."""
    units = {unit_text(v) for v in values_of(sentence) if v.fact.keys == fact.keys} - {""}
    request = read(sent.request.text)
    return any(
        unit_text(value) in units and request.holds(value.fact) for value in values_of(sent.prompt)
    )


def _is_spelled(fact: Fact, sent: _Sent) -> bool:
    return fact.kind != "number" and is_spelled_in(fact.text, sent.prompt)


# Words that can express a number, a time or a share in a way not handled here: "half eight",
# "around the clock", "a handful". New ones in a prompt may stand for a missing value.
_MAY_BE_A_VALUE = re.compile(
    r"""\b(?:an?\ (?:few|dozen|couple|pair|score|handful|hundred|thousand|million|decade|century)
        |half|halves|quarters?|thirds?|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety
        |two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|both|twice|thrice|double|triple
        |single|pair|couple|clock|noon|midday|midnight|morning|afternoon|evening|night|daily|weekly
        |monthly|yearly|annual\w*|quarterly|fortnight\w*|decade|century|grand|hundred|thousand
        |million|billion|percent|per\ cent|majority|most|today|tomorrow|tonight|yesterday|weekend
        |mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?|last|next|first
        |second|fourth|fifth|mid|early|late|end|start|beginning|same|[IVX]{2,}
        |halb\w*|viertel|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|mittag|demi\w*|midi|media
        |deux|trois|quatre|cinq|dos|tres|cuatro|cinco)\b""",
    re.VERBOSE | re.IGNORECASE,
)


_MAY_BE_A_DATE = re.compile(r"\d{1,2}/\d{1,2}|\d{1,2}\.\d{1,2}\.\d\d")


def _may_be_said_otherwise(fact: Fact, sent: _Sent) -> bool:
    """Return whether something new in a prompt may be the fact, in another notation.

    A prompt can have "9 am EST" instead of "14:00 UTC". If it has nothing new that could be a
    value, the fact is missing.
    """
    request = read(sent.request.text)
    mine = _dimensions(fact)
    # "12 March 2026" for 12.3.26, which can also be a version, and "the 3rd of March" for 3/3.
    if _MAY_BE_A_DATE.fullmatch(fact.text) is not None:
        if any(key.startswith("d:") for key in read(sent.prompt).keys):
            return True
    for each in read(sent.prompt).facts:
        if not _is_new(each, request, sent.request.text):
            continue
        # `python:3.11` is not a notation of 3.12.
        if fact.kind == "number" and "." in fact.text and _PACKAGE.fullmatch(each.text):
            continue
        theirs = _dimensions(each)
        if not mine or not theirs or mine & theirs:
            return True
    if fact.kind == "number":
        asked_words = {word.casefold() for word in _MAY_BE_A_VALUE.findall(sent.request.text)}
        own = {word.casefold() for word in _MAY_BE_A_VALUE.findall(sent.prompt)} - asked_words
        return any(word_key(word) not in request.keys for word in own)
    # "Issue #42" for `GH-42`, "Node 18" for `node:18-alpine`, `3.12` for `py312`.
    digits = re.sub(r"\D", "", fact.text)
    said = {re.sub(r"\D", "", each) for each in re.findall(r"(?<!\w)[\d.]*\d(?!\w)", sent.prompt)}
    return bool(digits) and digits in said


# "16.2 kg x 50 mg/kg", "270 mg = 5.4 mL": a computed value can stand for its inputs.
_SUM = re.compile(r"\d[^\W\d]{0,8}(?:/[^\W\d]{1,8})?\s?(?:[x×*=]|-->?|→)\s?(?:[€$£]\s?)?\d")
# "120 x 80 cm" can be expressed as "Euro pallets".
_BY = r"\s?(?:[^\W\d]{1,3}\s?)?[x×]\s?"


def _may_be_worked_out(fact: Fact, sentence: str, sent: _Sent) -> bool:
    """Return whether a prompt may have used a number in a calculation, or named a size instead."""
    if fact.kind != "number":
        return False
    number = re.escape(fact.text)
    is_side = re.search(rf"\d{_BY}{number}(?!\d)|(?<!\d){number}{_BY}\d", sentence)
    if is_side and not re.search(rf"\d{_BY}\d", sent.prompt):
        return True
    return bool(sent.new) and len(_SUM.findall(sent.prompt)) > len(_SUM.findall(sent.request.text))


# It starts at a word: otherwise a long run of letters would be scanned from each letter.
_PACKAGE = re.compile(r"(?<![a-z-])[a-z][a-z-]*[:@]\d+(?:\.\d+)+")


def _is_new(fact: Fact, request: Reading, text: str) -> bool:
    """Return whether a prompt's number or name is not in the request: 6 guests are not 6 feet."""
    if fact.kind not in HARD or (fact.kind != "number" and is_spelled_in(fact.text, text)):
        return False
    precise = {key for key in fact.keys if key.startswith(("u:", "t:", "d:"))}
    return not (precise or fact.keys) & request.keys


def _dimensions(fact: Fact) -> set[str]:
    """Return what is measured. All currencies count as one, as an amount can be converted."""
    kinds = {key.split(":")[1] for key in fact.keys if key.startswith("u:")}
    kinds |= {key[0] for key in fact.keys if key.startswith(("t:", "d:"))}
    return {"money" if kind.isupper() else kind for kind in kinds}


def _is_short(prompt: str) -> bool:
    return len(prompt.split()) <= SHORT


def _needed(
    fact: Fact,
    parts: list[tuple[str, Reading]],
    others: list[Fact],
    sent: _Sent,
    limits: Limits,
) -> bool:
    """Return whether a fact belongs to what the prompt is about.

    The fact's own clause decides: from "Order 1,500 screws and 6 hinges", a prompt can pass on only
    the screws. Carried numbers count as shared words, or a short prompt ("Was A-17 paid twice?")
    would share nothing with "Did I pay A-17 twice?".
    """
    own = next(
        ((clause, part) for clause, part in parts if any(f.keys == fact.keys for f in part.facts)),
        None,
    )
    if own is None or len(parts) == 1:
        return _concerns(others, sent.given, limits.shared_words)
    clause, part = own
    # "2 rooms for Ms Ito" and "1 room for Mr Berg" can be work for different agents.
    names = (f for f in part.facts if f.kind == "word" and f.text[:1].isupper())
    first = parts[0][0].lstrip()
    if any(not sent.given.holds(name) for name in names if not first.startswith(name.text)):
        return False
    beside = [f for f in part.facts if f.keys != fact.keys and not _is_lost(f, sent)]
    # An order number at the end belongs to no word: "..., PO 5519."
    if not beside and not sets_limit(clause) and clause is not parts[0][0]:
        return False
    return _concerns(beside or others, sent.given, limits.shared_words)


def _is_lost(fact: Fact, sent: _Sent) -> bool:
    return fact.kind in HARD and not sent.given.holds(fact)


def _reworded(fact: Fact, sent: _Sent) -> bool:
    """Return whether a number in the prompt can stand for this one: two others make three."""
    if fact.kind != "number":
        return False
    if _is_day(fact):
        return _is_end_of_stay(fact, sent)
    values = {float(key[2:]) for key in fact.keys if key.startswith("n:")}
    if not values:
        return False
    asked = read(sent.request.text)
    new = {
        float(key[2:])
        for each in read(sent.prompt).facts
        if each.kind == "number" and not asked.holds(each)
        for key in each.keys
        if key.startswith("n:")
    }
    known = {
        float(key[2:])
        for each in asked.facts
        for key in each.keys
        if each.kind == "number" and key.startswith("n:")
    }
    # Three quarters of a year are nine months: a share can be passed on as the resulting amount.
    if new and any(key.startswith("sh:") for key in fact.keys):
        return True
    # "2023" is "last year" in 2024.
    years = [value for value in (*values, *new) if 1900 <= value <= 2100]
    if years == list(values) and _RELATIVE_YEAR.search(sent.prompt):
        return True
    # "Five years from 2019" are 2019 to 2023.
    if years and any(abs(a - b) + 1 in new for a in years for b in known if 1900 <= b <= 2100):
        return True
    # One of the people is the customer. A sum, difference, product or share can be passed on in
    # place of its parts, like "128 EUR for both" for "64 EUR each".
    # 130 chairs "with 10 spare ones" are 120.
    steps = (known - values) | new | {1.0}
    return any(_follows(value, old, by) for value in new for old in values for by in steps)


def _is_end_of_stay(fact: Fact, sent: _Sent) -> bool:
    """Return whether a date follows from a length of stay: 16 May from "4 nights from 12 May"."""
    ends = {int(key.rpartition("-")[2]) for key in fact.keys if key.count("-") == 1}
    asked = read(sent.request.text)
    nights = {
        float(key[2:])
        for each in read(sent.prompt).facts
        for key in each.keys
        if key.startswith("n:") and not asked.holds(each)
    }
    days = [float(part) for part in re.findall(r"(?<![\d.,])\d{1,2}(?![\d.,]*\d)", sent.prompt)]
    stays = [end - day for end in ends for day in days if end > day]
    return any(stay in nights or stay + 1 in nights for stay in stays)


def _follows(value: float, old: float, by: float) -> bool:
    if value in (old + by, old - by, by - old):
        return True
    made = (old * by, old / by if by else old, by / old if old else by)
    return any(abs(value - one) <= 0.005 * abs(one) for one in made if one != old)


def _concerns(words: list[Fact], given: Reading, share: float) -> bool:
    """Return whether the prompt is about a sentence, judging by the words they share."""
    shared = sum(given.holds(word) for word in words)
    return bool(words) and shared / len(words) > share


def _named_in(fact: Fact, sentence: str, sent: _Sent) -> bool:
    """Return whether the prompt mentions what the fact belongs to: ``order`` for ``order 88``.

    A prompt that names another one refers to that one.
    """
    match = re.search(rf"([^\W\d_]{{3,}})\s+{re.escape(fact.text)}", sentence)
    if match is None or match[1].casefold() in _SMALL:
        return False
    # "Metformin 850 mg" is an amount. "The metformin" is complete without it.
    if any(key.startswith("u:") for key in fact.keys):
        return False
    # "The seats" are more than the seats 14A and 14C.
    if re.search(r"[^s]s$", match[1]):
        return False
    label = re.escape(match[1])
    # "Order 1,500 screws" and "Order hinges" start with a verb.
    if match.start() == 0 and re.match(rf"\W*{label}(?!\w)", sent.prompt, re.IGNORECASE):
        return False
    # The prompt "orders in row 9" for a request about `row 7` names another row on purpose.
    # "Reserve a room" for "Please reserve 2 rooms" has the word as a verb.
    before = rf"(?:{_DEFINITE})\s(?:(?:{_DEFINITE})\s)?"
    pattern = rf"\b{before}(?:(\w+)\s)?{label}(?!\w)(?!\s+#?\w*\d)"
    named = re.search(pattern, sent.prompt, re.IGNORECASE)
    if named is None:
        return False
    # "The new oven" is neither oven 1 nor oven 2.
    return named[1] is None or named[1].casefold() in sent.request.text.casefold()


def _limit_lost(sentence: str, words: list[Fact], sent: _Sent, limits: Limits) -> bool:
    """Return whether a limit is lost: the prompt repeats the request, but limits nothing."""
    # A limit in words has no number to look for, so it takes more evidence: the caller made no
    # other dispatch that the limit could apply to, none of its words were carried, the prompt
    # repeats the rest of the request, and nothing in it limits anything.
    if not (sent.alone and sent.retold and forbids(sentence)) or refers_to_others(sent.prompt):
        return False
    if is_callers(sentence) or _is_json(sent):
        return False
    if not words or any(sent.given.holds(w) or sent.elsewhere.holds(w) for w in words):
        return False
    rest = [s for s in sentences(sent.request.text) if s != sentence]
    others = [fact for s in rest for fact in read(s).facts]
    return not sets_limit(sent.prompt) and _concerns(others, sent.given, limits.shared_words)


# How many other numbers and names of a request a prompt has to carry before the missing one counts
# as a gap, and not as another agent's part.
_KEPT_BESIDE = 3
# Words that limit the number after them: "at most 180 EUR", "above 2 %", "not before 3 June".
_BOUND = re.compile(
    r"""\b(?:at\ (?:most|least)|no\ (?:more|less|fewer)\ than|(?:more|less|fewer)\ than
        |max(?:imum|imal)?|under|below|above|over|up\ to|exceed\w*|budget|limit|cap|ceiling|within
        |not\ before|after|only|höchstens|mindestens|maximal|weniger\ als|mehr\ als|unter|über
        |au\ (?:plus|moins)|como\ máximo|al\ menos|menos\ de|más\ de)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Past events and personal details can be left out: "She bought it for 59.90", "my number is +43 660
# 5550142".
_STORY = re.compile(
    r"\b(?:was|were|had|been|bought|paid|came|went|got|sent|told|said|ago|yesterday|since|my|me"
    r"|mine|(?:I|we|he|she|they|it|you|who|which) (?:\w+ed|stood|sat|took|lost|spent|ate|drove|ran"
    r"|flew|slept|met|saw|left|found|gave|made|kept|began|chose|broke|forgot|knew|held|fell)|war|waren"
    r"|hatte|wurde|standen|saßen|mein\w*|était|mon|fue|mi"
    # "Wir haben dort 2 Stunden gewartet", "last time".
    r"|hab(?:e|en)\b[^.!?\n]{1,60}\b(?:ge(?!samt)\w{2,12}(?:t|en)|verloren|verbracht|bekommen)"
    r"|last (?:time|week|month|year|spring|summer|autumn|fall|winter))\b",
    re.IGNORECASE,
)
# "On 9 October", "from 12 May", "at 14:15": when something should take place.
_WHEN = (
    r"\b(?:on|from|starting|begin\w*|between|to|at|for|am|vom|ab|um|zum|le|du|el|del|à)\s(?:the )?"
)


def _is_only_gap(missing: list[tuple[Fact, str]], sent: _Sent) -> bool:
    """Return whether only one bound, name or date of the request is missing from the prompt.

    "Hotel in Lisbon, 12 to 16 May, 2 adults, quiet" leaves out "at most 180 EUR a night". A prompt
    with any new value may have it in another form.
    """
    if not (sent.retold and sent.alone) or refers_to_others(sent.prompt):
        return False
    if only_questions(sent.prompt) and not only_questions(sent.request.text):
        return False
    request = read(sent.request.text)
    kept = [f for f in request.facts if _has_to_come(f) and sent.given.holds(f)]
    hard = [f for f in request.facts if _has_to_come(f)]
    if len(kept) < min(_KEPT_BESIDE, len(hard) - 1) or not kept:
        return False
    if all(_may_be_said_otherwise(fact, sent) for fact, _ in missing):
        return False
    # "A toddler" can be passed on as "1 toddler".
    own = [f for f in read(sent.prompt).facts if f.kind in HARD and f.keys != number_keys("1")]
    if any(not request.holds(f) for f in own):
        return False
    if len(missing) == 2:
        (start, sentence), (end, other) = missing
        # Both ends of a range are one thing: "from 12 to 16 May".
        ends = rf"{re.escape(start.text)}\s?(?:to|until|-|–|bis|au|al|a)\s?{re.escape(end.text)}"
        period = _is_day(end) or (_is_year(start) and _is_year(end))
        return sentence == other and period and re.search(ends, sentence) is not None
    if len(missing) != 1 or not _is_required(*missing[0]):
        return False
    fact, sentence = missing[0]
    # With fewer carried values only a bound is sure to belong to the work: "must not cost more than
    # 80 EUR", not "the next meeting is at 9:00".
    if len(kept) < _KEPT_BESIDE and not _is_bounded(fact, sentence):
        return False
    # "Call him on 0161 496 0372" is a separate task, which the prompt does not mention.
    beside = [each for each in read(sentence).facts if each.keys != fact.keys]
    return fact.kind != "identifier" or any(sent.given.holds(each) for each in beside)


def _is_required(fact: Fact, sentence: str) -> bool:
    if not any(c.isdigit() for c in fact.text) or re.fullmatch(r"\d{1,3}-\d{1,3}", fact.text):
        return False
    clause = next((c for c in clauses(sentence) if fact.text in c), sentence)
    if is_deadline(fact.text, sentence) or _STORY.search(clause) is not None:
        return False
    # "It must not cost more than 40 EUR" demands, "we can't take the one at 7" excuses.
    if excuses(clause) and not re.search(r"\b(?:must|darf|dürfen|doit|debe)\b", clause):
        return False
    if _is_day(fact) or any(key.startswith("t:") for key in fact.keys):
        when = rf"{_WHEN}{re.escape(fact.text)}(?!\w)"
        return (
            re.search(when, clause, re.IGNORECASE) is not None or _BOUND.search(clause) is not None
        )
    return fact.kind == "identifier" or _BOUND.search(clause) is not None


# See `_only_clause_missing`.
_KEPT_ALL = 3
_KEPT_SHARE = 0.6
_COVERED = 0.25
# An age, a price that was paid, a name or a number to call describe a person, not the work.
_OF_PERSON = re.compile(
    r"""\b(?:old|aged?|years?|jahre?n?|ans|años|born|since|phone|tel\w*|call|ring|mobile|reach\w*
        |address|room\ number|floor|budget|price|paid|cost\w*|invoice|bill\w*|reference|ref
        |ticket|thanks|reason|because|as\ (?:we|i|they|he|she))\b""",
    re.VERBOSE | re.IGNORECASE,
)


def _only_clause_missing(missing: list[tuple[Fact, str]], sent: _Sent) -> list[tuple[Fact, str]]:
    """Return the numbers of the only clause of a request that a prompt leaves out.

    "Lunch for 65 on 21 March at 12:30, 9 vegan, up to 38 EUR a head" leaves out "4 are coeliac". A
    caller that splits the work leaves out more than one thing.
    """
    if not (sent.retold and sent.alone) or refers_to_others(sent.prompt) or not missing:
        return []
    if only_questions(sent.prompt) or sent.dispatch.context or _is_json(sent):
        return []
    request = read(sent.request.text)
    if request.language is None or read(sent.prompt).language not in (None, request.language):
        return []
    hard = [f for f in request.facts if _has_to_come(f)]
    kept = [f for f in hard if sent.given.holds(f)]
    if len(kept) < _KEPT_ALL or len(kept) < _KEPT_SHARE * len(hard):
        return []
    own = [f for f in read(sent.prompt).facts if f.kind in HARD and f.keys != number_keys("1")]
    if any(not request.holds(f) for f in own):
        return []
    ((_, sentence), *_) = missing
    if any(other != sentence for _, other in missing):
        return []
    clause = next((c for c in clauses(in_digits(sentence)) if missing[0][0].text in c), sentence)
    facts = read(clause)
    if not all(facts.holds(fact) for fact, _ in missing) or is_callers(clause) or excuses(clause):
        return []
    if _STORY.search(clause) or _OF_PERSON.search(clause) or is_courtesy(clause) or asides(clause):
        return []
    # A day by which all has to be done is for the caller to keep.
    if any(_is_day(fact) and is_deadline(fact.text, sentence) for fact, _ in missing):
        return []
    words = [f for f in facts.facts if f.kind == "word"]
    if not words or any(sent.given.holds(f) or sent.elsewhere.holds(f) for f in words):
        return []
    others = [c for s in sentences(in_digits(sent.request.text)) for c in clauses(s) if c != clause]
    # "2 projectors and 1 screen. The screen we can borrow": a user who comes back to it settles it.
    if any(read(other).holds(word) for other in others for word in words):
        return []
    for other in others:
        told = [f for f in read(other).facts if f.kind in HARD or f.kind == "word"]
        covered = sum(sent.given.holds(f) for f in told)
        if told and covered < _COVERED * len(told) and not is_courtesy(other):
            return []
    return missing


# Things that a name or a number identifies.
_IDENTIFIED = (
    r"invoice|order|booking|reservation|ticket|account|customer|patient|case|claim|parcel|shipment"
    r"|container|file|branch|policy|contract|report|page|document|project|repository|server|host"
    r"|function|module|build|release|rechnung|bestellung|buchung|konto|kund\w+|datei|vertrag"
    r"|facture|commande|compte|fichier|contrat|factura|pedido|reserva|cuenta|archivo|contrato"
)
_REFERRED = re.compile(
    rf"\b(?:the|this|that|die|der|das|den|la|le|el)\s(?:{_IDENTIFIED})\b(?!['’]s)(?!\s(?:of|for|from)\b)"
    r"|^\W*(?:please\s)?[^\W\d_]+\s(?:that\s|whether\s|if\s)?it\b",
    re.IGNORECASE,
)
_SAME_TASK = 0.8


def _referred_to(sent: _Sent) -> list[tuple[Fact, str]]:
    """Return the only name of a request, if a prompt for the same task says "the invoice" or "it".

    A receiver that starts anew can't know which one: "Was the invoice paid twice?" for "Did I pay
    A-17 twice?".
    """
    if not sent.alone or sent.dispatch.context or not _is_short(sent.prompt) or _is_json(sent):
        return []
    if refers_to_others(sent.prompt) or _REFERRED.search(sent.prompt) is None:
        return []
    # "Arrange it for issue GH-42" has something that "it" stands for.
    if _REFERRED.search(sent.request.text) is not None:
        return []
    request, prompt = read(sent.request.text), read(sent.prompt)
    names = [f for f in request.facts if f.kind in ("identifier", "path") and "@" not in f.text]
    # "[ticket SHOP-13]" says where a request comes from.
    marked = re.findall(r"\[[^\]\n]{0,80}\]", sent.request.text)
    names = [f for f in names if not any(f.text in each for each in marked)]
    if len(names) != 1 or any(f.kind in HARD and not request.holds(f) for f in prompt.facts):
        return []
    if sent.given.holds(names[0]) or sent.elsewhere.holds(names[0]):
        return []
    if is_spelled_in(names[0].text, sent.prompt) or _may_be_said_otherwise(names[0], sent):
        return []
    words = [f for f in request.facts if f.kind == "word" and not any(f.text in m for m in marked)]
    kept = sum(sent.given.holds(word) for word in words)
    if not words or kept < _SAME_TASK * len(words):
        return []
    return [(names[0], sent.request.text)]


# A clause that limits or completes the work: "don't touch payments-db", "with tail lift".
_COMPLETES = re.compile(
    r"""^\W*(?:(?:and|but|please|bitte|und|aber|et|mais|y|pero)\ ){0,2}
        (?:do\ not|don['’]t|never|must\ not|keep|leave|with|without|kein\w*|mit|ohne|avec|sans|con
            |sin)
        \ (?!(?:best|kind)\b|regards\b|thanks\b|respect\b)""",
    re.VERBOSE | re.IGNORECASE,
)
# Verbs that give any task, and so are no other words for a clause that is left out.
_GIVES_TASK = frozenset(
    """
    find search please book arrange check make write list show get look order task plan need needed
    job details requirements customer user client request requested want wants like following
    """.split()  # noqa: SIM905
)
_COVERED_BESIDE = 0.7
_OWN_WORD = 1


def _only_words_missing(sent: _Sent) -> list[str]:
    """Return the only clause without a counterpart in a prompt that carries all the others.

    The prompt may have a word of its own, which is too few to say the clause in other words.
    """
    if not (sent.retold and sent.alone) or refers_to_others(sent.prompt) or _is_json(sent):
        return []
    if only_questions(sent.prompt) or sent.dispatch.context:
        return []
    request, prompt = read(sent.request.text), read(sent.prompt)
    if request.language is None or prompt.language not in (None, request.language):
        return []
    if sum(f.kind in HARD for f in request.facts) < _SAID_BESIDE:
        return []
    own = [
        f
        for f in prompt.facts
        if f.text.casefold() not in _GIVES_TASK and f.kind == "word" and not request.holds(f)
    ]
    if len(own) > _OWN_WORD or any(f.kind in HARD and not request.holds(f) for f in prompt.facts):
        return []
    missing = []
    for clause in _all_clauses(in_digits(sent.request.text)):
        facts = [f for f in read(clause).facts if f.kind in HARD or f.kind == "word"]
        covered = sum(sent.given.holds(f) or sent.elsewhere.holds(f) for f in facts)
        if facts and not covered:
            missing.append(clause)
        elif covered < _COVERED_BESIDE * len(facts):
            return []
    if len(missing) != 1 or _COMPLETES.match(missing[0]) is None:
        return []
    (clause,) = missing
    if is_callers(clause) or is_courtesy(clause) or excuses(clause) or _STORY.search(clause):
        return []
    return missing


_SAID_BESIDE = 2


def _is_bounded(fact: Fact, sentence: str) -> bool:
    clause = next((c for c in clauses(sentence) if fact.text in c), sentence)
    before, _, _ = clause.partition(fact.text)
    units = any(key.startswith("u:") for key in fact.keys)
    return units and _BOUND.search(before) is not None


def _is_year(fact: Fact) -> bool:
    return re.fullmatch(r"(?:19|20)\d\d", fact.text) is not None


def _is_day(fact: Fact) -> bool:
    return any(key.startswith("d:") for key in fact.keys)


# What is excluded: "nothing in Bairro Alto", "don't touch payments-db", "no walnuts anywhere". Not
# "don't worry" and "no more than", and not "a replacement, not a refund", as mentioning the
# replacement is enough there.
_EXCLUDES = re.compile(
    r"""(?:\b(?:do\ not|don['’]t|never|must\ not|mustn['’]t|should\ not|shouldn['’]t)[ ]
            (?!worry|forget|hesitate|know|think|mind|want|need|have|care)
        |\bnothing\ (?:in|from|with|by|on|at)[ ]|\bnot\ (?:in|at|on|from|with|by|near)[ ]
        |\bwithout[ ]
        |\b(?:except(?:\ for)?|excluding|exclude|avoid|skip|leave\ out|ignore)[ ]
        |(?:^|\b(?:and|but|please|with)[ ])no[ ]
            (?!more|less|fewer|later|longer|earlier|need|idea|rush|hurry|problem)
        |\b(?:nicht\ (?:in|im|am|an|bei|mit|von)|kein(?:e|en|em|er)?|ohne|außer)[ ]
        |\b(?:sans|sauf|pas\ (?:à|de|dans|en|chez|avec)|évite[rz]?)[ ]
        |\b(?:sin|excepto|evitar?)[ ])
        (?P<object>[^,.;:!?()\n]+)""",
    re.VERBOSE | re.IGNORECASE,
)
# Any word that a prompt can use to exclude something.
_MAY_EXCLUDE = re.compile(
    r"""(?<!\w)(?:no|not|none|never|nothing|nowhere|without|w/o|except\w*|exclu\w+|avoid\w*|skip\w*
        |ignor\w+|leav\w+|omit\w*|drop\w*|forb\w+|prohibit\w*|ban\w*|refus\w+|reject\w*
        |off[ -]limits|hands|frozen|untouched|unchanged|stays?|remains?|keep\w*|alone|allerg\w*
        |intoleran\w*|free|instead|rather|but|only|just|sole\w*|exclusive\w*|other|outside|apart|away|far|beyond|unless
        |minus|less|non|\w+n['’]t|cannot|nicht|kein\w*|ohne|außer\w*|nur|sans|sauf|pas|hors|éviter?
        |jamais|seulement|sin|nunca|salvo|excepto|solo|sólo|evita\w*)(?!\w)
        |\w-free\b|\bnon-?\w|[≠!]=|<>""",
    re.VERBOSE | re.IGNORECASE,
)
# The number of new words a prompt can have if the excluded thing is not a name: "no meat" can be
# expressed as "vegetarian".
_OWN_WORDS = 0
# How many exclusions in a sentence are checked.
_EXCLUSIONS = 20


def _excluded_lost(sentence: str, sent: _Sent) -> bool:
    """Return whether the prompt does not mention an exclusion, and excludes nothing else.

    This only applies to a prompt in the same language that repeats most of the request and is not
    data: `{"pets": false}` also excludes.
    """
    if not (sent.retold and sent.alone) or refers_to_others(sent.prompt):
        return False
    if _is_json(sent):
        return False
    if sent.dispatch.context or only_questions(sent.prompt):
        return False
    request, prompt = read(sent.request.text), read(sent.prompt)
    if request.language is None or prompt.language not in (None, request.language):
        return False
    named = islice(_EXCLUDES.finditer(sentence), _EXCLUSIONS)
    lost = [
        m["object"]
        for m in named
        if not is_callers(_clause_of(sentence, m.start("object"), m.end()))
        and _is_left_out(m["object"], sent)
    ]
    if not lost or re.search(r"\b(?:me|us|mich|uns|moi|nous)\b", sentence, re.IGNORECASE):
        return False
    # Each excluding word in the prompt has to be next to text from elsewhere in the request: "no
    # more than 180 EUR" for another sentence.
    rest = read(
        *(part for part in _all_clauses(sent.request.text) if not any(o in part for o in lost))
    )
    for clause in _all_clauses(sent.prompt):
        facts = read(clause).facts
        if _MAY_EXCLUDE.search(clause) and (not facts or any(not rest.holds(f) for f in facts)):
            return False
    has_name = any(_names_in(each) for each in lost)
    own = [f for f in prompt.facts if f.kind == "word" and not request.holds(f)]
    return has_name or len(own) <= _OWN_WORDS


def _is_json(sent: _Sent) -> bool:
    """Return whether a prompt is data, whose names can state a limit: `{"nuts": false}`."""
    content = sent.dispatch.prompt
    return content is None or content.text is None or as_json(content.text) is not None


def _is_reversed(sentence: str, sent: _Sent) -> bool:
    """Return whether the prompt asks for what a sentence forbids."""
    if not sent.alone or refers_to_others(sent.prompt) or is_callers(sentence):
        return False
    if _is_json(sent):
        return False
    if sent.dispatch.context or only_questions(sent.prompt):
        return False
    # A part of the work, such as "book a table with a view", can need another limit.
    words = [fact for fact in read(sent.request.text).facts if fact.kind not in HARD]
    shared = sum(sent.given.holds(fact) for fact in words)
    return shared >= REVERSED * len(words) and any(reversed_limits(sentence, sent.prompt))


# The share of the words of a request that a prompt needs to reverse one of its limits.
REVERSED = 0.35


def _clause_of(sentence: str, start: int, end: int) -> str:
    """Return the clause that contains a part of a sentence, up to the end of that part."""
    before = sentence[:start]
    at = max(before.rfind(mark) for mark in (", ", "; ", ": ", "(")) + 1
    return sentence[at:end].strip()


def _all_clauses(text: str) -> list[str]:
    return [clause for part in sentences(text) for clause in clauses(part)]


def _names_in(text: str) -> list[str]:
    """Return the names in an exclusion: `Bairro Alto`, `payments-db`."""
    return re.findall(r"\b[A-Z][\w]+|\b[a-z]\w*[-_]\w+", text)


def _is_left_out(excluded: str, sent: _Sent) -> bool:
    """Return whether no word that only the exclusion has, nor any similar word, comes up."""
    if any(fact.kind in HARD for fact in read(excluded).facts):
        return False
    at = sent.request.text.find(excluded)
    around = sent.request.text[:at] + sent.request.text[at + len(excluded) :]
    words = [fact for fact in read(excluded).facts if not read(around).holds(fact)]
    text = sent.prompt.casefold()
    return bool(words) and not any(
        sent.given.holds(fact) or sent.elsewhere.holds(fact) or fact.text.casefold()[:4] in text
        for fact in words
    )


# The start of a sentence that does nothing but limit: "Never write to sales_daily_gold".
_ONLY_LIMITS = re.compile(
    r"""^\W*(?:(?:please|and|but|bitte)\ )?(?:never|do\ not|don['’]t|no\b|nothing\b|nobody\b|none\b
        |not\b|only\b|without\b|disregard\b|skip\b|exclude\b|avoid\b|ignore\b|leave\ out\b
        |leave\ (?:\w+\ ){1,4}out\b|use\ (?:only|at\ (?:most|least)|no)\b|at\ (?:most|least)\b
        |keine?\w*\b|nie\b|nur\b|ne\ |sans\b|aucun|no\ |nunca|sin\b|solo\b|sólo\b)""",
    re.VERBOSE | re.IGNORECASE,
)


def _cut_from_copy(sent: _Sent) -> list[str]:
    """Return limits that a prompt leaves out, or in which it replaces a name, month or number.

    This only applies to a prompt that copies the request word for word.
    """
    if not sent.alone or refers_to_others(sent.prompt) or sent.dispatch.context or _is_json(sent):
        return []
    if only_questions(sent.prompt) and not only_questions(sent.request.text):
        return []
    found = []
    for gap in gaps(in_digits(sent.request.text), in_digits(sent.prompt)):
        if renamed(gap):
            if not any(
                sent.given.holds(f) or sent.elsewhere.holds(f) for f in read(gap.text).facts
            ):
                found.append(gap.text)
        elif gap.is_cut and _NEGATION.fullmatch(gap.text) is not None:
            at = sent.request.text.find(gap.text)
            found.append(sent.request.text[max(0, at) :][:_QUOTED])
        elif gap.is_cut:
            parts = sentences(gap.text) if gap.whole else [gap.text]
            limits = [part for part in parts if _is_limit_cut(part, sent, gap)]
            if not limits and (_is_item_cut(gap, sent) or _is_setting_cut(gap, sent)):
                limits = [gap.text]
            found += limits
        elif _is_number_changed(gap, sent):
            found.append(f"{gap.before} {gap.text}")
    return found


def _is_number_changed(gap: Gap, sent: _Sent) -> bool:
    numbers = numbers_of(gap)
    if numbers is None:
        return False
    (old,), (new,) = read(numbers[0]).facts or (None,), read(numbers[1]).facts or (None,)
    if old is None or new is None or old.keys & new.keys:
        return False
    # "At most 42 characters" is kept by 40, but nobody means 24.
    if is_transposed(*(re.sub(r"\D", "", number) for number in numbers)):
        return not sent.elsewhere.holds(old)
    if _reworded(old, sent):
        return False
    return not keeps_to(gap.before, old, new) and not sent.elsewhere.holds(old)


# "Close valve V-204" for "do NOT close valve V-204".
_NEGATION = re.compile(
    r"(?:please )?(?:do not|don['’]t|never|must not|not|nicht|nie)", re.IGNORECASE
)
_QUOTED = 60


# Words that limit the work, for a text that is otherwise copied. `forbids` is for any other text.
_LIMITS_WORK = re.compile(
    r"\b(?:no|none|nobody|nothing|not|disregard|kein\w*|niemand|nichts|aucun\w*|rien|nadie"
    r"|ningun\w*)\b",
    re.IGNORECASE,
)


# "To the gift card, not to the credit card": a copy with the gift card is complete. "Not before",
# "not more" and "not in Bairro Alto" say something else.
_CONTRAST = re.compile(
    r"""(?<!\W)\W{0,4}(?:and\ |but\ |und\ |et\ |y\ )?
        (?:(?:not|nicht|pas|no(?=\ (?:el|la|los|las)\b))
            (?!\ (?:before|after|until|more|less|later|earlier|longer|only|even|yet|any|one|vor|nach
                |mehr|länger|avant|plus|antes|más)\b)
        |instead\ of|rather\ than|statt|anstatt|en\ vez\ del?|au\ lieu\ d[eu])
        \ (?P<place>(?:to|for|as|on|in|at|via|by|from|with|near|auf|an|für|bei|mit|zu|im|am|à|dans
            |en|chez|avec|con)\b)?""",
    re.VERBOSE | re.IGNORECASE,
)


def _is_contrast(text: str, gap: Gap) -> bool:
    """Return whether a cut only names what is not meant, next to what is meant."""
    if gap.whole or not gap.before.rstrip().endswith(","):
        return False
    match = _CONTRAST.match(text)
    if match is None:
        return False
    place = match["place"]
    clause = re.split(r"[.;:!?]", gap.before)[-1].casefold()
    return place is None or f" {place.casefold()} " in f" {clause}"


def _is_limit_cut(text: str, sent: _Sent, gap: Gap) -> bool:
    if _is_contrast(text, gap) or is_callers(text) or is_courtesy(text) or asides(text):
        return False
    if re.search(r"\b(?:me|us|mich|uns|moi|nous)\b", text, re.IGNORECASE):
        return False
    bound = _BOUND.search(text) is not None and re.search(r"\d", text) is not None
    limits = bound or forbids(text) or _LIMITS_WORK.search(text) or _EXCLUDES.search(text)
    if not limits or (gap.whole and _ONLY_LIMITS.match(text) is None):
        return False
    if any(is_deadline(fact.text, text) for fact in read(text).facts):
        return False
    # "No meat" can be expressed as "vegetarian".
    if _has_own_words(sent):
        return False
    # "50 to 55 % humidity", which the prompt also copies, does not carry "at most 50 lux".
    facts = read(text).without(read(gap.rest))
    return bool(facts) and not _comes_up(facts, sent)


def _is_item_cut(gap: Gap, sent: _Sent) -> bool:
    """Return whether a copy lacks one item of a list: `1,400 jobs`, `and nextCycle()`.

    An item that starts with a verb can be a task of its own.
    """
    at = sent.request.text.find(gap.text)
    if at <= 0 or gap.whole or _has_own_words(sent):
        return False
    before = sent.request.text[:at].rstrip()[-1:]
    after = sent.request.text[at + len(gap.text) :].lstrip(" ()\"'")
    starts = re.match(r"(?:and|und|et|y)\s(?=[^\W\d_]*[A-Z])|(?:and |und |et |y )?\d", gap.text)
    ends = after[:1] in (",", ";", ".", ":", "") or re.match(r"(?:and|und|et|y)\s", after)
    listed = before in (",", ";") or gap.text[:1].isalpha()
    if starts is None or not ends or not listed or len(gap.text.split()) > _ITEM:
        return False
    return _is_setting(gap.text, sent, gap)


# The most words of an item: "and 4 vegetarian meals without nuts".
_ITEM = 6
# "The date of valuation is 31 December 2023", "MSRV is 1.74": neither a story nor a task.
_SETTING = re.compile(
    r"^(?:The [a-z]|[A-Z])[\w-]*(?: (?:of|for) (?:the )?[\w-]+| [\w-]+)? (?:is|=) (?:\S+ ?){1,4}$"
)
_OF_CALLER = re.compile(
    r"\b(?:deadline|due|contact|phone|number|extension|call\w*|reach\w*|boss|budget|invoice|bill|cost"
    r"|total|price|paid|today|reference|deliver\w*|birthday|name|address|mail|urgent|important)\b",
    re.IGNORECASE,
)


def _is_setting_cut(gap: Gap, sent: _Sent) -> bool:
    """Return whether a copy lacks a sentence that only sets a value for the work."""
    if not gap.whole or _SETTING.match(gap.text) is None or _has_own_words(sent):
        return False
    return _OF_CALLER.search(gap.text) is None and _is_setting(gap.text, sent, gap)


def _is_setting(text: str, sent: _Sent, gap: Gap) -> bool:
    if is_callers(text) or is_courtesy(text) or asides(text) or excuses(text) or "@" in text:
        return False
    if _STORY.search(text) or any(is_deadline(fact.text, text) for fact in read(text).facts):
        return False
    facts = read(text).without(read(gap.rest))
    names = re.search(r"\b[A-Z]", text) is not None
    return (names or any(f.kind in HARD for f in facts)) and not _comes_up(facts, sent)


def _has_own_words(sent: _Sent) -> bool:
    request = read(sent.request.text)
    return any(f.kind == "word" and not request.holds(f) for f in read(sent.prompt).facts)


def _comes_up(facts: Sequence[Fact], sent: _Sent) -> bool:
    return any(sent.given.holds(fact) or sent.elsewhere.holds(fact) for fact in facts)


def _replaced(sent: _Sent) -> list[Replaced]:
    """Return names that the prompt replaces, which the receiver did not get in any other text."""
    if not sent.alone or refers_to_others(sent.prompt):
        return []
    if only_questions(sent.prompt) and not only_questions(sent.request.text):
        return []
    found = []
    turned = (each for each in _opposite(sent) if not sent.has_source(each.new))
    for each in (*replaced(sent.request.text, sent.prompt, sent.has_source), *turned):
        old = each.old.casefold()
        facts = read(each.old).facts
        if any(old in piece.text.casefold() for piece in sent.received):
            continue
        if not any(sent.elsewhere.holds(fact) for fact in facts):
            found.append(each)
    return found


# Each value of longer texts would be compared with each other one.
_COMPARED = 4000


def _opposite(sent: _Sent) -> Iterator[Replaced]:
    """Yield what the prompt turns round: `aisle` and `window`, `above 61.50` and `below 61.50`."""
    if _is_json(sent) or sent.dispatch.context:
        return
    if max(len(sent.request.text), len(sent.prompt)) > _COMPARED:
        return
    # "Make JPEG previews" is a sub-task of "convert the scans to TIFF".
    whole = repeats(sent.request.text, sent.prompt)
    if whole:
        for old, new in opposites(sent.request.text, sent.prompt):
            yield Replaced(old, new)
    for limit, lifted in waived(sent.request.text, sent.prompt, whole=whole):
        yield Replaced(limit, lifted)
    asked = values_of(sent.request.text)
    told = values_of(sent.prompt)
    for lost, value in (*turned_bounds(asked, told), *other_basis(asked, told)):
        yield Replaced(lost.clause.strip()[:_QUOTED], value.clause.strip()[:_QUOTED])


def _replacement(sent: _Sent, swapped: list[Replaced]) -> Finding:
    said = ", ".join(f"`{each.new}` instead of `{each.old}`" for each in swapped)
    return Finding(
        kind="dropped",
        says=f"`{sent.dispatch.to_agent}` was told {said}",
        share=0.0,
        evidence=[
            Evidence(ids=[sent.request.id], quote=swapped[0].old),
            Evidence(ids=[sent.dispatch.id], quote=swapped[0].new),
        ],
        details={"dropped": [each.old for each in swapped]},
    )


def _dropped(sent: _Sent, facts: list[Fact], dropped: list[tuple[Fact, str]]) -> Finding:
    names = ", ".join(f"`{fact.text}`" for fact, _ in dropped)
    limit = any(sets_limit(sentence) for _, sentence in dropped)
    return Finding(
        kind="dropped_constraint" if limit else "dropped",
        says=f"`{sent.dispatch.to_agent}` was not told {names} of the request",
        share=1 - len(dropped) / len(facts),
        evidence=[
            Evidence(ids=[sent.request.id], quote=dropped[0][1][:120] or None),
            Evidence(ids=[sent.dispatch.id], quote=_prompt(sent.dispatch)),
        ],
        details={"dropped": [fact.text for fact, _ in dropped]},
    )


def _constraint(sent: _Sent, sentence: str) -> Finding:
    return Finding(
        kind="dropped_constraint",
        says=f"`{sent.dispatch.to_agent}` was not given a limit: {sentence[:120]}",
        share=0.0,
        evidence=[
            Evidence(ids=[sent.request.id], quote=sentence[:120]),
            Evidence(ids=[sent.dispatch.id], quote=_prompt(sent.dispatch)),
        ],
    )


def _prompt(dispatch: Dispatch) -> str | None:
    return None if dispatch.prompt is None else plain_text(dispatch.prompt)[:120] or None


def _request(trace: Trace, turn: Turn, dispatch: Dispatch) -> Piece | NotRecorded:
    """Return the request to the caller: from another agent, else from the user."""
    run = sender_of(trace, dispatch)
    by = (
        None
        if run is None
        else next((d for id_ in run.started_by if (d := dispatch_of(trace, id_)) is not None), None)
    )
    # A transfer back to the router brings a result or a refusal, not the router's own request.
    if by is not None and dispatch.to_agent == by.from_agent:
        return NotRecorded(says="the work returns to the agent it came from")
    if by is not None and by.kind == "delegate" and by.prompt is not None:
        return Piece(by.id, plain_text(by.prompt))
    if turn.input is None or not known(trace, turn, "input"):
        return NotRecorded(says="the user's request was not recorded: record the messages of users")
    return Piece(turn.id, plain_text(turn.input))


def _begins_anew(trace: Trace, dispatch: Dispatch) -> bool:
    """Return whether a receiver starts with an empty history and so knows only its prompt."""
    continues = dispatch.continues is not None or not known(trace, dispatch, "continues")
    return dispatch.kind == "delegate" and not continues


def _given(trace: Trace, dispatch: Dispatch) -> tuple[Reading, str]:
    """Return what the receiver was given, as far as recorded, and why there may be more."""
    runs = receivers_of(trace, dispatch)
    given = read(*(piece.text for piece in _received(trace, dispatch)))
    # A resumed agent remembers earlier prompts. An agent that gets control by a transfer, or as the
    # next node in a graph, usually sees the whole conversation. In these cases the first request to
    # its model has to be recorded, as that contains everything the agent was given.
    if _begins_anew(trace, dispatch):
        return given, ""
    recorded = (known(trace, run, "input") and known(trace, run, "context") for run in runs)
    if runs and all(recorded):
        return given, ""
    return given, (
        f"the context of the {dispatch.kind} was not recorded: the receiver may have seen the "
        "whole conversation; record the messages given to models"
    )


def _received(trace: Trace, dispatch: Dispatch) -> list[Piece]:
    """Return the texts that a receiver was given, and what it wrote, which shows what it knew."""
    pieces = asked(dispatch)[1:]
    runs = receivers_of(trace, dispatch)
    pieces += [Piece(run.id, plain_text(run.input)) for run in runs if run.input is not None]
    pieces += [piece for run in runs for piece in given_besides(trace, run)]
    pieces += [piece for run in runs for piece in shown_by(trace, run)]
    card = trace.agents.get(dispatch.to_agent)
    pieces.append(Piece(dispatch.to_agent, (card and card.instructions) or ""))
    return pieces


def _elsewhere(trace: Trace, turn: Turn, dispatch: Dispatch) -> Reading:
    """Read what the caller took up in other dispatches and calls, and the numbers in its answer.

    A caller that states a number may have used it, but any caller repeats a name.
    """
    index, run = index_of(trace), sender_of(trace, dispatch)
    taken_up = index.sent_by.get((turn.id, dispatch.from_agent), ())
    charge_work(len(taken_up) + len(run.steps if run is not None else ()))
    texts: list[str] = []
    for other in taken_up:
        if other.id != dispatch.id:
            if other.id not in index.texts:
                index.texts[other.id] = [piece.text for piece in asked(other)[1:]]
            texts += index.texts[other.id]
    texts += index.once(f"done by {run.id}", lambda: _done_itself(run)) if run is not None else ()
    return read(*texts)


def _done_itself(run: AgentRun) -> list[str]:
    """Return a caller's arguments to its own tools, and the numbers in its texts."""
    texts = []
    for step in run.steps:
        if isinstance(step, ToolCall) and step.dispatch is None:
            texts.append(plain_text(step.arguments))
        elif isinstance(step, Said):
            # "Two of the 25 pieces are in stock": a caller that states the number may have done
            # that part itself.
            numbers = [f.text for f in read(plain_text(step.content)).facts if f.kind == "number"]
            texts.append("\n".join(numbers))
    return texts


def _lost_on_the_way(trace: Trace, dispatch: Dispatch) -> Finding | None:
    """Find numbers and identifiers of a prompt that are missing from the receiver's input."""
    runs = [run for run in receivers_of(trace, dispatch) if run.input]
    if dispatch.prompt is None or not runs or not all(known(trace, r, "input") for r in runs):
        return None
    facts = [fact for fact in read(plain_text(dispatch.prompt)).facts if fact.kind in HARD]
    inputs = [plain_text(run.input) for run in runs if run.input]
    inputs += [piece.text for run in runs for piece in given_besides(trace, run)]
    given = read(*inputs, *(piece.text for run in runs for piece in shown_by(trace, run)))
    lost = [fact for fact in facts if not given.holds(fact)]
    # The input of a run is the last message it was given. After a transfer, that is one message of
    # a history, and the content of the prompt can be in the earlier part.
    if not lost or dispatch.kind != "delegate":
        return None
    names = ", ".join(f"`{fact.text}`" for fact in lost)
    return Finding(
        kind="not_received",
        says=f"{names} of the prompt did not reach `{dispatch.to_agent}`",
        share=1 - len(lost) / len(facts),
        evidence=[Evidence(ids=[dispatch.id, *(run.id for run in runs)], quote=_prompt(dispatch))],
        details={"dropped": [fact.text for fact in lost]},
    )


def _of_output(
    trace: Trace, turn: Turn, dispatch: Dispatch, given: Reading
) -> Finding | Clear | None:
    """Return whether any part of one agent's output reached the next. ``None`` if unknown."""
    run = sender_of(trace, dispatch)
    # In a sequence, a program decides what the next agent gets, for example by a state key, whose
    # name can be wrong. After a transfer, the receiver usually has the whole history.
    if run is None or run.output is None or dispatch.kind != "sequence":
        return None
    had = read(*(plain_text(each) for each in (turn.input, run.input) if each is not None))
    facts = [fact for fact in read(plain_text(run.output)).without(had) if fact.kind in HARD]
    if not facts:
        return None
    # One fact that arrived is enough, as a program can pass on a summary. ADK does not record an
    # agent's input. For ADK, the agent's texts and call arguments show it.
    arrived = [fact.text for fact in facts if given.holds(fact)]
    if arrived:
        names = ", ".join(f"`{text}`" for text in arrived[:5])
        return Clear(says=f"`{dispatch.to_agent}` had the findings of `{run.agent}`: {names}")
    names = ", ".join(f"`{fact.text}`" for fact in facts[:5])
    return Finding(
        kind="output_not_carried",
        says=f"none of the findings of `{run.agent}` ({names}) reached `{dispatch.to_agent}`",
        evidence=[Evidence(ids=[run.id, dispatch.id], quote=plain_text(run.output)[:120])],
        details={"dropped": [fact.text for fact in facts]},
    )
