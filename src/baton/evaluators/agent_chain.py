"""`agent_chain`: which agents ran in each turn, and in which order."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec

from baton.model import (
    AnyOrder,
    Case,
    ChainDifference,
    ChainTurn,
    EvalContext,
    Evidence,
    Score,
    Trace,
    Turn,
    known,
    nearest,
)
from baton.model.score import passes
from baton.model.views import agent_chain, broken, in_short, possible_agents
from baton.plugins import Alias

from .base_evaluator import (
    NO_DEFINITION,
    Details,
    Pair,
    TurnEvaluator,
    Unknown,
    Unscored,
    describe,
    misspelt_fix,
    wrong_target_fix,
)
from .matching import assignment

Mode = Literal["exact", "subset", "contains", "flexible"]


def chain_score(expected: Sequence[str], actual: Sequence[str], mode: Mode) -> float:
    """Score one turn, 0 to 1.

    ``exact``: 1 if the chains are equal, else 0. ``subset``: longest common subsequence divided by
    the expected length. ``contains`` and ``flexible``: share of the expected names that are
    present, as sets. Any chain meets an empty expectation, except in ``exact``, where only an
    empty chain does.
    """
    if mode == "exact":
        return float(list(expected) == list(actual))
    if not expected:
        return 1.0
    if mode == "subset":
        return longest_common(expected, actual) / len(expected)
    return len(set(expected) & set(actual)) / len(set(expected))


def in_best_order(expected: Sequence[str | AnyOrder], actual: Sequence[str]) -> list[str]:
    """Return an expected chain with any-order names in the order that best fits the actual chain.

    No other order gives a longer common subsequence of the two. Takes O(len(expected) *
    len(actual) ** 2) if there are any-order names.
    """
    names = [one for one in expected if isinstance(one, str)]
    if len(names) == len(expected):  # the usual case
        return names
    groups = [[one] if isinstance(one, str) else one.any_order for one in expected]
    best = [0] * (len(actual) + 1)
    begins: list[list[int]] = []
    for group in groups:
        row, begin = list(best), list(range(len(actual) + 1))
        for start in range(len(actual)):
            left, common = Counter(group), 0
            for end in range(start + 1, len(actual) + 1):
                if left[actual[end - 1]]:
                    left[actual[end - 1]] -= 1
                    common += 1
                if best[start] + common > row[end]:
                    row[end], begin[end] = best[start] + common, start
        best = row
        begins.append(begin)
    chain: list[str] = []
    end = len(actual)
    for group, begin in zip(reversed(groups), reversed(begins), strict=True):
        start = begin[end]
        left = Counter(group)
        ran = []
        for name in actual[start:end]:
            if left[name]:
                left[name] -= 1
                ran.append(name)
        chain = [*ran, *left.elements(), *chain]
        end = start
    return chain


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two lists of names."""
    bits: dict[str, int] = {}
    for place, name in enumerate(first):
        bits[name] = bits.get(name, 0) | 1 << place
    return len(assignment.longest_common(len(first), [bits.get(name, 0) for name in second]))


def missing(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    """Return the expected names that are missing from the actual chain, in first-seen order."""
    return [name for name in dict.fromkeys(expected) if name not in actual]


class TurnMatch(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one turn that states agents; ``index`` counts from 0.

    ``expected`` has any-order names in the order that fits best. ``stated`` is as written.
    """

    index: int
    stated: Sequence[str | AnyOrder]
    expected: list[str]
    actual: list[str]
    score: float
    run_ids: list[str]
    sent_by: dict[str, str]
    missing: list[str]
    """Expected agents that did not run."""
    extra: list[str]
    """Agents that ran but were not expected."""
    trouble: str | None
    broken: bool

    def in_details(self) -> ChainTurn:
        """Return the turn in the form that score details use."""
        return ChainTurn(
            invocation=self.index,
            expected_agents=self.expected,
            actual_agents=self.actual,
            score=self.score,
            match_details=ChainDifference(
                all_expected_present=not self.missing,
                missing_agents=self.missing,
                extra_agents=self.extra,
            ),
            trouble=self.trouble,
        )


class AgentChainDetails(Details, kw_only=True):
    """Details of all turns that state agents. Field names follow judge-llm's reports."""

    average_score: float
    all_expected_present: bool
    all_expected_agents: list[str]
    all_actual_agents: list[str]
    agents_missing: list[str]
    agents_extra: list[str]
    failed_turns: list[int]
    """Turns below the threshold, counted from 0."""
    invocation_results: list[ChainTurn]
    fix: str | msgspec.UnsetType = msgspec.UNSET
    """What would make the first wrong turn pass, if that is clear."""
    unplanned_turns: int | msgspec.UnsetType = msgspec.UNSET
    """Turns that were played in addition to those the case plans."""


class AgentChain(TurnEvaluator[TurnMatch], frozen=True, kw_only=True):
    """Compares the agent chain of every turn that states one."""

    type = "agent_chain"
    summary = "which agents ran in a turn, and in which order"
    aliases = (
        Alias("subagent_evaluator", "SubAgentEvaluator"),
        Alias(
            "parallel_chain",
            "ParallelChain",
            presets={"sequence_match_type": "exact", "min_match_ratio": 1.0},
        ),
    )
    checks = frozenset({"agents"})
    details = AgentChainDetails
    states = ("agents",)
    stated_as = "agents"
    # Agents missing because a turn broke are an error. The actual agents are shown.
    compares_broken = True

    sequence_match_type: Annotated[
        Mode,
        describe(
            "`exact`: the same agents in the same order. `subset`: how much of the expected order "
            "there is. `contains`, `flexible`: which of the expected agents ran at all."
        ),
    ] = "contains"
    allow_extra_agents: Annotated[
        bool, describe("Whether unexpected agents may run; if not, the turn scores 0.")
    ] = True
    min_match_ratio: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("The minimum mean over turns to pass."),
    ] = 0.8

    @property
    def threshold(self) -> float:
        """The lowest mean that passes."""
        return self.min_match_ratio

    def turns(self, trace: Trace, case: Case | None) -> list[Pair] | Unscored:
        """Return the turns that state agents. The agents of all their runs must be known."""
        pairs = super().turns(trace, case)
        if isinstance(pairs, Unscored):
            return pairs
        nameless = [str(pair.number) for pair in pairs if not _names_agents(trace, pair.turn)]
        if not nameless:
            return pairs
        if trace.attributes.get("agent_chain"):
            reason = (
                "the recording names its agents for the whole conversation and not by turn; "
                "record `agent_chains` with an `invocation_id` each"
            )
        else:
            reason = (
                "the trace names no agent; record spans or events with their authors, or play a "
                "Python function with `instrument: true`"
            )
        return Unscored("skipped", f"turn {', '.join(nameless)}: {reason}")

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Return one score for the trace: the mean over the turns that state agents.

        The score is ``error`` if a planned turn was not played, or if agents are missing from a
        turn that broke. It is ``skipped`` if nothing is expected, or if the trace does not name
        the agents of a turn that expects some.
        """
        scores = super().evaluate(trace, case, context)
        unplanned = len(trace.turns) - len(case.turns) if case is not None else 0
        for score in scores:
            if unplanned > 0 and score.value is not None:
                score.reason += f"; {unplanned} more turns were played than planned"
                score.details["unplanned_turns"] = unplanned
        return scores

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> TurnMatch | Unknown:
        """Compare the agents of one turn."""
        turn, stated = pair.turn, pair.expected.agents or []
        expected = wanted = in_best_order(stated, [])
        actual = agent_chain(trace, turn, renames=context.agent_names, wanted=wanted)
        lacking: list[str] = []
        extra: list[str] = []
        if expected == actual:  # the usual case
            score = 1.0
        else:
            expected = in_best_order(stated, actual)
            score = chain_score(expected, actual, self.sequence_match_type)
            lacking, extra = missing(expected, actual), missing(actual, expected)
            # An agent behind a call may have asked others.
            perhaps = possible_agents(trace, turn) if lacking else set()
            if perhaps:
                return Unknown(NO_DEFINITION.format(min(perhaps)))
            score = chain_score(expected, actual, self.sequence_match_type)
            lacking, extra = missing(expected, actual), missing(actual, expected)
            renames = context.agent_names
            called = {renames.get(name, name) for name in possible_agents(trace, turn)}
            if not called.isdisjoint(lacking):
                name = next(name for name in lacking if name in called)
                return Unknown(NO_DEFINITION.format(name))
        if extra and not self.allow_extra_agents:
            score = 0.0
        # The reason why the turn broke may explain the missing agents.
        if turn.status == "completed":
            trouble = None
        else:
            trouble = "failed" if turn.status == "failed" else f"is {turn.status}"
            trouble += f": {in_short(turn.error)}" if turn.error else ""
        return TurnMatch(
            index=pair.number - 1,
            stated=stated,
            expected=expected,
            actual=actual,
            score=score,
            run_ids=[run.id for run in turn.runs],
            sent_by={d.to_agent: d.from_agent for d in turn.dispatches if d.from_agent},
            missing=lacking,
            extra=extra,
            trouble=trouble,
            broken=broken(turn) is not None,
        )

    def verdict(self, turns: Sequence[TurnMatch]) -> list[Score]:
        """Return one score: the mean over the turns."""
        matches = list(turns)
        average = sum(match.score for match in matches) / len(matches)
        wrong = [match for match in matches if not passes(match.score, 1)]
        if not wrong and len(matches) == 1:
            says = f"{self.sequence_match_type}: {_arrow(matches[0].actual)}"
        elif not wrong:
            says = f"{self.sequence_match_type}: all {len(matches)} turns match"
        else:
            first = wrong[0]
            stated = _arrow(
                [
                    one if isinstance(one, str) else f"{{{', '.join(one.any_order)}}}"
                    for one in first.stated
                ]
            )
            text = f"turn {first.index + 1}: expected {stated}, got {_arrow(first.actual)}"
            text += f"; the turn {first.trouble}" if first.trouble else ""
            more = f"; {len(wrong)} of {len(matches)} turns differ" if len(matches) > 1 else ""
            says = text + more
        failed = not passes(average, self.threshold)
        is_broken = any(match.broken for match in wrong)
        details = AgentChainDetails(
            average_score=average,
            all_expected_present=not any(match.missing for match in matches),
            all_expected_agents=_union([match.expected for match in matches]),
            all_actual_agents=_union([match.actual for match in matches]),
            agents_missing=_union([match.missing for match in matches]),
            agents_extra=_union([match.extra for match in matches]),
            failed_turns=[m.index for m in matches if not passes(m.score, self.threshold)],
            invocation_results=[match.in_details() for match in matches],
            fix=(self._fix(wrong) if failed and not is_broken else None) or msgspec.UNSET,
        )
        if is_broken:
            return [self.unscored("error", says, details)]
        evidence = [Evidence(ids=match.run_ids, quote=_arrow(match.actual)) for match in wrong]
        return [self.scored(average, says, details, evidence)]

    def _fix(self, wrong: Sequence[TurnMatch]) -> str | None:
        """Describe what would make the first wrong turn pass, if that is clear."""
        match = wrong[0]
        opener = match.actual[0] if match.actual else None
        looser = self._looser(match)
        if opener is not None and opener not in match.expected and looser is not None:
            mode = self.sequence_match_type
            whole = [opener, *match.expected]
            # Suggest this only if it fixes the whole difference. Partial advice would not help.
            met = passes(chain_score(whole, match.actual, mode), 1)
            if met and (self.allow_extra_agents or not missing(match.actual, whole)):
                return (
                    f"`{opener}` opened the turn, and it counts: put it first in the expected "
                    f"agents, or set {looser}"
                )
        for name in match.missing:
            alike = nearest(name, match.extra, 1, 0.8)
            if alike:
                return misspelt_fix(name, alike[0])
        for name in match.extra:
            if match.missing and name in match.sent_by:
                return wrong_target_fix(match.sent_by[name], name, match.missing[0])
        if not match.missing and looser is not None and self.sequence_match_type == "exact":
            return f"the agents ran in another order or number: {looser} allows that"
        return None

    def _looser(self, match: TurnMatch) -> str | None:
        """Return the options that would make the turn pass, or ``None`` if there are none."""
        options = []
        if match.extra and not self.allow_extra_agents:
            options.append("`allow_extra_agents: true`")
        if not passes(chain_score(match.expected, match.actual, self.sequence_match_type), 1):
            modes: tuple[Mode, ...] = ("subset", "contains")
            mode = next(
                (m for m in modes if passes(chain_score(match.expected, match.actual, m), 1)), None
            )
            if mode is None:
                return None
            options.append(f"`sequence_match_type: {mode}`")
        return " and ".join(options) or None


def _names_agents(trace: Trace, turn: Turn) -> bool:
    """Return whether the source names the agents that ran. True for a turn without runs."""
    if not known(trace, turn, "runs"):
        return False
    return not turn.runs or any(known(trace, run, "agent") for run in turn.runs)


def _arrow(names: Sequence[str]) -> str:
    return " → ".join(names) if names else "no agent"


def _union(lists: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(itertools.chain.from_iterable(lists)))
