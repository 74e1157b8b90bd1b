"""One agent that switches devices."""

from __future__ import annotations

import re
from typing import Any

from google.adk.agents import Agent
from scripted_model import Prompt, ScriptedModel, call, say  # type: ignore[import-not-found]


def set_device_info(location: str, device_id: str, status: str) -> dict[str, Any]:
    """Switch a device."""
    return {"location": location, "device_id": device_id, "status": status}


def act(prompt: Prompt) -> list[Any]:
    """Switch what the message names, then say so."""
    found = re.search(r"turn (on|off) (\w+) in the (\w+)", prompt.text)
    if found is None:
        return [say("I can turn devices on and off.")]
    if prompt.results:
        return [say(f"I have set the {found[2]} status to {found[1]}.")]
    where, what = found[3].capitalize(), found[1].upper()
    return [call("set_device_info", location=where, device_id=found[2], status=what)]


root_agent = Agent(
    name="home_automation_agent",
    model=ScriptedModel(script=act),
    description="Switches devices.",
    tools=[set_device_info],
)
