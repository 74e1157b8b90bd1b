"""Does a request give a time or date for something else than the work it asks for?

"After the funeral (Friday 11:00) we'd like a lunch", "my train gets in at 17:40, book a table": a
prompt has the time of the lunch and of the table, which nobody stated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .facts import Fact
from .lazy_patterns import regex
from .text_values import Value
from .words import clause_with, only_states

_WEEKDAYS = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
    r"|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
    r"|lunes|martes|miércoles|jueves|viernes|sábado|domingo"
)
# An event that the work comes before or after: "after the funeral (Friday 11:00", "until the match
# at 20:45". Not "after 11:00" or "before Friday, 11:00", which limit the work itself.
_BESIDE_EVENT = regex(
    rf"""\b(?:after|before|following|ahead\ of|prior\ to|once|when|as\ soon\ as|until|till|during
        |between|nach|vor|bevor|nachdem|sobald|wenn|bis|während|après|avant|dès\ que|quand
        |pendant|después|tras|antes|cuando|hasta|durante)\b
        (?:(?!\b(?:{_WEEKDAYS})\b)[^.;!?\n\d]){{0,20}}?
        (?!(?:{_WEEKDAYS})\b)\b[^\W\d_]{{4,30}}\b[^.;!?\n]{{0,40}}\Z""",
    re.VERBOSE | re.IGNORECASE,
)
# What begins, ends or arrives then: "which ends at 14:00", "qui finit à 22:00", "kick-off 20:45".
_TAKES_PLACE = regex(
    r"""\w\ (?:begins|starts|ends|finishes|opens|closes|leaves|arrives|lands|departs
        |gets\ (?:in|back|home)|takes\ off|kicks\ off|is\ (?:at|on|over|from|until)|lasts|runs
        |beginnt|startet|endet|landet|fährt|kommt|ist|öffnet|schließt|dauert
        |finit|commence|débute|arrive|atterrit|part(?=\ [àd])|est|termine|ouvre|ferme|dure
        |termina|empieza|comienza|llega|aterriza|sale|es|abre|cierra|dura)\b[^.;!?\n]{0,30}\Z
    |\b(?:kick-?off|doors|curtain|boarding|departure|arrival|beginn|anpfiff|ankunft|abfahrt|einlass
        |début|arrivée|départ|inicio|llegada|salida)\b[^.;!?\n\d]{0,12}\Z
    # Where the user has to be then.
    |\b(?:be|arrive|get)\ (?:at|in|there|to|back|home)\b[^.;!?\n]{0,40}\Z
    |\b(?:être|estar|ankommen|llegar|arriver)\b[^.;!?\n]{0,30}\Z""",
    re.VERBOSE | re.IGNORECASE,
)
# What happened then: "it rang at 4:50", "a lâché à 4:50", "ist um 4:50 ausgefallen".
_HAPPENED = regex(
    r"""\w\ (?:[^\W\d_]+ed|rang|went|came|began|broke|fell|got|left|lost|met|rose|ran|saw|sent
        |shut|stood|told|took|woke|wrote|blew|froze|[^\W\d_]{3,}te|ging|fiel|kam|blieb|lief|sprang
        |(?:a|ont|est|sont|s['’]est)\ [^\W\d_]+(?:é|ée|és|u|i|t)|[^\W\d_]{2,}ó|[^\W\d_]{3,}aron
        |hat|haben|ist|sind|ha|han)\b[^.;!?\n\d]{0,24}\Z
    |\b(?:since|seit|depuis|desde)\b[^.;!?\n\d]{0,16}\Z""",
    re.VERBOSE | re.IGNORECASE,
)
# "I want it delivered at 9:00", "have it fixed by 3 May".
_WANTED = regex(
    r"\b(?:want|wants|need|needs|needed|must|should|shall|to be|be|have (?:it|them)|get (?:it|them)"
    r"|please|would|could|like|bitte|soll\w*|muss|müssen|möchte\w*|doit|faut|veux|debe|quiero)\b",
    re.IGNORECASE,
)


def is_of_other_event(fact: Fact, sentence: str) -> bool:
    """Return whether a time or date may be that of another event: of a train, of a match."""
    if not is_moment(fact):
        return False
    before, itself, _ = sentence.partition(fact.text)
    if not itself:
        return False
    if only_states(clause_with(fact.text, sentence)):
        return True
    return _BESIDE_EVENT.search(before) is not None or _TAKES_PLACE.search(before) is not None


def happened_then(fact: Fact, sentence: str) -> bool:
    """Return whether a time or date is when something happened: "the alarm rang at 4:50"."""
    if not is_moment(fact):
        return False
    before, itself, _ = clause_with(fact.text, sentence).partition(fact.text)
    return bool(itself) and _HAPPENED.search(before) is not None and not _WANTED.search(before)


# "From 12 to 15 October, we set up the day before": a prompt has the 11th.
_DAY_BESIDE = regex(
    r"\b(?:days?|nights?|evenings?|mornings?) (?:before|after|earlier|later)\b|\beve of\b"
    r"|\b(?:next|following|previous) (?:day|morning|night)\b|\bone (?:day|night) (?:more|less)\b"
    r"|\b(?:am |den )?(?:vor|folge)tag|\btags? (?:davor|danach|zuvor|darauf)\b|\bvorabend"
    r"|\b(?:la )?veille\b|\blendemain\b|\bjours? (?:avant|après|plus)\b"
    r"|\b(?:día|noche)s? (?:antes|después|anterior|siguiente)\b|\bvíspera\b",
    re.IGNORECASE,
)
# Days around an event that such words mean: "arrive the evening before", "two nights after". A day
# further away is another date.
_DAYS_BESIDE = 2


def is_day_beside(fact: Fact, new: Sequence[Value], request: str) -> bool:
    """Return whether a prompt has a day shortly before or after a day, as a request says."""
    days = _days(fact)
    others = {day for value in new for day in _days(value.fact)}
    if not any(0 < abs(a - b) <= _DAYS_BESIDE for a in days for b in others):
        return False
    return _DAY_BESIDE.search(request) is not None


def _days(fact: Fact) -> set[float]:
    days = {float(key.rpartition("-")[2]) for key in fact.keys if key.startswith("d:")}
    return days or {number for number in fact.numbers if 1 <= number <= 31}


def is_moment(fact: Fact) -> bool:
    """Return whether a fact is a time or a date."""
    return any(key.startswith(("t:", "d:")) for key in fact.keys)
