"""Components: the named texts of an agent system that may be changed, and what holds for a change.

``agent:refund`` are the instructions of the agent ``refund``, ``description:refund`` is what
routers read of it, ``tool:charge`` what models read of a tool, ``examples:refund`` a choice of
cases. A program takes its own texts through ``baton.prompts.get``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from baton.model import InputError, text_hash

KINDS = ("agent", "description", "tool", "examples")

_CHANGED: dict[str, str] = {}
_ASKED: dict[str, str] = {}


def check_name(name: str) -> str:
    """Return a component's name as it is; raises InputError for what is none."""
    kind, colon, of = name.partition(":")
    if not colon or not of or kind not in KINDS:
        kinds = ", ".join(f"`{each}:NAME`" for each in KINDS)
        raise InputError(f"`{name}` names no component: write {kinds}")
    return name


def hash_of(text: str) -> str:
    """Return a hash of a text (the first 12 hex digits of its sha256)."""
    return text_hash(text)


def use(texts: Mapping[str, str]) -> None:
    """Have :func:`get` return these texts in this process; raises InputError for a bad name."""
    changed = {check_name(name): text for name, text in texts.items()}
    _CHANGED.clear()
    _CHANGED.update(changed)


def get(name: str, default: str) -> str:
    """Return the text of a component: ``default``, unless a replay changes it.

    Raises:
        InputError: the name is not one of a component, as ``agent:refund`` is.
    """
    _ASKED[check_name(name)] = default
    return _CHANGED.get(name, default)


def asked() -> dict[str, str]:
    """Return what the program of this process asked for: the texts it gets, by name."""
    return {name: _CHANGED.get(name, default) for name, default in _ASKED.items()}


# Placeholders of the usual templates: `{name}` of str.format and of ADK (`{user?}`,
# `{artifact.notes}`), `{{ name }}` of Jinja and Handlebars, `$name` and `${name}` of
# string.Template. A brace with anything else inside is JSON or code: `{"total": 3}`.
_PLACEHOLDER = re.compile(r"\{\{\s*[\w.]+\s*\}\}|\$\{\w+\}|\$[A-Za-z_]\w*|\{[\w.:]+\??\}")
_FENCE = re.compile(r"```json\s*(.*?)```", re.DOTALL)


def faults_of_change(old: str, new: str, tools: Collection[str] = ()) -> list[str]:
    """Say what a change of a text breaks; nothing where it may be made.

    Placeholders, the names of tools that the old text tells about, and blocks of JSON that state
    an output's form have to be in the new text as well.

    Args:
        old: the text as it is.
        new: the text that is to replace it.
        tools: the names of tools that the agent has.
    """
    faults = []
    if not new.strip():
        faults.append("the new text is empty")
    lost = [each for each in _unique(_PLACEHOLDER.findall(old)) if each not in new]
    if lost:
        faults.append(f"it lacks the placeholder {', '.join(f'`{each}`' for each in lost)}")
    added = [each for each in _unique(_PLACEHOLDER.findall(new)) if each not in old]
    if added:
        faults.append(f"nothing fills the placeholder {', '.join(f'`{each}`' for each in added)}")
    gone = [tool for tool in tools if _names(tool, old) and not _names(tool, new)]
    if gone:
        faults.append(f"it no longer names the tool {', '.join(f'`{each}`' for each in gone)}")
    for block in _FENCE.findall(old):
        if " ".join(block.split()) not in " ".join(new.split()):
            faults.append("it lacks the JSON that states the form of the output")
    return faults


def _unique(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _names(tool: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(tool)}(?!\w)", text) is not None
