"""Definitions of tools, in any form of a source: their names, and the agents they reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from .otlp.attribute_values import HIDDEN, first, parsed, text

# Arguments that name the target, by framework: `agent_name` ADK (`agentName` in JavaScript) and
# Strands, `subagent_type` Claude Code and LangChain's deep agents, `coworker` and `co_worker`
# CrewAI, `member_id` Agno. The others are generic names that programs of their own use.
TARGET_ARGUMENTS = (
    "agent_name",
    "agentName",
    "subagent_type",
    "coworker",
    "co_worker",
    "target_agent",
    "recipient",
    "to_agent",
    "member_id",
)
"""Arguments by which a call names the agent that it hands work to, the most certain first."""
# The names for the schema of a tool's arguments: OpenTelemetry and OpenAI, ADK,
# Anthropic, and the Vercel AI SDK and Strands.
_SCHEMAS = (
    "parameters", "parameters_json_schema", "parametersJsonSchema", "input_schema", "inputSchema",
)  # fmt: skip
_LISTING = ('"enum"', '"const"')


def tool_names(definitions: Any) -> list[str] | None:
    """Return the names in a list of definitions, in any form.

    ``None`` without a list, and if one of the definitions is hidden: any tool may then be missing.
    """
    if isinstance(definitions, str):
        names = _names_in(definitions)
    else:
        listed = isinstance(definitions, list) and not any(map(_is_hidden, definitions))
        names = tuple(_names(definitions)) if listed else None
    return None if names is None else list(names)


def _is_hidden(definition: Any) -> bool:
    return isinstance(definition, str) and definition in HIDDEN


@lru_cache(maxsize=512)
def _names_in(definitions: str) -> tuple[str, ...] | None:
    """Read definitions from a text; cached, because every request of an agent repeats it."""
    value = parsed(definitions)
    return tuple(_names(value)) if isinstance(value, list) else None


def targets_of(definitions: Any) -> dict[str, list[str]]:
    """Return the agents that tools may hand work to, by tool, if their definitions list them.

    ADK lets a model call ``transfer_to_agent`` with an ``agent_name`` out of an ``enum``.
    """
    if isinstance(definitions, str):
        return _targets_in(definitions)
    return _targets(definitions) if isinstance(definitions, list) else {}


@lru_cache(maxsize=512)
def _targets_in(definitions: str) -> dict[str, list[str]]:
    if not any(word in definitions for word in _LISTING):
        return {}
    value = parsed(definitions)
    return _targets(value) if isinstance(value, list) else {}


def _targets(definitions: list[Any]) -> dict[str, list[str]]:
    targets: dict[str, list[str]] = {}
    for item in definitions:
        if isinstance(item, str) and not any(word in item for word in _LISTING):
            continue
        definition = parsed(item)
        if not isinstance(definition, dict):
            continue
        declared = first(definition, "function_declarations", "functionDeclarations")
        if isinstance(declared, list):
            targets |= _targets(declared)
            continue
        inner = first(definition, "function", "toolSpec", "tool")
        definition = inner if isinstance(inner, dict) else definition
        name, schema = text(definition.get("name")), first(definition, *_SCHEMAS)
        if isinstance(schema, str):
            schema = parsed(schema) if any(word in schema for word in _LISTING) else None
        if isinstance(schema, dict) and isinstance(schema.get("json"), dict):
            schema = schema["json"]  # Bedrock's and Strands' envelope of a schema
        arguments = schema.get("properties") if isinstance(schema, dict) else None
        if name is None or not isinstance(schema, dict) or not isinstance(arguments, dict):
            continue
        key = next((key for key in TARGET_ARGUMENTS if key in arguments), None)
        listed = _listed(arguments[key], schema) if key is not None else None
        if listed:
            targets[name] = listed
    return targets


def _listed(asked: Any, schema: Mapping[str, Any]) -> list[str] | None:
    """Return the allowed texts of an argument; ``None`` if any text is allowed.

    Python's `Literal` becomes an ``enum``, one of a single value a ``const``, an `Enum` a ``$ref``
    to a definition, and an optional one of these an ``anyOf`` with null.
    """
    if not isinstance(asked, Mapping):
        return None
    reference = asked.get("$ref")
    if isinstance(reference, str):
        defined = first(schema, "$defs", "definitions")
        named = defined.get(reference.rpartition("/")[2]) if isinstance(defined, dict) else None
        # One step only: a definition that leads to another one may lead back.
        return _listed(named, {}) if named is not None else None
    choices = first(asked, "anyOf", "oneOf")
    if isinstance(choices, list):
        every = [c for c in choices if not (isinstance(c, dict) and c.get("type") == "null")]
        lists = [_listed(c, schema) for c in every if not (isinstance(c, dict) and "anyOf" in c)]
        if len(lists) != len(every) or None in lists:
            return None
        return [name for names in lists for name in names or ()]
    listed = [asked["const"]] if "const" in asked else asked.get("enum")
    if not isinstance(listed, list) or not listed:
        return None
    texts = [name for name in listed if isinstance(name, str)]
    return texts if len(texts) == sum(name is not None for name in listed) else None


def _names(definitions: list[Any]) -> Iterator[str]:
    for item in definitions:
        definition = parsed(item)
        if isinstance(definition, str):
            yield definition
        elif isinstance(definition, dict):
            yield from _name(definition)


def _name(item: Mapping[str, Any]) -> Iterator[str]:
    # Gemini: one object holds all declarations. Then the wrappers of OpenAI (`function`), Bedrock
    # (`toolSpec`) and others.
    declared = item.get("function_declarations") or item.get("functionDeclarations")
    if isinstance(declared, list):
        yield from _names(declared)
        return
    for key in ("function", "toolSpec", "tool"):
        if isinstance(item.get(key), dict):
            item = item[key]
    name = item.get("name")
    if isinstance(name, str) and name:
        yield name
