"""``tool_trajectory_avg_score``: Google ADK's metric of that name, to the letter."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from baton.model import Case, EvalContext, ExpectedToolCall, Score, Trace, Unit

from .argument_values import identity
from .base import OptionedEvaluator, Pair, Unscored, stated_turns
from .tool_calls import calls_in_scope, unknown_of
from .tool_matching import Made, longest_common
from .tool_matching import Pair as Places
from .tool_report import TurnCalls, evidence, turn_calls, turn_row, wrong

MatchType = Literal["EXACT", "IN_ORDER", "ANY_ORDER"]
_NUMBERED: tuple[MatchType, ...] = ("EXACT", "IN_ORDER", "ANY_ORDER")
_CAMEL = {"matchType": "match_type", "ignoreArgs": "ignore_args"}


class ToolTrajectoryOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options, as ADK names and spells them; above a threshold of 1 nothing passes."""

    threshold: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    match_type: MatchType = "EXACT"
    ignore_args: bool = False


class PythonEquality:
    """Calls are the same when name and arguments are, as Python compares them."""

    __slots__ = ("ignore_args",)

    def __init__(self, ignore_args: bool) -> None:
        """Say whether only names count."""
        self.ignore_args = ignore_args

    def name(self, expected: str, actual: str) -> bool:
        """Tell whether the names are equal."""
        return expected == actual

    def differing(self, wanted: ExpectedToolCall, made: Made) -> Iterator[str]:
        """Yield the arguments that differ; no arguments differ from empty ones."""
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
        """Return no rule: all arguments are compared alike."""

    def key(self, call: ExpectedToolCall | Made) -> Hashable:
        """Return what is equal for the same calls."""
        if self.ignore_args:
            return call.name
        return call.name, identity(call.arguments, flags_apart=False)


class ToolTrajectory(OptionedEvaluator[ToolTrajectoryOptions]):
    """Compares the calls of every turn with the expected ones; a turn scores 0 or 1."""

    type = "tool_trajectory_avg_score"
    version = "1"
    unit: ClassVar[Unit] = "trace"
    options_type = ToolTrajectoryOptions
    checks = frozenset({"tools"})

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Give one score for the trace: the mean over all turns.

        A turn that states no calls expects none. ``error`` when more or fewer turns were played
        than planned, or a turn broke; ``skipped`` without a case, for a scenario, without turns,
        and when the source did not record what is compared.
        """
        pairs = stated_turns(trace, case, lambda _: True, "anything")
        if isinstance(pairs, Unscored):
            return [self.unscored(pairs.status, pairs.reason)]
        if len(trace.turns) != len(pairs):
            played = f"{len(trace.turns)} turns were played, and {len(pairs)} are planned"
            return [self.unscored("error", played)]
        turns: list[TurnCalls] = []
        shares: list[float] = []
        for pair in pairs:
            found = self._compare(trace, pair, context)
            if isinstance(found, str):
                return [self.unscored("skipped", f"turn {pair.number}: {found}")]
            turns.append(found[0])
            shares.append(found[1])
        return [self._score(turns, shares)]

    def _compare(
        self, trace: Trace, pair: Pair, context: EvalContext
    ) -> tuple[TurnCalls, float] | str:
        """Compare one turn: its calls, and the share of the expected ones found in order."""
        scope = calls_in_scope(trace, pair.turn, renames=context.agent_names)
        wanted = [_unsigned(call) for call in pair.expected.tool_calls or []]
        unknown = unknown_of(scope, wanted, frozenset() if self.options.ignore_args else None)
        if unknown is not None:
            return unknown
        same = PythonEquality(self.options.ignore_args)
        one, other = [same.key(call) for call in wanted], [same.key(call) for call in scope.calls]
        ordered = _in_order(one, other)
        free = self.options.match_type == "ANY_ORDER"
        pairs = _any_order(one, other) if free else ordered
        exact = self.options.match_type == "EXACT"
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
        return turn, len(ordered) / len(one) if one else 1.0

    def _score(self, turns: Sequence[TurnCalls], shares: Sequence[float]) -> Score:
        value = sum(turn.score for turn in turns) / len(turns)
        steps = sum(shares) / len(shares)
        bad = [turn for turn in turns if not turn.score]
        matched = f"{len(turns) - len(bad)} of {len(turns)} turns match {self.options.match_type}"
        reason = f"{matched} (step average {steps:.2f})"
        rows = [
            {**turn_row(turn), "step_share": share}
            for turn, share in zip(turns, shares, strict=True)
        ]
        return self.scored(
            value,
            f"{reason}; {wrong(bad[0])}{_advice(bad[0])}" if bad else reason,
            {**self.option_details(), "step_average": steps, "turns": rows},
            [evidence(turn) for turn in bad],
        )

    def _checked(self, options: dict[str, Any]) -> ToolTrajectoryOptions:
        return super()._checked(_as_adk_reads(options))


def _advice(turn: TurnCalls) -> str:
    """Say what to write where a call without arguments is, for ADK, not the stated one."""
    if any(
        turn.wanted[a].arguments is None and turn.made[b].arguments == {} for a, b in turn.nearest
    ):
        return '; for a call without arguments write `"args": {}`, or set `ignore_args`'
    return ""


def _as_adk_reads(options: Mapping[str, Any]) -> dict[str, Any]:
    """Take the spellings that ADK takes: camelCase, any case, ``in-order``, and 0, 1 and 2."""
    found = {_CAMEL.get(name, name): value for name, value in options.items()}
    way = found.get("match_type")
    if isinstance(way, str):
        found["match_type"] = way.strip().upper().replace("-", "_").replace(" ", "_")
    elif isinstance(way, int | float) and way in (0, 1, 2):
        found["match_type"] = _NUMBERED[int(way)]
    return found


def _unsigned(call: ExpectedToolCall) -> ExpectedToolCall:
    """Leave out the agent, which ADK does not look at."""
    return ExpectedToolCall(name=call.name, arguments=call.arguments)


def _in_order(wanted: Sequence[Hashable], made: Sequence[Hashable]) -> list[Places]:
    bits: dict[Hashable, int] = {}
    for place, key in enumerate(wanted):
        bits[key] = bits.get(key, 0) | 1 << place
    return longest_common(len(wanted), [bits.get(key, 0) for key in made])


def _any_order(wanted: Sequence[Hashable], made: Sequence[Hashable]) -> list[Places]:
    places: dict[Hashable, list[int]] = {}
    for place, key in reversed(list(enumerate(made))):
        places.setdefault(key, []).append(place)
    return [(one, places[key].pop()) for one, key in enumerate(wanted) if places.get(key)]
