"""Which span stands for an object of a record: one that Baton writes, or that it was read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from baton.export import spans
from baton.model import Dispatch, InputError, Said, ToolCall, Trace
from baton.readers.load import files_below
from baton.readers.otlp.own import part
from baton.readers.otlp.span import Span
from baton.readers.otlp.wire.read import read_conversations
from baton.readers.otlp.wire.sniff import is_otlp

from .spans import ROOT, Place

_CALL_IDS = (".call.id", ".use_id", ".tool_call_id", "tool.id", "tool_call.id")


class SpanIds(NamedTuple):
    """Where a span stands: lower-case hex."""

    trace_id: str
    span_id: str


class Written:
    """The spans that Baton writes of a record."""

    def __init__(self, trace: Trace) -> None:
        self._trace = spans.trace_id(trace)
        self._places: dict[str, Place] = {}
        for turn in trace.turns:
            self._places[turn.id] = ("turn", turn.id)
            for run in turn.runs:
                self._places[run.id] = ("run", run.id)
                for step in run.steps:
                    own = isinstance(step, Said | ToolCall)
                    self._places[step.id] = ("step", step.id) if own else ("run", run.id)
            for dispatch in turn.dispatches:
                self._places[dispatch.id] = ("dispatch", dispatch.id)

    def of(self, subject: Sequence[str]) -> SpanIds:
        """Return the span of the first object that has one, else that of the conversation."""
        place = next((self._places[id_] for id_ in subject if id_ in self._places), ROOT)
        return SpanIds(self._trace, spans.span_id(self._trace, *place))


class _Spans:
    """The spans of one conversation: what each stands in, and the calls they are of."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.ids: dict[str, SpanIds] = {}
        self.parents: dict[str, str | None] = {}
        self.calls: dict[str, str] = {}
        for span in spans:
            self.ids[span.span_id] = SpanIds(span.trace_id, span.span_id)
            self.parents[span.span_id] = span.parent_id
            for name, value in span.attributes.items():
                if isinstance(value, str) and name.endswith(_CALL_IDS):
                    self.calls.setdefault(value, span.span_id)

    def top(self, span: str) -> str:
        """Return the outermost span around one."""
        seen = {span}
        while (parent := self.parents.get(span)) in self.ids and parent not in seen:
            span = parent or span
            seen.add(span)
        return span


class Read:
    """The spans that a record was read from."""

    def __init__(self, trace: Trace, spans: _Spans) -> None:
        self._spans = spans
        self._dispatches = {d.id: d for turn in trace.turns for d in turn.dispatches}
        self._first_runs = {turn.id: turn.runs[0].id for turn in trace.turns if turn.runs}
        self._run_of = {
            step.id: run.id for turn in trace.turns for run in turn.runs for step in run.steps
        }
        runs = (run.id for turn in trace.turns for run in turn.runs)
        found = (self._own(run) for run in runs)
        first = next((span for span in found if span is not None), next(iter(spans.ids)))
        self._top = spans.ids[spans.top(first)]

    def of(self, subject: Sequence[str]) -> SpanIds:
        """Return the span of the first object that has one, else the outermost one."""
        for id_ in subject:
            span = self._span(id_)
            if span is not None:
                return self._spans.ids[span]
        return self._top

    def _span(self, id_: str) -> str | None:
        if id_ in self._first_runs:
            first = self._own(self._first_runs[id_])
            return self._spans.top(first) if first is not None else None
        dispatch = self._dispatches.get(id_)
        if dispatch is not None:
            return self._of_dispatch(dispatch)
        return self._own(id_) or self._own(self._run_of.get(id_, ""))

    def _own(self, id_: str) -> str | None:
        """Return the span of a run, which has its id, or of a call."""
        span = id_.removesuffix("/agent")
        return span if span in self._spans.ids else self._spans.calls.get(id_)

    def _of_dispatch(self, dispatch: Dispatch) -> str | None:
        near = (dispatch.call, *dispatch.runs, dispatch.from_run)
        spans = (self._own(id_) for id_ in near if id_ is not None)
        return next((span for span in spans if span is not None), None)


class Originals:
    """The spans in some files, by the id of their conversation; those Baton wrote do not count."""

    def __init__(self, paths: Sequence[Path], exclude: Sequence[Path] = ()) -> None:
        self._spans: Mapping[str, _Spans] = _read(_files(paths, exclude))

    def of(self, trace: Trace) -> Read | None:
        """Return the spans a record was read from; ``None`` when it was read from none."""
        spans = self._spans.get(trace.id) if trace.source.format == "otlp" else None
        return Read(trace, spans) if spans is not None else None


def _files(paths: Sequence[Path], exclude: Sequence[Path]) -> list[Path]:
    left_out = {path.resolve() for path in exclude}
    below = [
        file
        for path in paths
        for file in (files_below(path) if path.is_dir() else [path] if path.is_file() else [])
    ]
    return [f for f in dict.fromkeys(below) if f.resolve() not in left_out and is_otlp(f)]


def _read(files: list[Path]) -> dict[str, _Spans]:
    found: dict[str, _Spans] = {}
    try:
        for conversation in read_conversations(files) if files else ():
            _, others = part(conversation)
            if others.spans:
                found[conversation.id] = _Spans(others.spans)
    except InputError:
        pass  # what is whole was read; what is broken was said when the traces were
    return found
