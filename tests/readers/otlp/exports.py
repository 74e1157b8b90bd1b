"""The recordings that are OTLP exports in JSON, and their spans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Export = dict[str, Any]

DATA = Path(__file__).parents[2] / "data" / "otel"
# `delegate_bare` has only requests between agents, so it cannot be read.
FILES = sorted(
    file
    for file in DATA.rglob("*.json")
    if b'"resourceSpans"' in file.read_bytes()[:200_000] and file.stem != "delegate_bare"
)


def spans_of(export: Export) -> list[dict[str, Any]]:
    """Return all spans of an export."""
    scopes = [scoped for group in export["resourceSpans"] for scoped in group["scopeSpans"]]
    return [span for scoped in scopes for span in scoped.get("spans", ())]
