"""Comparing names of agents, which tools spell in their own way."""

from __future__ import annotations

import re
from functools import lru_cache

_OTHER = re.compile(r"[\W_]+")


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """Return a name without case and separators: ``Refund Agent`` is ``refund_agent``."""
    return _OTHER.sub("", name.casefold())


def name_key(name: str) -> str:
    """Return what names of the same agent, and only these, have in common."""
    return plain_name(name) or name


def same_name(one: str | None, other: str | None) -> bool:
    """Tell whether two names are of the same agent."""
    if one is None or other is None:
        return False
    return one == other or plain_name(one) == plain_name(other) != ""
