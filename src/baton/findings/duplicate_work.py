"""Was work done that another agent, or the caller itself, had already done?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from baton.model import AgentRun, Content, Dispatch, Evidence, ToolCall, Trace, Turn, known
from baton.model.views import TooMuchTextError, dispatch_view, index_of, overlap

from .caller_texts import given_besides
from .dispatch_completed import reports_failure
from .facts import HARD, NUMBER, Fact, Reading, as_json, number_keys, plain_text, read, weight
from .finding import (
    TOO_LONG,
    Answer,
    Clear,
    Finding,
    NotRecorded,
    call_key,
    changes_something,
    receivers_of,
    same_result,
)
from .lazy_patterns import regex
from .words import COMMON

# Work that is intentionally repeated, and agents with such tasks: "Verify the list", "Run it
# with a second source", `fact_checker`. A bare "check" is no such word: "Check where order 7 is".
_VERIFIES = regex(
    r"""\b(?:verif\w+|(?:double|cross)[- ]?check\w*|re-?check\w*|confirm\w*|validat\w+
        |review\w*|make\ sure\ (?:that\ )?(?:the|this|that|it|they)\b
        |second\ (?:source|opinion|look)|independent\w*|compare\ with
        |audit\ (?:the|this|that|its|their)\ (?:answer|result|list|work|report|draft|figures?)
        |check\ (?:that|whether\ (?:the|this|that)\ (?:answer|result|list)
            |(?:the|this|that|my|our|its|their)\ (?:answer|result|list|work|text|draft|figures?))
        |nochmals?\ prüf\w*|überprüf\w*|bestätig\w*|vérifi\w+|confirmer|verifica\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Check the statics once more" may be a second look. A bare "check" is no such word, and neither is
# a bare "again".
_CHECKS = regex(
    r"""\b(?:check|inspect|prüf|kontrollier|contrôle|comprueb|revis|controlla)\w*\b[^.?!]{0,80}
            \b(?:again|once\ more|noch\ ?mals?|noch\ einmal|erneut|de\ nouveau|otra\ vez
            |di\ nuovo)\b
        |\bstill\ (?:appl\w+|true|valid|correct|right|hold\w*)\b
        |\bis\ it\ (?:really\ )?(?:true|correct|right)\b|\bnach(?:rechnen|prüf\w*)\b
        |\brechne\b[^.?!]{0,80}\bnach\b|\b(?:ob|whether)\b[^.?!]{0,80}\b(?:stimm\w+|correct|true)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Reproduce what the other helper found": work on another agent's answer, not the same work.
_OF_ANOTHER = regex(
    r"""\b(?:other|first|previous|earlier)\ (?:helper|agent|assistant|colleague|worker|one)s?\b
        |\bcolleagues?\b|\b(?:der|die|des|dem)\ (?:anderen?|ersten?|vorigen?)\b
        |\bkolleg\w+|\bl['’]autre\b|\bcollègues?\b|\b(?:el|la|del)\ otr[oa]\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Agents that are there to do work again, by name: `fact_checker`, `jury`. `researcher` is not.
_VERIFIER = regex(
    r"verif|check|review|critic|audit|valid|judge|jury|juror|qa\b|test", re.IGNORECASE
)
# The share of the later agent's new facts that the earlier one had found, and their lowest weight:
# two numbers or names. A single common fact is chance, or part of both requests.
_SAME_SHARE = 0.6
_LEAST_WEIGHT = 4
# Tools whose work is never intentionally repeated, by prefix: `write_file`, `rooms.book`.
_DOES = regex(r"(?:^|[.:/]|__)(?:write|save|book|reserve|send|pay|refund)(?![a-z])", re.I)
# For these the arguments are enough: booking the same table twice is a duplicate.
_TARGET_SAYS_ALL = regex(r"(?:^|[.:/]|__)(?:book|reserve|pay|refund)(?![a-z])", re.I)
# An argument with this many words is written text, not a place or name.
_CONTENT = 5
# A file or page contains many different things: "src/rows.py", "docs/faq.md".
_DOCUMENT = regex(r"(?<![\w./\\-])[\w./\\-]*\w\.[a-z]{1,5}", re.IGNORECASE)
# The number of digits from which one common number is proof.
_EXACT = 5
# The most earlier dispatches of a turn that a dispatch is compared with. The latest are the most
# similar.
_COMPARED = 20
# The cost of comparing two of them, in compared texts.
_PER_PAIR = 50


class _Work(NamedTuple):
    """What a dispatch led to: the calls its runs made, and its result."""

    dispatch: Dispatch
    runs: list[AgentRun]
    calls: dict[bytes, ToolCall]
    asked: str
    answer: str
    said: Content | None


def duplicate_work(trace: Trace, turn: Turn, dispatch: Dispatch) -> Answer:
    """Compare the work of a dispatch with that of earlier agents, and the caller's own.

    Faults: ``duplicate_work`` (another agent had the same request, or made the same calls, and
    found the same), ``repeats_caller`` (most of its calls repeat calls of the caller whose results
    it had). Intentional repetition is not a fault: verification, a panel that works in parallel, a
    retry after a failure.
    """
    try:
        return _judged(trace, turn, dispatch)
    except TooMuchTextError:
        return NotRecorded(says=TOO_LONG)


def _judged(trace: Trace, turn: Turn, dispatch: Dispatch) -> Answer:
    if dispatch.kind not in ("delegate", "transfer"):
        return NotRecorded(says=f"a {dispatch.kind} is made by the program, which may repeat work")
    if dispatch.prompt is None and not known(trace, dispatch, "prompt"):
        return NotRecorded(says="the prompt was not recorded: record the arguments of calls")
    work = _work_of(trace, dispatch)
    if not work.runs and not work.answer:
        return NotRecorded(says="the work is not recorded: record the agents' spans")
    if _is_verifying(work):
        return Clear(says="the work was repeated on purpose, to verify it")
    own = _repeats_caller(trace, work)
    if own is not None:
        return [own]
    here = index_of(trace).place_of[dispatch.id]
    earlier = turn.dispatches[max(here - _COMPARED, 0) : here]
    if not index_of(trace).spend(_PER_PAIR * len(earlier)):
        return NotRecorded(says=TOO_LONG)
    compared = 0
    for other in reversed(earlier):
        if not _may_duplicate(other, dispatch):
            continue
        compared += 1
        proof = _same_work(trace, _work_of(trace, other), work)
        if proof is not None:
            return [_duplicate(other, dispatch, *proof)]
    if not compared:
        return NotRecorded(says="no other agent had worked before")
    return Clear(says="no earlier agent had done this work")


def _may_duplicate(other: Dispatch, dispatch: Dispatch) -> bool:
    """Return whether two dispatches started two separate agents that finished their work."""
    if other.kind not in ("delegate", "transfer") or other.to_agent == dispatch.to_agent:
        return False
    # An agent that was called below the other agent does part of its work.
    if set(other.runs) & {dispatch.from_run} or set(dispatch.runs) & {other.from_run}:
        return False
    # Two agents with the same task at the same time are a panel. A program that asks both at once
    # (`asyncio.gather`) records no group, but their times.
    together = other.group is not None and other.group == dispatch.group
    return not together and not overlap(other, dispatch) and other.status == "completed"


def _work_of(trace: Trace, dispatch: Dispatch) -> _Work:
    runs = receivers_of(trace, dispatch)
    calls: dict[bytes, ToolCall] = {}
    for run in runs:
        for step in run.steps:
            if (
                isinstance(step, ToolCall)
                and step.dispatch is None
                and known(trace, step, "arguments")
            ):
                calls.setdefault(call_key(step), step)
    asked = plain_text(dispatch.prompt) if dispatch.prompt is not None else ""
    answer = dispatch.result or next((run.output for run in runs if run.output is not None), None)
    text = plain_text(answer) if answer is not None else ""
    return _Work(dispatch, runs, calls, asked, text, answer)


def _is_verifying(work: _Work) -> bool:
    return bool(_VERIFIES.search(work.asked) or _VERIFIER.search(work.dispatch.to_agent))


def _repeats_caller(trace: Trace, work: _Work) -> Finding | None:
    """Find a receiver whose calls are mostly those of its caller, with the same results."""
    view = dispatch_view(trace, work.dispatch)
    before = {
        call_key(step): step
        for step in view.before
        if isinstance(step, ToolCall)
        and step.dispatch is None
        and step.result is not None
        and not _still_ran(step, work.dispatch)
    }
    again = [
        call for key, call in work.calls.items() if key in before and same_result(before[key], call)
    ]
    # It is normal that caller and helper both open a file, if the helper also does other things.
    if not again or 2 * len(again) <= len(work.calls):
        return None
    made = [before[call_key(call)].id for call in again]
    return Finding(
        kind="repeats_caller",
        says=f"`{work.dispatch.to_agent}` made {len(again)} of its {len(work.calls)} calls again, "
        f"although `{work.dispatch.from_agent}` had their results: pass them on",
        evidence=[Evidence(ids=[work.dispatch.id, *made, *(call.id for call in again)])],
        details={"repeated": [call.name for call in again]},
    )


def _still_ran(call: ToolCall, dispatch: Dispatch) -> bool:
    """Return whether a call was answered only after a dispatch, as in one request for both.

    The caller had no result to pass on then.
    """
    if call.ended is None or dispatch.started is None:
        return False
    return call.ended > dispatch.started


def _same_work(trace: Trace, first: _Work, second: _Work) -> tuple[str, list[str]] | None:
    """Return what proves that two agents did the same work, with the steps, or ``None``."""
    if not first.answer or _failed(first) or _parts(first.asked) != _parts(second.asked):
        return None
    if _is_about_answer(first, second):
        return None
    # "Do it" and "Done." say nothing about the work: each agent does its own.
    says_what = read(first.asked).facts and read(first.answer).facts
    if says_what and (first.asked, first.answer) == (second.asked, second.answer):
        return "it got the same request and gave the same answer", []
    again = [
        (first.calls[key], call)
        for key, call in second.calls.items()
        if key in first.calls and same_result(first.calls[key], call)
    ]
    # Two thirds of the later agent's calls: one call in common, such as a look at the list of
    # files, does not make the same work.
    mostly = bool(again) and 3 * len(again) >= 2 * len(second.calls)
    alike = _found_the_same(trace, first, second)
    steps = [call.id for pair in again for call in pair]
    # Two agents read the same files for two tasks: for a docstring, and for tests.
    # One search in common proves less: "the phone number of the Adler" and "the rates of the Adler"
    # find different numbers.
    known = read(first.asked, first.answer, second.asked)
    other = any(fact.kind in HARD and not known.holds(fact) for fact in read(second.answer).facts)
    same_calls = [call for _, call in again]
    if again and _are_two_tasks(first, second, same_calls):
        return None
    # "The deadline of the brief" and "the deadline of the reply" are two dates, even after the same
    # look-ups.
    single = other and (len(again) == 1 or _looked_up_another(first, second, same_calls))
    if mostly and (alike or (not single and _asked_alike(first, second, same_calls))):
        return f"{len(again)} of its {len(second.calls)} calls", steps
    nearly = _nearly_same_calls(first, second)
    if nearly and _all_found_before(first, second):
        return "it made nearly the same calls, and found nothing new", nearly
    # If the calls mostly differ, the work was different, whatever its result.
    if alike and not (first.calls and second.calls and not again):
        return f"its answer names the same: {', '.join(alike[:4])}", steps
    return None


def _is_about_answer(first: _Work, second: _Work) -> bool:
    """Return whether the later agent checks or uses what the earlier one found.

    It does if its prompt names the other agent, asks for a check, or states a number or name that
    the earlier prompt lacks and the earlier answer has: "Is it open until 16:30?"
    """
    if _OF_ANOTHER.search(second.asked) or _CHECKS.search(second.asked):
        return True
    facts, asked = read(first.answer), read(first.asked)
    return any(
        fact.kind in HARD
        and len(re.sub(r"\D", "", fact.text)) >= _TELLING
        and facts.holds(fact)
        and not asked.holds(fact)
        for fact in read(second.asked).facts
    )


# "14 travellers" and "class 3" can come up by chance.
_TELLING = 3


def _looked_up_another(first: _Work, second: _Work, again: list[ToolCall]) -> bool:
    """Return whether two agents only looked something up and their answers share no fact."""
    if any(changes_something(call.name) or _DOES.search(call.name) for call in again):
        return False
    new = read(second.answer).without(read(first.asked, second.asked))
    shared = [f for f in _shared(new, read(first.answer)) if f.kind in HARD]
    # Two dates usually have the same year.
    return all(re.fullmatch(r"(?:19|20)\d\d", fact.text) for fact in shared)


def _are_two_tasks(first: _Work, second: _Work, again: list[ToolCall]) -> bool:
    """Return whether these are two tasks whose calls show only the object they work on.

    "Rename `parse_row`" and "Add type hints" both end in `edit_file(rows.py)` and "41 passed", if
    the written text is not recorded. Each prompt has to have words that the other lacks.
    """
    one, two = read(first.asked), read(second.asked)
    if one.language and two.language and one.language != two.language:
        return False  # in another language, every word differs
    own = [any(not b.holds(fact) for fact in a.facts) for a, b in ((one, two), (two, one))]
    changing = [c for c in again if changes_something(c.name) or _DOES.search(c.name)]
    if changing:
        asked = f"{first.asked} {second.asked}"
        return all(own) and not any(
            _TARGET_SAYS_ALL.search(call.name)
            or _content_of(call) >= _CONTENT
            or _chose_place(call, asked)
            for call in changing
        )
    # "Find unused imports" and "List imports" of one file: the results have to decide.
    document = len(again) == len(second.calls) == 1 and any(
        _DOCUMENT.fullmatch(word) for word in plain_text(again[0].arguments).split()
    )
    return document and any(own) and not _answers_cover(first, second)


def _chose_place(call: ToolCall, asked: str) -> bool:
    """Return whether no prompt named a call's file. Two agents choosing one name did one thing."""
    words = plain_text(call.arguments).split()
    paths = [word for word in words if _DOCUMENT.fullmatch(word) and "@" not in word]
    return bool(paths) and not any(path.rpartition("/")[2] in asked for path in paths)


def _content_of(call: ToolCall) -> int:
    """Return the number of words of a call's longest argument."""
    values = call.arguments.values() if isinstance(call.arguments, dict) else [call.arguments]
    return max((len(value.split()) for value in values if isinstance(value, str)), default=0)


def _answers_cover(first: _Work, second: _Work) -> bool:
    """Return whether the later answer mostly has the facts of the earlier one."""
    new = read(second.answer).without(read(first.asked, second.asked))
    return weight(_shared(new, read(first.answer))) >= _SAME_SHARE * weight(new)


def _nearly_same_calls(first: _Work, second: _Work) -> list[str]:
    """Return calls of one tool with nearly the same arguments: one has slightly more.

    `lookup("KT-4410")` and `lookup("KT-4410", "all")`, `pytest packages/parser` with and without
    `-q`. Most calls of the later agent have to be of this kind.
    """
    alike = []
    for call in second.calls.values():
        words = _argument_words(call)
        for other in first.calls.values():
            if other.name == call.name and _says_the_same(_argument_words(other), words):
                alike += [other.id, call.id]
                break
    # Each pair has two ids. Half is not enough: `sql(missing days)` and then `submit(backfill)`.
    return alike if len(alike) > len(second.calls) else []


# Words of a command that reveal nothing about its object: `cd a && b`, flags like `-q`.
_COMMAND = regex(r"-[\w-]+|cd|&&|;|\||sudo|-")


def _argument_words(call: ToolCall) -> frozenset[str]:
    words = plain_text(call.arguments).casefold().split()
    return frozenset(word for word in words if not _COMMAND.fullmatch(word))


def _says_the_same(some: frozenset[str], others: frozenset[str]) -> bool:
    smaller, larger = sorted((some, others), key=len)
    return bool(smaller) and smaller <= larger and len(larger) <= 2 * len(smaller)


def _all_found_before(first: _Work, second: _Work) -> bool:
    """Return whether all numbers and names of an answer are in the earlier agent's answer."""
    if _asks_for_more(first, second) or _works_on(second.asked) != _works_on(first.asked):
        return False
    if _acted_on(first, second):
        return False
    new = read(second.answer).without(read(first.asked, second.asked))
    hard = [fact for fact in new if fact.kind in HARD]
    same = _shared(new, read(first.answer))
    # A reply to a ticket and its translation name the same order, and contain much more.
    return bool(hard) and set(hard) <= set(same) and weight(same) >= _SAME_SHARE * weight(new)


# Two writers of one article name the same facts: one wrote the introduction, one the conclusion.
# "Two days and nights" and "options up to 120 EUR" name no part.
_PARTS = regex(
    r"\b(?:introduction|intro|conclusion|abstract|title|headline|caption|outline|appendix|einleitung"
    r"|schluss|(?:section|chapter|part|paragraph|slide|page|day|step|option|variant|version|scene"
    r"|teil|tag|kapitel)s? (?:\d[\w.]*|[a-z]|[ivx]{1,4}|one|two|three|four|five|six|eins|zwei|drei"
    r"|vier))\b",
    re.IGNORECASE,
)


# A summary of a paper and a tweet about it name the same facts, too.
_FORMS = regex(
    r"\b(?:tweet|post|press release|newsletter|letter|poem|haiku|limerick|quiz|flyer|slogan|joke"
    r"|song|story|speech|toast|faq|blog|podcast|pressemitteilung|gedicht|rede|communiqué|lettre|poème"
    r"|discours|comunicado|carta|poema|discurso)(?=s?\b)",
    re.IGNORECASE,
)


def _parts(asked: str) -> set[str]:
    """Return the parts and forms of texts that a prompt asks for."""
    return {part.casefold() for part in (*_PARTS.findall(asked), *_FORMS.findall(asked))}


# "Missing: 5 and 6 March" and "Wrote 5 and 6 March": the later agent acted on what the first found.
# "The flight was moved to 5 pm" reports no deed of the agent.
_DEEDS = regex(
    r"""(?:\A|[.!?\n;]\s?|\b(?:I|we)(?:['’]ve|\ have)?\ )\W{0,3}
        (?:wrote|written|filled|created|added|sent|updated|booked|fixed|deleted|removed|moved|copied
        |renamed|replaced|merged|archived|cancell?ed|refunded|paid|ordered|uploaded|deployed
        |restarted|inserted|imported|patched|blocked|angelegt|gelöscht|entfernt|gesendet|verschickt
        |gebucht|bezahlt|aktualisiert|erstellt|créée?s?|supprimée?s?|envoyée?s?|réservée?s?|payée?s?
        |cread[oa]s?|borrad[oa]s?|eliminad[oa]s?|enviad[oa]s?|reservad[oa]s?|pagad[oa]s?)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def _acted_on(first: _Work, second: _Work) -> bool:
    """Return whether only the later answer reports that something was done."""
    return _DEEDS.search(second.answer) is not None and _DEEDS.search(first.answer) is None


def _failed(work: _Work) -> bool:
    """Return whether an answer only reports a failure: then another agent has to try."""
    # "2 of 5 tests fail: test_login, test_refund" mentions failure, but is a result.
    new = read(work.answer).without(read(work.asked))
    return reports_failure(work.answer) and not any(fact.kind in HARD for fact in new)


def _asked_alike(first: _Work, second: _Work, again: list[ToolCall]) -> bool:
    """Return whether two prompts ask for the same thing, in about the same words."""
    one, two = read(first.asked), read(second.asked)
    hard = [fact for fact in one.facts if fact.kind in HARD]
    if not one.facts or not all(two.holds(fact) for fact in hard):
        return False
    # "Where is order 88?" and "Refund order 88." share one fact, and the latter has one more;
    # "When does order 88 come?" has none.
    more = any(not one.holds(fact) for fact in two.facts)
    shared = sum(two.holds(fact) for fact in one.facts)
    if shared == 1:
        return not more
    # "Write a docstring for `parse` in parser.py" and "Write tests for `parse` in parser.py" both
    # read that file: each prompt has its own words, and no call shows what was made of the same
    # text. Agents that write the same words into the same file did the same work, whatever the
    # prompts.
    if more and shared < len(one.facts) and not any(_DOES.search(call.name) for call in again):
        return False
    return shared > 1 and 2 * shared >= len(one.facts)


def _found_the_same(trace: Trace, first: _Work, second: _Work) -> list[str]:
    """Return what both agents found, if that is most of what the later agent found."""
    # Facts given to the later agent are not its findings: "Rank these by price: ...".
    given = [second.asked, first.asked]
    for run in second.runs:
        given += [plain_text(run.input)] if run.input is not None else []
        given += [piece.text for piece in given_besides(trace, run)]
    had = read(*given)
    if _asks_for_more(first, second) or _works_on(second.asked) != _works_on(first.asked):
        return []
    if _acted_on(first, second):
        return []
    if _names_another(first, second) and _names_another(second, first):
        return []
    new = read(second.answer).without(had)
    same = _shared(new, read(first.answer))
    # One exact number is not chance: "48,930.20 EUR".
    exact = any(len(_significant(fact)) >= _EXACT for fact in same)
    enough = weight(same) >= _LEAST_WEIGHT or exact
    least = _SAME_SHARE
    spoken, before = read(second.answer).language, read(first.answer).language
    if spoken and before and spoken != before and spoken == read(second.asked).language:
        # In another language only numbers and names are the same.
        new = [fact for fact in new if fact.kind in HARD]
        least = 1.0
    enough = enough and weight(_shared(new, read(first.answer))) >= least * weight(new) > 0
    if (
        enough
        and _only_lists(first, same)
        and any(fact.kind in HARD and fact not in same for fact in new)
    ):
        return []
    if enough and (
        _differ_in_one_place(first.asked, second.asked)
        or _measures_another(first.said, second.said)
    ):
        return []
    return [fact.text for fact in same] if enough else []


# The facts of a long list, and how many times as many as another answer repeats: a table of twelve
# jobs with their states and errors, and an answer that names two of them.
_LISTED = 20
_TIMES_AS_MANY = 4


def _only_lists(first: _Work, same: list[Fact]) -> bool:
    """Return whether an answer is a long list, of which another answer names a few entries.

    A table of all nightly jobs names whatever is said about one of them later.
    """
    facts = read(first.answer).facts
    return len(facts) >= _LISTED and len(facts) >= _TIMES_AS_MANY * len(same)


# "patient Okafor", "for Kenya": a capital after a word in lower case. At the start of a sentence it
# says nothing.
_NAME_INSIDE = regex(r"(?<=[^\W\d_] )[^\W\d_a-zß-ÿ][a-zß-ÿ]{2,40}\b")


def _names_another(one: _Work, other: _Work) -> bool:
    """Return whether a prompt has a name that neither prompt nor answer of the other work has.

    "List the vaccinations of patient Okafor" and "Which vaccinations does one need in Kenya?" are
    two tasks, although both answers name yellow fever and typhoid.
    """
    known = read(other.asked, other.answer)
    return any(
        not known.holds(fact)
        for match in _NAME_INSIDE.finditer(one.asked)
        for fact in read(match[0]).facts
    )


def _differ_in_one_place(one: str, other: str) -> bool:
    """Return whether a prompt is the other one with another word or two in one place.

    "Trains from Graz to Linz on 4 May" and "Buses from Graz to Linz on 4 May": callers that split a
    task fill in a form. Those that give one task twice word it in two ways, or in the same way.
    """
    first, second = _LETTERS_OR_DIGITS.findall(one), _LETTERS_OR_DIGITS.findall(other)
    shorter = min(len(first), len(second))
    start = next((i for i in range(shorter) if first[i] != second[i]), shorter)
    left = shorter - start
    end = next((i for i in range(left) if first[-1 - i] != second[-1 - i]), left)
    places = [words[start : len(words) - end] for words in (first, second)]
    return (
        start + end >= _FORM
        and all(0 < len(words) <= _FILLED_IN for words in places)
        and not all(word.casefold() in COMMON for words in places for word in words)
    )


_LETTERS_OR_DIGITS = regex(r"\w+")
# The fewest words of a form, and the most words that are filled in.
_FORM = 3
_FILLED_IN = 2
# Where an entry of a list ends: "Oslo 12, Bergen 9", a line, a sentence.
_ENTRY_ENDS = regex(r"[\n;]|[,.]\s")
_ENUMERATION = regex(r"\W{0,5}\d{1,3}[.)]\s")
# "A-110: 40", "| rack 7 | 12 |": a name with a digit, and a mark between it and its number.
_MARKED = regex(r"\W{0,5}([\w][^:|=]{0,60}?)\s?[:|=]\s?(?=[^\w\s]?\s?(?:[A-Z]{3}\s)?\d)")
_LETTERS = regex(r"[^\W\d_]+")
# The fewest names that both answers have a number for. With one name a fact may be corrected.
_NAMES = 2


def _measures_another(one: Content | None, other: Content | None) -> bool:
    """Return whether two answers give numbers for the same names, and half of them differ.

    "Oslo 12, Bergen 9, Molde 4" (guests) and "Oslo 4, Bergen 12, Molde 7" (complaints) share
    all names and some numbers, but tell of two measures.
    """
    had, has = _numbers_by_name(one), _numbers_by_name(other)
    both = had.keys() & has.keys()
    differ = sum(had[name].isdisjoint(has[name]) for name in both)
    return len(both) >= _NAMES and 2 * differ >= len(both)


def _numbers_by_name(answer: Content | None) -> dict[str, set[str]]:
    """Return the numbers of each entry or row of an answer, by the name that it starts with."""
    if answer is None:
        return {}
    data = answer.data if answer.text is None else as_json(answer.text)
    entries = _named(answer.text or "") if data is None else _named_in_data(data, "")
    found: dict[str, set[str]] = {}
    for name, text in entries:
        numbers = {key for number in re.findall(NUMBER, text) for key in number_keys(number)}
        if name and numbers:
            found.setdefault(name.casefold(), set()).update(numbers)
    # A year or a limit that every entry repeats says nothing about one name.
    everywhere = set.intersection(*found.values()) if len(found) > 1 else set()
    return {name: numbers - everywhere or numbers for name, numbers in found.items()}


def _named(text: str) -> Iterator[tuple[str, str]]:
    for entry in _ENTRY_ENDS.split(text):
        numbered = _ENUMERATION.match(entry)
        start = numbered.end() if numbered else 0
        marked = _MARKED.match(entry, start)
        if marked is not None and _LETTERS.search(marked[1]):
            yield marked[1], entry[marked.end() :]
            continue
        digit = re.search(r"\d", entry[start:])
        if digit is not None:
            # "More guests: Oslo +3" is about Oslo, and so is "Oslo: 3".
            heading, _, last = entry[start : start + digit.start()].rpartition(":")
            name = " ".join(_LETTERS.findall(last) or _LETTERS.findall(heading))
            yield name, entry[start + digit.start() :]


def _named_in_data(data: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield the values of JSON with their names: `{"Oslo": 12}`, `{"town": "Oslo", "guests": 12}`.

    A text in an object names it, if the text has no number.
    """
    if isinstance(data, list):
        for each in data:
            yield from _named_in_data(each, name)
    elif isinstance(data, dict):
        texts = (v for v in data.values() if isinstance(v, str) and not re.search(r"\d", v))
        row = next(texts, "")
        for key, each in data.items():
            yield from _named_in_data(each, key if isinstance(each, dict | list) else row or key)
    elif data is not None:
        yield name, str(data)


# An agent that translates or rewords another agent's findings repeats its numbers and names.
_WORKS_ON = regex(
    r"translat|übersetz|tradui|traduc|rewrit|rephras|proofread|shorten|korrigier", re.IGNORECASE
)


def _works_on(asked: str) -> bool:
    return _WORKS_ON.search(asked) is not None


def _significant(fact: Fact) -> str:
    digits = re.sub(r"\D", "", fact.text).strip("0")
    return digits if fact.kind == "number" else ""


def _shared(facts: list[Fact], other: Reading) -> list[Fact]:
    return [fact for fact in facts if other.holds(fact)]


def _asks_for_more(first: _Work, second: _Work) -> bool:
    """Return whether the later prompt adds a number or name, and so is about something else."""
    before = read(first.asked, first.answer)
    return any(
        f.kind in HARD and not before.holds(f) and not _is_compound(f, before)
        for f in read(second.asked).facts
    )


def _is_compound(fact: Fact, before: Reading) -> bool:
    """Return whether a fact is a compound of a known name: `CO2-Bilanz` in an answer in t CO2."""
    parts = [part for part in fact.text.split("-") if any(c.isdigit() for c in part)]
    if fact.kind != "identifier" or "-" not in fact.text or len(parts) != 1:
        return False
    return fact.text.replace("-", "") != parts[0] and f"i:{parts[0].casefold()}" in before.keys


def _duplicate(other: Dispatch, dispatch: Dispatch, proof: str, steps: list[str]) -> Finding:
    return Finding(
        kind="duplicate_work",
        says=f"`{dispatch.to_agent}` did what `{other.to_agent}` had already done: {proof}",
        evidence=[Evidence(ids=[other.id, dispatch.id, *steps])],
        details={"first": other.id},
    )
