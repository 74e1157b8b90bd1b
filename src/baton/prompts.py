"""Texts of a program that a replay may change: ``prompts.get("agent:refund", "You refund ...")``.

Outside of a replay the default is returned, and nothing else happens. A server may take changed
texts from the header of a request: ``with prompts.handed_over(request.headers.get(HEADER))``.
"""

from baton.components import HEADER, get, handed_over

__all__ = ["HEADER", "get", "handed_over"]
