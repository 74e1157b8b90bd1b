"""Masking of known secrets: one function for errors, notes, logs, folders and caches.

A secret is known when it was put into a config by ``${NAME}``, or when a client sends it. Unknown
secrets in recordings are found by :mod:`baton.model.redact`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

_STARS = "***"
_SHORT = 4
"""A secret of at most 3 characters is masked only as a whole word: `me` is also a part of
`some`.
"""
_LEAST_BASE64 = 8
"""The least length of a secret's base64 form that is searched: shorter ones occur by chance."""
_LEAST_NAMED, _LEAST = 4, 8
"""The least length of an interpolated value to count as a secret: 4 if the variable's name says
secret (`TOKEN=ab12`), else 8. Shorter ones are parts of ordinary words, and masking them would make
reports unreadable (`USER_ID=42` would blank every 42).
"""
_ENDS = ("”", "…", '"', "'")  # possible ends of a shortened quotation
_SECRET_KEY = re.compile(
    r"(api|access|private)[-_]?key|token(?!s)|password|secret|authorization|credential|cookie"
    r"|(^|[-_])auth$",
    re.IGNORECASE,
)
"""Options that hold a secret, by their names."""
# Patterns that few commands need are texts here, compiled by `re` on first use: compiling all
# patterns of all modules would add 10 ms to each start.
_SECRET_NAME = (
    _SECRET_KEY.pattern
    + r"|(account|shared)[-_]?key|passw|pwd|passphrase|bearer|signature|dsn|(^|[-_])(pat|pw|key)$"
)
"""Environment variables that hold one. More names count here: an option `key` may be the name of
anything.
"""
_OF_A_SECRET = re.compile(r"_(url|uri|type|name|file|path|host|limit|ttl|env)$", re.IGNORECASE)
"""Names that mention a secret but do not hold one: `TOKEN_URL`, `SECRET_NAME`."""
_QUERY = re.compile(
    r"(?<=[?&])([^=&\s]*(?:key|token|secret|password|signature|auth)[^=&\s]*=)([^&#\s]+)",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^/\s]+(?=@)")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}")
_ONLY_REFERENCES = (
    r"(?i)(?:(?:bearer|basic|token|apikey) )?(?:\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}:?)+"
)
_SHOWN = frozenset(
    {
        "agent_id", "agents", "app", "app_name", "cache", "dataset", "file", "folder", "format",
        "id", "labels", "model", "models", "name", "output_path", "paths", "pattern", "project",
        "rubrics", "tags", "type",
    }
)  # fmt: skip
"""Options whose values every report shows, such as `model: ${MODEL}`: masking them would make
reports useless. A variable with a secret's name is masked there, too.
"""
_PLAIN = (
    r"[+-]?[0-9][0-9_.,:eE+-]*"  # numbers, dates, ports
    r"|(?:[A-Z]?[a-z]{1,20}|[A-Z]{1,20})(?:[ _.-](?:[A-Z]?[a-z]{1,20}|[A-Z]{1,20}))*"  # words
    r"|(?:[A-Za-z0-9-]{1,30}\.)+[A-Za-z]{2,10}(?::[0-9]{1,5})?"  # host names, with a port
    r"|localhost:[0-9]{1,5}|[0-9.]{7,15}:[0-9]{1,5}"
    r"|[a-z]{2,12}(?:-[a-z]{1,12})*-[0-9]{1,2}[a-z]?(?:-[a-z]{1,12})*"  # eu-west-1, gpt-4o-mini
    r"|(?:\.{1,2}|~)?(?:/[A-Za-z0-9_.-]{1,15})+/?"  # paths
)
"""Values that do not look like secrets, under a name that does not say secret either."""
_NOTHING = frozenset({"true", "false", "none", "null", "yes", "no", "on", "off"})
_RANDOM = re.compile(r"(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[A-Za-z0-9_-]{16,}")
"""A part of a URL's path that may be a key: `hooks.example.com/services/T0/aB3...`."""


class Masker:
    """Replaces secrets in texts, also in servers' spellings, and truncated ones in quotations.

    Args:
        secrets: the secrets, or a mapping to their replacements; ``***`` by default.
    """

    def __init__(self, secrets: Iterable[str] | Mapping[str, str]) -> None:
        """Prepare all spellings: plain, in JSON, in a URL, in base64."""
        replacements = secrets if isinstance(secrets, Mapping) else dict.fromkeys(secrets, _STARS)
        self._instead = {
            spelling: instead
            for secret, instead in sorted(replacements.items(), key=lambda each: -len(each[0]))
            if secret
            for spelling in _spellings(secret)
        }
        longest_first = sorted(self._instead, key=lambda text: (-len(text), text))
        self._pattern = re.compile("|".join(map(_escaped, longest_first)) or "(?!)")
        self._starts = [(text[:_SHORT], text) for text in longest_first if len(text) > _SHORT]

    def __call__(self, text: str) -> str:
        """Return a text without secrets."""
        text = self._pattern.sub(lambda match: self._instead[match[0]], text)
        for start, secret in self._starts:
            if start in text:
                text = _without_cut(text, secret, self._instead[secret])
        return text


class _Known:
    """The secrets of this process: every output masks the same ones."""

    values: ClassVar[dict[str, str]] = {}
    masker: ClassVar[Masker | None] = None


def remember(values: Mapping[str, str]) -> None:
    """Make :func:`mask` replace these values from now on, each by its replacement."""
    if values.items() - _Known.values.items():
        _Known.values.update(values)
        _Known.masker = Masker(_Known.values)


def forget() -> None:
    """Forget all values: another command line starts in the same process."""
    _Known.values.clear()
    _Known.masker = None


def mask(text: str) -> str:
    """Return a text without the remembered secrets.

    For everything that leaves the program: errors, notes, logs, reports, files, exported spans.
    """
    return text if _Known.masker is None else _Known.masker(text)


def knows_secrets() -> bool:
    """Tell whether :func:`mask` has anything to replace."""
    return _Known.masker is not None


def mask_value(value: Any) -> Any:
    """Mask all texts of JSON-like data, the keys of mappings among them."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list | tuple):
        return [mask_value(item) for item in value]
    if isinstance(value, dict):
        return {mask_value(key): mask_value(item) for key, item in value.items()}
    return value


def mask_json(data: bytes) -> bytes:
    """Mask the texts of encoded JSON; numbers stay, as a mask in their place is not JSON."""
    if _Known.masker is None:
        return data
    text = data.decode("utf-8", "surrogatepass")
    if mask(text) == text:
        return data
    return msgspec.json.encode(mask_value(msgspec.json.decode(data)))


def secrets_in(value: str, variable: str, option: str = "") -> list[str]:
    """Return the secret parts of an interpolated value.

    ``variable`` is the name of the environment variable, ``option`` the key it is under in
    the config. A value counts when the name of either says so. Others count when they are long
    enough and are not plainly something else: a number, words, a host, a path, a model's name, or
    what is under an option that reports show. In a URL the password, the values of its query, and
    random-looking parts of the path count.
    """
    if value.lower() in _NOTHING:
        return []
    held = _of_address(value) if "://" in value else []
    named = re.search(_SECRET_NAME, variable, re.IGNORECASE) and not _OF_A_SECRET.search(variable)
    if named or _SECRET_KEY.search(option):
        words = [word for word in value.split() if len(word) >= _LEAST]
        return list(dict.fromkeys([value, *words, *held])) if len(value) >= _LEAST_NAMED else []
    if "://" in value:
        return held
    if len(value) < _LEAST or option in _SHOWN or re.fullmatch(_PLAIN, value):
        return []
    return [value]


def masked(value: Any, key: str = "") -> Any:
    """Return plain data with stars for secrets, by keys and URLs, and for headers.

    References such as ``${TOKEN}`` stay: they say where a secret comes from, and hold none. The
    default of a reference is masked where a secret itself would be.
    """
    if isinstance(value, list):
        return [masked(item, key) for item in value]
    if _SECRET_KEY.search(key) and value is not None:
        return _starred(value)
    if isinstance(value, dict):
        if key.lower() == "headers":
            return {name: _starred(item) for name, item in value.items()}
        return {name: masked(item, str(name)) for name, item in value.items()}
    if not isinstance(value, str):
        return value
    hidden = _USERINFO.sub(lambda match: _starred(match[0]), value)
    return mask(_QUERY.sub(lambda match: match[1] + _starred(match[2]), hidden))


def _starred(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(_ONLY_REFERENCES, value):
        return _STARS
    return _REFERENCE.sub(lambda m: f"${{{m[1]}{':-' + _STARS if m[2] else ''}}}", value)


def _of_address(value: str) -> list[str]:
    from urllib.parse import parse_qsl, unquote, urlsplit  # not needed to start

    try:
        parts = urlsplit(value)
    except ValueError:
        return [value]
    userinfo, at, _ = parts.netloc.rpartition("@")
    held = [userinfo] if at else []
    held += [unquote(parts.password)] if parts.password else []
    held += [text for _, text in parse_qsl(parts.query)]
    held += [piece for piece in parts.path.split("/") if _RANDOM.fullmatch(piece)]
    return [text for text in held if len(text) >= _LEAST_NAMED]


def _spellings(secret: str) -> set[str]:
    import json
    from urllib.parse import quote, quote_plus

    in_json = {json.dumps(secret, ensure_ascii=plain)[1:-1] for plain in (True, False)}
    encodable = secret.encode("utf-8", "replace")
    quoted = {quote(encodable, safe=""), quote(encodable), quote_plus(encodable)}
    quoted |= {re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), text) for text in quoted}
    spellings = {secret, *in_json, *quoted, secret.replace("/", "\\/")}
    return spellings | (_in_base64(secret) if len(secret) >= _SHORT else set())


def _in_base64(secret: str) -> set[str]:
    """Return the base64 forms of a secret, alone and inside a longer text (`user:secret`).

    Three bytes become four letters, so a secret has three forms, by where it starts. The letters
    at either end that depend on its neighbours are left out.
    """
    import base64

    data = secret.encode("utf-8", "surrogatepass")
    whole = base64.b64encode(data).decode()
    encoded = {whole, whole.rstrip("=")}
    for before in range(3):
        text = base64.b64encode(b"\0" * before + data).decode()
        first = (before * 4 + 2) // 3
        last = (before + len(data)) * 8 // 6
        encoded.add(text[first:last])
    encoded |= {text.translate(str.maketrans("+/", "-_")) for text in encoded}
    return {text for text in encoded if len(text) >= _LEAST_BASE64}


def _escaped(secret: str) -> str:
    escaped = re.escape(secret)
    return rf"(?<!\w){escaped}(?!\w)" if len(secret) < _SHORT else escaped


def _without_cut(text: str, secret: str, instead: str) -> str:
    """Mask the start of a secret if a quotation ends in the middle of it."""
    for length in range(len(secret) - 1, _SHORT - 1, -1):
        piece = secret[:length]
        if piece not in text:
            continue
        for end in _ENDS:
            text = text.replace(piece + end, instead + end)
        if text.endswith(piece):
            text = text.removesuffix(piece) + instead
    return text
