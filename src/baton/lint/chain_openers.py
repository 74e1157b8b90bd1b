"""Strict chains without the agent that opens the turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from baton.model import Case, ExpectedTurn

from .definitions import opening_agent, stated_agents
from .scope import CaseFile, Scope
from .warning import LintWarning
from .written import Written

NAME = "chain-opener"


class _Opener(NamedTuple):
    """The agent that opens a conversation, under all its names."""

    name: str
    names: frozenset[str]


def chain_openers(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a chain that has to match exactly, or allows no more agents, and lacks the opener.

    That is certain where a chain is told by hand-offs alone, and in the first turn of a session
    where the agent that opens it is known: from an app's code or from definitions of agents.
    """
    for file in scope.cases:
        for case, written in file.written():
            strict = _strictness(file, case)
            if strict is None:
                continue
            opener = _opener(scope, file, case)
            for place, turn in enumerate(case.turns):
                fresh = place == 0 or turn.new_session
                missing = _missing(turn, written, place, strict, opener if fresh else None)
                if missing is not None:
                    yield LintWarning(
                        file=file.file,
                        line=written.agents_line(place),
                        rule=NAME,
                        what=f"turn {place + 1} of case `{case.id}` states {_names(turn)} without "
                        f"{missing}, and `{strict}` makes it fail",
                        remedy=f"put it first, or set `{_LOOSER[strict]}`",
                    )


def _opener(scope: Scope, file: CaseFile, case: Case) -> _Opener | None:
    """Return the agent that opens a case, where all agents it states are of the same system."""
    recorded = {ours: name for name, ours in file.agent_names.items()}
    stated = {recorded.get(name, name) for name in stated_agents(case)}
    app = file.app_of(case)
    if app is not None and app.root is not None:
        name, known = app.root, app.mentioned
    else:
        name = opening_agent(scope.agents) or ""
        aliases = {alias for card in scope.agents.values() for alias in card.aliases}
        known = frozenset(scope.agents.keys() | aliases)
    if not name or not stated <= known:
        return None
    also = scope.agents[name].aliases if name in scope.agents else ()
    return _Opener(file.agent_names.get(name, name), frozenset((name, *also)))


_EXACT, _NO_EXTRA = "sequence_match_type: exact", "allow_extra_agents: false"
_LOOSER = {_EXACT: "sequence_match_type: subset", _NO_EXTRA: "allow_extra_agents: true"}


def _strictness(file: CaseFile, case: Case) -> str | None:
    """Return the option that makes the chain of a case strict."""
    for evaluator in file.scored_by(case, "agent_chain"):
        if evaluator.options.sequence_match_type == "exact":
            return _EXACT
        if not evaluator.options.allow_extra_agents:
            return _NO_EXTRA
    return None


def _missing(
    turn: ExpectedTurn, written: Written, place: int, strict: str, opener: _Opener | None
) -> str | None:
    """Say which agent is missing from a chain; ``None`` when none is known to be."""
    stages = _stages(turn)
    if not stages:
        return None
    every = {name for stage in stages for name in stage}
    if opener is not None:
        found = {opener.name, *opener.names} & (set(stages[0]) if strict == _EXACT else every)
        return None if found else f"`{opener.name}`, which opens it"
    if (strict == _EXACT or len(every) == 1) and written.told_by_transfers(place):
        return "the agent that hands over first, which opens it"
    return None


def _stages(turn: ExpectedTurn) -> list[list[str]]:
    return [[one] if isinstance(one, str) else one.any_order for one in turn.agents or ()]


def _names(turn: ExpectedTurn) -> str:
    stages = _stages(turn)
    shown = (s[0] if len(s) == 1 else "{" + ", ".join(s) + "}" for s in stages)
    return f"`[{', '.join(shown)}]`"
