"""Names in the texts by which systems say that they know no such agent."""

from __future__ import annotations

import re

_NAME = r"""(?:[`'"](?P<name>[^`'"\n]+)[`'"]|(?P<bare>\w[\w./-]*))"""
_UNKNOWN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bagent type {_NAME} (?:was )?not found",
        rf"\btarget agent {_NAME} (?:was )?not found",
        rf"\bagent {_NAME} (?:was )?not found",
        rf"\bagent {_NAME} does not exist",
        rf"\b(?:unknown|no such|invalid) agent(?: (?:type|name))?:? {_NAME}(?:[.,;\n]|$)",
        rf"\bno agent (?:named|called) {_NAME}(?:[.,;\n ]|$)",
        rf"(?:^|: ){_NAME} is not a valid (?:tool|agent)",
        rf"\btool {_NAME} (?:was )?not found",
        rf"\bunknown tool(?: name)?: {_NAME}(?:[.,;\n]|$)",
        rf"\bno such tool(?: available)?: {_NAME}(?:[.,;\n]|$)",
        rf"\bmember with id {_NAME} not found",
        r"\bcoworker mentioned not found",
    )
)
_LISTS = re.compile(
    r"(?:available (?:agents|tools|agent types)|try one of|one of the following(?: options)?"
    r"|valid agents|known agents)\s*(?:are)?:?\s*(?P<names>\[[^\]]*\]|(?:\s*- [^\n]+)+|[^\n]+)",
    re.IGNORECASE,
)
_TRANSFER = re.compile(r"(?:transfer_(?:back_)?to_|handoff_to_|delegate_to_|back_to_)")


_MEMBERS = re.compile(r"""<member id=["']([^"']+)["']""")


def says_unknown(text: str) -> bool:
    """Tell whether a text says that there is no such agent, or no such tool to reach it by."""
    return any(pattern.search(text) for pattern in _UNKNOWN)


def unknown_name(text: str) -> str | None:
    """Return the name that a text says is unknown."""
    for pattern in _UNKNOWN:
        found = pattern.search(text)
        if found is not None and found.groupdict():
            return agent_of((found["name"] or found["bare"]).rstrip("."))
    return None


def listed_names(text: str) -> list[str]:
    """Return the names that a text offers instead, of agents and of tools that reach them."""
    found = _LISTS.search(text)
    if found is None:
        return _MEMBERS.findall(text)
    listed = found["names"].strip().strip("[]")
    parts = re.split(r"\n\s*- |^- |,|\n", listed)
    names = (part.strip().strip("`'\".").strip() for part in parts)
    return [agent_of(name) for name in names if name]


def agent_of(tool: str) -> str:
    """Return the agent that a transfer tool is named after; any other name as it is."""
    found = _TRANSFER.match(tool)
    return tool[found.end() :] if found is not None else tool
