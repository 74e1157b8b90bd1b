"""Chooses the component to improve, and the axis to improve.

The component is the text of the agent that failures point to. If choosing an agent, handing work
over, or using a result went wrong, the sender is at fault; if the work itself went wrong, the
receiver is. If a verdict is about a whole turn, a wrong choice in the same case explains it;
without one, it is attributed to the agent that received work last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from baton.gate.compare_axes import CASES_PASSED, Axis
from baton.model import InputError, counted, suggestion
from baton.model.option_spelling import option
from baton.store import IndexRow

OF_SENDER = frozenset({
    "agent_chain", "announced_dispatch", "context_carried", "dispatch_correctness",
    "dispatch_limits", "dispatch_routing", "dispatch_target_known", "duplicate_work",
    "handoff_loops", "interactions", "result_contradicted", "result_integration", "result_used",
    "trajectory",
})  # fmt: skip
"""The types of evaluators that judge the sender's part of a dispatch: choice, prompt, use of the
result."""
ROUTING = frozenset({"agent_chain", "dispatch_correctness", "dispatch_routing", "interactions"})
"""The types of evaluators that state who should have received the work. If one of them fails, the
result of the work says nothing about the agent that received it by mistake."""
MOST = 3
"""The number of components that are studied by default. They share the 5 % chance of a false gain
that a run may have, so with many components no gain could be proven."""


class Pointed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Evidence about an agent from outside the played cases.

    Args:
        failures: the failures of issues that are this agent's fault.
        issues: the keys of these issues, the most frequent first.
        blamed: the failed runs whose recording proves that this agent made them fail.
        labels: the dispatches and runs of this agent that people labelled as failed.
    """

    failures: int = 0
    issues: list[str] = []
    blamed: int = 0
    labels: int = 0

    @property
    def count(self) -> int:
        """The total of all evidence."""
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
    """A played case, the agents that are proven to have made it fail, and the last agent.

    ``last`` is the agent that worked last, for cases without a dispatch.
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

    Evidence from elsewhere counts as much as failures in the cases. But an agent that fails in none
    of the cases is left out, because no candidate for it could score better than another.

    Args:
        rows: the cases, played with unchanged texts.
        types: the type of each evaluator, by its name.
        components: the existing texts, by name.
        agents: study the instructions of these agents, regardless of the failures.
        named: study these components, regardless of the failures.
        aimed: the axis that must improve; by default the axis on which the agent fails most.
        pointed: evidence about agents from outside these rows.
        note: called for each agent that evidence points to but that fails in no row.

    Raises:
        InputError: an agent or component does not exist, or nothing fails.
    """
    failures: defaultdict[str, Counter[str]] = defaultdict(Counter)
    proven: Counter[str] = Counter()
    failing = 0
    for row, blamed, last in rows:
        failing += bool(row.failed_at)
        # What the record proves comes before what the verdicts suggest: if it proves that `desk`
        # lost the order number, `warehouse` is not to blame for the failed answer as well.
        by_record = [(agent, at.evaluator) for agent in blamed for at in row.failed_at]
        proven.update(agent for agent, _ in by_record)
        for agent, evaluator in by_record or pointing(row, types, last):
            failures[agent][evaluator] += 1
    if agents or named:
        wanted = [*named, *(f"agent:{name}" for name in agents)]
        refuse_unknown_components(wanted, components)
        return [_named(name, failures, aimed) for name in dict.fromkeys(wanted)]
    beside = pointed or {}

    def weight(agent: str) -> int:
        return sum(failures[agent].values()) + (beside[agent].count if agent in beside else 0)

    unseen = list(_unseen(beside, failures))
    for each in unseen:
        note(each)
    # The name decides between equal agents, so that the same failures choose the same component.
    ranked = sorted(failures, key=lambda agent: (-weight(agent), agent))
    there = [agent for agent in ranked if f"agent:{agent}" in components]
    if there:
        return [
            Chosen(
                f"agent:{agent}",
                _why(agent, failures[agent], proven[agent], beside.get(agent)),
                aimed or _axis(failures[agent]),
            )
            for agent in there[:MOST]
        ]
    alone = [name for name in components if name.startswith("agent:")]
    # Failures may point to nobody, or to an agent without a text, such as a remote one. A program
    # with one prompt has only that to change.
    if failing and len(alone) == 1:
        counts = sum(failures.values(), Counter())
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
            f"{counted(failing, 'case')} {'fails' if failing == 1 else 'fail'}, and nothing shows "
            f"at which agent: name one with {option('agent')}; "
            f"{suggestion('', alone) or 'no text of an agent can be changed'}"
        )
    if not ranked:
        also = f"; {unseen[0]}" if unseen else ""
        raise InputError(
            "no train or select case fails as it is played now, so nothing can get better: "
            f"add cases that fail, or name what to change with {option('agent')}{also}"
        )
    raise InputError(
        f"failures point to `{ranked[0]}`, whose text cannot be changed from here: name a "
        f"component with {option('component')}; {suggestion(f'agent:{ranked[0]}', components)}"
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


def _named(name: str, failures: Mapping[str, Counter[str]], aimed: Axis | None) -> Chosen:
    own = failures.get(name.partition(":")[2], Counter())
    # Verdicts name agents, never tools: for `tool:search` only the cases that pass can tell.
    axis = aimed or (_axis(own) if own and not name.startswith("tool:") else CASES_PASSED)
    return Chosen(name, "it was named", axis)


def _most(counts: Counter[str]) -> str:
    return min(counts, key=lambda name: (-counts[name], name))


def _axis(counts: Counter[str]) -> Axis:
    return Axis(_most(counts))


def refuse_unknown_components(wanted: Iterable[str], components: Collection[str]) -> None:
    """Raise InputError for an unknown component; the message lists similar names."""
    for name in wanted:
        if name not in components:
            hint = suggestion(name, components) or "there are none"
            raise InputError(
                f"there is no component `{name}`; {hint} Texts built in code cannot be changed, "
                "unless the code gets them from `baton.prompts.get`; `baton components` lists the "
                "texts that can be"
            )


def pointing(
    row: IndexRow, types: Mapping[str, str], alone: str | None = None
) -> Iterable[tuple[str, str]]:
    """Return the agents that a case's failures point to, each with the evaluator that failed.

    ``alone`` is the agent that worked if there is no dispatch.
    """
    failed = [(at, types.get(at.evaluator, at.evaluator)) for at in row.failed_at]
    # If a verdict names nobody, the first sender is the one who chose, and the last receiver the
    # one whose work the answer shows. A `return` goes back: its sender did the work.
    misrouted = any(type_ in ROUTING for _, type_ in failed)
    first = row.route[0].sender if row.route else alone
    last = row.route[-1].receiver if row.route and row.route[-1].kind != "return" else None
    if row.route and row.route[-1].kind == "return":
        last = row.route[-1].sender
    pointing_at: dict[tuple[str, str], None] = {}
    for at, type_ in failed:
        if type_ in OF_SENDER:
            agent = at.sender or first or at.agent
        elif misrouted and at.sender is None:
            # The wrong agent answered, so its answer is wrong: that is the fault of who chose it.
            agent = first
        else:
            agent = at.agent or last or first
        if agent is not None:
            pointing_at[agent, at.evaluator] = None
    return pointing_at


def _listed(keys: list[str]) -> str:
    shown = ", ".join(keys[:3])
    return f"{shown}, ..." if len(keys) > 3 else shown
