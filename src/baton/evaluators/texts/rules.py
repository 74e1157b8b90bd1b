"""What an answer has to meet, by options and by what a turn of a case states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import msgspec

from baton.formats.patterns import Pattern
from baton.model import Content, ExpectedTurn
from baton.plugins import FROM_CASES

from .answers import quote
from .json_answers import json_in
from .matchers import Match, Reading, match_score
from .schemas import SchemaCheck, schema_check


class RuleOptions(Reading, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the last answer of a conversation has to meet, whatever its case states."""

    equals: Annotated[str | None, FROM_CASES] = None
    contains: Annotated[str | None, FROM_CASES] = None
    all_of: Annotated[list[str] | None, FROM_CASES] = None
    any_of: Annotated[list[str] | None, FROM_CASES] = None
    regex: Annotated[str | None, FROM_CASES] = None
    json_schema: Annotated[dict[str, Any] | None, FROM_CASES] = None

    def __post_init__(self) -> None:
        for name in ("contains", "all_of", "any_of", "regex"):
            wanted = getattr(self, name)
            if wanted is not None and not (wanted and all(wanted)):
                raise ValueError(f"`{name}` is empty or holds an empty text, which says nothing")


class Check(NamedTuple):
    """One thing that was looked at; ``problem`` says what is wrong when it scores below 1."""

    name: str
    score: float
    problem: str = ""


class Rules:
    """The rules of some options, patterns and schemas made ready."""

    def __init__(self, options: RuleOptions) -> None:
        """Raise InputError for a pattern or a schema that is none."""
        self._options = options
        self._regex: Pattern | None = None
        self._schema: SchemaCheck | None = None
        if options.regex is not None:
            self._regex = options.pattern(options.regex, "config.regex")
        if options.json_schema is not None:
            self._schema = schema_check(options.json_schema, "config.json_schema")

    def __bool__(self) -> bool:
        fields = RuleOptions.__struct_fields__
        own = (name for name in fields if name not in Reading.__struct_fields__)
        return any(getattr(self._options, name) is not None for name in own)

    def checks(self, answer: Content | None) -> Iterator[Check]:
        """Check one answer."""
        options, text = self._options, _text(answer)
        if options.equals is not None:
            yield _equals("equals", options.equals, text, options)
        if options.contains is not None:
            yield _contains("contains", [options.contains], text, options)
        if options.all_of is not None:
            yield _contains("all_of", options.all_of, text, options)
        if options.any_of is not None:
            found = any(options.found_in(wanted, text) for wanted in options.any_of)
            missing = f"the answer has none of {_listed(options.any_of)}"
            yield Check("any_of", float(found), "" if found else missing)
        if self._regex is not None:
            found = bool(text) and self._regex.search(text) is not None
            missing = f"the answer does not match {self._regex.pattern!r}"
            yield Check("regex", float(found), "" if found else missing)
        if self._schema is not None:
            yield _fits(self._schema, answer)


def stated_checks(
    expected: ExpectedTurn, answer: Content | None, match: Match, reading: Reading
) -> Iterator[Check]:
    """Check an answer against what a turn states of it; raises InputError for a bad pattern."""
    text = _text(answer)
    if expected.response is not None:
        yield _matches(expected.response.plain(), text, match, reading)
    if expected.response_contains:
        yield _contains("response_contains", expected.response_contains, text, reading)
    if expected.response_not_contains:
        yield _lacks("response_not_contains", expected.response_not_contains, text, reading)


def _matches(wanted: str, text: str, match: Match, reading: Reading) -> Check:
    if match == "equals":
        return _equals("response", wanted, text, reading)
    score = 0.0 if wanted and not text else match_score(match, wanted, text, reading)
    if match in ("contains", "regex"):
        verb = "contain" if match == "contains" else "match"
        return Check("response", score, "" if score else f"the answer does not {verb} {wanted!r}")
    return Check("response", score, f"{match} of the answer is {score:.2f}")


def _equals(name: str, wanted: str, text: str, reading: Reading) -> Check:
    if reading.fold(wanted) == reading.fold(text):
        return Check(name, 1.0)
    return Check(name, 0.0, f"expected {quote(wanted, 100)!r}, got {quote(text, 100)!r}")


def _contains(name: str, wanted: list[str], text: str, reading: Reading) -> Check:
    missing = [one for one in wanted if not reading.found_in(one, text)]
    return Check(
        name, float(not missing), f"the answer lacks {_listed(missing)}" if missing else ""
    )


def _lacks(name: str, unwanted: list[str], text: str, reading: Reading) -> Check:
    """Check that an answer has none of some texts; no answer at all proves nothing."""
    found = [one for one in unwanted if reading.found_in(one, text)]
    if found:
        return Check(name, 0.0, f"the answer has {_listed(found)}")
    return Check(name, float(bool(text)), "" if text else "the answer is empty")


def _fits(schema: SchemaCheck, answer: Content | None) -> Check:
    found = json_in(answer)
    wrong = "the answer holds no JSON" if found is msgspec.UNSET else schema(found)
    return Check("json_schema", float(wrong is None), wrong or "")


def _text(answer: Content | None) -> str:
    return "" if answer is None else answer.plain()


def _listed(texts: list[str]) -> str:
    return ", ".join(repr(quote(text, 80)) for text in texts)
