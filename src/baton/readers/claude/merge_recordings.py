"""Combines recordings of one session: a transcript, its stream, and its spans."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from baton.model import AgentRun, Dispatch, Trace, Turn, Usage
from baton.model.views import sum_usage

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
