"""Sessions: a key, or a link that works once, becomes a cookie that scripts cannot read.

The cookie is signed with a secret of the store, and names the key by its number: it contains
nothing of the key, and after the key is revoked it is invalid. Its name contains the port, as
browsers send cookies to all ports of a machine. If a server needs no key, the cookie is only used
to check writes.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from baton.server.access import Access, Caller, Denied, caller_of, cookie_secret
from baton.server.store import Store

_LASTS = {"key": 30 * 86400.0, "link": 12 * 3600.0, "nobody": 30 * 86400.0}
"""Seconds for which a cookie is valid, by the way of signing in."""
_LINK_LASTS = 600.0
"""Seconds for which a link is valid: it is visible in a terminal, and maybe in a log."""
By = Literal["key", "link", "nobody"]


class Session(NamedTuple):
    """A browser, and how it signed in. ``key`` is the number of its key."""

    id: str
    by: By
    key: int
    issued: float
    csrf: str
    new: bool

    @property
    def signed_in(self) -> bool:
        """Whether a key or a link was given."""
        return self.by != "nobody"


class _Signed(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    id: str
    by: By
    key: int
    issued: float


class Sessions:
    """Reads and writes the cookies of browsers. May be used by several threads."""

    def __init__(
        self, store: Store, access: Access, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._access = access
        self._clock = clock
        self._secret = cookie_secret(store)
        self._links: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def visitor(self, request: Request) -> tuple[Session, Caller]:
        """Return the session of a request, and its caller.

        Raises:
            Denied: the caller has no access.
        """
        wanted = request.query_params.get("project")
        session = self.session(request)
        if "authorization" in request.headers or "x-api-key" in request.headers:
            return session, caller_of(request, wanted)
        if session.by == "key":
            return session, self._access.by_number(session.key, wanted)
        if session.by == "link":
            return session, self._access.owner(wanted)
        return session, caller_of(request, wanted)

    def session(self, request: Request) -> Session:
        """Return the session of a request, or a new one if it has no valid session."""
        payload, _, signature = request.cookies.get(_cookie(request), "").partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature("cookie", payload).encode()):
            return self._made("nobody")
        packed = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        signed = msgspec.json.decode(packed, type=_Signed)
        if not 0 <= time.time() - signed.issued < _LASTS[signed.by]:
            return self._made("nobody")
        csrf = self._signature("csrf", signed.id)
        return Session(signed.id, signed.by, signed.key, signed.issued, csrf, new=False)

    def sign_in(self, key: str) -> Session:
        """Return the session of the holder of a key.

        Raises:
            Denied: 401 if it is not valid.
        """
        return self._made("key", self._access.key_number(key.strip()))

    def link_token(self) -> str:
        """Return a token that grants all rights to the first user who presents it."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._links[sha256(token.encode()).digest()] = self._clock()
        return token

    def use_link(self, token: str) -> Session:
        """Return the session of the holder of a link.

        Raises:
            Denied: 401 if it was used, is too old, or never existed.
        """
        with self._lock:
            made = self._links.pop(sha256(token.encode()).digest(), None)
        if made is None or self._clock() - made > _LINK_LASTS:
            raise Denied(
                401,
                "this link was used before, or is too old: it works once, for ten minutes",
                "sign in with a key, or restart the server for another link",
            )
        return self._made("link")

    def signed_out(self) -> Session:
        """Return a session of nobody."""
        return self._made("nobody")

    def keep(self, request: Request, session: Session, response: Response) -> None:
        """Give a new session to the browser."""
        if not session.new:
            return
        signed = _Signed(session.id, session.by, session.key, session.issued)
        payload = base64.urlsafe_b64encode(msgspec.json.encode(signed)).decode().rstrip("=")
        response.set_cookie(
            _cookie(request),
            f"{payload}.{self._signature('cookie', payload)}",
            max_age=int(_LASTS[session.by]),
            httponly=True,
            samesite="strict",
            # A proxy with TLS states this; trusting it from anyone only makes a cookie stricter.
            secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto")),
        )

    def _made(self, by: By, key: int = 0) -> Session:
        id_ = secrets.token_urlsafe(16)
        return Session(id_, by, key, time.time(), self._signature("csrf", id_), new=True)

    def _signature(self, purpose: str, text: str) -> str:
        digest = hmac.new(self._secret, f"{purpose}\0{text}".encode(), sha256).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _cookie(request: Request) -> str:
    return f"baton_{request.scope['server'][1]}"
