"""Answers that speak in general and refer a user elsewhere, although a result has the answer."""

from __future__ import annotations

import re

from .lazy_patterns import regex
from .words import is_elliptic

# "Usually takes two to three weeks", "many causes", "differ from practice to practice".
_GENERAL = regex(
    r"""\b(?:usually|generally|typical(?:ly)?|commonly|normally|in\ general|as\ a\ rule
            |rule\ of\ thumb|often|mostly|sometimes|most|many|tend\ to|var(?:ies|y|ying)|depends?
            |differs?|does\ happen|is\ (?:quite\ )?possible|can\ (?:have|be|take|vary|differ)
            |may\ (?:be|apply|vary|differ)|not\ necessarily|n['’]t\ necessarily|good\ practice
            |(?:must|should)\ be)\b
        |\b(?:in\ der\ Regel|meistens?|üblicherweise|normalerweise|grundsätzlich|oft|häufig|viele
            |je\ nach|hängt|hängen|unterschiedlich\w*)\b
        |\b(?:en\ général|généralement|souvent|varient|varie|dépend\w*|bien\ des|beaucoup\ de)\b
        |\b(?:en\ general|normalmente|por\ lo\ general|suelen?|much[ao]s|depende\w*|varían?)\b
        |\b(?:di\ solito|in\ genere|generalmente|spesso|dipende|meestal|vaak|hangt\ af
            |verschilt)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# A general sentence about this case may sum up what was found: "That often happens after a deep
# filling". "That depends" and "it is possible that" do not.
_OF_THIS = regex(
    r"""\b(?:than\ (?:before|usual|last)|again|still|already|no\ longer|so\ far|since|unchanged
            |less\ so|more\ so)\b|\bdo(?:es)?(?=[,.;])
        |\b(?:(?:it|that)(?!\ (?:(?:also|all|largely)\ )?(?:depends|varies|is\ (?:quite\ )?possible
            |does\ happen|can\ vary))|this|these|those|both|he|she|they|them|you|here|today|now|only
        |ones?|dies\w*|beide|ihr\w*|ce|cet|cette|ces|est[eao]s?|quest[aoei]|deze|dit)\b|['’]s\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Verbs that send a user elsewhere: "please check the website", "contact support". "Bring your
# passport" is advice.
_REFER = (
    r"(?:check|consult|contact|ask|call|look|see|search|open|visit|inspect|review|read|go\ through"
    r"|have\ (?:a\ look|(?:someone|somebody|an?\ \w+)\ (?:look|check)))"
)
# "Please check the display", "I'd ask three vendors", "you may inspect the file at the office".
_REFERS = regex(
    rf"""(?:\A|[:;,]\ |\b(?:and|or)\ )\W*(?:please\ |kindly\ |just\ )?{_REFER}\b
        |\b(?:I['’]d|I\ would|we['’]d|we\ would)\ (?:ask|look|check|contact|call)\b
        |\bI\ (?:recommend|suggest|advise)\b[^.]{{0,60}}
            \b(?:contact|check|ask|consult|call|look)\w*\b
        |\byou\ (?:can|may|could|should|might|need\ to|have\ to)\ (?:then\ |also\ |always\ )?
            (?:want\ to\ )?(?:check|look|find|inspect|ask|see|contact|search|consult|call|verify)\b
        |\b(?:he|she|they|\w+)\ (?:should|could)\ (?:check|call|ask|contact)\b
        |\bto\ (?:find\ out|check|see|know|learn)\ (?:if|whether|when|how|which|what|about|that)\b
        |\bcan\ be\ (?:looked\ up|found|checked)\b
        |\bbitte\ (?:sehen|schauen|prüfen|fragen|wenden|kontaktieren|erkundigen)\b
        |\bam\ (?:besten|einfachsten)\ (?:finde\w*|fragen|prüfen|schauen)\b|\bsie\ finden\b
        |\b(?:fragen|prüfen|schauen|wenden)\ sie\b
        |\bje\ vous\ (?:invite|conseille|recommande|suggère)\b[^.]{{0,40}}
            \b(?:consulter|appeler|contacter|demander|vérifier|rendre)\b
        |\b(?:consultez|contactez|vérifiez|renseignez-vous|demandez|adressez-vous)\b
        |\bvous\ renseignera\b
        |\b(?:consulte|contacte|pregunte|compruebe|conviene\ (?:mirar|consultar|preguntar))\b
        |\b(?:consulti|contatti|verifichi|chieda)\b|\btrova\ (?:il|la|i|le)\b
        |\b(?:vraag|controleer|bekijk|neem\ contact)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "I can't see that at the moment", "I can't tell whether it has happened before".
_UNABLE = regex(
    r"""\bI\ (?:can['’]t|cannot|am\ unable\ to|could\ not|couldn['’]t)\ (?:see|tell|say|give|access
            |look|check|retrieve)\b
        |\b(?:I|we)\ (?:do\ not|don['’]t)\ have\ (?:access|data|information|reliable)\b
        |\bkan\ ik\ [^.]{0,40}\bniet\ (?:zien|zeggen|vinden)\b
        |\bkann\ ich\ [^.]{0,40}\bnicht\ (?:sehen|sagen|einsehen)\b
        |\bje\ ne\ (?:peux|vois)\ pas\b|\bno\ puedo\ (?:ver|decir|saber|acceder)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Please contact customer service for information about bicycles" has nothing but the referral.
_FOR_DETAILS = regex(
    r"""\bfor\ (?:more\ |further\ |the\ |current\ )?(?:information|details|prices|rates|dates|times
            |opening\ hours|conditions)\b
        |\bfür\ (?:weitere\ |nähere\ )?(?:informationen|details|auskünfte)\b
        |\bpour\ (?:plus\ d['’]|des\ |toute\ )?(?:informations?|renseignements?|détails)\b
        |\bpara\ (?:más\ )?(?:información|detalles)\b|\bper\ (?:maggiori\ )?informazioni\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Sentences beside a reference that say nothing: "Sorry!", "Thank you".
_SORRY = regex(
    r"""\A\W*(?:(?:I['’]m\ |we['’]re\ )?(?:so\ |very\ )?sorry|we\ apologi[sz]e|hi\b|hello\b|thanks
        |thank\ you|es\ tut\ mir\ leid|désolé|lo\ siento)""",
    re.VERBOSE | re.IGNORECASE,
)
# "Please see a doctor if your lips swell", "I'd check again in summer": advice on what to do later,
# and no way to find the answer. "Contact us if you have questions" is a courtesy.
_FOR_LATER = regex(
    r"""\b(?:see|ask|call|contact|consult)\b[^.?!]{0,60}\b(?:if|when|once|as\ soon\ as|should)\b
            (?!\ (?:you\ (?:have|need|want|would\ like|are\ (?:unsure|not\ sure))|in\ doubt))
        |\bask\b[^.?!]{0,40}\bfor\b(?!\ (?:the\ |more\ |further\ |current\ |an?\ )?
            (?:information|details|advice|help|prices?|rates?|dates?|times?|copy|list|figures?))
        |\b(?:ask|call|contact|tell)\ (?:them|him|her|it)\b
        |\b(?:again|later|soon|tomorrow|next\ \w+|in\ (?:spring|summer|autumn|fall|winter))\b
        |\b(?:wenn|falls|sobald)\b(?!\ sie\ (?:fragen|mehr|noch))|\b(?:erneut|nochmals?|später)\b
        |\b(?:si|dès\ que|en\ cas\ de)\b(?!\ (?:vous\ (?:avez|voulez|souhaitez)|besoin|doute))
        |\b(?:plus\ tard|de\ nouveau|más\ tarde|de\ nuevo)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCE = regex(r"(?:[^.!?]|\.(?=\w))+[.!?]*")
# "Why does it fail?" and "What should I do?" can be answered in general words. "When is it due?",
# "How many?" and "Is it booked?" can't.
_OPEN = regex(
    r"""\b(?:why|wrong|causes?|reasons?|should|advice|advise|recommend|suggest|explain|do\ I\ do
        |can\ I\ do|worry|meaning|warum|wieso|ursache|soll\w*|pourquoi|faut|cause|por\ qué|debo
        |perché|devo|waarom|moet)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def refers_away(answer: str) -> bool:
    """Return whether an answer only speaks in general and refers the user elsewhere.

    "Delivery times vary. Please check with the shop." Each sentence does one of these, or says that
    the caller can't tell, and the answer does both.
    """
    general = refers = False
    for part in (part.strip() for part in _SENTENCE.findall(answer)):
        if not part or _SORRY.match(part):
            continue
        if _UNABLE.search(part):
            general = refers = True
        elif _REFERS.search(part):
            if _FOR_LATER.search(part):
                return False
            refers = True
            general = general or _FOR_DETAILS.search(part) is not None
        elif is_elliptic(part):
            return False
        elif _GENERAL.search(part) and not _OF_THIS.search(part):
            general = True
        else:
            return False
    return general and refers


def refers_somewhere(text: str) -> bool:
    """Return whether a text refers somebody elsewhere, or says that it can't tell."""
    return _REFERS.search(text) is not None or _UNABLE.search(text) is not None


def is_unable(answer: str) -> bool:
    """Return whether an answer says that the caller can't tell."""
    return _UNABLE.search(answer) is not None


def asks_for_facts(request: str) -> bool:
    """Return whether a request is a question, but not for a reason or for advice."""
    asks = "?" in request or _REPORTED.search(request) is not None
    return asks and _OPEN.search(request) is None


# "The patient asks if he has to fast", "I need to know when it ends".
_REPORTED = regex(
    r"""\b(?:asks?|asked|wants?\ to\ know|need\ to\ know|find\ out|check|tell\ me)
            \ (?:if|whether|when|where|who|which|what|how)\b
        |\b(?:fragt|will\ wissen|möchte\ wissen),?\ (?:ob|wann|wo|wer|welche\w*|was|wie)\b
        |\bdemande\ (?:si|quand|où|qui|quel\w*|combien)\b
        |\bpregunta\ (?:si|cuándo|dónde|quién|qué|cuánt\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
