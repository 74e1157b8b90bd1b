"""Does a prompt leave out, or turn round, what a sentence of a request limits in words?

"Never change product names", "nothing in Bairro Alto": such a limit has no number to look for, so
it takes more evidence. Each of these checks needs a prompt that hands on the request, and in which
nothing may express the limit in other words.
"""

from __future__ import annotations

import re
from itertools import islice

from .facts import HARD, Fact, read
from .lazy_patterns import regex
from .normalise_values import in_digits
from .reversed_limits import reversed_limits
from .sent_context import Sent, all_clauses
from .words import forbids, is_callers, only_questions, sentences, sets_limit, sums_up


def limit_lost(sentence: str, words: list[Fact], sent: Sent) -> bool:
    """Return whether a limit is lost: the prompt repeats the request, but limits nothing.

    ``words`` are those of the sentence. None of them may have been carried, or be in anything else
    that the caller did.
    """
    if not sent.is_whole or not forbids(sentence) or is_callers(sentence) or sent.is_json:
        return False
    if only_reads(sentence, sent):
        return False
    # "Eilt nicht" is a statement with a negation, and no order.
    if not only_limits(sentence):
        return False
    # "The 6 badges. Without Mr. Haas. So 5.": the number that counts carries the limit.
    if any(sums_up(each) for each in sentences(in_digits(sent.request.text))):
        return False
    if not words or any(sent.comes_up(word) for word in words):
        return False
    rest = [each for each in sentences(sent.request.text) if each != sentence]
    others = [fact for each in rest for fact in read(each).facts]
    return not sets_limit(sent.prompt) and sent.concerns(others)


# Work that only reads: "Why is the import slow? Compare the two plans", for a user who adds "don't
# restart the worker". Its receiver may have no tool to restart anything. Not "compare the plans and
# rebuild the statistics".
_READS = regex(
    r"""^\W*(?:(?:please|then|and|bitte|und)\ )*
        (?:check|compare|list|show|explain|look|search|read|count|describe|summari[sz]e|tell
        |prüfe?|vergleiche?|zeige?|erkläre?|compare[rz]?|vérifie[rz]?|explique[rz]?|comprueba|compara
        |explica)\b
        (?!.*\ (?:and|und|et|y)\ [^\W\d_])""",
    re.VERBOSE | re.IGNORECASE,
)
# Limits on changes: "don't touch the config". "No onions" is one on things.
_CHANGES = regex(
    r"\b(?:touch|change|restart|modify|delete|write|edit|update|deploy|remove|rename|move|drop|reboot"
    r"|änder\w*|lösch\w*|starte\w*|modifie\w*|supprime\w*|redémarre\w*|toques|cambies|borres|reinicies)\b",
    re.IGNORECASE,
)


def only_reads(limit: str, sent: Sent) -> bool:
    """Return whether a limit forbids changes, and the prompt only asks to read something."""
    if _CHANGES.search(limit) is None:
        return False
    parts = sentences(sent.prompt)
    return all(part.endswith("?") or _READS.match(part) is not None for part in parts)


# "No sticker needed, we have one" leaves something out of the work, and forbids nothing.
_NOT_NEEDED = regex(
    r"""\b(?:no|not|nothing|keine?\w*|nicht|pas|sin)\b[^.,;!?\n]{0,60}?\b(?:needed|necessary
        |required|nötig|notwendig|erforderlich|nécessaires?|necesari[oa]s?)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# The start of a sentence that does nothing but limit: "Never write to sales_daily_gold".
_ONLY_LIMITS = regex(
    r"""^\W*(?:(?:please|and|but|bitte)\ )?(?:never|do\ not|don['’]t|no\b|nothing\b|nobody\b|none\b
        |not\b|only\b|without\b|disregard\b|skip\b|exclude\b|avoid\b|ignore\b|leave\ out\b
        |leave\ (?:\w+\ ){1,4}out\b|use\ (?:only|at\ (?:most|least)|no)\b|at\ (?:most|least)\b
        |keine?\w*\b|nie\b|nur\b|ne\ |sans\b|aucun|no\ |nunca|sin\b|solo\b|sólo\b)""",
    re.VERBOSE | re.IGNORECASE,
)


def only_limits(text: str) -> bool:
    """Return whether a text starts like an order that does nothing but limit the work."""
    return _ONLY_LIMITS.match(text) is not None and _NOT_NEEDED.match(text.lstrip()) is None


# What is excluded: "nothing in Bairro Alto", "don't touch payments-db", "no walnuts anywhere". Not
# "don't worry" and "no more than", and not "a replacement, not a refund", as mentioning the
# replacement is enough there.
_EXCLUDES = regex(
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
_MAY_EXCLUDE = regex(
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


def excludes(text: str) -> bool:
    """Return whether a text excludes something: "nothing in Bairro Alto", "no walnuts"."""
    return _EXCLUDES.search(text) is not None


def names_caller(text: str) -> bool:
    """Return whether a text names those who ask: "don't send us the invoice"."""
    return re.search(r"\b(?:me|us|mich|uns|moi|nous)\b", text, re.IGNORECASE) is not None


def exclusion_lost(sentence: str, sent: Sent) -> bool:
    """Return whether the prompt does not mention an exclusion, and excludes nothing else.

    This only applies to a prompt in the same language that repeats most of the request and is not
    data: `{"pets": false}` also excludes.
    """
    if not sent.is_whole or sent.is_json or not sent.in_one_language:
        return False
    if sent.dispatch.context or only_questions(sent.prompt):
        return False
    lost = [
        exclusion["object"]
        for exclusion in islice(_EXCLUDES.finditer(sentence), _EXCLUSIONS)
        if not is_callers(_clause_of(sentence, exclusion.start("object"), exclusion.end()))
        and _is_left_out(exclusion["object"], sent)
        and _NOT_NEEDED.search(exclusion[0]) is None
    ]
    if (
        not lost
        or names_caller(sentence)
        or only_reads(sentence, sent)
        or _excludes_other(lost, sent)
    ):
        return False
    own = [f for f in sent.in_prompt.facts if f.kind == "word" and not sent.asked.holds(f)]
    return any(_names_in(each) for each in lost) or len(own) <= _OWN_WORDS


def _excludes_other(lost: list[str], sent: Sent) -> bool:
    """Return whether a prompt may exclude the lost things in other words.

    Each excluding word in it has to be next to text from elsewhere in the request: "no more than
    180 EUR" for another sentence.
    """
    clauses = all_clauses(sent.request.text)
    rest = read(*(clause for clause in clauses if not any(each in clause for each in lost)))
    for clause in all_clauses(sent.prompt):
        facts = read(clause).facts
        if _MAY_EXCLUDE.search(clause) and (not facts or any(not rest.holds(f) for f in facts)):
            return True
    return False


def _is_left_out(excluded: str, sent: Sent) -> bool:
    """Return whether no word that only the exclusion has, nor any similar word, comes up."""
    facts = read(excluded).facts
    if not facts or any(fact.kind in HARD for fact in facts):
        return False
    at = sent.request.text.find(excluded)
    around = read(sent.request.text[:at] + sent.request.text[at + len(excluded) :])
    words = [fact for fact in facts if not around.holds(fact)]
    text = sent.prompt.casefold()
    return bool(words) and not any(
        sent.comes_up(word) or word.text.casefold()[:_STEM] in text for word in words
    )


# The letters that similar words share: "nuts" and "nutty".
_STEM = 4


def _names_in(text: str) -> list[str]:
    """Return the names in an exclusion: `Bairro Alto`, `payments-db`."""
    return re.findall(r"\b[A-Z][\w]+|\b[a-z]\w*[-_]\w+", text)


def _clause_of(sentence: str, start: int, end: int) -> str:
    """Return the clause that contains a part of a sentence, up to the end of that part."""
    before = sentence[:start]
    at = max(before.rfind(mark) for mark in (", ", "; ", ": ", "(")) + 1
    return sentence[at:end].strip()


# The share of the words of a request that a prompt needs to reverse one of its limits. With fewer,
# it is a part of the work, such as "book a table with a view", and can need another limit.
REVERSED = 0.35


def is_reversed(sentence: str, sent: Sent) -> bool:
    """Return whether the prompt asks for what a sentence forbids."""
    if not sent.undivided or is_callers(sentence) or sent.is_json:
        return False
    if sent.dispatch.context or only_questions(sent.prompt):
        return False
    words = [fact for fact in sent.asked.facts if fact.kind not in HARD]
    shared = sum(sent.given.holds(fact) for fact in words)
    return shared >= REVERSED * len(words) and any(reversed_limits(sentence, sent.prompt))


# --- A limit that the other prompts have

# The fewest other prompts that have it. One may have a limit of its own.
_FEWEST_OTHERS = 2
# The share of its words that a prompt has in common with others for the same work. A fan-out
# repeats all but a name: "Request a quote from Brandt. Bremen to Verona, 24 t, no subcontractors."
_SAME_PROMPT = 0.7
_SAME_PART = 0.6
# A longer prompt is a document.
_LONGEST_PROMPT = 4000
_PROMPT_ENDS = regex(r"(?<=[.!?;])\s+|\n+|,\s+")
# "No subcontracting" for "no subcontractors".
_LONG_STEM = 6
# A limit that begins like this needs no word of forbidding: "own vehicles only", "keep the URLs".
_KEEPS = regex(r"^\W{0,9}(?:keep|leave)\b|\bonly\W{0,9}\Z", re.IGNORECASE)


def limits_of_others(sent: Sent) -> list[str]:
    """Return limits of the request that all other prompts for the same work have word for word.

    An agent that asks three hauliers for a quote tells two of them "no subcontractors", and the
    third nothing of that kind.
    """
    if sent.is_json or sent.dispatch.context or len(sent.prompt) > _LONGEST_PROMPT:
        return []
    mine = _words(sent.prompt)
    others = [
        (prompt, words)
        for prompt in sent.prompts_beside
        if len(prompt) <= _LONGEST_PROMPT and (words := _words(prompt))
        if len(mine & words) >= _SAME_PROMPT * max(len(mine), 1)
    ]
    if len(others) < _FEWEST_OTHERS:
        return []
    common = [part for part in _parts(others[0][0]) if all(part in each for each, _ in others)]
    theirs = [_words(part) for each, _ in others for part in _parts(each)]
    own = [part for part in _parts(sent.prompt) if not _is_alike(_words(part), theirs)]
    # It may say the same in other words.
    if any(_MAY_EXCLUDE.search(part) is not None for part in own):
        return []
    return [
        part
        for part in common
        if part not in sent.prompt and _limits(part) and _is_of_request(part, sent, others)
    ]


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in _PROMPT_ENDS.split(text) if part and part.strip()]


def _is_alike(words: frozenset[str], others: list[frozenset[str]]) -> bool:
    """Return whether words are mostly those of another part: "work only in apps/api", in apps/web.

    A limit in a part of its own may be the lost one in other words.
    """
    return any(len(words & other) >= _SAME_PART * max(len(words), len(other)) for other in others)


def _limits(part: str) -> bool:
    return only_limits(part) or excludes(part) or _KEEPS.search(part) is not None


def _is_of_request(part: str, sent: Sent, others: list[tuple[str, frozenset[str]]]) -> bool:
    """Return whether a limit comes from the request, and not for some of the receivers only.

    "The web and the API team must not touch the database" is for them and not for the third one.
    """
    request, prompt = sent.request.text.casefold(), sent.prompt.casefold()
    words = [fact.text.casefold()[:_LONG_STEM] for fact in read(part).facts]
    words = [word for word in words if word in request and word not in prompt]
    if not words or any(sent.given.holds(f) for f in read(part).facts if f.kind in HARD):
        return False
    for clause in all_clauses(sent.request.text):
        if not any(word in clause.casefold() for word in words):
            continue
        names = [f for f in read(clause).facts if f.kind in HARD or f.text[:1].isupper()]
        names = [f for f in names if not sent.given.holds(f) and f.text not in part]
        if any(read(each).holds(name) for name in names for each, _ in others):
            return False
    return True
