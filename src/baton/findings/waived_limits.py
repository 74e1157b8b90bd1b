"""Does a prompt say that there is no limit where the request sets one?

"Money is no object" for "at most 160 euros", "take your time" for "by Friday", "no known allergies"
for "allergic to penicillin". A prompt that leaves a limit out may keep it in mind. One that says
that there is none does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .lazy_patterns import regex

_BOUND = (
    r"(?:at\ most|no\ more\ than|not\ more\ than|max(?:imum|imal|\.)?|under|below|up\ to|less\ than"
    r"|budget|limit|cap|ceiling|within|höchstens|unter|bis\ zu|au\ plus|moins\ de|como\ máximo"
    r"|máximo|menos\ de|presupuesto|tope|exceed)"
)
_MONEY = (
    r"(?:[€$£¥]\s?\d|\d\s?(?:[€$£¥]|(?:EUR|USD|GBP|CHF|SEK|NOK|DKK|euros?|dollars?|pounds?|francs?"
    r"|kr)\b))"
)
_DAY = (
    r"(?:\d|(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|tonight|noon|montag|dienstag|mittwoch"
    r"|donnerstag|freitag|samstag|sonntag|morgen|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
    r"|demain|lunes|martes|miércoles|jueves|viernes|sábado|domingo|mañana|end of|the end)"
)


class _Limit(NamedTuple):
    """How a request sets a limit, and how a prompt waives it.

    ``denies``: it contradicts a fact, whatever part of the work the prompt is about.
    """

    sets: re.Pattern[str]
    waives: re.Pattern[str]
    denies: bool = False


def _pattern(text: str) -> re.Pattern[str]:
    return regex(text, re.VERBOSE | re.IGNORECASE)


# Each kind of limit: what sets it, what says that there is none, and whether that denies it
# outright ("no known allergies") or could also be about a part of the work ("right away").
_LIMITS = (
    _Limit(
        _pattern(rf"\b{_BOUND}\b[^.;!?\n]{{0,25}}?{_MONEY}|{_MONEY}[^.;!?\n]{{0,20}}\b{_BOUND}\b"),
        _pattern(
            r"""\b(?:money|cost|price|the\ budget)\ is\ (?:no\ (?:object|issue|problem)
                |not\ an?\ (?:issue|problem|concern)|irrelevant|secondary|open|unlimited)
            |\b(?:price|prices|cost|costs|money)\ (?:does\ not|do\ not|doesn['’]t|don['’]t)\ matter
            |\b(?:regardless\ of|whatever)\ (?:the\ )?(?:price|cost)s?\b|\bwhatever\ it\ costs
            |\b(?:no|without)\ (?:a\ )?(?:budget|price|cost)\ (?:limit|cap|ceiling|restrictions?)
            |\bunlimited\ budget|\bgeld\ spielt\ keine\ rolle|\bpreis\ (?:ist\ )?egal
            |\bpeu\ importe\ le\ prix|\bel\ precio\ no\ importa|\bsin\ límite\ de\ precio"""
        ),
    ),
    _Limit(
        _pattern(
            rf"""\b(?:by|before|until|no\ later\ than|not\ later\ than|latest|deadline:?|due|bis
                |spätestens|vor|avant|antes\ del?|jusqu\w*|para\ el)\s(?:\w+\s){{0,2}}?{_DAY}"""
        ),
        _pattern(
            r"""\b(?:there\ is|there['’]s|it\ is|it['’]s|with)?\s?(?:no|not\ in\ (?:a|any))
                \ (?:hurry|rush)\b|\bnot\ urgent|\btake\ your\ time|\bno\ deadline
            |\bkeine?\ eile|\bes\ eilt\ nicht|\brien\ ne\ presse|\bpas\ urgent|\bsin\ prisa
            |\bno\ (?:hay|corre)\ prisa"""
        ),
    ),
    _Limit(
        _pattern(
            r"""\b(?:allerg\w*|intoleran\w*|c(?:o)?eliacs?|celíac\w*|zöliakie|cœliaque|anaphyla\w*
                |phobi[ac]|vegetarian\w*|vegans?|vegetarisch\w*|végétarien\w*|vegano\w*)\b"""
        ),
        _pattern(
            r"""\bno\ (?:known\ )?(?:food\ )?(?:allerg|intoleranc)\w*
            |\b(?:nobody|no\ one|none)\ (?:\w+\ ){0,2}(?:allerg|intoleran)\w*
            |\b(?:eats?|eating)\ (?:everything|anything)|\bno\ (?:special\ )?diets?\b
            |\bno\ dietary\ (?:needs|requirements|restrictions)
            |\b(?:isst|essen)\ alles\b|\bkeine\ (?:allergi|unverträglichkeit)\w*
            |\bmangent?\ de\ tout|\b(?:pas\ d['’]|aucune\ )allergi\w*
            |\bcomen?\ de\ todo|\bsin\ (?:alergi|intoleranci)\w*|\bnadie\ tiene\ alergi\w*"""
        ),
        denies=True,
    ),
    _Limit(
        _pattern(
            r"""\b(?:not\ before|only\ after|after|from|nicht\ vor|erst\ (?:ab|nach)|pas\ avant
                |après|no\ antes\ de|después\ de)\s(?:the\ |um\ |las\ )?
                (?:\d{1,2}[:.h]\d\d|\d{1,2}\s?(?:am|pm|uhr|h)\b|sunset|dark|midnight|noon)"""
        ),
        _pattern(
            r"""\b(?:right\ away|immediately|at\ once|straight\ away|right\ now
                |as\ soon\ as\ possible|asap|sofort|umgehend|tout\ de\ suite|immédiatement
                |inmediatamente|de\ inmediato|ahora\ mismo)\b"""
        ),
    ),
)
# Before such words, it takes them back: "it is not true that money is no object".
_NEGATED = regex(
    r"\b(?:not|never|don['’]t|doesn['’]t|but|except|apart from|other than|besides|nicht|nie|pas"
    r"|sauf|no)"
    r"\s(?:\w+\s){0,2}$",
    re.IGNORECASE,
)
# Longer texts are left out: a limit, and words that lift one, may be pages apart and about
# different things.
_MOST_CHARACTERS = 4000


def waived(request: str, prompt: str, *, whole: bool) -> Iterator[tuple[str, str]]:
    """Yield limits of a request, each with the words of a prompt that say that there is none.

    ``whole``: the prompt hands on the whole request. "Fetch her file right away" is a part of "call
    her after 14:00", and rightly has no such limit.
    """
    if max(len(request), len(prompt)) > _MOST_CHARACTERS:
        return
    for limit in _LIMITS:
        if not whole and not limit.denies:
            continue
        lifted = limit.waives.search(prompt)
        # A request that says so itself sets the limit for something else.
        if lifted is None or limit.waives.search(request) is not None:
            continue
        if _NEGATED.search(prompt[: lifted.start()]) is not None:
            continue
        set_by = limit.sets.search(request)
        rest = prompt[: lifted.start()] + prompt[lifted.end() :]
        # "One guest is vegan; no other diets": the limit is there as well.
        if set_by is not None and limit.sets.search(rest) is None:
            yield set_by[0], lifted[0].strip()
