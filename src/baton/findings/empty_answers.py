"""Answers that show that an existing result was not used.

Missing words of the result prove little, because a caller can express all of it in other words.
"""

from __future__ import annotations

import re

_FIRST_PERSON = r"(?:I['’]ll|I['’]m(?:\ going\ to)?|I\ (?:will|am(?:\ going\ to)?)|let\ me)"
_PROMISES = re.compile(
    rf"""\b{_FIRST_PERSON}(?:\ now|\ just)?\ (?:
        (?:check|look|search|start|run|open|review|query|consult|investigat|analy[sz])(?:e|ing)?\b
        |(?:have|take|having|taking)\ a\ (?:\w+\ )?look\b|find(?:ing)?\ out\b|see\ what\b)""",
    re.VERBOSE | re.IGNORECASE,
)
# "I'm checking the connections. One second please!" after the connections came back. The caller may
# look up the next thing ("I'll check the hotels"), so it has to state that it is waiting.
_WAITING = re.compile(
    r"""\bfirst\b|\b(?:one|an?)\ (?:moment|second|sec|minute)\b|\bat\ the\ moment\b
        |\bthis\ (?:may|will|might|can)\ take\b|\b(?:come|get|be)\ back\b|\bshortly\b|\bhang\ on\b
        |\b(?:when|once|as\ soon\ as)\ (?:it|they|he|she|I)\b|\bstand\ by\b|\bplease\ wait\b
        |\bright\ (?:now|away)\b|\bin\ the\ meantime\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "I'm forwarding your question to the payroll agent", although that agent had answered it.
_PASSES_ON = re.compile(
    r"""\b(?:pass|forward|hand|send|sent|giv|relay)\w*\s(?:on\s)?(?:this|it|that|your(?:\s[\w-]+){1,4})\s
        (?:on\s|over\s)?to\s(?:the|our|an?)\s(?:[\w-]+\s){0,2}agent\b
        |\bask(?:ed|ing)?\ (?:the|our)\ (?:[\w-]+\ ){1,2}agent\ (?:about|for|whether|if)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_NEEDS_FIRST = re.compile(
    r"""\bbefore\ I\ can\ (?:check|answer|say|tell|look|start|help)\b
        |\bto\ (?:answer|check|find\ out)\b[^.?!]*\bI(?:['’]d|\ would)\ (?:have\ to\ |need\ to\ )?
        (?:search|look|check|ask)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Sentences that announce a later answer, or work in progress. An answer with nothing else is an
# announcement. "I placed the order. You'll hear from me" has done something.
_TO_COME = re.compile(
    r"""\b(?:let\ you\ know|(?:get|come|be)\ back\ to\ you|report\ (?:back|when|once|as\ soon)
            |hear\ (?:back\ )?from\ (?:me|us)|keep\ you\ (?:posted|updated|informed)|update\ you)\b
        |\b(?:I['’]m|am|are|we['’]re)\ (?:still\ )?waiting\ (?:for|on)\b
        |\b(?:[lt]e\ aviso|les\ aviso|en\ cuanto\ (?:tenga|sepa))\b|\bmelde\ mich\b
        |\bje\ (?:vous\ )?reviens\ vers\ vous\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "I've asked the supplier to correct all of them and will let you know" has done something.
_DEED = re.compile(
    r"\b(?:I|we)(?:['’]ve| have)\b|\b(?:I|we) (?:just |already )?\w+ed\b|\bhabe\b|\bj['’]ai\b"
    r"|\bhe \w+do\b",
    re.IGNORECASE,
)
# The answer reports that an agent is running, although the agent's result exists.
_AT_WORK = re.compile(
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
# "I don't have access to your monitoring data", after a helper had just returned figures from it.
_DENIES = re.compile(
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
_ASKS_BACK = re.compile(
    r"""(?<!\W)\W*(?:which
        |what(?!\ about|\ if|\ do\ you\ think)|when|where|who|how\ (?!about|does\ that)
        |(?:at|for|in)\ (?:which|what)|d(?:o|id)\ you\ (?:mean|have)|by\ [\w\ ]{1,60}do\ you\ mean
        |and\ (?:is|are|do|by|should)|could\ you\ (?:tell|send|give)|is\ it\ meant)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_QUESTIONS_ELSEWHERE = re.compile(
    r"""(?<!\W)\W*(?:s['’]agit-il
        |(?:et\ )?(?:quel(?:le)?s?|lequel|laquelle|où|quand|combien|à\ quelle)
        |(?:und\ )?(?:welche\w*|wann|wo|wie\ viele?|um\ welche\w*|meinen\ sie|meinst\ du)
        |(?:¿\s?)?(?:y\ )?(?:qué|cuál(?:es)?|cuándo|dónde|cuántos?|se\ trata))\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Which of them shall I book?" asks for a choice among what was found.
_CHOICE = re.compile(
    r"""\b(?:which|what)\ (?:one|of)\b
        |\b(?:would\ you\ (?:like|prefer|rather)|do\ you\ (?:prefer|want\ me))\b
        |\bshall\ I\b|\bshould\ I\ (?:book|take|order|choose|go|reserve|buy|pick)\b
        |\b(?:préférez|préfères|möchten\ sie|möchtest|prefiere|prefieres)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Only "I'm checking the policy now.", at the end of a turn in which the policy was checked.
_ONLY_PROMISES = re.compile(
    rf"""(?:(?:first|now|okay|ok|sure)\W{{1,3}})?{_FIRST_PERSON}(?:\ now|\ just|\ first)?\ (?:check
        |look
        |search|query|consult|investigat|analy[sz]|review|ask)\w*\b
        [^.!?]*\b(?:now|first|right\ away|at\ the\ moment|currently)\b[^.!?]*[.!?]*""",
    re.VERBOSE | re.IGNORECASE,
)
# General statements: "Lifeguards should always be certified", after a result that names lifeguards.
_IN_GENERAL = re.compile(
    r"""\b(?:always|usually|generally|typically|commonly|normally|in\ general|as\ a\ rule
        |immer|meistens|in\ der\ Regel|grundsätzlich|üblicherweise|toujours|généralement|en\ général
        |siempre|normalmente|por\ lo\ general)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Words of an answer about a specific person or thing: "your order", "both are always open".
_OF_THIS = re.compile(
    r"""\b(?:I|we|me|us|my|our|your|yours|this|these|that|those|both|neither|either|only|here|today
        |tomorrow|tonight|now|it|they|them|he|she|his|her|their|ich|wir|mein\w*|unser\w*|ihr\w*|dein\w*|dies\w*
        |beide|heute|morgen|je|nous|mon|ma|mes|notre|nos|votre|vos|ce|cette|ces|he|hemos|mi|mis|nuestr\w+
        |su|sus|tu|tus|est[eao]s?|ambos|hoy)\b|['’](?:ll|ve|m|re)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "I'd take the earlier one", "the first of the three", "both of them", "neither is free": such
# words refer to things that were named before, but not by the caller itself.
_SPEAKS_OF_SOME = re.compile(
    r"""\b(?:the|that|this|an?)\ (?:[\w-]+er|[\w-]+est|(?:more|most|less|least)\ \w+|best|worst
            |first|second|third|fourth|fifth|last|other|same|only|right|left|next|previous)\ (?:
            ones?
            |of\ (?:the|these|those|them))\b
        |\bthe\ (?:latter|former)\b
        |\bthe\ (?:first|second|third|fourth|fifth|other)(?=\ (?:is|are|was|were|has)\b|[,.;!?]|$)
        |\b(?:both|neither|either|none|all|any|one|two|three|four|some|most|half)\ of
            \ (?:them|these|those|the\ (?:two|three|four|five|six))\b
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
_SENTENCE = re.compile(r"[^.!?]+[.!?]*")


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


def speaks_in_general(answer: str) -> bool:
    """Return whether an answer makes only general statements, about no person and no case."""
    parts = _parts(answer)
    return bool(parts) and _IN_GENERAL.search(parts[0]) is not None and not _OF_THIS.search(answer)


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
        for part in parts
    )


def denies_data(answer: str) -> bool:
    """Return whether an answer only states that there is no data or access."""
    parts = _parts(answer)
    return len(parts) == 1 and _DENIES.search(answer) is not None


def _parts(answer: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.findall(answer) if part.strip()]
