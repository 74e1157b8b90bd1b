"""Sessions on disk and streams as traces; recordings of one session become one trace."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from baton.formats.document import read_bytes
from baton.formats.input_files import InputFile
from baton.model import AgentRun, Dispatch, Dropped, InputError, Problem, Source, Trace, Turn, Usage
from baton.model.trace import GUARD
from baton.model.views import sum_usage
from baton.readers.catalog import Catalog

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


_COUNTS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


def merge(transcript: Trace, otlp: Trace) -> Trace:
    """Add data from spans to a transcript: the cost of each run, and missing tokens.

    Content and structure come from the transcript. Runs are the same if the same tool call made
    their dispatch; those of the main thread if both have the same number of turns, or one has only
    one.
    """
    for run, twins in _pairs(transcript, otlp):
        run.usage = _better(run.usage, sum_usage([twin.usage for twin in twins]))
        run.unknown = [n for n in run.unknown if n != "usage" or run.usage is None]
        if run.model is None and (model := next((t.model for t in twins if t.model), None)):
            run.model = model
            run.unknown = [name for name in run.unknown if name != "model"]
    usages = [run.usage for turn in transcript.turns for run in turn.runs]
    if transcript.usage is None or transcript.usage.cost_usd is None:
        summed = _better(sum_usage(usages), otlp.usage)
        transcript.usage = _better(transcript.usage, summed)
    _note(transcript, otlp)
    return transcript


def merge_stream(transcript: Trace, stream: Trace) -> Trace:
    """Add data of a stream to a transcript: totals, and why a turn failed.

    Content and structure come from the transcript.
    """
    transcript.usage = _better(transcript.usage, stream.usage)
    if len(transcript.turns) == len(stream.turns):
        for turn, twin in zip(transcript.turns, stream.turns, strict=True):
            if twin.status == "failed" and turn.status != "failed":
                turn.status, turn.error, turn.output = "failed", twin.error, None
                if turn.runs and twin.runs:
                    turn.runs[0].status, turn.runs[0].error = "failed", twin.runs[0].error
            elif twin.output is not None and twin.output.data is not None:
                turn.output = twin.output
    for name, value in stream.attributes.items():
        transcript.attributes.setdefault(name, value)
    _note(transcript, stream)
    return transcript


def _pairs(transcript: Trace, other: Trace) -> list[tuple[AgentRun, list[AgentRun]]]:
    """Match the runs of two recordings: what a call started, and the main thread."""
    runs = {run.id: run for turn in other.turns for run in turn.runs}
    by_call = {d.call: d for turn in other.turns for d in turn.dispatches if d.call is not None}
    pairs: list[tuple[AgentRun, list[AgentRun]]] = []
    for turn in transcript.turns:
        for dispatch in turn.dispatches:
            twin = by_call.get(dispatch.call or "")
            if twin is not None:
                pairs += _runs_of(turn, dispatch, [runs[id_] for id_ in twin.runs if id_ in runs])
    mains = [turn.runs[0] for turn in transcript.turns if turn.runs]
    twins = [run for turn in other.turns for run in turn.runs if not run.started_by and run.usage]
    # If two instrumentations recorded one session, the one that only has costs has the cost of all
    # requests, which the other one counts.
    twins = [twin for twin in twins if _has_counts(twin.usage)] or twins
    if len(mains) == 1 and twins:
        pairs.append((mains[0], twins))
    elif len(mains) == len(twins):
        pairs += [(run, [twin]) for run, twin in zip(mains, twins, strict=True)]
    return pairs


def _runs_of(
    turn: Turn, dispatch: Dispatch, twins: Sequence[AgentRun]
) -> list[tuple[AgentRun, list[AgentRun]]]:
    own = [run for run in turn.runs if run.id in dispatch.runs]
    if len(own) == 1 and twins:
        return [(own[0], list(twins))]
    return [(run, [twin]) for run, twin in zip(own, twins, strict=False)]


def _better(usage: Usage | None, other: Usage | None) -> Usage | None:
    """Return the usage with the other's cost, and its tokens if they are more complete."""
    if other is None:
        return usage
    has_counts = _has_counts(other)
    if usage is None or (has_counts and other.complete and not usage.complete):
        better = msgspec.structs.replace(other)
        if usage is not None:
            better.failed_requests = better.failed_requests or usage.failed_requests
            better.requests = better.requests or usage.requests
    else:
        better = msgspec.structs.replace(usage)
    cost = other if other.cost_usd is not None else usage
    if cost is not None:
        better.cost_usd, better.cost_from = cost.cost_usd, cost.cost_from
    return better if has_counts or better.cost_usd is not None or usage is not None else None


def _has_counts(usage: Usage | None) -> bool:
    return any(getattr(usage, name) for name in _COUNTS)


def _note(trace: Trace, other: Trace) -> None:
    trace.attributes.setdefault("merged_with", []).append(other.source.format)


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
