"""Which component is to get better, and on what axis that has to show.

It is the text of the agent that failures point to. A fault of choosing, of handing over, or of
using a result is the sender's, a fault of the work itself the receiver's. Where a verdict is about
a whole turn, a wrong choice in the same case explains it; else whoever got the work last did it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from baton.model import InputError, suggestion
from baton.model.option_names import option
from baton.stats.comparison import CASES_PASSED, Axis
from baton.store import IndexRow

OF_SENDER = frozenset({
    "agent_chain", "announced_dispatch", "context_carried", "dispatch_correctness",
    "dispatch_limits", "dispatch_routing", "dispatch_target_known", "duplicate_work",
    "handoff_loops", "interactions", "result_contradicted", "result_integration", "result_used",
    "trajectory",
})  # fmt: skip
"""Evaluators, by type, of what the sender of a dispatch chose, said, or did with the result."""
ROUTING = frozenset({"agent_chain", "dispatch_correctness", "dispatch_routing", "interactions"})
"""Those that say who should have got the work: where one of them fails, what comes of the work
says nothing of whoever got it by mistake."""
MOST = 3
"""Components that are studied by default. Each takes its share of the 5 % of false gains that a run
may have, so that with many of them none could be proven."""


class Chosen(NamedTuple):
    """A component to study, why, and the axis that has to get better."""

    component: str
    why: str
    aimed: Axis


def choose(
    rows: Iterable[tuple[IndexRow, Collection[str]]],
    types: Mapping[str, str],
    components: Collection[str],
    *,
    agents: Collection[str] = (),
    named: Collection[str] = (),
    aimed: Axis | None = None,
    pointed: Mapping[str, int] | None = None,
) -> list[Chosen]:
    """Return what is to be studied, that with the most failures first.

    Args:
        rows: the cases as they are played unchanged, each with the agents that are proven to have
            made it fail.
        types: the type of each evaluator, by its name.
        components: the texts that there are, by name.
        agents: study the instructions of these agents, whatever the failures say.
        named: study these components, whatever the failures say.
        aimed: the axis that has to get better; the one that fails most at the agent if not given.
        pointed: failures by agent that are known of beside these rows, from issues for example.

    Raises:
        InputError: no such agent or component, or nothing fails.
    """
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row, blamed in rows:
        proven = [(agent, at.evaluator) for agent in blamed for at in row.failed_at]
        for agent, evaluator in proven or pointing(row, types):
            found[agent][evaluator] += 1
    for agent, count in (pointed or {}).items():
        found[agent][CASES_PASSED.name] += count
    if agents or named:
        wanted = [*named, *(f"agent:{name}" for name in agents)]
        refuse_unknown_components(wanted, components)
        return [_named(name, found, aimed) for name in dict.fromkeys(wanted)]
    ranked = sorted(found, key=lambda agent: (-sum(found[agent].values()), agent))
    there = [agent for agent in ranked if f"agent:{agent}" in components]
    if there:
        return [
            Chosen(
                f"agent:{agent}",
                f"{sum(found[agent].values())} failures point to `{agent}`, most of them of "
                f"{_most(found[agent])}",
                aimed or _axis(found[agent]),
            )
            for agent in there[:MOST]
        ]
    if not ranked:
        raise InputError(
            "no train or select case fails as it is played now, so that nothing can get better: "
            f"add cases that fail, or name what to change by {option('agent')}"
        )
    raise InputError(
        f"failures point to `{ranked[0]}`, whose text cannot be changed from here: name a "
        f"component by {option('component')}; {suggestion(f'agent:{ranked[0]}', components)}"
    )


def _named(name: str, found: Mapping[str, Counter[str]], aimed: Axis | None) -> Chosen:
    own = found.get(name.partition(":")[2], Counter())
    axis = aimed or (_axis(own) if own and not name.startswith("tool:") else CASES_PASSED)
    return Chosen(name, "it was named", axis)


def _most(counts: Counter[str]) -> str:
    return min(counts, key=lambda name: (-counts[name], name))


def _axis(counts: Counter[str]) -> Axis:
    return Axis(_most(counts))


def refuse_unknown_components(wanted: Iterable[str], components: Collection[str]) -> None:
    """Raise InputError for a name that no component has, with the nearest ones."""
    for name in wanted:
        if name not in components:
            hint = suggestion(name, components) or "there are none"
            raise InputError(f"there is no component `{name}`; {hint}")


def pointing(row: IndexRow, types: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Return the agents that a case's failures point to, each with the evaluator that says so."""
    failed = [(at, types.get(at.evaluator, at.evaluator)) for at in row.failed_at]
    misrouted = any(type_ in ROUTING for _, type_ in failed)
    first = row.route[0].sender if row.route else None
    last = row.route[-1].receiver if row.route and row.route[-1].kind != "return" else None
    if row.route and row.route[-1].kind == "return":
        last = row.route[-1].sender
    found: dict[tuple[str, str], None] = {}
    for at, type_ in failed:
        if type_ in OF_SENDER:
            agent = at.sender or first or at.agent
        elif misrouted and at.sender is None:
            agent = first
        else:
            agent = at.agent or last or first
        if agent is not None:
            found[agent, at.evaluator] = None
    return found
