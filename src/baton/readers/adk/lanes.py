"""Which run an ADK event belongs to, and which run comes before it.

LLM agents are told by ``nodeInfo.path``, which counts visits. Inside workflow agents it says
nothing, and an agent is known by its author name and ``branch`` alone; a branch proves
parallel work only when it ends in the author, for agents behind a fan-out keep its last one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from baton.formats.adk_events import Event
from baton.model import AgentRun

MAIN = ""


class Origin(NamedTuple):
    """Where an event comes from: its agent, its parallel lane, the workflows around it."""

    agent: str
    lane: str
    inside: tuple[str, ...]
    path: str | None


class Lanes:
    """The runs that are open in each lane of one turn."""

    def __init__(self, authors: frozenset[str], new_group: Callable[[], int]) -> None:
        """Take all names that author an event in the turn; other names are containers."""
        self._new_group = new_group
        self._authors = authors
        self._current: dict[str, AgentRun] = {}
        self._by_path: dict[str, AgentRun] = {}
        self._before_fan_out: AgentRun | None = None
        self._group: int | None = None

    def origin(self, event: Event, expected: str | None) -> Origin:
        """Place an event; ``expected`` is the agent that control was last handed to."""
        path = (event.node_info.path if event.node_info else None) or None
        names = [step.partition("@")[0] for step in path.split("/")] if path else []
        agent = event.author or ""
        if names and names[-1] != agent and event.error_code and event.content is None:
            if names[-1] == expected or names[-1] in self._authors:
                agent = names[-1]
        branch = (event.branch or "").split(".") if event.branch else []
        lane = event.branch or MAIN
        if branch and branch[-1] != agent and branch[-1] in self._authors:
            branch, lane = [], MAIN
        exact = bool(names) and names[-1] == agent
        around = branch if exact else [*names, *branch]
        inside = [name for name in around if name not in self._authors and name != agent]
        return Origin(agent, lane, tuple(dict.fromkeys(inside)), path if exact else None)

    def find(self, origin: Origin, handed_to: bool) -> AgentRun | None:
        """Return the open run an event continues; a hand-over to its agent asks for a new one."""
        if handed_to:
            return None
        current = self._current.get(origin.lane)
        if origin.path is not None:
            known = self._by_path.get(origin.path)
            return known if "@" in origin.path or known is current else None
        return current if current is not None and current.agent == origin.agent else None

    def enter(self, origin: Origin, run: AgentRun) -> tuple[list[AgentRun], int | None]:
        """Open a run; return the runs that came before it, and its group in a fan-out."""
        before, group = self._before(origin.lane)
        if origin.lane == MAIN:
            self._current = {}
        self._current[origin.lane] = run
        if origin.path is not None:
            self._by_path[origin.path] = run
        return before, group

    def _before(self, lane: str) -> tuple[list[AgentRun], int | None]:
        if lane in self._current:
            return [self._current[lane]], None
        if lane == MAIN:
            return [run for name, run in self._current.items() if name != MAIN], None
        if not any(name != MAIN for name in self._current):
            self._before_fan_out = self._current.pop(MAIN, None)
            self._group = self._new_group()
        return ([self._before_fan_out] if self._before_fan_out else []), self._group
