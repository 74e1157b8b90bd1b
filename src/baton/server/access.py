"""Access control: API keys of projects, identities from a proxy, hosts and origins.

A server without keys is only for this machine. After the first key, every request needs one,
wherever it comes from, unless a trusted proxy states the caller.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from typing import Literal, NamedTuple, get_args
from urllib.parse import urlsplit

import msgspec
from sqlalchemy import exists, insert, select, update
from sqlalchemy.exc import IntegrityError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from baton.model import InputError, Problem, suggestion

from .database import EVERY_PROJECT, Unavailable
from .schema import api_key, project, web_secret
from .store import DEFAULT, Store

Right = Literal["ingest", "read", "review", "run", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
"""To send spans; to read; to label; to start evaluations; all of these, and to manage."""
_INCLUDES: dict[str, frozenset[str]] = {
    "ingest": frozenset({"ingest"}),
    "read": frozenset({"read"}),
    "review": frozenset({"review", "read"}),
    "run": frozenset({"run", "read"}),
    "admin": frozenset(RIGHTS),
}
PROJECT_HEADER = "x-baton-project"
"""The header that names the project of a request without a key."""
_PREFIX = "baton_"
"""The prefix of keys, by which secret scanners recognise them."""
_FRESH = 5.0
"""Seconds for which a looked-up key is cached as valid, as every received request needs one. A key
that another process revoked is refused after that.
"""
_USED_STEP = 3600.0
"""The resolution of a key's last use, in seconds, so that not every request writes it."""
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class AccessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings for access without keys.

    ``hosts`` are the names it is called by, beside those of this machine and plain addresses.
    ``trusted_proxies`` are addresses or networks (``10.0.0.0/8``) whose ``identity_header`` is
    trusted; such callers have the ``identity_rights`` in every project.
    """

    hosts: list[str] = msgspec.field(default_factory=list)
    trusted_proxies: list[str] = msgspec.field(default_factory=list)
    identity_header: str = "X-Forwarded-User"
    identity_rights: list[Right] = msgspec.field(default_factory=lambda: ["read", "review"])


class Caller(NamedTuple):
    """The caller of a request, its project, and its rights.

    ``name`` is that of a key; or of a person, if a proxy reports it (``proxied``).
    """

    project: int
    name: str
    rights: frozenset[str]
    proxied: bool = False

    def need(self, right: Right) -> None:
        """Raise ``Denied`` (403) without the right."""
        if right not in self.rights:
            has = ", ".join(each for each in RIGHTS if each in self.rights) or "none"
            raise Denied(
                403,
                f"`{self.name}` has no right to {right} here (its rights: {has})",
                f"use a key that may: `baton serve keys create NAME --right {right}`",
            )


class Denied(HTTPException):
    """A refused request: ``detail`` says what is wrong, ``advice`` what to do."""

    def __init__(self, status: int, detail: str, advice: str) -> None:
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
        super().__init__(status, detail, headers)
        self.advice = advice

    def answer(self) -> JSONResponse:
        """Return it as an answer."""
        body = {"error": self.detail, "do": self.advice}
        return JSONResponse(body, self.status_code, self.headers)


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """An API key without its text, which is never stored. Times are in seconds since the epoch."""

    id: int
    project: str
    name: str
    rights: list[str]
    created: float
    used: float | None
    revoked: float | None


def create_key(
    store: Store, project_name: str, name: str, rights: Iterable[str], now: float | None = None
) -> str:
    """Make a key and return its text, which is not stored and cannot be shown again.

    Raises:
        InputError: no such project or right; or the project has a valid key of this name.
    """
    wanted = list(dict.fromkeys(rights))
    for right in wanted:
        if right not in RIGHTS:
            raise InputError(f"`{right}` is not a right; {suggestion(right, RIGHTS)}")
    if not wanted:
        raise InputError(f"a key needs a right: {', '.join(RIGHTS)}")
    if not name.strip() or len(name) > 200:
        raise InputError("the name of a key has 1 to 200 characters")
    number = store.project(project_name)
    text = _PREFIX + secrets.token_urlsafe(32)
    with store.write() as connection:
        valid = select(api_key.c.id).where(
            api_key.c.project == number, api_key.c.name == name, api_key.c.revoked.is_(None)
        )
        if connection.execute(valid).first() is not None:
            raise InputError(f"project `{project_name}` has a key `{name}`: revoke it first")
        row = {
            "project": number,
            "name": name,
            "sha256": _hash(text),
            "rights": ",".join(wanted),
            "created": time.time() if now is None else now,
        }
        connection.execute(insert(api_key).values(row))
    store.keys_changed += 1
    return text


def list_keys(store: Store, project_name: str | None = None) -> list[Key]:
    """Return the keys of a project, or of all projects, including revoked ones.

    Raises:
        InputError: no such project.
    """
    query = select(
        api_key.c.id,
        project.c.name.label("project"),
        api_key.c.name,
        api_key.c.rights,
        api_key.c.created,
        api_key.c.used,
        api_key.c.revoked,
    ).join(project, project.c.id == api_key.c.project)
    if project_name is not None:
        query = query.where(api_key.c.project == store.project(project_name))
    with store.read() as connection:
        rows = connection.execute(query.order_by(api_key.c.id), execution_options=EVERY_PROJECT)
        return [Key(**{**row, "rights": row["rights"].split(",")}) for row in rows.mappings()]


def revoke_key(store: Store, project_name: str, name: str, now: float | None = None) -> None:
    """Revoke a key permanently: at once in this process, after at most 5 s in others.

    Raises:
        InputError: the project has no valid key of this name.
    """
    number = store.project(project_name)
    with store.write() as connection:
        changed = connection.execute(
            update(api_key)
            .where(api_key.c.project == number, api_key.c.name == name)
            .where(api_key.c.revoked.is_(None))
            .values(revoked=time.time() if now is None else now)
        )
    store.keys_changed += 1
    if changed.rowcount == 0:
        names = {key.name for key in list_keys(store, project_name) if key.revoked is None}
        raise InputError(f"project `{project_name}` has no key `{name}`; {suggestion(name, names)}")


def cookie_secret(store: Store) -> bytes:
    """Return the secret for signing the pages' cookies; create it if there is none."""
    query = select(web_secret.c.value).where(web_secret.c.id == 1)
    with store.read() as connection:
        secret = connection.execute(query).scalar()
    if secret is None:
        try:
            with store.write() as connection:
                row = {"id": 1, "value": secrets.token_bytes(32)}
                connection.execute(insert(web_secret).values(row))
        except IntegrityError:  # another process made it meanwhile
            pass
        with store.read() as connection:
            secret = connection.execute(query).scalar_one()
    return bytes(secret)


class _Lookup(NamedTuple):
    """Whether there was a key at a lookup, with the number of changes and the time."""

    has_keys: bool
    changes: int
    at: float


class Access:
    """Identifies callers. One per process; thread-safe."""

    def __init__(
        self,
        store: Store,
        settings: AccessSettings | None = None,
        owner_right: Right = "admin",
    ) -> None:
        """``owner_right`` is the right of the person who starts the server.

        Raises:
            InputError: a trusted proxy is neither an address nor a network.
        """
        self._store = store
        self._owner_rights = _INCLUDES[owner_right]
        self.settings = settings or AccessSettings()
        self._proxies = [network_of(text) for text in self.settings.trusted_proxies]
        self._identity = self.settings.identity_header.lower()
        own = {*_LOCAL_NAMES, socket.gethostname()}
        self._hosts = {name.casefold() for name in (*own, *self.settings.hosts)}
        self._lock = threading.Lock()
        self._callers: dict[bytes | int, tuple[Caller, float]] = {}
        self._changes = 0  # of keys, over this store, when these were looked up
        self._keys = _Lookup(has_keys=False, changes=-1, at=0.0)

    def check_address(self, host: str) -> None:
        """Refuse to listen on an address that others can reach if no key is needed.

        Raises:
            InputError: the address is not of this machine alone, and there are no keys.
        """
        if not (host.casefold() == "localhost" or is_loopback(host) or self.has_keys()):
            raise InputError(
                Problem(
                    path="--host",
                    message=(
                        f"without API keys the server listens only on this machine, not on "
                        f"`{host}`; make a key first: baton serve keys create NAME --right ingest"
                    ),
                )
            )

    def check_source(self, headers: Mapping[str, str]) -> None:
        """Refuse requests that a page of another site made a browser send.

        Such a page may have a host name that resolves to this server (DNS rebinding): the ``Host``
        is then that name. Plain addresses cannot be redirected in this way.

        Raises:
            Denied: 403 for a foreign ``Origin``, 421 for another ``Host``.
        """
        host = headers.get("host", "")
        name = _host_name(host)
        if name is None or not (name in self._hosts or _address_of(name) is not None):
            raise Denied(
                421,
                f"this server is not called `{host[:200]}`",
                "name it in `hosts:` of server.yaml, or use its address",
            )
        origin = headers.get("origin")
        if origin is None:
            return
        try:
            parts = urlsplit(origin)
            port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
            same = (parts.hostname or "").casefold() == name
            # The port that the browser asked for; behind a proxy with TLS the scheme differs.
            own_port = urlsplit(f"//{host}").port
            same = same and (port == own_port or (own_port is None and port in (80, 443)))
        except ValueError:
            same = False
        if not same:
            raise Denied(
                403,
                f"pages of {origin[:200]} may not use this server",
                "send requests from a program, or from a page of this server",
            )

    def caller(
        self, headers: Mapping[str, str], peer: str | None, project_name: str | None = None
    ) -> Caller:
        """Return the caller.

        ``headers`` have names in lower case, ``peer`` is the address of the other end.
        ``project_name`` overrides the header ``X-Baton-Project``.

        Raises:
            Denied: 401 without a valid key where one is needed; 403 for another project than
                that of the key.
        """
        wanted = project_name or headers.get(PROJECT_HEADER)
        key = _key_of(headers)
        if key is not None:
            return self._in_project(self._by_key(key), wanted)
        proxied = peer is not None and _inside(peer, self._proxies)
        who = headers.get(self._identity) if proxied else None
        if who:
            rights = frozenset[str]().union(
                *(_INCLUDES[right] for right in self.settings.identity_rights)
            )
            return Caller(self._project(wanted or DEFAULT), who[:200], rights, proxied=True)
        # Revoking the last key does not open a server again: revoked keys count as well.
        if self.has_keys():
            raise Denied(
                401,
                "this server needs an API key",
                "send `Authorization: Bearer KEY`; `baton serve keys create NAME` makes one",
            )
        # A proxy on this machine has this machine's address, regardless of the original sender.
        if peer is None or not is_loopback(peer) or any(name in headers for name in _FORWARDED):
            raise Denied(
                401,
                "without API keys this server answers only this machine",
                "make a key with baton serve keys create NAME, or list the proxy in "
                "`trusted_proxies:` of server.yaml",
            )
        return self.owner(wanted)

    def key_number(self, text: str) -> int:
        """Return the number of a key, which can be stored to recognise the holder of the key.

        Raises:
            Denied: 401 for an invalid key.
        """
        self._by_key(text)
        query = select(api_key.c.id).where(api_key.c.sha256 == _hash(text))
        with self._store.read() as connection:
            return int(connection.execute(query, execution_options=EVERY_PROJECT).scalar_one())

    def by_number(self, number: int, project_name: str | None = None) -> Caller:
        """Return the caller with the key of this number, which was presented earlier.

        Raises:
            Denied: 401 if the key was revoked; 403 for another project than that of the key.
        """
        return self._in_project(self._known(number), project_name)

    def owner(self, project_name: str | None = None) -> Caller:
        """Return the caller who started the server, or was let in by them, usually with all rights.

        Raises:
            Denied: 404 if there is no such project.
        """
        return Caller(self._project(project_name or DEFAULT), "local", self._owner_rights)

    def has_keys(self) -> bool:
        """Return whether a key exists or existed: then every request needs one."""
        lookup, now, changes = self._keys, time.monotonic(), self._store.keys_changed
        if not lookup.has_keys and (lookup.changes != changes or now - lookup.at >= _FRESH):
            with self._store.read() as connection:
                query = select(exists(select(api_key.c.id)))
                has_keys = bool(connection.execute(query, execution_options=EVERY_PROJECT).scalar())
            self._keys = lookup = _Lookup(has_keys, changes, now)
        return lookup.has_keys

    def _in_project(self, caller: Caller, wanted: str | None) -> Caller:
        # A key of one project must not reveal which other projects exist.
        if wanted is not None and self._number(wanted) != caller.project:
            message = f"this key does not belong to project `{wanted}`"
            raise Denied(403, message, "use a key of that project")
        return caller

    def _project(self, name: str) -> int:
        number = self._number(name)
        if number is None:
            message = f"there is no project `{name[:200]}`"
            raise Denied(404, message, "name one of those that `baton serve keys list` shows")
        return number

    def _number(self, name: str) -> int | None:
        try:
            return self._store.project(name)
        except InputError:
            return None

    def _by_key(self, text: str) -> Caller:
        """Look a key up by its hash, so that the time it takes reveals nothing about the key."""
        return self._known(_hash(text))

    def _known(self, key: bytes | int) -> Caller:
        """Return the caller with the key of this hash or number.

        Raises:
            Denied: 401 if there is no such key, or it was revoked.
        """
        now = time.monotonic()
        changes = self._store.keys_changed
        with self._lock:
            if self._changes != changes:
                self._callers.clear()
                self._changes = changes
            known = self._callers.get(key)
        if known is not None and now - known[1] < _FRESH:
            return known[0]
        column = api_key.c.id if isinstance(key, int) else api_key.c.sha256
        query = select(api_key).where(column == key)
        with self._store.read() as connection:
            row = connection.execute(query, execution_options=EVERY_PROJECT).mappings().first()
        if isinstance(key, bytes) and row is not None:
            row = row if hmac.compare_digest(row["sha256"], key) else None
        if row is None or row["revoked"] is not None:
            with self._lock:
                self._callers.pop(key, None)
            message = "this API key is not valid, or it was revoked"
            raise Denied(401, message, "`baton serve keys list` shows the existing keys")
        rights = frozenset[str]().union(*(_INCLUDES[each] for each in row["rights"].split(",")))
        caller = Caller(row["project"], row["name"], rights)
        if row["used"] is None or time.time() - row["used"] > _USED_STEP:
            # A full disk must not prevent reading.
            with suppress(Unavailable), self._store.write() as connection:
                used = update(api_key).where(api_key.c.project == row["project"])
                connection.execute(used.where(api_key.c.id == row["id"]).values(used=time.time()))
        with self._lock:
            if self._store.keys_changed == changes:
                self._callers[key] = (caller, now)
        return caller


class CheckSource:
    """ASGI middleware that blocks all requests from foreign pages, for any path."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] in ("http", "websocket"):
            try:
                self._access.check_source(Headers(scope=scope))
            except Denied as denied:
                await denied.answer()(scope, receive, send)
                return
        await self._app(scope, receive, send)


def caller_of(request: Request, project_name: str | None = None) -> Caller:
    """Return the caller of a request; the application's state has an ``access``.

    Raises:
        Denied: 401, 403 or 404, see :meth:`Access.caller`.
    """
    access: Access = request.app.state.access
    peer = request.client.host if request.client is not None else None
    return access.caller(request.headers, peer, project_name)


def need_json(request: Request) -> None:
    """Raise ``Denied`` (415) unless a body is JSON, which no form of a page can send."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Denied(
            415,
            f"the body has the content type `{kind[:100]}`" if kind else "there is no content type",
            "send JSON with `Content-Type: application/json`",
        )


def _hash(text: str) -> bytes:
    """Return the hash of a key. It has 256 random bits: no salt and no slow hash is needed."""
    return sha256(text.encode()).digest()


def _key_of(headers: Mapping[str, str]) -> str | None:
    scheme, _, text = headers.get("authorization", "").partition(" ")
    if scheme:
        # Another scheme is not a key, and grants nothing.
        return text.strip() if scheme.lower() == "bearer" else ""
    return headers.get("x-api-key")


def _host_name(host: str) -> str | None:
    """Return the name in a ``Host`` header without its port; ``None`` if there is none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # ValueError if it is not a number
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or "@" in host:
        return None
    return parts.hostname.casefold() if parts.hostname else None


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_LONGEST = 64
"""Maximum characters of an address; longer ones are not cached, as senders choose them."""


def _read_address(text: str) -> _Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


_kept_address = lru_cache(maxsize=1024)(_read_address)


def _address_of(text: str) -> _Address | None:
    """Read an address, or return ``None``; cached, as the same few callers ask repeatedly."""
    return _kept_address(text) if len(text) <= _LONGEST else _read_address(text)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    address = _address_of(host)
    if address is None:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or (mapped is not None and mapped.is_loopback)


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def network_of(text: str) -> _Network:
    """Read an address or a network; raises InputError for anything else."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        message = f"`{text}` is not an address or a network: write `10.0.0.7` or `10.0.0.0/8`"
        raise InputError(Problem(path="trusted_proxies", message=message)) from None


def _inside(peer: str, networks: Sequence[_Network]) -> bool:
    address = _address_of(peer)
    if address is None:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in network for network in networks)
