"""A support desk in plain Python: a router and two specialists, each a function.

`baton eval examples/python/desk.py:answer examples/python/cases.yaml` plays the cases against it.
"""

from __future__ import annotations

from typing import Any

ORDERS = {"42": {"total": 19.99, "status": "delivered"}}
SKY = {"Oslo": "rain", "Zürich": "sun"}


def answer(message: str, session: dict[str, Any]) -> dict[str, Any]:
    """Hand the message to a specialist and say who did what."""
    agents, calls = ["router"], []
    specialist = route(message) or session.get("last", "")
    session["last"] = specialist
    if specialist == "billing":
        agents.append("billing")
        number = next((word for word in message.split() if word.strip(".") in ORDERS), "42")
        order_id = number.strip(".")
        arguments = {"order_id": order_id}
        calls.append({"name": "lookup_order", "arguments": arguments, "agent": "billing"})
        output = f"Order {order_id} cost ${ORDERS[order_id]['total']}; the refund is on its way."
    elif specialist == "weather":
        agents.append("weather")
        city = next((name for name in SKY if name in message), "Oslo")
        calls.append({"name": "get_weather", "arguments": {"city": city}, "agent": "weather"})
        output = f"In {city}: {SKY[city]}."
    else:
        output = "Hello! I can help with refunds and the weather."
    return {"output": output, "agents": agents, "tool_calls": calls}


def route(message: str) -> str | None:
    """Choose a specialist by what the message is about."""
    if "refund" in message:
        return "billing"
    return "weather" if "weather" in message else None
