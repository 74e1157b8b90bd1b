"""Conversations of a server in place of recordings: ``server://HOST/PROJECT?to=refund-*``."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from baton.formats.own_files import make_folder, naming, open_own
from baton.model import InputError, Problem, counted

from .prepare import Note

if TYPE_CHECKING:
    from pathlib import Path

    from .server_client import Server

_SERVER = re.compile(r"server(\+https)?://")


def is_server(text: str) -> bool:
    """Tell ``server://HOST`` (or ``server+https://HOST``) from paths and other addresses."""
    return _SERVER.match(text) is not None


class Source(NamedTuple):
    """Conversations of a server: filters by field, and a limit to the newest ``most``."""

    server: Server
    fields: dict[str, object]
    most: int | None
    name: str


def source_of(address: str) -> Source:
    """Parse the address of conversations: ``server://HOST[:PORT][/PROJECT][?FILTER]``.

    A filter has the fields of the API, as its parameters: ``?to=refund-*&since=2026-01-31``;
    ``limit=100`` takes the newest hundred. The key is in the environment (``BATON_API_KEY``).

    Raises:
        InputError: it is not such an address.
    """
    from baton.pull.trace_pages import moment

    from .server_client import connect  # it loads the HTTP client

    problem = "is not an address of conversations: write server://HOST[:PORT][/PROJECT][?to=AGENT]"
    try:
        parts = urlsplit(address)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise InputError(Problem(file=_without_password(address), message=problem)) from None
    project = unquote(parts.path).strip("/")
    if not parts.netloc or "/" in project or parts.fragment:
        raise InputError(Problem(file=_without_password(address), message=problem))
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        when = moment(value, name).isoformat() if name in ("since", "until") else value
        fields.setdefault(name, []).append(when)
    if "cursor" in fields or "project" in fields:
        message = "`cursor` and `project` are not filters: write the project after the host"
        raise InputError(Problem(file=_without_password(address), message=message))
    most = None
    if "limit" in fields:
        text = fields.pop("limit")[-1]
        if not (text.isascii() and text.isdecimal() and int(text[:18]) > 0):
            message = f"`limit` is a number of conversations, not `{text[:100]}`"
            raise InputError(Problem(file=_without_password(address), message=message))
        most = int(text[:18])
    server = connect(f"{parts.scheme}://{parts.netloc}", project=project or None)
    name = re.sub(r"[^A-Za-z0-9.]+", "-", f"{parts.netloc}-{project}").strip("-.") or "server"
    return Source(server, dict(fields), most, name[:80])


def _without_password(address: str) -> str:
    """Mask the credentials of an address. Its query is shown: it is the filter, and no secret."""
    return re.sub(r"//[^/@]*@", "//***@", address)


def fetch(address: str, note: Note) -> Path:
    """Fetch records into a file below ``.baton``: JSON lines, as ``baton show --json`` has them.

    The name of the file is derived from its content, so the same conversations are stored once.

    Raises:
        InputError: the server refuses the request, or has no such conversation.
        ServerError: it does not answer.
    """
    from .record import FOLDER

    source = source_of(address)
    make_folder(FOLDER)
    draft = FOLDER / f"{source.name}-{os.getpid()}-{time.monotonic_ns()}.part"
    count = deleted = 0
    content = hashlib.sha256()
    try:
        with naming(draft), open_own(draft, "xb") as file:
            for item in _items(source, "/records"):
                if item is None:
                    deleted += 1
                    continue
                line = bytes(item) + b"\n"
                content.update(line)
                file.write(line)
                count += 1
        gone = f"; retention deleted {deleted} more" if deleted else ""
        if not count:
            message = f"has no complete conversation that matches{gone}"
            raise InputError(Problem(file=_without_password(address), message=message))
        kept = FOLDER / f"{source.name}-{content.hexdigest()[:12]}.jsonl"
        draft.replace(kept)
    finally:
        draft.unlink(missing_ok=True)
    note(f"{_without_password(address)}: {counted(count, 'conversation')}, kept in {kept}{gone}")
    return kept


def _items(source: Source, path: str) -> Iterator[msgspec.Raw | None]:
    """Yield each conversation of a list of the API, as JSON; ``None`` for a deleted one."""
    from .server_rows import Records

    for page in source.server.pages(path, Records[msgspec.Raw], source.fields, source.most):
        yield from page.items
        yield from [None] * page.deleted
