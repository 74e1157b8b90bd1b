"""pydantic-ai."""

from __future__ import annotations

from typing import Any, ClassVar

from .base import KEPT, Framework, Session


async def _ask(agent: Any, message: Any, session: Session) -> Any:
    result = await agent.run(message, message_history=session.get(KEPT))
    session[KEPT] = result.all_messages()
    return result.output


class PydanticAI(Framework):
    """Agents of pydantic-ai."""

    package = "pydantic_ai"
    asks: ClassVar = {("pydantic_ai", "AbstractAgent"): _ask}
