"""Microsoft Agent Framework."""

from __future__ import annotations

from typing import Any, ClassVar

from .base import Framework, Session


async def _ask(agent: Any, message: Any, session: Session) -> Any:  # noqa: ARG001
    return (await agent.run(message)).text


class AgentFramework(Framework):
    """Agents of Microsoft's framework."""

    package = "agent_framework"
    asks: ClassVar = {("agent_framework", "BaseAgent"): _ask}
