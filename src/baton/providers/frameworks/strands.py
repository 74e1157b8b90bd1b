"""Strands Agents."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from baton.model import Message
from baton.stand_ins import current

from .framework import KEPT, Framework, Session, Text, is_a
from .running_agents import agents_used_by, content
from .strands_calls import agent_of, install, receiver

_LOCKS: WeakKeyDictionary[Any, asyncio.Lock] = WeakKeyDictionary()


def _alone() -> asyncio.Lock:
    """Return the lock of this event loop, because a Strands agent answers one request at a time.

    Use `workers: process` to run cases in parallel.
    """
    return _LOCKS.setdefault(asyncio.get_running_loop(), asyncio.Lock())


async def _ask_agent(agent: Any, message: Any, session: Session) -> Any:
    async with _conversation(agent, [agent], session):
        return str(await agent.invoke_async(message)).strip()


async def _ask_team(team: Any, message: Any, session: Session) -> str | None:
    async with _conversation(team, list(_agents_of(team)), session):
        # The result has one answer for each node, and the spans show which one is the team's
        # answer. There are no spans for an agent that a stand-in answered for.
        result = await team.invoke_async(message)
    return _answer_of_stand_in(result)


def _answer_of_stand_in(result: Any) -> str | None:
    """Return the answer of the last node, if a stand-in gave it."""
    play = current()
    nodes = getattr(result, "node_history", None) or getattr(result, "execution_order", None)
    if play is None or not nodes:
        return None
    last = nodes[-1]
    names = [each.request.name for each in play.answers if each.request.kind == "agent"]
    if getattr(last.executor, "name", None) not in names:
        return None
    return str(result.results[last.node_id].result).strip()


class _Memory(NamedTuple):
    """What an agent of Strands keeps from one request to the next."""

    messages: list[Any]
    state: dict[str, Any]


class _States(NamedTuple):
    """The state that a Strands agent was made with, and the state from the case."""

    made_with: dict[str, Any]
    stated: dict[str, Any]


_MADE_WITH: WeakKeyDictionary[Any, _Memory] = WeakKeyDictionary()
_STATES: WeakKeyDictionary[Any, _States] = WeakKeyDictionary()


@asynccontextmanager
async def _conversation(target: Any, own: Sequence[Any], session: Session) -> AsyncIterator[None]:
    """Give agents the messages and the state of one conversation, and keep them for its next turn.

    All cases share the agents of a program, and also those that its tools call. In a new
    conversation each has what it was made with. The state of the case is in ``agent.state`` of the
    agents in ``own``, where tools of Strands look for it.
    """
    async with _alone():
        agents = {id(agent): agent for agent in (*own, *(each for _, each in _reached(target)))}
        kept: dict[int, _Memory] = session.get(KEPT, {})
        stated = {key: value for key, value in session.items() if not key.startswith("baton.")}
        for place, agent in agents.items():
            made_with = _MADE_WITH.setdefault(agent, _memory(agent))
            begins = made_with.state
            if any(agent is each for each in own):
                _hold_state(agent, _States(made_with.state, stated))
                begins = {**made_with.state, **stated}
            memory = kept.get(place, _Memory(made_with.messages, begins))
            agent.messages[:] = memory.messages
            for key in agent.state.get():
                agent.state.delete(key)
            for key, value in memory.state.items():
                agent.state.set(key, value)
        yield
        session[KEPT] = {place: _memory(agent) for place, agent in agents.items()}


def _memory(agent: Any) -> _Memory:
    return _Memory(list(agent.messages), agent.state.get())


def _hold_state(agent: Any, states: _States) -> None:
    """Keep the state of a case in an agent of a swarm, which restores the original at each turn."""
    if agent not in _STATES:
        event = sys.modules["strands.hooks"].BeforeInvocationEvent
        agent.hooks.add_callback(event, _put_back_state)
    _STATES[agent] = states


def _reached(target: Any) -> Iterator[tuple[str, Any]]:
    """Yield every agent that a target is or contains, and those that its tools call."""
    for name, each in _agents(target, set()):
        yield name, each.agent if isinstance(each, Member) else each


def _put_back_state(event: Any) -> None:
    states, state = _STATES[event.agent], event.agent.state
    if state.get() == states.made_with:
        for key, value in states.stated.items():
            state.set(key, value)


def _agents_of(team: Any) -> Iterator[Any]:
    """Yield the agents of a swarm or graph, including those of nested ones."""
    for node in team.nodes.values():
        executor = node.executor
        if hasattr(executor, "nodes"):
            yield from _agents_of(executor)
        elif hasattr(executor, "state") and hasattr(executor, "hooks"):
            yield executor


class Member(NamedTuple):
    """An agent of a swarm. The swarm tells it about the other agents."""

    swarm: Any
    agent: Any


class Strands(Framework):
    """Agents, swarms and graphs of Strands."""

    package = "strands"
    asks: ClassVar = {("strands", "Agent"): _ask_agent, ("strands", "MultiAgentBase"): _ask_team}

    def agents(self, value: Any) -> Iterable[tuple[str, Any]]:
        """Yield an agent, those of a swarm or graph, and those that their tools call."""
        return _agents(value, set())

    def texts(self, agents: dict[str, Any]) -> dict[str, Text]:
        """Return system prompts, descriptions of agents, and descriptions of tools."""
        texts: dict[str, Text] = {}
        for name, each in agents.items():
            agent = each.agent if isinstance(each, Member) else each
            if isinstance(agent.system_prompt, str):
                write = partial(setattr, agent, "system_prompt")
                texts[f"agent:{name}"] = Text(partial(getattr, agent, "system_prompt"), write)
            if isinstance(agent.description, str) and isinstance(each, Member):
                write = partial(setattr, agent, "description")
                texts[f"description:{name}"] = Text(partial(getattr, agent, "description"), write)
            for tool in agent.tool_registry.registry.values():
                if is_a(tool, "strands", "_AgentAsTool"):
                    text = Text(partial(_described, tool), partial(setattr, tool, "_description"))
                elif hasattr(tool, "_tool_spec"):
                    text = Text(partial(_described, tool), partial(_describe, tool))
                else:
                    continue
                texts.setdefault(f"tool:{tool.tool_name}", text)
                to = receiver(tool, None)
                if to is not None:
                    texts.setdefault(f"description:{to}", text)
        return texts

    async def go_on(self, agent: Any, messages: Sequence[Message], session: Session) -> Any:
        """Let an agent continue from earlier messages; a swarm tells its agent about the others."""
        swarm = agent.swarm if isinstance(agent, Member) else None
        agent = agent.agent if isinstance(agent, Member) else agent
        history = _history(messages)
        async with _conversation(swarm or agent, [agent], session):
            if swarm is not None and len(history) == 1:
                first, swarm.entry_point = swarm.entry_point, agent
                try:
                    result = await swarm.invoke_async(messages[0].text or "")
                finally:
                    swarm.entry_point = first
                last = result.node_history[-1].node_id if result.node_history else agent.name
                return str(result.results[last].result).strip()
            question = history.pop()["content"] if messages[-1].role == "user" else None
            agent.messages[:] = history
            return str(await agent.invoke_async(question)).strip()

    def stand_in(self) -> None:
        """Make calls of tools and agents ask stand-ins; raises ProviderError if impossible."""
        install()


def _agents(value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if is_a(value, "strands", "MultiAgentBase"):
        for node in value.nodes.values():
            executor = node.executor
            if is_a(value, "strands", "Swarm") and agent_of(executor) is not None:
                yield executor.name, Member(value, executor)
            yield from _agents(executor, seen)
    if agent_of(value) is None:
        return
    yield value.name, value
    for tool in value.tool_registry.registry.values():
        if is_a(tool, "strands", "_AgentAsTool"):
            yield from _agents(tool.agent, seen)
        elif (function := getattr(tool, "_tool_func", None)) is not None:
            for agents in agents_used_by(function, agent_of).values():
                yield from _agents(agents, seen)


def _described(tool: Any) -> str:
    return str(tool.tool_spec["description"])


def _describe(tool: Any, text: str) -> None:
    tool.tool_spec = {**tool.tool_spec, "description": text}


def _history(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Convert messages to Strands messages; calls get new ids."""
    history: list[dict[str, Any]] = []
    for place, message in enumerate(messages, 1):
        if message.role == "user":
            history.append({"role": "user", "content": [{"text": message.text or ""}]})
            continue
        spoken: list[Any] = [{"text": message.text}] if message.text else []
        came: list[Any] = []
        for number, call in enumerate(message.calls, 1):
            id_ = f"call_{place}_{number}"
            use = {"toolUseId": id_, "name": call.name, "input": call.arguments or {}}
            is_bad = call.status in ("failed", "refused")
            result = call.error if is_bad and call.result is None else content(call.result)
            text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
            status = "error" if is_bad else "success"
            spoken.append({"toolUse": use})
            came.append(
                {"toolResult": {"toolUseId": id_, "status": status, "content": [{"text": text}]}}
            )
        history.append({"role": "assistant", "content": spoken})
        if came:
            history.append({"role": "user", "content": came})
    return history
