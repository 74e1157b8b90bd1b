"""``tool_trajectory_avg_score``: an exact copy of Google ADK's metric of that name."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from baton.evaluators.matching.argument_values import identity
from baton.evaluators.matching.assignment import longest_common
from baton.evaluators.matching.call_report import (
    CallDetails,
    TurnCalls,
    evidence,
    turn_calls,
    turn_details,
    wrong,
)
from baton.evaluators.matching.call_rules import Made
from baton.model import Case, EvalContext, ExpectedToolCall, ExpectedTurn, Score, Trace, counted

from .base_evaluator import Pair, TurnEvaluator, Unknown, Unscored, describe
from .tool_calls import calls_in_scope, unknown_of

MatchType = Literal["EXACT", "IN_ORDER", "ANY_ORDER"]
_NUMBERED: tuple[MatchType, ...] = ("EXACT", "IN_ORDER", "ANY_ORDER")
_CAMEL = {"matchType": "match_type", "ignoreArgs": "ignore_args"}


class PythonEquality:
    """Calls are the same if their names and arguments are equal in Python."""

    __slots__ = ("ignore_args",)

    def __init__(self, ignore_args: bool) -> None:
        """Set whether only names count."""
        self.ignore_args = ignore_args

    def name(self, expected: str, actual: str) -> bool:
        """Return whether the names are equal."""
        return expected == actual

    def differing(self, wanted: ExpectedToolCall, made: Made) -> Iterator[str]:
        """Yield the arguments that differ. No arguments differ from empty arguments."""
        if self.ignore_args or wanted.arguments == made.arguments:
            return
        expected, actual = wanted.arguments or {}, made.mapping
        differ = [
            key
            for key in {**expected, **actual}
            if key not in expected or key not in actual or expected[key] != actual[key]
        ]
        yield from differ or [""]

    def rule(self, tool: str, argument: str) -> None:
        """Return no rule: all arguments are compared in the same way."""

    def key(self, call: ExpectedToolCall | Made) -> Hashable:
        """Return a key that is equal for the same calls."""
        if self.ignore_args:
            return call.name
        return call.name, identity(call.arguments, flags_apart=False)


class Trajectory(NamedTuple):
    """A compared turn, and the share of the expected calls that were made in order."""

    calls: TurnCalls
    share: float


class ToolTrajectoryAvgScore(TurnEvaluator[Trajectory], frozen=True, kw_only=True):
    """Compares the calls of every turn with the expected ones. A turn scores 0 or 1.

    A turn that states no calls expects none. It is an error if more or fewer turns were played
    than planned.
    """

    type = "tool_trajectory_avg_score"
    summary = "tool calls, compared as Google ADK does"
    checks = frozenset({"tools"})
    states = ()
    stated_as = "anything"
    details = CallDetails

    threshold: Annotated[
        float,
        msgspec.Meta(ge=0),
        describe("The minimum mean over turns to pass; above 1 nothing passes."),
    ] = 1.0
    match_type: Annotated[
        MatchType,
        describe("Whether the calls have to be the same, or only contain the expected ones."),
    ] = "EXACT"
    ignore_args: Annotated[bool, describe("Whether only the names of tools are compared.")] = False

    @classmethod
    def respelled(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Accept the spellings of ADK: camelCase, any case, ``in-order``, and 0, 1 and 2."""
        values = {_CAMEL.get(name, name): value for name, value in options.items()}
        way = values.get("match_type")
        if isinstance(way, str):
            values["match_type"] = way.strip().upper().replace("-", "_").replace(" ", "_")
        elif isinstance(way, int | float) and way in (0, 1, 2):
            values["match_type"] = _NUMBERED[int(way)]
        return values

    def stating(self, turn: ExpectedTurn) -> bool:  # noqa: ARG002
        """Select every turn. A turn that states no calls expects none."""
        return True

    def turns(self, trace: Trace, case: Case | None) -> list[Pair] | Unscored:
        """Return all turns. It is an error if more than planned were played."""
        pairs = super().turns(trace, case)
        if isinstance(pairs, Unscored) or len(trace.turns) == len(pairs):
            return pairs
        were = "was" if len(trace.turns) == 1 else "were"
        played = f"{counted(len(trace.turns), 'turn')} {were} played, and {len(pairs)} are planned"
        return Unscored("error", played)

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> Trajectory | Unknown:
        """Compare one turn: its calls, and the share of the expected ones found in order."""
        scope = calls_in_scope(trace, pair.turn, renames=context.agent_names)
        # ADK ignores the agent.
        wanted = [
            ExpectedToolCall(name=call.name, arguments=call.arguments)
            for call in pair.expected.tool_calls or []
        ]
        unknown = unknown_of(scope, wanted, frozenset() if self.ignore_args else None)
        if unknown is not None:
            return Unknown(unknown)
        same = PythonEquality(self.ignore_args)
        one, other = [same.key(call) for call in wanted], [same.key(call) for call in scope.calls]
        bits: dict[Hashable, int] = {}
        for place, key in enumerate(one):
            bits[key] = bits.get(key, 0) | 1 << place
        ordered = longest_common(len(one), [bits.get(key, 0) for key in other])
        free = self.match_type == "ANY_ORDER"
        pairs = ordered
        if free:
            places: dict[Hashable, list[int]] = {}
            for place, key in reversed(list(enumerate(other))):
                places.setdefault(key, []).append(place)
            pairs = [(n, places[key].pop()) for n, key in enumerate(one) if places.get(key)]
        exact = self.match_type == "EXACT"
        matched = one == other if exact else len(pairs) == len(one)
        turn = turn_calls(
            pair.number,
            float(matched),
            wanted,
            scope.calls,
            pairs,
            one_call=same,
            extra_counts=exact,
            place=[run.id for run in scope.runs] or [pair.turn.id],
        )
        return Trajectory(turn, len(ordered) / len(one) if one else 1.0)

    def verdict(self, turns: Sequence[Trajectory]) -> list[Score]:
        """Give one score: the mean over all turns."""
        value = sum(turn.calls.score for turn in turns) / len(turns)
        steps = sum(turn.share for turn in turns) / len(turns)
        bad = [turn.calls for turn in turns if not turn.calls.score]
        matched = f"{len(turns) - len(bad)} of {counted(len(turns), 'turn')} match"
        reason = f"{matched} {self.match_type} (step average {steps:.2f})"
        rows = [turn_details(turn.calls, turn.share) for turn in turns]
        score = self.scored(
            value,
            f"{reason}; {wrong(bad[0])}{_advice(bad[0])}" if bad else reason,
            CallDetails(step_average=steps, turns=rows),
            [evidence(turn) for turn in bad],
        )
        return [score]


def _advice(turn: TurnCalls) -> str:
    """Suggest what to write if ADK would not match a call without arguments to the stated one."""
    if any(
        turn.wanted[a].arguments is None and turn.made[b].arguments == {} for a, b in turn.nearest
    ):
        return '; for a call without arguments write `"args": {}`, or set `ignore_args`'
    return ""
