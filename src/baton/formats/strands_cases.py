"""Cases of the Strands evaluation SDK, and test cases of AWS's agentic-chatbot accelerator.

Both are lists of the same objects; an experiment of the SDK has them under ``cases``, beside its
``evaluators``. The accelerator adds ``state``, and writes ``messages`` as one text.
"""

from __future__ import annotations

from typing import Any

import msgspec

CASE_KEYS = frozenset(
    {
        "name",
        "session_id",
        "expected_output",
        "expected_assertion",
        "expected_trajectory",
        "expected_interactions",
        "expected_environment_state",
    }
)
"""Beside ``input``, one of these makes an object a case; ``actual_output`` makes it a result."""


class ExpectedInteraction(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A visit of a node, the nodes it follows, and what it says."""

    node_name: str
    dependencies: list[str] | None = None
    messages: str | list[Any] | None = None


class EnvironmentState(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A named state of what agents work on."""

    name: str
    state: Any = None


class StrandsCase(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A case. ``state`` is an object, or one as JSON text; the session id is that of one run."""

    input: Any
    name: str | None = None
    session_id: str | None = None
    expected_output: Any = None
    expected_assertion: str | None = None
    expected_trajectory: list[Any] | dict[str, Any] | None = None
    expected_interactions: list[ExpectedInteraction] | None = None
    expected_environment_state: list[EnvironmentState] | None = None
    state: dict[str, Any] | str | None = None
    metadata: dict[str, Any] | None = None
