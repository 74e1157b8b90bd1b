"""What the server is to say: a function, a list, one reply for all, or rules in a YAML file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Annotated, Any

import msgspec

from baton.formats.document import Document, read_bytes
from baton.model import InputError, Problem

from .exchange import Api, Received, Reply, ScriptError

Words = Reply | str | Mapping[str, Any]
"""A whole reply, or only its answer: a text, or a mapping that is placed as the client asks."""

Script = Callable[[Received], Words] | Sequence[Words] | Words
"""How to come by replies; a list is gone through once."""


class Rule(Reply, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply of a YAML script, and what it is for.

    All that is stated has to be so: ``contains`` are texts of the prompt, ``matches`` is a regular
    expression that is searched for in it, ``api`` and ``model`` are those that are asked. It is
    good for ``times`` requests, then the rules below it have their turn.
    """

    contains: str | list[str] = msgspec.field(default_factory=list)
    matches: str | None = None
    api: Api | None = None
    model: str | None = None
    times: Annotated[int, msgspec.Meta(ge=1)] | None = None


class ScriptFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A YAML script."""

    rules: list[Rule] = []
    default: Reply | None = None


def replies(script: Script | PathLike[str]) -> Callable[[Received], Reply]:
    """Return a function that gives the reply to a request, and raises ScriptError if it has none.

    Raises:
        InputError: the script is the path of a YAML one, and something is wrong with that.
        ScriptError: it holds something that is no answer.
    """
    if isinstance(script, PathLike):
        return load_script(script)
    if callable(script):
        return _called(script)
    if isinstance(script, Sequence) and not isinstance(script, str):
        return _listed(script)
    reply = reply_of(script)
    return lambda _: reply


def reply_of(words: Any) -> Reply:
    """Return words as a reply; raises ScriptError for what is none."""
    if isinstance(words, Reply):
        return words
    if isinstance(words, str | Mapping):
        return Reply(answer=words)
    raise ScriptError(f"no answer: {words!r}; give a text, a mapping, or a Reply")


def _called(function: Callable[[Received], Words]) -> Callable[[Received], Reply]:
    def reply(received: Received) -> Reply:
        try:
            return reply_of(function(received))
        except Exception as error:
            raise ScriptError(f"the script raised {type(error).__name__}: {error}") from error

    return reply


def _listed(words: Sequence[Words]) -> Callable[[Received], Reply]:
    left = iter([reply_of(each) for each in words])

    def reply(_: Received) -> Reply:
        found = next(left, None)
        if found is None:
            raise ScriptError(f"the script has {len(words)} answers, and this is one more")
        return found

    return reply


def load_script(path: str | PathLike[str]) -> Callable[[Received], Reply]:
    """Read a YAML script.

    Raises:
        InputError: all that is wrong with it, with file, line and the nearest names.
    """
    document = Document(str(path), read_bytes(path), "yaml")
    script = document.convert(document.value(), ScriptFile)
    problems: list[Problem] = []
    rules = []
    for index, rule in enumerate(script.rules):
        try:
            rules.append(_Rule(rule))
        except re.error as error:
            message = f"no regular expression: {error}"
            problems.append(document.problem_at(("rules", index, "matches"), message))
    if problems:
        raise InputError(problems)
    return lambda received: _first(rules, script.default, received)


class _Rule:
    """A rule and how often it was used."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.used = 0
        self._texts = [rule.contains] if isinstance(rule.contains, str) else rule.contains
        self._pattern = re.compile(rule.matches, re.DOTALL) if rule.matches is not None else None

    def fits(self, received: Received) -> bool:
        rule, text = self.rule, received.text
        return (
            (rule.times is None or self.used < rule.times)
            and rule.api in (None, received.api)
            and rule.model in (None, received.model)
            and all(part in text for part in self._texts)
            and (self._pattern is None or self._pattern.search(text) is not None)
        )


def _first(rules: Sequence[_Rule], default: Reply | None, received: Received) -> Reply:
    for each in rules:
        if each.fits(received):
            each.used += 1
            return each.rule
    if default is None:
        raise ScriptError("no rule of the script fits this prompt, and it has no `default`")
    return default
