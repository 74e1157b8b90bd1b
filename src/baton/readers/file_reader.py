"""Converts one recorded file to traces: detects its type by its content, and selects its reader."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.formats.document import Document, Places, places_of, raw_documents
from baton.formats.evaluation_folder import BODIES, is_evaluation
from baton.formats.input_files import InputFile, iter_lines, open_file
from baton.formats.key_case import snake
from baton.model import InputError, Problem, Source, Trace

from .adk.reader import read_conversation, read_eval_case, read_result_file, read_session
from .adk.wire import looks_like_sse, read_events, read_sse
from .catalog import Catalog
from .otlp.wire.sniff import is_otlp
from .own_records import alone, read_bodies, read_record
from .registry import format_of, formats

Kind = str
"""The name of a format: one of those below, or one of a module with `FORMATS`."""

FRAMEWORKS: dict[Kind, str | None] = {
    "record": None,
    "adk-session": "google-adk",
    "adk-event": "google-adk",
    "adk-result": "google-adk",
    "evalset": "google-adk",
    "eval-case": "google-adk",
    "evaluation": None,
    "claude-stream": "claude-agent-sdk",
    "claude-session": "claude-agent-sdk",
    "claude-hooks": "claude-agent-sdk",
    "strands-session": "strands",
    "strands-report": "strands",
    "strands-case": "strands",
    "strands-result": "strands",
}

_PHOENIX: Kind = "phoenix-frame"
# Files of stores that do not hold what a trace needs, or not in a form that Baton reads. Without
# these, Langfuse's `sessionId` and `type` pass for a session of Claude, and the `id` and `events`
# of LangSmith for one of ADK.
_REFUSED: dict[Kind, str] = {
    "langfuse-export": "holds observations or traces as Langfuse exports them, which Baton does "
    "not read: `baton pull langfuse --trace ID` (or `--session ID`) fetches them in a form that it "
    "reads",
    "langsmith-run": "holds runs as LangSmith's API returns them, which Baton does not read: run "
    "the program with LANGSMITH_OTEL_ENABLED=true and export its spans, or record it with "
    "`baton record`",
    _PHOENIX: "holds a data frame of Phoenix, which Baton does not read: `baton pull phoenix` "
    "fetches the spans in a form that it reads, and so does `client.spans.get_spans(...)`, written "
    "as JSON",
}

_SIGNS: list[tuple[frozenset[str], Kind]] = [
    (frozenset({"trace_id", "parent_observation_id"}), "langfuse-export"),
    (frozenset({"trace_id", "completion_start_time"}), "langfuse-export"),
    (frozenset({"observations", "html_path"}), "langfuse-export"),
    (frozenset({"timestamp", "bookmarked"}), "langfuse-export"),
    (frozenset({"run_type", "dotted_order"}), "langsmith-run"),
    (frozenset({"run_type", "parent_run_id"}), "langsmith-run"),
    (frozenset({"runs", "cursors"}), "langsmith-run"),
    (frozenset({"context.trace_id"}), _PHOENIX),
    (frozenset({"schema_version", "turns"}), "record"),
    (frozenset({"case_id", "repeat", "scores"}), "evaluation"),
    (frozenset({"eval_case_results"}), "adk-result"),
    (frozenset({"run_eval_results"}), "adk-result"),
    (frozenset({"eval_cases"}), "evalset"),
    (frozenset({"eval_id", "conversation"}), "eval-case"),
    (frozenset({"events", "id"}), "adk-session"),
    (frozenset({"author", "invocation_id"}), "adk-event"),
    (frozenset({"error", "error_details"}), "adk-event"),
    (frozenset({"traces", "session_id"}), "strands-session"),
    (frozenset({"cases", "scores", "test_passes"}), "strands-report"),
    (frozenset({"input", "actual_output", "actual_trajectory"}), "strands-case"),
    (frozenset({"type", "results", "accumulated_usage"}), "strands-result"),
    (frozenset({"type", "node_results", "accumulated_usage"}), "strands-result"),
]

# The spelling of Claude's keys distinguishes a stream from a session file.
_SPELT_SIGNS: list[tuple[frozenset[str], Kind]] = [
    (frozenset({"hook_event_name", "session_id"}), "claude-hooks"),
    (frozenset({"type", "sessionId"}), "claude-session"),
    (frozenset({"type", "leafUuid"}), "claude-session"),
    (frozenset({"type", "messageId", "snapshot"}), "claude-session"),
    (frozenset({"type", "session_id"}), "claude-stream"),
    (frozenset({"subtype", "data"}), "claude-stream"),
    (frozenset({"subtype", "num_turns", "session_id"}), "claude-stream"),
    (frozenset({"content", "model", "parent_tool_use_id"}), "claude-stream"),
    (frozenset({"content", "parent_tool_use_id", "tool_use_result"}), "claude-stream"),
]


def kind_of(keys: Collection[str]) -> Kind | None:
    """Return the type of an object with these keys; ``None`` if it contains no trace."""
    names = {snake(key) for key in keys}
    matching = next((kind for signs, kind in _SIGNS if signs <= names), None)
    if matching is None:
        spelt = set(keys)
        matching = next((kind for signs, kind in _SPELT_SIGNS if signs <= spelt), None)
    return matching or format_of(names)


def is_refused(keys: Collection[str]) -> bool:
    """Return whether an object with these keys is an export of a store that is not read."""
    return kind_of(keys) in _REFUSED


_MARK = b"\xef\xbb\xbf"
_BLANK = _MARK + b" \t\r\n"
_CLAUDE: tuple[Kind, ...] = ("claude-stream", "claude-session", "claude-hooks")


class LineRange:
    """The lines that begin between ``start`` and ``end`` in a file; ``count`` is their number."""

    def __init__(self, path: Path, start: int, end: int) -> None:
        self._path, self._start, self._end = path, start, end
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        # The range starts one byte earlier, to see whether a line ends there.
        at = max(self._start - 1, 0)
        for line in iter_lines(self._path, at):
            is_before, at = at < self._start, at + len(line)
            if not is_before:
                self.count += 1
                yield line
            if at >= self._end:
                return


class ItemRange(msgspec.Struct, frozen=True):
    """Items of a JSON list, from byte ``start`` up to ``end``, which begin on ``line``.

    ``changed`` is when the file was last changed, in nanoseconds.
    """

    start: int
    end: int
    line: int
    kind: Kind
    changed: int


def _is_list(data: bytes, places: Places) -> bool:
    """Return whether values are where a list has them: a `1` may be found in a text before it."""
    ends = (start + length for start, length in zip(places.starts, places.lengths, strict=True))
    if places.starts and not data[: places.starts[0]].rstrip().endswith(b"["):
        return False
    return all(
        data[end:start].strip() == b"," for end, start in zip(ends, places.starts[1:], strict=False)
    )


def _ranges_of(places: Places, kind: Kind, size: int, changed: int) -> Iterator[ItemRange]:
    first = 0
    for last, start in enumerate(places.starts):
        end = start + places.lengths[last]
        if end - places.starts[first] >= size or last + 1 == len(places.starts):
            yield ItemRange(places.starts[first], end, places.lines[first], kind, changed)
            first = last + 1


class FileReader:
    """Reads the traces of one file.

    A trace without an id gets the file's name, without suffixes, as its id. ``name`` is that name
    if ``path`` is a copy.
    """

    def __init__(
        self, file: Path | InputFile, catalog: Catalog, *, name: str | None = None
    ) -> None:
        self._input = file if isinstance(file, InputFile) else InputFile(file)
        self._path = path = self._input.path
        self._file = str(path)
        self._catalog = catalog
        self._name = name or path.name
        self._stem = self._name.split(".")[0]

    def traces(self) -> Iterator[Trace]:
        """Yield the traces; nothing if the file is readable but has none.

        Raises:
            InputError: the file cannot be read, is broken, or has errors.
        """
        if self._is_bodies():
            yield from read_bodies(self._path, self._source("evaluation"))
            return
        with self._input:
            yield from self._traces()

    def _traces(self) -> Iterator[Trace]:
        if is_otlp(self._input):
            from .otlp.reader import read_files

            yield from read_files([self._input], self._catalog)
            return
        keys = self._first_keys()
        first = kind_of(keys) if keys is not None else None
        if first is not None:
            yield from self._read_lines(first)
            return
        if keys is not None:
            yield from self._read_unknown_lines()
            return
        data = self._input.content()
        start = data.lstrip(_BLANK)[:1]
        if looks_like_sse(data):
            source = Source(format="adk-sse", framework="google-adk", location=self._file)
            yield read_conversation(
                read_sse(self._file, data), id_=self._stem, source=source, catalog=self._catalog
            )
        elif start in (b"{", b"["):
            document = Document(self._file, data.removeprefix(_MARK), "json")
            del data  # the pieces of a large file are read again, so its text must not be kept
            yield from self._read_json(document)
        elif start == b'"':
            # JSON that was written as a JSON string, as older result files were.
            inner = Document(self._file, data, "json").value()
            yield from self._read_json(Document(self._file, inner.encode(), "json"))
        elif b"context.trace_id" in data.split(b"\n", 1)[0]:
            raise self._refusal(_PHOENIX)  # as CSV
        elif self._name.endswith((".yaml", ".yml")):
            yield from self._read_yaml(Document(self._file, data, "yaml"))

    def _is_bodies(self) -> bool:
        return self._path.name == BODIES and is_evaluation(self._path.parent)

    def can_be_cut(self) -> bool:
        """Return whether each line is read separately.

        Lines of an evaluation are not: a later line may replace an earlier one.
        """
        if self._is_bodies():
            return False
        with self._input:
            if is_otlp(self._input):
                return False
            whole = (None, *_CLAUDE, "adk-event", "evaluation", *_REFUSED)
            return self._json_lines() not in whole

    def items(self, size: int) -> list[ItemRange] | None:
        """Cut the list of traces in a JSON file into ranges of about ``size`` bytes.

        The list is the whole file, or the cases of an eval set. ``None`` for any other file, and
        if its items cannot be read separately.
        """
        if self._is_bodies():
            return None
        with self._input:
            if is_otlp(self._input) or self._json_lines() is not None:
                return None
            changed = self._path.stat().st_mtime_ns
            data = self._input.content()
        if not data.lstrip(_BLANK).startswith((b"{", b"[")) or looks_like_sse(data):
            return None
        try:
            top = _top_of(Document(self._file, data.removeprefix(_MARK), "json"))
        except InputError:
            return None  # the error is reported when the file is read
        if not isinstance(top, _Listed):
            return None
        places = places_of(data, top.raws)
        if not places.are_complete or not _is_list(data, places):
            return None
        return list(_ranges_of(places, top.kind, size, changed))

    def traces_of(self, items: ItemRange) -> Iterator[Trace]:
        """Yield the traces of some items of a list; raises InputError like :meth:`traces`."""
        with open_file(self._path) as stream:
            if os.fstat(stream.fileno()).st_mtime_ns != items.changed:
                message = "has changed while it was being read"
                raise InputError(Problem(file=self._file, message=message))
            stream.seek(items.start)
            data = b"[" + stream.read(items.end - items.start) + b"]"
        raws = msgspec.json.decode(data, type=list[msgspec.Raw])
        pieces = raw_documents(self._file, data, raws, items.line)
        yield from self._read_all((pieces(index), items.kind) for index in range(len(raws)))

    def traces_in(self, lines: LineRange) -> Iterator[Trace]:
        """Yield the traces of some lines; raises InputError like :meth:`traces`.

        Lines are counted from the first of them.
        """
        yield from self._read_each_line(lines)

    def _json_lines(self) -> Kind | None:
        """Return the kind of lines in a JSON-lines file; ``None`` if it is not such a file."""
        keys = self._first_keys()
        return None if keys is None else kind_of(keys)

    def _first_keys(self) -> list[str] | None:
        """Return the keys of the first object of a JSON-lines file; ``None`` for other files."""
        first = self._input.first_of_lines()
        if first is None or not first.startswith(b"{"):
            return None
        return _object_keys(first)

    def _read_unknown_lines(self) -> Iterator[Trace]:
        """Read JSON lines the first of which contains no trace; usually none does.

        Raises:
            InputError: a line is not JSON, or only some lines contain a trace.
        """
        for number, line in enumerate(self._input.lines(), 1):
            if line.isspace():
                continue
            keys = _object_keys(line)
            if keys is None:
                Document(self._file, line.rstrip(b"\r\n"), "json", number).value()
            elif kind_of(keys) is not None:
                yield from self._read_each_line(self._input.lines())
                return

    def _claude(self, kind: Kind) -> Iterator[Trace]:
        """Read a session of Claude with the files around it, or the messages of a stream.

        Files of hooks are not read: they have no further content.
        """
        from .claude.reader import read_session_file, read_stream_file

        if kind == "claude-session":
            yield read_session_file(self._input, self._catalog)
        elif kind == "claude-stream":
            yield from read_stream_file(self._path, self._input.content(), self._catalog)

    def _refusal(self, kind: Kind, path: str = "") -> InputError:
        return InputError(Problem(file=self._file, path=path, message=_REFUSED[kind]))

    def _read_lines(self, kind: Kind) -> Iterator[Trace]:
        if kind in _REFUSED:
            raise self._refusal(kind)
        if kind in _CLAUDE:
            yield from self._claude(kind)
            return
        if kind == "adk-event":
            lines = [line for line in self._input.content().splitlines() if line.strip()]
            document = Document(self._file, b"[" + b",\n".join(lines) + b"]", "json")
            yield self._events(document)
            return
        yield from self._read_each_line(self._input.lines())

    def _read_each_line(self, stream: Iterable[bytes]) -> Iterator[Trace]:
        yield from self._read_all(
            (Document(self._file, line.rstrip(b"\r\n"), "json", number), None)
            for number, line in enumerate(stream, 1)
            if not line.isspace()
        )

    def _read_all(self, pieces: Iterable[tuple[Document, Kind | None]]) -> Iterator[Trace]:
        """Read all pieces; a broken one does not stop the others, and is reported at the end."""
        problems: list[Problem] = []
        for document, kind in pieces:
            try:
                yield from self._read(document, kind or _kind(document))
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)

    def _read_json(self, document: Document) -> Iterator[Trace]:
        top = _top_of(document)
        if isinstance(top, _Listed):
            pieces = raw_documents(self._file, document.data, top.raws)
            count, kind = len(top.raws), top.kind
            del top  # the pieces of a large file are read again, so its text must not be kept
            document.data = b""
            yield from self._read_all((pieces(index), kind) for index in range(count))
            return
        first = top if isinstance(top, dict) else _object_keys(top[0]) if top else None
        of_first = kind_of(first) if first is not None else None
        if of_first in _REFUSED:
            raise self._refusal(of_first)
        if of_first is None and isinstance(top, dict):
            self._refuse_pages(top)
        if of_first in _CLAUDE:
            yield from self._claude(of_first)
        elif isinstance(top, list) and of_first == "adk-event":
            yield self._events(document)
        elif of_first is not None:
            yield from self._read(document, of_first)
        elif isinstance(top, list) and first is not None:
            whole = format_of(map(snake, first), whole=True)
            if whole is not None:
                yield from self._read(document, whole)

    def _refuse_pages(self, top: dict[str, msgspec.Raw]) -> None:
        """Refuse a page of a store's API: `{"data": [...], "meta": {...}}`."""
        for key in ("data", "runs"):
            page = bytes(top[key]) if key in top else b""
            items = msgspec.json.decode(page, type=list[msgspec.Raw]) if page[:1] == b"[" else []
            keys = _object_keys(items[0]) if items else None
            kind = kind_of(keys) if keys is not None else None
            if kind in _REFUSED:
                raise self._refusal(kind, f"{key}[0]")

    def _read_yaml(self, document: Document) -> Iterator[Trace]:
        from baton.formats.yaml import load_yaml  # not needed for JSON

        value = load_yaml(document.text, self._file)
        kind = kind_of([str(key) for key in value]) if isinstance(value, dict) else None
        if kind == "evalset":
            items: Any = value.get("eval_cases", value.get("evalCases"))
            yield from self._read_all(
                (document.part(item, ("eval_cases", index)), "eval-case")
                for index, item in enumerate(items if isinstance(items, list) else ())
            )
        elif kind is not None:
            yield from self._read(document.part(value, ()), kind)

    def _events(self, document: Document) -> Trace:
        source = self._source("adk-event")
        wire = read_events(document)
        return read_conversation(wire, id_=self._stem, source=source, catalog=self._catalog)

    def _read(self, document: Document, kind: Kind) -> Iterator[Trace]:
        source = self._source(kind)
        match kind:
            case "record":
                yield read_record(document, source)
            case "adk-session":
                yield read_session(document, source, self._catalog)
            case "adk-result":
                yield from read_result_file(document, source, self._catalog)
            case "eval-case":
                yield read_eval_case(document, source, self._catalog)
            case "evaluation":
                raise alone(self._file)
            case "strands-session" | "strands-report" | "strands-case" | "strands-result":
                from .strands.reader import read_strands

                yield from read_strands(document, source, self._catalog, self._stem)
            case "adk-event":
                yield self._events(document)
            case _ if kind in formats():
                yield from formats()[kind].read(document, source, self._catalog, self._stem)
            case _:
                yield self._events(document)

    def _source(self, kind: Kind) -> Source:
        framework = FRAMEWORKS[kind] if kind in FRAMEWORKS else formats()[kind].framework
        return Source(format=kind, framework=framework, location=self._file)


class _Listed(NamedTuple):
    """Traces of one kind in a list, each of which is read separately."""

    raws: list[msgspec.Raw]
    kind: Kind


def _top_of(document: Document) -> _Listed | dict[str, msgspec.Raw] | list[msgspec.Raw]:
    """Return the list in a document that is an eval set or a list of traces; else its top level."""
    eval_set = document.eval_set()
    if eval_set is not None:
        return _Listed(eval_set[1], "eval-case")
    top = document.shallow()
    if isinstance(top, dict):
        if kind_of(top) != "evalset":
            return top
        key = next(key for key in top if key in ("eval_cases", "evalCases"))
        try:
            raws = msgspec.json.decode(top[key], type=list[msgspec.Raw])
        except msgspec.DecodeError:
            raise InputError(document.problem("the cases have to be a list")) from None
        return _Listed(raws, "eval-case")
    first = _object_keys(top[0]) if top else None
    kind = kind_of(first) if first is not None else None
    if kind is None or kind == "adk-event" or kind in _CLAUDE or kind in _REFUSED:
        return top  # such items together are one trace
    return _Listed(top, kind)


def _kind(document: Document) -> Kind:
    keys = document.shallow()
    kind = kind_of(keys) if isinstance(keys, dict) else None
    if kind is None:
        raise InputError(document.problem("this line contains no trace", document.first_line))
    return kind


def _object_keys(raw: msgspec.Raw | bytes) -> list[str] | None:
    try:
        return list(msgspec.json.decode(raw, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
