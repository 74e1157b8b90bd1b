"""Scores of a rubric: of one thing, of what a finding settles, and of a whole case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from baton.judges.fence import clip
from baton.model import Evidence, JudgeUse, Score, Status, Unit

from .answers import Decision, Item
from .evidence import Settled
from .rubric import Rubric
from .shield import LONGEST, LeftOut, Section, said_of

_KEPT = ("label", "votes", "spread", "tie", "items", "settled_by", "judge_error", "not_shown")


class Verdict(NamedTuple):
    """A value (``None``: nothing to score), why, what it rests on, how many things it counts."""

    value: float | None
    reason: str
    details: dict[str, Any]
    evidence: list[Evidence]
    counted: int = 1


def verdict_of(
    decisions: Sequence[Decision], items: Sequence[Item] | None, sections: Sequence[Section]
) -> Verdict:
    """Sum up what was decided: of one thing, or the mean over several."""
    if items is None:
        return _single(decisions[0], sections)
    counted = [d.number for d in decisions if d.number is not None]
    least = min(counted, default=None)
    pairs = list(zip(items, decisions, strict=True))
    worst = [(item, d) for item, d in pairs if d.number is not None and d.number == least]
    details: dict[str, Any] = {
        "items": [
            {"id": item.name, "text": clip(item.text, LONGEST).text, **_told(decision)}
            for item, decision in pairs
        ],
        "counted": len(counted),
    }
    if not counted:
        return Verdict(None, f"none of {len(pairs)} counts: {_said(pairs[0])}", details, [])
    value = sum(counted) / len(counted)
    shown = worst[:3] if value < 1 else []
    told = "; ".join(_said(pair) for pair in shown) or f"all {len(counted)} are fine"
    evidence = [Evidence(ids=list(i.ids), quote=i.text[:200]) for i, _ in shown if i.ids]
    return Verdict(value, told, details, evidence, len(counted))


def summed(uses: Sequence[JudgeUse]) -> JudgeUse | None:
    """Add up what several scores cost."""
    if not uses:
        return None
    tokens = [use.tokens for use in uses if use.tokens is not None]
    costs = [use.cost_usd for use in uses]
    return JudgeUse(
        model=uses[0].model,
        rubric_version=uses[0].rubric_version,
        samples=sum(use.samples for use in uses),
        requests=sum(use.requests for use in uses),
        tokens=sum(tokens) if tokens else None,
        cost_usd=sum(c for c in costs if c is not None) if None not in costs else None,
        cached=all(use.cached for use in uses),
        timings={"seconds": sum((use.timings or {}).get("seconds", 0.0) for use in uses)},
    )


def brief(score: Score, names: Mapping[str, str | None]) -> dict[str, Any]:
    """Tell one of several scores in short."""
    told = {
        "subject": score.subject,
        **names,
        "status": score.status,
        "value": score.value,
        **{key: score.details[key] for key in _KEPT if key in score.details},
        "reason": score.reason,
    }
    return {key: value for key, value in told.items() if value is not None}


def _single(decision: Decision, sections: Sequence[Section]) -> Verdict:
    details = _told(decision)
    evidence = []
    if decision.quote:
        ids = _holders(decision.quote, sections)
        if ids is None:
            details["quote_not_found"] = decision.quote
        else:
            evidence.append(Evidence(ids=ids, quote=decision.quote[:400]))
    details.pop("reason")
    return Verdict(decision.number, decision.reason, details, evidence)


def _holders(quote: str, sections: Sequence[Section]) -> list[str] | None:
    """Find what holds a quote, white space apart; ``None`` when nothing does."""
    wanted = " ".join(quote.split())
    for section in sections:
        for piece in section.pieces:
            if wanted in " ".join(piece.text.split()):
                return list(piece.ids)
    return None


def _told(decision: Decision) -> dict[str, Any]:
    told: dict[str, Any] = {"label": decision.label, "score": decision.number}
    told["reason"] = decision.reason
    tally = decision.tally
    if tally.votes > 1:
        told |= {"votes": tally.counts, "spread": tally.spread, "tie": tally.tie}
    return {key: value for key, value in told.items() if value is not None}


def _said(pair: tuple[Item, Decision]) -> str:
    item, decision = pair
    label = f" ({decision.label})" if decision.label is not None else ""
    return f"`{item.name}`{label}: {decision.reason}"


_MOST = 10  # steps that a score names, those first of which the most is left out


class Scorer(NamedTuple):
    """Makes scores of a rubric that was asked for under a name."""

    name: str
    rubric: Rubric

    @property
    def unit(self) -> Unit:
        """What one score is about."""
        return "trace" if self.rubric.report != "each" else self.rubric.unit

    def passes(self, value: float) -> bool:
        """Tell whether a value reaches the threshold, or keeps below it where lower is better."""
        limit = self.rubric.threshold
        higher = self.rubric.direction == "higher"
        return value >= limit - 1e-9 if higher else value <= limit + 1e-9

    def scored(
        self,
        value: float,
        reason: str,
        details: Mapping[str, Any],
        evidence: Sequence[Evidence] = (),
        use: JudgeUse | None = None,
    ) -> Score:
        """Give a verdict: passed from the threshold on, or up to it where lower is better."""
        status: Status = "passed" if self.passes(value) else "failed"
        score = self.unscored(status, reason, details, use, value)
        score.evidence = list(evidence)
        return score

    def unscored(
        self,
        status: Status,
        reason: str,
        details: Mapping[str, Any] | None = None,
        use: JudgeUse | None = None,
        value: float | None = None,
    ) -> Score:
        """Say why there is no verdict: ``skipped`` or ``error``."""
        return Score(
            evaluator=self.name,
            type=self.rubric.name,
            version=self.rubric.version,
            unit=self.unit,
            status=status,
            value=value,
            threshold=self.rubric.threshold,
            reason=reason,
            details=dict(details or {}),
            judge=use,
        )

    def cant_tell(
        self,
        left_out: Sequence[LeftOut],
        verdict: Verdict,
        details: Mapping[str, Any],
        use: JudgeUse | None,
        *,
        passes: bool,
    ) -> Score:
        """Say that a verdict does not count, as what was not shown could turn it over.

        It is an error, as for votes that are not known: skipped, padding would be a way out.
        """
        kept = ("unknown", "unanswered", "cut", "not_shown")
        label = verdict.details.get("label", verdict.value)
        said = f"it says {'nothing' if label is None else f'`{label}`'}: {verdict.reason}"
        reason = (
            f"can't tell: {said_of(left_out)} were not shown to the judge and may hold "
            f"{'a fault' if passes else 'an excuse'}: raise `max_chars`; of the rest {said}"
        )
        told = {name: details[name] for name in kept if name in details}
        return self.unscored("error", reason, {**told, "of_the_rest": verdict.details}, use)

    def settled(self, settled: Settled) -> Score:
        """Give the verdict of a finding, for which no judge was asked."""
        finding = settled.finding
        details = {
            "label": settled.label,
            "settled_by": {"finding": settled.source, "kind": finding.kind},
        }
        reason = f"settled by `{settled.source}`, no judge was asked: {finding.says}"
        value = self.rubric.answer.score_of(settled.label) or 0.0
        return self.scored(value, reason, details, finding.evidence)

    def mean(self, scores: Sequence[Score], agents: Mapping[str, str | None]) -> Score:
        """Sum up: an error is an error of the whole, what was skipped does not count.

        ``agents`` are those that were judged, by the ids of the subjects.
        """
        error = next((score for score in scores if score.status == "error"), None)
        counted = [score for score in scores if score.value is not None]
        details: dict[str, Any] = {"units": [_unit(score, agents) for score in scores]}
        use = summed([score.judge for score in scores if score.judge is not None])
        if error is not None or not counted:
            first = error or scores[0]
            kind = first.details.get("judge_error")
            more = {"judge_error": kind} if kind else {}
            return self.unscored(first.status, first.reason, {**details, **more}, use)
        pooled = self.rubric.report == "pooled"
        weights = [score.details.get("counted", 1) if pooled else 1 for score in counted]
        value = sum(w * (s.value or 0.0) for w, s in zip(weights, counted, strict=True))
        sign = 1 if self.rubric.direction == "higher" else -1
        worst = min(counted, key=lambda score: sign * (score.value or 0.0))
        reason = f"mean of {len(counted)}; the worst: {worst.reason}"
        evidence = [each for score in counted for each in score.evidence]
        return self.scored(value / sum(weights), reason, details, evidence, use)


def not_shown(left_out: Sequence[LeftOut]) -> dict[str, Any]:
    """Return what a score says of what a judge was not shown: by input, and by step."""
    if not left_out:
        return {}
    cut: dict[str, int] = {}
    for one in left_out:
        cut[one.section] = cut.get(one.section, 0) + one.chars
    ranked = sorted(left_out, key=lambda one: -one.chars)[:_MOST]
    steps = [
        {"input": one.section, "ids": list(one.ids), "what": one.kind, "chars": one.chars}
        for one in ranked
    ]
    return {"cut": cut, "not_shown": steps}


def _unit(score: Score, agents: Mapping[str, str | None]) -> dict[str, Any]:
    return brief(score, {"agent": agents.get(score.subject[0])} if score.subject else {})
