"""What is sent to a model for a request: our instructions, the rule of the fence, the material."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from baton.model import JudgeRequest

from .fence import RULE, canary, ensured

_CANARY = "The word {} is ours, and never part of an answer."
_AGAIN = (
    "An earlier answer to this could not be used: {}. "
    "Answer again, with one JSON object of the schema and nothing else."
)
_BYTES_PER_TOKEN = 4
USUAL_OUTPUT = 150
"""Tokens that a verdict with its reason takes, about; for estimates."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it is sent; an answer with the ``canary`` in it was led by the material."""

    instructions: str
    content: str
    schema: Mapping[str, Any]
    canary: str

    @property
    def tokens(self) -> int:
        """About how many tokens it has: one for four bytes."""
        schema = len(msgspec.json.encode(self.schema))
        letters = len(self.instructions.encode()) + len(self.content.encode()) + schema
        return letters // _BYTES_PER_TOKEN + 1


def prompt_for(request: JudgeRequest, complaint: str | None = None) -> Prompt:
    """Return the prompt for a request; ``complaint`` says why an answer could not be used."""
    content = ensured(request.content)
    word = canary(content)
    parts = [request.instructions, RULE, _CANARY.format(word)]
    if complaint is not None:
        parts.append(_AGAIN.format(complaint))
    return Prompt(
        instructions="\n\n".join(parts), content=content, schema=request.schema, canary=word
    )
