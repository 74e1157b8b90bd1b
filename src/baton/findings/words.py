"""Common words, and sentences of a request: limits and questions.

A common word is too frequent to prove that a result was used.
"""

from __future__ import annotations

import re
from typing import TypeVar

from .lazy_patterns import VALUE, marked, regex
from .text_cache import text_cached

# A common word proves nothing: "The order was found and checked" and many unrelated answers contain
# `order`, `found` and `checked`. So these words are not facts of a result. The last two lines have
# technical words (`agent`, `tool`, `message`, `null`) that occur in almost every answer of an agent
# system.
_ENGLISH = """
a able about above accordingly across actual actually add added addition additional after again
against ago ahead all allow allowed almost alone along already also although always am amount an
and another answer answered any anybody anyone anything anyway apart appear appears are area around
as ask asked asking asks at available away back base based be became because become been before
began begin behind being below beside best better between beyond bit both bring but by call called
can cannot carefully case cases certain certainly change check checked checking clear clearly come
comes coming complete completed concerning confirm confirmed consider considered contain contains
could couple current currently data day days dear detail detailed details did different do does
doing done down due during each early either else end ended enough etc even ever every everyone
everything exact exactly example except expect fact few figure fine first follow following for
found find finding findings form from full further gave general generally get gets getting give
given gives giving go goes going gone good got great had happen happened hardly has have having he
hello help helped helpful hence her here hers hi high him his hold hope how however i if important
in include included includes including indeed info information inside instead into is issue it item
items its itself job just keep kept kind know known knows large last late later latest least leave
left less let like likely list listed little long longer look looked looking looks lot made main
mainly make makes making many matter may maybe me mean means mention mentioned might mine more
moreover most mostly much must my myself name named near nearly necessary need needed needs neither
never new next nice no nobody none nor normal not note nothing now number numbers of off often ok
okay on once one ones only onto open or order other others otherwise ought our out over overall own
part particular per perhaps place please point points possible possibly present probably problem
proceed process provide provided provides put quite rather read ready really reason receive
received recent recently refer regard regarding related reply report reported request requested
require required requires respond response rest result results return returned right run said same
saw say saying says second see seem seems seen set several shall she should show showed shown shows
similar simply since single small so some somebody someone something soon sorry specific start
started state step steps still stop such sum summary sure take taken takes task tell tells than
thank thanks that the their them then there therefore these they thing things think this those
though through thus time times to today together told too took total toward towards tried try
trying turn two type under unless until up update updated upon us use used useful user uses using
usually value values various very via view want wanted wants was way we well went were what
whatever when where whether which while who whole whom whose why will wish with within without wont
word words work worked working works would write written yes yet you your yours yourself isn aren
wasn weren don doesn didn hasn haven won wouldn couldn shouldn can't ain ll ve re
true false null none null undefined agent agents assistant customer message tool tools
"""
_UNITS = """
eur euro euros usd dollar dollars gbp pound pounds chf nok sek dkk jpy yen cent cents percent ms sec
secs seconds minute minutes min mins hour hours hrs week weeks month months year years km cm mm
meter meters metre metres mile miles kg gram grams ton tons liter liters litre litres celsius sqm m²
mg ml cl dl mmol mol mw hz rpm psi kpa mph
inch inches ft foot feet yard yards gallon gallons lb lbs oz ounce ounces hectare hectares acre
acres m³ fahrenheit degree degrees kb mb gb tb byte bytes px am pm utc gmt kwh kw watt watts bar
"""
_GERMAN = """
aber alle allem allen aller alles als also am an andere auch auf aus bei beim bereits bin bis bist
bitte da dabei damit danach dann daran darauf das dass dazu dein deine dem den denn der des die dies
diese diesem diesen dieser dieses doch dort durch ein eine einem einen einer eines er es etwa euch
fur für gab gegen gibt haben hat hatte hier ich ihm ihn ihnen ihr ihre im in ins ist ja jede jeder
jetzt kann kannst kein keine konnen können konnte mal man mehr mein meine mich mir mit muss nach
nein nicht nichts noch nun nur ob oder ohne schon sehr sein seine seit sich sie sind so soll sollen
sollte sowie uber über um und uns unser unter viel vom von vor war waren was weil welche wenn wer
werden wie wieder wir wird wo wurde zu zum zur zwischen
"""
_FRENCH = """
ainsi alors apres après au aucun aussi autre aux avant avec avez avoir avons bien bonjour car ce
cela ces cet cette chez comme comment dans de des deux dont donc du elle elles en encore entre est
et ete été etre être eu fait faire faut il ils je la le les leur lui ma mais me meme même mes moi
mon ne nos notre nous on ont ou où par pas peut plus pour pouvez quand que quel quelle qui sa sans
se ses si son sont sous sur ta te tes toi ton tous tout toute toutes tres très tu un une vers voici
vos votre vous
"""
_SPANISH = """
al algo algun alguna ante antes aqui aquí asi así aun cada como con contra cual cuál cuando cuanto
cuánto de del desde donde dónde dos el ella ellas ellos en entre era eres es esa ese eso esta está
estaba estan están estas este esto estos fue ha haber hace han hasta hay hola la las le les lo los
mas más me mi mis mucho muy nada ni no nos nosotros nuestra nuestro otra otro para pero poco por
porque puede pues que qué quien quién se sea ser si sí sido sin sobre solo sólo son su sus tal
tambien también tan tanto te tiene tienen todo todos tu tus un una unas uno unos usted ustedes y ya
"""

LANGUAGES: dict[str, frozenset[str]] = {
    "en": frozenset(_ENGLISH.split()),
    "de": frozenset(_GERMAN.split()),
    "fr": frozenset(_FRENCH.split()),
    "es": frozenset(_SPANISH.split()),
}
"""For each language, the words that occur in almost every text."""

# `40 EUR` is one fact, 40. If `EUR` were a second one, any other price in euros would seem to use
# the result.
UNITS = frozenset(_UNITS.split())
"""Units and currencies: next to a number, they add nothing to it."""

COMMON = UNITS.union(*LANGUAGES.values())

# "the 88", "under 200" and "find 3": every prompt has prepositions, articles and verbs. If they
# counted, every prompt would mention what the number belongs to. "order 88" has a noun.
NO_LABELS = frozenset(
    """
    and are for from the was with over under than least most about only into until before after
    within give book pay send find get take check does did has had und oder für von bis mit nach
    über pour avec dans les des del los las para con por que
    """.split()  # noqa: SIM905
)
"""Words before a number or name that do not state what it belongs to."""

# A result says `2 seats`, and the caller says `two seats` or `both`. `one` is missing on purpose:
# it is an article or a pronoun more often than a number (see `_ONE` in `facts.py`).
NUMBER_WORDS: dict[str, int] = {
    word: value
    for value, words in {
        2: "two zwei deux dos both twice",
        3: "three drei trois tres third",
        4: "four vier quatre cuatro fourth",
        5: "five fünf cinq cinco fifth",
        6: "six sechs seis",
        7: "seven sieben sept siete",
        8: "eight acht huit ocho",
        9: "nine neun neuf nueve",
        10: "ten zehn dix diez",
        11: "eleven elf onze",
        12: "twelve dozen zwölf douze doce",
        13: "thirteen",
        14: "fourteen",
        15: "fifteen quinze quince",
        16: "sixteen",
        17: "seventeen",
        18: "eighteen",
        19: "nineteen",
        20: "twenty zwanzig vingt veinte",
        30: "thirty dreißig trente treinta",
        40: "forty vierzig quarante",
        50: "fifty fünfzig cinquante",
        60: "sixty sechzig soixante",
        70: "seventy siebzig",
        80: "eighty achtzig",
        90: "ninety neunzig",
        100: "hundred hundert",
    }.items()
    for word in words.split()
}

# `2024-05-12` in a result comes back as `12 May` or `12. Mai` in an answer.
V = TypeVar("V")

_ALIKE = str.maketrans(
    {
        "\N{LATIN SMALL LETTER LONG S}": "s",
        "\N{LATIN SMALL LETTER DOTLESS I}": "i",
        "\N{KELVIN SIGN}": "k",
        "\N{COMBINING DOT ABOVE}": "",  # the dot of a capital I with a dot, in lower case
    }
)


class Spelled(dict[str, V]):
    """A table of words in lower case, for words that a pattern found.

    A pattern that ignores case treats the long s as an s, Turkish dotless and dotted i as an i, and
    the kelvin sign as a k, so it can find words that are not in the table.
    """

    def __missing__(self, word: str) -> V:
        plain = word.translate(_ALIKE)
        if plain == word:
            raise KeyError(word)
        return self[plain]


MONTHS: Spelled[int] = Spelled(
    {
        name: number
        for number, names in enumerate(
            (
                "january jan januar janvier enero",
                "february feb februar février febrero",
                "march mar märz mars marzo",
                "april apr avril abril",
                "may mai mayo",
                "june jun juni juin junio",
                "july jul juli juillet julio",
                "august aug août agosto",
                "september sep sept septembre septiembre",
                "october oct oktober octobre octubre",
                "november nov novembre noviembre",
                "december dec dezember décembre diciembre",
            ),
            1,
        )
        for name in names.split()
    }
)


MONTH_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
"""A pattern of all names, the longest first."""

# Words with which a sentence may limit the work. The list is broad, because it suppresses findings:
# if the prompt has any of these words ("Keep brand names as they are"), it may express the limit of
# the request ("Never change product names") in other words, and nothing is reported. An extra word
# here misses a finding; a missing word causes a false alarm.
_LIMITS = (
    r"do not|don't|don’t|must not|mustn't|may not|never|must|only|except|without|"
    r"at (?:most|least)|no (?:more|less|fewer|later|earlier) than|up to|under|below|within|"
    r"maximum|minimum|max|min|limit\w*|budget|before|until|by no means|nothing else|keep|leave|"
    r"read[- ]only|unchanged|avoid|exclude|excluding|excl|w/o|instead of|not|"
    r"nicht|nur|ohne|höchstens|mindestens|maximal|keine?n?|bis|"
    r"seulement|uniquement|sans|jamais|ne \w+ (?:pas|rien)|au (?:plus|moins)|"
    r"solo|sólo|únicamente|sin|nunca|como máximo|al menos|no"
)
# Wherever one of these words may limit: "under 200 EUR", "not on Friday", but not "underline".
_LIMIT = regex(rf"(?<!\w)(?:{_LIMITS})(?!\w)|[<>≤≥]", re.IGNORECASE)
# The opposite of `_LIMITS`: words that hardly ever mean anything but a limit, because here a match
# leads to a finding. `under`, `before` or `not` are left out: "the flat under the roof" and "I
# could not reach him" forbid nothing, "Never change product names" does. The seeded faults of
# benchmarks/accuracy do not decide between the two lists: with either list in both places, found
# faults and false alarms stay the same. Their limits nearly all hold a number, and a number is
# judged as a fact, not by these words.
_STRICT = regex(
    r"(?<!\w)(?:do not|don't|don’t|must not|mustn't|never|only|except|without|nothing else|"
    r"nicht|nur|ohne|keine?n?|seulement|uniquement|sans|jamais|solo|sólo|sin|nunca)(?!\w)",
    re.IGNORECASE,
)
# A semicolon, a new line and "..., but ..." split a request like a full stop: in "Check order 88,
# but leave order 90 alone", each half concerns a different dispatch. The dots of "max. 160 EUR",
# "approx. 5", "Dr. Haldane", "b. 1988" and the German "3. April" do not end a sentence.
_SHORTENED = "".join(
    rf"(?<!\b(?i:{word})\.)"
    for word in (
        *("max", "min", "approx", "ca", "circa", "no", "nr", "incl", "inkl", "vs", "bzw", "sec"),
        *("art", "p", "pp", "mr", "mrs", "ms", "dr", "st", r"e\.g", r"i\.e", r"z\.b"),
        "geb",
    )
)
_END = regex(
    rf"(?<=[.!?;]){_SHORTENED}(?!(?<=\bb\.)\s\d)(?!(?<=\d\.)\s(?:[a-zäöü]|(?i:{MONTH_NAMES})\b))\s+"
    r"|\n+|,\s+(?=(?:but|and|aber|und|mais|et|pero|y)\b)|\s(?=but\b)"
)
# `[ticket SHOP-13] Check that src/retry.py compiles.` names the request in a tracker. The agent
# that compiles the file does not need the number, so it must not count as dropped.
_TAG = regex(r"^\s*\[[^\]\n]{1,60}\]\s*")


def sentences(text: str) -> list[str]:
    """Split a request into sentences, without a tag in brackets at its start."""
    return [part.strip() for part in _END.split(_TAG.sub("", text)) if part and part.strip()]


# Parts of a sentence that may concern different agents: "Order 1,500 screws and 6 hinges, delivery
# in two weeks". A range (`between 10 and 12`) and a comma in a number stay whole.
# A run of spaces is only tried from its start: 20,000 spaces took seconds.
_CLAUSE = regex(r"(?<!\d),\s*|,\s+|:\s+|(?<!\s)\s+(?:(?:and|und|et|y|[–—-])\s+|(?=but\b|aber\b))")
# "2023 and 2024" is one thing, "1,500 screws and 6 hinges" are two.
_NUMBER_LAST = regex(r"(?:^|\s)[\d.,:%€$£]+$")
# Before an "and", it keeps both numbers in one clause: "between 10 and 12".
_BETWEEN = regex(r"\b(?:between|zwischen|entre)\s+\S+(?:\s\S+)?$", re.IGNORECASE)


@text_cached
def clauses(sentence: str) -> tuple[str, ...]:
    """Split a sentence into parts that may request different things."""
    parts: list[str] = []
    start = 0
    for match in _CLAUSE.finditer(sentence):
        before = sentence[start : match.start()]
        if _BETWEEN.search(before):
            continue
        if _NUMBER_LAST.search(before) and re.match(r"\W*\d", sentence[match.end() :]):
            continue
        parts.append(before)
        start = match.end()
    parts.append(sentence[start:])
    return tuple(part for part in parts if part.strip())


_LETTER = regex(r"[^\W\d_]")
_LATIN = regex(r"[A-Za-z\u00aa-\u024f\u1e00-\u1eff]")


def in_other_script(text: str) -> bool:
    """Return whether most letters of a text are not Latin: Chinese, Russian, Arabic.

    The rules know words of languages with Latin letters. In others they can't tell history from a
    wish, or a courtesy from a limit.
    """
    if text.isascii():
        return False
    letters, latin = (len(each.findall(text)) for each in (_LETTER, _LATIN))
    return latin < letters / 2


def clause_with(part: str, sentence: str) -> str:
    """Return the first clause of a sentence that has a part of it, or else the sentence."""
    return next((clause for clause in clauses(sentence) if part in clause), sentence)


# Thanks, greetings and small talk request nothing: "Thanks for calling back on Tuesday at 9!" has a
# day and a time that no agent needs.
_COURTESY = regex(
    r"""(?<!\W)\W*(?:(?:many\ )?thanks?\b|thank\ you|good\ (?:morning|day|afternoon|evening|night)
        |hello\b|hi\b|hey\b|dear\b|sorry\b|apologies|(?:i\ )?hope\b|have\ a\ |see\ you
        |talk\ to\ you|best\ regards|kind\ regards|welcome\ back
        |(?:it\ was\ )?(?:nice|good|great)\ (?:to|talking|speaking|meeting)
        |i(?:'ll|\ will|'m|\ am)\ (?:back|away|out|off|on\ (?:leave|holiday|vacation))\b
        |danke|vielen\ dank|guten\ (?:morgen|tag|abend)|merci|bonjour|bonsoir|gracias|hola
        |buenos)""",
    re.VERBOSE | re.IGNORECASE,
)


# "So 5." and "that makes 12 in all", but not "so 5 rooms are left for us".
_SUMS_UP = regex(
    r"""^\W*(?:so|that(?:['’]s|\ is|\ makes|\ leaves)|das\ macht|das\ sind|bleiben|donc|ça\ fait
        |quedan)\ (?:just\ |only\ |nur\ )?\d+(?:\ \w+){0,2}\W*$""",
    re.VERBOSE | re.IGNORECASE,
)


def sums_up(sentence: str) -> bool:
    """Return whether a sentence only gives the number that counts in the end, as in "So 5"."""
    return _SUMS_UP.match(sentence) is not None


def is_courtesy(sentence: str) -> bool:
    """Return whether a sentence only greets, thanks or wishes, and requests nothing."""
    # A longer sentence that begins with thanks goes on with what it wants.
    return len(sentence) < 120 and "?" not in sentence and _COURTESY.match(sentence) is not None


# What a request limits or repeats is a small number, often in words: "in two sentences".
_COUNT = r"(?:\d[\d.,]{0,15}|an?|one|two|three|four|five|six|seven|eight|nine|ten|half a dozen)"
# Parts of a text, which the caller writes: "in two sentences". "Two pages" may be a document.
_FORM = r"(?:sentences?|words?|lines?|paragraphs?|bullets?|bullet points?|characters?|examples?)"
# Statements like "I have asked you twice now": how often a user asked, waited or wrote.
_OWN_DEEDS = (
    r"\b(?:I|we)(?:'ve| have| had)?(?: already| now)? (?:asked|told|called|rung|written|wrote|said"
    r"|waited|tried|mailed|complained|reported|been waiting|been trying)\b[^,.;!?]*"
)
# The length of the answer, which is the caller's task: it writes or shortens the answer.
_LENGTH = (
    rf"\b(?:in|within|at most|no more than|not more than|max(?:imum|\.)?|up to|under|about)"
    rf" {_COUNT}(?: \w+)? {_FORM}\b"
)
# The same in German, French and Spanish: "in drei Sätzen", "moins de 100 mots".
_LENGTH_ELSEWHERE = (
    r"\b(?:höchstens|maximal|max\.?|nicht mehr als|unter|in|au plus|pas plus de|moins de|maximum|en"
    r"|no más de|como máximo|máximo|menos de) \w+(?: \w+)?"
    r" (?:Sätzen?|Wörtern?|Zeilen?|Zeichen|Absätzen?|Stichpunkten?|phrases?|mots?"
    r"|lignes?|caractères|frases?|palabras?|líneas?|caracteres)\b"
)
# "Find 3 hotels" is a number of results, "book 3 rooms" one that is needed.
_FINDS = "find|list|show|name|give|propose|suggest|recommend|bitte|nenne|finde|trouve|donne|dame"
# "If Friday is impossible, Saturday at 10", "failing that, room 4": what to do if that fails.
_NOT_POSSIBLE = (
    r"(?:impossible|not|no longer|full|gone|taken|sold out|fails|unavailable|\w+n['’]t|nicht"
    r"|kein\w*|unmöglich|voll|ausgebucht|pas|complet|no|imposible|completo)"
)
_FALLBACK = (
    rf"\b(?:if|falls|wenn|si)\b[^,;.!?]{{1,60}}\b{_NOT_POSSIBLE}\b[^,;.!?]{{0,40}},[^.;!?]{{1,100}}"
    r"|\b(?:failing that|notfalls|à défaut)\b[^.;!?]{1,100}"
)
# "I'm 1.96, so a long bed": the work needs what follows from it.
_REASON = (
    r"\b(?:(?:I|he|she)(?:['’]m|['’]s| am| is)|ich bin|er ist|sie ist|je fais"
    r"|il fait|elle fait|mido)\s[^,;.!?]{0,8}\d[^,;!?]{0,12},"
    r"\s(?:so|hence|therefore|also|daher|deshalb|donc|así que)\b"
)
_ASIDES = tuple(
    regex(pattern, re.IGNORECASE)
    for pattern in (
        _OWN_DEEDS,
        _LENGTH,
        _LENGTH_ELSEWHERE,
        rf"\bfor the {_COUNT}(?:st|nd|rd|th)? time\b",
        r"\bfor the (?:second|third|fourth|fifth) time\b",
        rf"\b{_COUNT}(?: \w+)? {_FORM} (?:is|are|will be) (?:enough|fine|plenty|sufficient)\b",
        rf"\b(?:list|show|name|give)(?: me| us)? (?:at most|no more than|up to|max\.?) {_COUNT}\b",
        # The number of things to find: a plan may look for more, and choose.
        rf"\b(?:{_FINDS})(?: me| us| mir| uns)? {_COUNT}\s(?=\w{{3,}})",
        _FALLBACK,
        _REASON,
    )
)
# "from 45 to 52 USD" for a change: the agent that makes it only needs the new value.
_CHANGE = regex(
    r"\b(?:rais|lower|chang|increas|decreas|reduc|mov|shift|postpon|reschedul|updat|cut|extend|"
    r"shorten|upgrad|downgrad|switch|adjust|correct|set|drop|erhöh|senk|änder|verschieb)\w*\b"
    r"[^.;!?]{0,200}?\b(?:from|von)\s+(?P<old>\S+(?:\s\S+){0,3}?)\s+(?:to|auf)\s",
    re.IGNORECASE,
)
# "Cost centre 4711, not 4712".
_NOT_THIS = regex(
    r"\d[^\s,;]{0,30},?\s(?:and |but )?(?:not|nicht|pas|no)\s"
    r"(?:the |die |der |das |le |la |el |los )?(?P<old>#?\d[^\s,;.!?]{0,30})",
    re.IGNORECASE,
)
# "Instead of 12", "no longer 12": the old value, which the work does not need.
_INSTEAD = regex(r"\b(?:instead of|rather than|no longer|statt)\s+(?P<old>\S+(?: \S+)?)", re.I)


@text_cached
def asides(sentence: str) -> tuple[str, ...]:
    """Return parts of a sentence whose numbers are not needed for the requested work."""
    spans = [match[0] for pattern in _ASIDES for match in pattern.finditer(sentence)]
    old = [
        m["old"] for pattern in (_CHANGE, _INSTEAD, _NOT_THIS) for m in pattern.finditer(sentence)
    ]
    return (*spans, *old)


# "About 4", "~4", "gut 4": another number near it says the same. "At 4" is exact.
_ROUGHLY = regex(
    r"(?:~|≈|\b(?:about|around|roughly|approximately|approx\.?|ca\.?|circa|some|nearly|almost|say|like|maybe"
    r"|perhaps|probably|etwa|ungefähr|rund|gut|knapp|environ|unos|unas|aproximadamente|casi)\s)\s?"
    rf"{VALUE}(?!\w)",
    re.IGNORECASE,
)


def is_rough(number: str, sentence: str) -> bool:
    """Return whether a sentence gives a number roughly: `four` in "about four hours"."""
    return _ROUGHLY.search(marked(number, sentence)) is not None


# "The 3 smoke tests", "all 12 members": whoever has the things knows their number. "3 smoke tests"
# states it.
_KNOWN = regex(
    r"\b(?:the|all|these|those|our|my|your|their|its|die|alle|diese|les|los|las|tous|todos)"
    rf"\s(?:the\s|our\s|my\s)?{VALUE}\s[^\W\d]{{3,}}",
    re.IGNORECASE,
)
# `1010 Vienna`: the town is enough. "1010 guests" has no capital.
_POSTAL = regex(rf"(?<!\d){VALUE}\s[A-ZÄÖÜ][a-zäöüß]{{2,}}")


# "Our U10 tournament" and "the A4 page" say which kind of tournament or page. Not "room B7".
_KIND = regex(r"[A-Za-z]{1,2}\d{1,2}")


def is_known_anyway(number: str, sentence: str) -> bool:
    """Return whether a number is a known count, a kind or a postal code: "the 3 smoke tests"."""
    text = marked(number, sentence)
    if (number.isdecimal() or _KIND.fullmatch(number)) and _KNOWN.search(text) is not None:
        return True
    return re.fullmatch(r"\d{4,5}", number) is not None and _POSTAL.search(text) is not None


# A name and a date of birth: "Lenz (born 1951)", "Herrn Brandl, geb. 1939". Not "20 years of cover,
# born 1981", which is about the work.
_BORN = regex(
    r"(?<!\w)[A-ZÀ-Þ][\w'’-]{1,40},?\s\(?"
    r"(?:born|b\.|d\.?o\.?b\.?:?|geb(?:\.|oren)|née?|nacid[oa]|nat[oa]|geboren|ur\.)\s"
    r"(?:(?:on|in|am|im|en|el|le|il|nel|op)\s)?(?:[^\s,;()]+\s){0,4}?"
    rf"{VALUE}(?!\w)"
)


def is_of_birth(number: str, sentence: str) -> bool:
    """Return whether a number is part of the date of birth after a person's name."""
    return _BORN.search(marked(number, sentence)) is not None


# "Terrace if it's above 20 degrees", "reorder when fewer than 200 are left". Not "at most 40 EUR if
# possible", where the condition comes later and limits nothing.
_CONDITION = regex(
    r"\b(?:if|when(?:ever)?|once|unless|provided|in case|as (?:long|soon) as|should|falls|wenn"
    r"|sobald|sofern|solange|si|s['’]il|lorsque|quand|dès que|cuando|siempre que|se|quando|als"
    r"|indien)\b"
    r"(?!\s(?:possible|available|needed|necessary|you can|möglich|posible|possibile))"
    rf"[^,;!?]{{0,120}}?(?<!\w){VALUE}(?!\w)",
    re.IGNORECASE,
)


def is_condition(number: str, sentence: str) -> bool:
    """Return whether work depends on a number: `20` in "terrace if it's above 20 degrees"."""
    return _CONDITION.search(marked(number, sentence)) is not None


# "Finance shows 81.2k", "laut App 312 kWh".
_CLAIMS = regex(
    r"""\b(?:shows?|says?|has|reports?|states?|claims?|displays?|counts?|lists?|reads?|quotes?|gives?
        |thinks?|according\ to|zeigt|sagt|meldet|nennt|hat|laut|behauptet|indique|dit|affiche|donne
        |selon|dice|marca|muestra|indica|según|mostra|segnala|secondo)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def is_claimed(number: str, sentence: str) -> bool:
    """Return whether a sentence says that somebody or something gives a number, before it."""
    before, itself, _ = sentence.partition(number)
    return bool(itself) and _CLAIMS.search(before) is not None


@text_cached
def only_questions(text: str) -> bool:
    """Return whether a text only asks questions and requests no action."""
    parts = sentences(text)
    return bool(parts) and all(part.endswith("?") for part in parts)


# "Stays at 40" and "we are down to 40" describe, "stay below 40" requests.
_REMAINS = regex(
    r"\b(?:stays?|remains?|still|keeps?|bleib\w+|reste\w*|sigue\w*"
    r"|(?:we|i|they|it)(?:['’](?:re|m|s)| are| am| is) (?:down to|up to|currently|at))\s"
    # "Stay below 4.80" requests an action.
    rf"(?:(?!(?:below|under|above|over|within|or|between)\b)\w+\s){{0,2}}{VALUE}(?!\w)"
    # "Current rate 1.35 %." is where things stand. "Current budget 300 EUR" is a limit, and "keep
    # the current 20 nodes" an order.
    r"|(?:^|[.;(\n])\W{0,9}(?:(?:the|my|our|your|der|die|das|mein\w*|unser\w*|le|la|el)\s)?"
    r"(?:current(?:ly)?|present(?:ly)?|at present|as of now|aktuell\w*|derzeit\w*|bisherig\w*"
    r"|actuel\w*|actual\w*|attual\w*)\s"
    r"(?:(?!(?:budget|limit|cap|ceiling|max\w*|min\w*|deadline|target)\b)[^\W\d]+\s){1,3}?"
    rf"(?:(?:is|are|at|of|ist|liegt bei|est|es|:)\s?)?(?:[€$£]\s?)?{VALUE}",
    re.IGNORECASE,
)


def remains(number: str, sentence: str) -> bool:
    """Return whether a number only describes how something is, or should stay.

    "The US cluster stays on 2.15", "we are down to 40 packs", "current rate 1.35 %": none of them
    requests an action.
    """
    return _REMAINS.search(marked(number, sentence)) is not None


# "By 12 May", "due 12 May": the end of all work. "On 12 May" is the day of some of it.
_DEADLINE = regex(
    r"\b(?:by|until|till|before|due|no later than|deadline:?|bis|vor|avant|antes d\w+|para)"
    rf"\s(?:the |zum |am |le |el )?{VALUE}(?!\w)",
    re.IGNORECASE,
)


def is_deadline(date: str, sentence: str) -> bool:
    """Return whether a date or time is a deadline for all work: a planner need not pass it on."""
    return _DEADLINE.search(marked(date, sentence)) is not None


# A prompt that says that others do something, or that contains their texts, is part of a plan.
_REFERS = regex(
    r"""\b(?:other|another|different|next|previous)\ (?:agent|colleague|team|researcher|helper)
        |\b(?:somebody|someone)\ else\b|\bothers\ (?:do|are|will|take|handle)\b|\bcolleague
        |\bsub-?task|\bpart\ (?:\d|of\ a)|\byour\ part|\bstep\ \d+\ of|\bnot\ your\b
        |\b(?:is|are|be|gets?)\ (?:done|handled|dealt\ with|taken\ care\ of|looked\ (?:up|after)
            |written|made|checked|inserted|added)\b[^.;]*\b(?:by|later|afterwards|elsewhere
            |separately|already|then)\b
        |\b(?:below|above)\b(?!\s(?:[A-Z]{3}\s|[€$£]\s?)?\d)|\b(?:attached|enclosed|aforementioned)\b
        |\bfindings\ of\b|\bseparately\b
        |(?:^|[.!?]\s+)only\b|\bonly\ (?:check|review|verify|look)\b|\bhands?\ (?:you|over)\b
        |\bgesondert|\bandere[rnms]?\ (?:agent|kolleg)|\bnur\ diese|\boben\b|\bunten\b
        |\botro\ agente|\bun\ autre\ agent|\bci-dessous""",
    re.VERBOSE | re.IGNORECASE,
)


@text_cached
def refers_to_others(prompt: str) -> bool:
    """Return whether a prompt states that others do part of the work, or passes on their output."""
    return _REFERS.search(prompt) is not None


def sets_limit(text: str) -> bool:
    """Return whether a text may limit the work."""
    return _LIMIT.search(text) is not None


def forbids(text: str) -> bool:
    """Return whether a sentence certainly limits the work."""
    return _STRICT.search(text) is not None


# The subject of a sentence that only reports something. "We must not exceed 500 EUR" and "I don't
# want plastic" do set a limit.
_TELLS_OF = regex(
    r"""^\W*(?:(?:and|but|so|because|as|since|also|if|und|aber|denn|weil|et|mais|y|pero)\ ){0,4}
        (?:I|we|he|she|it|they|nobody|no\ one|somebody|there|that|this|everybody
        |\w+\ of\ (?:us|them)|\w+\ von\ (?:uns|ihnen)|\w+\ d['’]entre\ (?:nous|eux)
        |(?:my|our|his|her|their)\ \w+
        |ich|wir|er|sie|es|niemand|das|(?:mein|unser|sein|ihr)e?\ \w+
        |je|j['’]|nous|il|elle|ils|elles|on|personne|yo|nosotros|él|ella|nadie)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Words that turn a report into a limit: "we must not exceed 500 EUR", "I don't want plastic". "We
# did not exceed it" is a report.
_DEMANDS = regex(
    r"""\b(?:must|may|should|shall|can(?:not|['’]t)?|want|wants|need|needs|allowed|supposed|allergic
        |darf|dürfen|soll|sollen|muss|müssen|will|wollen|möchte\w*|doit|doivent|peut|faut|veux
        |debe|deben|puede|quiero)\b|n['’]t\ (?:want|need)\b|\bmustn""",
    re.VERBOSE | re.IGNORECASE,
)
# Things that the caller itself does or does not do: whom it informs, how it answers, whether it
# waits, and what it does with the result ("don't send it").
_OF_CALLER = regex(
    r"""\b(?:tell|hear|know|inform|calls?|calling|phone|ring|e-?mails?|mails?|repl(?:y|ies)|answers?
        |respond|ask|asking|(?:send|publish|post|submit|forward)\ (?:it|them|anything)
        |wait|waiting|worry|hurry|rush|bother|disturb|believe|think|forget
        |hesitate|excuses?|jargon|reports?|urgent|sure|problem|idea|longer|sag\w*|erzähl\w*|erfahr\w*|anruf\w*|ruf\w*|warte\w*
        |antwort\w*|lust|eile|dire|dites|appel\w*|attend\w*|réponse|llam\w*|diga\w*|esper\w*
        |respuesta)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def is_callers(limit: str) -> bool:
    """Return whether a negation limits no work: "nobody called me", "don't tell Sandra yet".

    It states a fact, or what the caller itself should or should not do.
    """
    if _OF_CALLER.search(limit) is not None:
        return True
    return _TELLS_OF.match(limit) is not None and _DEMANDS.search(limit) is None


# A statement about something else: "the author has kept bees for 30 years", or its second half,
# "has kept bees for 30 years". Not "the driver has to ring first".
_HAS = (
    r"(?:is|are|was|were|has|had|does|did|says?|said|shows?|ends?|ist|sind|war|waren|hat|hatten?|haben"
    r"|est|sont|était|étaient|ont|es|son|era|eran|tienen?|está|están|ha|han)(?!\ to\b)"
)
# "The author has kept bees", "has kept bees", but not "the driver has to ring".
_STATES = regex(
    rf"""^\W*(?:(?:and|but|so|because|as|since|und|aber|denn|weil|et|mais|y|pero)\ ){{0,4}}
        (?:(?:the|this|that|these|those|der|die|das|den|ein|eine|le|la|les|un|une|el|los|las|una)
            (?:\ \S+){{1,4}}?\ )?
        {_HAS}\b""",
    re.VERBOSE | re.IGNORECASE,
)
# What turns a statement into a request: "I'd like 2 seats", "nous cherchons un gîte". Not the nouns
# in "my order was 3 days late".
_WISHES = regex(
    r"""\b(?:please|would|could|like|(?:look|search|order|book|plann)ing|wish|prefer|plan\ to
        |have\ to|has\ to|got\ to|going\ to|bitte|suchen?|brauch\w*|bräucht\w*|hätte\w*|würde\w*
        |wünsch\w*|bestellen?|buchen?|voudr\w+|aimer\w+|cherch\w+|besoin|souhait\w+|prévo\w+|busc\w+
        |necesit\w+|quisier\w+|gustar\w+|querr\w+|tengo\ que|tenemos\ que)\b|['’]d\b""",
    re.VERBOSE | re.IGNORECASE,
)


def only_states(clause: str) -> bool:
    """Return whether a clause states something and requests nothing: "I still have card 2203".

    Words can't show whether a receiver needs a statement: "4 are coeliac" is needed for a lunch,
    "four of us join from Lisbon" is not for a room.
    """
    if "?" in clause or wants(clause):
        return False
    return _TELLS_OF.match(clause) is not None or _STATES.match(clause) is not None


def wants(clause: str) -> bool:
    """Return whether a clause has a word of demanding or wishing: `must`, `please`, `brauche`."""
    return _DEMANDS.search(clause) is not None or _WISHES.search(clause) is not None


# "Don't tell the joiners", "keep it between us", "that doesn't matter here". "That doesn't matter
# if it's cheap" is a condition.
_KEEPS_BACK = regex(
    r"""(?:\b(?:not|never|without)|n['’]t)\ (?:\w+\ ){0,2}(?:tell|mention|reveal|disclos|shar)\w*
        |\b(?:that|this|it)\ (?:does\ not|doesn['’]t)\ matter\b(?!\ (?:wh|if|how))
        |\b(?:that|this)\ (?:is\ not|isn['’]t)\ relevant\b|\bdas\ spielt\ keine\ rolle\b
        |\bkeep\ (?:\w+\ ){1,3}(?:secret|private|quiet|confidential|to\ yourself|between\ us)\b
        |\bconfidential\w*|\bvertraulich\w*|\bgeheim\w*|\bfür\ dich\b
        |\b(?:sag|verrat|verrate|nenn|nenne|erwähn|erwähne)\b[^.?!]{0,60}\bnichts?\b
        |\bnichts?\b[^.?!]{0,60}\b(?:sagen|verraten|nennen|erwähnen)\b
        |\bne\ (?:l\w{1,2}\ )?(?:dis|dites|dire|révèl\w*|mentionn\w*)\b
        |\bconfidentiel\w*|\bentre\ nous\b
        |\bno\ (?:l\w{1,2}\ |se\ lo\ )?(?:dig\w+|cuent\w+|menci\w+|revel\w+)\b|\bconfidencial\w*
        |\bnon\ (?:dire|dirlo|rivelar\w*)\b|\briservat\w*""",
    re.VERBOSE | re.IGNORECASE,
)


def kept_back(parts: list[str]) -> set[str]:
    """Return the sentences of a request whose values a user wants kept from others, or ignored.

    "My budget is 6,000 euros, but don't tell the joiners", or "... Don't tell them." "The contract
    ends 15 December, but that doesn't matter here."
    """
    secret = set()
    for place, part in enumerate(parts):
        if _KEEPS_BACK.search(part):
            secret.add(part)
            if place and not any(letter.isdigit() for letter in part):
                secret.add(parts[place - 1])
    return secret


def excuses(clause: str) -> bool:
    """Return whether a clause states what does not suit a user: "we can't take the one at 7".

    The rest of the request already respects that.
    """
    return _TELLS_OF.match(clause) is not None and is_negative(clause)


# "No seats", "unfortunately". "Sold out" says no without a negation: see `empty_answers`.
_NEGATIVE = regex(
    r"\b(?:no|not|none|nobody|nothing|never|neither|nor|cannot|\w+n['’]t|without|unpaid|denied|refused|"
    r"sadly|unfortunately|sorry|afraid|too late|ruled out|unable|impossible|full|"
    r"nein|nicht|kein\w*|leider|non|pas|aucun\w*|ningun\w*)\b",
    re.IGNORECASE,
)


def is_negative(text: str) -> bool:
    """Return whether a text may say that something is not the case, or could not be done."""
    return _NEGATIVE.search(text) is not None


# The rest is for questions that ask for a judgement. "Not yet." is a good answer to "Is the parcel
# insured?", although it repeats no fact that a helper found.
_QUESTION = regex(r"(?<![^.!?\n])[^.!?\n]*\?")
_WORDS = regex(r"[^\W\d_]+")
# Verbs that open a yes-or-no question, in several languages. "Which packages stop us?"
# begins with none of them: it asks for facts, which the answer has to contain. Forms like `didn`
# come from `didn't`, because words are letters only.
_OPENERS = frozenset(
    """
    am are can could did do does had has have is may might must shall should was were will would
    aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren won wouldn
    darf dürfen gibt haben hat ist kann können muss müssen sind soll sollen war wird wäre est
    es está son están hay tiene puede puedo debe debo è sono può posso há tem pode
    """.split()  # noqa: SIM905
)
# The start of an answer to such a question: "Not yet, ...", "Nein, ...", "It is.", "Usually yes".
# Only the start counts, because a later "no" may be about anything.
_VERDICT = regex(
    r"""(?<!\W)\W*(?:
        (?:(?:usually|normally|generally|typically|in\ general|in\ most\ cases|as\ a\ rule|often
            |likely|in\ der\ regel|normalerweise|grundsätzlich|meistens|en\ général|normalement
            |souvent|normalmente|en\ general|di\ solito),?\ )?
        (?:yes|no|yep|nope|not|mostly|partly|probably|possibly|perhaps|maybe|hardly|almost|sure
            |correct|ja|nein|nicht|noch\ nicht|fast|teilweise|vermutlich|wahrscheinlich|vielleicht
            |kaum|oui|non|pas\ encore|peut-être|probablement|s[íi]|todav[íi]a\ no|quizás?
            |probablemente|forse)\b
        | (?:usually|normally|generally|typically|often|sometimes|rarely|in\ der\ regel
            |normalerweise|meistens?|oft|manchmal|selten|en\ général|normalement|souvent|parfois
            |normalmente|a\ veces|di\ solito|spesso)(?=\W{0,2}\Z|[,.;!:])
        | (?:it|they|you|we|that|this|there)\ (?:is|are|was|were|does|do|did|has|have|can|could
            |may|must|should|will|would)(?:\ not|n['’]t)?\b
    )""",
    re.VERBOSE | re.IGNORECASE,
)
# "Can you list the packages?" has the form of a yes-or-no question, but is a request: "Yes." alone
# would be no answer. These words are searched for in the second and third place.
_ASKED_TO_ACT = frozenset({"you", "du", "ihr", "sie"})


def wants_verdict(text: str) -> bool:
    """Return whether a message asks if something is the case.

    ``can you ...?`` requests an action.
    """
    for question in _QUESTION.findall(text):
        words = [word.casefold() for word in _WORDS.findall(question)][:3]
        if words and words[0] in _OPENERS and not _ASKED_TO_ACT.intersection(words[1:]):
            return True
    return False


# "Mostly from packaging", "Early on weekdays, usually": no statement about a kind of things, but
# the answer to "Where from?" and "When?".
_ELLIPTIC = regex(
    r"""\W{0,5}(?:(?:mostly|usually|generally|typically|often|normally|meist(?:ens)?|oft|häufig
            |normalerweise|in\ der\ regel|en\ général|souvent|normalement|normalmente|en\ general
            |di\ solito|spesso)\ )?
        (?:from|on|at|against|after|before|during|between|within|around|early|late
            |für|ab|am|an|auf|bei|bis|gegen|im|nach|seit|um|von|vor|zwischen|früh|spät
            |(?:le|la|les|el|los|il|der|die|das)\ (?:lun|mar|mer|jeu|ven|sam|dim|mi[ée]|jue|vie
                |s[áa]b|dom|gio)\w*
            |à|au|aux|avant|après|chez|vers|al|entre|hacia|por)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def is_elliptic(sentence: str) -> bool:
    """Return whether a sentence starts like an answer without subject and verb."""
    return _ELLIPTIC.match(sentence) is not None


def gives_verdict(text: str) -> bool:
    """Return whether an answer starts with a yes or a no, in any form."""
    return _VERDICT.match(text) is not None
