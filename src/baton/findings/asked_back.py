"""Does a receiver ask for something that the request states, and that it did not get?

"Could you tell me the booking number?" after a request for booking TT-60214: what it asks for, it
needed. Only a question of which all words belong to the request proves that: "When does her plane
land?" is not answered by the time of the ceremony.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .empty_answers import asks_for_choice
from .facts import HARD, Fact, Reading, read
from .lazy_patterns import VALUE, marked, regex
from .text_values import Value, unit_text, values_of
from .words import COMMON, NO_LABELS, clause_with, sentences

# A receiver that asks back says little else.
_LONGEST = 1000
# Each question is compared with each value of a request.
_LONGEST_REQUEST = 4000
# "What does it weigh?" and "Could you tell me the number?" ask for a value. "Do you want to book
# it?" offers something.
_OPEN = regex(
    r"""\b(?:what|which|when|where|who|whom|how|welche\w*|wann|wo|wie|was|quel(?:le)?s?|quand|où
        |combien|qué|cuál(?:es)?|cuándo|cuánt\w+|dónde|qual\w*|quando|quant\w+|dove|che)\b
        |\b(?:could|can|would|will)\ you\ (?:please\ |kindly\ )?
            (?:tell|give|send|share|provide|confirm|specify)\b
        |\b(?:können|könnten)\ sie\ mir|\bkannst\ du\ mir|\bpouvez-vous\ me|\bpeux-tu\ me
        |\b(?:puedes|podría\w*)\ (?:dar|deci|envi)\w*|\bpuoi\ (?:dar|dir)\w*""",
    re.VERBOSE | re.IGNORECASE,
)
# Offers, which ask for no fact: "Shall I book it?", not "When shall it be?".
_OFFERS = regex(
    r"""\b(?:shall|should)\ (?:I|we)\b|\bdo\ you\ (?:want|wish|need)\b
        |\bwould\ you\ (?:like|want|prefer)
        |\bwant\ me\ to\b|\b(?:soll(?:en)?|darf)\ (?:ich|wir)\b|\b(?:möchte\w*|willst)\b
        |\bveux-tu\b|\bvoulez-vous\b|\b(?:quieres|quiere|desea)\b|\b(?:vuoi|vuole)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Daily from 9 to 17. When will you come?" has answered, and asks for the next step. A receiver
# that can't start says nothing else but that it would.
_WOULD = regex(
    r"""\W{0,4}(?:sure|ok|okay|of\ course|certainly|gladly|happy|yes|thanks?|hi|hello|sorry
        |unfortunately|claro|gern\w*|bien\ sûr|volontiers|certo|d['’]accord|alles\ klar|natürlich
        |I(?:['’](?:d|ll|m)|\ (?:can|could|will|would|am))|ich\ (?:kann|könnte)|je\ (?:peux|vais)
        |puedo|posso|to\ \w+)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# The parts of a question with several: "For when, and for how many?"
_PARTS = regex(r"[,;:]\s|\s(?:and|und|et|y|e|or|oder|ou|o)\s")
# Statements that ask: "I still need the date", "please send the address". "They need the date" is a
# report.
_NEEDS = regex(
    r"""\b(?:I|we)\ (?:still\ )?(?:need|require|lack|have\ no|don['’]t\ (?:have|know))\b
        |\b(?:need|have)\ to\ know\b|\bmissing\b|\bplease\ (?:provide|send|tell|give|share|specify)
        |\bmir\ fehl\w+|\b(?:brauche|benötige)\b|\bbitte\ (?:nenn|gib|teil)\w*
        |\bil\ me\ (?:manque|faut)
        |\bj['’]ai\ besoin|\b(?:me\ falta|necesito)\b|\bmi\ (?:serve|servono|manca)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Words of questions that say nothing about what is asked for.
_GENERIC = frozenset(
    """
    what which when where who whom whose how many much does will would could should shall
    please tell give provide send share know need needs needed like want have there their they
    your that this these those with from until about also then start starting starts begin
    number code come comes exactly information details missing still prepare plan planning
    answer help sure happy claro welche welcher welches welchen wann wieviel viele hoch lautet
    noch angaben bitte fehlen brauche quel quelle quels quelles quand combien est-ce sera aura
    lieu besoin bien sûr elle cuál cuáles cuándo cuánto cuánta cuántos cuántas qué quién será
    necesito falta dime puedes quale quali quando quanto quanti quante serve devo posso
    """.split()  # noqa: SIM905
)
# What is asked for, by kind of value.
_KINDS = (
    (
        "date",
        r"\b(?:date|day|when|datum|tag|wann|jour|quand|fecha|día|cuándo|data|giorno|quando)s?\b",
    ),
    ("time", r"\b(?:time|uhrzeit|uhr|heure|hora|ora)s?\b"),
    ("mass", r"\b(?:weigh\w*|heavy|gewicht|wiegt|pèse|poids|pesa|peso)\b"),
    ("money", r"\b(?:budget|price|cost|spend|preis|kosten|prix|presupuesto|precio|coste)\b"),
)
_KIND_OF = [(kind, regex(pattern, re.IGNORECASE)) for kind, pattern in _KINDS]
_KIND_WORDS = regex("|".join(pattern for _, pattern in _KINDS), re.IGNORECASE)
# Kinds of values that "how much" and "what budget" ask for.
_MONEY = frozenset({"EUR", "USD", "GBP", "CHF", "NOK", "SEK", "DKK", "JPY"})
# Shorter words begin alike by chance, such as `car` and `cabin`. From six letters on, "How many
# teeth?" would not ask for `30 teeth`.
_SHORTEST_STEM = 4


def asked_back(request: str, reply: str, given: Reading) -> Iterator[tuple[Fact, str]]:
    """Yield facts of a request that a receiver asks for, each with its sentence.

    ``given``: all that the receiver got.
    """
    if len(request) > _LONGEST_REQUEST or len(reply) > _LONGEST or not _only_asks(reply):
        return
    asked = read(request)
    gone = [
        (value, sentence)
        for sentence in sentences(request)
        for value in values_of(sentence)
        if not given.holds(value.fact)
    ]
    if not gone:
        return
    for question in _questions(reply):
        if not _is_of(question, asked, given):
            continue
        for value, sentence in gone:
            if _is_asked(value, question, sentence):
                yield value.fact, sentence


def _only_asks(reply: str) -> bool:
    """Return whether a reply asks for something, and reports nothing."""
    others = [s for s in sentences(reply) if not (s.endswith("?") or _NEEDS.search(s))]
    asks = "?" in reply or _NEEDS.search(reply) is not None
    return asks and all(_WOULD.match(other) and not re.search(r"\d", other) for other in others)


def _questions(reply: str) -> Iterator[str]:
    for sentence in sentences(reply):
        if offers(sentence):
            continue
        asks = sentence.endswith("?") and _OPEN.search(sentence) is not None
        if asks or _NEEDS.search(sentence):
            yield from (part for part in _PARTS.split(sentence) if part.strip())


def offers(sentence: str) -> bool:
    """Return whether a sentence offers something, or asks for a choice."""
    return asks_for_choice(sentence) or _OFFERS.search(sentence) is not None


def _words(text: str) -> list[str]:
    words = (word.casefold() for word in re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", text))
    # Shorter words are hardly ever what is asked for: "the id for it".
    return [word for word in words if len(word) > 3 and word not in COMMON | _GENERIC]


def _is_of(question: str, asked: Reading, given: Reading) -> bool:
    """Return whether each word of a question is of the request, or says what is asked for."""
    for word in _words(_KIND_WORDS.sub(" ", question)):
        facts = read(word).facts
        known = any(asked.holds(fact) or given.holds(fact) for fact in facts)
        if facts and not known:
            return False
    return True


def _is_asked(value: Value, question: str, sentence: str) -> bool:
    """Return whether a question asks for a value: by its label, by what it counts, by its kind."""
    words = _words(question)
    before, _, _ = clause_with(value.fact.text, sentence).partition(value.fact.text)
    label = re.search(r"([^\W\d_]{3,})(?:\s(?:no|nr|number|code|is|ist))?\W{0,3}$", before)
    named = label is not None and label[1].casefold() not in COMMON | _GENERIC
    if named and label is not None and _is_form_of(label[1].casefold(), words):
        return True
    noun = unit_text(value)
    if (
        value.kind not in ("date", "time")
        and len(noun) >= _SHORTEST_STEM
        and _is_form_of(noun, words)
    ):
        return re.search(r"\b(?:many|viele|combien|cuánt\w+|quant\w+)\b", question) is not None
    kind = "money" if value.kind in _MONEY else value.kind
    return any(kind == each and pattern.search(question) for each, pattern in _KIND_OF) and (
        value.fact.kind in HARD
    )


def _is_form_of(label: str, words: list[str]) -> bool:
    """Return whether one of the words is the label, maybe in the plural: `key`, `keys`."""
    return any(
        word == label or (min(len(word), len(label)) >= _SHORTEST_STEM and _alike(word, label))
        for word in words
    )


def _alike(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return longer.startswith(shorter[:-1]) and len(longer) - len(shorter) <= _LONGEST_ENDING


# The most letters that a plural adds: `number` and `numbers`, `glass` and `glasses`. With more,
# `port` would ask for a `portion`.
_LONGEST_ENDING = 2


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


# The thing that a number identifies: `order` in "order no. 88".
_LABEL = regex(
    r"([^\W\d_]{4,40})(?:[ ](?:no\.?|number|nr\.?|code|id|is|ist)){0,2}[ :#]{1,2}"
    rf"{VALUE}(?!\w)",
    re.IGNORECASE,
)


def asks_for(fact: Fact, sentence: str, reply: str) -> bool:
    """Return whether a reply asks for the thing that a fact of a sentence identifies: order 88.

    What a receiver asks for, it needed and did not get.
    """
    if fact.kind not in ("number", "identifier"):
        return False
    match = _LABEL.search(marked(fact.text, sentence))
    if match is None or match[1].casefold() in NO_LABELS or match[1].lower() not in reply.lower():
        return False
    asks = _ASKS_FOR.format(label=re.escape(match[1]))
    # "I have two lists. Which list should I use?" asks for a choice of its own.
    text = " ".join(part for part in sentences(reply[:_LONGEST]) if not offers(part))
    return re.search(asks, text, re.IGNORECASE) is not None
