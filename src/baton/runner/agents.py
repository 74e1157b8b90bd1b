"""What the scores of a case say of single agents: of sub-agents, for what dispatches are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from baton.model import STATUSES, AgentScores, AgentValue, Low, Score, Status

from .plan import Plan

_STEPS = 3


class _Verdict(NamedTuple):
    """A verdict on one thing: a score, or a part of one that sums several up."""

    agent: str | None
    status: Status
    value: float | None
    subject: list[str]
    steps: list[str]


def agent_scores(plan: Plan, scores: Sequence[Score]) -> list[AgentScores]:
    """Sum up the scores of the plan's ``by_agent`` evaluators, one sum an evaluator and agent.

    The agent is the one that was set to work, as its score tells (``to``, else ``agent``).
    """
    found: dict[tuple[str, str | None], AgentScores] = {}

    def sum_of(evaluator: str, agent: str | None) -> AgentScores:
        name = plan.context.agent_names.get(agent, agent) if agent is not None else None
        key = (evaluator, name)
        if key not in found:
            found[key] = AgentScores(evaluator=evaluator, agent=name)
        return found[key]

    lower = plan.gate.lower
    for score in scores:
        if score.evaluator not in plan.by_agent:
            continue
        verdicts = list(_verdicts(score))
        for verdict in verdicts:
            total = sum_of(score.evaluator, verdict.agent)
            total.count(verdict.status, verdict.value)
            if verdict.value is not None:
                _note(total, verdict, score.evaluator in lower)
        agents = {verdict.agent for verdict in verdicts}
        total = sum_of(score.evaluator, agents.pop() if len(agents) == 1 else None)
        total.settled += "settled_by" in score.details
        if score.judge is not None:
            total.asked.add(score.judge)
    return list(found.values())


def agent_values(plan: Plan, scores: Sequence[Score]) -> list[AgentValue]:
    """Sum up the values of all other evaluators, as far as they are about one agent."""
    sums: dict[tuple[str, str], tuple[float, int]] = {}
    for score in scores:
        agent = _agent(score.details)
        if score.value is None or agent is None or score.evaluator in plan.by_agent:
            continue
        key = score.evaluator, plan.context.agent_names.get(agent, agent)
        total, scored = sums.get(key, (0.0, 0))
        sums[key] = total + score.value, scored + 1
    return [AgentValue(*key, *found) for key, found in sums.items()]


def _verdicts(score: Score) -> Iterator[_Verdict]:
    """Yield the parts of a score that sums several up; of any other, the score itself."""
    parts = score.details.get("units")
    shaped = isinstance(parts, list) and all(
        isinstance(part, Mapping) and part.get("status") in STATUSES for part in parts
    )
    if not parts or not shaped:
        steps = [id_ for each in score.evidence for id_ in each.ids if id_ not in score.subject]
        agent = _agent(score.details)
        yield _Verdict(agent, score.status, score.value, score.subject, steps[:_STEPS])
        return
    for part in parts:
        subject = part.get("subject", [])
        yield _Verdict(_agent(part), part["status"], part.get("value"), subject, [])


def _agent(details: Mapping[str, Any]) -> str | None:
    name = details.get("to") or details.get("agent")
    return name if isinstance(name, str) else None


def _note(total: AgentScores, verdict: _Verdict, highest: bool) -> None:
    """Keep the worst verdict of the case."""
    value = verdict.value or 0.0
    worse = not total.worst or (
        value > (total.worst[0].value or 0.0) if highest else value < (total.worst[0].value or 0.0)
    )
    if worse:
        total.worst = [Low(value=value, subject=verdict.subject, steps=verdict.steps)]
