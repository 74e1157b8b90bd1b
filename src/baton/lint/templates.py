"""Variables of an instruction, as Google ADK fills them in from the session's state."""

from __future__ import annotations

import re

_BRACES = re.compile(r"{+[^{}]*}+")
_PREFIXES = ("app", "user", "temp")


def variables(instruction: str) -> list[str]:
    """Return the names that have to be in the state, in order of appearance.

    ``{name?}`` may be missing, ``{artifact.name}`` is no state, and what is no name (or has
    another prefix than ``app:``, ``user:`` and ``temp:``) stays as it is.
    """
    names = (
        match.group().lstrip("{").rstrip("}").strip() for match in _BRACES.finditer(instruction)
    )
    return list(dict.fromkeys(name for name in names if _is_state(name)))


def _is_state(name: str) -> bool:
    prefix, colon, rest = name.rpartition(":")
    return rest.isidentifier() and (not colon or prefix in _PREFIXES)
