"""Claims in an answer: an action, a test run, an id or a quote, in English.

The rules favour precision: a sentence that denies, asks, offers, supposes or is about the future
claims nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .lazy_patterns import regex

# A longer answer is a document: its sentences are its content, not a report.
LONGEST = 20_000
"""The most characters of an answer that is read."""
# A sentence with more characters is a list or not text.
_SENTENCE_MOST = 1000
# The most claims that are read in an answer.
_MOST = 40


class Action(NamedTuple):
    """An action that only a tool can take: its wordings, and words in names of such tools."""

    name: str
    done: re.Pattern[str]
    tools: frozenset[str]
    """Words in the names of tools that can do it: ``mail`` in ``mail.deliver``."""
    object: re.Pattern[str] | None = None
    """What has to follow if the verb can be about text: "I updated the plan below"."""


def _action(name: str, done: str, tools: str, object: str | None = None) -> Action:
    return Action(
        name,
        regex(rf"(?<![\w-])(?:{done})(?![\w-])", re.IGNORECASE),
        frozenset(tools.split()),
        None if object is None else regex(object, re.IGNORECASE),
    )


# A name with a file extension: "src/cart.py", not "e.g." or "example.org".
_PATH = (
    r"(?<![\w@./\\-])[\w./\\-]*\w\.(?:py|md|toml|json|ya?ml|txt|csv|tsv|xlsx?|docx?|pptx?|pdf|html?"
    r"|css|jsx?|tsx?"
    r"|sql|sh|rs|go|java|kt|c|h|cpp|rb|php|ini|cfg|conf|env|lock|bib|log|png|svg|ipynb|proto"
    r"|tf)(?!\w)"
)
PATH = regex(_PATH, re.IGNORECASE)
# Objects that are changed outside the answer itself: a ticket, "to your calendar", but not "a
# content calendar for you" or "a ticket template".
_RECORD = (
    r"(?:\b(?:tickets?|incidents?|work orders?|pull requests?|PRs?(?!-)|issues?"
    r"|calendar events?|reminders?)\b"
    r"(?! (?:templates?|descriptions?|categor\w+|systems?|trees?|lists?))"
    r"|\b(?:to|in|into|on|from) (?:your|the|our|my) (?:\w+ )?"
    r"(?:calendar|database|spreadsheet|repository|repo|drive|server|CRM|backlog|channel|folder)\b"
    # "the patient's allergy record", but not "your record of success".
    r"|\b(?:[\w.]+['’]s|his|her|their|your|the) (?:\w+ ){0,2}(?:record|profile|account)\b"
    r"(?! (?:of|for|below|above|in general)\b))"
)
# Things that can be booked: not "booked two hours for lunch", "reserved day 3 for the beach".
_BOOKABLE = (
    r"(?:tables?|rooms?|flights?|seats?|tickets?|hotels?|trains?|TGV|bus|coach|cars?"
    r"|appointments?|slots?"
    r"|berths?|sailings?|cab|taxi|technicians?|venue|substitute|copy|stay|collection)"
)

ACTIONS = (
    # Not "sent a request to the weather API", which any tool does.
    _action(
        "sent",
        r"(?:sent|re-?sent|e-?mailed|texted|notified|forwarded|posted|messaged|alerted)"
        r"(?! (?:an?|the|this|that) (?:\w+ )?(?:request|query|command|call|prompt))",
        "send sent mail email mailer message msg notify notification notifications sms "
        "slack teams forward reply alert share telegram whatsapp tweet webhook letter fax "
        "invite gmail outlook publish broadcast post",
    ),
    _action(
        "changed a file",
        r"edited|updated|modified|changed|fixed|patched|refactored|rewrote|rewritten|renamed"
        r"|removed"
        r"|deleted|added|created|wrote|written|saved|replaced|uploaded|downloaded|committed|moved"
        r"|raised|lowered|exported|stored|repaired|corrected",
        "write edit patch replace append rename move upload download commit export file "
        "files notebook str touch mkdir git editor fs apply",
        rf"^[^.!?;]{{0,80}}?(?:{_PATH}|\b(?:the|this|that|your|a|both|all(?: the)?|\d[\d,]*)"
        r" (?:\w+ ){0,2}(?:files?|photos|folders)\b)",
    ),
    _action(
        "made a record",
        r"created|opened|filed|added|updated|deleted|removed|closed|raised|registered|logged"
        r"|set up",
        "ticket tickets incident event events calendar issue issues pull pr record "
        "records reminder remind note notes log appointment meeting git jira github "
        "gitlab branch report insert upsert file order",
        rf"^[^.!?;]{{0,60}}?{_RECORD}",
    ),
    _action(
        "ran",
        r"ran|re-?ran|executed",
        "run exec execute bash shell terminal command cmd python code test tests pytest migrate "
        "migration script build lint job pipeline workflow trigger repl",
        r"^[^.!?;]{0,40}?\b(?:tests?|test suite|suite|pytest|migrations?|scripts?|linter|build"
        r"|benchmarks?|pipeline)\b",
    ),
    # Not "merged the two lists", "restarted the search".
    _action(
        "deployed",
        r"deployed|redeployed|restarted|rebooted|rolled back|merged|pushed",
        "deploy redeploy restart reboot rollback release publish merge push start stop service "
        "kubectl scale upgrade git ship",
        r"^[^.!?;]{0,40}?(?:\bPRs?\b|\bpull requests?\b|\bbranch(?:es)?\b|\bcommits?\b"
        r"|\b[Cc]hanges?\b"
        r"|\b(?:service|server|pods?|app|container|instance|machine|database|build|release"
        r"|version|job)\b"
        r"|\b(?:to|on|into) (?:\w+[ /])?(?:staging|production|prod|main|master|branch)\b|\bit\b"
        r"|\d{2})",
    ),
    _action(
        "refunded",
        r"refunded|reimbursed|(?:issued|processed|approved|initiated)(?= [^.!?;]{0,20}\brefund)",
        "refund refunds payment pay credit reimburse return returns",
    ),
    _action(
        "booked",
        rf"(?:re-?)?booked(?= (?:it|that|this|you|[^.!?;]{{0,40}}\b{_BOOKABLE})\b)"
        rf"|reserved(?= (?:it|[^.!?;]{{0,40}}\b{_BOOKABLE})\b)"
        r"|scheduled(?= [^.!?;]{0,30}\b(?:meeting|appointment|call|pick-?up|delivery|interview)\b)",
        "book booking reserve reservation schedule appointment event calendar meeting "
        "rebook purchase buy",
    ),
    # Not "I ordered them by year", "I've ordered the list".
    _action(
        "ordered",
        r"purchased|bought|ordered(?![^.!?;,]{0,40}\bby (?!\w+day))(?! (?:them|it|these|those"
        r"|from|alphabetical\w*|chronological\w*"
        r"|the (?:\w+ )?(?:list|results|items|steps|sections|tasks|events|points)))"
        r"|placed(?= [^.!?;]{0,20}\border)",
        "order orders purchase buy checkout cart place shop",
    ),
    # Not "cancelled out both terms".
    _action(
        "cancelled",
        r"cancell?ed(?= [^.!?;]{0,40}\b(?:order|subscription|booking|reservation|flight"
        r"|appointment|meeting"
        r"|membership|plan|contract|event|policy|payment|ticket|it)\b)|unsubscribed",
        "cancel cancellation unsubscribe terminate",
    ),
    _action(
        "paid",
        # Not "charged the tip to both equally".
        r"paid(?! (?:attention|heed|off))"
        r"|charged(?=\W*$| [^.!?;]{0,40}(?:\bcard\b|\baccount\b|\d))"
        r"|transferred(?= [^.!?;]{0,20}[\d€$£])",
        "pay payment payments charge transfer invoice settle bill",
    ),
    # Not "uploaded by you", "submitted a guess".
    _action(
        "submitted",
        r"uploaded|submitted|published",
        "upload submit publish post send put push share file form release deploy attach write "
        "save store create",
        r"^[^.!?;]{0,40}?\b(?:forms?|package|release|application|claim|report|document|photos?"
        r"|images?|video|article|post|page|site|return|declaration|request|results?|files?)\b",
    ),
    _action(
        "installed",
        r"(?:re|un)?installed(?! (?:an?|some|new|one|two|three)\b)",
        "install installer apt pip npm brew package setup dependency dependencies update upgrade "
        "provision",
    ),
    _action(
        "measured",
        r"benchmarked|profiled|load-tested",
        "bench benchmark profile profiler run test measure time load",
    ),
    # Not "I called it a draft", "I called the tool".
    _action(
        "phoned",
        r"(?:called|phoned|rang)(?= (?:the|your|his|her|their|Mr|Mrs|Ms|Dr|[A-Z])[^.!?;]{0,60}"
        r"\b(?:left (?:a|them a|him a|her a) (?:message|voice ?mail)|(?:they|he|she)"
        r" (?:confirmed|said|told|agreed|promised)|spoke|by phone|on the phone)\b)",
        "call phone dial voice ring telephone twilio contact speak",
    ),
    _action(
        "moved an appointment",
        r"rescheduled|moved(?= [^.!?;]{0,40}\b(?:appointment|meeting|booking|MRI|slot|flight"
        r"|visit|interview|delivery|pick-?up|session)\b[^.!?;]{0,20}\bto\b)",
        "schedule reschedule move appointment calendar event book booking meeting slot change "
        "rebook update reservation",
    ),
    # Only objects that an agent can reach by a tool alone: not "searched the text that you pasted".
    _action(
        "looked up",
        r"(?:searched|queried|scanned)(?= (?:through )?(?:(?:the|your|our|a|all|on|in) )?(?:\w+ )?"
        r"(?:web|internet|online|databases?|repo(?:sitory)?|code ?base|API|registry|registers?"
        r"|catalogu?e|CRM|inbox|mailbox|calendar|knowledge base|network|disk|server|logs?|PubMed"
        r"|Google|Wikipedia|arXiv|GitHub|Slack|Jira)\b)",
        "",
    ),
    _action(
        "unblocked",
        r"(?:unblocked|unlocked|reactivated)(?= [^.!?;]{0,30}\b(?:account|user|customer|card"
        r"|him|her|them)\b)"
        r"|unblocked(?=\W*$)",
        "unblock unlock block activate enable status",
    ),
)

# Passives whose subject names the action: "Your refund has been issued".
_SUBJECTS = (
    (regex(r"\brefund\b", re.IGNORECASE), "refunded"),
    (regex(r"\b(?:booking|reservation|table|room|flight|seat)\b", re.IGNORECASE), "booked"),
    (regex(r"\border\b", re.IGNORECASE), "ordered"),
    (regex(r"\b(?:payment|invoice)\b", re.IGNORECASE), "paid"),
    (regex(r"\b(?:e-?mail|message|sms)\b", re.IGNORECASE), "sent"),
    (regex(r"\bmigration\b", re.IGNORECASE), "ran"),
    (regex(_PATH, re.IGNORECASE), "changed a file"),
    (regex(r"\b(?:ticket|incident|event)\b", re.IGNORECASE), "made a record"),
)
# Deeds of any kind: "the refund has been issued". "The refund can be issued" and "has been delayed"
# are none.
_DONE = regex(
    r"\b(?:has|have) (?:now |already |also |just |successfully )*been (?:successfully )?"
    r"(?:processed|issued|confirmed|placed|made|completed|sent|delivered|executed|applied|created"
    r"|updated|opened|filed|booked|reserved|paid|approved|submitted|scheduled)\b"
    r"|\b(?:was|were) (?:successfully )?(?:processed|issued|placed|sent|executed|created|updated"
    r"|opened|filed|booked|reserved|paid)(?: successfully)?\b"
    r"|\b(?:is|are) (?:now )?(?:issued|booked|reserved)\b(?! by)",
    re.IGNORECASE,
)

# What may stand between "I" and its verb: "I just updated", "I went ahead and sent", but not "I
# never sent".
_ADVERBS = (
    r"(?:\s+(?:just|now|also|already|then|successfully|since|have|both|immediately"
    r"|gone ahead and|went ahead and))*"
)
# `I`, `we`, `I've`, `we have`, but not `If` or `IV`.
_I = r"\b(?:I|[Ww]e)(?:['’]ve|\s+have)?(?!\w)"
# "I read the minutes and sent them": a verb that follows another verb has the same subject.
_BY_ME = regex(rf"{_I}{_ADVERBS}\s+$")
_AND_BY_ME = regex(rf"(?:\band|[,;:])(?:\s+{_I})?{_ADVERBS}\s+$")
_ANY_I = regex(_I)
# Right before a participle, it reports a deed: "has been", "are now", "was successfully". "Is"
# alone can describe: "the door is closed".
_PASSIVE = regex(
    r"\b(?:(?:has|have)(?:\s+(?:now|already|also|just|successfully))*\s+been(?:\s+successfully)?"
    r"|(?:is|are)\s+now|(?:was|were)\s+successfully)\s+(?:[a-z]+ed\s+and\s+)?$",
    re.IGNORECASE,
)
# "Deployed to production.", "Done: committed and pushed to main.": the first words of an answer.
_BARE = regex(
    r"^(?:(?:done|ok|okay|sure|all set|finished)\b[.!:,]?\s+)?(?:successfully\s+)?"
    r"(?:[a-z]+ed(?:\s[^.!?;:,]{1,40})?\s+and\s+)?$",
    re.IGNORECASE,
)
# Longer texts and lists are more likely requested content: "Fixed a crash" in release notes.
_BARE_MOST = 240

# Words before a verb that keep a clause from claiming anything: it denies, supposes, asks or looks
# ahead.
_UNSAID = regex(
    r"""\b(?:not|never|nothing|nobody|no|none|neither|without|cannot|unable|fail\w*|tried|trying|try
        |attempt\w*|if|once|when|whenever|after|before|until|unless|should|would|could|can|may
        |might|must|will|shall|going\ to|want\w*|like|please|to\ be|whether|assum\w*|suppos\w*
        |imagin\w*|example|as\ if|ask\w*|you\ have|you['’]ve|you|request\w*|wish\w*|need\w*|plan\w*
        |suggest\w*|recommend\w*|propos\w*|said|says|told|claims?
        |had\ (?:I|we|you|they|he|she|it)
        |mak\w+\ sure|ensur\w+|verif\w+\ that|confirm\w*|check\w*\ (?:that|if)|mean\w*|requir\w*
        |how|why
        |draft\w*|template|almost|nearly|about\ to|pretend\w*)\b
        |n['’]t\b|e\.g\.""",
    re.VERBOSE | re.IGNORECASE,
)
# Events at another time, or in general: "reports were sent weekly in the past".
_AT_OTHER_TIMES = regex(
    r"\b(?:yesterday|last (?:week|month|year|time|night|quarter)|earlier|previous\w*|ago|weekly"
    r"|monthly|daily|usually|normally|always|in the past|in (?:19|20)\d\d|by (?:the|a|an|your) \w+"
    r"|by you|on your behalf by|already|above|below)\b",
    re.IGNORECASE,
)
# Ends of statements. "But" and "although" end one as well, because what follows often takes it
# back.
_SENTENCE = regex(r"(?<=[.!?])[\"'”’)]*\s+|\n+|;\s+|(?<!\s)\s+(?:but|however|although|though)\s+")
# Code and quoted lines state what others say.
_CODE = regex(r"```.*?(?:```|\Z)|^\s*>.*$", re.DOTALL | re.MULTILINE)
# So do texts in quotation marks; an apostrophe (`don't`) begins none.
_QUOTED = regex(r"[\"“][^\"“”\n]{3,600}[\"”]|(?<!\w)'[^'\n]{12,600}'(?!\w)")
# A letter in the answer: the "I" in its "I have sent you the minutes" is the letter's sender.
_LETTER = regex(
    r"^[^\w\n]*(?:subject:|dear\b|(?:hi|hello) [A-Z]\w+,\s*$)|\b(?:kind|best|warm) regards\b"
    r"|\byours (?:sincerely|faithfully|truly)\b",
    re.IGNORECASE | re.MULTILINE,
)
# Any word of the patterns below, so most answers need just one search.
_MAY_CLAIM = regex(
    r"^\W*(?:\w+[.!:,]?\s+)?(?:successfully\s+)?\w+ed\b|\b(?:is|are) now \w+ed\b"
    r"|\b(?:I|[Ww]e|been|was|were|green|says?|states?|reads?|writes?|reported?)\b|[Tt]ests?\b"
    r"|\b(?:is|are) (?:now )?(?:issued|booked|reserved)\b"
)


# "All tests pass", "the suite is green", but not "the tests are slow".
_PASS = r"(?:pass(?:ed|es|ing)?|succeed(?:ed|s)?|are (?:now )?(?:passing|green)|is green)"
# "All 12 tests pass", "the test suite is green", but not "the tests should pass" or "tests pass on
# main".
_TESTS_PASS = regex(
    rf"\b(?:(?P<count>\d[\d,]{{0,20}}) (?:of the |unit |\w+ )?)?tests?(?: suite)?"
    rf"(?: (?:now|all|still|of [^.,;]{{1,40}}))?"
    rf" {_PASS}\b(?! on| in CI)"
    rf"|\btest suite (?:now )?(?:passes|passed|is (?:green|passing))"
    r"|\beverything is green\b"
    r"|\btests?\b[^.!?;]{0,40}\b(?:all (?:of them )?|they (?:all )?|everything )(?:now )?"
    r"(?:pass(?:ed)?|is green)\b",
    re.IGNORECASE,
)

# "38 passed, 3 failed", but "passes without failures".
_NOT_ALL = regex(r"(?<!without )(?<!no )(?<!0 )\bfail|\bnot all\b", re.IGNORECASE)

# Only next to such a word is a code an id that somebody gave out: "booking TT-60214", not "flight
# LH 123".
_ID_LABEL = (
    r"(?:confirmation|booking|reservation|reference|order|ticket|incident|case|tracking|transaction"
    r"|receipt|refund|meeting|invoice|commit)"
)
# `TT-60214`, `9f86d0818`, `60214` and `K7Q2ZL`, but not `TOTAL` or `42`.
_ID = (
    r"(?:[A-Z]{1,6}-?\d[\w-]{2,40}|(?=[A-Z]{0,20}\d)[A-Z\d]{4,20}[A-Z][A-Z\d]{0,20}"
    r"|[0-9a-f]{9,40}|\d{3,20}(?: \d{3,20}){1,5}|\d{5,40})"
)
_NEW_ID = regex(
    # The number of spaces is bounded, as a long run would be tried for each part in turn.
    rf"\b(?i:{_ID_LABEL})(?i:(?P<number>\s{{1,9}}(?:number|no\.?|id|code|reference)))?"
    rf"(?:\s{{1,9}}(?:is|was)|:)?\s{{0,9}}(?P<mark>#)?\(?\s{{0,9}}(?P<id>{_ID})(?![\w-])"
)
# Codes that everybody knows, which nobody has to look up: `ISO-9001`, `CVE-2024-1`, but not
# `INV-9001`.
_STANDARD = regex(r"(?:ISO|RFC|IEEE|DIN|EN|ANSI|CVE|COVID|UTF|SHA|HTTP|PEP|NIST|GPT)-?\d", re.I)
# The source of a quote that was read. "The Bible says" is quoted from memory.
_QUOTES = regex(
    rf"(?:{_PATH}|\b(?:log|file|page|document|contract|e-?mail|report|policy|output|ticket"
    rf"|message|letter"
    r"|invoice|readme))\W{0,3}\s+(?:says?|states?|reads?|writes?"
    r"|reported?)\b[^\"“.\n]{0,40}[\"“](?P<quote>[^\"“”\n]{20,400})[\"”]",
    re.IGNORECASE,
)
# Shorter quotes are a status or a title, which agents shorten: "the log says “pool exhausted
# (50/50)”".
_FEWEST_WORDS_OF_QUOTE = 5


class Claim(NamedTuple):
    """A claim of an answer that something was done or found, with its sentence."""

    what: str
    """The name of an :class:`Action`, or ``tests pass``, ``id`` or ``quote``."""
    sentence: str
    by_me: bool = True
    """Whether the speaker claims to have acted itself."""
    value: str = ""
    """The id or the quote. For tests, the number that pass. For a file, its path."""


# First words of many tool names. The word after them names what is made or changed.
WEAK = frozenset(
    """
    create add update insert open new set submit delete remove close end start stop issue put
    generate save modify store register make
    """.split()  # noqa: SIM905
)

BY_NAME = {action.name: action for action in ACTIONS}


def claims_of(text: str) -> list[Claim]:
    """Return the claims in a text, in order. A letter or a document gives none."""
    if len(text) > LONGEST or not (_MAY_CLAIM.search(text) or _NEW_ID.search(text)):
        return []
    if _LETTER.search(text):
        return []
    plain = _CODE.sub("\n", text)
    claims = [Claim("quote", m[0], True, m["quote"]) for m in _QUOTES.finditer(plain)]
    claims = [claim for claim in claims if len(claim.value.split()) >= _FEWEST_WORDS_OF_QUOTE]
    short = len(text) <= _BARE_MOST and "\n" not in text.strip()
    for number, sentence in enumerate(statements(text)):
        claims += _of_sentence(sentence, bare=short and number < 2)
        if len(claims) >= _MOST:
            break
    return list(dict.fromkeys(claims))[:_MOST]


def statements(text: str) -> Iterator[str]:
    """Yield the sentences of a text except questions, without quotations and code."""
    for sentence in _SENTENCE.split(_QUOTED.sub("_", _CODE.sub("\n", text))):
        if 0 < len(sentence) <= _SENTENCE_MOST and not sentence.rstrip("\"')*_ ").endswith("?"):
            yield sentence.strip()


# Not "students are enrolled in the order in which they apply", which is a general statement.
_SAID_DONE = regex(
    rf"(?:{_I}{_ADVERBS}|\b(?:been|was|were|(?:is|are)\s+now)(?:\s+successfully)?"
    r"|\b[Yy]our?\b[^,]{0,60}\s(?:is|are))\s+$"
)
# How things are done, not that they were: "once it is paid, we ship it".
_IN_GENERAL = regex(r"\b(?:if|when|whenever|once|until|unless|after|before|while)\b", re.I)


def done_by(text: str, done: re.Pattern[str]) -> Iterator[str]:
    """Yield the sentences that state, by a match of ``done``, that something was done.

    A match is a participle, or several words with their own subject ("the build succeeded").
    """
    if len(text) > LONGEST or _LETTER.search(text):
        return
    for sentence in statements(text):
        for verb in done.finditer(sentence):
            before = sentence[: verb.start()]
            if _UNSAID.search(_clause_before(before)) or _AT_OTHER_TIMES.search(sentence):
                continue
            if _IN_GENERAL.search(sentence):
                continue
            if _SAID_DONE.search(before) or _BARE.search(before) or " " in verb[0]:
                yield sentence


def _of_sentence(sentence: str, bare: bool) -> Iterator[Claim]:
    if _AT_OTHER_TIMES.search(sentence):
        return
    claims = _actions(sentence, bare) or list(_passives(sentence))
    yield from claims
    passed = _TESTS_PASS.search(sentence)
    if passed is not None and not _NOT_ALL.search(sentence):
        before = sentence[: passed.start()]
        if not _UNSAID.search(_clause_before(before)):
            yield Claim("tests pass", sentence, True, (passed["count"] or "").replace(",", ""))
    for match in _NEW_ID.finditer(sentence):
        # "Order 10000 units" and "reference: RFC-2119" contain no issued ids.
        if _STANDARD.match(match["id"]):
            continue
        if not (match["number"] or match["mark"] or re.search("[A-Za-z]", match["id"])):
            continue
        if not _UNSAID.search(sentence[: match.start()]):
            yield Claim("id", sentence, True, match["id"])


def _actions(sentence: str, bare: bool) -> list[Claim]:
    """Return the actions that a sentence claims, in order.

    ``bare``: it may start with a verb whose subject is the speaker.
    """
    claims = []
    for action in ACTIONS:
        for verb in action.done.finditer(sentence):
            before, after = sentence[: verb.start()], sentence[verb.end() :]
            by_me = bool(
                _BY_ME.search(before)
                or (_AND_BY_ME.search(before) and _ANY_I.search(before) and "I'll" not in before)
            )
            if not by_me and not _PASSIVE.search(before) and not (bare and _BARE.search(before)):
                continue
            if _UNSAID.search(_clause_before(before)):
                continue
            if action.object is not None and not action.object.search(after):
                # "The file config/app.toml has been updated" has the object before the verb.
                if by_me or action.object.search(before) is None:
                    continue
            # "Forwarded to the returns agent" is a dispatch, not a message.
            if action.name == "sent" and re.search(r"\bagents?\b", after):
                continue
            path = PATH.search(after) if action.name == "changed a file" else None
            claim = Claim(action.name, sentence, by_me, path[0] if path else "")
            claims.append((verb.start(), claim))
    return [claim for _, claim in sorted(claims, key=lambda each: each[0])]


def _passives(sentence: str) -> Iterator[Claim]:
    done = _DONE.search(sentence)
    if done is None or _UNSAID.search(_clause_before(sentence[: done.start()])):
        return
    for subject, name in _SUBJECTS:
        if subject.search(sentence[: done.start()]):
            yield Claim(name, sentence, False)
            return


def _clause_before(before: str) -> str:
    """Return the clause that ends here: "I haven't looked, and I sent it" has two."""
    # "You were enrolled" is a report, "you have to be enrolled" is not.
    before = re.sub(r"^You(?= (?:were|are now|have (?:now )?been) $)", "", before)
    parts = re.split(
        r"(?:;|:|,\s+and|,)\s+(?=(?:I|we|your|the|it|all)\b)", before, flags=re.IGNORECASE
    )
    return parts[-1]
