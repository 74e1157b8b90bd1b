"""The mode_teller app; the ADK server looks for `agent.root_agent` here."""

from . import agent as agent
