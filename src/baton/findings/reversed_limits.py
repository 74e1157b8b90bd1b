"""Does a prompt ask for what the request forbids?

"Use the GPU" for "no GPU", "submit it to review" for "do not submit to review", "refund to the
credit card" for "to the gift card, not to the credit card". A prompt that leaves a limit out may
express it in other words. A prompt that asks for the opposite does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from .facts import HARD, Reading, read
from .lazy_patterns import regex
from .words import COMMON, clauses, only_states, sentences, wants

# The maximum number of limits that are checked in a sentence.
_MOST = 20
_NEGATED = r"(?:do\ not|don['’]t|never|must\ not|mustn['’]t|should\ not|shouldn['’]t|bitte\ nicht)"
# "Send it on 3 June" respects "don't send it before 3 June".
_CONDITION = regex(
    r"""\b(?:before|until|till|unless|if|when|while|without|after|yet|more|less|longer|later|earlier
        |again|too|only|just|except|other|than|first|anyone|anybody|any|all|both|every|still|now|at
        |vor|bis|wenn|ohne|mehr|länger|später|erst|noch|nur|avant|sans|si|plus|seul\w*|antes|sin|más
        |hasta|because|since)\b|\d""",
    re.VERBOSE | re.IGNORECASE,
)
# "Do not restart the server" forbids `restart` of `the server`. "I do not know" is excluded by
# `_NO_DEEDS`.
_FORBIDDEN_DEED = regex(
    rf"(?<!\w){_NEGATED}\s(?P<deed>[a-z]{{3,}})\b(?P<object>[^.;:!?()\n]{{0,80}})",
    re.VERBOSE | re.IGNORECASE,
)
# "No onions", "without sugar", "avoid the A8". "There is no time" forbids nothing.
_FORBIDDEN_THING = regex(
    rf"""(?:(?:^|[,.;:!?(*•-]\s{{0,3}}|\b(?:and|but|please|with|und|et|y|o|or)\ )
            (?:no|kein(?:e|en|em|er)?)
        |\b(?:without|ohne|sans|sin)|\b(?:exclude|excluding|avoid|skip|leave\ out)
        |{_NEGATED}\ (?:use|include|add|mention|allow))
        \ (?P<object>[^,.;:!?()\n]{{2,60}})""",
    re.VERBOSE | re.IGNORECASE,
)
# Before a forbidden thing, it asks for it: "with onions", "including leasing offers".
_WITH = (
    r"(?:with|using|use|includ\w+|add|plus|mit|inklusive|inkl\.?|avec|con|incluyendo|mention|and)"
)
# Behind a forbidden thing, it allows it: "onions are fine".
_ALLOWED = (
    r"(?:included|allowed|welcome|fine|ok|okay|permitted|possible|erlaubt|inbegriffen|willkommen"
    r"|inclus\w*|autoris\w+|permitid\w+|incluid\w+)"
)
# Any word that may express a limit in another way. A prompt with such a word in its clause may
# forbid as much as the request does.
_MAY_FORBID = regex(
    r"""(?<!\w)(?:
        no|not|none|never|nothing|nowhere|nobody|without|w/o|except\w*|exclu\w+|avoid\w*|skip\w*
        |ignor\w+|leav\w+|left|omit\w*|drop\w*|forb\w+|prohibit\w*|ban|banned|refus\w+|reject\w*
        |off|hands|frozen|untouched|unchanged|stay\w*|remain\w*|keep\w*|kept|alone|allerg\w*
        |intoleran\w*|free|instead|rather|but|only|just|other|outside|apart|away|far|beyond
        |unless|minus|less|non|\w+n['’]t|cannot|nicht|kein\w*|ohne|außer\w*|nur|statt|sans|sauf
        |pas|ni|hors|éviter?|jamais|seulement|sin|nunca|salvo|excepto|solo|sólo|evita\w*
        |remov\w+|replac\w+|delet\w+|stop\w*|prevent\w*|block\w*|disab\w+|zero|false|0
        |alternativ\w*|neither|nor|rid|strip\w*|clean\w*|out|rule\w*|policy|policies|check\w*
        |whether|if|why|how|which|what|bad\w*|problem\w*|trouble|react\w*|rash|damage\w*|worr\w+
        |hat\w+|dislike\w*|broken|former\w*|previous\w*|old|earlier|already|before|until|was
        |were|did|had|so\ far|anstatt|stattdessen|weg|raus|aus
        )(?!\w)|\w-free\b|\bnon-?\w|[≠!]=|<>|✗|❌|无|不|禁|勿|别|非|没""",
    re.VERBOSE | re.IGNORECASE,
)
# An order begins a sentence or follows "and" or "then": "Restart the server", "and restart". "After
# you restart" is none.
_DEED_STARTS = r"(?:^|[,;:.!?\n]\s{0,3}(?:and|then|please|also)?\s?|\b(?:and|then|please|also)\s)"
_OBJECT_IS_IT = regex(r"^\W*(?:it|them|this|that|these|anything)?\W*$", re.IGNORECASE)


def reversed_limits(sentence: str, prompt: str) -> Iterator[str]:
    """Yield the parts of a request's sentence that forbid what a prompt asks for."""
    for match in islice(_FORBIDDEN_DEED.finditer(sentence), _MOST):
        if _asks_for_deed(match["deed"], match["object"], prompt):
            yield match[0].strip()
    for match in islice(_FORBIDDEN_THING.finditer(sentence), _MOST):
        if _asks_for_thing(match["object"], prompt):
            yield match[0].strip(" ,.;:")
    for match in islice(_KEEPS.finditer(sentence), _MOST):
        if _undoes(match["object"] or match["subject"], prompt):
            yield match[0].strip(" ,.;:")
    for match in islice(_AVOIDED.finditer(sentence), _MOST):
        if _goes_there(match["name"] or match["left"], prompt):
            yield match[0].strip(" ,.;:")
    for match in islice(_CONTRAST.finditer(sentence), _MOST):
        if _takes_other(match, sentence, prompt):
            yield match[0].strip(" ,.;:")


def _asks_for_deed(deed: str, thing: str, prompt: str) -> bool:
    """Return whether a prompt orders a forbidden action, with the same object or with "it"."""
    if _CONDITION.search(thing) or deed.casefold() in _NO_DEEDS:
        return False
    words = _meaning(thing)
    start = re.compile(rf"{_DEED_STARTS}{re.escape(deed)}\b", re.IGNORECASE)
    is_asked_for = False
    for sentence, heading in _with_headings(prompt):
        for match in islice(start.finditer(sentence), _MOST):
            rest = re.split(r"[,;:]", sentence[match.end() :])[0]
            if _MAY_FORBID.search(sentence) or _MAY_FORBID.search(heading):
                return False
            said = read(rest)
            if words is None:
                is_asked_for = is_asked_for or (bool(_OBJECT_IS_IT.match(thing)) and _is_it(rest))
            else:
                is_asked_for = is_asked_for or all(said.holds(fact) for fact in words.facts)
    return is_asked_for


# "Don't forget the invoice" forbids nothing, and "don't use X" is about the thing X.
_NO_DEEDS = frozenset(
    """
    worry forget hesitate know think mind want need have care let get make take do go use be include
    add mention allow
    """.split()  # noqa: SIM905
)


# "Keep his API tokens", "the plan must stay active": a prompt that revokes or cancels these.
_KEEPS = regex(
    r"""\b(?:keep|retain|preserve|behalte|conserve[rz]?|garde[rz]?|conserva)\s
            (?P<object>(?:(?:the|his|her|their|my|our|all|die|den|das|les?|la|los|las)\s){0,2}
            [\w-]+(?:\s[\w-]+){0,2}?)(?=[.,;!?)\n]|$|\s(?:and|but|until|as|in|on|for)\b)
        |\b(?:the|his|her|their|my|our)\s(?P<subject>[\w-]+(?:\s[\w-]+)?)\s
            (?:must|should|has\ to|have\ to)\ (?:stay|remain)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Keep his API tokens" is reversed by "revoke his API tokens"; "list his API tokens" is not.
_UNDOES = (
    r"(?:revok|delet|remov|cancel|discard|disabl|eras|wip|terminat|destroy|deactivat|invalidat"
    r"|lösch|widerruf|kündig|supprim|révoqu|annul|elimin|revoc|cancel)\w*"
)


def _undoes(thing: str, prompt: str) -> bool:
    """Return whether a prompt orders to remove what a request keeps."""
    words = _meaning(thing)
    if words is None:
        return False
    order = re.compile(rf"{_DEED_STARTS}{_UNDOES}\s", re.IGNORECASE)
    for sentence, heading in _with_headings(prompt):
        for match in islice(order.finditer(sentence), _MOST):
            if _MAY_FORBID_ELSE.search(sentence[: match.start()]) or _MAY_FORBID.search(heading):
                return False
            rest = " ".join(re.split(r"[,;:.]", sentence[match.end() :])[0].split()[:_CLOSE])
            # "Delete the old API tokens", "remove the plan from the list".
            extra = _meaning(rest)
            if extra is not None and all(extra.holds(fact) for fact in words.facts):
                return all(words.holds(fact) for fact in extra.facts)
    return False


# As many words after "cancel" belong to what is cancelled.
_CLOSE = 5
# Before an order, it may take the order back: "do not delete", "only if you delete".
_MAY_FORBID_ELSE = regex(
    r"\b(?:not|never|nicht|nie|pas|no|nobody|without|n['’]t|if|when|unless|only)\b", re.IGNORECASE
)
# "Nothing in Bairro Alto", "pls not Port Grau", "leave us-east-1 as it is".
_NAME = r"[A-Z][\w'’-]+(?:\s(?:de\s|del\s|da\s)?[A-Z][\w'’-]+){0,3}"
# "Not via Zurich", "avoid Zurich", "leave payments-db as it is": the name must not be used. "Not in
# a hurry" names nothing.
_AVOIDED = regex(
    rf"""(?:^|[\s,;(])(?i:nothing\ (?:in|at|near|via)|not\ (?:in|at|via)|avoid
                |(?:please|pls|but|and|,)\ not|nicht\ (?:in|über|nach)|pas\ (?:à|par|dans)
                |sin\ (?:escala|pasar)\ (?:en|por)|no\ (?:en|por))
            \ (?P<name>{_NAME})
        |(?i:leave|keep)\ (?P<left>[\w-]{{0,40}}[-_\d][\w-]{{0,40}}|{_NAME})
            \ (?i:as\ (?:it|they)?\s?(?:is|are)|alone|untouched|unchanged)""",
    re.VERBOSE,
)
# Where a forbidden place or name is asked for: "in Zurich", "via Zurich", not "the Zurich office".
_THERE = r"\b(?i:in|at|to|via|through|from|on|and|über|nach|à|par|en|por|und|et|y)"


def _goes_there(name: str, prompt: str) -> bool:
    """Return whether a prompt sends somebody to a place, or to a system, that must be left out."""
    goes_there = False
    at = re.compile(rf"{_THERE}\s{re.escape(name)}(?!\w)")
    fine = re.compile(rf"(?<!\w){re.escape(name)}\s(?i:would be|is|are)\s(?i:nice|fine|ok|good)")
    for sentence, heading in _with_headings(prompt):
        if name not in sentence:
            continue
        if _MAY_FORBID.search(sentence.replace(name, "")) or _MAY_FORBID.search(heading):
            return False
        if sentence.rstrip().endswith("?") or not (at.search(sentence) or fine.search(sentence)):
            return False
        goes_there = True
    return goes_there


def _is_it(rest: str) -> bool:
    return re.match(r"\s(?:it|them|this)\b", rest, re.IGNORECASE) is not None


def _asks_for_thing(thing: str, prompt: str) -> bool:
    """Return whether a prompt asks for a forbidden thing, and mentions it nowhere else."""
    words = _meaning(re.split(r"\b(?:and|or|und|oder|et|ou|y|o|because|as|in|on|for)\b", thing)[0])
    if words is None or _CONDITION.search(thing):
        return False
    is_asked_for = False
    first, last = words.facts[0].text, words.facts[-1].text
    # The first five letters, as a prompt may have another form: `onion` for `onions`.
    allowed = rf"{re.escape(last[:5])}\w*\s(?:is\s|are\s|sind\s|ist\s|son\s)?{_ALLOWED}\b"
    taken = rf"(?<!\w){_WITH}\s(?:\w+\s){{0,3}}{re.escape(first[:5])}"
    for sentence, heading in _with_headings(prompt):
        for clause in clauses(sentence):
            said = read(clause)
            if not any(said.holds(fact) for fact in words.facts):
                continue
            if not all(said.holds(fact) for fact in words.facts) or _MAY_FORBID.search(clause):
                return False
            if _MAY_FORBID.search(heading):
                return False
            near = f"{_before(sentence, clause)}{clause}"
            # "Leave out mushrooms and coconut": the word that forbids is in another clause.
            is_asked_for = re.search(allowed, clause, re.IGNORECASE) is not None or (
                _MAY_FORBID.search(sentence) is None
                and re.search(taken, near, re.IGNORECASE) is not None
            )
            if not is_asked_for:
                return False
    return is_asked_for


# "Forbidden:", "## Out of scope", "**Avoid**": the lines that follow belong to it.
_HEADING = regex(r"^\W{0,6}[^\n]{0,80}:\W{0,4}$|^\s{0,3}(?:#|\*\*)")


def _with_headings(prompt: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a prompt, each with all headings before it."""
    headings = ""
    for sentence in sentences(prompt):
        yield sentence, headings
        if _HEADING.match(sentence) is not None:
            headings += f"{sentence}\n"


def _before(sentence: str, clause: str) -> str:
    """Return the word in front of a clause, such as "and" or "with", with a space; or nothing."""
    at = sentence.find(clause)
    word = re.search(r"(\w+)\s+$", sentence[max(0, at - 12) : at])
    return f"{word[1]} " if word is not None else ""


# "Y, not X" and "Y instead of X": the request takes Y.
_CONTRAST = regex(
    r"""(?:,\s|\s\()?\b(?:(?:and\ |but\ )?not|nicht|pas|instead\ of|rather\ than|statt|anstatt
        |en\ vez\ del?|en\ lugar\ del?|au\ lieu\ d[eu])\s(?P<object>[^,.;:!?()\n]{2,40})""",
    re.VERBOSE | re.IGNORECASE,
)
# "200, not more" and "on Friday, not before" set a limit, and forbid no thing.
_MORE = regex(r"^(?:more|less|later|before|earlier|mehr|vor|plus|avant|más|antes|to\ be)\b", re.I)


def _takes_other(match: re.Match[str], sentence: str, prompt: str) -> bool:
    """Return whether a prompt has only the X of "Y, not X"."""
    joined = match[0].casefold()
    # Without a comma, "not" belongs to a verb: "must not leave".
    plain_not = re.match(r"(?:,\s|\s\()(?:and |but )?(?:not|nicht|pas)\b", joined) is None
    if plain_not and re.match(r"\W*(?:and |but )?(?:not|nicht|pas)\b", joined):
        return False
    thing = match["object"]
    if _MORE.match(thing):
        return False
    before = re.split(r"[.;:!?()\n]", sentence[: match.start()])[-1]
    if plain_not and states_fact(before):
        return False
    wrong = list(read(thing).facts)
    # "Not 4712 like last time": the number decides.
    numbers = [fact for fact in wrong if fact.kind in HARD]
    wrong = numbers or wrong
    right = read(" ".join(before.split()[-_WORDS_BEFORE:])).facts
    wrong = [fact for fact in wrong if not any(fact.keys & each.keys for each in right)]
    own = [fact for fact in right if not read(thing).holds(fact)]
    if numbers:
        own = [fact for fact in own if fact.kind in HARD]
    if not wrong or not own:
        return False
    said = read(prompt)
    if any(said.holds(fact) for fact in own) or not all(said.holds(fact) for fact in wrong):
        return False
    for part, heading in _with_headings(prompt):
        if any(read(part).holds(fact) for fact in wrong):
            if _MAY_FORBID.search(part) or _MAY_FORBID.search(heading):
                return False
    return True


# Words before ", not X" that are its Y. More would take in what belongs to something else: "bought
# it on 14 November for 59.90 and wants a replacement, not a refund", where a prompt for the refund
# keeps the date.
_WORDS_BEFORE = 4
# "It's -62 instead of -80", "the shop delivered 9 instead of 12": how it is, and no order.
_IS_SO = regex(
    r"""[^\W\d_]['’](?:s|re)\b
    |\w\ (?:is|are|was|were|has|had|shows?|reads?|says?|gives?|got|came|sent|went|runs?|stands?
        |ist|sind|war|waren|hat|hatten?|zeigt|steht|läuft|liegt|kam|bekam
        |est|sont|était|indique|affiche|marque|ont|avait
        |está|están|era|marca|muestra|indica|llegó|llegaron|ha|han|había)\b
    # Not "book the shared room".
    |(?<!\bthe)(?<!\ba)(?<!\ban)\ [^\W\d_]{2,}ed\b""",
    re.VERBOSE | re.IGNORECASE,
)


def states_fact(text: str) -> bool:
    """Return whether the start of a sentence says how something is, and orders nothing."""
    last = clauses(text)[-1:]
    if not last or "please" in text.casefold():
        return False
    return only_states(last[0]) or (_IS_SO.search(last[0]) is not None and not wants(last[0]))


def _meaning(text: str) -> Reading | None:
    """Return the meaningful words of a short text, or ``None`` if it has none."""
    reading = read(text)
    telling = [f for f in reading.facts if f.text.casefold() not in COMMON]
    return reading if telling and len(telling) <= _MOST_WORDS else None


# Meaningful words of a thing that is forbidden or kept: "no leasing offers" has two. With more it
# is rather a sentence, of which another one has all words only by copying it.
_MOST_WORDS = 4
