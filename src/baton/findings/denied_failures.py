"""Answers that claim that something was done, although the result says that it failed."""

from __future__ import annotations

import re

from .facts import read
from .lazy_patterns import regex
from .words import is_negative

# "Payment declined", "failed: timeout", but not "failing tests: 3" or "not yet".
_SAYS_NO = (
    r"(?:denied|rejected|refused|declined|failed|aborted|not\ (?:possible|found|allowed|permitted"
    r"|authori[sz]ed)|abgelehnt|fehlgeschlagen|abgebrochen|nicht\ möglich|refusée?|échec|échoué"
    r"|impossible|rechazad[oa]|denegad[oa]|falló|no\ es\ posible|rifiutat[oa]|fallit[oa]|geweigerd"
    r"|mislukt)"
)
# "Denied: approval required", "Error 403: ...", "Build #5518 on main: FAILED at step lint". Not
# "Failed logins: 3" and "Error rate 0.1 %", which are about something else.
_FAILED = regex(
    rf"""\A\W*(?:
        (?:error|fehler|erreur)\b\s?(?:\d{{3}})?\s?[:!–-]
        |(?:[\w\#./-]+\s){{0,4}}[\w\#./-]+:\s{_SAYS_NO}\b(?:\s?[.,:;!(–-]|\s*\Z
            |\s(?:at|on|in|with|because|due|since|after)\b)
        |{_SAYS_NO}\b(?:\s?[.,:;!(–-]|\s*\Z|\s(?:at|on|in|with|because|due|since|after)\b)
        |(?:cannot|can['’]t|could\ not|couldn['’]t|unable\ to)\b)""",
    re.VERBOSE | re.IGNORECASE,
)
# What was tried again, or only failed in part.
_RECOVERED = regex(
    r"""\b(?:ok|success\w*|succeed\w*|retr(?:y|ied|ies)|restart\w*|recover\w*|resolved|fixed|passed|but
        |however|afterwards|second|again|now|worked|instead|then|done|completed|partly|partially
        |in\ place\ of|(?<!not\ )(?:ordered|booked|created|changed|updated|reserved|moved|sent)
        |aber|dann|erneut|mais|puis|ensuite|pero|luego|después)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Your rental car has been cancelled", "Yes, it is booked", "The build passes".
_CLAIMS = regex(
    r"""\A\W*(?:(?:done|yes|ja|oui|sí|erledigt|hecho|fatto)\b\s?[.,:;!–-])
        |\b(?:has|have)\ (?:now\ |just\ |already\ )?been\ \w+(?:ed|en|t|de|ut)\b
        |\b(?:is|are)\ (?:now\ )?(?:booked|cancell?ed|ready|active|in\ order|redirected|confirmed
            |changed|sent|paid|approved|installed|running)\b
        |\bnow\ (?:has|have)\b|\bI(?:['’]ve|\ have)\ (?:now\ |just\ )?\w+(?:ed|en|t)\b
        |\bpass(?:es|ed)\b|\b(?:wurden?)\ [^.]{0,60}\w{3,}t\b|\b(?:a|ont)\ été\b
        |\bha(?:n)?\ sido\b|\b(?:è|sono)\ stat[oaie]\b|\bis\ \w+\ ge\w+(?:d|t|en)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# An answer needs this many words to say what was done: "Your refund was sent." Shorter ones ("All
# sent.") do not show whether they are about the same.
_FEWEST_WORDS = 4


def denies_failure(answer: str, result: str, asked: str) -> bool:
    """Return whether an answer claims the requested action, and the result says that it failed.

    Neither may say more about it: no second attempt in the result, and no "not", "but" or "failed"
    in the answer.
    """
    if _FAILED.match(result) is None or _RECOVERED.search(result):
        return False
    if len(answer.split()) < _FEWEST_WORDS or _CLAIMS.search(answer) is None or is_negative(answer):
        return False
    if _RECOVERED_BY.search(answer):
        return False
    request = read(asked)
    return any(request.holds(fact) for fact in read(answer).facts if fact.kind == "word")


# A caller that found another way may claim so.
_RECOVERED_BY = regex(
    r"""\b(?:instead|another|other|alternativ\w*|but|however|although|though|only|first|after
        |by\ hand|manually|until|once|later|when|if|try|tried|fail\w*|error|reject\w*|declin\w*
        |denied|refused|ander\w*|stattdessen|aber|autre|mais|otr[oa]|pero|altr[oa]|blocked|pending
        |waiting|requested|asked|approval)\b""",
    re.VERBOSE | re.IGNORECASE,
)
