"""What a graph of Strands tells each agent: the answers of the nodes it follows."""

from __future__ import annotations

from baton.formats.strands import Span

from .spans import Tree

_INPUTS, _FROM, _ANSWER = "Inputs from previous nodes:", "From ", "  - "


def followed(tree: Tree, agent: Span) -> dict[str, list[str]] | None:
    """Return the answers that an agent was given, by node; ``None`` when a graph gave none.

    They are pieces of its first message, apart from the task that a session tells.
    """
    models = tree.models(agent)
    first = models[0].messages[0] if models and models[0].messages else None
    texts = [item.text for item in first.content if item.text] if first is not None else []
    titles = [text.strip() for text in texts]
    if _INPUTS not in titles:
        return None
    found: dict[str, list[str]] = {}
    name = None
    start = titles.index(_INPUTS) + 1
    for text, title in zip(texts[start:], titles[start:], strict=True):
        if title.startswith(_FROM) and title.endswith(":"):
            name = title.removeprefix(_FROM).removesuffix(":")
            found[name] = []
        elif name is not None and text.startswith(_ANSWER):
            found[name].append(text.partition(": ")[2].removesuffix("\n"))
    return found or None
