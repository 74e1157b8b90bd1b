"""A parcel desk where things go wrong: a tool that fails, a tool that raises, a slow agent.

What the customer writes decides what happens; see `examples/adk/README.md` for the messages.
"""

from __future__ import annotations

from typing import Any

from google.adk.agents import Agent
from google.genai import types
from scripted_model import Prompt, ScriptedModel, call, say, transfer

SLOW = 2.0  # seconds that the courier needs for an answer


def track_parcel(parcel_id: str) -> dict[str, Any]:
    """Ask the carrier where a parcel is; it does not know every parcel."""
    if parcel_id == "P-7":
        return {"parcel_id": parcel_id, "place": "depot"}
    return {"error": f"the carrier knows no parcel {parcel_id}"}


def reroute_parcel(parcel_id: str) -> dict[str, Any]:
    """Send a parcel elsewhere. The carrier's service is down, so this always raises."""
    raise ConnectionError(f"the carrier did not answer for {parcel_id}")


def route(prompt: Prompt) -> list[types.Part]:
    """The router's script."""
    if "courier" in prompt.text:
        return [transfer("courier_agent")]
    if "parcel" in prompt.text:
        return [transfer("tracking_agent")]
    return [say("Hello! I can help with parcels.")]


def track(prompt: Prompt) -> list[types.Part]:
    """The tracking agent's script: it says so when the carrier does not know the parcel."""
    if "track_parcel" in prompt.results:
        found = prompt.results["track_parcel"]
        if "error" in found:
            return [say("I am sorry, the carrier does not know this parcel.")]
        return [say(f"Your parcel is at the {found['place']}.")]
    if "reroute" in prompt.text:
        return [call("reroute_parcel", parcel_id="P-7")]
    return [call("track_parcel", parcel_id="P-7" if "p-7" in prompt.text else "P-0")]


def courier(prompt: Prompt) -> list[types.Part]:
    """The courier's script."""
    return [say("A courier will be with you at noon.")]


tracking_agent = Agent(
    name="tracking_agent",
    model=ScriptedModel(script=track),
    description="Finds and reroutes parcels.",
    instruction="You find parcels.",
    tools=[track_parcel, reroute_parcel],
)
courier_agent = Agent(
    name="courier_agent",
    model=ScriptedModel(script=courier, delay=SLOW),
    description="Sends couriers; slow.",
    instruction="You send couriers.",
)
root_agent = Agent(
    name="parcel_router",
    model=ScriptedModel(script=route),
    description="Sends each customer to the right specialist.",
    instruction="Route to the right specialist.",
    sub_agents=[tracking_agent, courier_agent],
)
