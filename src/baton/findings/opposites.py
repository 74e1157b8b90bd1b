"""Does a prompt have another attribute than the request, a bound to the other side, another basis?

"Window seat" for "aisle seat", "if it falls below 61.50" for "rises above 61.50", "900 EUR per
person" for "900 EUR in total". Such words exclude one another, so one is no rewording of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .lazy_patterns import regex
from .text_cache import text_cached
from .text_values import Value
from .words import COMMON

# Attributes that exclude one another: those of a paragraph. A line has the forms of one attribute.
_GROUPS = """
aisle pasillo couloir gang
window ventanilla hublot fenster

female weibliche weiblichen weiblicher féminine femenina
male männliche männlichen männlicher masculine masculina

single individual simple
double doble
twin

north northern nord norte
south southern sud süd
east eastern ost
west western ouest oeste

left linke linken linker linkes gauche izquierda izquierdo
right rechte rechten rechter rechtes droite derecha derecho

upper obere oberen oberer supérieur supérieure superior
lower untere unteren unterer inférieur inférieure inferior

front vordere vorderen delantero delantera
rear hintere hinteren arrière trasero trasera

inner interior innere inneren
outer exterior äußere äußeren

indoor
outdoor

business
economy

petrol gasoline benzin essence gasolina
diesel gasóleo
electric elektrisch électrique eléctrico

manual manuelle manuel
automatic automatische automatique automático

wide breite breiten ancho ancha
narrow schmale schmalen étroit estrecho estrecha

public öffentliche öffentlichen publique público
private private privée privado

mutual two-way bilateral gegenseitige
one-way unilateral einseitige

oak eiche chêne roble
pine kiefer pin pino
beech buche hêtre haya
walnut nussbaum noyer nogal
spruce fichte épicéa
birch bouleau abedul
ash esche frêne fresno

cotton baumwolle coton algodón
wool wolle laine lana
silk seide soie seda
linen leinen lin lino

steel stahl acier acero
aluminium aluminum aluminio
copper kupfer cuivre cobre
brass messing laiton latón

red rote roten roter rouge rouges rojo roja rojas rojos
blue blaue blauen bleu bleue bleues azul azules
green grüne grünen vert verte vertes verde verdes
yellow gelbe gelben jaune jaunes amarillo amarilla
white weiße weißen blanc blanche blanches blanco blanca blancas
black schwarze schwarzen noir noire noires negro negra

breakfast frühstück petit-déjeuner desayuno
lunch mittagessen déjeuner almuerzo
dinner abendessen dîner cena

cremation feuerbestattung crémation cremación
burial erdbestattung inhumation entierro
"""
# These need no word in common beside them, as they hardly ever come up by the way.
_ALONE = """
tiff tif
jpeg jpg
png
gif
svg

mp3
wav
flac

android
ios iphone ipad

cremation feuerbestattung crémation cremación
burial erdbestattung inhumation entierro
"""


def _options(groups: str) -> dict[str, tuple[int, int]]:
    return {
        form: (number, place)
        for number, group in enumerate(groups.strip().split("\n\n"))
        for place, option in enumerate(group.splitlines())
        for form in option.split()
    }


_OF_NOUN = _options(_GROUPS)
_OF_TEXT = _options(_ALONE)
_TOKEN = regex(r"[^\W\d_]+(?:[-’'][^\W\d_]+)*|\d+|[.,;:!?()\n]")
_LINKS = frozenset("de du des d en of in the der die das dem den del la le al".split())  # noqa: SIM905
# "Nothing in white" asks for any other colour.
_NEGATIONS = frozenset(
    """
    no not nothing none never without except avoid exclude instead than rather nor kein keine keinen
    nicht ohne statt pas sans ni sauf sin nada excepto
    """.split()  # noqa: SIM905
)
# This many words after a negation belong to it: "not in the aisle". Further away, it negates
# something else.
_WORDS_AFTER_NEGATION = 3
_BOTH = frozenset("or and und oder et ou y o".split())  # noqa: SIM905


class Opposite(NamedTuple):
    """What a request says, and what a prompt says instead."""

    old: str
    new: str


class _Attribute(NamedTuple):
    group: int
    option: int
    text: str
    beside: frozenset[str]
    """The nouns right before and after it, links such as "of" apart."""


@text_cached
def _attributes(text: str) -> tuple[tuple[_Attribute, ...], tuple[_Attribute, ...]]:
    """Return the attributes with a noun beside them, and those that need none."""
    tokens = _TOKEN.findall(text)
    folded = [token.casefold() for token in tokens]
    of_noun, of_text = [], []
    for at, word in enumerate(folded):
        if not _NEGATIONS.isdisjoint(folded[max(0, at - _WORDS_AFTER_NEGATION) : at]):
            continue
        if word in _OF_TEXT:
            of_text.append(_Attribute(*_OF_TEXT[word], tokens[at], frozenset()))
        if word in _OF_NOUN:
            beside = frozenset((*_noun(folded, at, 1), *_noun(folded, at, -1)))
            of_noun.append(_Attribute(*_OF_NOUN[word], tokens[at], beside))
    return tuple(of_noun), tuple(of_text)


def _noun(words: list[str], at: int, step: int) -> Iterator[str]:
    at += step
    while 0 <= at < len(words) and words[at] in _LINKS:
        at += step
    if 0 <= at < len(words) and len(words[at]) > 2 and words[at] not in COMMON | _BOTH:
        yield words[at]


def opposites(request: str, prompt: str) -> Iterator[Opposite]:
    """Yield attributes of a request for which a prompt has another one, of the same noun.

    Only where each text has one attribute of its kind: "a red and a blue one" may be told apart.
    """
    for mine, theirs, needs_noun in zip(
        _attributes(request), _attributes(prompt), (True, False), strict=True
    ):
        for old in mine:
            if any(each.group == old.group and each.option != old.option for each in mine):
                continue
            others = [each for each in theirs if each.group == old.group]
            if not others or any(each.option != others[0].option for each in others):
                continue
            new = others[0]
            if new.option != old.option and (not needs_noun or new.beside & old.beside):
                yield Opposite(old.text, new.text)


# --- Bounds

_NOT = r"(?:not?|nicht|kein|pas|no|never|nie|n['’]t)\s"
# "At least 5" and "over 5" bound from below, "at most 5" and "under 5" from above (`_DOWN`).
_UP = (
    r"(?:above|over|more\ than|greater\ than|higher\ than|later\ than|longer\ than|older\ than"
    r"|exceed(?:s|ing)?|at\ least|minimum|mindestens|über|mehr\ als|plus\ de|au\ moins|más\ de"
    r"|al\ menos|as\ from|>=?|≥)"
)
_DOWN = (
    r"(?:below|under|less\ than|fewer\ than|lower\ than|earlier\ than|shorter\ than|younger\ than"
    r"|at\ most|up\ to|maximum|max\.?|höchstens|maximal|unter|weniger\ als|moins\ de|au\ plus"
    r"|menos\ de|como\ máximo|<=?|≤)"
)
_BOUND = regex(
    rf"(?P<not>\b{_NOT})?(?:(?P<up>(?<!\w){_UP})|(?P<down>(?<!\w){_DOWN}))\s?"
    r"(?:the\s|of\s|[€$£¥]\s?|(?:EUR|USD|GBP|CHF)\s)?$",
    re.IGNORECASE,
)
# "Humidity below 70 %" is the same as "warn when the humidity is over 70 %".
_TURNS = regex(
    r"""\b(?:if|when\w*|once|unless|until|alarm\w*|alert\w*|warn\w*|reject\w*|refus\w+|avoid\w*
        |exclud\w+|skip\w*|ignor\w+|filter\w*|stop\w*|fail\w*|not|no|never|nothing|none|too
        |without|n['’]t|wrong|bad|violat\w+|flag\w*|report\w*|remove\w*|delete\w*|discard\w*|leave
        |wenn|sobald|nicht|kein\w*|nie|si|quand|pas|jamais|sin|cuando|nunca)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def _side(value: Value) -> str | None:
    """Return `up` or `down` for a bound that stands right before a value."""
    before, itself, _ = value.clause.partition(value.fact.text)
    match = _BOUND.search(before) if itself else None
    # "I won't pay more than 90 francs": the negation belongs to a verb before it.
    if match is None or _NEGATED_VERB.search(before[: -len(match[0])]):
        return None
    up = match["up"] is not None
    return "up" if up is (match["not"] is None) else "down"


# With a negation further away, nobody knows which side is meant: "I don't want to pay more than
# 90".
_NEGATED_VERB = regex(
    r"n['’]t\b|\b(?:not?|never|none|nothing|nobody|cannot|without|nicht|kein\w*|nie|pas|jamais|aucun\w*"
    r"|nunca|nada)\b",
    re.IGNORECASE,
)


def turned_bounds(asked: Iterable[Value], sent: Iterable[Value]) -> Iterator[tuple[Value, Value]]:
    """Yield values that limit to one side in a request and to the other side in a prompt."""
    sides = [(value, side) for value in sent if (side := _side(value)) is not None]
    if not sides:
        return
    for old in asked:
        side = _side(old)
        same = [(v, other) for v, other in sides if v.fact.keys == old.fact.keys]
        # A value with both bounds is one that separates two cases.
        if side is None or len(same) != 1 or same[0][1] == side:
            continue
        turns = {word.casefold() for word in _TURNS.findall(same[0][0].clause)}
        if turns == {word.casefold() for word in _TURNS.findall(old.clause)}:
            yield old, same[0][0]


# --- What an amount is for

# What a price can be for, in five languages. Forms of one unit are joined by `=`.
_UNITS = (
    "night=nacht=nuit=noche=notte", "person=head=guest=pax=personne=persona=kopf=tête=cabeza",
    "day=tag=jour=día=dia", "week=woche=semaine=semana", "month=monat=mois=mes",
    "year=jahr=année=an=año", "hour=stunde=heure=hora",
)  # fmt: skip
_PER = {form: unit for unit, forms in enumerate(_UNITS) for form in forms.split("=")}
_TOTAL = len(_UNITS)
# "900 EUR per person" and "900 EUR in total". "900 EUR for two" states none of these.
_BASIS = regex(
    r"""^\s?(?:[€$£¥]|[A-Z]{3}\b|euros?\b|dollars?\b|pounds?\b|francs?\b)?,?\s?
        (?:(?P<total>in\ total|total\b|all\ in\b|altogether|insgesamt|gesamt|en\ tout|au\ total
            |en\ total)
        |(?:per|an?|each|pro|je|par|por|la|/)\s?(?P<unit>[^\W\d_]+))""",
    re.VERBOSE | re.IGNORECASE,
)
# "In total at most 900", "altogether 900".
_TOTAL_BEFORE = regex(
    r"\b(?:total|in all|altogether|insgesamt|gesamt\w*)\b[^.;\d]{0,25}$", re.IGNORECASE
)
# Only prices have such a basis: "5 per person" of other things are counted, not paid.
_MONEY = frozenset({"EUR", "USD", "GBP", "CHF", "NOK", "JPY", "SEK", "DKK"})


def _basis(value: Value) -> int | None:
    before, itself, after = value.clause.partition(value.fact.text)
    if not itself:
        return None
    match = _BASIS.match(after)
    if match is not None and match["unit"] is not None:
        unit = match["unit"].casefold()
        return _PER.get(unit, _PER.get(unit.removesuffix("s")))
    if match is not None or _TOTAL_BEFORE.search(before):
        return _TOTAL
    return None


def other_basis(asked: Iterable[Value], sent: Iterable[Value]) -> Iterator[tuple[Value, Value]]:
    """Yield the same amounts of money that are for something else: per person, and in total."""
    for old in asked:
        basis = _basis(old) if old.kind in _MONEY else None
        if basis is None:
            continue
        same = [v for v in sent if v.kind == old.kind and v.fact.keys & old.fact.keys]
        if len(same) == 1 and _basis(same[0]) not in (None, basis):
            yield old, same[0]
