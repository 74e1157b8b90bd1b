"""Does a prompt leave out one thing of a request, and nothing else?

A caller that splits the work leaves out more than one thing. "Hotel in Lisbon, 12 to 16 May, 2
adults, quiet" leaves out only "at most 180 EUR a night".
"""

from __future__ import annotations

import re

from .facts import HARD, Fact, is_spelled_in, number_keys, read
from .lazy_patterns import regex
from .lost_limits import only_reads
from .normalise_values import in_digits
from .restated_values import may_be_said_otherwise
from .sent_context import Sent, all_clauses, has_to_come
from .words import (
    asides,
    clause_with,
    clauses,
    excuses,
    is_callers,
    is_courtesy,
    is_deadline,
    only_questions,
    only_states,
)

# Words that limit the number after them: "at most 180 EUR", "above 2 %", "not before 3 June".
_BOUND = regex(
    r"""\b(?:at\ (?:most|least)|no\ (?:more|less|fewer)\ than|(?:more|less|fewer)\ than
        |max(?:imum|imal)?|under|below|above|over|up\ to|exceed\w*|budget|limit|cap|ceiling|within
        |not\ before|after|only|höchstens|mindestens|maximal|weniger\ als|mehr\ als|unter|über
        |au\ (?:plus|moins)|como\ máximo|al\ menos|menos\ de|más\ de)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Past events and personal details can be left out: "She bought it for 59.90", "my number is +43 660
# 5550142".
_STORY = regex(
    r"\b(?:was|were|had|been|bought|paid|came|went|got|sent|told|said|ago|yesterday|since|my|me"
    r"|mine|(?:I|we|he|she|they|it|you|who|which) (?:\w+ed|stood|sat|took|lost|spent|ate|drove|ran"
    r"|flew|slept|met|saw|left|found|gave|made|kept|began|chose|broke|forgot|knew|held|fell)|war|waren"
    r"|hatte|wurde|standen|saßen|mein\w*|était|mon|fue|mi"
    # "Wir haben dort 2 Stunden gewartet", "last time".
    r"|hab(?:e|en)\b[^.!?\n]{1,60}\b(?:ge(?!samt)\w{2,12}(?:t|en)|verloren|verbracht|bekommen)"
    r"|last (?:time|week|month|year|spring|summer|autumn|fall|winter))\b",
    re.IGNORECASE,
)


def bounds_number(text: str) -> bool:
    """Return whether a text has words that limit a number after them."""
    return _BOUND.search(text) is not None


def tells_story(text: str) -> bool:
    """Return whether a text may only tell of past events, or personal details."""
    return _STORY.search(text) is not None


# "On 9 October", "from 12 May", "at 14:15": when something should take place.
_WHEN = (
    r"\b(?:on|from|starting|begin\w*|between|to|at|for|am|vom|ab|um|zum|le|du|el|del|à)\s(?:the )?"
)
# An excuse with such a word is still a demand: "I can't eat nuts, so it must be free of
# them".
_DEMANDS = regex(r"\b(?:must|darf|dürfen|doit|debe)\b")
# How many other numbers and names of a request a prompt has to carry before the missing one counts
# as a gap, and not as another agent's part.
_KEPT_BESIDE = 3


def is_only_gap(missing: list[tuple[Fact, str]], sent: Sent) -> bool:
    """Return whether only one bound, name or date of the request is missing from the prompt.

    ``missing`` are all facts without a counterpart, each with its sentence. A prompt with any new
    value may have one of them in another form.
    """
    if not sent.is_whole or sent.only_asks:
        return False
    hard = [fact for fact in sent.asked.facts if has_to_come(fact)]
    kept = sum(sent.given.holds(fact) for fact in hard)
    if kept < min(_KEPT_BESIDE, len(hard) - 1) or not kept:
        return False
    if all(may_be_said_otherwise(fact, sent) for fact, _ in missing) or _adds_values(sent):
        return False
    if len(missing) == 2:
        return _is_period(*missing)
    if len(missing) != 1 or not _is_required(*missing[0]):
        return False
    fact, sentence = missing[0]
    # With fewer carried values only a bound is sure to belong to the work: "must not cost more than
    # 80 EUR", not "the next meeting is at 9:00".
    if kept < _KEPT_BESIDE and not _is_bounded(fact, sentence):
        return False
    # "Call him on 0161 496 0372" is a separate task, which the prompt does not mention.
    beside = [each for each in read(sentence).facts if each.keys != fact.keys]
    return fact.kind != "identifier" or any(sent.given.holds(each) for each in beside)


def _adds_values(sent: Sent) -> bool:
    """Return whether a prompt has numbers or names of its own."""
    # "A toddler" can be passed on as "1 toddler".
    own = (f for f in sent.in_prompt.facts if f.kind in HARD and f.keys != number_keys("1"))
    return any(not sent.asked.holds(fact) for fact in own)


def _is_period(first: tuple[Fact, str], last: tuple[Fact, str]) -> bool:
    """Return whether two facts are the ends of one range: "from 12 to 16 May"."""
    (start, sentence), (end, other) = first, last
    if sentence != other or not (end.is_day or (_is_year(start) and _is_year(end))):
        return False
    ends = rf"{re.escape(start.text)}\s?(?:to|until|-|–|bis|au|al|a)\s?{re.escape(end.text)}"
    return re.search(ends, sentence) is not None


def _is_required(fact: Fact, sentence: str) -> bool:
    """Return whether a number or name is needed: a name, a bound, or when something takes place."""
    if not any(c.isdigit() for c in fact.text) or re.fullmatch(r"\d{1,3}-\d{1,3}", fact.text):
        return False
    clause = clause_with(fact.text, sentence)
    if is_deadline(fact.text, sentence) or tells_story(clause):
        return False
    # "It must not cost more than 40 EUR" demands, "we can't take the one at 7" excuses.
    if excuses(clause) and not _DEMANDS.search(clause):
        return False
    if bounds_number(clause):
        return True
    if only_states(clause):
        return False
    if fact.is_day or any(key.startswith("t:") for key in fact.keys):
        when = rf"{_WHEN}{re.escape(fact.text)}(?!\w)"
        return re.search(when, clause, re.IGNORECASE) is not None
    return fact.kind == "identifier"


def _is_bounded(fact: Fact, sentence: str) -> bool:
    """Return whether a sentence limits an amount: 80 EUR in "not more than 80 EUR"."""
    before, _, _ = clause_with(fact.text, sentence).partition(fact.text)
    return bool(fact.unit_keys) and bounds_number(before)


def _is_year(fact: Fact) -> bool:
    return re.fullmatch(r"(?:19|20)\d\d", fact.text) is not None


# How many numbers and names of a request a prompt has to carry, and which share of them, so that
# the only missing clause is no part of the work for another agent.
_KEPT_ALL = 3
_KEPT_SHARE = 0.6
# The share of a clause that a prompt has to carry. With less, that clause is missing as well.
_COVERED = 0.25
# An age, a price that was paid, a name or a number to call describe a person, not the work.
_OF_PERSON = regex(
    r"""\b(?:old|aged?|years?|jahre?n?|ans|años|born|since|phone|tel\w*|call|ring|mobile|reach\w*
        |address|room\ number|floor|budget|price|paid|cost\w*|invoice|bill\w*|reference|ref
        |ticket|thanks|reason|because|as\ (?:we|i|they|he|she))\b""",
    re.VERBOSE | re.IGNORECASE,
)


def only_clause_missing(missing: list[tuple[Fact, str]], sent: Sent) -> list[tuple[Fact, str]]:
    """Return the numbers of the only clause of a request that a prompt leaves out.

    "Lunch for 65 on 21 March at 12:30, 9 vegan, up to 38 EUR a head" leaves out "4 are coeliac". A
    caller that splits the work leaves out more than one thing.
    """
    if not missing or not sent.is_whole or not sent.in_one_language:
        return []
    if only_questions(sent.prompt) or sent.dispatch.context or sent.is_json:
        return []
    hard = [fact for fact in sent.asked.facts if has_to_come(fact)]
    kept = sum(sent.given.holds(fact) for fact in hard)
    if kept < _KEPT_ALL or kept < _KEPT_SHARE * len(hard) or _adds_values(sent):
        return []
    first, sentence = missing[0]
    if any(other != sentence for _, other in missing):
        return []
    parts = clauses(in_digits(sentence))
    # "Four of us join from Lisbon." A sentence of its own can be a remark, or an offer.
    if len(parts) == 1:
        return []
    clause = next((c for c in parts if first.text in c), sentence)
    reading = read(clause)
    if not all(reading.holds(fact) for fact, _ in missing) or not _is_of_work(clause):
        return []
    # A day by which all has to be done is for the caller to keep.
    if any(fact.is_day and is_deadline(fact.text, sentence) for fact, _ in missing):
        return []
    words = [fact for fact in reading.facts if fact.kind == "word"]
    if not words or any(sent.comes_up(fact) for fact in words):
        return []
    if comes_back(clause, sent):
        return []
    others = [each for each in all_clauses(in_digits(sent.request.text)) if each != clause]
    return missing if all(_is_covered(each, sent) for each in others) else []


def comes_back(clause: str, sent: Sent) -> bool:
    """Return whether a user comes back to what a prompt leaves out, and so may have settled it.

    "2 projectors and 1 screen. The screen we can borrow."
    """
    left_out = [f for f in read(clause).facts if f.kind == "word" and not sent.comes_up(f)]
    if not left_out:
        return False
    others = (each for each in all_clauses(sent.request.text) if in_digits(each) != clause != each)
    return any(read(other).holds(word) for other in others for word in left_out)


def _is_of_work(clause: str) -> bool:
    """Return whether a clause is about the work, and not about the caller or a person."""
    if is_callers(clause) or excuses(clause) or is_courtesy(clause) or asides(clause):
        return False
    return not tells_story(clause) and _OF_PERSON.search(clause) is None


def _is_covered(clause: str, sent: Sent) -> bool:
    """Return whether a prompt carries something of a clause."""
    facts = [fact for fact in read(clause).facts if fact.kind in HARD or fact.kind == "word"]
    covered = sum(sent.given.holds(fact) for fact in facts)
    return covered >= _COVERED * len(facts) or is_courtesy(clause)


# Things that a name or a number identifies.
_IDENTIFIED = (
    r"invoice|order|booking|reservation|ticket|account|customer|patient|case|claim|parcel|shipment"
    r"|container|file|branch|policy|contract|report|page|document|project|repository|server|host"
    r"|function|module|build|release|rechnung|bestellung|buchung|konto|kund\w+|datei|vertrag"
    r"|facture|commande|compte|fichier|contrat|factura|pedido|reserva|cuenta|archivo|contrato"
)
_REFERRED = regex(
    rf"\b(?:the|this|that|die|der|das|den|la|le|el)\s(?:{_IDENTIFIED})\b(?!['’]s)(?!\s(?:of|for|from)\b)"
    r"|^\W*(?:please\s)?[^\W\d_]+\s(?:that\s|whether\s|if\s)?it\b",
    re.IGNORECASE,
)
# The share of the words of a request that a prompt for the same task has.
_SAME_TASK = 0.8


def only_name_referred_to(sent: Sent) -> list[tuple[Fact, str]]:
    """Return the only name of a request, if a prompt for the same task says "the invoice" or "it".

    A receiver that starts anew can't know which one: "Was the invoice paid twice?" for "Did I pay
    A-17 twice?".
    """
    if not sent.undivided or sent.dispatch.context or not sent.is_short or sent.is_json:
        return []
    # "Arrange it for issue GH-42" has something that "it" stands for.
    if _REFERRED.search(sent.prompt) is None or _REFERRED.search(sent.request.text) is not None:
        return []
    # "[ticket SHOP-13]" says where a request comes from.
    marked = re.findall(r"\[[^\]\n]{0,80}\]", sent.request.text)
    facts = [f for f in sent.asked.facts if not any(f.text in each for each in marked)]
    names = [f for f in facts if f.kind in ("identifier", "path") and "@" not in f.text]
    if len(names) != 1 or any(
        f.kind in HARD and not sent.asked.holds(f) for f in sent.in_prompt.facts
    ):
        return []
    (name,) = names
    if sent.comes_up(name) or is_spelled_in(name.text, sent.prompt):
        return []
    if may_be_said_otherwise(name, sent):
        return []
    words = [fact for fact in facts if fact.kind == "word"]
    kept = sum(sent.given.holds(word) for word in words)
    if not words or kept < _SAME_TASK * len(words):
        return []
    return [(name, sent.request.text)]


# A clause that limits or completes the work: "don't touch payments-db", "with tail lift".
_COMPLETES = regex(
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
# The share that a prompt has to carry of each other clause.
_COVERED_BESIDE = 0.7
# How many words of its own the prompt may have, and how many numbers and names the request needs.
_OWN_WORD = 1
_SAID_BESIDE = 2


def only_words_missing(sent: Sent) -> list[str]:
    """Return the only clause without a counterpart in a prompt that carries all the others.

    The prompt may have a word of its own, which is too few to say the clause in other words.
    """
    if not sent.is_whole or sent.is_json or not sent.in_one_language:
        return []
    if only_questions(sent.prompt) or sent.dispatch.context:
        return []
    if sum(fact.kind in HARD for fact in sent.asked.facts) < _SAID_BESIDE:
        return []
    added = [fact for fact in sent.in_prompt.facts if not sent.asked.holds(fact)]
    own = [f for f in added if f.kind == "word" and f.text.casefold() not in _GIVES_TASK]
    if len(own) > _OWN_WORD or any(fact.kind in HARD for fact in added):
        return []
    missing = []
    for clause in all_clauses(in_digits(sent.request.text)):
        facts = [f for f in read(clause).facts if f.kind in HARD or f.kind == "word"]
        covered = sum(sent.comes_up(fact) for fact in facts)
        if facts and not covered:
            missing.append(clause)
        elif covered < _COVERED_BESIDE * len(facts):
            return []
    if len(missing) != 1 or _COMPLETES.match(missing[0]) is None:
        return []
    (clause,) = missing
    if is_callers(clause) or is_courtesy(clause) or excuses(clause) or tells_story(clause):
        return []
    return [] if only_reads(clause, sent) else missing
