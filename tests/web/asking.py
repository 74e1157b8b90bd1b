"""Requests as a browser sends them, without one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPResponse
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener


class Answer(NamedTuple):
    """What came back; a redirect is not followed."""

    status: int
    headers: Message
    text: str


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = build_opener(_Stay)


def ask(
    url: str,
    *,
    form: Mapping[str, Any] | None = None,
    accept: str = "text/html",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Load a page, or send a form."""
    body = None if form is None else urlencode(form, doseq=True).encode()
    request = Request(url, body, {"Accept": accept, **(headers or {})})
    try:
        response: HTTPResponse | HTTPError = _OPENER.open(request, timeout=30)
    except HTTPError as error:
        response = error
    with response:
        return Answer(response.status or 0, response.headers, response.read().decode())


class Visitor:
    """A browser with its cookies, which sends forms as the pages do."""

    def __init__(self, address: str, path: str = "/conversations") -> None:
        self.address = address
        self._cookies: dict[str, str] = {}
        self.csrf = ""
        self.get(path)

    def get(self, path: str, accept: str = "text/html", **headers: str) -> Answer:
        """Load a page; its token is kept for forms."""
        answer = ask(self.address + path, accept=accept, headers=self._headers(headers))
        self._keep(answer)
        token = re.search(r'name="baton-csrf" content="([^"]+)"', answer.text)
        self.csrf = token[1] if token else self.csrf
        return answer

    def post(self, path: str, form: Mapping[str, Any], **headers: str) -> Answer:
        """Send a form of a page."""
        given = {"csrf": self.csrf, **form}
        answer = ask(self.address + path, form=given, headers=self._headers(headers))
        self._keep(answer)
        return answer

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        own = {"Cookie": kept} if kept else {}
        return {**own, "Origin": self.address, **more}

    def _keep(self, answer: Answer) -> None:
        for each in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = each.partition(";")[0].partition("=")
            self._cookies[name] = value
