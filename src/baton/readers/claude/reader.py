"""Sessions on disk and streams as traces."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from baton.formats.document import read_bytes
from baton.formats.input_files import InputFile
from baton.model import Dropped, InputError, Problem, Source, Trace
from baton.model.trace import GUARD
from baton.readers.catalog import Catalog

from .merge_recordings import merge, merge_stream
from .session import SessionReader, finish, name_sidechains
from .session_files import Folder, agent_files, guard_notes, head, session_file
from .started_agents import Cards, Links, find_links
from .usage import other_usage
from .wire import (
    Entry,
    Lines,
    is_written_by_program,
    message_text,
    notices,
    read_lines,
    text_at,
    to_entries,
)

FORMAT, FRAMEWORK = "claude-session", "claude-agent-sdk"
# Claude Code starts some sub-agents with this prompt when a session begins. Nobody asked for
# anything, so it is not a dispatch.
WARM_UP = "Warmup"


def read_session(recorded: Path | InputFile, *, source: Source, catalog: Catalog) -> Trace:
    """Read a session's file and those of its sub-agents; for a sub-agent's file, its session.

    Raises:
        InputError: a line is not a JSON object, or a sub-agent's session does not exist.
    """
    opened = recorded if isinstance(recorded, InputFile) else InputFile(recorded)
    start, path = head(opened), opened.path
    if start is not None and start.side and path.name.startswith("agent-"):
        main = session_file(path)
        if main is None:
            message = f"belongs to a sub-agent of the session {start.session}, which is missing"
            raise InputError(Problem(file=str(path), message=message))
        opened.close()
        opened, path = InputFile(main), main
    with opened:
        lines = read_lines(str(path), opened.content())
    id_ = next((entry.session for entry in lines.entries if entry.session), None) or path.stem
    links, files, dropped = Links(), [lines.entries], lines.dropped()
    others: dict[str, dict[str, object]] = {}
    for file in agent_files(path, id_):
        read = read_lines(str(file.path), read_bytes(file.path))
        for entry in read.entries:
            entry.agent = file.agent
        links.add(text_at(file.meta, "toolUseId"), file.agent, text_at(file.meta, "agentType"))
        dropped += read.dropped()
        if _is_warm_up(read.entries):
            for entry in read.entries:
                if entry.type == "assistant" and text_at(entry.message, "id"):
                    others[text_at(entry.message, "id")] = entry.message
        else:
            files.append(read.entries)
    name_sidechains(lines.entries, links)
    entries = list(_merged(files))
    find_links(entries, links)
    session = SessionReader(links, stream=False)
    session.read(entries)
    if others:
        session.threads.usage.others.append(other_usage(others))
    cards = Cards(catalog)
    cards.read(entries)
    trace = finish(session, cards, id_, source, torn=lines.torn, dropped=_counted(dropped))
    version = next((v for e in entries if (v := text_at(e.data, "version"))), None)
    if version is not None:
        trace.attributes["cli_version"] = version
    if notes := guard_notes(path):
        trace.attributes[GUARD] = notes
    return trace


def _merged(files: list[list[Entry]]) -> Iterator[Entry]:
    """Merge the entries of several files by time, keeping the order within each file.

    If times are equal or unknown, the session's own file comes first.
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
    """Return whether an older version started the agent itself, to fill a cache."""
    first = next((entry for entry in entries if entry.type == "user"), None)
    return first is not None and message_text(first.blocks).text == WARM_UP


def _counted(dropped: list[Dropped]) -> list[Dropped]:
    counts: dict[str, Dropped] = {}
    for one in dropped:
        known = counts.setdefault(one.what, msgspec.structs.replace(one, count=0))
        known.count += one.count
    return list(counts.values())


STREAM_FORMAT, STREAM_FRAMEWORK = "claude-stream", "claude-agent-sdk"


def read_stream(
    messages: Iterable[dict[str, Any]], *, id_: str, source: Source, catalog: Catalog
) -> Trace:
    """Read the messages of one session; ``id_`` is its name if no message has one.

    A stream does not repeat what the user said. If it does (``--replay-user-messages``, or the
    sender wrote it), a turn starts with that, else with what follows a result.
    """
    return _trace(Lines(entries=to_entries(messages)), id_, source, catalog)


def read_one_stream(
    file: str, data: bytes, id_: str, source: Source, catalog: Catalog
) -> list[Trace]:
    """Read a file of messages, one trace per session.

    Raises:
        InputError: a line is not a JSON object.
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
    session = SessionReader(links, stream=True, user_told=any(map(_is_user, entries)))
    session.read(entries)
    cards = Cards(catalog)
    cards.read(entries)
    name = next((entry.session for entry in entries if entry.session), id_)
    trace = finish(session, cards, name, source, torn=lines.torn, dropped=lines.dropped())
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
    by_user = not is_written_by_program(entry, text) and not text.startswith("[Request interrupted")
    return bool(text) and not notices(text) and by_user


def read_session_file(file: Path | InputFile, catalog: Catalog) -> Trace:
    """Read the file of a session and of its sub-agents; raises InputError."""
    path = file.path if isinstance(file, InputFile) else file
    source = Source(format=FORMAT, framework=FRAMEWORK, location=str(path))
    return read_session(file, source=source, catalog=catalog)


def read_stream_file(path: Path, data: bytes, catalog: Catalog) -> list[Trace]:
    """Read a file of messages, one trace per session; raises InputError."""
    source = Source(format=STREAM_FORMAT, framework=STREAM_FRAMEWORK, location=str(path))
    return read_one_stream(str(path), data, path.name.split(".")[0], source, catalog)


def read_one(
    folder: Folder, id_: str, catalog: Catalog, others: Mapping[str, Sequence[Trace]]
) -> list[Trace]:
    """Read one session of a folder, from its transcript if there is one.

    ``others`` are traces of the same sessions from spans, by id. Streams without a transcript are
    separate traces.

    Raises:
        InputError: a file cannot be read.
    """
    streams = [
        trace
        for path in folder.streams.get(id_, ())
        for trace in read_stream_file(path, folder.input(path).content(), catalog)
    ]
    main = folder.sessions.get(id_)
    if main is None:
        traces = streams
    else:
        transcript = read_session_file(folder.input(main), catalog)
        for trace in streams:
            if trace.id == transcript.id:
                merge_stream(transcript, trace)
        known = {*folder.ids(), transcript.id}
        traces = [transcript, *(trace for trace in streams if trace.id not in known)]
    for trace in traces:
        for twin in others.get(trace.id, ()):
            merge(trace, twin)
    return traces
