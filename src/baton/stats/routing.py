"""Routing over a dataset, computed from scores: precision and recall for each agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from baton.model import Routed, RoutingCell, Score, chain_turns


class AgentRouting(msgspec.Struct, frozen=True, kw_only=True):
    """Routing to one agent: how often it was expected, how often it got work, how often both.

    ``precision`` is ``right / actual`` and ``recall`` is ``right / expected``, 0 to 1; ``None`` if
    that divides by 0.
    """

    agent: str
    expected: int
    actual: int
    right: int
    precision: float | None
    recall: float | None


def routed(scores: Sequence[Score]) -> list[Routed]:
    """Return the expected and the actual agent of each dispatch that has a score.

    They come from the scores of ``dispatch_routing``, if it was used. Otherwise they come from
    those of ``agent_chain``, for turns that state agents: the expected agent is the one after the
    agent that opens the turn. If it ran, it is also the actual agent; else the actual agent is the
    first other one that ran and is not expected. Turns are left out if their chain does not show
    which agent opened the turn. Only verdicts count, and if there are several evaluators of a
    type, only those of the first.
    """
    own = _first_of(scores, "dispatch_routing")
    if own is not None:
        pairs: list[Routed] = []
        for score in own:
            if score.value is not None:
                pair = score.details.get("expected_agent"), score.details.get("actual_agent")
                if pair != (None, None):
                    pairs.append(pair)
        return pairs
    return list(_of_chains(_first_of(scores, "agent_chain") or []))


def agents_of(cells: Iterable[RoutingCell]) -> list[AgentRouting]:
    """Return precision and recall of every agent of a matrix, by name."""
    expected: dict[str, int] = {}
    actual: dict[str, int] = {}
    right: dict[str, int] = {}
    for cell in cells:
        if cell.expected is not None:
            expected[cell.expected] = expected.get(cell.expected, 0) + cell.count
        if cell.actual is not None:
            actual[cell.actual] = actual.get(cell.actual, 0) + cell.count
        if cell.expected is not None and cell.expected == cell.actual:
            right[cell.expected] = cell.count
    return [
        _agent(name, expected.get(name, 0), actual.get(name, 0), right.get(name, 0))
        for name in sorted({*expected, *actual})
    ]


def mistakes(cells: Iterable[RoutingCell]) -> list[RoutingCell]:
    """Return the routing mistakes, the most frequent first."""
    wrong = [cell for cell in cells if cell.expected != cell.actual]
    return sorted(wrong, key=lambda cell: -cell.count)


def plain_matrix(cells: Sequence[RoutingCell]) -> dict[str, Any] | None:
    """Return matrix and agents as plain data; ``None`` if nothing was counted."""
    if not cells:
        return None
    return {
        "matrix": msgspec.to_builtins(cells),
        "agents": msgspec.to_builtins(agents_of(cells)),
    }


def _agent(name: str, expected: int, actual: int, right: int) -> AgentRouting:
    return AgentRouting(
        agent=name,
        expected=expected,
        actual=actual,
        right=right,
        precision=right / actual if actual else None,
        recall=right / expected if expected else None,
    )


def _first_of(scores: Sequence[Score], type_: str) -> list[Score] | None:
    """Return the scores of the first evaluator of a type; further ones ask the same again."""
    matching = [score for score in scores if score.type == type_]
    return [score for score in matching if score.evaluator == matching[0].evaluator] or None


def _of_chains(scores: Iterable[Score]) -> Iterator[Routed]:
    for score in scores:
        for turn in chain_turns(score) if score.value is not None else ():
            expected, actual = turn.expected_agents, turn.actual_agents
            opener = actual[0] if actual else None
            if opener in expected:
                after = [name for name in expected[expected.index(opener) :] if name != opener]
            else:
                after = list(expected) if opener is not None and len(expected) == 1 else []
            if not after:
                continue
            if after[0] in actual:
                yield after[0], after[0]
            else:
                others = (n for n in actual if n != opener and n not in expected)
                yield after[0], next(others, None)
