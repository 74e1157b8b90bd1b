"""Texts of a trace made fit for one line of a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from baton.model import Content
from baton.model.visible import folded_line

_NAMED = 5


def one_line(text: str, limit: int = 80) -> str:
    """Fold white space, show what is invisible as escapes, and cut to ``limit`` characters."""
    safe = folded_line(text)
    return safe if len(safe) <= limit else f"{safe[: limit - 1]}…"


def dispatches_of(scores: Iterable[dict[str, Any]]) -> str:
    """Name the dispatches that scores are about, as drawings of traces do; nothing for others."""
    about = [score.get("subject") for score in scores if score["unit"] == "dispatch"]
    names = list(dict.fromkeys(one_line(subject[0]) for subject in about if subject))
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}: "


def content_line(content: Content, limit: int = 80) -> str:
    """Show content in one line: its text, its data as JSON, or what is attached."""
    if content.text is not None:
        return f"“{one_line(content.text, limit)}”"
    if content.data is not None:
        return value_line(content.data, limit)
    parts = ", ".join(part.mime or part.type for part in content.parts or ())
    return one_line(parts, limit) or "nothing"


def value_line(value: Any, limit: int = 80) -> str:
    """Show plain data as JSON in one line."""
    return one_line(msgspec.json.encode(value).decode(), limit)


def arguments_line(arguments: Any, limit: int = 60) -> str:
    """Show the arguments of a call the way it would be written."""
    if arguments is None:
        return ""
    if not isinstance(arguments, dict):
        return value_line(arguments, limit)
    return one_line(
        ", ".join(f"{key}={value_line(item)}" for key, item in arguments.items()), limit
    )


def value_text(score: dict[str, Any]) -> str:
    """Show the value of a stored score and what it needs; nothing where there is no verdict."""
    if score["score"] is None:
        return ""
    needs = "" if score["threshold"] is None else f", needs {score['threshold']:.2f}"
    return f" {score['score']:.2f}{needs}"
