"""What a recording tells of the agents there are, beside the definitions that are given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from baton.model import AgentCard
from baton.readers.catalog import Catalog

from .texts import block_content
from .wire import Entry, dict_at, is_list

_LINE = re.compile(r"- ([^\s:][^:\n]*): (.*)\Z", re.DOTALL)
_TOOLS = re.compile(r" ?\(Tools: ([^()]*(?:\([^()]*\)[^()]*)*)\)\s*\Z")
_AVAILABLE = re.compile(r"Agent type '[^'\n]*' not found\. Available agents: ([^\n]*)")
_ALL = ("*", "All tools")


class Cards:
    """The agents of a session: given definitions go before what a listing says."""

    def __init__(self, given: Catalog) -> None:
        self._given = given
        self._listed: Catalog = {}

    def read(self, entries: Iterable[Entry]) -> None:
        """Take listings, names in the first message, and what an unknown type is answered."""
        for entry in entries:
            if entry.type == "attachment":
                self._listing(entry)
            elif entry.subtype == "init":
                names = entry.data.get("agents")
                self._names(names if is_list(names) else [])
            elif entry.type == "user":
                for block in entry.blocks:
                    if block.get("is_error") is True:
                        text = block_content(block.get("content")).plain()
                        found = _AVAILABLE.search(text)
                        self._names(found[1].split(", ") if found else [])

    def all(self) -> Catalog:
        """Return every agent that is known, by name."""
        return {**self._listed, **self._given}

    def tools(
        self, name: str
    ) -> tuple[list[str] | Literal["all"] | None, Literal["definition", "listing"] | None]:
        """Return the tools an agent may use, and how that is known."""
        for catalog, source in ((self._given, "definition"), (self._listed, "listing")):
            card = catalog.get(name)
            if card is not None and card.tools is not None:
                return card.tools, source  # type: ignore[return-value]
        return None, None

    def _listing(self, entry: Entry) -> None:
        attachment = dict_at(entry.data, "attachment")
        if attachment.get("type") != "agent_listing_delta":
            return
        names, lines = attachment.get("addedTypes"), attachment.get("addedLines")
        self._names(names if is_list(names) else [])
        for line in lines if is_list(lines) else []:
            named = listed_agent(line) if isinstance(line, str) else None
            if named is not None:
                self._listed[named[0]] = named[1]

    def _names(self, names: Iterable[object]) -> None:
        for name in names:
            if isinstance(name, str) and name.strip():
                self._listed.setdefault(name.strip(), AgentCard())


def listed_agent(line: str) -> tuple[str, AgentCard] | None:
    """Read a line of a listing, ``- name: description (Tools: Read, Grep)``."""
    found = _LINE.match(line.strip())
    if found is None:
        return None
    name, text = found[1].strip(), found[2]
    tools = _TOOLS.search(text)
    card = AgentCard(description=(text[: tools.start()] if tools else text).strip() or None)
    if tools is not None:
        told = tools[1].strip()
        if told in _ALL:
            card.tools = "all"
        elif told.startswith("All tools except "):
            card.tools, card.denied_tools = "all", _split(told.removeprefix("All tools except "))
        else:
            card.tools = [] if told in ("None", "") else _split(told)
    return name, card


def _split(text: str) -> list[str]:
    """Split names at commas that stand in no brackets."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]
