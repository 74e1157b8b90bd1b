"""Scripts and styles of the pages.

The styles of a page are in the page itself: a browser paints nothing without them, and a request
would delay each first page. A page loads one script, a module with all its imports, under an
address that changes when one of them does. A browser may cache it forever; a page that was open
during an update of Baton still gets the new one.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from baton.reports.html.scripts import light_script, light_style, one_script

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
_FOREVER = "public, max-age=31536000, immutable"
_LINKED = "page/"
"""The path prefix of a script with all its imports: ``page/conversation.js``."""
_STYLES = ("report/theme.css", "app.css")
"""Styles of all pages, before those of a page."""
_HTMX = "vendor/htmx.min.js+vendor/hx-csp.min.js"
"""The one address that joins files."""


_HTMX_CONFIG = msgspec.json.encode(
    {
        "extensions": "hx-csp",
        "includeIndicatorCSS": False,
        "history": False,
        "prefix": "",  # only attributes that start with `hx-`
        "noSwap": [204, 304, "4xx", "5xx"],  # existing content stays
    }
).decode()
"""Requests to other hosts, and expressions, are refused by the policy of each page as well."""


class _File(NamedTuple):
    body: bytes
    packed: bytes
    type: str


class Assets:
    """The files, read once. ``address`` is the path that they are below."""

    def __init__(self) -> None:
        # The scripts and styles of the one-file report draw runs here as well.
        self._files = {
            name: _File(body, gzip.compress(body, 9, mtime=0), _TYPES[suffix])
            for name, suffix, body in (
                *_read("static", ""),
                *_read("assets", "report/", "baton.reports.html"),
            )
        }
        digest = sha256()
        for name, each in sorted(self._files.items()):
            digest.update(f"{name}\0{len(each.body)}\0".encode() + each.body)
        self._version = digest.hexdigest()[:12]
        self.address = f"/static/{self._version}"
        self._named = {_HTMX}  # the scripts that pages name
        self._made: dict[str, _File] = {}
        self._styles: dict[tuple[str, ...], Markup] = {}
        # It sets the colours before anything is drawn: a request for it would delay each page.
        theme = light_script(self._files.pop("theme.js").body.decode())
        self.theme = Markup(theme)  # noqa: S704 - a file of Baton

    def path(self, name: str) -> str:
        """Return the address of a file; raises KeyError if there is none."""
        if name not in self._files:
            raise KeyError(name)
        return f"{self.address}/{name}"

    def script(self, name: str, nonce: str) -> Markup:
        """Write the element that loads a module with all that it imports."""
        self.path(name)
        self._named.add(_LINKED + name)
        made = Markup('<script type="module" src="{}/{}{}" nonce="{}"></script>')
        return made.format(self.address, _LINKED, name, nonce)

    def plain_script(self, name: str, nonce: str) -> Markup:
        """Write the element that loads a script that is no module, when the page is read."""
        made = Markup('<script defer src="{}" nonce="{}"></script>')
        return made.format(self.path(name), nonce)

    def htmx(self, nonce: str) -> Markup:
        """Write the elements that load htmx with its security extension, and set it up.

        Nothing waits for htmx: a page is painted before its parts are fetched.
        """
        made = Markup(
            '<meta name="htmx-config" content="{}">\n<script async src="{}/{}" nonce="{}"></script>'
        )
        return made.format(_HTMX_CONFIG, self.address, _HTMX, nonce)

    def styles(self, *names: str, nonce: str) -> Markup:
        """Write the element with the styles of all pages, and those of one."""
        listed = (*_STYLES, *names)
        if listed not in self._styles:
            texts = (light_style(self._files[name].body.decode()) for name in listed)
            self._styles[listed] = Markup("".join(texts))  # noqa: S704 - files of Baton
        return Markup('<style nonce="{}">\n{}</style>').format(nonce, self._styles[listed])

    def route(self) -> Route:
        """Return the route that answers with the files."""
        return Route("/static/{version}/{name:path}", self._answer, methods=["GET"])

    async def _answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        there = self._files.get(name) or self.made(name)
        if there is None:
            return Response("there is no such file\n", 404, media_type="text/plain")
        current = request.path_params["version"] == self._version
        headers = {
            "Cache-Control": _FOREVER if current else "no-cache",
            "X-Content-Type-Options": "nosniff",
            "Vary": "Accept-Encoding",
        }
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(there.packed, headers=headers, media_type=there.type)
        return Response(there.body, headers=headers, media_type=there.type)

    def made(self, name: str) -> _File | None:
        """Join a script; ``None`` if there is none of this name."""
        if name in self._made:
            return self._made[name]
        if name.startswith(_LINKED):
            entry = name.removeprefix(_LINKED)
            if entry not in self._files or not entry.endswith(".js"):
                return None
            text = light_script(one_script(entry, lambda each: self._files[each].body.decode()))
            body = text.encode()
        elif name == _HTMX:
            body = b"\n".join(self._files[each].body for each in name.split("+"))
        else:
            return None
        made = _File(body, gzip.compress(body, 6, mtime=0), _TYPES[".js"])
        if name in self._named:  # anyone can request any address: others are not cached
            self._made[name] = made
        return made


def _read(folder: str, prefix: str, package: str = "baton.web") -> Iterator[tuple[str, str, bytes]]:
    def walk(place: Traversable, before: str) -> Iterator[tuple[str, str, bytes]]:
        for each in sorted(place.iterdir(), key=lambda one: one.name):
            if each.is_dir():
                yield from walk(each, f"{before}{each.name}/")
            else:
                suffix = each.name[each.name.rfind(".") :]
                if suffix in _TYPES:
                    yield f"{before}{each.name}", suffix, each.read_bytes()

    return walk(resources.files(package).joinpath(folder), prefix)
