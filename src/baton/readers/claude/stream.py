"""Messages of a stream (``--output-format stream-json``, or the SDK's) as a trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from baton.model import Source, Trace
from baton.readers.catalog import Catalog

from .cards import Cards
from .finish import finish
from .links import Links, find_links
from .talk import Talk
from .texts import message_text, notices
from .wire import Entry, Lines, read_lines, to_entries

FORMAT, FRAMEWORK = "claude-stream", "claude-agent-sdk"


def read_stream(
    messages: Iterable[dict[str, Any]], *, id_: str, source: Source, catalog: Catalog
) -> Trace:
    """Read the messages of one session; ``id_`` is its name where no message tells one.

    A stream does not repeat what the user said. Where it does (``--replay-user-messages``, or
    written down by who sent it), a turn begins with that; elsewhere with what follows a result.
    """
    return _trace(Lines(entries=to_entries(messages)), id_, source, catalog)


def read_stream_file(
    file: str, data: bytes, id_: str, source: Source, catalog: Catalog
) -> list[Trace]:
    """Read a file of messages, one trace a session.

    Raises:
        InputError: a line is no JSON object.
    """
    lines = read_lines(file, data)
    sessions: dict[str | None, list[Entry]] = {}
    last: str | None = None
    for entry in lines.entries:
        last = entry.session or last
        sessions.setdefault(last, []).append(entry)
    if None in sessions and len(sessions) > 1:
        first = next(name for name in sessions if name is not None)
        sessions[first] = [*sessions.pop(None), *sessions[first]]
    ends = list(sessions)[-1:]
    return [
        _trace(
            Lines(entries=entries, torn=lines.torn and [name] == ends), name or id_, source, catalog
        )
        for name, entries in sessions.items()
    ]


def _trace(lines: Lines, id_: str, source: Source, catalog: Catalog) -> Trace:
    entries = lines.entries
    links = find_links(entries, Links())
    talk = Talk(links, stream=True, user_told=any(map(_is_user, entries)))
    talk.read(entries)
    cards = Cards(catalog)
    cards.read(entries)
    name = next((entry.session for entry in entries if entry.session), id_)
    trace = finish(talk, cards, name, source, torn=lines.torn, dropped=lines.dropped())
    init = next((entry.data for entry in entries if entry.subtype == "init"), {})
    for key, label in (
        ("claude_code_version", "cli_version"),
        ("permissionMode", "permission_mode"),
    ):
        if isinstance(init.get(key), str):
            trace.attributes[label] = init[key]
    return trace


def _is_user(entry: Entry) -> bool:
    if entry.type != "user" or not entry.main or entry.data.get("isSynthetic") is True:
        return False
    text = message_text(entry.blocks).text or ""
    return bool(text) and not notices(text) and not text.startswith("[Request interrupted")
