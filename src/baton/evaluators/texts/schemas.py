"""Checking JSON with a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from baton.formats.nesting import TOO_DEEP, is_value_too_deep
from baton.formats.patterns import BadPatternError, compiled, has_several_repeats
from baton.model import InputError, Problem

from .answers import quote

SchemaCheck = Callable[[Any], str | None]


def schema_check(schema: dict[str, Any], path: str) -> SchemaCheck:
    """Return a function that says what is wrong with a value, ``None`` when it fits.

    The draft is the one that ``$schema`` names, else 2020-12; ``format`` is not checked.
    References have to stay inside the schema, so that scoring fetches nothing.

    Raises:
        InputError: not a schema, a reference that leads out of it, or no library to check with.
    """
    try:
        from jsonschema.exceptions import SchemaError, best_match
    except ImportError:
        message = "JSON Schema needs jsonschema: pip install 'baton-evals[text]'"
        raise InputError(Problem(path=path, message=message)) from None
    if is_value_too_deep(schema):
        raise InputError(Problem(path=path, message=TOO_DEEP))
    outside = next((ref for ref in _references(schema) if not ref.startswith("#")), None)
    if outside is not None:
        message = f"`$ref` has to stay inside the schema (`#/$defs/...`), got {outside!r}"
        raise InputError(Problem(path=path, message=message))
    dangling = next((ref for ref in _references(schema) if not _leads_somewhere(schema, ref)), None)
    if dangling is not None:
        raise InputError(Problem(path=path, message=f"`$ref` {dangling!r} leads nowhere"))
    draft = _draft(schema, path)
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
    """Compile all patterns of a schema; raises InputError for one that cannot be used."""
    every = list(_dicts(schema))
    unevaluated = any("unevaluatedProperties" in found for found in every)
    for found in every:
        single = found.get("pattern")
        names = found.get("patternProperties")
        patterns = [single] if isinstance(single, str) else []
        patterns += list(names) if isinstance(names, dict) else []
        for pattern in patterns:
            try:
                compiled(pattern)
            except BadPatternError as error:
                raise InputError(Problem(path=path, message=f"{pattern!r} {error.why}")) from None
            # For this keyword jsonschema searches by itself, without a limit of time.
            if unevaluated and pattern != single and has_several_repeats(pattern):
                message = (
                    f"{pattern!r} has several open repeats, which `patternProperties` may not "
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
    """Return a class of validators whose patterns are searched for in limited time."""
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


def _draft(schema: dict[str, Any], path: str) -> Any:
    """Find the class that checks by the draft of a schema."""
    from jsonschema.validators import Draft202012Validator, validator_for

    if "$schema" not in schema:
        return Draft202012Validator
    named = schema["$schema"]
    # Without a default of its own, the library warns and takes its newest draft.
    found: Any = validator_for({"$schema": str(named)}, default=cast("Any", None))
    if found is None:
        raise InputError(Problem(path=f"{path}.$schema", message=f"no known draft: {named!r}"))
    return found


def _leads_somewhere(schema: Any, reference: str) -> bool:
    """Follow a JSON pointer; anchors and bases of their own are left to the library."""
    pointer = unquote(reference.removeprefix("#"))
    has_bases = any(b'"$id"' in msgspec.json.encode(value) for value in schema.values())
    if has_bases or (pointer and not pointer.startswith("/")):
        return True
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list) and key.isdigit() and int(key) < len(schema):
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
