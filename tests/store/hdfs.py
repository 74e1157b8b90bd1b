"""A WebHDFS server on loopback: real storage behind a real driver of fsspec."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.server.serving import on_loopback


class Storage:
    """The files by path, and the endings of paths that may not be written, or not be read."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.read_only: str | None = None
        self.secret: str | None = None
        self.written: list[str] = []
        self.address = ""


@contextmanager
def webhdfs() -> Iterator[Storage]:
    """Run the server; the ``address`` of the storage is that of its root folder."""
    storage = Storage()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def refuse(self, code: int, name: str) -> None:
            text = {"RemoteException": {"exception": name, "message": f"{self.file}: {name}"}}
            self.answer(code, json.dumps(text).encode())

        def asked(self) -> str:
            """Take the request apart; return the operation."""
            parts = urlsplit(self.path)
            self.file = unquote(parts.path).removeprefix("/webhdfs/v1")
            self.query = parse_qs(parts.query)
            length = int(self.headers.get("Content-Length") or 0)
            self.sent = self.rfile.read(length)
            return self.query["op"][0]

        def do_GET(self) -> None:
            op = self.asked()
            is_folder = any(name.startswith(self.file.rstrip("/") + "/") for name in storage.files)
            if storage.secret is not None and self.file.endswith(storage.secret):
                self.refuse(403, "AccessControlException")
            elif self.file not in storage.files and not is_folder:
                self.refuse(404, "FileNotFoundException")
            elif op == "GETFILESTATUS":
                data = storage.files.get(self.file)
                status: dict[str, Any] = {
                    "type": "DIRECTORY" if data is None else "FILE",
                    "length": len(data or b""),
                }
                self.answer(200, json.dumps({"FileStatus": status}).encode())
            else:
                start, length = int(self.query["offset"][0]), int(self.query["length"][0])
                self.answer(200, storage.files[self.file][start : start + length])

        def do_PUT(self) -> None:
            op = self.asked()
            if op == "MKDIRS":
                self.answer(200, b'{"boolean": true}')
            elif storage.read_only is not None and self.file.endswith(storage.read_only):
                self.refuse(403, "AccessControlException")
            elif "data" not in self.query:
                self.answer(307, Location=self.again())
            else:
                storage.files[self.file] = b""
                storage.written.append(self.file.rpartition("/")[2])
                self.answer(201)

        def do_POST(self) -> None:
            self.asked()
            if "data" not in self.query:
                self.answer(307, Location=self.again())
            else:
                storage.files[self.file] += self.sent
                self.answer(200)

        def do_DELETE(self) -> None:
            self.asked()
            storage.files.pop(self.file, None)
            self.answer(200, b'{"boolean": true}')

        def again(self) -> str:
            """Return the address where the content has to be sent."""
            return f"http://{self.headers['Host']}{self.path}&data=true"

    with on_loopback(Handler) as url:
        storage.address = url.replace("http://", "webhdfs://")
        yield storage
