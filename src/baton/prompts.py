"""Texts of a program that a replay may change: ``prompts.get("agent:refund", "You refund ...")``.

Outside of a replay the default is returned, and nothing else happens.
"""

from baton.components import get

__all__ = ["get"]
