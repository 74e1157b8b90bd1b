"""Several recordings of one session as one trace."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from baton.model import AgentRun, Dispatch, Trace, Turn, Usage
from baton.model.views import sum_usage

_COUNTS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


def merge(transcript: Trace, otlp: Trace) -> Trace:
    """Add to a transcript what spans tell better: the cost of each run, and missing tokens.

    Content and structure are the transcript's. Runs are the same where a dispatch was made by
    the same tool call; those of the main thread where the turns are as many, or one.
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
    """Add to a transcript what only the messages of a stream tell: totals, and why a turn failed.

    Content and structure are the transcript's.
    """
    transcript.usage = _better(transcript.usage, stream.usage)
    if len(transcript.turns) == len(stream.turns):
        for turn, twin in zip(transcript.turns, stream.turns, strict=True):
            _take_outcome(turn, twin)
    for name, told in stream.attributes.items():
        transcript.attributes.setdefault(name, told)
    _note(transcript, stream)
    return transcript


def _take_outcome(turn: Turn, twin: Turn) -> None:
    if twin.status == "failed" and turn.status != "failed":
        turn.status, turn.error, turn.output = "failed", twin.error, None
        if turn.runs and twin.runs:
            turn.runs[0].status, turn.runs[0].error = "failed", twin.runs[0].error
    elif twin.output is not None and twin.output.data is not None:
        turn.output = twin.output


def _pairs(transcript: Trace, other: Trace) -> list[tuple[AgentRun, list[AgentRun]]]:
    """Match the runs of two recordings: what a call set to work, and the main thread."""
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
    """Return the usage with the other's cost, and its tokens where they are more complete."""
    if other is None:
        return usage
    told = any(getattr(other, name) for name in _COUNTS)
    if usage is None or (told and other.complete and not usage.complete):
        found = msgspec.structs.replace(other)
        if usage is not None:
            found.failed_requests = found.failed_requests or usage.failed_requests
            found.requests = found.requests or usage.requests
    else:
        found = msgspec.structs.replace(usage)
    cost = other if other.cost_usd is not None else usage
    if cost is not None:
        found.cost_usd, found.cost_from = cost.cost_usd, cost.cost_from
    return found if told or found.cost_usd is not None or usage is not None else None


def _note(trace: Trace, other: Trace) -> None:
    trace.attributes.setdefault("merged_with", []).append(other.source.format)
