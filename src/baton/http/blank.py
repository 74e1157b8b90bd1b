"""Taking credentials out of what an answer makes Baton say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

_STARS = "***"
_SHORT = 4  # letters; what is no longer stands in too many other words
_ENDS = ("”", "…", '"', "'")  # what a shortened quotation may end with


class Blank:
    """Puts stars in the place of secrets, also where a quotation was cut in one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spelt = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
        self._secrets = sorted(spelt, key=lambda secret: (-len(secret), secret))
        self._pattern = re.compile("|".join(_pattern(secret) for secret in self._secrets) or "(?!)")

    def __call__(self, text: str) -> str:
        """Return a text without secrets."""
        text = self._pattern.sub(_STARS, text)
        for secret in self._secrets:
            for length in range(len(secret) - 1, _SHORT - 1, -1):
                piece = secret[:length]
                if piece in text:
                    text = _without_cut(text, piece)
        return text


def _spellings(secret: str) -> set[str]:
    in_json = {json.dumps(secret, ensure_ascii=plain)[1:-1] for plain in (True, False)}
    return {secret, *in_json, secret.replace("/", "\\/"), quote(secret, safe="")}


def _pattern(secret: str) -> str:
    escaped = re.escape(secret)
    return rf"(?<!\w){escaped}(?!\w)" if len(secret) < _SHORT else escaped


def _without_cut(text: str, piece: str) -> str:
    for end in _ENDS:
        text = text.replace(piece + end, _STARS + end)
    return text.removesuffix(piece) + _STARS if text.endswith(piece) else text
