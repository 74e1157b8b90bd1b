"""Sub-agents that older versions wrote into the session's own file."""

from __future__ import annotations

from .links import DISPATCH_TOOLS, Links
from .texts import message_text
from .wire import Entry, dict_at, text_at


def name_sidechains(entries: list[Entry], links: Links) -> None:
    """Give each side conversation an agent, and find the call that started it.

    A side conversation begins at an entry whose parent is none of its own. No id says which
    call it is of: that is the oldest one whose prompt it was given.
    """
    prompts: dict[str, list[str]] = {}
    roots: dict[str, str] = {}
    for entry in entries:
        if entry.data.get("isSidechain") is not True or entry.agent is not None:
            _collect(entry, prompts)
            continue
        uuid, parent = text_at(entry.data, "uuid"), text_at(entry.data, "parentUuid")
        root = roots.get(parent)
        if root is None:
            root = f"side-{uuid}"
            calls = prompts.get(message_text(entry.blocks).text or "")
            if calls:
                links.add(calls.pop(0), root)
        roots[uuid] = root
        entry.agent = root
        _collect(entry, prompts)


def _collect(entry: Entry, prompts: dict[str, list[str]]) -> None:
    for block in entry.blocks if entry.type == "assistant" else ():
        prompt = dict_at(block, "input").get("prompt")
        if text_at(block, "name") in DISPATCH_TOOLS and isinstance(prompt, str):
            prompts.setdefault(prompt, []).append(text_at(block, "id"))
