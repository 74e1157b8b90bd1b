"""Signing in: a key, or a link that works once, becomes a cookie that scripts cannot read.

The cookie is signed, and names the key by its number: nothing of the key is in it, and one that is
revoked opens nothing any more. Its name has the port, as browsers send cookies to all ports of a
machine. Where a server needs no key, the cookie is only what writes are checked by.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import time
from hashlib import sha256
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from baton.server.access import Caller, caller_of
from baton.server.api import ApiState

_LASTS = 30 * 86400.0
"""Seconds for which a cookie is valid."""


class Session(NamedTuple):
    """A browser. ``key`` is the number of the key it signed in with, if it did."""

    id: str
    key: int | None
    issued: float
    csrf: str
    new: bool


class _Signed(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    id: str
    key: int | None
    issued: float


class Sessions:
    """Reads and writes the cookies of browsers."""

    def __init__(self, state: ApiState) -> None:
        self._state = state
        self._secret = secrets.token_bytes(32)

    def visitor(self, request: Request) -> tuple[Session, Caller]:
        """Return the session of a request, and who asks.

        Raises:
            Denied: nobody who may.
        """
        session = self._read(request) or self._made(None)
        return session, caller_of(request, request.query_params.get("project"))

    def keep(self, request: Request, session: Session, response: Response) -> None:
        """Give a new session to the browser."""
        if session.new:
            signed = _Signed(session.id, session.key, session.issued)
            payload = base64.urlsafe_b64encode(msgspec.json.encode(signed)).decode().rstrip("=")
            response.set_cookie(
                _cookie(request),
                f"{payload}.{self._signature('cookie', payload)}",
                max_age=int(_LASTS),
                httponly=True,
                samesite="strict",
                secure=request.url.scheme == "https",
            )

    def _made(self, key: int | None) -> Session:
        id_ = secrets.token_urlsafe(16)
        return Session(id_, key, time.time(), self._signature("csrf", id_), new=True)

    def _read(self, request: Request) -> Session | None:
        payload, _, signature = request.cookies.get(_cookie(request), "").partition(".")
        if not hmac.compare_digest(signature, self._signature("cookie", payload)):
            return None
        packed = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        signed = msgspec.json.decode(packed, type=_Signed)
        if not 0 <= time.time() - signed.issued < _LASTS:
            return None
        csrf = self._signature("csrf", signed.id)
        return Session(signed.id, signed.key, signed.issued, csrf, new=False)

    def _signature(self, purpose: str, text: str) -> str:
        digest = hmac.new(self._secret, f"{purpose}\0{text}".encode(), sha256).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _cookie(request: Request) -> str:
    return f"baton_{request.scope['server'][1]}"
