"""Export recordings and evaluations, one after the other, to a file or an endpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Literal

import msgspec

from baton.formats.evaluation_folder import is_evaluation
from baton.formats.storage_addresses import place_of
from baton.model import InputError, Problem, Trace, counted
from baton.model.option_spelling import option
from baton.model.redact import Redaction
from baton.readers import iter_traces
from baton.runner.costs import fill_costs
from baton.store import StoredEvaluation, read_evaluation, recordings_of

from .score_events import Originals, Written, events_of
from .sink import Items, Limits, Sink, headers_of, open_endpoint
from .spans import spans_of
from .wire_json import encode_json

Only = Literal["spans", "results"]
Say = Callable[[str], None]
Price = Callable[[Trace], Trace]


def _as_recorded(trace: Trace) -> Trace:
    return trace


class Exported(msgspec.Struct):
    """The amounts written; ``unread`` are recordings, or parts of them, that could not be read."""

    traces: int = 0
    spans: int = 0
    results: int = 0
    unread: list[InputError] = msgspec.field(default_factory=list)


def export(
    given: Sequence[Trace],
    paths: Sequence[Path],
    sink: Sink,
    *,
    only: Only | None = None,
    agents: Path | None = None,
    traces: Sequence[Path] = (),
    priced: Price = _as_recorded,
    on_note: Say,
    redact: Redaction | None = None,
) -> Exported:
    """Write the spans of traces and recordings, and the results of evaluation folders.

    Files are written as they are read.
    ``redact`` says what to replace in them: secrets by default, or what a folder says. ``traces``
    are the recordings that evaluations were made from, if the stored paths are not used. ``priced``
    fills in costs.

    Raises:
        InputError: a path is not a recording, or the sink does not accept the data.
        NotDelivered: an endpoint did not accept it.
    """
    done = Exported()
    _spans(given, sink, done, priced)
    folders = [path for path in paths if is_evaluation(path)]
    recordings = [path for path in paths if path not in folders]
    if recordings and only == "results":
        raise InputError(f"{recordings[0]} is not an evaluation folder: it has no results")
    if recordings:
        read = iter_traces(recordings, agents=agents, on_problem=done.unread.append, redact=redact)
        _spans(read, sink, done, priced)
    for folder in folders:
        evaluation = read_evaluation(folder, redact, traces=traces, agents=agents)
        export_evaluation(
            evaluation, sink, done, only=only, agents=agents, priced=priced, on_note=on_note
        )
    return done


def export_evaluation(
    evaluation: StoredEvaluation,
    sink: Sink,
    done: Exported,
    *,
    only: Only | None = None,
    agents: Path | None = None,
    priced: Price = _as_recorded,
    on_note: Say = lambda _: None,
) -> None:
    """Write an evaluation, with costs by its own prices; raises like :func:`export`.

    ``priced`` goes before them.
    """
    recordings = recordings_of(evaluation)
    if recordings.refused is not None:
        problem = Problem(file=place_of(evaluation.folder), message=recordings.refused)
        done.unread.append(InputError(problem))
    read = recordings.paths if recordings.are_elsewhere else []
    originals = Originals(read, recordings.exclude)
    if only != "results":
        traces = _traces(evaluation, agents, done)
        if only is None:
            traces = _without(traces, originals, evaluation.folder, on_note)
        own = evaluation.header.prices
        if own is not None:
            # Recordings that were scored are read again, without the costs that the scores saw.
            traces = (fill_costs(trace, own) for trace in traces)
        _spans(traces, sink, done, priced)
    if only != "spans":
        now = time.time()
        missing: dict[str, int] = {}
        for result, (trace, why) in evaluation.with_traces():
            places = None if trace is None else originals.of(trace) or Written(trace)
            if why is not None and result.recorded is not None:
                missing[why] = missing.get(why, 0) + 1
            events = list(events_of(evaluation, result, places, now))
            if events:
                sink.add(events)
                done.results += len(events)
        for why, count in missing.items():
            of = counted(count, "case")
            on_note(f"{place_of(evaluation.folder)}: results of {of} belong to no span: {why}")


def _without(
    traces: Iterator[Trace], originals: Originals, folder: Path, on_note: Say
) -> Iterator[Trace]:
    """Leave out traces that were read from spans: results belong to those spans."""
    skipped = 0
    for trace in traces:
        if originals.of(trace) is None:
            yield trace
        else:
            skipped += 1
    if skipped:
        how = f"{option('only', 'spans')} writes them again"
        on_note(
            f"{place_of(folder)}: {skipped} read from spans, to which the results belong; {how}"
        )


def _traces(evaluation: StoredEvaluation, agents: Path | None, done: Exported) -> Iterator[Trace]:
    """Yield the traces that an evaluation stores, or the recordings that it scored."""
    recordings = recordings_of(evaluation)
    if recordings.refused is None:
        yield from iter_traces(
            recordings.paths or evaluation.folder,
            agents=agents or recordings.agents,
            exclude=recordings.exclude,
            on_problem=done.unread.append,
            redact=evaluation.header.redaction,
        )


def _spans(traces: Iterable[Trace], sink: Sink, done: Exported, priced: Price) -> None:
    for trace in traces:
        spans = spans_of(trace, priced(trace))
        sink.add(spans)
        done.traces += 1
        done.spans += len(spans)


def write_json_lines(evaluation: StoredEvaluation, out: IO[str]) -> None:
    """Write JSON lines: events of results, and spans of traces that were not read from spans."""
    export_evaluation(evaluation, _Text(out), Exported())


def endpoint_of(address: str, headers_from: str | None) -> Sink:
    """Open the endpoint that a config names; nothing is sent yet.

    Raises:
        InputError: the address is not valid, or the variable with the headers is not set.
    """
    headers = headers_of(headers_from) if headers_from is not None else {}
    return open_endpoint(address, encoding=None, headers=headers, limits=Limits())


def send_otlp(evaluation: StoredEvaluation, address: str, headers_from: str | None) -> None:
    """Send what :func:`write_json_lines` would write.

    Raises:
        InputError: the endpoint needs other headers, or does not accept this data.
        NotDelivered: it could not be sent.
    """
    sink = endpoint_of(address, headers_from)
    try:
        export_evaluation(evaluation, sink, Exported())
    finally:
        sink.close()


class _Text:
    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def add(self, items: Items) -> None:
        self._out.write(encode_json(items).decode() + "\n")

    def finish(self) -> None:
        pass

    def close(self) -> None:
        pass
