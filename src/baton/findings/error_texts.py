"""Texts that report an error, by the conventions that programs follow."""

from __future__ import annotations

import json
import re
from typing import Any

from baton.formats.nesting import is_too_deep
from baton.model import Content

_OF_RUNTIMES = re.compile(
    r"""(?:
        API\ Error (?:\ \d{3})? \s* :
        | Error\ (?:executing|running|calling|invoking)\ (?:tool|agent)\b
        | Agent\ error:
        | <tool_use_error>
    )""",
    re.VERBOSE,
)
_OF_PROGRAMS = re.compile(
    r"""(?:
        (?:ERROR|Error) (?:\ \d{3})? \s* :
            (?!\s*(?:none|nothing|0|no(?:\ errors?)?(?:\ found)?)\W*\Z)
        | (?:[A-Za-z_][\w.]*\.)? [A-Z]\w*(?:Error|Exception) (?:\(['"]|:\s)
        | Traceback\ \(most\ recent\ call\ last\):
    )""",
    re.VERBOSE,
)
_ABOUT_ERRORS = re.compile(
    r"error|exception|traceback|fail|crash|bug|\blogs?\b|broken|wrong", re.IGNORECASE
)
# An answer about an error has more to say than the error's own words.
_LONGEST = 600
_STATES = ("error", "failed", "failure")
_BESIDE_ERROR = frozenset(
    {"error", "errors", "status", "code", "message", "type", "detail", "details", "success", "ok"}
)


def error_in(content: Content | None, asked: Content | None = None) -> str | None:
    """Return the error that an answer consists of; ``None`` where it says anything else.

    A text counts when it opens as runtimes report errors (``API Error: ``, ``Error executing
    tool``), or as programs do (``Error: ``, ``ValueError: ``, a traceback) unless what was
    ``asked`` is about errors itself. It is no longer than 600 characters, tracebacks apart.
    JSON counts when it is an object with an ``error``, or a ``status`` that is ``error``, and
    nothing beside it but what comes with one.
    """
    if content is None:
        return None
    text = (content.text or "").strip()
    data = _object(text) if text else content.data
    if data is not None:
        return _quote(data)
    if len(text) > _LONGEST and not text.startswith("Traceback"):
        return None
    if _OF_RUNTIMES.match(text):
        return text
    if asked is not None and _ABOUT_ERRORS.search(asked.plain()):
        return None
    return text if _OF_PROGRAMS.match(text) else None


def _object(text: str) -> Any:
    if not (text.startswith("{") and text.endswith("}")) or is_too_deep(text.encode()):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _quote(data: Any) -> str | None:
    if not isinstance(data, dict) or not _BESIDE_ERROR.issuperset(data):
        return None
    failed = data.get("error") or data.get("errors")
    if not failed and data.get("status") not in _STATES:
        return None
    return json.dumps(data, ensure_ascii=False)
