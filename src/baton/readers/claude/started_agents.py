"""The agents of a recording, and which call started each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from baton.model import AgentCard
from baton.readers.builder import MAIN
from baton.readers.catalog import Catalog

from .wire import Entry, block_content, dict_at, is_list, message_text, notices, text_at

# Claude Code lists the agents in its first message, one per line: `- compile-agent: Checks that
# code compiles (Tools: Bash, Read)`. The tools may contain brackets: `Bash(git:*)`.
_LINE = re.compile(r"- ([^\s:][^:\n]*): (.*)\Z", re.DOTALL)
_TOOLS = re.compile(r" ?\(Tools: ([^()]*(?:\([^()]*\)[^()]*)*)\)\s*\Z")
# The answer to a wrong type lists all types, even if the session has no other listing.
_AVAILABLE = re.compile(r"Agent type '[^'\n]*' not found\. Available agents: ([^\n]*)")
_ALL = ("*", "All tools")


class Cards:
    """The agents of a session: given definitions override a listing."""

    def __init__(self, given: Catalog) -> None:
        self._given = given
        self._listed: Catalog = {}

    def read(self, entries: Iterable[Entry]) -> None:
        """Read listings, names in the first message, and answers to unknown types."""
        for entry in entries:
            if entry.type == "attachment":
                self._listing(entry)
            elif entry.subtype == "init":
                names = entry.data.get("agents")
                self._names(names if is_list(names) else [])
            elif entry.type == "api-request-shape":
                self._main_prompt(entry)
            elif entry.type == "user":
                for block in entry.blocks:
                    if block.get("is_error") is True:
                        text = block_content(block.get("content")).plain()
                        match = _AVAILABLE.search(text)
                        self._names(match[1].split(", ") if match else [])

    def all(self) -> Catalog:
        """Return all known agents by name."""
        return {**self._listed, **self._given}

    def tools(
        self, name: str
    ) -> tuple[list[str] | Literal["all"] | None, Literal["definition", "listing"] | None]:
        """Return the tools that an agent may use, and how that is known."""
        for catalog, source in ((self._given, "definition"), (self._listed, "listing")):
            card = catalog.get(name)
            if card is not None and card.tools is not None:
                return card.tools, source  # type: ignore[return-value]
        return None, None

    def _main_prompt(self, entry: Entry) -> None:
        """Set the system prompt of the session's own agent, if its requests are recorded."""
        system = dict_at(entry.data, "shape").get("system")
        blocks = system if is_list(system) else [{"text": system}]
        texts = [text_at(block, "text") for block in blocks if isinstance(block, dict)]
        prompt = "\n\n".join(text for text in texts if text.strip())
        if prompt and not text_at(entry.data, "agentId"):
            self._listed.setdefault(MAIN, AgentCard(instructions=prompt))

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
    match = _LINE.match(line.strip())
    if match is None:
        return None
    name, text = match[1].strip(), match[2]
    tools = _TOOLS.search(text)
    card = AgentCard(description=(text[: tools.start()] if tools else text).strip() or None)
    if tools is not None:
        names = tools[1].strip()
        if names in _ALL:
            card.tools = "all"
        elif names.startswith("All tools except "):
            card.tools, card.denied_tools = "all", _split(names.removeprefix("All tools except "))
        else:
            card.tools = [] if names in ("None", "") else _split(names)
    return name, card


def _split(text: str) -> list[str]:
    """Split names at commas outside of brackets."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]


DISPATCH_TOOLS = frozenset({"Agent", "Task"})
"""Tools that start a sub-agent; ``TaskCreate`` and similar tools are for to-do lists."""
SEND_TOOL = "SendMessage"
_AGENT_ID = re.compile(r"agentId: ([0-9A-Za-z_-]+)")


class Links(msgspec.Struct):
    """``agents``: ids of agents by tool call; ``kinds``: types by agent id."""

    agents: dict[str, str] = msgspec.field(default_factory=dict)
    kinds: dict[str, str] = msgspec.field(default_factory=dict)
    launched: set[str] = msgspec.field(default_factory=set)

    def add(self, call: str, agent: str, kind: str = "") -> None:
        """Record that a call started an agent; an earlier record stays."""
        if call and agent:
            self.agents.setdefault(call, agent)
        if agent and kind:
            self.kinds.setdefault(agent, kind)


def find_links(entries: Iterable[Entry], links: Links) -> Links:
    """Add links from entries: starts of tasks, results of calls, notifications."""
    calls: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if entry.type == "assistant":
            for block in entry.blocks:
                if block.get("type") == "tool_use" and text_at(block, "id"):
                    calls[text_at(block, "id")] = block
            links.add(entry.parent or "", entry.agent or "", _kind(entry.data))
        elif entry.type == "user":
            _from_user(entry, calls, links)
        elif entry.subtype == "task_started" and is_agent_task(entry.data):
            call, agent = text_at(entry.data, "tool_use_id"), text_at(entry.data, "task_id")
            links.add(call, agent, text_at(entry.data, "subagent_type"))
            if entry.data.get("is_backgrounded") is True:
                links.launched.add(call)
    return links


def _from_user(entry: Entry, calls: dict[str, dict[str, Any]], links: Links) -> None:
    links.add(entry.parent or "", entry.agent or "", _kind(entry.data))
    result = result_record(entry)
    for block in entry.blocks:
        call = calls.get(text_at(block, "tool_use_id"))
        if call is None or block.get("type") != "tool_result":
            continue
        if text_at(call, "name") in DISPATCH_TOOLS:
            _from_dispatch(call, block, result, links)
        elif call.get("name") == SEND_TOOL:
            agent = _resumed(call, block, result, links)
            links.add(text_at(call, "id"), agent)
    for notice in notices(message_text(entry.blocks).text or ""):
        if text_at(calls.get(notice.call, {}), "name") in DISPATCH_TOOLS | {SEND_TOOL}:
            links.add(notice.call, notice.agent)


def _from_dispatch(
    call: dict[str, Any], block: dict[str, Any], result: dict[str, Any], links: Links
) -> None:
    id_ = text_at(call, "id")
    agent = text_at(result, "agentId")
    if not agent and not block.get("is_error"):
        content = block.get("content")
        texts = [text_at(b, "text") for b in content] if is_list(content) else [str(content)]
        agent = next((m[1] for text in reversed(texts) if (m := _AGENT_ID.search(text))), "")
    links.add(id_, agent, text_at(result, "agentType"))
    if result.get("isAsync") is True or text_at(result, "status").endswith("_launched"):
        links.launched.add(id_)


def _resumed(
    call: dict[str, Any], block: dict[str, Any], result: dict[str, Any], links: Links
) -> str:
    """Return the agent that a message resumed; a running agent only got a message."""
    agent = text_at(result, "resumedAgentId") or text_at(result, "revivedAgentId")
    target = text_at(dict_at(call, "input"), "to")
    if agent or block.get("is_error") or target not in links.agents.values():
        return agent
    answer = str(block.get("content"))
    return target if re.search(r"\bresum(?:ed|ing)\b", answer) and "queued" not in answer else ""


def result_record(entry: Entry) -> dict[str, Any]:
    """Return the harness's record of a tool's result, which comes with its text."""
    return dict_at(entry.data, "tool_use_result") or dict_at(entry.data, "toolUseResult")


def _kind(data: dict[str, Any]) -> str:
    return text_at(data, "subagent_type") or text_at(data, "attributionAgent")


def is_agent_task(data: Any) -> bool:
    """Return whether a task is an agent at work; background commands are tasks as well."""
    return text_at(data, "task_type") in ("", "local_agent") or bool(text_at(data, "subagent_type"))
