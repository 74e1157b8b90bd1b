"""Which numbers and names of a sentence of a request did a prompt carry, and which has it lost?

A sentence concerns a dispatch if enough of its words are in the prompt. A fact that is not in the
prompt is lost if the prompt has another value in its place, or can't do without it.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from .asked_back import asks_for
from .changed_values import (
    copied_except,
    counted_otherwise,
    cut_out,
    in_another_unit,
    in_place_of,
    limit_changed,
    misspelt,
    swapped_digits,
)
from .facts import HARD, Fact, Reading, is_spelled_in, number_keys, plain_text, read
from .lazy_patterns import VALUE, marked, regex
from .normalise_values import SHARE_OF, share_keys
from .only_gaps import bounds_number, comes_back
from .other_events import happened_then, is_day_beside, is_moment, is_of_other_event
from .restated_values import (
    has_value_derived_from,
    is_by_chance,
    may_be_said_otherwise,
    may_be_worked_out,
)
from .sent_context import Sent, has_to_come
from .text_values import Value, unit_text, values_of
from .words import (
    NO_LABELS,
    asides,
    clauses,
    is_claimed,
    is_condition,
    is_deadline,
    is_known_anyway,
    is_of_birth,
    is_rough,
    only_questions,
    only_states,
    refers_to_others,
    remains,
    sets_limit,
)


class Part(NamedTuple):
    """The words of a sentence, and its facts that were carried, lost, or are in doubt."""

    words: list[Fact]
    kept: list[Fact]
    lost: list[Fact]
    doubtful: list[Fact]
    unsaid: list[Fact]
    """The doubtful facts that nothing in the prompt can stand for."""

    @property
    def words_only(self) -> bool:
        """Whether no number or name matters."""
        return not (self.kept or self.lost or self.doubtful)


class _Sentence(NamedTuple):
    text: str
    clauses: list[tuple[str, Reading]]
    values: list[Value]
    carried: list[Fact]
    """Its words, and the numbers and names that were carried."""


def part_of(text: str, sent: Sent) -> Part:
    """Return which facts of a sentence were carried, and which were lost."""
    reading = read(text)
    spared = _spared(text, sent)
    # Mail addresses are left out: "tell legal@example.org" is usually something the caller itself
    # does with the answer.
    hard = [
        f for f in reading.facts if has_to_come(f) and "@" not in f.text and f.keys not in spared
    ]
    words = [fact for fact in reading.facts if fact.kind not in HARD]
    kept = [fact for fact in hard if _is_carried(fact, sent)]
    changed = [f for f in kept if in_another_unit(f, sent.given, sent.values) is not None]
    # 24 m are drawn as 24 cm.
    if changed and any(_SCALE.search(each) for each in (sent.prompt, sent.request.text)):
        return Part(words, [f for f in kept if f not in changed], [], changed, [])
    # "Convert 50 EUR and buy 3 chairs" can go to two agents, one of which gets the 3.
    gone = [f for f in hard if f not in kept and not sent.elsewhere.holds(f)]
    if changed:
        return Part(words, [f for f in kept if f not in changed], changed, [], [])
    if not gone:
        return Part(words, kept, [], [], [])
    parts = [(clause, read(clause)) for clause in clauses(text)]
    sentence = _Sentence(text, parts, list(values_of(text)), words + kept)
    fates = [(fact, _fate(fact, sentence, sent)) for fact in gone]
    lost = [fact for fact, fate in fates if fate == "lost"]
    unsaid = [fact for fact, fate in fates if fate == "unsaid"]
    return Part(words, kept, lost, [fact for fact in gone if fact not in lost], unsaid)


# "1:100", "scale": lengths may be those of a drawing. "1 to 3" is a range.
_SCALE = regex(
    r"\b1\s?(?::|to|zu|à|a)\s?\d{2,6}\b|\bscales?\b|\bmaßstab\b|\béchelle\b|\bescala\b", re.I
)


def _spared(sentence: str, sent: Sent) -> set[frozenset[str]]:
    """Return the keys of numbers that the work does not need, or that are passed on as a share."""
    aside = read(*asides(sentence)).facts
    spared = {fact.keys for fact in aside if fact.kind == "number"}
    # "3 out of 4" can be passed on as 75 %.
    for share in SHARE_OF.finditer(sentence):
        if int(share[2]) and share_keys(int(share[1]) / int(share[2])) & sent.given.keys:
            spared |= {number_keys(share[1]), number_keys(share[2])}
    return spared


def _is_carried(fact: Fact, sent: Sent) -> bool:
    if sent.given.holds(fact) and not is_by_chance(fact, sent):
        return True
    return fact.kind != "number" and is_spelled_in(fact.text, sent.prompt)


def _fate(fact: Fact, sentence: _Sentence, sent: Sent) -> Literal["lost", "not needed", "unsaid"]:
    """Return whether a fact that is not in the prompt is lost, not needed, or in doubt."""
    if is_day_beside(fact, sent.new, sent.request.text):
        return "not needed"
    if _is_replaced(fact, sentence, sent):
        return "lost"
    if has_value_derived_from(fact, sent) or _is_for_caller(fact, sentence.text, sent):
        return "not needed"
    if _counts_other(fact, sent):
        return "lost"
    retold = sent.retold and sent.alone
    of_other = is_of_other_event(fact, sentence.text)
    if not of_other and in_place_of(fact, sentence.values, sent.new, retold=retold) is not None:
        return "lost"
    number = fact.text
    if is_rough(number, sentence.text) or is_known_anyway(number, sentence.text):
        return "not needed"
    if remains(number, sentence.text):
        return "not needed"
    return "lost" if _is_missing(fact, sentence, sent) else "unsaid"


def _is_replaced(fact: Fact, sentence: _Sentence, sent: Sent) -> bool:
    """Return whether a fact has another value, a gap or a question in its place."""
    if misspelt(fact, sentence.values, sent.new) is not None:
        return True
    every = list(values_of(sent.request.text))
    if sent.alone and copied_except(fact, sentence.values, sent.new) is not None:
        return True
    if sent.alone and swapped_digits(fact, every, sent.new) is not None:
        return True
    result = sent.dispatch.result
    if result is not None and asks_for(fact, sentence.text, plain_text(result)):
        return True
    # Only names: "run the smoke tests" can be enough for "run the 3 smoke tests".
    if fact.kind != "number" and cut_out(fact, sentence.text, sent.prompt):
        return True
    return sent.retold and sent.alone and limit_changed(fact, every, sent.new) is not None


def misspelt_in(text: str, sent: Sent) -> list[Fact]:
    """Return facts that the prompt has with two digits swapped, or copies with a changed value."""
    asked = list(values_of(text))
    gone = [f for f in read(text).facts if f.kind in HARD and not sent.given.holds(f)]
    wrong = [f for f in gone if misspelt(f, asked, sent.new) is not None]
    if sent.alone:
        wrong += [f for f in gone if f not in wrong and copied_except(f, asked, sent.new)]
    return wrong


def _is_for_caller(fact: Fact, sentence: str, sent: Sent) -> bool:
    """Return whether a number may tell only the caller something, and not the receiver.

    The birth of a person, a condition that the caller can decide on from an earlier result ("if
    it's above 20 degrees"), or a value that the receiver itself reports ("Finance shows 81.2k").
    """
    if is_of_birth(fact.text, sentence):
        return True
    if is_condition(fact.text, sentence):
        known = sent.known_before.without(sent.asked)
        return any(each.kind == "number" for each in known)
    if sent.dispatch.result is None or not is_claimed(fact.text, sentence):
        return False
    claimed = [value for value in values_of(sentence) if value.fact.keys == fact.keys]
    if not claimed:
        return False
    reported = values_of(plain_text(sent.dispatch.result))
    return any(_is_report_of(claim, value) for claim in claimed for value in reported)


# 1,204 and 1,188 visitors count the same.
_NEARLY = 0.2


def _is_report_of(claim: Value, value: Value) -> bool:
    """Return whether a receiver reports what somebody claims, maybe with another value.

    "The courier says that order 55120 weighs 14 kg" claims no order.
    """
    if claim.kind != "number":
        return value.kind == claim.kind
    return any(abs(a - b) <= _NEARLY * max(a, b) for a in claim.numbers for b in value.numbers)


def _counts_other(fact: Fact, sent: Sent) -> bool:
    """Return whether a prompt has another number of the things that a fact counts."""
    if not sent.undivided or only_questions(sent.prompt):
        return False
    other = counted_otherwise(fact, list(values_of(sent.request.text)), sent.new)
    return other is not None and not may_be_worked_out(fact, sent.request.text, sent)


def _is_missing(fact: Fact, sentence: _Sentence, sent: Sent) -> bool:
    """Return whether a prompt that leaves a fact out needs it."""
    if refers_to_others(sent.prompt) or _describes_named(fact, sentence, sent):
        return False
    if _counts_listed(fact, sentence.text, sent):
        return False
    if may_be_said_otherwise(fact, sent) or may_be_worked_out(fact, sentence.text, sent):
        return False
    named = (sent.retold or sent.is_short) and _is_named(fact, sentence.text, sent)
    # "Was the account charged twice?" for account DE-4411 can't be answered without the number.
    if named and fact.kind == "identifier":
        return True
    if sent.only_asks:
        return False
    # 150 EUR keeps a limit of 160, and 19:00 UTC is 20:00 in Paris.
    kinds = {v.kind for v in sentence.values if v.fact.keys == fact.keys}
    if any(value.kind in kinds for value in sent.new):
        return False
    # A sentence can be about something else as a whole, but a prompt that mentions "the order" has
    # to state which order: "Is a refund due for the order?" for order 88.
    if named:
        return True
    # "12-15 Sept." are three nights from the 12th on.
    if re.fullmatch(r"\d{1,3}-\d{1,3}", fact.text):
        return False
    # "It had 52 fps" and "in 2023 the price was 980" are about the past, and "below 45 fps" has the
    # number of fps that counts.
    if fact.kind == "number" and (
        _was_so(fact, sentence.text) or _has_its_unit(fact, sentence, sent)
    ):
        return False
    if happened_then(fact, sentence.text) or is_of_other_event(fact, sentence.text):
        return False
    # "Two more positions" can be "further positions", and a planner can keep a deadline to itself.
    if fact.text.isalpha() or is_deadline(fact.text, sentence.text):
        return False
    # "I still have the card ending 2203": only a request or a limit shows that a number is needed.
    own = _own_clause(fact, sentence)
    clause = sentence.text if own is None else own[0]
    if (only_states(clause) and not bounds_number(clause)) or comes_back(clause, sent):
        return False
    return sent.retold and _is_needed(fact, sentence, sent)


# "Payment pay_81k (EUR 249.00, 17 April)": the amount and the day tell which payment it is.
_DESCRIBED = regex(r"(?P<name>[^\s()]{2,60}) ?\((?P<description>[^()]{1,200})\)")


def _describes_named(fact: Fact, sentence: _Sentence, sent: Sent) -> bool:
    """Return whether an amount or a day only describes what a prompt has the number of.

    Not a limit, as in "tour T-12 (at most 300 EUR)", nor an amount by which something is changed,
    as in "refund order 88 partly (40 EUR)", which does not stand beside the number.
    """
    money = any(v.kind.isupper() for v in sentence.values if v.fact.keys == fact.keys)
    if not money and not is_moment(fact):
        return False
    return any(
        fact.text in each["description"]
        and not sets_limit(each["description"])
        and any(f.kind == "identifier" and sent.given.holds(f) for f in read(each["name"]).facts)
        for each in _DESCRIBED.finditer(sentence.text)
    )


# "5 services in this monorepo (orders, billing, ...)", "the 4 sites: Kiel, Ulm, Mainz and Gera"
_LISTED = regex(rf"{VALUE}[^().:;\n]{{1,60}}(?:\(|:)(?P<items>[^().:;\n]{{3,300}})")
# "Ada, Per and Ida" are three items.
_BETWEEN_ITEMS = regex(r",|/|&|\b(?:and|or|und|oder|sowie|et|ou|y|o|e|en|och|i)\b", re.IGNORECASE)


def _counts_listed(fact: Fact, sentence: str, sent: Sent) -> bool:
    """Return whether a number only counts things that the prompt names: "3 plans (A, B and C)"."""
    match = _LISTED.search(marked(fact.text, sentence)) if fact.text.isdecimal() else None
    if match is None:
        return False
    items = [each.strip().casefold() for each in _BETWEEN_ITEMS.split(match["items"])]
    items = [each for each in items if each]
    prompt = sent.prompt.casefold()
    return len(items) == int(fact.text) and all(each in prompt for each in items)


_WAS = regex(
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


def _has_its_unit(fact: Fact, sentence: _Sentence, sent: Sent) -> bool:
    """Return whether a prompt carries another number of the request with the unit of this one."""
    units = {unit_text(v) for v in sentence.values if v.fact.keys == fact.keys} - {""}
    sent_values = values_of(sent.prompt)
    return any(unit_text(value) in units and sent.asked.holds(value.fact) for value in sent_values)


def _own_clause(fact: Fact, sentence: _Sentence) -> tuple[str, Reading] | None:
    """Return the first clause of a sentence that has a fact, with its reading."""
    return next(
        (one for one in sentence.clauses if any(f.keys == fact.keys for f in one[1].facts)), None
    )


def _is_needed(fact: Fact, sentence: _Sentence, sent: Sent) -> bool:
    """Return whether a fact belongs to what the prompt is about.

    The fact's own clause decides: from "Order 1,500 screws and 6 hinges", a prompt can pass on only
    the screws. Carried numbers count as shared words, or a short prompt ("Was A-17 paid twice?")
    would share nothing with "Did I pay A-17 twice?".
    """
    own = _own_clause(fact, sentence)
    if own is None or len(sentence.clauses) == 1:
        return sent.concerns(sentence.carried)
    clause, part = own
    first = sentence.clauses[0][0]
    # "2 rooms for Ms Ito" and "1 room for Mr Berg" can be work for different agents.
    names = (f for f in part.facts if f.kind == "word" and f.text[:1].isupper())
    inside = (name for name in names if not first.lstrip().startswith(name.text))
    if any(not sent.given.holds(name) for name in inside):
        return False
    others = (f for f in part.facts if f.keys != fact.keys)
    beside = [f for f in others if f.kind not in HARD or sent.given.holds(f)]
    # An order number at the end belongs to no word: "..., PO 5519."
    if not beside and not sets_limit(clause) and clause is not first:
        return False
    return sent.concerns(beside or sentence.carried)


# Words before a noun that is known: "the order", "my booking", "for order".
_DEFINITE = (
    "the|this|that|my|our|your|his|her|their|its|for|of|to|about|in|at|der|die|das|den|dem|des|für|"
    "von|zur?|zum|le|la|les|du|el|los|las|del"
)


# The word that a number belongs to: `order` in "order 88". Words of one or two letters, such as
# "at", name nothing.
_WORD_BEFORE = regex(rf"(?<![^\W\d_])([^\W\d_]{{3,}})\s+{VALUE}")


def _is_named(fact: Fact, sentence: str, sent: Sent) -> bool:
    """Return whether the prompt mentions what the fact belongs to: ``order`` for ``order 88``.

    A prompt that names another one refers to that one.
    """
    match = _WORD_BEFORE.search(marked(fact.text, sentence))
    if match is None or match[1].casefold() in NO_LABELS:
        return False
    # "Metformin 850 mg" is an amount. "The metformin" is complete without it.
    if fact.unit_keys:
        return False
    # "The seats" are more than the seats 14A and 14C.
    if re.search(r"[^s]s$", match[1]):
        return False
    if match[1].lower() not in sent.prompt.lower():
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
