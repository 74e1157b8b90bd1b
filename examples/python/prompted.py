"""A desk whose instructions can be changed from outside; a model in a few lines obeys them.

`baton components examples/python/prompted.py:desk` lists the texts. `baton eval` and
`baton replay` play with another one by `--with agent:desk=new.md`.
"""

from __future__ import annotations

from typing import Any

import baton
from baton import prompts

DESK = "Hand refunds to billing. Hand parcels to shipping."


@baton.tool
def look_up(order: str) -> dict[str, Any]:
    """Return what is known of an order."""
    return {"order": order, "total": 40}


@baton.tool
def pay_back(order: str, amount: int) -> str:
    """Pay money back; a replay does not run this."""
    return f"paid back {amount} for order {order}"


@baton.agent("refunds")
def refunds(task: str) -> str:
    """Look the order up and pay back what it cost."""
    order = look_up(task.rsplit(maxsplit=1)[-1])
    return pay_back(order["order"], order["total"])


@baton.agent("billing")
def billing(task: str) -> str:
    """Send an invoice."""
    return f"an invoice was sent for: {task}"


@baton.agent("shipping")
def shipping(task: str) -> str:
    """Say where a parcel is."""
    return f"on its way: {task}"


AGENTS = {"refunds": refunds, "billing": billing, "shipping": shipping}


@baton.agent("desk")
def desk(message: str) -> str:
    """Hand the message to the agent that the instructions name for what it is about."""
    about = "refund" if "refund" in message.lower() else "parcel"
    rules = prompts.get("agent:desk", DESK).split(". ")
    rule = next(rule for rule in rules if about in rule)
    receiver = rule.rstrip(".").split()[-1]
    return f"{receiver}: {AGENTS[receiver](message)}"
