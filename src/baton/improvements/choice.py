"""Chooses the component to improve, and the axis to improve.

It is the text of the agent that failures point to. A fault of choosing, of handing over, or of
using a result is the sender's, a fault of the work itself the receiver's. Where a verdict is about
a whole turn, a wrong choice in the same case explains it; else whoever got the work last did it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from baton.model import InputError, counted, suggestion
from baton.model.option_names import option
from baton.stats.comparison import CASES_PASSED, Axis
from baton.store import IndexRow

OF_SENDER = frozenset({
    "agent_chain", "announced_dispatch", "context_carried", "dispatch_correctness",
    "dispatch_limits", "dispatch_routing", "dispatch_target_known", "duplicate_work",
    "handoff_loops", "interactions", "result_contradicted", "result_integration", "result_used",
    "trajectory",
})  # fmt: skip
"""Evaluators, by type, of the sender's part of a dispatch: choice, prompt, use of the result."""
ROUTING = frozenset({"agent_chain", "dispatch_correctness", "dispatch_routing", "interactions"})
"""Those that say who should have got the work: where one of them fails, what comes of the work
says nothing of whoever got it by mistake."""
MOST = 3
"""Components that are studied by default. Each takes its share of the 5 % of false gains that a run
may have, so that with many of them none could be proven."""


class Pointed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Evidence about an agent beside the played cases.

    Args:
        failures: those of issues whose fault is this agent's.
        issues: the keys of these issues, the most frequent first.
        blamed: failed runs whose record proves that this agent made them fail.
        labels: dispatches and runs of this agent that people labelled as failed.
    """

    failures: int = 0
    issues: list[str] = []
    blamed: int = 0
    labels: int = 0

    @property
    def count(self) -> int:
        """All of it."""
        return self.failures + self.blamed + self.labels

    def __str__(self) -> str:
        said = []
        if self.failures:
            keys = _listed(self.issues)
            of = f" of {counted(len(self.issues), 'issue')} ({keys})" if self.issues else ""
            said.append(f"{counted(self.failures, 'failure')}{of}")
        if self.blamed:
            said.append(f"{counted(self.blamed, 'run')} that its record blames on it")
        if self.labels:
            said.append(f"{counted(self.labels, 'label')} of people")
        return ", ".join(said)


class Failing(NamedTuple):
    """A case as it was played, the agents that are proven to have made it fail, and who was last.

    ``last`` is the agent that worked last, if no dispatch tells of any.
    """

    row: IndexRow
    blamed: Collection[str] = ()
    last: str | None = None


class Chosen(NamedTuple):
    """A component to study, the reason, and the axis to improve."""

    component: str
    why: str
    aimed: Axis


def choose(
    rows: Iterable[Failing],
    types: Mapping[str, str],
    components: Collection[str],
    *,
    agents: Collection[str] = (),
    named: Collection[str] = (),
    aimed: Axis | None = None,
    pointed: Mapping[str, Pointed] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> list[Chosen]:
    """Return the components to study, those with the most failures first.

    Evidence from elsewhere counts as much as failures in the cases. An agent that fails in none of
    the cases is still left out, because no candidate for it could score better than another.

    Args:
        rows: the cases as they are played unchanged.
        types: the type of each evaluator, by its name.
        components: the texts that there are, by name.
        agents: study the instructions of these agents, whatever the failures say.
        named: study these components, whatever the failures say.
        aimed: the axis that has to get better; the one that fails most at the agent if not given.
        pointed: what points to agents beside these rows.
        note: called for each agent that evidence points to, but that fails in no row.

    Raises:
        InputError: no such agent or component, or nothing fails.
    """
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    proven: Counter[str] = Counter()
    failing = 0
    for row, blamed, last in rows:
        failing += bool(row.failed_at)
        by_record = [(agent, at.evaluator) for agent in blamed for at in row.failed_at]
        proven.update(agent for agent, _ in by_record)
        for agent, evaluator in by_record or pointing(row, types, last):
            found[agent][evaluator] += 1
    if agents or named:
        wanted = [*named, *(f"agent:{name}" for name in agents)]
        refuse_unknown_components(wanted, components)
        return [_named(name, found, aimed) for name in dict.fromkeys(wanted)]
    beside = pointed or {}

    def weight(agent: str) -> int:
        return sum(found[agent].values()) + (beside[agent].count if agent in beside else 0)

    unseen = list(_unseen(beside, found))
    for each in unseen:
        note(each)
    ranked = sorted(found, key=lambda agent: (-weight(agent), agent))
    there = [agent for agent in ranked if f"agent:{agent}" in components]
    if there:
        return [
            Chosen(
                f"agent:{agent}",
                _why(agent, found[agent], proven[agent], beside.get(agent)),
                aimed or _axis(found[agent]),
            )
            for agent in there[:MOST]
        ]
    alone = [name for name in components if name.startswith("agent:")]
    if failing and len(alone) == 1:
        counts = sum(found.values(), Counter())
        return [
            Chosen(
                alone[0],
                f"{counted(failing, 'case')} {'fails' if failing == 1 else 'fail'}, and it is the "
                "only agent whose text can be changed",
                aimed or (_axis(counts) if counts else CASES_PASSED),
            )
        ]
    if failing and not ranked:
        raise InputError(
            f"{counted(failing, 'case')} {'fails' if failing == 1 else 'fail'}, and nothing tells "
            f"at which agent: name one by {option('agent')}; "
            f"{suggestion('', alone) or 'no text of an agent can be changed'}"
        )
    if not ranked:
        also = f"; {unseen[0]}" if unseen else ""
        raise InputError(
            "no train or select case fails as it is played now, so that nothing can get better: "
            f"add cases that fail, or name what to change by {option('agent')}{also}"
        )
    raise InputError(
        f"failures point to `{ranked[0]}`, whose text cannot be changed from here: name a "
        f"component by {option('component')}; {suggestion(f'agent:{ranked[0]}', components)}"
    )


def _unseen(pointed: Mapping[str, Pointed], failing: Collection[str]) -> Iterator[str]:
    for agent, known in sorted(pointed.items(), key=lambda each: (-each[1].count, each[0])):
        if agent not in failing:
            key = known.issues[0] if known.issues else "KEY"
            yield (
                f"{known} {'points' if known.count == 1 else 'point'} to `{agent}`, and no case "
                f"here fails at it: `baton issues --promote {key}` makes cases of an issue"
            )


def _why(agent: str, counts: Counter[str], proven: int, beside: Pointed | None) -> str:
    failures = counted(sum(counts.values()), "failure")
    verb = "point" if sum(counts.values()) > 1 else "points"
    why = f"{failures} {verb} to `{agent}`, most of them of {_most(counts)}"
    if proven:
        why += f", {proven} proven by the record"
    return f"{why}; beside these cases: {beside}" if beside is not None else why


def _named(name: str, found: Mapping[str, Counter[str]], aimed: Axis | None) -> Chosen:
    own = found.get(name.partition(":")[2], Counter())
    axis = aimed or (_axis(own) if own and not name.startswith("tool:") else CASES_PASSED)
    return Chosen(name, "it was named", axis)


def _most(counts: Counter[str]) -> str:
    return min(counts, key=lambda name: (-counts[name], name))


def _axis(counts: Counter[str]) -> Axis:
    return Axis(_most(counts))


def refuse_unknown_components(wanted: Iterable[str], components: Collection[str]) -> None:
    """Raise InputError for a name that no component has, with similar names."""
    for name in wanted:
        if name not in components:
            hint = suggestion(name, components) or "there are none"
            raise InputError(
                f"there is no component `{name}`; {hint} A text that code makes is none, unless "
                "it asks for it by `baton.prompts.get`; `baton components` lists them"
            )


def pointing(
    row: IndexRow, types: Mapping[str, str], alone: str | None = None
) -> Iterable[tuple[str, str]]:
    """Return the agents that a case's failures point to, each with the evaluator that says so.

    ``alone`` is who worked if there is no dispatch.
    """
    failed = [(at, types.get(at.evaluator, at.evaluator)) for at in row.failed_at]
    misrouted = any(type_ in ROUTING for _, type_ in failed)
    first = row.route[0].sender if row.route else alone
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


def _listed(keys: list[str]) -> str:
    shown = ", ".join(keys[:3])
    return f"{shown}, ..." if len(keys) > 3 else shown
