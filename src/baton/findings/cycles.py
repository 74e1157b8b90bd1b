"""Control that goes round the same agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from baton.model import Dispatch, Trace, Turn, known

from .alike import deeds_of, telling_words

_LONGEST = 16
"""Ways round that are longer are not looked for, so that long turns stay cheap."""


def cycles(turn: Turn, rounds: int) -> Iterator[list[Dispatch]]:
    """Yield the hand-offs of a turn that go round the same agents at least ``rounds`` times.

    Each is made by a run that the one before it started, so that going to a helper and getting
    its result back is none. The shortest way round counts, and each hand-off but once.
    """
    moves = [d for d in turn.dispatches if d.kind in ("transfer", "delegate") and d.runs]
    start = 0
    while start < len(moves):
        found = 0
        for period in range(2, min((len(moves) - start) // rounds, _LONGEST) + 1):
            length = _length(moves, start, period)
            if length >= period * rounds:
                yield moves[start : start + length]
                found = length
                break
        start += found or 1


def period_of(cycle: Sequence[Dispatch]) -> int:
    """Return how many hand-offs it takes to go round once."""
    return len({_edge(d) for d in cycle})


def idle(trace: Trace, turn: Turn, cycle: Sequence[Dispatch]) -> bool | None:
    """Tell whether nobody did or said anything new after the first round; ``None`` if untold.

    What the last hand-off started is left out: it may be what gets out of the cycle.
    """
    runs = {run.id: run for run in turn.runs}
    period = period_of(cycle)
    seen: set[tuple[str, ...]] = set()
    told = True
    for place, dispatch in enumerate(cycle):
        news = {("asked", dispatch.to_agent, *telling_words(dispatch.prompt))}
        told = told and known(trace, dispatch, "prompt")
        if place < len(cycle) - 1:
            deeds = deeds_of(trace, [runs[id_] for id_ in dispatch.runs if id_ in runs])
            told = told and deeds.told
            news |= deeds.pieces
        if place >= period and not news <= seen:
            return False
        seen |= news
    return True if told else None


def _length(moves: Sequence[Dispatch], start: int, period: int) -> int:
    """Return how many hand-offs from ``start`` on follow one another and repeat each period."""
    ways = [_edge(d) for d in moves[start : start + period]]
    if len(set(ways)) < period or ways[0][0] != ways[-1][1]:
        return 0
    end = start + 1
    while (
        end < len(moves)
        and moves[end].from_run in moves[end - 1].runs
        and _edge(moves[end]) == ways[(end - start) % period]
    ):
        end += 1
    return end - start


def _edge(dispatch: Dispatch) -> tuple[str | None, str]:
    return dispatch.from_agent, dispatch.to_agent
