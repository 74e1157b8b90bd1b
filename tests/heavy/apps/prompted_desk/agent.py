"""The refund desk with its texts elsewhere: its agents ask for them while they run."""

from __future__ import annotations

from typing import Any

from google.adk.apps.app import App
from refund_desk.agent import desk  # type: ignore[import-not-found]

from baton import prompts
from baton.adk import Plugin

STORE = {"agent:desk": "Refunds go to billing.", "agent:billing": "Write."}
"""A store of prompts of the server's own."""


def told(name: str) -> Any:
    """Make an instruction: of the request's state, of Baton's prompts, or of the store."""

    def instruction(context: Any) -> str:
        of_request: dict[str, str] = context.state.get("prompts") or {}
        return of_request.get(name) or prompts.get(name, STORE[name])

    return instruction


root_agent = desk("desk", told("agent:desk"))
root_agent.sub_agents[0].instruction = told("agent:billing")
app = App(name="prompted_desk", root_agent=root_agent, plugins=[Plugin()])
