"""Options of the providers ``adk_http`` and ``adk_local``, and access to a server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal
from urllib.parse import SplitResult, unquote, urlunsplit

import msgspec

from baton.http.credentials import (
    NO_HEADER_VALUE,
    Credentials,
    address,
    is_header_name,
    is_header_value,
    refuse_query,
)
from baton.http.responses import ANSWER_MIB, EVENTS, Count, Mebibytes
from baton.providers.base_provider import (
    ProviderOptions,
    ServerOptions,
    option_error,
)

AuthType = Literal["none", "bearer", "api_key", "basic"]
USER = "eval_user"
KEY_HEADER = "X-API-Key"


class AdkHttpOptions(ServerOptions, kw_only=True):
    """A live server of Google ADK.

    The session of a case overrides ``user_id`` and ``app_name``.

    ``endpoint_url`` is the server, with or without ``/run`` or ``/run_sse``. ``auth_type`` is
    taken from the credentials when left out. ``keep_sessions`` leaves sessions on the server.
    """

    type: Literal["adk_http"]
    user_id: str = USER
    app_name: str | None = None
    endpoint_url: str
    auth_type: AuthType | None = None
    api_key: str | None = None
    auth_header: str = KEY_HEADER
    username: str | None = None
    password: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    keep_sessions: bool = False
    streaming: bool = False


class AdkLocalOptions(ProviderOptions, kw_only=True):
    """Agents of Google ADK in this process.

    ``path`` is the folder with ``agent.py``, or an agent or App of a module (``app:root_agent``).
    ``agent`` names a sub-agent that plays instead of the root. One message may lead to
    ``max_events`` events of ``max_answer_mib`` together.
    """

    type: Literal["adk_local"]
    user_id: str = USER
    app_name: str | None = None
    path: str
    agent: str | None = None
    streaming: bool = False
    max_answer_mib: Mebibytes = ANSWER_MIB
    max_events: Count = EVENTS


def base_url(endpoint_url: str) -> str:
    """Return the server's address without credentials, ``/run`` or ``/run_sse``.

    Raises:
        InputError: it is no http address.
    """
    parts = _parts(endpoint_url)
    path = parts.path.rstrip("/")
    route = next((end for end in ("/run_sse", "/run") if path.endswith(end)), "")
    path = path.removesuffix(route)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, place, path, "", ""))


def credentials(
    options: AdkHttpOptions, environment: Mapping[str, str] = os.environ
) -> Credentials:
    """Work out how to authenticate; contradictory settings are refused.

    Raises:
        InputError: something is missing, or is given but not used.
    """
    parts = _parts(options.endpoint_url)
    username = options.username or _plain(parts.username)
    password = options.password or _plain(parts.password)
    kind = options.auth_type or _auth_type(options.api_key, username)
    # Headers that cannot be sent are refused, and those that the credentials are sent in.
    taken = {"none": "", "api_key": options.auth_header.lower()}.get(kind, "authorization")
    for name, value in options.headers.items():
        if not is_header_name(name) or not is_header_value(value):
            raise option_error("headers", f"`{name}` {NO_HEADER_VALUE}")
        if name.lower() == taken:
            raise option_error(
                "headers", f"`{name}` is also sent by `auth_type: {kind}`: state only one"
            )
    if kind != "api_key" and options.auth_header != KEY_HEADER:
        _refuse(kind, auth_header=options.auth_header)
    if kind == "basic":
        _refuse(kind, api_key=options.api_key)
        if username is None:
            raise option_error("auth_type", "`basic` needs `username` and `password`")
        return Credentials(headers=options.headers, basic=(username, password or ""))
    _refuse(kind, username=username, password=password)
    if kind == "none":
        _refuse(kind, api_key=options.api_key)
        return Credentials(headers=options.headers)
    key = options.api_key or environment.get("ADK_API_KEY")
    if not key:
        raise option_error(
            "auth_type", f"`{kind}` needs `api_key`, or ADK_API_KEY in the environment"
        )
    if not is_header_value(key):
        raise option_error("api_key", NO_HEADER_VALUE)
    header = {"Authorization": f"Bearer {key}"} if kind == "bearer" else {options.auth_header: key}
    return Credentials(headers={**options.headers, **header})


def _plain(quoted: str | None) -> str | None:
    return None if quoted is None else unquote(quoted)


def _parts(endpoint_url: str) -> SplitResult:
    parts = address(endpoint_url, "endpoint_url")
    refuse_query(parts, "endpoint_url")
    return parts


def _auth_type(api_key: str | None, username: str | None) -> AuthType:
    if api_key is not None and username is None:
        return "bearer"
    return "basic" if username is not None else "none"


def _refuse(kind: AuthType, **given: str | None) -> None:
    for name, value in given.items():
        if value is not None:
            raise option_error(name, f"is given, but `auth_type: {kind}` does not use it")
