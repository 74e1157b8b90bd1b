"""A support desk: a router, two specialists and an inner expert, with scripted answers.

What the customer writes decides what happens; see `examples/adk/README.md` for the messages.
One fault is built in on purpose: the router sends everything that mentions the weather to the
weather agent, so the "invoice for the weather station" reaches the wrong specialist.
"""

from __future__ import annotations

from typing import Any

from google.adk.agents import Agent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types
from scripted_model import Prompt, ScriptedModel, call, say, think, transfer

WEATHER = {
    "Zürich": {"temp_c": 21, "sky": "sunny"},
    "Oslo": {"temp_c": 9, "sky": "rain"},
}


def lookup_order(order_id: str) -> dict[str, Any]:
    """Look up an order."""
    return {"order_id": order_id, "total": 19.99, "currency": "USD"}


def issue_refund(order_id: str, amount: dict[str, Any]) -> dict[str, Any]:
    """Refund an order."""
    return {"refund_id": "R-1001", "order_id": order_id, "amount": amount, "status": "issued"}


def ask_manager_approval(order_id: str, reason: str) -> None:
    """Ask a manager for approval. The answer comes later, from a person."""


def request_parcel_trace(order_id: str) -> dict[str, Any]:
    """Ask the carrier to trace a parcel. The carrier answers later."""
    return {"status": "pending", "ticket": f"T-{order_id}"}


def close_account(customer_id: str) -> dict[str, Any]:
    """Close a customer's account. Runs only after a person has confirmed it."""
    return {"customer_id": customer_id, "status": "closed"}


def get_weather(city: str) -> dict[str, Any]:
    """Weather for a city."""
    return WEATHER.get(city, {"error": f"no station in {city}"})


def search_policy(topic: str) -> dict[str, Any]:
    """Search the policy handbook."""
    return {"topic": topic, "section": "4.2", "text": "Damaged goods are refunded in 30 days."}


def route(prompt: Prompt) -> list[types.Part]:
    """The router's script."""
    if "weather" in prompt.text:  # the built-in fault: also matches "weather station"
        return [transfer("weather_agent")]
    if "ghost" in prompt.text:
        return [say("Connecting you."), transfer("ghost_agent")]
    if any(word in prompt.text for word in ("refund", "invoice", "order", "account")):
        return [say("Routing you to billing."), transfer("billing_agent")]
    if "boom" in prompt.text:
        raise RuntimeError("scripted model failure")
    return [say("Hello! I can help with billing and weather questions.")]


def bill(prompt: Prompt) -> list[types.Part]:
    """The billing agent's script: first act on a tool's result, else on the message."""
    if prompt.results:
        return _after_tool(prompt)
    if "boom" in prompt.text:
        raise RuntimeError("scripted model failure")
    if "policy" in prompt.text:
        return [call("policy_expert", request="When are damaged goods refunded?")]
    if "manager" in prompt.text:
        args = {"order_id": "77", "reason": "above the refund limit"}
        return [say("I am asking a manager."), call("ask_manager_approval", **args)]
    if "trace" in prompt.text:
        return [call("request_parcel_trace", order_id="42")]
    if "account" in prompt.text:
        return [call("close_account", customer_id="C-7")]
    if "why" in prompt.text:
        return [think("I need the order before I can explain it."), _lookup()]
    return [_lookup()]


def _lookup() -> types.Part:
    return call("lookup_order", order_id="42")


def _after_tool(prompt: Prompt) -> list[types.Part]:
    """What the billing agent does once a tool has answered."""
    results = prompt.results
    if "issue_refund" in results:
        return [say("Refund R-1001 for order 42 has been issued.")]
    if "policy_expert" in results:
        return [say("Our policy (section 4.2): damaged goods are refunded within 30 days.")]
    if "ask_manager_approval" in results:
        approved = results["ask_manager_approval"].get("approved")
        return [say(f"The manager {'approved' if approved else 'declined'} your refund.")]
    if "request_parcel_trace" in results:
        if results["request_parcel_trace"].get("status") == "pending":
            return [say("The carrier is tracing your parcel; ticket T-42 is pending.")]
        return [say("The carrier found your parcel.")]
    if "close_account" in results:
        if results["close_account"].get("status") == "closed":
            return [say("Your account C-7 is closed.")]
        return [say("Your account stays as it is until you confirm.")]
    if "refund" in prompt.text:
        amount = {"value": 19.99, "currency": "USD"}
        return [call("issue_refund", order_id="42", amount=amount)]
    if "why" in prompt.text:
        return [
            think("One order over 19.99 USD; nothing was charged twice."),
            say("You were charged $19.99 once, for order 42."),
        ]
    return [say("Order 42 was invoiced for $19.99.")]


def forecast(prompt: Prompt) -> list[types.Part]:
    """The weather agent's script; it hands refunds back to the router."""
    if "get_weather" in prompt.results:
        if "station" in prompt.text:
            return [say("The weather station in Oslo reports 9 degrees and rain.")]
        return [say("It is 21 degrees and sunny in Zürich, 9 degrees and rainy in Oslo.")]
    if "refund" in prompt.text:
        return [transfer("support_router")]
    if "station" in prompt.text:
        return [call("get_weather", city="Oslo")]
    return [call("get_weather", city="Zürich"), call("get_weather", city="Oslo")]


def advise(prompt: Prompt) -> list[types.Part]:
    """The policy expert's script."""
    if "search_policy" in prompt.results:
        return [say("Section 4.2: damaged goods are refunded within 30 days.")]
    return [call("search_policy", topic="damaged goods")]


policy_expert = Agent(
    name="policy_expert",
    model=ScriptedModel(script=advise),
    description="Knows the policy handbook.",
    instruction="Answer from the policy handbook.",
    tools=[search_policy],
)
billing_agent = Agent(
    name="billing_agent",
    model=ScriptedModel(script=bill),
    description="Handles invoices, refunds and accounts.",
    instruction="You handle billing.",
    tools=[
        lookup_order,
        issue_refund,
        LongRunningFunctionTool(ask_manager_approval),
        LongRunningFunctionTool(request_parcel_trace),
        FunctionTool(close_account, require_confirmation=True),
        AgentTool(policy_expert),
    ],
)
weather_agent = Agent(
    name="weather_agent",
    model=ScriptedModel(script=forecast),
    description="Answers weather questions.",
    instruction="You handle the weather.",
    tools=[get_weather],
)
root_agent = Agent(
    name="support_router",
    model=ScriptedModel(script=route),
    description="Sends each customer to the right specialist.",
    instruction="Route to the right specialist.",
    sub_agents=[billing_agent, weather_agent],
)
