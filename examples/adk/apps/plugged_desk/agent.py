"""The support desk with Baton's plug-in: cases with stand-ins may be played against the server.

The plug-in takes them only while the server's environment has `BATON_ADK_PLUGIN=on`.
"""

from google.adk.apps.app import App
from support_desk.agent import root_agent

from baton.adk import Plugin

app = App(name="plugged_desk", root_agent=root_agent, plugins=[Plugin()])
