"""pydantic-ai: structured answers of agents, and calls that a person has to approve."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from baton.readers.otlp.attribute_values import parsed, text
from baton.readers.tool_definitions import tool_names

from .dialect import Dialect, Framework

# How the answer to a call ends that failed, had wrong arguments, or was of an unknown tool. Until
# version 0.4.2 nothing else shows the failure.
_RETRY = "\n\nFix the errors and try again."
NO_REASON = "ToolRetryError:"
"""The error of a tool's span: its reason is in the answer to the call."""


def answer_tools(parameters: Any) -> frozenset[str]:
    """Return the tools through which pydantic-ai lets a model return its structured answer."""
    return _answer_tools(parameters) if isinstance(parameters, str) else frozenset()


@lru_cache(maxsize=512)
def _answer_tools(parameters: str) -> frozenset[str]:
    value = parsed(parameters)
    tools = value.get("output_tools") if isinstance(value, dict) else None
    return frozenset(tool_names(tools) or ())


def is_deferred(answer: Any) -> bool:
    """Return whether an agent ended with calls that others approve or carry out.

    It then answers with ``DeferredToolRequests``, and its program runs it again with the results.
    """
    if not isinstance(answer, dict) or not {"calls", "approvals"} <= answer.keys():
        return False
    calls = [answer["calls"], answer["approvals"]]
    if not all(isinstance(listed, list) for listed in calls) or not any(calls):
        return False
    return all(isinstance(c, dict) and "tool_call_id" in c for listed in calls for c in listed)


def to_approve(answer: Any) -> frozenset[str]:
    """Return the ids of the calls that a person has to approve, not those that others carry out."""
    return frozenset(c["tool_call_id"] for c in answer["approvals"] if text(c["tool_call_id"]))


DIALECT = Dialect(
    name="pydantic-ai",
    scopes=("pydantic-ai",),
    refusals=("The tool call was denied.",),
    failures=(_RETRY,),
    framework=Framework(has_data=True),  # in `final_result`
)
