"""Scores as ``gen_ai.evaluation.result`` events of OpenTelemetry's GenAI conventions.

An error has ``error.type`` and neither value nor label; a skipped score has the label ``skipped``
and no value. So nothing but a verdict looks like a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from baton.export import spans
from baton.model import CaseResult, InputError, Said, Score, ToolCall, Trace
from baton.readers.otlp.record_as_spans import part
from baton.readers.otlp.span import Span
from baton.readers.otlp.wire.read import read_conversations
from baton.readers.otlp.wire.sniff import is_otlp
from baton.readers.trace_paths import files_below
from baton.store import StoredEvaluation

from .spans import ROOT, Place
from .wire_json import LogRecord

_CALL_IDS = (".call.id", ".use_id", ".tool_call_id", "tool.id", "tool_call.id")


class SpanIds(NamedTuple):
    """The ids of a span: lower-case hex."""

    trace_id: str
    span_id: str


class Written:
    """The spans that Baton writes for a record."""

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
        """Return the span of the first object that has one, else the conversation's."""
        place = next((self._places[id_] for id_ in subject if id_ in self._places), ROOT)
        return SpanIds(self._trace, spans.span_id(self._trace, *place))


class _Spans:
    """The spans of one conversation: their parents, and their calls."""

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
        own_spans = (self._own(run) for run in runs)
        first = next((span for span in own_spans if span is not None), next(iter(spans.ids)))
        self._top = spans.ids[spans.top(first)]

    def of(self, subject: Sequence[str]) -> SpanIds:
        """Return the span of the first object that has one, else the outermost one."""
        for id_ in subject:
            if id_ in self._first_runs:
                first = self._own(self._first_runs[id_])
                span = self._spans.top(first) if first is not None else None
            elif (dispatch := self._dispatches.get(id_)) is not None:
                near = (dispatch.call, *dispatch.runs, dispatch.from_run)
                own = (self._own(one) for one in near if one is not None)
                span = next((each for each in own if each is not None), None)
            else:
                span = self._own(id_) or self._own(self._run_of.get(id_, ""))
            if span is not None:
                return self._spans.ids[span]
        return self._top

    def _own(self, id_: str) -> str | None:
        """Return the span of a run, which has its id, or of a call."""
        span = id_.removesuffix("/agent")
        return span if span in self._spans.ids else self._spans.calls.get(id_)


class Originals:
    """The spans in some files, by the id of their conversation, without those written by Baton."""

    def __init__(self, paths: Sequence[Path], exclude: Sequence[Path] = ()) -> None:
        left_out = {path.resolve() for path in exclude}
        below = [
            file
            for path in paths
            for file in (files_below(path) if path.is_dir() else [path] if path.is_file() else [])
        ]
        files = [f for f in dict.fromkeys(below) if f.resolve() not in left_out and is_otlp(f)]
        by_conversation: dict[str, _Spans] = {}
        try:
            for conversation in read_conversations(files) if files else ():
                _, others = part(conversation)
                if others.spans:
                    by_conversation[conversation.id] = _Spans(others.spans)
        except InputError:
            pass  # complete files were read; broken ones were reported when the traces were read
        self._spans: Mapping[str, _Spans] = by_conversation

    def of(self, trace: Trace) -> Read | None:
        """Return the spans that a record was read from; ``None`` if there are none."""
        spans = self._spans.get(trace.id) if trace.source.format == "otlp" else None
        return Read(trace, spans) if spans is not None else None


EVENT = "gen_ai.evaluation.result"
_INFO, _ERROR = 9, 17
_LABELS = {"passed": "pass", "failed": "fail", "skipped": "skipped"}
_OTHER = "_OTHER"
"""OpenTelemetry's value for an error without a class."""
Json = dict[str, Any]


def events_of(
    evaluation: StoredEvaluation,
    result: CaseResult,
    places: Written | Read | None,
    observed: float,
) -> Iterator[LogRecord]:
    """Yield an event for each score of a case, and one for an error of the case itself.

    ``places`` knows the spans of its trace; a case without a trace has no span. ``observed`` is
    the time of the export, in seconds since the epoch.
    """
    timings = evaluation.header.timings
    moment = timings.get("ended") or timings.get("started")
    try:
        at = datetime.fromisoformat(str(moment)).timestamp() if moment else None
    except ValueError:
        at = None

    case = {
        "baton.evaluation.id": evaluation.header.id,
        "baton.case": result.case_id,
        "baton.repeat": result.repeat + 1,
        "baton.case.status": result.status,
    }
    held = result.trace or result.recorded
    if held is not None and held.id:
        case["gen_ai.conversation.id"] = held.id
    if result.error is not None:
        about = {
            "gen_ai.evaluation.name": "case",
            **_explained(result.error),
            "error.type": _OTHER,
        }
        span = places.of([]) if places is not None else None
        yield _event({**about, **case}, span, at, observed, is_error=True)
    for score in result.scores:
        span = places.of(score.subject) if places is not None else None
        yield event_of(score, span, at, observed, case)


def event_of(
    score: Score, span: SpanIds | None, at: float | None, observed: float, more: Json
) -> LogRecord:
    """Return the event of a score; ``more`` are attributes of the scored object."""
    attributes = {
        "gen_ai.evaluation.name": score.evaluator,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": _LABELS.get(score.status),
        **_explained(score.reason),
        "error.type": _OTHER if score.status == "error" else None,
        "baton.evaluator.type": score.type,
        "baton.evaluator.version": score.version,
        "baton.score.status": score.status,
        "baton.score.threshold": score.threshold,
        "baton.score.unit": score.unit,
        "baton.score.subject": score.subject or None,
        "baton.judge.model": score.judge.model if score.judge is not None else None,
    }
    stated = {name: value for name, value in attributes.items() if value is not None}
    return _event({**stated, **more}, span, at, observed, is_error=score.status == "error")


def _event(
    attributes: Json, span: SpanIds | None, at: float | None, observed: float, *, is_error: bool
) -> LogRecord:
    return LogRecord(
        name=EVENT,
        at=at,
        observed=observed,
        severity=_ERROR if is_error else _INFO,
        attributes=attributes,
        trace_id=span.trace_id if span is not None else None,
        span_id=span.span_id if span is not None else None,
    )


def _explained(reason: str) -> Json:
    return {"gen_ai.evaluation.explanation": reason} if reason else {}
