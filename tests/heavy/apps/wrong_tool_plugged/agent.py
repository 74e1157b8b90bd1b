"""The desk `wrong_tool` as an app with Baton's plug-in, which takes orders."""

from __future__ import annotations

from google.adk.apps.app import App
from refund_desk.agent import wrong_tool  # type: ignore[import-not-found]

from baton.adk import Plugin

app = App(name="wrong_tool_plugged", root_agent=wrong_tool, plugins=[Plugin()])
