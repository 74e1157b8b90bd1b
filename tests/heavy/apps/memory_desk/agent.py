"""An agent that repeats what it was told before in its session."""

from __future__ import annotations

from typing import Any

from google.adk.agents import Agent
from google.genai import types
from scripted_model import ScriptedModel, say  # type: ignore[import-not-found]


def remember(callback_context: Any) -> types.Content:
    """Answer before the model is asked."""
    told = [
        part.text
        for event in callback_context.session.events
        if event.author == "user" and event.invocation_id != callback_context.invocation_id
        for part in (event.content.parts if event.content else None) or ()
    ]
    said = f"Before you said: {'; '.join(told) or 'nothing'}"
    return types.Content(role="model", parts=[say(said)])


root_agent = Agent(
    name="memory_desk",
    model=ScriptedModel(script=lambda _: []),
    description="Remembers what it was told.",
    before_agent_callback=remember,
)
