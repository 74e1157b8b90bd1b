"""The plugged_desk app; the ADK server looks for `agent.app` here."""

from . import agent as agent
