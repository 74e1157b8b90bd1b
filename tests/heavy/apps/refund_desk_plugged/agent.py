"""The refund desk as an app with Baton's plug-in, which takes orders."""

from __future__ import annotations

from google.adk.apps.app import App
from refund_desk.agent import desk  # type: ignore[import-not-found]

from baton.adk import Plugin

app = App(name="refund_desk_plugged", root_agent=desk(), plugins=[Plugin()])
