"""``dispatch_routing``: whether work was handed to the agents that a case expects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from baton.evaluators.matching.dispatch_pairing import (
    Met,
    Sent,
    looker,
    names_receiver,
    pair_up,
    sent_in,
)
from baton.evaluators.matching.texts import CaseSensitive, NormalizeWhitespace, Reading
from baton.model import (
    Dispatch,
    EvalContext,
    Evidence,
    ExpectedDispatch,
    HandedOff,
    Score,
    Trace,
    Turn,
    Unit,
    known,
    nearest,
)
from baton.model.views import group_of, possible_agents, run_names

from .base_evaluator import (
    NO_DEFINITION,
    Details,
    Pair,
    TurnEvaluator,
    describe,
    misspelt_fix,
    wrong_target_fix,
)

Kind = Literal["transfer", "delegate", "sequence"]


class RoutingDetails(Details, kw_only=True):
    """Details of an expected dispatch, an unexpected one, or an unknown part of one."""

    turn: int
    expected_agent: str | msgspec.UnsetType | None = msgspec.UNSET
    actual_agent: str | msgspec.UnsetType | None = msgspec.UNSET
    """Cells of the routing matrix: null if no agent was expected, or none got the work."""
    findings: list[dict[str, str]] | msgspec.UnsetType = msgspec.UNSET
    """Faults. Each has ``kind`` and ``says``."""
    expected: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """What the case states about the dispatch."""
    from_: str | msgspec.UnsetType | None = msgspec.field(default=msgspec.UNSET, name="from")
    to: str | msgspec.UnsetType = msgspec.UNSET
    kind: str | msgspec.UnsetType = msgspec.UNSET
    parts: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Stated parts of the dispatch that are unknown in the trace."""
    fix: str | msgspec.UnsetType = msgspec.UNSET


class DispatchRouting(TurnEvaluator[list[Score]], frozen=True, kw_only=True):
    """Compares actual with expected dispatches in each turn that states some.

    Gives one score for each expected dispatch and one for each unexpected dispatch. A dispatch to
    the right agent scores the share of its stated parts that are right, including the agent.
    Unknown parts are left out of that share and get a ``skipped`` score of their own. Anything
    else scores 0. A missing dispatch is also ``skipped`` if the recording can't prove that it was
    not made.
    """

    type = "dispatch_routing"
    summary = "whether work was handed to the agents that a case expects"
    unit: ClassVar[Unit] = "dispatch"
    checks = frozenset({"dispatches"})
    states = ("dispatches",)
    stated_as = "dispatches"
    details = RoutingDetails
    states_options = False

    case_sensitive: CaseSensitive = False
    normalize_whitespace: NormalizeWhitespace = True
    allow_extra: Annotated[bool, describe("Whether unexpected dispatches are allowed.")] = False
    kinds: Annotated[
        tuple[Kind, ...],
        describe("Kinds of dispatches that are a fault if they are unexpected."),
    ] = ("transfer", "delegate")
    order: Annotated[
        bool, describe("Whether to also judge dispatches known only from the order of runs.")
    ] = False
    threshold: Annotated[
        float, msgspec.Meta(ge=0, le=1), describe("The score that a single dispatch needs to pass.")
    ] = 1.0

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> list[Score]:
        """Score the dispatches of one turn."""
        return list(self._turn(trace, pair, context))

    def verdict(self, turns: Sequence[list[Score]]) -> list[Score]:
        """Return the scores of all turns."""
        return [score for scores in turns for score in scores]

    def _turn(self, trace: Trace, pair: Pair, context: EvalContext) -> Iterator[Score]:
        turn = pair.turn
        expected = pair.expected.dispatches or []
        renames = context.agent_names
        reading = Reading.of(self)
        sent = sent_in(trace, turn, kinds=self.kinds, order=self.order, renames=renames)
        decided: list[Dispatch] = []
        if context.only is not None:
            # In a case about one dispatch, dispatches issued together are one decision.
            decided = [each.dispatch for each in sent if each.dispatch.id in context.only]
            together = {other.id for each in decided for other in group_of(trace, each)}
            sent = [each for each in sent if each.dispatch.id in together]
        if decided:
            not_recorded = None  # other dispatches do not matter here
        elif not known(trace, turn, "dispatches"):
            not_recorded = "not all dispatches are recorded: record the agents' calls and spans"
        elif not all(names_receiver(trace, turn, dispatch) for dispatch in turn.dispatches):
            not_recorded = (
                "a dispatch does not name its receiver: record the arguments of calls too"
            )
        elif turn.status == "incomplete":
            not_recorded = "the turn is incomplete: record it to its end"
        else:
            not_recorded = None
        look = looker(trace, turn, reading)

        def doubt(one: ExpectedDispatch) -> str | None:
            return None if decided else not_recorded or _unsure(trace, turn, one, sent, context)

        pairing = pair_up(expected, sent, look, doubt)
        wanted = [one.to for one in expected]
        for met in pairing.met:
            yield from self._met(pair, met)
        for wrong in pairing.wrong:
            to, actual = wrong.expected.to, wrong.sent.name_among(wanted)
            says = f"expected a dispatch to `{to}`, but it went to `{actual}`"
            sender = wrong.sent.dispatch.from_agent
            fix = None
            if nearest(to, [actual], 1, 0.8):
                fix = misspelt_fix(to, actual)
            elif sender is not None:
                fix = wrong_target_fix(sender, actual, to)
            yield self._about(
                pair,
                0.0,
                says,
                wrong.expected,
                wrong.sent,
                routed=(to, actual),
                faults=[("wrong_target", says)],
                fix=fix,
            )
        for one in pairing.unmet:
            others = [f"`{each.name_among(wanted)}`" for each in sent if each.counted]
            there = f"those made went to {', '.join(others)}" if others else "none was made"
            says = f"no dispatch to `{one.to}`; {there}"
            fault = ("under_delegation", says)
            yield self._about(pair, 0.0, says, one, None, (one.to, None), [fault])
        for one, why in pairing.unsure:
            yield self._unsure(pair, one, why)
        surplus = [] if self.allow_extra else pairing.surplus
        for each in surplus:
            sender, actual = each.dispatch.from_agent, each.name_among(wanted)
            more = "once more than" if actual in wanted else "which is not"
            by = f"`{sender}` handed to `{actual}`" if sender else f"handed to `{actual}`"
            says = f"{by}, {more} expected"
            fault = ("over_delegation", says)
            yield self._about(pair, 0.0, says, None, each, (None, actual), [fault])
        if not expected and not surplus:
            allowed = len(pairing.surplus)
            if not_recorded is not None and not self.allow_extra:
                details = RoutingDetails(turn=pair.number)
                yield self.unscored("skipped", f"turn {pair.number}: {not_recorded}", details)
            else:
                says = (
                    f"none is expected, and {allowed} are allowed"
                    if allowed
                    else "none, as expected"
                )
                yield self._about(pair, 1.0, f"dispatches: {says}", None, None, (None, None), [])

    def _met(self, pair: Pair, met: Met) -> Iterator[Score]:
        known_parts = [(part, part.share) for part in met.parts if part.share is not None]
        faults = [part for part, share in known_parts if share < 1]
        says = "".join(f"; {part.says}" for part in faults)
        score = self._about(
            pair,
            (1 + sum(share for _, share in known_parts)) / (1 + len(known_parts)),
            f"handed to `{met.expected.to}` as expected{says}",
            met.expected,
            met.sent,
            routed=(met.expected.to, met.expected.to),
            faults=[(part.fault, part.says) for part in faults],
        )
        yield score
        unknown = [part for part in met.parts if part.share is None]
        if unknown:
            listed = "; ".join(part.says for part in unknown)
            skipped = self.unscored(
                "skipped",
                f"turn {pair.number}: for the one to `{met.expected.to}`, {listed}",
                RoutingDetails(turn=pair.number, parts=[part.name for part in unknown]),
            )
            skipped.subject = score.subject
            yield skipped

    def _unsure(self, pair: Pair, expected: ExpectedDispatch, why: str) -> Score:
        says = f"turn {pair.number}: no dispatch to `{expected.to}` was recorded; {why}"
        details = RoutingDetails(turn=pair.number, expected=_plain(expected))
        return self.unscored("skipped", says, details)

    def _about(
        self,
        pair: Pair,
        value: float,
        says: str,
        expected: ExpectedDispatch | None,
        sent: Sent | None,
        routed: tuple[str | None, str | None],
        faults: Sequence[tuple[str, str]],
        fix: str | None = None,
    ) -> Score:
        details = RoutingDetails(
            turn=pair.number,
            expected_agent=routed[0],
            actual_agent=routed[1],
            findings=[{"kind": kind, "says": what} for kind, what in faults],
            expected=_plain(expected) if expected is not None else msgspec.UNSET,
            fix=fix or msgspec.UNSET,
        )
        if sent is not None:
            made = sent.dispatch
            details.from_, details.to, details.kind = made.from_agent, made.to_agent, made.kind
        evidence = [_evidence(pair.turn, sent)] if faults else []
        score = self.scored(value, f"turn {pair.number}: {says}", details, evidence)
        score.subject = [sent.dispatch.id] if sent is not None else []
        return score


def _unsure(
    trace: Trace,
    turn: Turn,
    expected: ExpectedDispatch,
    sent: Sequence[Sent],
    context: EvalContext,
) -> str | None:
    """Return why an expected dispatch may still have been made."""
    looked_at = {each.dispatch.id for each in sent}
    renames = context.agent_names
    hidden = [d for d in turn.dispatches if d.id not in looked_at]
    if any(renames.get(d.to_agent, d.to_agent) == expected.to for d in hidden):
        return "one is only known from the order of runs: record the agents' calls and spans"
    for run in turn.runs[1:]:
        names = [renames.get(name, name) for name in run_names(trace, run)]
        if expected.to in names and not run.started_by:
            return f"it is not recorded what started `{expected.to}`: record the agents' calls"
    perhaps = possible_agents(trace, turn)
    if perhaps:
        return NO_DEFINITION.format(min(perhaps))
    return None


def _evidence(turn: Turn, sent: Sent | None) -> Evidence:
    """Name the dispatch and the step that made it, or the turn's runs if there is none."""
    if sent is None:
        return Evidence(ids=[turn.id, *(d.id for d in turn.dispatches)])
    made = sent.dispatch
    quote = None if made.prompt is None else made.prompt.plain()[:120]
    if made.call is not None:
        steps = [made.call]
    else:
        all_steps = (step for run in turn.runs if run.id == made.from_run for step in run.steps)
        steps = [s.id for s in all_steps if isinstance(s, HandedOff) and s.dispatch == made.id]
    return Evidence(ids=[made.id, *steps], quote=quote or None)


def _plain(expected: ExpectedDispatch) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(expected)
    return plain
