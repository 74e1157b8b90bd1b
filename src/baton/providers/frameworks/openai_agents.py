"""The Agents SDK of OpenAI."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from .base import KEPT, Framework, Session


async def _ask(agent: Any, message: Any, session: Session) -> Any:
    said = [*session.get(KEPT, ()), {"role": "user", "content": message}]
    result = await sys.modules["agents"].Runner.run(agent, said)
    session[KEPT] = result.to_input_list()
    return result.final_output


class OpenAIAgents(Framework):
    """Agents of OpenAI's SDK."""

    package = "agents"
    asks: ClassVar = {("agents", "AgentBase"): _ask}
