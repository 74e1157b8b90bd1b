"""Finds the files of a session: three layouts of Claude Code's folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from baton.formats.document import read_bytes
from baton.formats.input_files import InputFile, one_by_one
from baton.formats.nesting import decode_json
from baton.formats.own_files import stays_in
from baton.model import InputError, Problem
from baton.model.current_guard import GUARD_NOTES
from baton.model.trace import OF_DECISIONS

_HEAD_LINES, _HEAD_BYTES = 12, 1 << 20
AGENT_FILES = "agent-*.jsonl"
_SUFFIXES = frozenset({".jsonl", ".ndjson", ".log", ".txt"})
_STREAMED = frozenset({"system", "assistant", "user", "result", "stream_event", "rate_limit_event"})


class Head(msgspec.Struct, frozen=True):
    """The head of a file: its session, and whether it belongs to a sub-agent."""

    session: str
    side: bool
    stream: bool
    hooks: bool = False


class AgentFile(msgspec.Struct, frozen=True):
    """The file of one sub-agent, and the data of the file next to it."""

    path: Path
    agent: str
    meta: dict[str, Any]


class _Line(msgspec.Struct):
    type: str = ""
    sessionId: str | None = None  # noqa: N815 - as it is spelt there
    session_id: str | None = None
    isSidechain: bool | None = None  # noqa: N815
    hook_event_name: str | None = None
    traceId: str | None = None  # noqa: N815 - of observations of Langfuse, which have the others


def head(file: InputFile) -> Head | None:
    """Read the first lines of a file; ``None`` for another kind of file, or an unreadable one."""
    try:
        stream = file.stream()
        for _ in range(_HEAD_LINES):
            line = msgspec.json.decode(stream.readline(_HEAD_BYTES), type=_Line)
            if line.hook_event_name and line.session_id:
                return Head(line.session_id, False, False, hooks=True)
            if not line.type or line.traceId:
                return None
            if line.sessionId:
                return Head(line.sessionId, line.isSidechain is True, False)
            if line.session_id and line.type in _STREAMED:
                return Head(line.session_id, False, True)
    except (OSError, InputError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None


def session_file(agent_file: Path) -> Path | None:
    """Return the file of the session that a sub-agent's file belongs to, if it exists."""
    with InputFile(agent_file) as file:
        start = head(file)
    # A file may contain anything: a session called `../../private` is not opened.
    has_name = start is not None and Path(start.session).name == start.session
    places = [agent_file.parent / f"{start.session}.jsonl"] if start and has_name else []
    for folder in agent_file.parents:
        if folder.name == "subagents":
            places.append(folder.parent.with_suffix(".jsonl"))
    here = agent_file.parent
    return next((place for place in places if place.is_file() and stays_in(place, here)), None)


def agent_files(main: Path, session: str) -> list[AgentFile]:
    """Return the files of a session's sub-agents, in any layout.

    ``SESSION/subagents/**/agent-ID.jsonl`` with a ``.meta.json`` next to each; in older versions,
    ``agent-ID.jsonl`` next to the session's own file.
    """
    own = main.with_suffix("")
    below = own / "subagents"
    leads_out = not (stays_in(own, main.parent) and stays_in(below, main.parent))
    paths = sorted(below.rglob(AGENT_FILES)) if below.is_dir() and not leads_out else []
    beside = [InputFile(path) for path in sorted(main.parent.glob(AGENT_FILES))]
    for file in one_by_one(beside):
        start, path = head(file), file.path
        if path != main and start is not None and start.side and start.session == session:
            paths.append(path)
    return [
        AgentFile(path, path.stem.removeprefix("agent-"), _meta(path.with_suffix(".meta.json")))
        for path in paths
        if stays_in(path, main.parent)
    ]


def guard_notes(main: Path) -> list[dict[str, Any]]:
    """Return the decisions of guards in a session, from the file next to it.

    Raises:
        InputError: a line is not a JSON object.
    """
    path = main.with_suffix("") / GUARD_NOTES
    if not path.is_file() or not stays_in(path, main.parent):
        return []
    notes = []
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        try:
            note = decode_json(line)
        except msgspec.DecodeError as error:
            message = f"line {number} is not JSON: {error}"
            raise InputError(Problem(file=str(path), message=message)) from None
        if not isinstance(note, dict):
            message = f"line {number} is not an object"
            raise InputError(Problem(file=str(path), message=message))
        notes.append(
            {name: note[name] for name in OF_DECISIONS if isinstance(note.get(name), str | bool)}
        )
    return notes


def _meta(path: Path) -> dict[str, Any]:
    if not path.is_file() or not stays_in(path, path.parent):
        return {}
    try:
        value = decode_json(read_bytes(path))
    except msgspec.DecodeError as error:
        raise InputError(Problem(file=str(path), message=f"not JSON: {error}")) from None
    return value if isinstance(value, dict) else {}


class Folder(msgspec.Struct, frozen=True):
    """The files of a folder: sessions and streams of Claude by session id, and all others.

    ``orphans`` are files of sub-agents whose session does not exist.
    """

    sessions: dict[str, Path]
    streams: dict[str, list[Path]]
    orphans: list[Path]
    rest: list[Path]
    inputs: dict[Path, InputFile]

    def input(self, path: Path) -> InputFile:
        """Return the examined file, which may be open, or examine it now."""
        return self.inputs.get(path) or InputFile(path)

    def ids(self) -> list[str]:
        """Return all sessions, each once."""
        return list(dict.fromkeys([*self.sessions, *self.streams]))


def sort_files(files: Iterable[InputFile]) -> Folder:
    """Return the files of Claude's sessions among the files of a folder."""
    folder = Folder({}, {}, [], [], {})
    sides: list[Path] = []
    hooks: list[tuple[str, Path]] = []
    for file in files:
        path = file.path
        folder.inputs[path] = file
        start = head(file) if path.suffix in _SUFFIXES else None
        if start is None:
            folder.rest.append(path)
        elif start.hooks:
            hooks.append((start.session, path))
        elif start.stream:
            folder.streams.setdefault(start.session, []).append(path)
        elif start.side and path.match(AGENT_FILES):
            sides.append(path)
        else:
            folder.sessions[path.stem if path.stem not in folder.sessions else str(path)] = path
    for path in sides:
        main = session_file(path)
        if main is None:
            folder.orphans.append(path)
        else:
            folder.sessions.setdefault(main.stem, main)
    known = folder.ids()
    folder.rest.extend(path for session, path in hooks if session not in known)
    companions = {main.with_suffix("") for main in folder.sessions.values()}
    folder.rest[:] = [path for path in folder.rest if companions.isdisjoint(path.parents)]
    return folder
