"""Changes of the texts of components. What would break something is refused before it is played."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec

from baton.components import are_examples, check_name, read_examples
from baton.model import (
    AgentCard,
    ChangedText,
    InputError,
    Problem,
    suggestion,
    text_hash,
)


def changes_of(
    texts: Mapping[str, str], changed: Mapping[str, str], tools: Collection[str] = ()
) -> list[ChangedText]:
    """Check changes of texts, and return them by their hashes.

    Args:
        texts: the current texts of all components.
        changed: the new texts.
        tools: the names of tools that texts may mention.

    Raises:
        InputError: an unknown component, or a text that breaks something or changes nothing.
    """
    problems = []
    for name, new in changed.items():
        check_name(name)
        if name not in texts:
            hint = suggestion(name, set(texts)) or "there are none"
            problems.append(f"no component `{name}`; {hint}")
        elif new == texts[name]:
            problems.append(f"`{name}` already has this text: nothing would change")
        elif are_examples(name):
            read_examples(new)
        elif faults := faults_of_change(texts[name], new, tools):
            problems.append(f"`{name}` cannot be changed to this: {'; '.join(faults)}")
    if problems:
        raise InputError(Problem(message=problem) for problem in problems)
    return [
        ChangedText(
            name=name,
            before=text_hash(texts[name]),
            after=text_hash(new),
            cases=[each.id for each in read_examples(new)] if are_examples(name) else None,
        )
        for name, new in changed.items()
    ]


# Placeholders of the usual templates: `{name}` of str.format and of ADK (`{user?}`,
# `{artifact.notes}`), `{{ name }}` of Jinja and Handlebars, `$name` and `${name}` of
# string.Template. A brace with anything else inside is JSON or code: `{"total": 3}`.
_PLACEHOLDER = re.compile(r"\{\{\s*[\w.]+\s*\}\}|\$\{\w+\}|\$[A-Za-z_]\w*|\{[\w.:]+\??\}")


_FENCE = re.compile(r"```json\s*(.*?)```", re.DOTALL)


def changed_card(name: str, card: AgentCard, texts: Mapping[str, str]) -> AgentCard:
    """Return the definition of an agent with its texts changed."""
    return msgspec.structs.replace(
        card,
        instructions=texts.get(f"agent:{name}", card.instructions),
        description=texts.get(f"description:{name}", card.description),
    )


def faults_of_change(old: str, new: str, tools: Collection[str] = ()) -> list[str]:
    """Return what a change of a text would break; empty if nothing.

    Placeholders, the names of tools that the old text mentions, and blocks of JSON that state
    an output's form have to be in the new text as well.

    Args:
        old: the current text.
        new: the text that would replace it.
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
