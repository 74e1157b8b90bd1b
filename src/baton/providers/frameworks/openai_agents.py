"""OpenAI's Agents SDK."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from baton.model import Message

from .framework import KEPT, Framework, Session, Text, attribute, is_a
from .openai_agents_stand_in import go_on, name_of, switch_on
from .running_agents import agents_used_by


async def _ask(agent: Any, message: Any, session: Session) -> Any:
    messages = [*session.get(KEPT, ()), {"role": "user", "content": message}]
    result = await sys.modules["agents"].Runner.run(agent, messages)
    session[KEPT] = result.to_input_list()
    return result.final_output


class OpenAIAgents(Framework):
    """Agents of OpenAI's Agents SDK."""

    package = "agents"
    asks: ClassVar = {("agents", "AgentBase"): _ask}

    def agents(self, value: Any) -> Iterable[tuple[str, Any]]:
        """Yield an agent and those that it can reach: by hand-off, as tools, in function tools."""
        return _reached(value, set())

    def texts(self, agents: dict[str, Any]) -> dict[str, Text]:
        """Return the plain-text instructions and descriptions of agents and their tools.

        The description of an agent for routers is its ``handoff_description``. If it has none, the
        description is the text of the hand-off or of the tool that leads to it.
        """
        texts: dict[str, Text] = {}
        leading: dict[tuple[str, str], list[Any]] = {}
        for name, agent in agents.items():
            if isinstance(getattr(agent, "instructions", None), str):
                texts[f"agent:{name}"] = attribute([agent], "instructions")
            if agent.handoff_description:
                texts[f"description:{name}"] = _description(agent, list(agents.values()))
            own = [(each, "description", each.name) for each in _function_tools(agent)]
            own += [
                (each, "tool_description", each.tool_name)
                for each in _hand_offs(agent)
                if not _is_derived(each)
            ]
            for value, field, tool in own:
                same = leading.setdefault((tool, field), [])
                same += [] if any(each is value for each in same) else [value]
        for (tool, field), same in leading.items():
            to = name_of(getattr(same[0], "_agent_instance", None) or _target(same[0]))
            described = f"description:{to}"
            key = described if to is not None and described not in texts else f"tool:{tool}"
            texts[key] = attribute(same, field)
        return texts

    async def go_on(self, agent: Any, messages: Sequence[Message], session: Session) -> Any:
        """Run the agent after earlier messages."""
        result = await go_on(agent, messages)
        session[KEPT] = result.to_input_list()
        return result.final_output

    def stand_in(self) -> None:
        """Make tool calls, hand-offs and agent runs ask stand-ins from now on."""
        switch_on()


def _reached(value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if not is_a(value, "agents", "AgentBase") or id(value) in seen:
        return
    seen.add(id(value))
    yield value.name, value
    for handed in getattr(value, "handoffs", ()):
        yield from _reached(_target(handed), seen)
    for tool in _function_tools(value):
        yield from _reached(getattr(tool, "_agent_instance", None), seen)
        function = getattr(tool, "__wrapped__", None)
        for agent in agents_used_by(function, name_of).values() if function is not None else ():
            yield from _reached(agent, seen)


def _target(handed: Any) -> Any:
    """Return the agent that a hand-off leads to. An agent can also be listed as a hand-off."""
    if not is_a(handed, "agents", "Handoff"):
        return handed if name_of(handed) is not None else None
    target = getattr(handed, "_agent_ref", None)
    return target() if target is not None else None


def _function_tools(agent: Any) -> list[Any]:
    return [tool for tool in agent.tools if is_a(tool, "agents", "FunctionTool")]


def _hand_offs(agent: Any) -> list[Any]:
    """Return the hand-offs of an agent that are objects.

    For a listed agent, the SDK makes a new hand-off each time.
    """
    return [each for each in getattr(agent, "handoffs", ()) if is_a(each, "agents", "Handoff")]


def _is_derived(handed: Any) -> bool:
    """Return whether a hand-off has the text that the SDK derives from its agent's description."""
    agent = _target(handed)
    return name_of(agent) is not None and handed.tool_description == _derived(handed, agent)


def _derived(handed: Any, agent: Any) -> Any:
    return handed.default_tool_description(agent)


def _description(agent: Any, agents: list[Any]) -> Text:
    """Return the description of an agent. A hand-off that was made from the agent holds a copy."""

    def write(text: str) -> None:
        led = [each for sender in agents for each in _hand_offs(sender)]
        copies = [each for each in led if _target(each) is agent and _is_derived(each)]
        agent.handoff_description = text
        for each in copies:
            each.tool_description = _derived(each, agent)

    return Text(lambda: agent.handoff_description, write)
