"""The Agents SDK of OpenAI."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from baton.model import Message

from .at_work import agents_used_by
from .base import KEPT, Framework, Session, Text, attribute, is_a


async def _ask(agent: Any, message: Any, session: Session) -> Any:
    said = [*session.get(KEPT, ()), {"role": "user", "content": message}]
    result = await sys.modules["agents"].Runner.run(agent, said)
    session[KEPT] = result.to_input_list()
    return result.final_output


class OpenAIAgents(Framework):
    """Agents of OpenAI's SDK."""

    package = "agents"
    asks: ClassVar = {("agents", "AgentBase"): _ask}

    def agents(self, value: Any) -> Iterable[tuple[str, Any]]:
        """Yield an agent, and those that it can reach: by hand-off, as tools, in function tools."""
        return _reached(value, set())

    def texts(self, agents: dict[str, Any]) -> dict[str, Text]:
        """Return instructions and descriptions that are plain text, of agents and their tools.

        What routers read of an agent is its ``handoff_description``. Where it has none, it is the
        description of the tool that it is.
        """
        texts: dict[str, Text] = {}
        tools: dict[str, list[Any]] = {}
        for name, agent in agents.items():
            if isinstance(getattr(agent, "instructions", None), str):
                texts[f"agent:{name}"] = attribute([agent], "instructions")
            if agent.handoff_description:
                texts[f"description:{name}"] = _description(agent, list(agents.values()))
            for tool in _function_tools(agent):
                same = tools.setdefault(tool.name, [])
                same += [] if any(each is tool for each in same) else [tool]
        for name, same in tools.items():
            agent = getattr(same[0], "_agent_instance", None)
            key = f"tool:{name}" if agent is None else f"description:{agent.name}"
            key = f"tool:{name}" if key in texts else key
            texts[key] = attribute(same, "description")
        return texts

    async def go_on(self, agent: Any, messages: Sequence[Message], session: Session) -> Any:
        """Run the agent after what was said."""
        from .openai_agents_stand_in import go_on

        result = await go_on(agent, messages)
        session[KEPT] = result.to_input_list()
        return result.final_output

    def stand_in(self) -> None:
        """Have calls of tools, hand-offs and runs of agents ask stand-ins from now on."""
        from .openai_agents_stand_in import switch_on

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
        for agent in agents_used_by(function, _name).values() if function is not None else ():
            yield from _reached(agent, seen)


def _name(value: Any) -> str | None:
    return value.name if is_a(value, "agents", "AgentBase") else None


def _target(handed: Any) -> Any:
    """Return the agent that a hand-off leads to: an agent is one by itself."""
    if not is_a(handed, "agents", "Handoff"):
        return handed
    target = getattr(handed, "_agent_ref", None)
    return target() if target is not None else None


def _function_tools(agent: Any) -> list[Any]:
    return [tool for tool in agent.tools if is_a(tool, "agents", "FunctionTool")]


def _description(agent: Any, agents: list[Any]) -> Text:
    """Return what is read of an agent; objects of ``handoff()`` hold a copy of it."""

    def write(text: str) -> None:
        before, agent.handoff_description = agent.handoff_description, text
        for sender in agents:
            for handed in getattr(sender, "handoffs", ()):
                if _target(handed) is agent and handed is not agent:
                    handed.tool_description = handed.tool_description.replace(before, text)

    return Text(lambda: agent.handoff_description, write)
