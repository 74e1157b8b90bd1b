"""CrewAI, AutoGen, and the Microsoft Agent Framework: played without stand-ins."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from baton.model import ProviderError

from .framework import KEPT, Framework, Session


async def _ask_crew(crew: Any, message: Any, session: Session) -> Any:  # noqa: ARG001 - no history
    names = sorted(crew.fetch_inputs())
    if len(names) != 1:
        listed = ", ".join(f"`{{{name}}}`" for name in names) or "no placeholder"
        raise ProviderError(
            f"the tasks of the crew have {listed}: give them one placeholder, or name a function "
            "that inserts the message"
        )
    result = await crew.kickoff_async(inputs={names[0]: message})
    return result.raw


async def _ask_team(team: Any, message: Any, session: Session) -> Any:
    if not session.get(KEPT):
        await team.reset()
        session[KEPT] = True
    return _last_of(await team.run(task=message))


async def _ask_agent(agent: Any, message: Any, session: Session) -> Any:
    if not session.get(KEPT):
        token = sys.modules["autogen_core"].CancellationToken()
        await agent.on_reset(token)
        session[KEPT] = True
    return _last_of(await agent.run(task=message))


def _last_of(result: Any) -> Any:
    return result.messages[-1].to_text() if result.messages else None


async def _ask_successor(agent: Any, message: Any, session: Session) -> Any:  # noqa: ARG001
    return (await agent.run(message)).text


class CrewAI(Framework):
    """Crews of CrewAI."""

    package = "crewai"
    asks: ClassVar = {("crewai", "Crew"): _ask_crew}


class AutoGen(Framework):
    """Teams and agents of AutoGen."""

    package = "autogen_agentchat"
    asks: ClassVar = {
        ("autogen_agentchat", "BaseGroupChat"): _ask_team,
        ("autogen_agentchat", "BaseChatAgent"): _ask_agent,
    }


class AgentFramework(Framework):
    """Agents of Microsoft's framework."""

    package = "agent_framework"
    asks: ClassVar = {("agent_framework", "BaseAgent"): _ask_successor}
