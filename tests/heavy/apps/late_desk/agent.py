"""A desk whose courier answers after every time-out: a busy machine does not make others as late."""

from __future__ import annotations

from google.adk.agents import Agent
from google.genai import types
from scripted_model import (  # type: ignore[import-not-found]
    Prompt,
    ScriptedModel,
    say,
    transfer,
)


def route(prompt: Prompt) -> list[types.Part]:
    """Send a customer who wants a courier to him."""
    return [transfer("courier_agent") if "courier" in prompt.text else say("Hello!")]


courier_agent = Agent(
    name="courier_agent",
    model=ScriptedModel(script=lambda _: [say("A courier will be with you.")], delay=300.0),
    description="Sends couriers, minutes later.",
)
root_agent = Agent(
    name="late_router",
    model=ScriptedModel(script=route),
    description="Sends each customer to the right specialist.",
    sub_agents=[courier_agent],
)
