"""The desk `wrong_transfer` as an app with Baton's plug-in, which takes orders."""

from __future__ import annotations

from google.adk.apps.app import App
from refund_desk.agent import wrong_transfer  # type: ignore[import-not-found]

from baton.adk import Plugin

app = App(name="wrong_transfer_plugged", root_agent=wrong_transfer, plugins=[Plugin()])
