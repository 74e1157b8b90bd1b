"""A shop's desk: what it tells other agents depends on its prompt, which has a fault.

`baton replay` and `baton issues --prove` play it with another prompt, by the name `agent:desk`.
"""

from __future__ import annotations

import baton
from baton import prompts

DESK = "Hand refunds to refunds, in a few words. Hand parcels to shipping, with the whole message."


@baton.agent("refunds")
def refunds(task: str) -> str:
    """Pay money back."""
    return f"noted: {task}"


@baton.agent("shipping")
def shipping(task: str) -> str:
    """Say where a parcel is."""
    return f"noted: {task}"


@baton.agent("desk")
def desk(message: str) -> str:
    """Do what the prompt says of such messages; a model in three lines."""
    rules = prompts.get("agent:desk", DESK).split(". ")
    about, agent = ("refund", refunds) if "refund" in message.lower() else ("parcel", shipping)
    rule = next(rule for rule in rules if about in rule)
    few_words = " ".join(word for word in message.split() if not word.isdigit())
    return agent(message if "whole message" in rule else few_words)
