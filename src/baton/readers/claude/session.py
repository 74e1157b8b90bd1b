"""A session as Claude Code keeps it on disk, its sub-agents included, as a trace."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path

import msgspec

from baton.formats.document import read_bytes
from baton.model import Dropped, InputError, Problem, Source, Trace
from baton.readers.catalog import Catalog

from .cards import Cards
from .finish import finish
from .inline import name_sidechains
from .layout import AgentFile, agent_files, head, session_file
from .links import Links, find_links
from .spent import other_usage
from .talk import Talk
from .texts import message_text
from .wire import Entry, Lines, read_lines, text_at

FORMAT, FRAMEWORK = "claude-session", "claude-agent-sdk"
WARM_UP = "Warmup"


def read_session(path: Path, *, source: Source, catalog: Catalog) -> Trace:
    """Read a session's file and those of its sub-agents; of a sub-agent's, its session.

    Raises:
        InputError: a line is no JSON object, or a sub-agent's session is not there.
    """
    found = head(path)
    if found is not None and found.side and path.name.startswith("agent-"):
        main = session_file(path)
        if main is None:
            message = f"is of a sub-agent of the session {found.session}, which is not there"
            raise InputError(Problem(file=str(path), message=message))
        path = main
    lines = read_lines(str(path), read_bytes(path))
    session = next((entry.session for entry in lines.entries if entry.session), None)
    links, talk_of, dropped = Links(), [lines.entries], lines.dropped()
    others: dict[str, dict[str, object]] = {}
    for file in agent_files(path, session or path.stem):
        read = _agent_entries(file, links)
        dropped += read.dropped()
        if _is_warm_up(read.entries):
            others.update(_messages(read.entries))
        else:
            talk_of.append(read.entries)
    name_sidechains(lines.entries, links)
    entries = list(_merged(talk_of))
    find_links(entries, links)
    talk = Talk(links, stream=False)
    talk.read(entries)
    if others:
        talk.draft.spent.others.append(other_usage(others))
    cards = Cards(catalog)
    cards.read(entries)
    trace = finish(
        talk, cards, session or path.stem, source, torn=lines.torn, dropped=_counted(dropped)
    )
    version = next((v for e in entries if (v := text_at(e.data, "version"))), None)
    if version is not None:
        trace.attributes["cli_version"] = version
    return trace


def _agent_entries(file: AgentFile, links: Links) -> Lines:
    lines = read_lines(str(file.path), read_bytes(file.path))
    for entry in lines.entries:
        entry.agent = file.agent
    links.add(text_at(file.meta, "toolUseId"), file.agent, text_at(file.meta, "agentType"))
    return lines


def _merged(files: list[list[Entry]]) -> Iterator[Entry]:
    """Bring the entries of several files into the order of time, that of each file kept.

    Where times are equal, or not told, the session's own file goes first.
    """
    keyed = []
    for number, entries in enumerate(files):
        latest, rows = 0.0, []
        for place, entry in enumerate(entries):
            latest = max(latest, entry.at or 0.0)
            rows.append((latest, number, place, entry))
        keyed.append(rows)
    return (row[3] for row in heapq.merge(*keyed, key=lambda row: row[:3]))


def _is_warm_up(entries: list[Entry]) -> bool:
    """Tell an agent that older versions start on their own, to fill a cache."""
    first = next((entry for entry in entries if entry.type == "user"), None)
    return first is not None and message_text(first.blocks).text == WARM_UP


def _messages(entries: list[Entry]) -> dict[str, dict[str, object]]:
    return {
        text_at(entry.message, "id"): entry.message
        for entry in entries
        if entry.type == "assistant" and text_at(entry.message, "id")
    }


def _counted(dropped: list[Dropped]) -> list[Dropped]:
    counts: dict[str, Dropped] = {}
    for one in dropped:
        known = counts.setdefault(one.what, msgspec.structs.replace(one, count=0))
        known.count += one.count
    return list(counts.values())
