"""An app of ADK in a few words; it is read, and never run."""

from google.adk.agents import Agent
from google.adk.apps import App

INSTRUCTION = """You help {customer}. Orders are {open?} in number; answer as {"json": true}."""


def note_seen(callback_context):
    """Start with nothing seen."""
    callback_context.state.setdefault("seen", [])


mail_agent = Agent(name="mail_agent", instruction="You write mails, about {seen}.")
root_agent = Agent(
    name="desk_agent",
    instruction=INSTRUCTION,
    sub_agents=[mail_agent],
    before_agent_callback=note_seen,
)
app = App(name="desk", root_agent=root_agent)
