"""Addresses of servers, and what these say when they refuse: for all that talks to a store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from baton.model import InputError

LONGEST_WAIT = 120.0  # seconds that a server may ask to wait
_SAYING = ("message", "detail", "error")


def address(url: str, called: str, credentials_by: str) -> str:
    """Return an address without a slash at its end.

    ``called`` is how messages call it, ``credentials_by`` how credentials are to be given.

    Raises:
        InputError: it is none, or holds credentials.
    """
    text = url.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError as error:
        raise InputError(f"{called} is no address: {error}") from None
    if parts.username or parts.password:
        raise InputError(f"{called} holds credentials; give them by {credentials_by}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{called} is no address: `{text}`; write http://HOST:PORT")
    if parts.query or parts.fragment:
        raise InputError(f"{called} has a query or a fragment; give the address alone")
    return text


def retry_after(headers: Mapping[str, str]) -> bool | float:
    """Return the seconds to wait; true where nothing sensible is told, false for too many."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return True
    if not math.isfinite(seconds) or seconds < 0:
        return True
    return seconds if seconds <= LONGEST_WAIT else False


def said(body: bytes) -> str:
    """Take what an error says out of its body, a page apart; what cannot be printed is left out."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = "" if b"<" in body[:20] else body[:2000].decode(errors="replace")
        return _printed(text)
    if isinstance(value, dict):
        value = next((value[name] for name in _SAYING if value.get(name)), "")
    return _printed(value if isinstance(value, str) else str(value))


def tries(attempts: int) -> str:
    """Tell the attempts, when there were several."""
    return f" ({attempts} attempts)" if attempts > 1 else ""


def _printed(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
