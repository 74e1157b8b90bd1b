"""Access to a server: addresses, headers, passwords."""

from __future__ import annotations

import base64
import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

from baton.model import InputError, Problem

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"([!-~]([ -~\t]*[!-~])?)?")
_HOST_AND_PORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*:\d{1,5}(/[\w./-]*)?")
NO_HEADER_VALUE = (
    "contains a line break, a space at its start or end, or a character that is not ASCII"
)


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent with every request."""

    headers: dict[str, str] = msgspec.field(default_factory=dict)
    basic: tuple[str, str] | None = None

    def secrets(self) -> list[str]:
        """Return the secrets that a server could echo: headers, their last words, passwords."""
        values = [value for value in self.headers.values() if len(value) > 3]  # 1, on, yes
        words = [value.rpartition(" ")[2] for value in values if " " in value]
        pair = ":".join(self.basic or ())
        basic = [base64.b64encode(pair.encode()).decode(), self.basic[1]] if self.basic else []
        return [*values, *words, *basic]


def is_header_name(name: str) -> bool:
    """Tell whether a text can be the name of a header."""
    return _HEADER_NAME.fullmatch(name) is not None


def is_header_value(value: str) -> bool:
    """Tell whether a text can be sent as a header's value; ``NO_HEADER_VALUE`` says why not."""
    return _HEADER_VALUE.fullmatch(value) is not None


def address(url: str, option: str, example: str = "http://HOST:PORT") -> SplitResult:
    """Parse the address in an ``option``.

    Raises:
        InputError: it is no http address.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        meant = with_scheme(url) or example
        if meant != example and "/" not in url:  # the example may have a path, `/v1`
            meant += example.removeprefix("http://HOST:PORT")
        message = f"`{bare_address(url)}` is not a valid address: write {meant}"
        raise InputError(Problem(path=option, message=message))
    return parts


def with_scheme(text: str) -> str | None:
    """Return the address that `HOST:PORT` is meant for; ``None`` for any other text."""
    return f"http://{text}" if _HOST_AND_PORT.fullmatch(text) else None


def plain_address(url: str, option: str, credentials_by: str) -> str:
    """Return an address without credentials or query, and without a trailing slash.

    Raises:
        InputError: it is no http address, or it has credentials, which ``credentials_by`` takes.
    """
    text = url.strip().rstrip("/")
    parts = address(text, option)
    refuse_credentials(parts, option, credentials_by)
    refuse_query(parts, option)
    return text


def refuse_credentials(parts: SplitResult, option: str, credentials_by: str) -> None:
    """Raise InputError for an address with credentials, which ``credentials_by`` takes."""
    if "@" in parts.netloc:
        message = f"the address contains credentials; give them with {credentials_by}"
        raise InputError(Problem(path=option, message=message))


def refuse_query(parts: SplitResult, option: str) -> None:
    """Raise InputError for an address with a query or a fragment, which would not be sent."""
    if parts.query or parts.fragment:
        message = "the address has a query or a fragment; give the address alone"
        raise InputError(Problem(path=option, message=message))


def bare_address(url: str) -> str:
    """Return one address without its possible secrets: credentials and the query are left out.

    :func:`baton.formats.storage_addresses.shown_address` masks them in a text with addresses.
    """
    return url.rpartition("@")[2].partition("?")[0]


def basic_of(parts: SplitResult) -> tuple[str, str] | None:
    """Return the user and password that an address holds."""
    if parts.username is None:
        return None
    return unquote(parts.username), unquote(parts.password or "")


def query_values(parts: SplitResult) -> list[str]:
    """Return the values of the query: they may be API keys."""
    return [value for _, value in parse_qsl(parts.query)]
