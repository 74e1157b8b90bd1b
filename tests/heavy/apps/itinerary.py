"""Agents that go where the message says: `search_agent > helper > response_agent`.

The module is beside the app folders, as `scripted_model.py` does.
"""

from __future__ import annotations

from typing import Any

from google.adk.agents import Agent
from scripted_model import Prompt, Script, ScriptedModel, call, say, transfer  # type: ignore[import-not-found]

ROUTES = {"book a flight to paris": ["flight_search_agent", "booking_agent"]}
ANSWERS = {"book a flight to paris": "I've booked your flight to Paris"}
SPECIALISTS = (
    "booking_agent",
    "completely_different",
    "flight_search_agent",
    "helper",
    "intent_classifier",
    "response_agent",
    "search_agent",
)


def search(query: str) -> dict[str, Any]:
    """Search for something."""
    return {"query": query, "hits": 1}


def script(name: str, searches: bool) -> Script:
    """Return what an agent does: use its tool, hand over to the next on the way, or answer."""

    def act(prompt: Prompt) -> list[Any]:
        if searches and "search" not in prompt.results:
            return [call("search", query="flights")]
        route = ROUTES.get(prompt.text) or prompt.text.split(" > ")
        opens = name == "router" and prompt.turns == 0
        place = 0 if opens or name not in route else route.index(name) + 1
        if place < len(route):
            return [transfer(route[place])]
        return [say(ANSWERS.get(prompt.text, f"{name} is done."))]

    return act


def team() -> Any:
    """Return a router with all specialists below it."""
    members = [
        Agent(
            name=name,
            model=ScriptedModel(script=script(name, searches=name.endswith("search_agent"))),
            description=f"Does what {name} does.",
            tools=[search] if name.endswith("search_agent") else [],
        )
        for name in SPECIALISTS
    ]
    return Agent(
        name="router",
        model=ScriptedModel(script=script("router", searches=False)),
        description="Sends everybody on their way.",
        sub_agents=members,
    )
