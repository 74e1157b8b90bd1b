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
from .values import Value, unit_text, values_of
from .words import COMMON, clauses, sentences

# A receiver that asks back says little else.
_LONGEST = 1000
_PARTS = re.compile(r"[,;:]\s|\s(?:and|und|et|y|e|or|oder|ou|o)\s")
_NEEDS = re.compile(
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
_KIND_OF = [(kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS]
_KIND_WORDS = re.compile("|".join(pattern for _, pattern in _KINDS), re.IGNORECASE)
_MONEY = frozenset({"EUR", "USD", "GBP", "CHF", "NOK", "SEK", "DKK", "JPY"})
_STEM = 4


def asked_back(request: str, reply: str, given: Reading) -> Iterator[tuple[Fact, str]]:
    """Yield facts of a request that a receiver asks for, each with its sentence.

    ``given``: all that the receiver got.
    """
    if len(reply) > _LONGEST or not ("?" in reply or _NEEDS.search(reply)):
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


def _questions(reply: str) -> Iterator[str]:
    for sentence in sentences(reply):
        if (sentence.endswith("?") or _NEEDS.search(sentence)) and not asks_for_choice(sentence):
            yield from (part for part in _PARTS.split(sentence) if part.strip())


def _words(text: str) -> list[str]:
    found = (word.casefold() for word in re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", text))
    return [word for word in found if len(word) > 3 and word not in COMMON | _GENERIC]


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
    words = {word[:_STEM] for word in _words(question)}
    clause = next((c for c in clauses(sentence) if value.fact.text in c), sentence)
    before, _, _ = clause.partition(value.fact.text)
    label = re.search(r"([^\W\d_]{3,})(?:\s(?:no|nr|number|code|is|ist))?\W{0,3}$", before)
    named = label is not None and label[1].casefold() not in COMMON | _GENERIC
    if named and label is not None and label[1].casefold()[:_STEM] in words:
        return True
    noun = unit_text(value)
    if value.kind not in ("date", "time") and len(noun) >= _STEM and noun[:_STEM] in words:
        return re.search(r"\b(?:many|viele|combien|cuánt\w+|quant\w+)\b", question) is not None
    kind = "money" if value.kind in _MONEY else value.kind
    return any(kind == each and pattern.search(question) for each, pattern in _KIND_OF) and (
        value.fact.kind in HARD
    )
