"""CrewAI."""

from __future__ import annotations

from typing import Any, ClassVar

from baton.model import ProviderError

from .base import Framework, Session


async def _ask(crew: Any, message: Any, session: Session) -> Any:  # noqa: ARG001 - no history
    names = sorted(crew.fetch_inputs())
    if len(names) != 1:
        listed = ", ".join(f"`{{{name}}}`" for name in names) or "no placeholder"
        raise ProviderError(
            f"the tasks of the crew hold {listed}: name a function that says where the message "
            "goes, or let them hold one placeholder"
        )
    result = await crew.kickoff_async(inputs={names[0]: message})
    return result.raw


class CrewAI(Framework):
    """Crews of CrewAI."""

    package = "crewai"
    asks: ClassVar = {("crewai", "Crew"): _ask}
