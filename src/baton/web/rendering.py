"""Templates: their functions, and the formats of times, costs and counts.

Every text goes through :func:`baton.model.visible.visible` and is escaped. What a form edits is
written with ``exact``, as an escape would change it when it is saved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode
from zlib import crc32

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from baton.model import counted
from baton.model.score import digits, rounded
from baton.model.visible import (
    LINE_BREAKS,
    UNSEEN,
    character_class,
    visible,
    visible_line,
)

from .assets import Assets

HUES = 10
"""Colours of agents; ``hue-0`` to ``hue-9`` in the style sheet."""
MOST = 20_000
"""Maximum characters of a text that a page shows at first."""


def environment(assets: Assets) -> Environment:
    """Return the templates.

    In them ``asset`` gives the address of a file, and ``script``, ``plain_script``, ``htmx`` and
    ``styles`` write the elements that load scripts and styles. ``part`` writes the attributes of an
    element that htmx fetches.
    """
    made = Environment(
        loader=PackageLoader("baton.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals.update(
        asset=assets.path,
        styles=_with_nonce(assets.styles),
        script=_with_nonce(assets.script),
        plain_script=_with_nonce(assets.plain_script),
        htmx=_with_nonce(assets.htmx),
        part=_with_nonce(_part),
        theme=assets.theme,
        MOST=MOST,
    )
    made.filters.update(
        time=time_element,
        seconds=seconds_text,
        money=money_text,
        count=count_text,
        short=short_count,
        percent=percent_text,
        rounded=rounded,
        digits=digits,
        size=size_text,
        counted=counted,
        plain_json=json_attribute,
        line=lambda text: escape(visible_line(str(text))),
        exact=escape,
        prose=prose_text,
        hue=hue_of,
        agent=agent_element,
        drawn=drawn_text,
    )
    return made


def _with_nonce(write: Callable[..., Markup]) -> Callable[..., Markup]:
    """Return functions that write elements with the response's nonce, which its policy names."""

    @pass_context
    def written(context: Context, *given: str) -> Markup:
        return write(*given, nonce=context["nonce"])

    return written


def _part(address: str, trigger: str, swap: str = "innerHTML", *, nonce: str) -> Markup:
    made = Markup('hx-get="{}" hx-trigger="{}" hx-swap="{}" hx-nonce="{}"')
    return made.format(address, trigger, swap, nonce)


def _shown(value: Any) -> Any:
    if isinstance(value, Markup):
        return value
    return visible(value) if isinstance(value, str) else value


def prose_text(text: str) -> Markup:
    """Write one of Baton's sentences: with a capital, and text in backticks as code."""
    escaped = str(escape(visible(text[:1].upper() + text[1:])))
    return Markup(_CODE.sub(r"<code>\1</code>", escaped))  # noqa: S704 - escaped before


_CODE = re.compile(r"`([^`]+)`")


def drawn_text(text: str) -> Markup:
    """Write a text as the scripts of the report do: what is invisible as ``⟨U+202E⟩``.

    It is for elements that these scripts may draw again; see ``shown`` of ``dom.js``.
    """
    return escape(_UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text))


_UNSEEN = re.compile(f"[{character_class((*UNSEEN, *LINE_BREAKS))}]")


def time_element(at: datetime | float | None, missing: str = "–") -> Markup:
    """Write a time as an element, which the script of all pages fills in the reader's zone."""
    moment = datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else at
    if moment is None:
        return escape(missing)
    stated = moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    shown = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Markup(f'<time datetime="{stated}">{shown}</time>')  # noqa: S704 - digits only


def seconds_text(value: float | None, missing: str = "–") -> str:
    """Write a duration: ``0.35 s``, ``12.4 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if value is None:
        return missing
    if value < 0.995:
        return f"{value:.2f} s"
    if value < 99.5:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    return f"{minutes // 60:,} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def money_text(value: float | None, missing: str = "–") -> str:
    """Write a cost in USD, small ones with four digits: ``$0.0012``, ``$0.12``, ``$1,234.50``."""
    if value is None:
        return missing
    return f"${value:.4f}" if 0 < abs(value) < 0.1 else f"${value:,.2f}"


def count_text(value: float | None, missing: str = "–") -> str:
    """Write a count in full: ``12,345``."""
    return missing if value is None else f"{value:,}"


def short_count(value: float | None, missing: str = "–") -> str:
    """Write a count for a narrow column: ``950``, ``12.3k``, ``4.1M``."""
    if value is None:
        return missing
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f}{unit}"
    return f"{value:,}"


def percent_text(part: float, whole: float) -> str:
    """Write a share as 100 % only if it is exactly 1, and as 0 % only if it is exactly 0."""
    if not whole:
        return "–"
    share = round(100 * part / whole)
    if part < whole:
        share = min(99, share)
    return f"{max(1, share) if part > 0 else 0} %"


def size_text(value: float | None, missing: str = "–") -> str:
    """Write a number of bytes: ``12 kB``, ``3.4 MB``."""
    if value is None:
        return missing
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.1f} {unit}".replace(".0 ", " ")
    return f"{value:.0f} bytes"


@lru_cache(maxsize=4096)
def agent_element(name: str) -> Markup:
    """Write the name of an agent in its colour; lists have hundreds of them."""
    made = Markup('<span class="agent {}" dir="auto">{}</span>')
    return made.format(hue_of(name), visible_line(name) or "no name")


@lru_cache(maxsize=4096)
def hue_of(name: str) -> str:
    """Return the class that gives an agent its colour, the same on all pages."""
    return f"hue-{crc32(name.encode('utf-8', 'surrogatepass')) % HUES}"


def json_attribute(value: Any) -> Markup:
    """Write data for a script as the value of an attribute: escaped, and otherwise as it is."""
    return escape(msgspec.json.encode(value).decode())


def address(path: str, given: Mapping[str, Any]) -> str:
    """Return an address with the parameters that are not empty; lists give one several times."""
    pairs = [
        (name, str(each))
        for name, value in given.items()
        for each in (value if isinstance(value, list | tuple) else [value])
        if each is not None and each != ""
    ]
    return f"{path}?{urlencode(pairs)}" if pairs else path
