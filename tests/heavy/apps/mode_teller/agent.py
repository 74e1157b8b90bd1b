"""An agent that says in which way it was asked to answer."""

from __future__ import annotations

from typing import Any

from google.adk.agents import Agent
from google.genai import types
from scripted_model import ScriptedModel, say  # type: ignore[import-not-found]


def tell(callback_context: Any) -> types.Content:
    """Answer before the model is asked."""
    mode = callback_context.run_config.streaming_mode.name
    return types.Content(role="model", parts=[say(f"streaming mode {mode}")])


root_agent = Agent(
    name="mode_teller",
    model=ScriptedModel(script=lambda _: []),
    description="Tells its mode.",
    before_agent_callback=tell,
)
