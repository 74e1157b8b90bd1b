"""Whether distilled judges still agree with the judges that they replace.

A share of the questions that a distilled judge answers is also sent to the judge. If the two differ
more often than the limit allows, an alert opens, and the distilled judge steps back: all questions
go to the judge. As every answer is then checked, it soon shows when the two agree again; a new file
starts from zero.

The decision is made after every checked answer, so a plain interval would be wrong sooner or later.
The evidence therefore comes from :mod:`baton.stats.sequential`: a one-sided bound that stays valid
no matter how often it is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import select

from baton.evaluators.judged import Judged
from baton.model import DistilledUse
from baton.runner.scoring import distilled_uses
from baton.stats.intervals import Estimate, share
from baton.stats.sequential import Watch

from .alerts import Condition, Statement, close_alerts, look
from .rules import DISTILLED, DriftAlert, Part, Rule, Rules
from .schema import alert, score
from .store import Store

OVER = 30
"""The number of checked answers behind the figure of a message."""
OPENS = 10_000.0
"""If its true error is exactly the limit, a distilled judge steps back by chance once in this many
checked answers. Other alerts have a stricter limit; a false alert here only costs questions to the
judge."""
_NEWEST = 2_000
"""The number of an evaluator's scores behind the counts of a page."""


def condition_of(made: DriftAlert) -> Condition:
    """Return the condition on a distilled judge: the share of answers that the judge also gives.

    Only scores that were made with its present file count.
    """

    def watch() -> Watch:
        return Watch(limit=1 - made.limit, over=OVER, opens=OPENS)

    def values(row: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
        if not row["evaluator_version"].endswith(f"+d{made.file}"):
            return []
        uses = distilled_uses(msgspec.json.decode(row["details"]))
        return [("", float(use.agreed)) for use in uses if use.audited]

    def state(_: str, watch: Watch) -> Statement:
        differ = sum(value < 1 for value in watch.last)
        figure = share(differ, len(watch.last)) or Estimate(value=0.0, low=None, high=None)
        text = (
            f"the distilled judge of {made.evaluator} differs from the judge more often than "
            f"{made.limit:g}: {figure} of the last {watch.over} that were checked; it steps back, "
            "and the judge is asked about everything. Train it again, or switch it off"
            if watch.is_open
            else f"the distilled judge of {made.evaluator} agrees with the judge again, and "
            f"answers: {figure} of the last {watch.over} that were checked differ"
        )
        return Statement(figure, made.limit, text)

    return Condition(made.evaluator, made.text, made.to, watch, values, state)


def check_drift(store: Store, rules: Rules, now: float) -> int:
    """Examine the answers checked since the last time; returns how many alerts opened or closed.

    Raises:
        Unavailable: the store is not available now; nothing is lost.
    """
    changed = 0
    for name, project in store.projects().items():
        kept: set[tuple[str, str]] = set()
        for rule in rules.for_project(name, rules.names(name)):
            for each in rule.drift_alerts:
                changed += look(store, project, rule, condition_of(each), now)
                kept.add((rule.name, each.text))
        why = "it is no longer used"
        changed += close_alerts(store, project, DISTILLED, kept, why, now)
    return changed


def stepped_back(store: Store, project: int, rule: Rule) -> Rule:
    """Return a rule in which every answer of drifting distilled judges is checked.

    So the judge gives all verdicts, and their agreement is counted.
    """
    drifting = _drifting(store, project, rule)
    if not drifting:
        return rule
    parts = tuple(_checked(part, drifting) for part in rule.parts)
    return msgspec.structs.replace(rule, parts=parts)


def _checked(part: Part, drifting: Collection[str]) -> Part:
    evaluators = []
    for one in part.plan.evaluators:
        made = one.evaluator
        if isinstance(made, Judged) and made.name in drifting and made.options.distilled:
            every = {**msgspec.to_builtins(made.options.distilled), "audit": 1.0}
            made = made.with_options({"distilled": every})
            one = msgspec.structs.replace(one, evaluator=made)  # noqa: PLW2901
        evaluators.append(one)
    plan = msgspec.structs.replace(part.plan, evaluators=tuple(evaluators))
    return msgspec.structs.replace(part, plan=plan)


def drift_status(store: Store, project: int, rule: Rule) -> list[dict[str, Any]]:
    """Return the newest results and the status of each distilled judge of a rule.

    ``stepped_back`` is the time since when it has. ``audited`` counts the answers that were also
    asked of the judge, and ``differ`` is the share of them with another verdict, with its 95 %
    interval. Times are RFC 3339.
    """
    drifting = _drifting(store, project, rule)
    compared = []
    for each in rule.drift_alerts:
        query = select(score.c.details).where(
            score.c.project == project,
            score.c.rule == rule.name,
            score.c.evaluator == each.evaluator,
            score.c.evaluator_version.endswith(f"+d{each.file}", autoescape=True),
            score.c.replaced_by.is_(None),
        )
        with store.read() as connection:
            rows = connection.scalars(query.order_by(score.c.id.desc()).limit(_NEWEST)).all()
        use = DistilledUse()
        for details in rows:
            for each_use in distilled_uses(msgspec.json.decode(details)):
                use.join(each_use)
        since = drifting.get(each.evaluator)
        compared.append(
            {
                "evaluator": each.evaluator,
                "file": each.file,
                "limit": each.limit,
                "scores": len(rows),
                "answered": use.answered,
                "audited": use.audited,
                "agreed": use.agreed,
                "differ": msgspec.to_builtins(share(use.audited - use.agreed, use.audited)),
                "stepped_back": None
                if since is None
                else datetime.fromtimestamp(since, UTC).isoformat(),
            }
        )
    return compared


def _drifting(store: Store, project: int, rule: Rule) -> dict[str, float]:
    """Return the time since when each distilled judge of a rule has stepped back, by evaluator."""
    by_text = {each.text: each.evaluator for each in rule.drift_alerts}
    if not by_text:
        return {}
    query = select(alert.c.condition, alert.c.opened).where(
        alert.c.project == project, alert.c.rule == rule.name, alert.c.closed.is_(None)
    )
    with store.read() as connection:
        rows = connection.execute(query).all()
    return {by_text[row.condition]: row.opened for row in rows if row.condition in by_text}
