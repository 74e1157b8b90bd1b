"""Scripts of answers (a function, a list or a YAML file), and their conversion to model output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Annotated, Any

import msgspec

from baton.formats.document import Document, read_bytes
from baton.model import InputError, Problem
from baton.testing.llm.exchange import Api, Received, Reply, Said, ScriptError

_STATED_NOTHING: Any = object()


def fill(stated: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``stated`` with the required properties that it lacks.

    Their values are the first of an ``enum``, the smallest allowed number, a short text,
    ``false``, and as few items as allowed. A ``pattern`` is ignored.
    """
    filled: dict[str, Any] = _filled(stated, schema, schema)
    return filled


def _filled(stated: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    schema = _resolved(schema, root)
    if isinstance(stated, Mapping) and "properties" in schema:
        properties = schema["properties"]
        own = {name: _filled(v, properties.get(name, {}), root) for name, v in stated.items()}
        return {**_required(stated, schema, root), **own}
    if isinstance(stated, list) and "items" in schema:
        return [_filled(item, schema["items"], root) for item in stated]
    if stated is not _STATED_NOTHING:
        return stated
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object")
    kind = str(kinds[0] if isinstance(kinds, list) else kinds).lower()
    match kind:
        case "object":
            return _required({}, schema, root)
        case "array":
            item = _filled(_STATED_NOTHING, schema.get("items", {}), root)
            return [item] * schema.get("minItems", 0)
        case "string":
            return "scripted".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]
        case "number" | "integer":
            return schema.get("minimum", min(0, schema.get("maximum", 0)))
    return False if kind == "boolean" else None


def _required(
    stated: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]
) -> dict[str, Any]:
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in stated]
    return {name: _filled(_STATED_NOTHING, properties.get(name, {}), root) for name in missing}


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references into ``$defs``, and take the first of several alternatives."""
    while True:
        if "$ref" in schema:
            schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
        elif "anyOf" in schema:
            schema = schema["anyOf"][0]
        else:
            return schema


REFUSAL = "I cannot help with that."
_STRANGE = {"of_another_schema": True}
_BROKEN = '{"of_another_schema": tr'
_WRITTEN: frozenset[Api] = frozenset({"openai", "openai_responses", "mistral"})
_WRITTEN_IN_STREAMS: frozenset[Api] = frozenset({"anthropic", "bedrock"})
"""APIs that send the arguments of a tool as the text the model wrote, always or in streams. Others
send an object, so that broken JSON can only be sent as text."""

_LETTERS_PER_TOKEN = 4
"""A usual estimate for English text, for answers whose script states no usage."""


def said(reply: Reply, received: Received) -> Said:
    """Return the model's answer, including faults of the answer itself."""
    fields = _fields(reply, received)
    written = fields.get("text", "") + fields.get("arguments", "")
    return Said(
        number=received.number,
        model=reply.as_model or received.model,
        input_tokens=_tokens(reply.input_tokens, received.text),
        output_tokens=_tokens(reply.output_tokens, written),
        **fields,
    )


def _fields(reply: Reply, received: Received) -> dict[str, Any]:
    tool = reply.tool
    if tool is None and received.mode == "tool" and not isinstance(reply.answer, str):
        structured = reply.fault in {"wrong_schema", "invalid_json", "truncated"}
        if reply.answer is not None or structured:
            tool = received.tool
    answer = reply.answer
    if reply.fill:
        schema = received.schema if reply.tool is None else received.tools.get(reply.tool)
        if schema is None:
            raise ScriptError("`fill` needs a schema, and the client sent none")
        answer = fill(reply.answer, schema)
    if answer is None:
        text = ""
    elif isinstance(answer, str):
        text = answer
    else:
        try:
            text = json.dumps(answer, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise ScriptError(f"an answer cannot be written as JSON: {error}") from error
    match reply.fault:
        case "refusal":
            return {"text": text or REFUSAL, "finish": "refusal"}
        case "filtered":
            return {"finish": "filter"}
        case "empty":
            return {}
        case "wrong_schema":
            return _placed(json.dumps(_STRANGE), tool)
        case "invalid_json":
            written = received.api in _WRITTEN | (_WRITTEN_IN_STREAMS if received.stream else set())
            return _placed(_half(text or _BROKEN), tool if written else None)
        case "truncated":
            return {**_placed(_half(text or _BROKEN), tool), "finish": "length"}
        case _:
            return _placed(text, tool)


def _placed(text: str, tool: str | None) -> dict[str, Any]:
    return {"tool": tool, "arguments": text, "finish": "tool"} if tool else {"text": text}


def _half(text: str) -> str:
    return text[: max(1, len(text) // 2)]


def _tokens(stated: int | None, text: str) -> int:
    return max(1, len(text) // _LETTERS_PER_TOKEN) if stated is None else stated


Words = Reply | str | Mapping[str, Any]
"""A whole reply, or only its answer: a text, or a mapping to send in the form that is requested."""

Script = Callable[[Received], Words] | Sequence[Words] | Words
"""The source of replies; each item of a list is used once."""


class Rule(Reply, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply of a YAML script, and the requests that it is for.

    All stated conditions have to hold: ``contains`` are texts in the prompt, ``matches`` is a
    regular expression that is searched for in it, ``api`` and ``model`` are those of the request.
    The rule is used for ``times`` requests, then those below it are tried.
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
    """Return a function that returns the reply to a request, or raises ScriptError if it has none.

    Raises:
        InputError: the script is the path of a YAML file with errors.
        ScriptError: it contains something that is not an answer.
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
    """Convert an answer to a reply; raises ScriptError for anything else."""
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
        rule = next(left, None)
        if rule is None:
            raise ScriptError(
                f"the script has {len(words)} answers, but this is request {len(words) + 1}"
            )
        return rule

    return reply


def load_script(path: str | PathLike[str]) -> Callable[[Received], Reply]:
    """Read a YAML script.

    Raises:
        InputError: all its errors, with file, line and similar names.
    """
    document = Document(str(path), read_bytes(path), "yaml")
    script = document.convert(document.value(), ScriptFile)
    problems: list[Problem] = []
    rules = []
    for index, rule in enumerate(script.rules):
        try:
            rules.append(_Rule(rule))
        except re.error as error:
            message = f"not a valid regular expression: {error}"
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
        raise ScriptError("no rule of the script matches this prompt, and it has no `default`")
    return default
