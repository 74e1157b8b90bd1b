"""pydantic-ai."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from baton.model import Message, ProviderError

from .framework import KEPT, Framework, Session, Text, attribute, is_a
from .running_agents import agents_used_by


async def _ask(agent: Any, message: Any, session: Session) -> Any:
    result = await agent.run(message, message_history=session.get(KEPT))
    session[KEPT] = result.all_messages()
    return result.output


class PydanticAI(Framework):
    """Agents of pydantic-ai."""

    package = "pydantic_ai"
    asks: ClassVar = {("pydantic_ai", "AbstractAgent"): _ask}

    def agents(self, value: Any) -> Iterable[tuple[str, Any]]:
        """Yield an agent, and those that its tool and output functions hand work to."""
        return _reached(value, set())

    def texts(self, agents: dict[str, Any]) -> dict[str, Text]:
        """Return the plain-text instructions and descriptions of agents and their tools."""
        texts: dict[str, Text] = {}
        tools: dict[str, list[Any]] = {}
        for name, agent in agents.items():
            instructions = _instructions(agent)
            if instructions is not None:
                texts[f"agent:{name}"] = instructions
            if isinstance(agent.description, str):
                texts[f"description:{name}"] = attribute([agent], "description")
            for tool in _tools(agent):
                tools.setdefault(tool.name, []).append(tool)
        for name, same in tools.items():
            if isinstance(same[0].description, str):
                texts[f"tool:{name}"] = attribute(same, "description")
        return texts

    async def go_on(self, agent: Any, messages: Sequence[Message], session: Session) -> Any:
        """Run the agent after earlier messages, with its own system prompt before them."""
        from .pydantic_ai_stand_in import go_on

        result = await go_on(agent, messages)
        session[KEPT] = result.all_messages()
        return result.output

    def stand_in(self) -> None:
        """Add a capability that asks stand-ins first to all agent runs from now on."""
        try:
            from .pydantic_ai_stand_in import switch_on

            switch_on()
        except (ImportError, AttributeError) as error:
            raise ProviderError(
                "stand-ins cannot answer for the tools of this version of `pydantic_ai` "
                f"({error}), so nothing was run: 2.68 is known to work"
            ) from error


def _reached(value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if not is_a(value, "pydantic_ai", "AbstractAgent") or id(value) in seen:
        return
    seen.add(id(value))
    if value.name is not None:
        yield value.name, value
    stated = value.output_type
    functions = [tool.function for tool in _tools(value)]
    functions += stated if isinstance(stated, list | tuple) else [stated]
    for function in functions:
        for agent in agents_used_by(function, _name).values():
            yield from _reached(agent, seen)


def _name(value: Any) -> str | None:
    return value.name if is_a(value, "pydantic_ai", "AbstractAgent") else None


def _tools(agent: Any) -> list[Any]:
    """Return the function tools of an agent, from all of its toolsets."""
    leaves: list[Any] = []
    for toolset in agent.toolsets:
        toolset.apply(leaves.append)
    return [
        tool
        for leaf in leaves
        if is_a(leaf, "pydantic_ai", "FunctionToolset")
        for tool in leaf.tools.values()
    ]


# pydantic-ai has no public access to the instructions that an agent was made with.
# `override(instructions=...)` replaces them for a block, together with those that functions add. So
# this code reads and writes private fields of the agent.


def _instructions(agent: Any) -> Text | None:
    """Return the plain-text instructions of an agent, if there is exactly one such text.

    It is a system prompt or an instruction. Texts that functions return are added to it as before.
    """
    prompts = [each for each in getattr(agent, "_system_prompts", ()) if isinstance(each, str)]
    sourced = list(getattr(agent, "_instructions", ()))
    plain = [place for place, each in enumerate(sourced) if _plain(each) is not None]
    if len(prompts) + len(plain) != 1:
        return None

    def write(text: str) -> None:
        if prompts:
            agent._system_prompts = (text,)
            return
        before = agent._instructions[plain[0]]
        after = text if isinstance(before, str) else replace(before, instruction=text)
        agent._instructions[plain[0]] = after

    if prompts:
        return Text(lambda: agent._system_prompts[0], write)
    return Text(lambda: _plain(agent._instructions[plain[0]]) or "", write)


def _plain(sourced: Any) -> str | None:
    stated = getattr(sourced, "instruction", sourced)
    return stated if isinstance(stated, str) else None
