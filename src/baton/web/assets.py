"""Scripts and styles of the pages, under an address that changes when one of them does.

All of them share one address, as the modules import one another by relative names. A browser may
keep them for good; a page that was open while Baton was updated still gets the new ones.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
_FOREVER = "public, max-age=31536000, immutable"


class _File(NamedTuple):
    body: bytes
    packed: bytes
    type: str


class Assets:
    """The files, read once. ``address`` is what they are below."""

    def __init__(self) -> None:
        self._files = {
            name: _File(body, gzip.compress(body, 9, mtime=0), _TYPES[suffix])
            for name, suffix, body in (*_read("static", ""), *_read_report())
        }
        digest = sha256()
        for name, each in sorted(self._files.items()):
            digest.update(f"{name}\0{len(each.body)}\0".encode() + each.body)
        self._version = digest.hexdigest()[:12]
        self.address = f"/static/{self._version}"

    def path(self, name: str) -> str:
        """Return the address of a file; raises KeyError where there is none."""
        if name not in self._files:
            raise KeyError(name)
        return f"{self.address}/{name}"

    def route(self) -> Route:
        """Return the route that answers with the files."""
        return Route("/static/{version}/{name:path}", self._answer, methods=["GET"])

    async def _answer(self, request: Request) -> Response:
        there = self._files.get(request.path_params["name"])
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


def _read(folder: str, prefix: str, package: str = "baton.web") -> Iterator[tuple[str, str, bytes]]:
    def walk(place: Traversable, before: str) -> Iterator[tuple[str, str, bytes]]:
        for each in sorted(place.iterdir(), key=lambda one: one.name):
            if each.is_dir():
                yield from walk(each, f"{before}{each.name}/")
            else:
                suffix = each.name[each.name.rfind(".") :]
                if suffix in _TYPES:
                    yield f"{before}{each.name}", suffix, each.read_bytes()

    return walk(files(package).joinpath(folder), prefix)


def _read_report() -> Iterator[tuple[str, str, bytes]]:
    """Yield what the one-file report is made of: it draws runs here as well."""
    return _read("assets", "report/", "baton.reports.html")
