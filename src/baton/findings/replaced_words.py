"""Names of a request that a prompt replaces: weekdays, months, languages, places, files.

A prompt may leave a name out, but it has no reason to state another one that nobody mentioned:
"pickup on Friday" for "pickup on Thursday", "answer in Norwegian" for "answer in Swedish".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from .facts import HARD, read
from .lazy_patterns import regex
from .words import COMMON, MONTH_NAMES, MONTHS

# Texts up to this length are compared. Each name of one is compared with each name of the other.
_LONGEST = 4000


class Replaced(NamedTuple):
    """A name of a request, and the name that a prompt has in its place.

    ``sure``: it is not the same thing under another name, nor a part of it.
    """

    old: str
    new: str
    sure: bool = True


def replaced(request: str, prompt: str, has_source: Callable[[str], bool]) -> list[Replaced]:
    """Return the names of a request that a prompt replaces.

    ``has_source`` returns whether a name of the prompt comes from another text that the caller had.
    """
    if max(len(request), len(prompt)) > _LONGEST:
        return []
    pairs = (
        *_weekdays(request, prompt),
        *_months(request, prompt),
        *_languages(request, prompt),
        *_addresses(request, prompt),
        *_files(request, prompt),
        *_names(request, prompt),
    )
    return [pair for pair in dict.fromkeys(pairs) if not has_source(pair.new)]


# "Clean the canteen on Friday" belongs to a party on Thursday: a sub-task has days of its own. Only
# a prompt that repeats nearly all numbers and names, or nearly all words of a short request, hands
# on the whole request.
_REPEATED = 0.6
_LEAST_REPEATED = 3
_LEAST_WORDS = 2


def repeats(request: str, prompt: str) -> bool:
    """Return whether a prompt repeats nearly all numbers and names, or words, of a request."""
    sent = read(prompt)
    facts = [fact for fact in read(request).facts if fact.text.casefold() not in _WEEKDAYS]
    hard = [fact for fact in facts if fact.kind in HARD]
    return any(
        repeated >= max(least, _REPEATED * len(every))
        for every, least in ((hard, _LEAST_REPEATED), (facts, _LEAST_WORDS))
        for repeated in (sum(sent.holds(fact) for fact in every),)
    )


# --- Weekdays

# One line for each day, in six languages.
_WEEKDAY_NAMES = (
    "monday mon montag lundi lunes segunda-feira lunedì",
    "tuesday tue tues dienstag mardi martes terça-feira martedì",
    "wednesday wed mittwoch mercredi miércoles miercoles quarta-feira mercoledì",
    "thursday thu thur thurs donnerstag jeudi jueves quinta-feira giovedì",
    "friday fri freitag vendredi viernes sexta-feira venerdì",
    "saturday sat samstag sonnabend samedi sábado sabado sabato",
    "sunday sun sonntag dimanche domingo domenica",
)
_WEEKDAYS = {name: day for day, names in enumerate(_WEEKDAY_NAMES) for name in names.split()}
_CHINESE_DAYS = {day: number % 7 for number, day in enumerate("一二三四五六日天")}
_CHINESE_DAYS["天"] = 6
# "Sun" and "Sat" are words, so these have to start with a capital. "一周五次" is five times a week.
_WEEKDAY = regex(
    rf"(?<!\w)(?P<name>{'|'.join(n for n in _WEEKDAYS if len(n) > 5)})s?(?!\w)"
    r"|(?<!\w)(?P<short>(?-i:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun|lundi|mardi|jeudi|lunes))(?![\w'’])"
    r"|(?<![一二两三四五六七每几])(?:周|星期|礼拜)(?P<chinese>[一二三四五六日天])(?![次天个])",
    re.IGNORECASE,
)
# Several days at once: a text can name any of them instead.
_SPANS = regex(
    r"\b(?:week-?ends?|weekdays?|wochenend\w*|werktag\w*|working days?|business days?|fin de semana"
    r"|jours ouvr\w+|days? off|holiday)\b",
    re.IGNORECASE,
)
# "Monday to Friday" holds the days between.
_SPANNED = r"\s?(?:-|–|to|bis|au|a|through|thru)\s?"
# A day that was counted from another one: "remind them the day before".
_COUNTED = regex(
    r"""\b(?:days?|nights?|eve|hours?|h|tage?|stunden|jours?|heures?|días?|horas?)\s
        (?:before|after|earlier|later|ahead|prior|in\ advance|vorher|vor|davor|danach|später|avant
        |après|antes|después)
        |\b(?:vortag|vorabend|eve\ of|veille|víspera|remind\w*|erinner\w*|rappel\w*|tomorrow
        |yesterday|morgen|gestern|demain|hier|mañana|ayer|utc|gmt|[ecmp][sd]t|cet|cest
        |time\ ?zone)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "By Friday" and "before Friday" end there, "after Friday" and "from Friday" begin (`_LOWER`):
# another day on the right side of a bound keeps it.
_UPPER = (
    r"(?:by|before|until|till|latest|deadline|due|bis|vor|spätestens|avant|tard|antes|hasta|tardar)"
)
_LOWER = (
    r"(?:not before|after|from|since|earliest|ab|frühestens|nach|seit|nicht vor|après|partir|dès"
    r"|desde|después)"
)
# Characters around a day in which a word makes it a bound: "not before Friday". Further away, it
# bounds something else: "Tuesdays from 19:30 to 21:45, 7 October until 9 December".
_AROUND_DAY = 24


_LATEST = regex(r"\b(?:at the latest|spätestens|au plus tard)\b|前", re.IGNORECASE)


class _Day(NamedTuple):
    number: int
    text: str
    bound: str
    """``upper``, ``lower`` or nothing."""
    hour: str
    """The number right after it, which is a time, or a day that belongs to it."""


def _days(text: str) -> list[_Day]:
    days = []
    for match in _WEEKDAY.finditer(text):
        if match["chinese"]:
            number = _CHINESE_DAYS[match["chinese"]]
        else:
            number = _WEEKDAYS[(match["name"] or match["short"]).casefold()]
        near = re.split(r"[.;!?\n]", text[max(0, match.start() - _AROUND_DAY) : match.start()])[-1]
        after = re.split(r"[.;!?\n]", text[match.end() : match.end() + _AROUND_DAY])[0]
        bound = ""
        if re.search(rf"\b{_LOWER}\b", near, re.IGNORECASE):
            bound = "lower"
        elif re.search(rf"\b{_UPPER}\b", near, re.IGNORECASE) or _LATEST.search(after):
            bound = "upper"
        elif re.search(r"\b(?:at the earliest|onwards?|on|frühestens)\b", after, re.IGNORECASE):
            bound = "lower"
        hour = re.match(r"\W{0,3}(?:at |um |à |a las )?(\d{1,2})(?!\d)", text[match.end() :][:20])
        days.append(_Day(number, match[0], bound, hour[1] if hour is not None else ""))
    return days


def weekdays_of(text: str) -> dict[int, str]:
    """Return the weekdays that a text names, by their number from Monday, 0."""
    return {day.number: day.text for day in _days(text)}


def _weekdays(request: str, prompt: str) -> Iterator[Replaced]:
    mine, theirs = _days(request), _days(prompt)
    old = {day.number for day in mine} - {day.number for day in theirs}
    new = {day.number for day in theirs} - {day.number for day in mine}
    # Of several days, nothing shows which one replaces which.
    if len(old) != 1 or len(new) != 1:
        return
    both = f"{request}\n{prompt}"
    if _SPANS.search(both) or _COUNTED.search(both) or _has_span(both):
        return
    lost = next(day for day in mine if day.number in old)
    other = next(day for day in theirs if day.number in new)
    several = len({day.number for day in mine}) > 1 or len({day.number for day in theirs}) > 1
    if several and (not lost.hour or lost.hour != other.hour):
        return
    # "By Thursday" keeps to "before Friday", and "by Saturday" does not.
    later = (other.number - lost.number) % 7
    if lost.bound == "upper" and not (other.bound == "upper" and later <= _FEW_DAYS):
        return
    if lost.bound == "lower" and not (other.bound == "lower" and 7 - later <= _FEW_DAYS):
        return
    if not lost.bound and other.bound:
        return
    if repeats(request, prompt):
        yield Replaced(lost.text, other.text)


# Friday is four days after Monday, or three days before it. Up to three, it is clear which.
_FEW_DAYS = 3


def _has_span(text: str) -> bool:
    """Return whether days are given as a range: Mon-Fri."""
    ends = [match.span() for match in _WEEKDAY.finditer(text)]
    return any(
        re.fullmatch(_SPANNED, text[end:start], re.IGNORECASE) is not None
        for (_, end), (start, _) in pairwise(ends)
    )


# --- Months

_MONTH = "|".join(sorted((m for m in MONTHS if len(m) > 3 or m == "may"), key=len, reverse=True))
# "In May", but not "in May 12", which is a date.
_IN_MONTH = regex(
    rf"\b(?:in|im|en|for|für|of|pour|para|de)\s(?P<month>{_MONTH})\b(?!\s\d{{1,2}}\b)",
    re.IGNORECASE,
)
# Any mention of a month, also in a date. `_IN_MONTH` is the one that may be replaced.
_ANY_MONTH = regex(rf"(?<!\w)(?:{MONTH_NAMES})(?!\w)", re.I)
# Prompts that state other months for a reason: "Q2", "compared with April", "the previous month".
_MAY_HOLD_MONTHS = regex(
    r"\d[-/.]\d|\bq[1-4]\b|\b(?:months?|quarters?|monat\w*|quartal\w*|mois|trimestr\w*|mes(?:es)?|weeks?"
    r"|spring|summer|autumn|fall|winter|season|sommer|herbst|frühling|previous|next|last|vor\w*"
    r"|compar\w*|versus|vs)\b|月",
    re.IGNORECASE,
)


def _months(request: str, prompt: str) -> Iterator[Replaced]:
    mine = {MONTHS[m["month"].casefold()]: m["month"] for m in _IN_MONTH.finditer(request)}
    theirs = {MONTHS[m["month"].casefold()]: m["month"] for m in _IN_MONTH.finditer(prompt)}
    asked = {MONTHS[m[0].casefold()] for m in _ANY_MONTH.finditer(request)}
    said = {MONTHS[m[0].casefold()] for m in _ANY_MONTH.finditer(prompt)}
    old, new = set(mine) - said, set(theirs) - asked
    if len(old) != 1 or len(new) != 1 or _MAY_HOLD_MONTHS.search(prompt):
        return
    if repeats(request, prompt):
        yield Replaced(mine[old.pop()], theirs[new.pop()])


# --- Languages

_LANGUAGE_NAMES = (
    "english englisch anglais inglés ingles",
    "german deutsch allemand alemán aleman",
    "french französisch français francais francés frances",
    "spanish spanisch espagnol español castilian",
    "portuguese portugiesisch portugais portugués",
    "italian italienisch italien italiano",
    "dutch niederländisch néerlandais neerlandés flemish",
    "swedish schwedisch suédois sueco",
    "norwegian norwegisch norvégien noruego",
    "danish dänisch danois danés",
    "finnish finnisch finnois finlandés",
    "polish polnisch polonais polaco",
    "czech tschechisch tchèque checo",
    "hungarian ungarisch hongrois húngaro",
    "romanian rumänisch roumain rumano",
    "greek griechisch grec griego",
    "turkish türkisch turc turco",
    "russian russisch russe ruso",
    "ukrainian ukrainisch ukrainien ucraniano",
    "arabic arabisch arabe árabe",
    "hebrew hebräisch hébreu hebreo",
    "hindi",
    "chinese mandarin chinesisch chinois chino",
    "japanese japanisch japonais japonés",
    "korean koreanisch coréen coreano",
    "vietnamese vietnamesisch vietnamien vietnamita",
    "catalan katalanisch catalán",
    "irish irisch irlandais irlandés gaelic",
    "welsh walisisch gallois galés",
)
_LANGUAGES = {name: names for names in _LANGUAGE_NAMES for name in names.split()}
# "Into Norwegian", "Norwegian subtitles"; `after` shows that the language is no target: "English
# law".
_LANGUAGE = regex(
    rf"(?<!\w)(?:(?P<before>in|into|auf|ins|en|em|to)\s)?(?:\w+\s)?"
    rf"(?P<name>(?:{'|'.join(_LANGUAGES)}))(?!\w)(?:\s(?P<after>law|spelling|interpreter|version"
    r"|translation|subtitles?|speaker|speaking))?",
    re.IGNORECASE,
)


def _languages(request: str, prompt: str) -> Iterator[Replaced]:
    """Find another language to write in; another one is only allowed if it is English."""
    asked, said = (
        {_LANGUAGES[name] for name in re.findall(r"\w+", text.casefold()) if name in _LANGUAGES}
        for text in (request, prompt)
    )
    for old in _LANGUAGE.finditer(request):
        if _LANGUAGES[old["name"].casefold()] in said or not (old["before"] or old["after"]):
            continue
        for new in _LANGUAGE.finditer(prompt):
            other = _LANGUAGES[new["name"].casefold()]
            # Agents often work in English, whatever language the user gets.
            if other in asked or (other == _LANGUAGE_NAMES[0] and not new["after"]):
                continue
            if (old["after"] and old["after"] == new["after"]) or (old["before"] and new["before"]):
                yield Replaced(old["name"], new["name"])


# --- Mail addresses and files

# `r.lindqvist@fjordmail.example`, but not `@handle` or `user@host`, which may be a login.
_MAIL = regex(r"(?<![\w.+@-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}(?![\w@])")


def _addresses(request: str, prompt: str) -> Iterator[Replaced]:
    mine, theirs = set(_found(_MAIL, request)), set(_found(_MAIL, prompt))
    for old in sorted(mine - theirs):
        name, _, host = old.partition("@")
        for new in sorted(theirs - mine):
            other, _, place = new.partition("@")
            # `r.lindquist@` for `r.lindqvist@`, and `arbiter@ruprecht.test` for `.example`.
            typo = host == place and len(name) >= _SHORTEST_NAME and _is_typo(name, other)
            moved = name == other and host != place and host.split(".")[0] == place.split(".")[0]
            if typo or moved or (name == other and _is_typo(host, place)):
                yield Replaced(old, new)


# The first lookahead bounds the search: a run of letters is tried once.
_FILE = regex(
    r"(?<![\w./@\\:-])(?=[\w./-]{3,200}(?![\w/]))(?:[\w.-]{1,80}/){0,12}[\w-]{1,80}"
    r"\.[A-Za-z]\w{0,7}(?![\w/(])",
)
# `s3://bucket/path`, `https://site/page`, but not `a/b`.
_FOLDER = regex(r"(?<!\w)\w{2,8}://[\w./-]{3,200}")


def _files(request: str, prompt: str) -> Iterator[Replaced]:
    """Find a file that differs from a missing one like a slip: another year, version or ending."""
    for pattern in (_FILE, _FOLDER):
        mine, theirs = set(_found(pattern, request)), set(_found(pattern, prompt))
        for old in sorted(mine - theirs):
            if old in prompt or not re.search(r"[/_\d]|\.\w{2,}$", old):
                continue
            for new in sorted(theirs - mine):
                if _is_other_file(old, new) and not _is_part(old, new):
                    yield Replaced(old, new)


def _is_part(one: str, other: str) -> bool:
    """Return whether a path is a part of another: `retry.py` is `src/retry.py`."""
    return (
        one.endswith(f"/{other}")
        or other.endswith(f"/{one}")
        or one.rstrip("/") == other.rstrip("/")
    )


def _is_other_file(old: str, new: str) -> bool:
    path, another = PurePosixPath(old), PurePosixPath(new)
    if path.suffix != another.suffix and "://" not in old:
        return False
    folder, place = str(path.parent), str(another.parent)
    if "." not in (folder, place) and folder != place:
        return False
    return len(path.name) >= _SHORTEST_NAME and _is_typo(path.name, another.name)


# Two short names that differ in a letter are two names (`ann@` and `amy@`, `a.csv` and `b.csv`). In
# longer ones up to two letters are a slip: `r.lindquist@` for `r.lindqvist@`.
_SHORTEST_NAME = 6
_MOST_EDITS = 2


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match[0].casefold().rstrip(".") for match in pattern.finditer(text)]


@lru_cache(maxsize=1024)
def _is_typo(one: str, other: str) -> bool:
    """Return whether two names differ in at most two letters or digits."""
    if one == other or abs(len(one) - len(other)) > _MOST_EDITS:
        return False
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        last, row = row, [at]
        for place, theirs in enumerate(other, 1):
            row.append(min(last[place] + 1, row[-1] + 1, last[place - 1] + (letter != theirs)))
        if min(row) > _MOST_EDITS:
            return False
    return row[-1] <= _MOST_EDITS


# --- Persons, places and products

_TOKEN = regex(r"[^\W_]+(?:[.'’&-][^\W_]+)*|[,;:()]")
_TITLES = frozenset("mr mrs ms miss dr prof professor sir madam herr frau mme monsieur".split())  # noqa: SIM905
# How many words around a name have to be copied. The nearest one on each side always has to be.
_AROUND = 4
# First letters that differ between the names of a place in two languages: Cologne and Köln, Vienna
# and Wien, Beijing and Peking.
_LIKE_LETTERS = str.maketrans("cvbzyj", "kwpsii")


def _names(request: str, prompt: str) -> Iterator[Replaced]:
    """Find another name between the same words: "flat in Porto from" for "flat in Lisbon from"."""
    mine, theirs = _TOKEN.findall(request), _TOKEN.findall(prompt)
    if max(len(mine), len(theirs)) > _MOST_TOKENS or _is_title_case(theirs) or _is_title_case(mine):
        return
    words = {word.casefold() for word in mine}
    others = {word.casefold() for word in theirs}
    places: dict[str, list[int]] = {}
    for at, word in enumerate(theirs):
        if _is_name(theirs, at) and word.casefold() not in words:
            places.setdefault(theirs[at - 1].casefold(), []).append(at)
    for at, word in enumerate(mine):
        if not _is_name(mine, at) or word.casefold() in others:
            continue
        for place in places.get(mine[at - 1].casefold(), ()):
            other = theirs[place]
            if may_be_same_name(word, other) or not _stand_alike(mine, at, theirs, place):
                continue
            yield Replaced(word, other, sure=not may_be_inside(mine[at - 1], word, other))


# Words of a text whose names are compared: each one with all that follow the same word, so that the
# time can grow with the square of the length.
_MOST_TOKENS = 600


def may_be_inside(before: str, old: str, new: str) -> bool:
    """Return whether one name may be a part of the other: "a flat in Chiado" for "in Lisbon".

    A place can be given by its district, and a district by its town. Two large cities are never
    parts of one another, and two countries neither.
    """
    if before.casefold() not in _OF_PLACES:
        return False
    names = {_unaccented(old), _unaccented(new)}
    return not (names <= _CITIES or names <= _COUNTRIES)


# Words before the name of a place.
_OF_PLACES = frozenset(
    """
    in at near around to from via of for within inside toward towards im bei nach aus von für um à
    en dans près de pour vers depuis a cerca desde hacia para por em perto di da per
    """.split()  # noqa: SIM905
)
# A name that stands where a city or country of the request stood is a replaced place only if both
# are in these lists: "flat in Porto" for "flat in Lisbon", but not "flat in Alfama", a part of
# Lisbon. The lists can't be complete.
_CITIES = frozenset(
    """
    aachen aarhus aberdeen amsterdam ankara antwerp antwerpen athens atlanta auckland austin
    baltimore bangkok barcelona basel beijing belfast belgrade bergen berlin bern bilbao birmingham
    bogota bologna bonn bordeaux boston bratislava braga bremen brisbane bristol brno bruges
    brussels bucharest budapest cairo calgary cambridge canberra cardiff casablanca chicago cologne
    copenhagen cordoba cork cracow dallas delhi denver detroit dortmund dresden dubai dublin
    dubrovnik duisburg dundee durban dusseldorf edinburgh eindhoven essen exeter faro florence
    frankfurt freiburg gdansk geneva genoa ghent glasgow gothenburg graz grenoble groningen halifax
    hamburg hannover hanover helsinki houston innsbruck istanbul jakarta johannesburg karlsruhe
    kassel kiel kiev koln krakow kyiv kyoto lagos lausanne leeds leicester leipzig liege lille lima
    limerick linz lisboa lisbon liverpool ljubljana london lucerne lugano luxembourg lyon madrid
    mainz malaga malmo manchester mannheim marseille melbourne miami milan milano montreal moscow
    mumbai munich munchen munster nairobi nantes naples newcastle nice nottingham nuremberg odense
    oporto osaka oslo ottawa oxford padua palermo paris perth philadelphia phoenix pisa porto
    portland prague praha pretoria quebec quito reykjavik riga rome roma rotterdam salzburg santiago
    sarajevo seattle seoul seville sevilla shanghai sheffield singapore sofia split stavanger
    stockholm strasbourg stuttgart sydney tallinn tampere tokyo toronto toulouse trieste trondheim
    tunis turin turku uppsala utrecht valencia vancouver venice venezia verona vienna vilnius warsaw
    warszawa washington wien winterthur wroclaw york zagreb zurich
    """.split()  # noqa: SIM905
)
_COUNTRIES = frozenset(
    """
    albania argentina australia austria belgium bolivia brazil bulgaria canada chile china colombia
    croatia cuba cyprus czechia denmark ecuador egypt england estonia finland france germany greece
    hungary iceland india indonesia ireland israel italy japan kenya latvia lithuania malta mexico
    morocco netherlands nigeria norway peru poland portugal romania scotland serbia slovakia
    slovenia spain sweden switzerland thailand tunisia turkey ukraine uruguay vietnam wales
    """.split()  # noqa: SIM905
)


def _unaccented(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold().replace("ø", "o"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _is_title_case(tokens: list[str]) -> bool:
    """Return whether most words have a capital, as in German and in headings."""
    words = [token for token in tokens if token[:1].isalpha()]
    capitals = sum(word[:1].isupper() for word in words)
    # A third is enough for German, whose nouns have capitals. In a few words, names alone can be a
    # third: "flat in Porto from May".
    return 3 * capitals > len(words) if len(words) > 8 else 2 * capitals > len(words)


def _is_name(tokens: list[str], at: int) -> bool:
    """Return whether a word inside a sentence has a capital, and is no abbreviation or weekday."""
    word = tokens[at]
    # Shorter words with a capital are rather titles or abbreviations: "Mr", "Tue", "Via".
    if not at or at + 1 >= len(tokens) or not word.isalpha() or len(word) < 4:
        return False
    folded = word.casefold()
    if not word[0].isupper() or not word[1:].islower() or folded in COMMON | _TITLES:
        return False
    return folded not in MONTHS and folded not in _WEEKDAYS and folded not in _LANGUAGES


def may_be_same_name(one: str, other: str) -> bool:
    """Return whether two names may be one: Turin and Torino, Bombay and Mumbai, Robert and Rob."""
    first, second = (_plain_name(name) for name in (one, other))
    if any({one.casefold(), other.casefold()} <= names for names in _OTHER_NAMES):
        return True
    if first[0] != second[0]:
        return False
    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= _SAME_NAME


# How similar names have to be to be possibly the same (difflib): Turin and Torino are 0.73, Robert
# and Rob 0.67, Geneva and Genoa 0.73. When in doubt nothing is reported; Porto and Prague are 0.36.
_SAME_NAME = 0.5
# Names of one place or person that look different: earlier names, names in other languages, short
# forms. The list can't be complete.
_OTHER_NAMES = [
    frozenset(names.split())
    for names in (
        "mumbai bombay", "chennai madras", "kolkata calcutta", "bengaluru bangalore",
        "guangzhou canton", "myanmar burma", "istanbul constantinople", "saigon hochiminh",
        "netherlands holland niederlande", "germany deutschland allemagne alemania",
        "hungary magyarország ungarn", "finland suomi", "greece hellas griechenland",
        "japan nippon", "iran persia", "thailand siam", "eswatini swaziland", "czechia tschechien",
        "switzerland schweiz suisse svizzera", "austria österreich autriche",
        "england britain kingdom", "america states", "munich münchen monaco", "vienna wien",
        "genoa genova gênes", "florence firenze florenz", "livorno leghorn",
        "bratislava pressburg", "gdansk gdańsk danzig", "wroclaw wrocław breslau",
        "geneva genf genève ginevra", "aachen aix", "lviv lemberg lwów", "twitter x",
        "facebook meta",
        "google alphabet", "william bill billy will liam", "robert bobby robbie",
        "richard dick rick", "margaret peggy maggie greta", "elizabeth beth betty liza lisa eliza",
        "edward teddy ned", "james jimmy jamie", "john jack johnny", "henry harry hank",
        "charles chuck charlie", "alexander sasha alec xander sandy", "dorothy dolly",
        "katherine catherine kate kitty", "anthony tony", "joseph peppe giuseppe josé pepe",
        "francisco paco pancho", "theodore teddy", "antonia toni", "johannes hans",
        "rebecca becky", "sarah sally", "mary molly polly", "helen nell nelly", "christina tina",
    )
]  # fmt: skip


def _plain_name(name: str) -> str:
    plain = _unaccented(name)
    return plain[0].translate(_LIKE_LETTERS) + plain[1:]


def _stand_alike(mine: list[str], at: int, theirs: list[str], place: int) -> bool:
    """Return whether the words on both sides of two names are the same, some of them telling."""
    count, telling = 0, 0
    for step in (-1, 1):
        here, there = at + step, place + step
        first = True
        while 0 <= here < len(mine) and 0 <= there < len(theirs):
            one = mine[here].casefold()
            if one != theirs[there].casefold():
                break
            first = False
            if one[0].isalnum():
                count += 1
                # "In" and "from" are around any place; "flat" says which one is meant.
                telling += len(one) > 3 and one not in COMMON
                telling += one.isdecimal()
            here, there = here + step, there + step
        if first:
            return False
    return count >= _AROUND and telling >= 1
