"""What frameworks answer for a tool when a person did not allow its call, or has yet to.

OpenAI Agents, pydantic-ai, Microsoft Agent Framework, Google ADK and LangChain, in this order;
programs may choose other words, which are no refusal to us.
"""

from __future__ import annotations

from typing import Literal

_REFUSED = (
    "Tool execution was not approved.",
    "The tool call was denied.",
    "Error: Tool call invocation was rejected by user.",
    "This tool call is rejected.",
    "User rejected the tool call for `",
)
_ASKED = ("This tool call requires confirmation, please approve or reject.",)


def decision(answer: str) -> Literal["refused", "waiting"] | None:
    """Tell what a person decided on a call by the answer to it; ``None`` when nobody was asked."""
    if answer.startswith(_REFUSED):
        return "refused"
    return "waiting" if answer.startswith(_ASKED) else None
