"""The app; the ADK server looks for `agent.app` here."""

from . import agent as agent
