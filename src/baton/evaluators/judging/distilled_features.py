"""The features of a subject for a distilled judge: words, and numbers on sections and findings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from baton.findings.finding import Answer as FindingAnswer
from baton.findings.finding import Clear, NotRecorded
from baton.stats.tfidf import words

from .evidence import FINDINGS
from .labelled_examples import material_hash, text_of
from .material import INDENT, Section

_READ = 40_000
"""The number of characters read of a section. It bounds the time for hostile input, and the
deciding text comes earlier."""
_FACTS_READ = 8_000
"""The number of characters read of a section for its facts, which take longer than its words."""
_MOST_WEIGHT = 20
"""The weight of facts at which a share counts fully: an answer names only part of a long list."""
_OF_ITS_OWN = 20
"""The fewest characters that make a section a distinct text. `Done.` occurs in many sections."""


class Reading(NamedTuple):
    """A subject as a classifier sees it: its words, its numbers by name, and its hash.

    ``texts`` are hashes of its sections, by name. Subjects that share a hash share a text.
    """

    words: list[str]
    numbers: dict[str, float]
    material: str
    texts: tuple[tuple[str, str], ...] = ()


def read(sections: Sequence[Section], answers: Mapping[str, FindingAnswer]) -> Reading:
    """Turn the material of a question and the findings into features."""
    shown = [each for each in sections if each.name != "findings" and not each.is_list]
    by_section = {each.name: words(each.text[:_READ]) for each in shown}
    every = [term for terms in by_section.values() for term in terms]
    return Reading(
        every,
        numbers_of(shown, by_section, answers),
        material_hash(text_of(shown)),
        tuple(
            (each.name, material_hash(each.text))
            for each in shown
            if not each.missing and len(each.text) >= _OF_ITS_OWN
        ),
    )


def numbers_of(
    sections: Sequence[Section],
    by_section: Mapping[str, Sequence[str]],
    answers: Mapping[str, FindingAnswer],
) -> dict[str, float]:
    """Return the features that are not words.

    For each section: whether it is missing. Its length is left out on purpose. The length reveals
    where a text comes from, and so the judge's usual verdict there, but not its verdict on another
    text.

    For each two sections: the share of the one's content that the other contains too, because that
    is often the question (is the result in the answer, is the request in the prompt). This covers
    words, long words, numbers and names, and sequences of three words, and the content that only
    these two sections share.

    For each finding: whether it was made, cleared or unknown, and the share that it found.

    Then the facts of the sections, and the kinds of their statements
    (:func:`_facts_of`). Their names start with :data:`OF_FACTS`.
    """
    numbers: dict[str, float] = {}
    sets = {each.name: _parts_of(each.text[:_READ], by_section[each.name]) for each in sections}
    for section in sections:
        numbers[f"missing:{section.name}"] = float(section.missing)
    for one, own in sets.items():
        for other, theirs in sets.items():
            if one == other:
                continue
            for kind in _PARTS:
                parts = own[kind]
                share = len(parts & theirs[kind]) / len(parts) if parts else -1.0
                name = f"{kind}:{one}>{other}"
                # A linear term is too rigid: no overlap at all means more than half the overlap.
                numbers[name] = math.sqrt(max(share, 0.0))
                numbers[f"{name}=0"] = float(share == 0.0)
                numbers[f"{name}>1/2"] = float(share > 0.5)
    numbers.update(_shared_alone(sets))
    for name, answer in answers.items():
        numbers[f"clear:{name}"] = float(isinstance(answer, Clear))
        numbers[f"untold:{name}"] = float(isinstance(answer, NotRecorded))
        if isinstance(answer, Clear):
            numbers[f"share:{name}"] = answer.share
        kinds: dict[str, bool] = {}
        if not isinstance(answer, Clear | NotRecorded):
            numbers[f"share:{name}"] = min(finding.share for finding in answer)
            for finding in answer:
                kinds[finding.kind] = kinds.get(finding.kind, True) and finding.warning
        for kind in sorted(FINDINGS[name][1]) if name in FINDINGS else ():
            numbers[f"found:{name}.{kind}"] = float(kind in kinds and not kinds[kind])
            numbers[f"perhaps:{name}.{kind}"] = float(kinds.get(kind, False))
    numbers.update(_facts_of({each.name: each.text[:_FACTS_READ] for each in sections}))
    return numbers


def _shared_alone(sets: Mapping[str, Mapping[str, frozenset[object]]]) -> dict[str, float]:
    """Return the content that two sections share and no other section contains.

    An answer repeats words of the request whatever the result was. Words that it shares with the
    result alone show that the result was read: `Friday` after `when is it free?`. Shares cover
    only content that no third section has. They are -1 if there is no such content.
    """
    numbers: dict[str, float] = {}
    names = list(sets)
    for kind in _ALONE:
        for place, one in enumerate(names):
            for other in names[place + 1 :]:
                rest = frozenset[object]().union(
                    *(sets[third][kind] for third in names if third not in (one, other))
                )
                own, theirs = sets[one][kind] - rest, sets[other][kind] - rest
                both = len(own & theirs)
                numbers[f"alone:{kind}:{one}&{other}"] = math.log1p(both)
                numbers[f"alone:{kind}:{one}>{other}"] = both / len(own) if own else -1.0
                numbers[f"alone:{kind}:{other}>{one}"] = both / len(theirs) if theirs else -1.0
            others = frozenset[object]().union(
                *(sets[other][kind] for other in names if other != one)
            )
            mine = sets[one][kind]
            numbers[f"alone:{kind}:{one}"] = len(mine - others) / len(mine) if mine else -1.0
    return numbers


_PARTS = ("words", "long", "facts", "rows")
"""The kinds of content compared between two sections."""
_ALONE = ("words", "long", "facts", "stems", "digits", "pairs")
"""The kinds of content compared between two sections, without the content of all others."""
_DIGITS = re.compile(r"\d+")
_FACT = re.compile(r"\d[\d.,:/-]*\d|\d|\b[A-Z][\w-]+")
"""Numbers, dates and names: `1,250.75`, `2026-03-01`, `Lisbon`."""


def _parts_of(text: str, terms: Sequence[str]) -> dict[str, frozenset[object]]:
    """Return the content of a section, by kind."""
    return {
        "words": frozenset(terms),
        "long": frozenset(term for term in terms if len(term) > 6),
        "facts": frozenset(_FACT.findall(text)),
        "rows": frozenset(zip(terms, terms[1:], terms[2:], strict=False)),
        # `delivery` and `delivers` start alike, as do `Zuschuss` and `Zuschüsse`.
        "stems": frozenset(term[:5] for term in terms if len(term) > 3),
        "digits": frozenset(_DIGITS.findall(text)),
        "pairs": frozenset(pairwise(terms)),
    }


OF_FACTS = "facts "
"""The prefix of the names of numbers about facts and statements. Trees over these and trees over
all others are wrong on different texts, so they are grown separately."""


def _facts_of(texts: Mapping[str, str]) -> dict[str, float]:
    """Return the facts that sections share, and the kinds of statements that each one makes.

    Facts are compared as findings compare them: `half past six` is 18:30, `about 232,000` is
    231,800, and `expiry` is near `expired`. For each two sections: the share of the one's content
    that the other one has, if no third section has it. For each section: the content that no other
    section has, which comes from elsewhere. Statements are questions, promises, general remarks,
    denials and failures.
    """
    # Imported here, as in `evidence`: an evaluation without a distilled judge does not need it.
    from baton.findings.dispatch_completed import reports_failure
    from baton.findings.empty_answers import (
        denies_data,
        only_asks,
        postpones,
        speaks_in_general,
        speaks_of_some,
    )
    from baton.findings.facts import HARD, read_part, weight
    from baton.findings.words import gives_verdict, is_negative, wants_verdict

    numbers: dict[str, float] = {}
    bodies = {name: _body_of(text) for name, text in texts.items()}
    readings = {name: read_part(body) for name, body in bodies.items()}
    for one, reading in readings.items():
        facts = reading.facts
        others = [name for name in readings if name != one]
        holders = [
            frozenset(name for name in others if readings[name].holds(fact, loosely=True))
            for fact in facts
        ]
        new = [fact for fact, held in zip(facts, holders, strict=True) if not held]
        hard = [fact for fact in new if fact.kind in HARD]
        numbers[f"new:{one}"] = weight(new) / weight(facts) if facts else -1.0
        numbers[f"new hard:{one}"] = math.log1p(len(hard))
        numbers[f"new words:{one}"] = math.log1p(len(new) - len(hard))
        for other in others:
            # Content of a third section is repeated anyway: most answers repeat the request.
            own = [
                (fact, other in held)
                for fact, held in zip(facts, holders, strict=True)
                if held <= {other}
            ]
            shared = [fact for fact, is_shared in own if is_shared]
            own_hard = [is_shared for fact, is_shared in own if fact.kind in HARD]
            most = min(weight([fact for fact, _ in own]), _MOST_WEIGHT)
            pair = f"{one}>{other}"
            numbers[f"held:{pair}"] = weight(shared) / most if own else -1.0
            numbers[f"held weight:{pair}"] = math.log1p(weight(shared))
            numbers[f"hard:{pair}"] = sum(own_hard) / len(own_hard) if own_hard else -1.0
            numbers[f"hard number:{pair}"] = math.log1p(sum(own_hard))
    for name, text in texts.items():
        body = bodies[name]
        spoken = _words_in(text) or body
        statements = {
            "asks": only_asks(spoken),
            "ends as a question": spoken.rstrip().endswith("?"),
            "postpones": postpones(spoken),
            "general": speaks_in_general(spoken),
            "some": speaks_of_some(spoken),
            "denies": denies_data(spoken),
            "decides": gives_verdict(spoken),
            "wants a decision": wants_verdict(spoken),
            "negative": is_negative(body),
            "failure": reports_failure(body),
            "calls": _CALL.search(text) is not None,
        }
        numbers |= {f"{kind}:{name}": float(holds) for kind, holds in statements.items()}
    return {f"{OF_FACTS}{name}": value for name, value in numbers.items()}


# A line that the material of a run has for each call: "desk called the tool lookup".
_CALL = re.compile(r"^(?:\S+ )?called the tool ", re.MULTILINE)


def _body_of(text: str) -> str:
    """Return the content of a section without the heads, which differ by framework.

    Content below a head such as `called the tool look_up with:` is indented. A section without
    heads is content.
    """
    lines = text.split("\n")
    content = [line.strip() for line in lines if line.startswith(INDENT)]
    return "\n".join(content) if content else text


def _words_in(text: str) -> str:
    """Return the words of agents or users in a section, as one line."""
    texts, is_said = [], False
    for line in text.split("\n"):
        if not line.startswith(INDENT):
            is_said = line.rstrip().endswith("said:")
        elif is_said:
            texts.append(line.strip())
    return " ".join(texts)
