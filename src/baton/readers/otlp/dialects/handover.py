"""Which tool calls hand work over, and to whom; and names of offered tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from baton.model import Content
from baton.readers.otlp.readings import Mode, ToolSpan
from baton.readers.otlp.values import content, first, parsed, plain_name, text

_TRANSFER = re.compile(
    r"^(?:\w+[-.])?(?:transfer|hand_?off|switch)[_ -]to[_ -](.+)$", re.IGNORECASE
)
_ANY = frozenset({"agent", "an_agent", "another_agent"})
_TARGETS = (
    "agent_name",
    "subagent_type",
    "coworker",
    "co_worker",
    "target_agent",
    "recipient",
    "to_agent",
    "member_id",
)
_TARGET_ATTRIBUTES = (
    "gen_ai.transfer.target.name",
    "gen_ai.agent.handoff.target.name",
    "gen_ai.handoff.to_agent",
)
_PROMPTS = (
    "prompt", "request", "task", "task_description", "input", "message", "query", "question",
    "description",
)  # fmt: skip
_HANDOFF = frozenset({"handoff", "handover"})
_COWORKER = frozenset(
    {"delegateworktocoworker", "askquestiontocoworker", "delegatetasktomember",
     "transfertasktomember"}
)  # fmt: skip
_SUB_AGENT = frozenset({"task", "agent"})


def hand_over(says: ToolSpan, type_: str | None, attributes: Mapping[str, Any]) -> None:
    """Note on a tool span what it says of passing work on."""
    mode = text(attributes.get("gen_ai.transfer.mode"))
    target = text(first(attributes, *_TARGET_ATTRIBUTES))
    if mode is None and target is None:
        says.mode, says.target = by_name(says.name or "", says.arguments, type_)
    else:
        says.mode = "delegate" if mode == "return_to_caller" else "transfer"
        says.target = target or _argument(says.arguments)
        says.sure = mode in ("pass_control", "return_to_caller")
    kind = attributes.get("gen_ai.transfer.target.type")
    if kind in ("human", "workflow"):
        says.target_kind = kind


def by_name(name: str, arguments: Any, type_: str | None = None) -> tuple[Mode | None, str | None]:
    """Tell a hand-over and its target by how frameworks name and type their tools for it.

    ``transfer_to_billing`` and ``transfer_to_agent`` (with the agent among its arguments) give
    control away; ``delegate_work_to_coworker``, and a ``Task`` with a ``subagent_type``, wait.
    """
    way, suffix = _way(name, type_)
    if way is None:
        return None, None
    target = _argument(arguments)
    if way == "transfer":
        return "transfer", target or suffix
    if way == "coworker":
        return "delegate", target
    if way == "handoff":
        # Any other tool may be called so: one that names nobody among its arguments is none.
        return ("transfer", target) if target is not None or arguments is None else (None, None)
    target = text(arguments.get("subagent_type")) if isinstance(arguments, dict) else None
    return ("delegate", target) if target is not None else (None, None)


@lru_cache(maxsize=4096)
def _way(name: str, type_: str | None) -> tuple[str | None, str | None]:
    """Tell what a tool of this name may do, and whom its name names."""
    match = _TRANSFER.match(name)
    if type_ == "TransferToAgentTool" or match is not None:
        suffix = match.group(1) if match and match.group(1).lower() not in _ANY else None
        return "transfer", suffix
    plain = plain_name(name)
    if plain in _COWORKER:
        return "coworker", None
    if plain in _HANDOFF:
        return "handoff", None
    return ("sub-agent", None) if name.lower() in _SUB_AGENT else (None, None)


def _argument(arguments: Any) -> str | None:
    if not isinstance(arguments, dict):
        return None
    return text(first(arguments, *_TARGETS))


def prompt_of(arguments: Any) -> tuple[Content | None, str | None, dict[str, Any]]:
    """Return prompt, short description and context of the call that hands work over.

    The names of the arguments are the programmer's choice: known ones first, else the only
    text, else the only one; where none of these is, all are context and there is no prompt.
    """
    if not isinstance(arguments, dict):
        return content(arguments), None, {}
    rest = {key: value for key, value in arguments.items() if key not in _TARGETS}
    key = next((name for name in _PROMPTS if text(rest.get(name))), None)
    if key is None:
        texts = [name for name, value in rest.items() if text(value)]
        key = texts[0] if len(texts) == 1 else None
    if key is None and len(rest) == 1:
        return content(next(iter(rest.values()))), None, {}
    if key is None:
        return None, None, rest
    prompt = Content(text=rest.pop(key))
    description = text(rest.pop("description", None)) if key != "description" else None
    context = rest.get("context")
    if isinstance(context, dict) and set(rest) == {"context"}:
        rest = context
    return prompt, description, {key: value for key, value in rest.items() if value is not None}


def tool_names(definitions: Any) -> list[str] | None:
    """Return the names in a list of definitions, in whichever shape; ``None`` without a list."""
    if isinstance(definitions, str):
        names = _names_in(definitions)
    else:
        names = tuple(_names(definitions)) if isinstance(definitions, list) else None
    return None if names is None else list(names)


@lru_cache(maxsize=512)
def _names_in(definitions: str) -> tuple[str, ...] | None:
    """Read definitions that are a text: every request of an agent repeats the same one."""
    value = parsed(definitions)
    return tuple(_names(value)) if isinstance(value, list) else None


def _names(definitions: list[Any]) -> Iterator[str]:
    for item in definitions:
        definition = parsed(item)
        if isinstance(definition, str):
            yield definition
        elif isinstance(definition, dict):
            yield from _name(definition)


def _name(item: Mapping[str, Any]) -> Iterator[str]:
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
