"""Strands Agents."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

from .base import KEPT, Framework, Session


async def _ask_agent(agent: Any, message: Any, session: Session) -> Any:
    # The object is shared by all cases, and keeps what was said.
    if not session.get(KEPT):
        agent.messages.clear()
        _begin_state(agent, session)
        session[KEPT] = True
    return str(await agent.invoke_async(message)).strip()


async def _ask_team(team: Any, message: Any, session: Session) -> None:
    for agent in _agents_of(team):
        _begin_state(agent, session)
    # Its result has one for each node; which of them is the answer its spans say.
    await team.invoke_async(message)


class _States(NamedTuple):
    """What the state of an agent of Strands held when it was made, and what the case states."""

    made_with: dict[str, Any]
    stated: dict[str, Any]


_STATES: WeakKeyDictionary[Any, _States] = WeakKeyDictionary()


def _begin_state(agent: Any, session: Session) -> None:
    """Put the state of a case into ``agent.state``, where tools of Strands look for it.

    What an earlier case left there goes. A swarm puts back the state that an agent was made with
    whenever it is its turn, so that the state of the case is put in again before each request.
    """
    stated = {key: value for key, value in session.items() if not key.startswith("baton.")}
    if agent in _STATES:
        made_with = _STATES[agent].made_with
    else:
        made_with = agent.state.get()
        event = sys.modules["strands.hooks"].BeforeInvocationEvent
        agent.hooks.add_callback(event, _put_back_state)
    _STATES[agent] = _States(made_with, stated)
    for key in agent.state.get():
        agent.state.delete(key)
    for key, value in {**made_with, **stated}.items():
        agent.state.set(key, value)


def _put_back_state(event: Any) -> None:
    states, state = _STATES[event.agent], event.agent.state
    if state.get() == states.made_with:
        for key, value in states.stated.items():
            state.set(key, value)


def _agents_of(team: Any) -> Iterator[Any]:
    """Yield the agents of a swarm or graph, and of those within it."""
    for node in team.nodes.values():
        executor = node.executor
        if hasattr(executor, "nodes"):
            yield from _agents_of(executor)
        elif hasattr(executor, "state") and hasattr(executor, "hooks"):
            yield executor


class Strands(Framework):
    """Agents, swarms and graphs of Strands."""

    package = "strands"
    asks: ClassVar = {("strands", "Agent"): _ask_agent, ("strands", "MultiAgentBase"): _ask_team}
