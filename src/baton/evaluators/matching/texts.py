"""Ways in which one text can match another, and rules that an answer has to meet."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self, cast
from urllib.parse import unquote

import msgspec

from baton.evaluators.matching.answers import json_in, quote
from baton.evaluators.matching.rouge import rouge1, words
from baton.formats.nesting import TOO_DEEP, is_value_too_deep
from baton.formats.patterns import BadPatternError, Pattern, compiled, has_several_repeats
from baton.model import Content, ExpectedTurn, InputError, Problem
from baton.plugins.origin import install, requirement

Match = Literal["equals", "contains", "regex", "jaccard", "recall", "rouge1"]


CaseSensitive = Annotated[bool, msgspec.Meta(description="Whether case matters.")]
NormalizeWhitespace = Annotated[
    bool, msgspec.Meta(description="Whether any white space counts as one space.")
]


class ReadingOptions(Protocol):
    """An evaluator whose options say which differences between texts do not matter."""

    @property
    def case_sensitive(self) -> bool: ...  # noqa: D102
    @property
    def normalize_whitespace(self) -> bool: ...  # noqa: D102


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between texts that do not matter. All matchers share it."""

    case_sensitive: bool = False
    normalize_whitespace: bool = True

    @classmethod
    def of(cls, options: ReadingOptions) -> Self:
        """Return the reading that an evaluator's options state."""
        return cls(
            case_sensitive=options.case_sensitive,
            normalize_whitespace=options.normalize_whitespace,
        )

    def fold(self, text: str) -> str:
        """Return the relevant part of a text, with accented letters composed (NFC)."""
        text = unicodedata.normalize("NFC", text)
        if not self.case_sensitive:
            text = text.casefold()
        return " ".join(text.split()) if self.normalize_whitespace else text

    def pattern(self, regex: str, path: str = "") -> Pattern:
        """Compile a pattern. Raises InputError that names ``path`` if it is invalid."""
        try:
            return compiled(regex, ignore_case=not self.case_sensitive)
        except BadPatternError as error:
            raise InputError(Problem(path=path, message=f"{regex!r} {error.why}")) from None

    def found_in(self, wanted: str, text: str) -> bool:
        """Return whether a text contains another. An empty text is only found in an empty one."""
        wanted, text = self.fold(wanted), self.fold(text)
        return wanted in text if wanted else not text


def match_score(
    match: Match,
    expected: str,
    actual: str,
    reading: Reading,
    fold: Callable[[str], str] | None = None,
) -> float:
    """Score ``actual`` against ``expected``, 0 to 1.

    ``equals`` and ``contains`` (``actual`` contains ``expected``): 1 or 0. ``regex``: 1 if
    ``expected``, as a pattern, is found anywhere in the unchanged ``actual``. ``jaccard``: words in
    both divided by words in either, as sets. ``recall``: the share of the expected words, as a set,
    that are found. ``rouge1``: the F-measure of :func:`.rouge.rouge1`, which has its own folding.
    If either text is empty, or ``expected`` has no words, only equality counts. ``fold`` is the
    method of ``reading``, or a cached version of it.

    Raises:
        InputError: ``expected`` should be a pattern and is invalid.
    """
    if match == "regex":
        return float(reading.pattern(expected).search(actual) is not None)
    fold = fold or reading.fold
    folded, text = fold(expected), fold(actual)
    if match == "equals" or not (folded and text):
        return float(folded == text)
    if match == "contains":
        return float(folded in text)
    wanted, text_words = set(words(folded)), set(words(text))
    if not wanted:
        return float(folded == text)
    if match == "rouge1":
        return rouge1(expected, actual).fmeasure
    return len(wanted & text_words) / len(wanted | text_words if match == "jaccard" else wanted)


SchemaCheck = Callable[[Any], str | None]


def schema_check(schema: dict[str, Any], path: str) -> SchemaCheck:
    """Return a function that returns the problem of a value, or ``None`` if it is valid.

    The draft is the one that ``$schema`` names, else 2020-12. ``format`` is not checked.
    References have to stay inside the schema, so scoring fetches nothing.

    Raises:
        InputError: not a schema, a reference that leads out of it, or no library to check with.
    """
    try:
        from jsonschema.exceptions import SchemaError, best_match
        from jsonschema.validators import Draft202012Validator, validator_for
    except ImportError:
        message = f"JSON Schema needs jsonschema: {install(requirement('text'))}"
        raise InputError(Problem(path=path, message=message)) from None
    if is_value_too_deep(schema):
        raise InputError(Problem(path=path, message=TOO_DEEP))
    outside = next((ref for ref in _references(schema) if not ref.startswith("#")), None)
    if outside is not None:
        message = f"`$ref` has to stay inside the schema (`#/$defs/...`), got {outside!r}"
        raise InputError(Problem(path=path, message=message))
    dangling = next((ref for ref in _references(schema) if not _leads_somewhere(schema, ref)), None)
    if dangling is not None:
        raise InputError(
            Problem(path=path, message=f"`$ref` {dangling!r} points to nothing in the schema")
        )
    draft: Any = Draft202012Validator
    if "$schema" in schema:
        named = schema["$schema"]
        # Without a default, the library warns and uses its newest draft.
        draft = validator_for({"$schema": str(named)}, default=cast("Any", None))
        if draft is None:
            raise InputError(Problem(path=f"{path}.$schema", message=f"unknown draft: {named!r}"))
    try:
        draft.check_schema(schema)
        _check_patterns(schema, path)
    except SchemaError as error:
        where = ".".join(str(step) for step in (path, *error.absolute_path))
        message = f"not a JSON Schema: {error.message}"
        raise InputError(Problem(path=where, message=message)) from None
    validator = _in_limited_time(draft)(schema)

    def check(value: Any) -> str | None:
        worst = best_match(validator.iter_errors(value))
        if worst is None:
            return None
        where = worst.json_path.removeprefix("$").removeprefix(".")
        message = quote(worst.message)
        return f"`{where}`: {message}" if where else message

    return check


def _check_patterns(schema: Any, path: str) -> None:
    """Compile all patterns of a schema. Raises InputError for a pattern that cannot be used."""
    every = list(_dicts(schema))
    unevaluated = any("unevaluatedProperties" in match for match in every)
    for match in every:
        single = match.get("pattern")
        names = match.get("patternProperties")
        patterns = [single] if isinstance(single, str) else []
        patterns += list(names) if isinstance(names, dict) else []
        for pattern in patterns:
            try:
                compiled(pattern)
            except BadPatternError as error:
                raise InputError(Problem(path=path, message=f"{pattern!r} {error.why}")) from None
            # With this keyword, jsonschema itself searches for the pattern, without a time limit.
            if unevaluated and pattern != single and has_several_repeats(pattern):
                message = (
                    f"{pattern!r} has several unbounded repeats, which `patternProperties` may not "
                    "have in a schema with `unevaluatedProperties`; use `additionalProperties`"
                )
                raise InputError(Problem(path=path, message=message))


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _dicts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _dicts(each)


def _in_limited_time(draft: Any) -> Any:
    """Return a validator class that searches for patterns in limited time."""
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    def pattern(validator: Any, wanted: str, value: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "string") and not compiled(wanted).search(value):
            yield ValidationError(f"{value!r} does not match {wanted!r}")

    def pattern_properties(
        validator: Any, patterns: dict[str, Any], value: Any, _schema: Any
    ) -> Iterator[Any]:
        if not validator.is_type(value, "object"):
            return
        for wanted, inner in patterns.items():
            for name, item in value.items():
                if compiled(wanted).search(name):
                    yield from validator.descend(item, inner, path=name, schema_path=wanted)

    known = draft.VALIDATORS["additionalProperties"]

    def additional_properties(
        validator: Any, allowed: Any, value: Any, schema: Any
    ) -> Iterator[Any]:
        patterns = schema.get("patternProperties")
        if not patterns or not validator.is_type(value, "object"):
            yield from known(validator, allowed, value, schema)
            return
        rest = {
            name: item
            for name, item in value.items()
            if not any(compiled(wanted).search(name) for wanted in patterns)
        }
        bare = {key: each for key, each in schema.items() if key != "patternProperties"}
        yield from known(validator, allowed, rest, bare)

    extended: Any = extend
    return extended(
        draft,
        {
            "pattern": pattern,
            "patternProperties": pattern_properties,
            "additionalProperties": additional_properties,
        },
    )


def _leads_somewhere(schema: Any, reference: str) -> bool:
    """Return whether a JSON pointer resolves. Anchors and other bases are left to the library."""
    pointer = unquote(reference.removeprefix("#"))
    has_bases = any(b'"$id"' in msgspec.json.encode(value) for value in schema.values())
    if has_bases or (pointer and not pointer.startswith("/")):
        return True
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list) and key.isdecimal() and int(key) < len(schema):
            schema = schema[int(key)]
        elif isinstance(schema, dict) and key in schema:
            schema = schema[key]
        else:
            return False
    return True


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str):
                yield value
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


class AnswerRules(NamedTuple):
    """The rules for the last answer of a conversation, whatever its case states.

    The texts and patterns come from the options of ``response``. ``None`` requires nothing.
    """

    equals: str | None
    contains: str | None
    all_of: list[str] | None
    any_of: list[str] | None
    regex: str | None
    json_schema: dict[str, Any] | None


class Check(NamedTuple):
    """One check. ``problem`` describes the fault if it scores below 1."""

    name: str
    score: float
    problem: str = ""


class Rules:
    """Rules with their patterns and schemas compiled."""

    def __init__(self, rules: AnswerRules, reading: Reading) -> None:
        """Compile the rules. Raises InputError for an invalid pattern or schema."""
        self._rules, self._reading = rules, reading
        self._regex: Pattern | None = None
        self._schema: SchemaCheck | None = None
        if rules.regex is not None:
            self._regex = reading.pattern(rules.regex, "regex")
        if rules.json_schema is not None:
            self._schema = schema_check(rules.json_schema, "json_schema")

    def __bool__(self) -> bool:
        return any(rule is not None for rule in self._rules)

    def checks(self, answer: Content | None) -> Iterator[Check]:
        """Check one answer."""
        rules, reading, text = self._rules, self._reading, _text(answer)
        if rules.equals is not None:
            yield _equals("equals", rules.equals, text, reading)
        if rules.contains is not None:
            yield _contains("contains", [rules.contains], text, reading)
        if rules.all_of is not None:
            yield _contains("all_of", rules.all_of, text, reading)
        if rules.any_of is not None:
            is_met = any(reading.found_in(wanted, text) for wanted in rules.any_of)
            missing = f"the answer has none of {_listed(rules.any_of)}"
            yield Check("any_of", float(is_met), "" if is_met else missing)
        if self._regex is not None:
            is_met = bool(text) and self._regex.search(text) is not None
            missing = f"the answer does not match {self._regex.pattern!r}"
            yield Check("regex", float(is_met), "" if is_met else missing)
        if self._schema is not None:
            data = json_in(answer)
            wrong = "the answer contains no JSON" if data is msgspec.UNSET else self._schema(data)
            yield Check("json_schema", float(wrong is None), wrong or "")


def stated_checks(
    expected: ExpectedTurn, answer: Content | None, match: Match, reading: Reading
) -> Iterator[Check]:
    """Check an answer against the turn's statements. Raises InputError for a bad pattern."""
    text = _text(answer)
    if expected.response is not None:
        wanted = expected.response.plain()
        if match == "equals":
            yield _equals("response", wanted, text, reading)
        else:
            score = 0.0 if wanted and not text else match_score(match, wanted, text, reading)
            if match in ("contains", "regex"):
                verb = "contain" if match == "contains" else "match"
                yield Check(
                    "response", score, "" if score else f"the answer does not {verb} {wanted!r}"
                )
            else:
                yield Check("response", score, f"{match} of the answer is {score:.2f}")
    if expected.response_contains:
        yield _contains("response_contains", expected.response_contains, text, reading)
    if expected.response_not_contains:
        contained = [one for one in expected.response_not_contains if reading.found_in(one, text)]
        if contained:
            problem = f"the answer has {_listed(contained)}"
        else:  # a missing answer proves nothing
            problem = "" if text else "the answer is empty"
        yield Check("response_not_contains", float(not problem), problem)


def _equals(name: str, wanted: str, text: str, reading: Reading) -> Check:
    if reading.fold(wanted) == reading.fold(text):
        return Check(name, 1.0)
    return Check(name, 0.0, f"expected {quote(wanted, 100)!r}, got {quote(text, 100)!r}")


def _contains(name: str, wanted: list[str], text: str, reading: Reading) -> Check:
    missing = [one for one in wanted if not reading.found_in(one, text)]
    return Check(
        name, float(not missing), f"the answer lacks {_listed(missing)}" if missing else ""
    )


def _text(answer: Content | None) -> str:
    return "" if answer is None else answer.plain()


def _listed(texts: list[str]) -> str:
    return ", ".join(repr(quote(text, 80)) for text in texts)
