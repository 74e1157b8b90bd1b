"""Plain functions: agents and tools that are marked by ``baton.agent`` and ``baton.tool``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from baton.model import Message, ProviderError
from baton.providers.recorder import agent_name
from baton.providers.user_functions import call

from .framework import Framework, Session


class Functions(Framework):
    """Functions of the program that ``baton.agent`` names.

    Such an agent knows only what it is given. It gets the user's last message and repeats its work,
    and its tools are answered from the recording.
    """

    package = "baton"
    needs_tool = False

    def agents(self, value: Any) -> Iterable[tuple[str, Any]]:
        """Yield the function that is an agent."""
        name = agent_name(value)
        return [(name, value)] if name is not None else []

    async def go_on(
        self,
        agent: Any,
        messages: Sequence[Message],
        session: Session,  # noqa: ARG002
    ) -> Any:
        """Call the function with the user's last message."""
        texts = [each.text for each in messages if each.role == "user" and each.text]
        if not texts:
            raise ProviderError("the case has no message of the user for the agent")
        return await call(agent, texts[-1])

    def stand_in(self) -> None:
        """Do nothing: marked functions ask for stand-ins themselves."""
