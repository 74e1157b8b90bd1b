"""Answers that show that an existing result was not used.

Missing words of the result prove little, because a caller can express all of it in other words.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .lazy_patterns import regex
from .words import is_elliptic, is_negative

_FIRST_PERSON = r"(?:I['’]ll|I['’]m(?:\ going\ to)?|I\ (?:will|am(?:\ going\ to)?)|let\ me)"
# "I'll check", "I'm going to look", "let me find out", but not "I checked" or "I'll be there".
_PROMISES = regex(
    rf"""\b{_FIRST_PERSON}(?:\ now|\ just)?\ (?:
        (?:check|look|search|start|run|open|review|query|consult|investigat|analy[sz])(?:e|ing)?\b
        |(?:have|take|having|taking)\ a\ (?:\w+\ )?look\b|find(?:ing)?\ out\b|see\ what\b)""",
    re.VERBOSE | re.IGNORECASE,
)
# "I'm checking the connections. One second please!" after the connections came back. The caller may
# look up the next thing ("I'll check the hotels"), so it has to state that it is waiting.
_WAITING = regex(
    r"""\bfirst\b|\b(?:one|an?)\ (?:moment|second|sec|minute)\b|\bat\ the\ moment\b
        |\bthis\ (?:may|will|might|can)\ take\b|\b(?:come|get|be)\ back\b|\bshortly\b|\bhang\ on\b
        |\b(?:when|once|as\ soon\ as)\ (?:it|they|he|she|I)\b|\bstand\ by\b|\bplease\ wait\b
        |\bright\ (?:now|away)\b|\bin\ the\ meantime\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "I'm forwarding your question to the payroll agent", although that agent had answered it.
_PASSES_ON = regex(
    r"""\b(?:pass|forward|hand|send|sent|giv|relay)\w*\s(?:on\s)?(?:this|it|that|your(?:\s[\w-]+){1,4})\s
        (?:on\s|over\s)?to\s(?:the|our|an?)\s(?:[\w-]+\s){0,2}agent\b
        |\bask(?:ed|ing)?\ (?:the|our)\ (?:[\w-]+\ ){1,2}agent\ (?:about|for|whether|if)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Before I can answer", "to answer that I'd need to look": nothing was looked up. "To answer your
# question: yes" is an answer.
_NEEDS_FIRST = regex(
    r"""\bbefore\ I\ can\ (?:check|answer|say|tell|look|start|help)\b
        |\bto\ (?:answer|check|find\ out)\b[^.?!]*\bI(?:['’]d|\ would)\ (?:have\ to\ |need\ to\ )?
        (?:search|look|check|ask)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Sentences that announce a later answer, or work in progress. An answer with nothing else is an
# announcement. "I placed the order. You'll hear from me" has done something.
_TO_COME = regex(
    r"""\b(?:let\ you\ know|(?:get|come|be)\ back\ to\ you|report\ (?:back|when|once|as\ soon)
            |hear\ (?:back\ )?from\ (?:me|us)|keep\ you\ (?:posted|updated|informed)|update\ you)\b
        |\b(?:I['’]m|am|are|we['’]re)\ (?:still\ )?waiting\ (?:for|on)\b
        |\b(?:[lt]e\ aviso|les\ aviso|en\ cuanto\ (?:tenga|sepa))\b|\bmelde\ mich\b
        |\bje\ (?:vous\ )?reviens\ vers\ vous\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "I've asked the supplier to correct all of them and will let you know" has done something.
_DEED = regex(
    r"\b(?:I|we)(?:['’]ve| have)\b|\b(?:I|we) (?:just |already )?\w+ed\b|\bhabe\b|\bj['’]ai\b"
    r"|\bhe \w+do\b",
    re.IGNORECASE,
)
# The answer reports that an agent is running, although the agent's result exists.
_AT_WORK = regex(
    r"""\b(?:report|list|answer|summary|analysis|overview|figures|question)\b[^.?!]{0,30}
            \b(?:is|are)\ (?:still\ |now\ |currently\ )?being\ (?:prepared|checked|compiled|written
            |analy[sz]ed|worked\ on|looked\ (?:into|at|up))\b
        |\bplease\ (?:be\ patient|bear\ with|stand\ by)\b
        |\btakes?\ (?:a\ few|some|several)\ (?:seconds|minutes|moments)\b
        |\bagent\ (?:is|will\ be)\ (?:now\ |still\ |currently\ )?(?:reading|checking|looking|working
            |searching|analy[sz]ing|reviewing|preparing|processing|handling|on\ it)\b
        |\b(?:asked|handed|passed|forwarded|given|sent|delegated|assigned)\b[^.;]{0,120}
            \b(?:the|our|an?)\ (?:[\w-]+\ ){0,3}agent\b
        |\bI(?:['’]ve|\ have)\ (?:just\ )?(?:started|begun|opened|launched|kicked\ off)
            \ (?:an?|the|my|our)\ (?:\w+\ ){0,2}
            (?:investigation|search|check|review|analysis|look|inquiry|research)\b
        |\b(?:(?:va|vais|vont)\ (?:vous\ )?répondre|transmis\ (?:votre|ta)\ (?:demande|question))\b
        |\b(?:wird\ (?:gerade|derzeit)\ (?:geprüft|erstellt|bearbeitet)
            |(?:anfrage|frage)\ (?:\w+\ ){0,4}weitergeleitet)\b
        |\bhe\ (?:pasado|enviado|remitido)\ (?:su|tu)\ (?:pregunta|consulta|solicitud)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "I haven't received an answer yet", although there is one.
_LACKS_ANSWER = regex(
    r"""\b(?:have\ not|haven['’]t)\ (?:yet\ )?(?:received|heard|got|gotten|had)
            \ (?:an?\ |any\ |the\ )?(?:answer|reply|response|results?|feedback|word|anything)\b
        |\bliegen\ (?:mir|uns)\ (?:leider\ )?noch\ keine?\b
        |\bhabe\ (?:leider\ )?noch\ keine?\ (?:antwort|rückmeldung|ergebnisse)\b
        |\bje\ n['’]ai\ (?:malheureusement\ )?pas\ encore\ (?:reçu\ )?(?:de\ |la\ )?
            (?:réponse|retour|résultats?)\b
        |\b(?:aún|todavía)\ no\ (?:tengo|he\ recibido)\ (?:una\ |la\ )?
            (?:respuesta|resultados?|noticias)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# The whole sentence puts the user off: "Please try again later." "The page says: please wait" is a
# report.
_ASKS_TO_WAIT = regex(
    r"\A\W*please\ (?:ask|try|come\ back|check\ back|call)\ again\b|\A\W*please\ wait\b",
    re.VERBOSE | re.IGNORECASE,
)
# What the receiver asked others may really be without an answer.
_PENDING = regex(
    r"""\b(?:wait\w*|pending|await\w*|no\ (?:answer|reply|response|result)|not\ (?:yet|answered
        |replied|responded)|sent|asked|requested|queued|in\ progress|running|later
        |tomorrow|forwarded|ausstehend|offen|angefragt|gesendet|en\ attente|demandé|envoyé
        |pendiente|enviad[oa]|wartet)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def lacks_answer(answer: str) -> bool:
    """Return whether an answer only says that no answer came back."""
    parts = _parts(answer)
    if not any(_LACKS_ANSWER.search(part) for part in parts):
        return False
    return all(
        _LACKS_ANSWER.search(part)
        or _ASKS_TO_WAIT.match(part)
        or _IS_POLITE.fullmatch(part)
        or (_TO_COME.search(part) and not _DEED.search(part))
        for part in parts
    )


def is_pending(result: str) -> bool:
    """Return whether a result says that something is still to come."""
    return _PENDING.search(result) is not None


# "I don't have access to your monitoring data", after a helper had just returned figures from it.
_DENIES = regex(
    r"""\b(?:I|we)\ (?:currently\ |unfortunately\ |sadly\ )?(?:do\ not|don['’]t|cannot|can['’]t)
            \ (?:currently\ )?(?:have\ (?:any\ )?(?:access|data|information|insight)|access\b
            |see\ your\b|look\ up\b)
        |\b(?:I|we)\ have\ no\ (?:access|data|information)\ (?:to|on|about|for|of)\b
        |\bje\ (?:ne\ dispose|n['’]ai)\ (?:malheureusement\ )?pas\ (?:de\ données|accès
            |d['’]informations?)
        |\bich\ habe\ (?:leider\ )?kein\w*\ (?:zugriff|zugang|daten|informationen)\b
        |\bno\ (?:tengo|dispongo\ de)\ (?:acceso|datos|información)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Which branch should I compare it with?" asks what the work needed before it was done.
_ASKS_BACK = regex(
    r"""(?<!\W)\W*(?:which
        |what(?!\ about|\ if|\ do\ you\ think)|when|where|who|how\ (?!about|does\ that)
        |(?:at|for|in)\ (?:which|what)|d(?:o|id)\ you\ (?:mean|have)|by\ [\w\ ]{1,60}do\ you\ mean
        |and\ (?:is|are|do|by|should)|could\ you\ (?:tell|send|give)|is\ it\ meant)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Questions in other languages than English, at the start of a sentence: "Welche Stadt?",
# "¿Cuándo?", "Quelle taille ?".
_QUESTIONS_ELSEWHERE = regex(
    r"""(?<!\W)\W*(?:s['’]agit-il
        |(?:et\ )?(?:quel(?:le)?s?|lequel|laquelle|où|quand|combien|à\ quelle)
        |(?:und\ )?(?:welche\w*|wann|wo|wie\ viele?|um\ welche\w*|meinen\ sie|meinst\ du)
        |(?:¿\s?)?(?:y\ )?(?:qué|cuál(?:es)?|cuándo|dónde|cuántos?|se\ trata))\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Which of them shall I book?" asks for a choice among what was found.
_CHOICE = regex(
    r"""\b(?:which|what)\ (?:one|of)\b
        |\b(?:would\ you\ (?:like|prefer|rather)|do\ you\ (?:prefer|want\ me))\b
        |\bshall\ I\b|\bshould\ I\ (?:book|take|order|choose|go|reserve|buy|pick)\b
        |\b(?:préférez|préfères|möchten\ sie|möchtest|prefiere|prefieres)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Only "I'm checking the policy now.", at the end of a turn in which the policy was checked.
_ONLY_PROMISES = regex(
    rf"""(?:(?:first|now|okay|ok|sure)\W{{1,3}})?{_FIRST_PERSON}(?:\ now|\ just|\ first)?\ (?:check
        |look
        |search|query|consult|investigat|analy[sz]|review|ask)\w*\b
        [^.!?]*\b(?:now|first|right\ away|at\ the\ moment|currently)\b[^.!?]*[.!?]*""",
    re.VERBOSE | re.IGNORECASE,
)
# General statements: "Lifeguards should always be certified", after a result that names lifeguards.
_IN_GENERAL = regex(
    r"""\b(?:always|usually|generally|typically|commonly|normally|in\ general|as\ a\ rule
        |often|tend\ to|rule\ of\ thumb|regularly|mostly|should\ be|most\ \w+s
        |all\ \w+s\ (?:should|must)|suelen?|souvent|oft|sollten
        |immer|meistens|in\ der\ Regel|grundsätzlich|üblicherweise|toujours|généralement|en\ général
        |siempre|normalmente|por\ lo\ general)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Words of an answer about a specific person or thing: "your order", "both are always open".
_OF_THIS = regex(
    r"""\bdo(?:es)?(?=[,.;])
        |\b(?:less\ so|more\ so|I|we|me|us|my|our|your|yours|this|these|that|those|both|neither
        |either|only|here|today
        |tomorrow|tonight|now|it|they|them|he|she|his|her|their|ich|wir|mein\w*|unser\w*|ihr\w*|dein\w*|dies\w*
        |beide|heute|morgen|je|nous|mon|ma|mes|notre|nos|votre|vos|ce|cette|ces|he|hemos|mi|mis|nuestr\w+
        |su|sus|tu|tus|est[eao]s?|ambos|hoy)\b|['’](?:ll|ve|m|re)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "I'd take the earlier one", "the first of the three", "both of them", "neither is free": such
# words refer to things that were named before, but not by the caller itself.
_SPEAKS_OF_SOME = regex(
    r"""\b(?:the|that|this|an?)\ (?:[\w-]+er|[\w-]+est|(?:more|most|less|least)\ \w+|best|worst
            |first|second|third|fourth|fifth|last|other|same|only|right|left|next|previous)\ (?:
            ones?
            |of\ (?:the|these|those|them))\b
        |\bthe\ (?:latter|former)\b
        |\bthe\ (?:first|second|third|fourth|fifth|other)(?=\ (?:is|are|was|were|has)\b|[,.;!?]|$)
        |\b(?:both|neither|either|none|all|any|one|two|three|four|some|most|half)\ of
            \ (?:them|these|those|the\ (?:two|three|four|five|six))\b
        |\b(?:one|two|three|four|five|six)\ \w+\ ones?\b
        |\bthe\ (?:cheap|dear|expensive|big|small|large|old|new|fast|slow|light|heavy|short
            |long|good|early|late)\ (?:one|model|version|option|offer|variant|device
            |product|flight|room)s?\b
        |\b(?:neither|both)\ (?:is|are|was|were|has|have|work|fit)\b
        |\bd(?:er|ie|as|en)\ (?:erste|zweite|dritte|letzte|andere)[nrs]?(?=\ (?:ist|war|der|von)\b
            |[,.;!?])
        |\bkeine?[rs]?\ (?:der|von)\ (?:beiden|diesen|ihnen)\b|\bbeide\ (?:sind|gehen|passen)\b
        |\bl[ea]s?\ (?:premi(?:er|ère)|second|deuxième|derni(?:er|ère)|autre)s?
            (?=\ (?:est|sont|des|de\ ces)\b|[,.;!?])
        |\b(?:el|la|los|las)\ (?:primer[oa]|segund[oa]|últim[oa]|otr[oa])s?
            (?=\ (?:es|son|de\ (?:los|las|ell[oa]s))\b|[,.;!?])""",
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCE = regex(r"[^.!?]+[.!?]*")


def postpones(answer: str) -> bool:
    """Return whether an answer announces work whose result exists."""
    if _PASSES_ON.search(answer) or _NEEDS_FIRST.search(answer):
        return True
    if _PROMISES.search(answer) is not None and _WAITING.search(answer) is not None:
        return True
    parts = _parts(answer)
    if parts and all(_ONLY_PROMISES.fullmatch(part) for part in parts):
        return True
    return bool(parts) and all(
        _AT_WORK.search(part) or (_TO_COME.search(part) and not _DEED.search(part))
        for part in parts
    )


# "Headphones come in many shapes", "Every vehicle needs an insurance", "A survey takes some weeks".
# Not "A leak has caused it", "Rents are climbing" and "Prices depend on the season": these may sum
# up what was found.
_OF_A_KIND = regex(
    r"""\A\W{0,4}(?:(?:every|each|an?)\ (?:[a-z-]{1,40}\ ){1,4}?
            |[a-z-]{1,40}(?:\ [a-z-]{1,40})?(?<=s)[ ]
            (?:(?:for|of|with|in|at|to)\ (?:[a-z-]{1,40}\ ){1,3}?)?
            (?:are\ (?!\w+ing\b|expected|likely|set\ to|due|forecast))?)
        (?:(?<=are\ )\w+|can|may|must|should|ought|needs?|takes?|comes?|goes|go|requires?|helps?
            |costs?|contains?|consists?|works?|lasts?|tends?|reach(?:es)?|compares?|includes?
            |belongs?|covers?)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Words of a particular case, with which a sentence is not general: "your order was sent", "it is
# cheaper than before". "Nightly imports mostly fail because of full disks" has none.
_SAYS_WHAT_HAPPENS = regex(
    r"\b(?:I|we|me|us|my|our|your?|yours|this|these|that one|those|both|neither|either|here|today"
    r"|tomorrow|tonight|now|yet|still|already|not|no|none|he|she|his|her|was|were|had|did|been"
    r"|only|except|but|however|so|therefore|same|similar|equal|unchanged|alike|better|worse|higher"
    r"|lower|faster|slower|cheaper|dearer|than|before|enough|ready|done|fine|wrong|right|missing)\b"
    r"|['’](?:ll|ve|m|re)\b|\d|[a-z,]\s[A-Z]",
)


def speaks_of_kinds(answer: str) -> bool:
    """Return whether an answer only says how things of a kind are, and nothing about these ones."""
    parts = _parts(answer)
    if not parts or _SAYS_WHAT_HAPPENS.search(answer) is not None or speaks_of_some(answer):
        return False
    first = parts[0]
    # "Tests are green" and "Yields are the same as before" are about these tests and these yields.
    if len(answer.split()) < _WORDS_IN_GENERAL or any(part.endswith("?") for part in parts):
        return False
    return _OF_A_KIND.match(first) is not None


# Shorter sentences are rather about these things than about their kind: "Tests are green" are the
# tests of this run. "Nightly imports mostly fail because of full disks, locked tables or network
# errors" is general.
_WORDS_IN_GENERAL = 12


def speaks_in_general(answer: str) -> bool:
    """Return whether an answer makes only general statements, about no person and no case."""
    if speaks_of_kinds(answer):
        return True
    if _IN_GENERAL.search(answer) is None or _OF_THIS.search(answer):
        return False
    if any(is_elliptic(part) for part in _parts(answer)):
        return False
    # "The heating usually fails" speaks of one, "Heating failures often come from..." of none.
    if _DEFINITE.match(answer):
        return False
    # "Usually everybody is off, but the help desk is open" has a clause about this help desk.
    clauses = _CLAUSE_ENDS.split(answer)
    return not any(_DEFINITE.match(each) and not _IN_GENERAL.search(each) for each in clauses)


# "The tests are green" is about some tests; "Tests are green" may be about tests of any kind.
_DEFINITE = regex(
    r"(?<!\W)\W*(?:the|der|die|das|le|la|les|el|los|las|there|yes|no|not)\b", re.IGNORECASE
)
_CLAUSE_ENDS = regex(
    r"[.!?;]\s|,\s(?:but|and|so|while|whereas|aber|und|doch|mais|et|pero|y|ma|e)\s", re.IGNORECASE
)
# What a request names: "our", "this", "the", a name within the sentence, or a number.
_SPECIFIC = regex(
    r"""\b(?i:my|our|your|this|that|these|those|the|his|her|their|mein\w*|unser\w*|der|die|das|dem|den|des
        |dies\w*|mon|ma|mes|notre|nos|le|la|les|du|ce|cette|mi|mis|nuestr\w+|el|los|las|del)\b
        |(?<=[a-z]\ )[A-Z]\w|\d""",
    re.VERBOSE,
)


def is_of_this(request: str) -> bool:
    """Return whether a request is about a specific person, thing or place."""
    return _SPECIFIC.search(request) is not None


def speaks_of_some(answer: str) -> bool:
    """Return whether an answer picks some of several things without naming them."""
    return _SPEAKS_OF_SOME.search(answer) is not None


def only_asks(answer: str) -> bool:
    """Return whether an answer only asks what is wanted."""
    parts = _parts(answer)
    return bool(parts) and all(
        part.endswith("?")
        and (_ASKS_BACK.match(part) or _QUESTIONS_ELSEWHERE.match(part))
        and not _CHOICE.search(part)
        and (_CLARIFIES.search(part) or not _OF_NEXT_STEP.search(part))
        for part in parts
    )


def asks_for_choice(question: str) -> bool:
    """Return whether a question asks to choose: "Which of them shall I book?"."""
    return _CHOICE.search(question) is not None


def denies_data(answer: str) -> bool:
    """Return whether an answer only states that there is no data or access."""
    parts = _parts(answer)
    return len(parts) == 1 and _DENIES.search(answer) is not None


def _parts(answer: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.findall(answer) if part.strip()]


# The patterns from here on each describe one part of an answer. An answer is empty if each of its
# parts is: it only announces the work, asks for what the work needs, finds nothing, or is polite.
_ADVERB = r"(?:\ (?:now|just|first|quickly|gladly|immediately|currently|jetzt|gerade|gleich|kurz))?"
_SUBJECT = rf"(?:{_FIRST_PERSON}|we['’]ll|we['’]re|we\ (?:will|are)){_ADVERB}"
# A sentence that only says what is being looked up: "Checking the bookings.", "I'll search the
# files". "Check the bookings" tells the user to.
_INQUIRES = regex(
    rf"""(?<!\W)\W*(?:(?:okay|ok|sure|of\ course|certainly|all\ right|alright|thanks|gerne?|klar)
            \W{{1,3}})?
    (?:(?:{_SUBJECT}\ )?(?:check|search|query|consult|investigat|analy[sz]|review|examin|compar
            |gather|collect|fetch|compil|research|retriev|inspect|scann|query|read|comput|calculat
            |estimat)ing\b
        |{_SUBJECT}\ (?:check|search|query|consult|investigate|analy[sz]e|review|examine|compare
            |gather|collect|fetch|compile|research|retrieve|inspect|scan|read|compute|calculate
            |estimate|have\ a\ look\ at)\b
        |(?:{_SUBJECT}\ )?(?:looking\ (?:up|into|for|through)|going\ through|putting\ together
            |finding\ out|pulling\ up)\b
        |{_SUBJECT}\ (?:look\ (?:up|into|for|through)|go\ through|put\ together|find\ out
            |pull\ up)\b
        |(?:{_SUBJECT}\ )?(?:starting|running)\ (?:an?|the|with)\b
        |ich\ (?:prüfe|suche|schaue|sehe|recherchiere|werde){_ADVERB}\b
        |je\ (?:regarde|vérifie|cherche|consulte|recherche)\b|voy\ a\ (?:revisar|comprobar|buscar
            |consultar|mirar|averiguar)\b)""",
    re.VERBOSE | re.IGNORECASE,
)
# A caller that looks for another one, or again, or because of something, may have read the result.
_FOLLOWS_UP = regex(
    r"""\b(?:next|then|also|others?|another|instead|again|once\ more|else|too|after|further|since
        |accordingly|therefore|because|so|now\ that|alternativ\w*|different|why|whether|if|cause\w*
        |replac\w*|fix\w*|correct\w*|repair\w*|noch|ander\w*|erneut|wieder|warum|ob|autres?|aussi
        |encore|pourquoi|si|otr[oa]s?|también|además|por\ qué)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# The answer asks the user: "Please send the invoice". "I'll send the invoice" does not.
_REQUESTS_DETAILS = regex(
    r"""(?<!\W)\W*(?:please\ |could\ you\ (?:please\ )?|can\ you\ (?:please\ )?|bitte\ )?
        (?:tell|send|give|provide|paste|share|describe|specify|clarify|upload|name)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Further starts of questions: "In which city?", "Should I include weekends?". "It is in the city"
# is an answer.
_ASKS_MORE = regex(
    r"""(?<!\W)\W*(?:in\ (?:which|what)|since\ when|from\ (?:when|where)|what\ sort
        |should\ I\ (?:look|include|check|compare|search|consider|restrict|limit)
        |shall\ I\ (?:include|check|compare|restrict|limit)
        |d['’]où|para\ cuánt\w+|wie\ (?:hoch|lang|groß|weit)|may\ I\ have|do\ you\ know
        |before\ I\ (?:can\ )?\w+,\ (?:which|what|how|who|where|when)
        |(?:seit|ab|bis)\ wann|(?:in|von|bei|auf)\ welche\w*|depuis\ quand|desde\ (?:cuándo|dónde)
        |(?:de|en|a)\ qué|(?:de|dans|à)\ quel(?:le)?s?)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Details for the next step, which the result made possible: "What name should the booking be
# under?"
_OF_NEXT_STEP = regex(
    r"""\b(?:book\w*|reserv\w*|order\w*|buy\w*|pay\w*|charg\w*|deliver\w*|ship\w*|invoic\w*|card|iban
        |account|address|phone|e-?mail|names?|sign\w*|proceed\w*|go\ ahead|confirm\w*|other|another
        |instead|else|different|alternativ\w*|later|earlier|next|buch\w*|bestell\w*|zahl\w*|ander\w*
        |autres?|réserv\w*|command\w*|otr[oa]s?|reserva\w*|pedid\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Which order do you mean?" asks for no next step.
_CLARIFIES = regex(
    r"\bd(?:o|id) you mean\b|\bis meant\b|\bmeinen sie\b|\bmeinst du\b|\bgemeint\b|\bs['’]agit-il\b"
    r"|\bse trata\b",
    re.IGNORECASE,
)
# "I could not find any venues" after a list of venues. "I could not find anything suitable", "any
# errors" and "the cause" may be what the result says.
_FINDS_NOTHING = regex(
    r"""(?<!\W)\W*
    (?:(?:sorry|unfortunately|i['’]m\ (?:sorry|afraid)|leider)\W{1,3}(?:but\ )?(?:that\ )?)?
    (?:I\ (?:could\ not|couldn['’]t|cannot|can['’]t|was\ not\ able\ to|wasn['’]t\ able\ to
            |was\ unable\ to|did\ not|didn['’]t)\ find
            \ (?:any|anything|the|that|your|a\ single)\b
        |I\ found\ no\ (?:information|data|details|results)\b
        |there\ (?:is|are|was|were)\ no\ (?:information|data|details|records?|results)\b
        |(?:dazu|darüber|hierzu)\ (?:liegen\ mir|habe\ ich)\ (?:leider\ )?keine?\b
        |je\ n['’]ai\ (?:rien\ trouvé|trouvé\ aucune?)\b
        |no\ (?:he\ encontrado|encontré|pude\ encontrar)\ (?:nada|ning\w+|información)\b)
    [^.!?]{0,80}[.!?]*""",
    re.VERBOSE | re.IGNORECASE,
)
# "No suitable flights" and "no flights under 100 EUR" can be right about a result full of flights;
# "no flights" can't.
_QUALIFIED = regex(
    r"""\b(?:suitable|suit\w*|match\w*|fit\w*|with\w*|under|below|above|over|between|cheap\w*|better
        |best|more|less|less|free|available|open|wrong|problems?|errors?|issues?|bugs?|risks?
        |reasons?|causes?|evidence|differences?|mistakes?|faults?|secrets?|conflicts?|duplicates?
        |violations?|signs?|that\ (?:is|are|was|were|would|has|have)|which|but|except|good
        |[a-z]+able)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Words of a result that a caller may sum up by "I could not find any": fully booked, `"found": 0`.
_HAS_NONE = regex(
    r"""\b(?:booked|taken|sold|unavailable|closed|expired|missing|fail\w*|errors?|empty|zero|0|false
        |declin\w*|reject\w*|belegt|ausgebucht|complet|agotado|ocupad\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# A whole sentence without content: "Anything else I can help you with?", "Happy to help!". "Happy
# to help with your refund of 40 EUR" has some.
_IS_POLITE = regex(
    r"""(?<!\W)\W*(?:(?:is\ there\ )?anything\ else(?:\ (?:that\ )?I\ can\ (?:help|assist|do))?
            (?:\ you)?(?:\ with|\ for\ you)?(?:\ today)?
        |(?:I['’]m\ |I\ am\ |always\ |we['’]re\ )?(?:happy|glad|pleased)\ (?:to\ help|to\ assist
            |to\ be\ of\ (?:help|service)|I\ could\ (?:help|assist))
        |(?:please\ |just\ ){0,3}(?:let\ me\ know
            |feel\ free\ to\ (?:ask|reach\ out|contact\ (?:me|us))
            |don['’]t\ hesitate\ to\ (?:ask|reach\ out|contact\ (?:me|us)))
            (?:\ if\ you\ (?:need|have|want)\ (?:anything|(?:any|more|further|other)
            (?:\ (?:other|more|further))?\ (?:help|questions?|assistance|details|information))
            (?:\ else)?)?
        |(?:thanks|thank\ you)(?:\ (?:very|so)\ much)?(?:\ for\ (?:contacting|your\ patience
            |your\ (?:question|request|message|enquiry|inquiry)|reaching\ out|asking
            |waiting)(?:\ us)?)?
        |you['’]re\ welcome|no\ problem|my\ pleasure|how\ (?:else\ )?(?:can|may)\ I\ (?:help|assist)
            (?:\ you)?(?:\ (?:today|further))?
        |have\ an?\ (?:great|nice|good|lovely|wonderful)\ \w+
        |kann\ ich\ (?:sonst\ )?noch\ etwas\ für\ (?:sie|dich)\ tun|gern(?:e)?\ geschehen
        |puis-je\ vous\ aider\ (?:pour|avec)\ autre\ chose
        |¿?\s?puedo\ ayudarle\ en\ algo\ más)\W*""",
    re.VERBOSE | re.IGNORECASE,
)


def only_polite(answer: str) -> bool:
    """Return whether an answer only has courtesies: "Is there anything else?"."""
    parts = _parts(answer)
    return bool(parts) and all(_IS_POLITE.fullmatch(part) for part in parts)


# "With the personnel number I can look it up", after the question for it.
_THEN_I_CAN = regex(
    r"\bI\ (?:can|could|will|['’]ll)\ (?:then\ )?(?:look|work|check|search|start|help|tell|find)\b",
    re.VERBOSE | re.IGNORECASE,
)


class Parts(NamedTuple):
    """The parts of an answer: announced work, details that are asked for, and all others.

    Courtesies are left out.
    """

    announced: list[str]
    asked: list[str]
    other: list[str]


def parts_of(answer: str) -> Parts:
    """Sort the parts of an answer."""
    parts = Parts([], [], [])
    for part in _parts(answer):
        if _inquires(part):
            parts.announced.append(part)
        elif _asks_details(part):
            parts.asked.append(part)
        elif parts.asked and _THEN_I_CAN.search(part):
            continue
        elif _IS_POLITE.fullmatch(part) is None:
            parts.other.append(part)
    return parts


def _inquires(part: str) -> bool:
    return _INQUIRES.match(part) is not None and _FOLLOWS_UP.search(part) is None


def _asks_details(part: str) -> bool:
    if _CHOICE.search(part):
        return False
    if _OF_NEXT_STEP.search(part) and not _CLARIFIES.search(part):
        return False
    if _REQUESTS_DETAILS.match(part):
        return True
    asks = _ASKS_BACK.match(part) or _QUESTIONS_ELSEWHERE.match(part) or _ASKS_MORE.match(part)
    return part.endswith("?") and asks is not None


def finds_nothing(answer: str, result: str) -> list[str]:
    """Return the parts of an answer that report nothing found, if the result has something.

    Nothing is returned if the answer says more than that, except questions for details and
    courtesies.
    """
    parts = _parts(answer)
    empty_parts = [part for part in parts if _FINDS_NOTHING.fullmatch(part)]
    if _HAS_NONE.search(result) or any(_QUALIFIED.search(part) for part in empty_parts):
        return []
    besides = [part for part in parts if part not in empty_parts]
    empty = all(_asks_details(part) or _IS_POLITE.fullmatch(part) for part in besides)
    return empty_parts if empty else []


# Results that say no without a negation: "booked", "sold out", "ausgebucht".
_IS_GONE = regex(
    r"\b(?:booked|taken|sold out|unavailable|closed|expired|declin\w*|reject\w*|cancel\w*|belegt"
    r"|ausgebucht|complet|agotad\w*|ocupad\w*)\b",
    re.IGNORECASE,
)
_PARTS_OF_RESULT = regex(r"[^.!?;\n]+")


def is_mainly_negative(result: str) -> bool:
    """Return whether a result opens with a negation, or half of its sentences contain one.

    "Three hotels were asked. All are full." is negative as a whole; a report with "no rate limit"
    among its findings is not.
    """
    parts = [part for part in _PARTS_OF_RESULT.findall(result) if part.strip()]
    if not parts:
        return False
    negative = [is_negative(part) or _IS_GONE.search(part) is not None for part in parts]
    return negative[0] or 2 * sum(negative) >= len(parts)


# "Yes, it does." and "Nein: ...", but not "Yes, I'll look" or "no flights".
_YES_OR_NO = regex(
    r"(?<!\W)\W*(?:(?P<yes>yes|ja|oui|sí)|(?P<no>no|nein|non))\b\s?[.,:;!–-]"
    r"(?!\s*(?:I|we|sure|of course)\b)",
    re.IGNORECASE,
)
# With a condition, yes and no do not contradict: "Yes, but only with a permit".
_CONDITION = regex(
    r"\b(?:but|if|only|once|unless|when|except|though|although|however|provided|until|instead|partly"
    r"|aber|wenn|nur|falls|außer|sondern|mais|sauf|pero|salvo)\b",
    re.IGNORECASE,
)


def says_the_opposite(answer: str, result: str) -> bool:
    """Return whether one opens with yes and the other with no, both without conditions."""
    one, other = _YES_OR_NO.match(answer), _YES_OR_NO.match(result)
    if one is None or other is None or one.lastgroup == other.lastgroup:
        return False
    return _CONDITION.search(answer) is None and _CONDITION.search(result) is None
