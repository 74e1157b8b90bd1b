"""Making scores of decisions, and one score of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from baton.judges.clip import clip
from baton.model import Evidence, JudgeUse, Score

from .items import Item
from .poll import Decision
from .section import Section
from .shield import LONGEST

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
