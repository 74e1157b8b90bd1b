"""Whether a call is one that a list of tool names and patterns means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from baton.model import ToolCall

_SPECIFIED = re.compile(r"(?P<name>[^()]+)\((?P<what>.*)\)\Z", re.DOTALL)
_JOINTS = re.compile(r"&&|\|\||[;|&\n]")
# One tool under an older and a newer name.
_SAME = {"task": "agent"}


def meant_by(call: ToolCall, patterns: Iterable[str], *, every_part: bool) -> bool | None:
    """Tell whether one of the patterns means a call; ``None`` when its arguments would tell.

    A pattern is a name (``Read``), with wildcards (``mcp__github__*``), a server
    (``mcp__github``), or a name with what it is limited to: ``Bash(git:*)`` are commands that
    begin with ``git``, ``Bash(git log *)`` has wildcards, ``WebFetch(domain:example.com)`` a
    host and its subdomains, ``Agent(helper)`` a target. What is said of paths is not decided.
    Names are equal whatever their case, and blanks, ``-`` and ``_`` are one. A shell command is
    meant when ``every_part`` of it is, as a permission reads it, or any part, as a ban does.
    """
    undecided = False
    for pattern in patterns:
        found = _means(pattern.strip(), call, every_part)
        if found:
            return True
        undecided |= found is None
    return None if undecided else False


def _means(pattern: str, call: ToolCall, every_part: bool) -> bool | None:
    limited = _SPECIFIED.match(pattern)
    if limited is None:
        return _named(pattern, call.name)
    if not _named(limited["name"], call.name):
        return False
    what = limited["what"].strip()
    return True if what in ("", "*") else _limited(what, call, every_part)


def _named(pattern: str, name: str) -> bool:
    wanted, actual = _fold(pattern), _fold(name)
    if wanted.startswith("mcp__") and wanted.count("__") == 1:
        return actual.startswith(f"{wanted}__")
    return fnmatchcase(actual, re.sub(r"\[", "[[]", wanted))


def _fold(name: str) -> str:
    folded = name.strip().casefold().replace(" ", "_").replace("-", "_")
    return _SAME.get(folded, folded)


def _limited(what: str, call: ToolCall, every_part: bool) -> bool | None:
    arguments = call.arguments
    if not isinstance(arguments, dict):
        return None
    command, url = arguments.get("command"), arguments.get("url")
    if isinstance(command, str):
        parts = [part.strip() for part in _JOINTS.split(command) if part.strip()]
        found = [_command(what, part) for part in parts]
        return bool(found) and (all(found) if every_part else any(found))
    if isinstance(url, str) and what.startswith("domain:"):
        host, domain = urlsplit(url).hostname or "", what.removeprefix("domain:")
        return host == domain or host.endswith(f".{domain}")
    target = arguments.get("subagent_type")
    return target == what if isinstance(target, str) else None


def _command(what: str, command: str) -> bool:
    if what.endswith(":*"):
        begins = what.removesuffix(":*")
        return command == begins or command.startswith(f"{begins} ")
    return fnmatchcase(command, re.sub(r"\[", "[[]", what))
