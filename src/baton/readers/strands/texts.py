"""Messages of Strands as content."""

from __future__ import annotations

from typing import Any

from baton.formats.strands import Span
from baton.model import Content


def answer_content(agent: Span) -> Content | None:
    """Return the answer of an agent in a session, without the line break that ends it in print."""
    return Content(text=agent.agent_response.removesuffix("\n")) if agent.agent_response else None


def blocks_content(blocks: Any) -> Content | None:
    """Return the texts of content blocks, a line each as Strands prints them; else ``None``."""
    if not isinstance(blocks, list):
        return None
    texts = [text for block in blocks for text in _texts(block)]
    return Content(text="\n".join(texts)) if texts else None


def _texts(block: Any) -> list[str]:
    if not isinstance(block, dict):
        return []
    if isinstance(block.get("text"), str):
        return [block["text"]]
    cited = block.get("citationsContent")
    inner = cited.get("content") if isinstance(cited, dict) else None
    return [text for each in inner for text in _texts(each)] if isinstance(inner, list) else []
